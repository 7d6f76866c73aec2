"""An ONNX model that runs: its inputs, its outputs, and batches of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError, one_line
from galaxy_al.models.onnx_embedders.files import check_file
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import reading
from galaxy_al.system.threads import n_threads

TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}


@dataclass(frozen=True)
class Port:
    """An input or output of a model.

    Parameters
    ----------
    type
        As onnxruntime writes it: ``tensor(float)``.
    shape
        None where a dimension can be anything.
    """

    name: str
    type: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        sizes = " x ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.name} ({self.type.removeprefix('tensor(').rstrip(')')}, {sizes or 'scalar'})"


class OnnxSession:
    """An ONNX file, loaded."""

    def __init__(self, path: Path, *, device: str = "auto") -> None:
        with needs_extra("An ONNX file", "onnx"):
            import onnxruntime

        check_file(path)
        self.path = path
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = n_threads(), 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 4  # what is wrong is raised as well
        wanted = ["CPUExecutionProvider"]
        if device != "cpu" and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            wanted.insert(0, "CUDAExecutionProvider")
        with reading(path):
            self._session = onnxruntime.InferenceSession(str(path), options, providers=wanted)
        self.inputs = [_port(found) for found in self._session.get_inputs()]
        self.outputs = [_port(found) for found in self._session.get_outputs()]

    @property
    def metadata(self) -> dict[str, str]:
        """The properties that the model's author wrote into the file."""
        found: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        return found

    def refuse(self, kind: str, allowed: str) -> GalaxyError:
        """An error for inputs that are not those of a kind of pool."""
        got = ", ".join(str(port) for port in self.inputs) or "nothing"
        return GalaxyError(
            f"{self.path} cannot embed {kind}: it takes {got}. It must take {allowed}."
        )

    def choose_output(self, known: Sequence[str]) -> str:
        """The first output of a known name, or else the first one."""
        names = [port.name for port in self.outputs]
        return next((name for name in known if name in names), names[0])

    def run(self, feed: Mapping[str, NDArray[Any]], output: str) -> NDArray[Any]:
        """An output for some examples. A model for batches of one size gets batches of it."""
        count, fixed = len(next(iter(feed.values()))), self.inputs[0].shape[0]
        if fixed is None:
            return self._run(feed, output)
        parts = []
        for start in range(0, count, fixed):
            rows = np.minimum(np.arange(start, start + fixed), count - 1)  # the last one fills up
            parts.append(self._run({name: table[rows] for name, table in feed.items()}, output))
        return np.concatenate(parts)[:count]

    def try_run(self, feed: Mapping[str, NDArray[Any]], output: str) -> NDArray[Any]:
        """Run an example to see what comes; a model that cannot run is one clear line."""
        try:
            made = self.run(feed, output)
        except Exception as error:  # onnxruntime raises many kinds
            shapes = ", ".join(f"{k} {' x '.join(map(str, v.shape))}" for k, v in feed.items())
            raise GalaxyError(f"{self.path} fails with {shapes}: {one_line(error)}") from error
        count = len(next(iter(feed.values())))
        if not 2 <= made.ndim <= 4 or len(made) != count or made.dtype.kind != "f":
            shape = " x ".join(map(str, made.shape)) or "scalar"
            raise GalaxyError(
                f"{self.path}: the output {output} is {shape} ({made.dtype}) for {count} example. "
                "It must be a table of floats with 2 to 4 dimensions, of which the first counts "
                "the examples."
            )
        return made

    def _run(self, feed: Mapping[str, NDArray[Any]], output: str) -> NDArray[Any]:
        made: NDArray[Any] = self._session.run([output], dict(feed))[0]
        return np.asarray(made)


def _port(found: Any) -> Port:
    shape = tuple(size if isinstance(size, int) and size > 0 else None for size in found.shape)
    return Port(found.name, found.type, shape)
