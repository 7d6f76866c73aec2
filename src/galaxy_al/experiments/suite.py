"""Suites: which strategies are compared, on what and for how long. One TOML file per figure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from galaxy_al.errors import GalaxyError
from galaxy_al.experiments.datasets import has_classes, is_own_pool, setting_names
from galaxy_al.models.heads import HEADS
from galaxy_al.strategies import make_strategy
from galaxy_al.system.files import digest, read_toml
from galaxy_al.system.validation import validated

Size = Literal["paper", "frozen"]
SIZES: tuple[Size, ...] = get_args(Size)
MEASURES = ("balanced_accuracy", "average_precision", "f1", "rare_found")
DETAILS = ("precision", "recall", "log_loss", "brier", "calibration_error")
SHOWN_MEASURES = (*MEASURES, "rare_share")

_ONLY_FOR = {
    "hidden": ("mlp",),
    "weights": ("resnet18",),
    "precision": ("resnet18",),
    "epochs": ("mlp", "resnet18"),
    "steps": ("mlp", "resnet18"),
    "batch_size": ("mlp", "resnet18"),
    "rate": ("mlp", "resnet18"),
    "weight_decay": ("linear", "mlp", "resnet18"),
}
QUICK_STRATEGIES = (
    "fair-cuts",
    "galaxy",
    "direct",
    "cluster-margin",
    "base",
    "badge",
    "confidence",
    "margin",
    "entropy",
    "most-likely-positive",
    "random",
)
_CONFIG = ConfigDict(extra="forbid")
_Count = Annotated[int, Field(strict=True, ge=1)]
_Rate = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
_Seed = Annotated[int, Field(strict=True, ge=0, lt=1 << 32)]
_Item = TypeVar("_Item", bound=Hashable)


def _different(values: Sequence[_Item]) -> Sequence[_Item]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value!r} is there twice")
    return values


def _known_setting(name: str) -> str:
    return name if is_own_pool(name) else _choose(name, setting_names())


def _known_measure(name: str) -> str:
    return _choose(name, SHOWN_MEASURES)


def _known_head(name: str) -> str:
    return _choose(name, tuple(HEADS))


def _choose(name: str, allowed: Sequence[str]) -> str:
    if name not in allowed:
        raise ValueError(f"unknown {name!r}. Choose from: {', '.join(allowed)}")
    return name


# A list in TOML becomes a tuple: neither empty nor with anything twice.
_Some = Annotated[tuple[_Item, ...], Field(min_length=1), AfterValidator(_different)]


@dataclass(frozen=True, config=_CONFIG)
class Head:
    """What is trained and how; None means the value in `models.networks.training.RECIPES`."""

    network: Annotated[str, AfterValidator(_known_head)] = "auto"
    hidden: _Count | None = None
    weights: str | None = None
    precision: Literal["float32", "bfloat16", "fastest"] | None = None
    epochs: _Count | None = None
    steps: _Count | None = None
    batch_size: _Count | None = None
    rate: _Rate | None = None
    weight_decay: _Rate | None = None

    def __post_init__(self) -> None:
        if self.epochs is not None and self.steps is not None:
            raise ValueError("epochs and steps cannot both be given")
        for key, allowed in _ONLY_FOR.items():
            if getattr(self, key) is not None and self.network not in allowed:
                raise ValueError(f"{key} is for {' and '.join(allowed)}, not for {self.network}")

    @property
    def takes_images(self) -> bool:
        """Whether it is a whole network; otherwise it takes embeddings."""
        return self.network == "resnet18"


@dataclass(frozen=True, config=_CONFIG)
class Method:
    """A strategy with its options, and what predicts.

    Parameters
    ----------
    label
        What tables and figures call it.
    predictor
        ``"head"``; or ``"graph"``, the nearest label on the graph of S2.
    least_classes
        It is left out of settings with fewer classes, where it is the same as another method.
    """

    label: Annotated[str, Field(pattern="^[^_]")]  # matplotlib hides what begins with _
    strategy: str
    options: dict[str, Any] = Field(default_factory=dict)
    predictor: Literal["head", "graph"] = "head"
    least_classes: _Count = 2

    def __post_init__(self) -> None:
        make_strategy(self.strategy, **self.options)
        if self.predictor == "graph" and self.strategy != "s2":
            raise ValueError("predictor must be 'head'; 'graph' is for s2")


_FIELDS = ("label", "strategy", "predictor", "least_classes")


def _method(entry: Any) -> Any:
    """The name of a strategy, or a table with its options, as the fields of a `Method`."""
    if isinstance(entry, str):
        return {"label": entry, "strategy": entry}
    if not isinstance(entry, dict):
        return entry
    fields = {key: entry[key] for key in _FIELDS if key in entry}
    options = {key: value for key, value in entry.items() if key not in fields}
    return {"label": entry.get("strategy"), "options": options, **fields}


@dataclass(frozen=True)
class Run:
    """A method on a setting from one random start."""

    setting: str
    method: Method
    seed: int
    batch_size: int
    head: Head

    @property
    def config(self) -> dict[str, Any]:
        """Everything that determines its numbers."""
        config = asdict(self)
        for key in ("label", "least_classes"):
            del config["method"][key]
        return config

    @property
    def key(self) -> str:
        """The same for the same run, in every suite and for any number of rounds."""
        return config_key(self.config)


@dataclass(frozen=True, config=_CONFIG)
class Suite:
    """Settings x methods x seeds.

    Parameters
    ----------
    figure
        Which figure of the paper this is.
    strategies
        The methods that are compared.
    measures
        What the figure shows.
    """

    name: str
    title: str
    figure: str
    size: Size
    settings: _Some[Annotated[str, AfterValidator(_known_setting)]]
    strategies: Annotated[
        tuple[Annotated[Method, BeforeValidator(_method)], ...], Field(min_length=1)
    ]
    seeds: _Some[_Seed]
    batch_size: _Count
    rounds: _Count
    head: Head
    measures: _Some[Annotated[str, AfterValidator(_known_measure)]] = ("balanced_accuracy",)

    def __post_init__(self) -> None:
        if len({method.label for method in self.strategies}) < len(self.strategies):
            raise ValueError("strategies: two have the same label")
        if len({run.key for run in self.runs()}) < len(self.runs()):
            raise ValueError("strategies: two have the same options")

    def runs(self) -> list[Run]:
        """Every run; those of a setting together, and all methods of a seed before the next."""
        return [
            Run(setting, method, seed, self.batch_size, self.head)
            for setting in self.settings
            for seed in self.seeds
            for method in self.strategies
            if has_classes(setting, method.least_classes)
        ]


def suite_names() -> list[str]:
    """The suites that are installed with galaxy-al."""
    return sorted(Path(file.name).stem for file in _installed().iterdir())


def load_suite(name: str | Path, size: Size) -> Suite:
    """A suite from its TOML file, or one of `suite_names`."""
    path = Path(name) if Path(name).suffix == ".toml" else _installed() / f"{name}.toml"
    if not path.exists():
        found = ", ".join(suite_names())
        raise GalaxyError(f"There is no suite {name}. Name a TOML file or choose from: {found}.")
    content = read_toml(path)
    if not isinstance(content.get(size), dict):
        raise GalaxyError(f"{path}: the table [{size}] is missing.")
    table = {key: value for key, value in content.items() if key not in SIZES} | content[size]
    return validated(Suite, {"name": path.stem, "size": size, **table}, path)


def _installed() -> Path:
    folder = files("galaxy_al.experiments") / "suites"
    assert isinstance(folder, Path)
    return folder


def pool_suite(pool: str, title: str, batch_size: int, rounds: int) -> Suite:
    """Which strategy would have served best on a labelled pool: all that take seconds per batch.

    Parameters
    ----------
    pool
        A setting of `galaxy_al.experiments.datasets.own_pool`.
    """
    return Suite(
        name=title,
        title=f"Strategies on {title}",
        figure="own data",
        size="frozen",
        settings=(pool,),
        strategies=tuple(Method(name, name) for name in QUICK_STRATEGIES),
        seeds=(0, 1, 2, 3),
        batch_size=batch_size,
        rounds=rounds,
        head=Head(),
        measures=("balanced_accuracy", "average_precision", "rare_found"),
    )


def config_key(config: Mapping[str, Any]) -> str:
    """A short name for the configuration of a run; what is None does not count."""
    return digest([repr(sorted(_flat(config)))])


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}")
    elif value is not None:
        yield path, repr(value)
