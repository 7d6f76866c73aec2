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

from galaxy_al.models.decisions import Decision, likeliest
from galaxy_al.models.networks.network import FLOOR, Model, check_network, scaled_images
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import make_folder, writing


def save_onnx(model: Model, path: str | Path, decision: Decision | None = None) -> Path:
    """Write a model as ONNX: from any number of examples to probabilities and decisions.

    The input ``embeddings`` is N x d in single precision; the input ``images`` N x H x W x 3 in
    bytes, which are scaled within. The output ``probabilities`` is N x K; the output ``decisions``
    the index of the class that is decided for each example, by default the likeliest.
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
    decision = decision or likeliest(model.n_classes)
    scores = _Scores(model, decision).eval().to("cpu")
    make_folder(path.parent)
    with writing(path) as part:
        _quietly_export(scores, example, name, part)
    model.network.to(model.device)
    return path


class _Scores(nn.Module):
    """A model from its inputs to its probabilities and decisions, as one network."""

    def __init__(self, model: Model, decision: Decision) -> None:
        super().__init__()
        self.network, self.is_trained = model.network, len(model.seen) > 1
        self.takes_images = model.shape.network == "resnet18"
        unseen = np.setdiff1d(np.arange(model.n_classes), model.seen)
        self.left = 1 - FLOOR * len(unseen)
        floor, hidden = torch.zeros(model.n_classes), torch.zeros(model.n_classes)
        floor[unseen], hidden[unseen] = FLOOR, -torch.inf
        priors = np.ones(model.n_classes) if model.class_priors is None else model.class_priors
        self.limits = nn.Buffer(torch.as_tensor(decision.limits))
        self.majority_is_the_rest = decision.majority_is_the_rest
        self.priors = nn.Buffer(torch.as_tensor(priors, dtype=torch.float32))
        self.floor = nn.Buffer(floor)
        self.hidden = nn.Buffer(hidden)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        proba = self.proba(inputs)
        times = proba / self.limits
        if self.majority_is_the_rest:
            rest = torch.full_like(times[:, -1:], float(np.nextafter(np.float32(1), 0)))
            times = torch.cat([times[:, :-1], rest], dim=1)
        return proba, times.argmax(dim=1)

    def proba(self, inputs: Tensor) -> Tensor:
        """The probabilities in the pool."""
        inputs = scaled_images(inputs) if self.takes_images else inputs
        logits = self.network.head(self.network.embed(inputs))
        if not self.is_trained:
            return torch.softmax(logits * 0, dim=1)
        balanced = self.floor + self.left * torch.softmax(logits + self.hidden, dim=1)
        in_pool = balanced * self.priors
        return in_pool / in_pool.sum(dim=1, keepdim=True)


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
                output_names=["probabilities", "decisions"],
                dynamic_shapes=({0: torch.export.Dim("examples")},),
                external_data=False,
                dynamo=True,
            )
    finally:
        logger.setLevel(level)
