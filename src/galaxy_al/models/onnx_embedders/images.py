"""Embedding images with an ONNX file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.images import Image
from galaxy_al.models.onnx_embedders.files import (
    PROCESSOR,
    onnx_content,
    read_beside,
    split_name,
    whole_name,
)
from galaxy_al.models.onnx_embedders.pixels import make_pixels, parse_options, read_metadata
from galaxy_al.models.onnx_embedders.session import TYPES, OnnxSession
from galaxy_al.models.protocols import Vectors
from galaxy_al.system.files import digest

_OUTPUTS = ("image_embeds", "pooler_output", "embeddings", "last_hidden_state")
_ALLOWED = "one image of floats or bytes, N x 3 x H x W or N x H x W x 3"


class OnnxImages:
    """Vectors of images by an ONNX file with one input, an image.

    A table of vectors is taken as it is; tokens, N x tokens x d, and features with a place,
    N x d x H x W or N x H x W x d, are averaged.

    Parameters
    ----------
    name
        The file, and after an @ what its preparation needs: a side in pixels, ``mean=``, ``std=``
        and ``scale=``. Otherwise the shape in the file, its properties, and a
        ``preprocessor_config.json`` beside it say how to prepare an image; and if nothing does,
        an image is resized to the model's size and its values are those of ImageNet's models.
    """

    kind, batch_size = "images", 32
    side: int | None

    def __init__(self, name: str, *, device: str = "auto") -> None:
        path, options = split_name(name)
        given = parse_options(options, name)
        content = onnx_content(path)
        self._session = session = OnnxSession(path, device=device)
        self._input, shape, layout = _image_input(session)
        config = {**read_beside(path, PROCESSOR), **read_metadata(session.metadata), **given}
        self._pixels = make_pixels(config, shape, where=str(path), **layout)
        self._output = session.choose_output(_OUTPUTS)
        self.name, self.side = whole_name(name), self._pixels.side
        black = self._pixels.batch([np.zeros((*self._pixels.size, 3), dtype=np.uint8)])
        made = session.try_run({self._input: black}, self._output)
        self._axes = _averaged_axes(made.shape, self._pixels.channels_last)
        self.width = self._pooled(made).shape[1]
        about = {"output": self._output, "averaged_axes": list(self._axes)}
        self.preprocessing: dict[str, Any] = {**self._pixels.card(), **about}
        self.version = f"onnx {digest([content, json.dumps(self.preprocessing, sort_keys=True)])}"

    def prepare(self, item: Image) -> Image:
        """The image at the size that the model takes."""
        return self._pixels.cut(item)

    def embed(self, batch: Sequence[Image]) -> Vectors:
        """The model's vectors of the images."""
        return self._pooled(
            self._session.run({self._input: self._pixels.batch(batch)}, self._output)
        )

    def _pooled(self, made: NDArray[Any]) -> Vectors:
        vectors = made.astype(np.float32, copy=False)
        return vectors.mean(axis=self._axes) if self._axes else vectors


def _image_input(
    session: OnnxSession,
) -> tuple[str, tuple[int | None, int | None], dict[str, Any]]:
    """The name of the input, its height and width, and the order of its axes."""
    ports = session.inputs
    kind = np.dtype(TYPES.get(ports[0].type, np.bool_)) if len(ports) == 1 else None
    if kind is None or len(ports[0].shape) != 4 or kind.name not in _PIXELS:
        raise session.refuse("images", _ALLOWED)
    _, *sizes = ports[0].shape
    # Exports of PyTorch often leave all sizes open, and have the channels first.
    if sizes[0] in (3, None) and not (sizes[0] is None and sizes[2] == 3):
        channels_last, shape = False, (sizes[1], sizes[2])
    elif sizes[2] == 3:
        channels_last, shape = True, (sizes[0], sizes[1])
    else:
        raise session.refuse("images", _ALLOWED)
    return ports[0].name, shape, {"channels_last": channels_last, "dtype": kind.name}


_PIXELS = ("float16", "float32", "float64", "uint8")


def _averaged_axes(shape: tuple[int, ...], channels_last: bool) -> tuple[int, ...]:
    """The axes of an output to average over; height and width are usually the two equal sizes."""
    if len(shape) < 4:
        return (1,) if len(shape) == 3 else ()
    first_two, last_two = shape[1] == shape[2], shape[2] == shape[3]
    if first_two != last_two:
        channels_last = first_two
    return (1, 2) if channels_last else (2, 3)
