"""Networks that compute the same in less time: for training, and for scoring."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from galaxy_al.models.images import Size
from galaxy_al.models.networks.compact import Windows, compact, windows_of
from galaxy_al.models.networks.dense import make_dense


def for_training(network: Any, image_size: Size) -> tuple[Any, Windows]:
    """A copy to train, and the windows by which `put_back` takes over what it learns."""
    windows = windows_of(network, image_size)
    fast = compact(network, windows)
    make_dense(fast, image_size)
    return fast, windows


def for_scoring(network: Any, image_size: Size) -> Any:
    """A copy that scores images."""
    fast = compact(network, windows_of(network, image_size)).eval()
    _drop_batch_norm(fast)
    make_dense(fast, image_size)
    return fast


def _drop_batch_norm(network: Any) -> None:
    """Batch norm multiplies and shifts each channel: the convolution before it can do that."""
    for parent in list(network.modules()):
        children = list(parent.named_children())
        for (name, conv), (norm_name, norm) in pairwise(children):
            # In a ResNet, a batch norm is declared right after the convolution that it is used on.
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                parent.add_module(name, fuse_conv_bn_eval(conv, norm))
                parent.add_module(norm_name, nn.Identity())
