"""Rounds told to other tools as they come: TensorBoard, MLflow, Weights & Biases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.experiments.datasets import setting_title
from galaxy_al.experiments.suite import MEASURES, Cell


class Logger(Protocol):
    """Takes the measures of a run's rounds."""

    def log(self, cell: Cell, n_labels: int, measures: dict[str, float]) -> None:
        """One round."""

    def close(self) -> None:
        """Nothing more comes."""


def make_logger(spec: str) -> Logger:
    """A logger by its name and place: ``tensorboard:DIR``, ``mlflow:URI``, ``wandb:PROJECT``."""
    name, _, place = spec.partition(":")
    loggers: dict[str, Callable[[str], Logger]] = {
        "tensorboard": _TensorBoard,
        "mlflow": _MLflow,
        "wandb": _Wandb,
    }
    if name not in loggers or not place:
        known = ", ".join(f"{known}:WHERE" for known in loggers)
        raise InvalidArgument(f"Unknown logger {spec!r}. Choose from: {known}.")
    try:
        return loggers[name](place)
    except ImportError as error:
        raise GalaxyError(f"{name} is not installed ({error}): pip install {name}.") from error


def new_rounds(
    table: dict[str, list[Any]], told: set[tuple[str, int]]
) -> list[tuple[str, int, dict[str, float]]]:
    """The rounds that were not told yet: key, labels and measures; they are noted as told."""
    fresh = []
    for row, (key, number) in enumerate(zip(table["key"], table["round"])):
        if (key, number) not in told:
            told.add((key, number))
            measures = {name: float(table[name][row]) for name in MEASURES}
            fresh.append((key, int(table["n_labels"][row]), measures))
    return fresh


def _name(cell: Cell) -> str:
    return f"{setting_title(cell.setting)}/{cell.contender.label}/seed {cell.seed}"


class _TensorBoard:
    def __init__(self, folder: str) -> None:
        from tensorboard.summary import Writer

        self._make, self._folder = Writer, folder
        self._writers: dict[str, Any] = {}

    def log(self, cell: Cell, n_labels: int, measures: dict[str, float]) -> None:
        if cell.key not in self._writers:
            self._writers[cell.key] = self._make(f"{self._folder}/{_name(cell)}")
        for measure, value in measures.items():
            self._writers[cell.key].add_scalar(measure, value, n_labels)

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


class _MLflow:
    def __init__(self, uri: str) -> None:
        from mlflow import MlflowClient

        self._client = MlflowClient(uri)
        found = self._client.get_experiment_by_name("galaxy-al")
        self._experiment = (
            found.experiment_id if found else self._client.create_experiment("galaxy-al")
        )
        self._runs: dict[str, str] = {}

    def log(self, cell: Cell, n_labels: int, measures: dict[str, float]) -> None:
        if cell.key not in self._runs:
            run = self._client.create_run(self._experiment, run_name=_name(cell))
            self._runs[cell.key] = run.info.run_id
        for measure, value in measures.items():
            self._client.log_metric(self._runs[cell.key], measure, value, step=n_labels)

    def close(self) -> None:
        for run in self._runs.values():
            self._client.set_terminated(run)


class _Wandb:
    def __init__(self, project: str) -> None:
        import wandb

        self._wandb, self._project = wandb, project
        self._runs: dict[str, Any] = {}

    def log(self, cell: Cell, n_labels: int, measures: dict[str, float]) -> None:
        if cell.key not in self._runs:
            self._runs[cell.key] = self._wandb.init(
                project=self._project, name=_name(cell), config=cell.config, reinit="create_new"
            )
        self._runs[cell.key].log({"n_labels": n_labels, **measures})

    def close(self) -> None:
        for run in self._runs.values():
            run.finish()
