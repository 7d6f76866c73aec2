"""What `galaxy-al theory` prints: each point of the grid with its bound, and a figure."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from galaxy_al.errors import GalaxyError
from galaxy_al.experiments.theory import Check, grid

_NAMES = {
    "bisection": "balance of bisection (theorem)",
    "batched": "balance of batched GALAXY (corollary)",
    "uncertainty": "uncertainty sampling can find nothing (proposition)",
    "noise": "noise tolerance (theorem)",
}


def show_theory(draws: int, seed: int, output: Path) -> None:
    """Simulate the grid and print it; a bound that does not hold is an error."""
    from galaxy_al.experiments.plots import save_figure, theory_figure

    formats = (".png", ".svg", ".pdf")
    if output.suffix not in formats:
        raise GalaxyError(f"{output} must end in {', '.join(formats)}.")
    console = Console()
    checks = list(track(grid(draws, seed), "Simulating", console=console, transient=True))
    for statement, name in _NAMES.items():
        console.print(_table(name, [check for check in checks if check.statement == statement]))
    save_figure(theory_figure(checks), output.with_suffix(""), [output.suffix[1:]])
    console.print(f"{draws} draws at each of {len(checks)} points; the figure is in {output}")
    broken = [check for check in checks if not check.holds]
    if broken:
        raise GalaxyError(f"{len(broken)} bounds do not hold, the first: {broken[0]}")


def _table(name: str, checks: list[Check]) -> Table:
    table = Table(title=name, title_justify="left")
    for column in ("z", "n'", "B'", "delta", "measured", "bound", "measured / bound", "cut found"):
        table.add_column(column, justify="right")
    for check in checks:
        quotient = f"{check.ratio / check.bound:.2f}" if check.bound else ""
        table.add_row(
            str(check.z),
            str(check.n_left),
            str(check.extra),
            f"{check.delta:g}",
            f"{check.ratio:.3f} ± {check.error:.3f}",
            f"{check.bound:.3f}",
            quotient,
            f"{check.found:.3f}" if check.delta else "",
        )
    return table
