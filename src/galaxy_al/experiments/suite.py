"""Suites: which strategies are compared, on what and how long. TOML files, one for each figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from galaxy_al.errors import GalaxyError
from galaxy_al.experiments.datasets import setting_names
from galaxy_al.models.heads import HEADS
from galaxy_al.strategies import make_strategy
from galaxy_al.system.files import digest, read_toml

Size = Literal["paper", "frozen"]
SIZES: tuple[Size, ...] = get_args(Size)
MEASURES = ("balanced_accuracy", "average_precision", "f1", "rare_found")
SHOWN_MEASURES = (*MEASURES, "rare_share")

_ONLY_FOR = {
    "hidden": ("mlp",),
    "weights": ("resnet18",),
    "epochs": ("mlp", "resnet18"),
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
_POSITIVE = "a whole number, 1 or more"


@dataclass(frozen=True)
class Head:
    """What is trained and how; None means the value in `models.networks.training.RECIPES`."""

    network: str = "auto"
    hidden: int | None = None
    weights: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    rate: float | None = None
    weight_decay: float | None = None

    @property
    def takes_images(self) -> bool:
        """Whether it is a whole network; otherwise it takes embeddings."""
        return self.network == "resnet18"


@dataclass(frozen=True)
class Contender:
    """A strategy with its options, and what predicts.

    Parameters
    ----------
    label
        How it is called in tables and figures.
    predictor
        ``"head"``; or ``"graph"``, the nearest label on the graph of S2.
    """

    label: str
    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    predictor: Literal["head", "graph"] = "head"


@dataclass(frozen=True)
class Cell:
    """One run: a strategy on a setting from one random start."""

    setting: str
    contender: Contender
    seed: int
    batch_size: int
    head: Head

    @property
    def config(self) -> dict[str, Any]:
        """All that its numbers follow from; how it is called is no part of it."""
        config = asdict(self)
        del config["contender"]["label"]
        return config

    @property
    def key(self) -> str:
        """The same for the same run, in whatever suite it is and however long."""
        return digest([repr(sorted(_flat(self.config)))])


@dataclass(frozen=True)
class Suite:
    """Settings x strategies x seeds.

    Parameters
    ----------
    figure
        Which figure of the paper this is.
    measures
        What the figure shows, of `SHOWN_MEASURES`.
    """

    name: str
    title: str
    figure: str
    size: Size
    settings: tuple[str, ...]
    contenders: tuple[Contender, ...]
    seeds: tuple[int, ...]
    batch_size: int
    rounds: int
    head: Head
    measures: tuple[str, ...]

    def cells(self) -> list[Cell]:
        """Every run; those of a setting together, and all strategies of a seed before the next."""
        return [
            Cell(setting, contender, seed, self.batch_size, self.head)
            for setting in self.settings
            for seed in self.seeds
            for contender in self.contenders
        ]


def load_suite(name: str | Path, size: Size) -> Suite:
    """A suite from its file, or by its name from the folder ``suites``.

    That is here, or where galaxy-al was installed from.
    """
    path, folders = Path(name), (Path("suites"), Path(__file__).with_name("suites"))
    if path.suffix != ".toml":
        places = [folder / f"{name}.toml" for folder in folders]
        path = next((place for place in places if place.exists()), places[0])
    if not path.exists():
        known = {file.stem for folder in folders for file in folder.glob("*.toml")}
        found = ", ".join(sorted(known)) or "none"
        raise GalaxyError(f"There is no suite {path}. In the folder suites there are: {found}.")
    return _Reader(path, size).suite(read_toml(path))


def pool_suite(pool: str, title: str, batch_size: int, rounds: int) -> Suite:
    """Which strategy would have served best on a labelled pool: all that take seconds a batch.

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
        contenders=tuple(Contender(name, name) for name in QUICK_STRATEGIES),
        seeds=(0, 1, 2, 3),
        batch_size=batch_size,
        rounds=rounds,
        head=Head(),
        measures=("balanced_accuracy", "average_precision", "rare_found"),
    )


@dataclass(frozen=True)
class _Reader:
    """Checks a suite's keys; every error names the file and the key."""

    path: Path
    size: Size

    def suite(self, content: dict[str, Any]) -> Suite:
        top = {key: value for key, value in content.items() if key not in SIZES}
        if self.size not in content:
            raise self.error(f"has no table [{self.size}]")
        table = {**top, **self.want(content, self.size, dict, "a table")}
        known = {*Suite.__dataclass_fields__, "strategies"} - {"name", "size", "contenders"}
        self.refuse_unknown(table, known, "")
        names = setting_names()
        measures = self.want_list(table, "measures", str, default=["balanced_accuracy"])
        suite = Suite(
            name=self.path.stem,
            title=self.want(table, "title", str, "a text"),
            figure=self.want(table, "figure", str, "a text"),
            size=self.size,
            settings=self.choices("settings", self.want_list(table, "settings", str), names),
            contenders=tuple(self.contenders(table)),
            seeds=self.seeds(table),
            batch_size=self.positive(table, "batch_size"),
            rounds=self.positive(table, "rounds"),
            head=self.head(self.want(table, "head", dict, "a table")),
            measures=self.choices("measures", measures, SHOWN_MEASURES),
        )
        keys = [cell.key for cell in suite.cells()]
        if len(set(keys)) < len(keys):
            raise self.error("two of its runs are the same: see settings, strategies and seeds")
        return suite

    def seeds(self, table: dict[str, Any]) -> tuple[int, ...]:
        seeds = self.want_list(table, "seeds", int)
        if not all(0 <= seed < 1 << 32 for seed in seeds) or len(set(seeds)) < len(seeds):
            raise self.error(f"seeds must be different numbers, 0 or more, got {seeds}")
        return tuple(seeds)

    def contenders(self, table: dict[str, Any]) -> Iterator[Contender]:
        labels = set[str]()
        for number, entry in enumerate(self.want_list(table, "strategies", (str, dict))):
            contender = self.contender(f"strategies[{number}]", entry)
            if contender.label in labels:
                raise self.error(f"strategies: two are called {contender.label!r}")
            labels.add(contender.label)
            yield contender

    def contender(self, key: str, entry: str | dict[str, Any]) -> Contender:
        options = {"strategy": entry} if isinstance(entry, str) else dict(entry)
        name = options.pop("strategy", None)
        label: Any = options.pop("label", name)
        predictor: Any = options.pop("predictor", "head")
        if not isinstance(name, str) or not isinstance(label, str) or label[:1] in ("", "_"):
            raise self.error(f"{key} must name a strategy, and a label if any, got {entry!r}")
        if predictor not in ("head", "graph") or (predictor == "graph" and name != "s2"):
            raise self.error(f"{key}.predictor must be 'head', or 'graph' for s2")
        try:
            make_strategy(name, **options)
        except ValueError as error:
            raise self.error(f"{key}: {str(error).rstrip('.')}") from error
        return Contender(label, name, options, predictor)

    def head(self, table: dict[str, Any]) -> Head:
        self.refuse_unknown(table, set(Head.__dataclass_fields__), "head.")
        network = self.want(table, "network", str, "a text", "head.")
        self.choices("head.network", [network], tuple(HEADS))
        for key in ("hidden", "epochs", "batch_size"):
            if key in table:
                self.positive(table, key, "head.")
        for key in ("rate", "weight_decay"):
            if key in table and not (_is_number(table[key]) and 0 <= table[key] < math.inf):
                raise self.error(f"head.{key} must be a number, 0 or more, got {table[key]!r}")
        if "weights" in table:
            self.want(table, "weights", str, "a text", "head.")
        for key, allowed in _ONLY_FOR.items():
            if key in table and network not in allowed:
                raise self.error(f"head.{key} is for {' and '.join(allowed)}, not for {network}")
        return Head(**table)

    def want(
        self, table: dict[str, Any], key: str, kind: Any, called: str, within: str = ""
    ) -> Any:
        if key not in table:
            raise self.error(f"lacks the key {within}{key}")
        if not isinstance(table[key], kind) or isinstance(table[key], bool):
            raise self.error(f"{within}{key} must be {called}, got {table[key]!r}")
        return table[key]

    def want_list(
        self, table: dict[str, Any], key: str, kind: Any, default: list[Any] | None = None
    ) -> list[Any]:
        if default is not None and key not in table:
            return default
        values: list[Any] = self.want(table, key, list, "a list")
        is_right = [isinstance(value, kind) and not isinstance(value, bool) for value in values]
        if not values or not all(is_right):
            raise self.error(f"{key} must be a list of one or more, got {values!r}")
        return values

    def positive(self, table: dict[str, Any], key: str, within: str = "") -> int:
        value: int = self.want(table, key, int, _POSITIVE, within)
        if value < 1:
            raise self.error(f"{within}{key} must be {_POSITIVE}, got {value}")
        return value

    def choices(self, key: str, values: list[str], allowed: Any) -> tuple[str, ...]:
        for value in values:
            if value not in allowed:
                raise self.error(f"{key}: unknown {value!r}. Choose from: {', '.join(allowed)}")
        return tuple(values)

    def refuse_unknown(self, table: dict[str, Any], known: set[str], within: str) -> None:
        for key in table:
            if key not in known:
                keys = ", ".join(sorted(known))
                raise self.error(f"unknown key {within}{key}. Keys are: {keys}")

    def error(self, message: str) -> GalaxyError:
        return GalaxyError(f"{self.path}: {message}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}")
    elif value is not None:
        yield path, repr(value)
