"""A saved model as ONNX, from vectors to calibrated probabilities and decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.auto import AutoModel
from galaxy_al.models.columns import EXTREME, EvenColumns
from galaxy_al.models.decisions import Decision
from galaxy_al.models.forest import LEAST, Forest
from galaxy_al.models.kernel_space import FARTHEST_LINEAR
from galaxy_al.models.log_odds import LOGIT_WITHOUT_LABELS, Table
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import make_folder, writing

_OPSETS, _IR_VERSION = (("", 18), ("ai.onnx.ml", 3)), 8
_BELOW_ONE = float(np.nextafter(np.float32(1), 0))


def save_auto_onnx(model: AutoModel, decision: Decision, path: str | Path) -> Path:
    """Write the default head as ONNX.

    The input ``embeddings`` is N x d in single precision. The output ``probabilities`` is N x K,
    the output ``decisions`` the index of the class that is decided for each example.
    """
    with needs_extra("ONNX", "onnx"):
        import onnx
        from onnx import helper

    graph = _Graph(helper)
    kernel = model.kernel
    bias = kernel.head[1]
    points = kernel.space.place(kernel.landmarks)
    rows = "embeddings"
    if kernel.space.columns is not None:
        rows = _even(graph, rows, kernel.space.columns)
    rows = graph.add("Div", graph.add("Sub", rows, kernel.space.middle), kernel.space.scale)
    squared = graph.add("ReduceSumSquare", rows, axes=[1])
    nearness = graph.add("MatMul", rows, 2 * points.T)
    nearness = graph.add("Sub", graph.add("Sub", nearness, squared), np.square(points).sum(axis=1))
    near = graph.add("Exp", graph.add("Min", nearness, [0.0]))
    farther = graph.add("Max", squared, [FARTHEST_LINEAR**2])
    bounded = graph.add(
        "Div", graph.add("Mul", rows, [FARTHEST_LINEAR]), graph.add("Sqrt", farther)
    )
    inputs = near, bounded
    logits = _kernel_logits(graph, inputs, (kernel.axes, kernel.slopes), kernel.head)
    if kernel.coarse is not None:
        axes = np.zeros_like(kernel.axes)
        axes[kernel.coarse.landmarks] = kernel.coarse.axes
        coarse = _kernel_logits(graph, inputs, (axes, kernel.coarse.slopes), kernel.head)
        counts = _reaches(graph, coarse, kernel.coarse.all_from)
        logits = graph.add("Where", counts, logits, coarse)
    if model.trees is not None:
        logits = _average_in_trees(graph, logits, model.trees, model.trees_from)
    logits = graph.add("Mul", logits, [model.sharpness])
    graph.add("Softmax", logits, axis=1, output="probabilities")
    _decide(graph, decision)
    made = helper.make_model(
        graph.made(points.shape[1], len(bias)),
        opset_imports=[helper.make_opsetid(*each) for each in _OPSETS],
        ir_version=_IR_VERSION,
    )
    path = Path(path)
    make_folder(path.parent)
    with writing(path) as part:
        onnx.save(made, str(part))
    return path


class _Graph:
    """A graph that grows node by node; arrays become constants in single precision."""

    def __init__(self, helper: Any) -> None:
        self._helper = helper
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(
        self, kind: str, *inputs: Any, output: str = "", domain: str = "", **options: Any
    ) -> str:
        """Add a node and return the name of its output."""
        name = output or f"{kind}_{len(self._nodes)}"
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        if "axes" in options:  # an input since opset 18, as far as reductions are concerned
            names.append(self.constant(np.array(options.pop("axes"), dtype=np.int64)))
        node = self._helper.make_node(kind, names, [name], domain=domain, **options)
        self._nodes.append(node)
        return name

    def constant(self, array: Any) -> str:
        """Add a constant and return its name."""
        from onnx import numpy_helper

        values = np.asarray(array)
        if values.dtype.kind == "f":
            values = values.astype(np.float32)
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def made(self, width: int, n_classes: int) -> Any:
        """The graph from embeddings to probabilities and decisions."""
        from onnx import TensorProto

        info = self._helper.make_tensor_value_info
        return self._helper.make_graph(
            self._nodes,
            "galaxy_al",
            [info("embeddings", TensorProto.FLOAT, ["examples", width])],
            [
                info("probabilities", TensorProto.FLOAT, ["examples", n_classes]),
                info("decisions", TensorProto.INT64, ["examples"]),
            ],
            self._constants,
        )


def _even(graph: _Graph, rows: str, columns: EvenColumns) -> str:
    units = graph.add("Div", graph.add("Sub", rows, columns.center), columns.unit)
    size = graph.add("Abs", units)
    beyond = graph.add("Max", graph.add("Sub", size, [EXTREME]), [0.0])
    tamed = graph.add("Add", graph.add("Min", size, [EXTREME]), _log1p(graph, beyond))
    return graph.add("Mul", graph.add("Sign", units), tamed)


def _log1p(graph: _Graph, values: str) -> str:
    return graph.add("Log", graph.add("Add", values, [1.0]))


def _kernel_logits(
    graph: _Graph, inputs: tuple[str, str], weights: tuple[Table, Table], head: tuple[Table, Table]
) -> str:
    """The logits from the Gaussian kernel with the landmarks, and from the linear one."""
    features = graph.add("Add", *(graph.add("MatMul", *each) for each in zip(inputs, weights)))
    return graph.add("Add", graph.add("MatMul", features, head[0].T), head[1])


def _reaches(graph: _Graph, logits: str, lowest: float) -> str:
    """Whether the log odds of being rare are at least so much."""
    finite = max(lowest, float(np.finfo(np.float32).min))
    return graph.add("GreaterOrEqual", _rare_log_odds(graph, logits), [finite])


def _rare_log_odds(graph: _Graph, logits: str) -> str:
    rare = graph.add("Slice", logits, _whole([0]), _whole([-1]), _whole([1]))
    majority = graph.add("Slice", logits, _whole([-1]), _whole([1 << 30]), _whole([1]))
    return graph.add("Sub", graph.add("ReduceLogSumExp", rare, axes=[1]), majority)


def _average_in_trees(graph: _Graph, logits: str, trees: Forest, trees_from: float) -> str:
    votes = graph.add(
        "TreeEnsembleRegressor", "embeddings", domain="ai.onnx.ml", **_tree_attributes(trees)
    )
    seen = trees.votes[trees.roots].sum(axis=0) > 0
    logs = graph.add("Log", graph.add("Max", votes, [LEAST]))
    hidden = np.where(seen, 0, 2 * LOGIT_WITHOUT_LABELS)
    logs = graph.add("Add", logs, hidden)
    own = graph.add("LogSoftmax", logits, axis=1)
    averaged = graph.add("Mul", graph.add("Add", own, logs), [0.5])
    return graph.add("Where", _reaches(graph, logits, trees_from), averaged, logits)


def _tree_attributes(trees: Forest) -> dict[str, Any]:
    """The forest as ONNX describes one: nodes numbered within their tree, votes at the leaves."""
    size, n_classes = trees.votes.shape
    tree = np.searchsorted(trees.roots, np.arange(size), side="right") - 1
    first = trees.roots[tree]
    is_leaf = trees.left == np.arange(size)
    leaves = np.flatnonzero(is_leaf)
    node = np.arange(size) - first
    weights = trees.votes[leaves] / len(trees.roots)
    return {
        "n_targets": n_classes,
        "aggregate_function": "SUM",
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": node.tolist(),
        "nodes_featureids": trees.feature.tolist(),
        "nodes_values": _rounded_down(trees.threshold).tolist(),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": np.where(is_leaf, 0, trees.left - first).tolist(),
        "nodes_falsenodeids": np.where(is_leaf, 0, trees.right - first).tolist(),
        "target_treeids": np.repeat(tree[leaves], n_classes).tolist(),
        "target_nodeids": np.repeat(node[leaves], n_classes).tolist(),
        "target_ids": np.tile(np.arange(n_classes), len(leaves)).tolist(),
        "target_weights": weights.ravel().tolist(),
    }


def _rounded_down(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """Single precision, never above: features in single precision then go the same way."""
    rounded = thresholds.astype(np.float32)
    return np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def _decide(graph: _Graph, decision: Decision) -> None:
    times = graph.add("Div", "probabilities", decision.limits)
    if decision.majority_is_the_rest:
        rare = graph.add("Slice", times, _whole([0]), _whole([-1]), _whole([1]))
        majority = graph.add("Slice", times, _whole([-1]), _whole([1 << 30]), _whole([1]))
        fixed = graph.add("Add", graph.add("Mul", majority, [0.0]), [_BELOW_ONE])
        times = graph.add("Concat", rare, fixed, axis=1)
    graph.add("ArgMax", times, axis=1, keepdims=0, output="decisions")


def _whole(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)
