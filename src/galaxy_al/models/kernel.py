"""The head that needs no choices: kernel logistic regression with the pool's class priors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.distances import combine, squares
from galaxy_al.models.sklearn_head import last_layer
from galaxy_al.snapshot import Snapshot, row_blocks

Table = NDArray[np.floating[Any]]

# Of the prior on the weights: with few labels it holds them back, with many it is outweighed.
PRECISION = 0.05
MOST_LANDMARKS = 2000

_ROWS_AT_ONCE = 1 << 13
_SAMPLE = 1000  # examples whose distances give the kernel's width
_TOLERANCE = 1e-4  # of the solver
_JITTER = 1e-6  # on the diagonal: copies among the landmarks do no harm
_KEPT_BYTES = 1 << 30  # of the kernel's table, from one training to the next
_FARTHEST = 1e15  # from the pool's middle: squares stay finite


class KernelTrainer:
    """Trains logistic regression in the space of a Gaussian kernel.

    Nothing is chosen by cross-validation, which is misled by labels not sampled at random:

    - The kernel's width is the median distance in the pool, and the prior on the weights is fixed.
    - Labels are not weighted. To choose examples by what they look like does not change how likely
      each class is, given what they look like, and that is what is learned.
    - How frequent the classes are is then read off the pool and not off the labels: the mean of
      the probabilities. Dividing by it makes all classes count the same, as the paper's
      weights 1 / N_k(L) do for labels sampled at random.

    Parameters
    ----------
    keep_head
        Snapshots get a last layer and its inputs; otherwise the embeddings as they are.
    space
        Where to measure distances; by default that of the pool.

    Examples
    --------
    >>> embeddings = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.2]])
    >>> model = KernelTrainer(n_classes=2).fit(embeddings, {0: 0, 2: 1})
    >>> model.proba(embeddings).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        *,
        n_classes: int,
        seed: int = 0,
        keep_head: bool = False,
        space: KernelSpace | None = None,
    ) -> None:
        self._n_classes, self._seed, self._keep_head = n_classes, seed, keep_head
        self._space = space
        self._kernel: PoolKernel | None = None

    def fit(self, pool: Table, labels: Mapping[int, int]) -> KernelModel:
        """Train on the labelled examples of a table of embeddings."""
        if self._kernel is None or self._kernel.pool is not pool:
            self._kernel = PoolKernel(pool, self._space or KernelSpace.of(pool, self._seed))
        kernel, known = self._kernel, np.array(sorted(labels), dtype=np.intp)
        targets = np.array([labels[i] for i in known.tolist()], dtype=np.int64)
        chosen = _landmarks(targets, np.random.default_rng(self._seed))
        axes, weights, bias = _fit(kernel, known, targets, chosen, self._n_classes)
        features = kernel.times(known[chosen], axes)
        model = KernelModel(
            space=kernel.space,
            landmarks=pool[known[chosen]],
            axes=axes,
            head=(weights, bias),
            class_priors=np.zeros(self._n_classes),
            keep_head=self._keep_head,
            scored=(pool, features),
        )
        return model.with_class_priors(_class_priors(features @ weights.T + bias, known, targets))


@dataclass(frozen=True)
class KernelModel:
    """A trained kernel head.

    Parameters
    ----------
    axes
        Turn an example's kernel with the landmarks into as many features as there are classes.
    head
        The last layer: the weights and biases that turn the features into logits.
    class_priors
        How frequent each class is in the pool, by the model; 0 for one without labels, and for
        all while only one has any.
    scored
        The pool it was trained with, and the features of that.
    """

    space: KernelSpace
    landmarks: Table
    axes: Table
    head: tuple[Table, Table]
    class_priors: NDArray[np.float64]
    keep_head: bool = False
    scored: tuple[Table, Table] | None = field(default=None, repr=False)

    def with_class_priors(self, class_priors: NDArray[np.float64]) -> KernelModel:
        """The same model if the classes are so frequent; it counts them all the same."""
        weights, bias = self.head
        change = _logs(self.class_priors) - _logs(class_priors)
        return replace(self, head=(weights, bias + change), class_priors=class_priors)

    def proba(self, pool: Table) -> NDArray[np.float64]:
        """The class probabilities of all examples, N x K, as if all classes were as frequent.

        A class that had no label gets 0. While only one had, all are equally likely.
        """
        return self._proba(self.features(pool))

    def snapshot(self, pool: Table, labels: NDArray[Any] | None = None) -> Snapshot:
        """The scores of a pool, and what else strategies need."""
        features = self.features(pool)
        proba = self._proba(features)
        if self.keep_head:
            return Snapshot(proba, labels, features, self.head)
        return Snapshot(proba, labels, pool)

    def features(self, pool: Table) -> Table:
        """The inputs of the last layer, N x K."""
        if self.scored is not None and self.scored[0] is pool:
            return self.scored[1]
        landmarks = self.space.place(self.landmarks)
        blocks = row_blocks(len(pool), _ROWS_AT_ONCE)
        rows = (self.space.place(pool[low:high]) for low, high in blocks)
        return np.concatenate([_gaussian(some, landmarks) @ self.axes for some in rows])

    def _proba(self, features: Table) -> NDArray[np.float64]:
        weights, bias = self.head
        return _softmax(features @ weights.T + bias)


@dataclass(frozen=True)
class KernelSpace:
    """Where the kernel is exp(-squared distance): embeddings moved to the middle and scaled."""

    middle: Table
    width: float

    @classmethod
    def of(cls, pool: Table, seed: int) -> KernelSpace:
        """As wide as the median distance; where most examples are copies, as the mean one."""
        middle = pool.mean(axis=0, dtype=np.float64)
        chosen = np.random.default_rng(seed).permutation(len(pool))[:_SAMPLE]
        sample = np.asarray(pool[chosen], dtype=np.float64) - middle
        largest = float(np.abs(sample).max()) or 1.0
        sample /= largest
        lengths = squares(sample)
        pairs = combine(sample @ sample.T, lengths[:, None], lengths)
        apart = pairs[np.triu_indices(len(sample), 1)] if len(sample) > 1 else np.ones(1)
        typical = float(np.median(apart)) or float(apart.mean()) or 1.0
        return cls(middle.astype(np.result_type(pool, np.float32)), largest * np.sqrt(typical))

    def place(self, rows: Table, precision: Any = np.float32) -> Table:
        """Where some embeddings are."""
        placed = np.clip((rows - self.middle) / self.width, -_FARTHEST, _FARTHEST)
        return placed.astype(precision, copy=False)


class PoolKernel:
    """The kernel of a pool's examples with each other.

    What it gives depends only on what is asked, to the last digit: not on what was kept, nor on
    which labels came first. A run that is resumed is the run it was.
    """

    def __init__(self, pool: Table, space: KernelSpace) -> None:
        self.pool, self.space = pool, space
        self._kept: dict[int, Table] = {}

    def between(self, some: NDArray[np.intp], others: NDArray[np.intp]) -> Table:
        """The kernel of some examples, the rows, with others, the columns."""
        rows, columns = (self.space.place(self.pool[i], np.float64) for i in (some, others))
        return _gaussian(rows, columns)

    def times(self, some: NDArray[np.intp], weights: Table) -> Table:
        """The kernel of all examples with some, times one row of weights for each of those."""
        self._keep(some.tolist())
        product = np.zeros((len(self.pool), weights.shape[1]), dtype=np.float32)
        landmarks = self.space.place(self.pool[some])
        for low, high in row_blocks(len(self.pool), _ROWS_AT_ONCE):
            if self._kept:
                table = np.stack([self._kept[i][low:high] for i in some.tolist()])
            else:
                table = _gaussian(landmarks, self.space.place(self.pool[low:high]))
            product[low:high] = table.T @ weights
        return product

    def _keep(self, some: list[int]) -> None:
        """Keep the columns of these and no others, if there is room for all of them."""
        has_room = 4 * len(self.pool) * len(some) <= _KEPT_BYTES
        wanted = set(some) if has_room else set()
        self._kept = {i: column for i, column in self._kept.items() if i in wanted}
        new = {i: np.empty(len(self.pool), np.float32) for i in wanted - self._kept.keys()}
        points = {i: self.space.place(self.pool[i]) for i in new}
        for low, high in row_blocks(len(self.pool), _ROWS_AT_ONCE) if new else ():
            rows = self.space.place(self.pool[low:high])
            lengths = squares(rows)
            for i, point in points.items():
                # One by one: of several at once the last digits depend on which these are.
                new[i][low:high] = _gaussian_of(rows @ point, lengths, squares(point))
        self._kept |= new


def _logs(class_priors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms; 0 for a class whose prior is 0."""
    logs: NDArray[np.float64] = np.log(
        class_priors, out=np.zeros_like(class_priors), where=class_priors > 0
    )
    return logs


def _gaussian_of(products: Table, of_rows: Table, of_columns: Table) -> Table:
    apart = combine(products, of_rows, of_columns)
    return np.exp(np.negative(apart, out=apart), out=apart)


def _gaussian(rows: Table, columns: Table) -> Table:
    return _gaussian_of(rows @ columns.T, squares(rows)[:, None], squares(columns))


def _landmarks(targets: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.intp]:
    """All labelled examples; of too many the same number of each class, at random."""
    if len(targets) <= MOST_LANDMARKS:
        return np.arange(len(targets))
    mixed = rng.permutation(len(targets))
    by_class = [mixed[targets[mixed] == k] for k in np.unique(targets)]
    turns = np.concatenate([np.arange(len(members)) for members in by_class])
    in_turn = np.concatenate(by_class)[np.argsort(turns, kind="stable")]
    return np.sort(in_turn[:MOST_LANDMARKS])


def _fit(
    kernel: PoolKernel,
    known: NDArray[np.intp],
    targets: NDArray[np.int64],
    chosen: NDArray[np.intp],
    n_classes: int,
) -> tuple[Table, Table, Table]:
    """Axes as of `KernelModel`, and the weights and biases of the last layer on them."""
    n_seen = len(np.unique(targets))
    if n_seen < 2:  # nothing to tell apart
        nothing = np.zeros((n_classes, n_classes), dtype=np.float32)
        return np.zeros((len(chosen), n_classes), np.float32), nothing, np.zeros(n_classes)
    from scipy.linalg import qr, solve_triangular
    from sklearn.linear_model import LogisticRegression

    gram = kernel.between(known[chosen], known)
    among = gram[:, chosen] + _JITTER * np.eye(len(chosen))
    lower = np.linalg.cholesky(among)
    inputs = lower if len(chosen) == len(known) else _solve(lower, gram).T
    # Two classes have one row of weights, the difference of two: its variance is twice as large.
    inverse = (2 if n_seen == 2 else 1) / PRECISION
    solver = LogisticRegression(C=inverse, tol=_TOLERANCE, max_iter=1000)
    fitted = solver.fit(inputs.astype(np.float32), targets)
    layer = last_layer(fitted, n_classes)
    assert layer is not None
    # All that the layer looks at lies in the span of its weights: K axes are enough.
    axes, weights = qr(layer[0].T, mode="economic")
    dual = solve_triangular(lower.T, axes)
    return dual.astype(np.float32), weights.T.astype(np.float32), layer[1]


def _solve(lower: Table, right: Table) -> Table:
    """Solve a triangular system in parts: SciPy lets no other thread run while it solves one."""
    from scipy.linalg import solve_triangular

    solution = np.empty_like(right)
    for at in range(0, right.shape[1], 64):
        part = slice(at, at + 64)
        solution[:, part] = solve_triangular(lower, right[:, part], lower=True)
    return solution


def _class_priors(
    logits: Table, known: NDArray[np.intp], targets: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How frequent each class is: labels are known, other examples count by their probabilities."""
    seen = np.unique(targets)
    class_priors = np.zeros(logits.shape[1])
    if len(seen) < 2:
        return class_priors
    proba = _softmax(logits)
    proba[known] = np.eye(proba.shape[1])[targets]
    class_priors[seen] = proba.mean(axis=0)[seen]
    return class_priors


def _softmax(logits: Table) -> NDArray[np.float64]:
    exact = logits.astype(np.float64)
    exact -= exact.max(axis=1, keepdims=True)
    np.exp(exact, out=exact)
    exact /= exact.sum(axis=1, keepdims=True)
    return exact
