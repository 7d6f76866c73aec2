"""What `galaxy-al demo` prints: progress, a table, a picture, and what to do next."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from galaxy_al.experiments.demo import (
    BATCH_SIZE,
    RARE_DIGITS,
    ROUNDS,
    SEEDS,
    STRATEGIES_SHOWN,
    DemoPool,
    DemoRun,
    digits_pool,
    run_demo,
    summary,
)


def show_demo(output: Path) -> None:
    """Run the demo and tell about it."""
    from galaxy_al.experiments.plots import save_curves

    console = Console()
    pool = digits_pool()
    console.print(
        f"A pool of {len(pool.truth):,} handwritten digits. Wanted: the digits "
        f"{', '.join(map(str, RARE_DIGITS))}, {pool.n_rare} examples in all, about 2% each.\n"
        f"Each strategy labels {BATCH_SIZE * ROUNDS} examples in {ROUNDS} batches, "
        f"with {len(SEEDS)} random starts.\n"
    )
    n_runs = len(SEEDS) * len(STRATEGIES_SHOWN)
    runs = list(track(run_demo(pool), "Labelling", total=n_runs, console=console))
    console.print(_table(pool, runs))
    labels_used = [step.n_labels for step in runs[0].history]
    panels = {
        "balanced accuracy": summary(runs, "balanced_accuracy"),
        f"rare examples found, of {pool.n_rare}": summary(runs, "rare_found"),
    }
    title = f"Rare digits: mean and standard error of {len(SEEDS)} runs"
    save_curves(output, labels_used, panels, title)
    console.print(
        f"\nThe picture is in [bold]{output}[/bold].\n"
        "Next: run it on your own data in ten lines of Python (see the README), or see what else "
        "there is with [bold]galaxy-al strategies[/bold] (in [bold].venv/bin[/bold] after make)."
    )


def _table(pool: DemoPool, runs: list[DemoRun]) -> Table:
    table = Table("strategy", title="After the last batch, mean ± standard error")
    for column in ("labels used", f"rare found, of {pool.n_rare}", "balanced accuracy"):
        table.add_column(column, justify="right")
    found, accuracy = summary(runs, "rare_found"), summary(runs, "balanced_accuracy")
    for strategy in STRATEGIES_SHOWN:
        table.add_row(
            strategy,
            str(runs[0].history[-1].n_labels),
            f"{found[strategy][0][-1]:.1f} ± {found[strategy][1][-1]:.1f}",
            f"{accuracy[strategy][0][-1]:.3f} ± {accuracy[strategy][1][-1]:.3f}",
        )
    return table
