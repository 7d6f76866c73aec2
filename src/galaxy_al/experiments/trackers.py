"""Rounds reported to experiment trackers as they finish: TensorBoard, MLflow, Weights & Biases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.experiments.datasets import setting_title
from galaxy_al.experiments.suite import MEASURES, Run


class Tracker(Protocol):
    """Takes the measures of a run's rounds."""

    def log(self, run: Run, n_labels: int, measures: dict[str, float]) -> None:
        """One round."""

    def close(self) -> None:
        """Finish: no more rounds follow."""


def make_tracker(spec: str) -> Tracker:
    """A tracker by name and place: ``tensorboard:DIR``, ``mlflow:URI`` or ``wandb:PROJECT``."""
    name, _, place = spec.partition(":")
    trackers: dict[str, Callable[[str], Tracker]] = {
        "tensorboard": _TensorBoard,
        "mlflow": _MLflow,
        "wandb": _Wandb,
    }
    if name not in trackers or not place:
        known = ", ".join(f"{known}:PLACE" for known in trackers)
        raise InvalidArgument(f"Unknown tracker {spec!r}. Choose from: {known}.")
    try:
        return trackers[name](place)
    except ImportError as error:
        raise GalaxyError(
            f"{name} is not installed. Install it with: pip install {name}"
        ) from error


def new_rounds(
    table: dict[str, list[Any]], reported: set[tuple[str, int]]
) -> list[tuple[str, int, dict[str, float]]]:
    """The rounds that are not in ``reported`` yet: key, labels and measures. Adds them to it."""
    fresh = []
    for row, (key, number) in enumerate(zip(table["key"], table["round"])):
        if (key, number) not in reported:
            reported.add((key, number))
            measures = {name: float(table[name][row]) for name in MEASURES}
            fresh.append((key, int(table["n_labels"][row]), measures))
    return fresh


def _name(run: Run) -> str:
    return f"{setting_title(run.setting)}/{run.method.label}/seed {run.seed}"


class _TensorBoard:
    def __init__(self, folder: str) -> None:
        from tensorboard.summary import Writer

        self._make, self._folder = Writer, folder
        self._writers: dict[str, Any] = {}

    def log(self, run: Run, n_labels: int, measures: dict[str, float]) -> None:
        if run.key not in self._writers:
            self._writers[run.key] = self._make(f"{self._folder}/{_name(run)}")
        for measure, value in measures.items():
            self._writers[run.key].add_scalar(measure, value, n_labels)

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

    def log(self, run: Run, n_labels: int, measures: dict[str, float]) -> None:
        if run.key not in self._runs:
            made = self._client.create_run(self._experiment, run_name=_name(run))
            self._runs[run.key] = made.info.run_id
        for measure, value in measures.items():
            self._client.log_metric(self._runs[run.key], measure, value, step=n_labels)

    def close(self) -> None:
        for run_id in self._runs.values():
            self._client.set_terminated(run_id)


class _Wandb:
    def __init__(self, project: str) -> None:
        import wandb

        self._wandb, self._project = wandb, project
        self._runs: dict[str, Any] = {}

    def log(self, run: Run, n_labels: int, measures: dict[str, float]) -> None:
        if run.key not in self._runs:
            self._runs[run.key] = self._wandb.init(
                project=self._project, name=_name(run), config=run.config, reinit="create_new"
            )
        self._runs[run.key].log({"n_labels": n_labels, **measures})

    def close(self) -> None:
        for tracked in self._runs.values():
            tracked.finish()
