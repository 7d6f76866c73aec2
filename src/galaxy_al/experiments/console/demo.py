"""What `galaxy-al demo` prints: progress, a table, a figure, and what to do next."""

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
    demo_curves,
    digits_pool,
    run_demo,
)


def show_demo(output: Path) -> None:
    """Run the demo and print its results."""
    from galaxy_al.experiments.plots import demo_figure, save_figure

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
    panels = {
        "balanced accuracy": demo_curves(runs, "balanced_accuracy"),
        f"rare examples found, of {pool.n_rare}": demo_curves(runs, "rare_found"),
    }
    title = f"Rare digits: mean and standard error of {len(SEEDS)} runs"
    save_figure(demo_figure(title, panels), output.with_suffix(""), [output.suffix[1:] or "png"])
    console.print(
        f"\nThe figure is in [bold]{output}[/bold].\n"
        "Next: label your own data with [bold]galaxy-al init[/bold] and [bold]galaxy-al "
        "label[/bold], or list the strategies with [bold]galaxy-al strategies[/bold]."
    )


def _table(pool: DemoPool, runs: list[DemoRun]) -> Table:
    table = Table("strategy", title="After the last batch, mean ± standard error")
    for column in ("labels used", f"rare found, of {pool.n_rare}", "balanced accuracy"):
        table.add_column(column, justify="right")
    for strategy in STRATEGIES_SHOWN:
        found, accuracy = (
            demo_curves(runs, measure)[strategy] for measure in ("rare_found", "balanced_accuracy")
        )
        table.add_row(
            strategy,
            str(found.n_labels[-1]),
            f"{found.mean()[-1]:.1f} ± {found.error()[-1]:.1f}",
            f"{accuracy.mean()[-1]:.3f} ± {accuracy.error()[-1]:.3f}",
        )
    return table
