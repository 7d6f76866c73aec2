"""Trained networks as ONNX."""

from __future__ import annotations

import logging
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from galaxy_al.models.networks.network import FLOOR, Model, check_network, scaled_images
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import make_folder, writing


def save_onnx(model: Model, path: str | Path) -> Path:
    """Write a model as ONNX: one input of any number of examples, one output of probabilities.

    The input ``embeddings`` is N x d in single precision; the input ``images`` N x H x W x 3 in
    bytes, which are scaled within.
    """
    path = Path(path)
    check_network(model)
    shape = model.shape
    if shape.network == "resnet18":
        assert shape.image_size is not None
        name, example = "images", torch.zeros(2, *shape.image_size, 3, dtype=torch.uint8)
    else:
        assert shape.width is not None
        name, example = "embeddings", torch.zeros(2, shape.width)
    scores = _Scores(model).eval().to("cpu")
    make_folder(path.parent)
    with writing(path) as part:
        _quietly_export(scores, example, name, part)
    model.network.to(model.device)
    return path


class _Scores(nn.Module):
    """A model from its inputs to its probabilities, as one network."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.network, self.is_trained = model.network, len(model.seen) > 1
        self.takes_images = model.shape.network == "resnet18"
        unseen = np.setdiff1d(np.arange(model.n_classes), model.seen)
        self.left = 1 - FLOOR * len(unseen)
        floor, hidden = torch.zeros(model.n_classes), torch.zeros(model.n_classes)
        floor[unseen], hidden[unseen] = FLOOR, -torch.inf
        self.floor = nn.Buffer(floor)
        self.hidden = nn.Buffer(hidden)

    def forward(self, inputs: Tensor) -> Tensor:
        inputs = scaled_images(inputs) if self.takes_images else inputs
        logits = self.network.head(self.network.embed(inputs))
        if not self.is_trained:
            return torch.softmax(logits * 0, dim=1)
        return self.floor + self.left * torch.softmax(logits + self.hidden, dim=1)


def _quietly_export(scores: _Scores, example: Tensor, name: str, path: Path) -> None:
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with needs_extra("ONNX", "onnx"), warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            torch.onnx.export(
                scores,
                (example,),
                path,
                input_names=[name],
                output_names=["probabilities"],
                dynamic_shapes=({0: torch.export.Dim("examples")},),
                external_data=False,
                dynamo=True,
            )
    finally:
        logger.setLevel(level)
