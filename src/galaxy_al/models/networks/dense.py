"""The same network with convolutions of tiny images as products of matrices.

A ResNet-18 sees an image of 32 x 32 as 2 x 2 pixels in its third layer. There a convolution is
slow: it goes over padding and over few pixels at a time. Written as a matrix, whose rows are the
kernel's weights put where each output meets them, it is one large product.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from galaxy_al.models.images import Size
from galaxy_al.models.networks.compact import convolutions


class DenseConvolution(nn.Module):
    """A convolution of images of one size, by a matrix that is made of its kernel.

    Parameters
    ----------
    conv
        Its weights are shared. It has no groups and no dilation.
    image_size
        Of the images that it gets.
    """

    _place: Tensor

    def __init__(self, conv: nn.Conv2d, image_size: Size) -> None:
        super().__init__()
        self.weight, self.bias = conv.weight, conv.bias
        rows, columns = (_taps(conv, axis, image_size[axis]) for axis in (0, 1))
        self.output_size = len(rows), len(columns)
        height, width = self.weight.shape[2:]
        inside = (rows >= 0)[:, None, :, None] & (columns >= 0)[None, :, None, :]
        taps = rows[:, None, :, None] * width + columns[None, :, None, :]
        self._has_padding = not bool(inside.all())
        place = torch.where(inside, taps, height * width).flatten()
        self.register_buffer("_place", place, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """What the convolution gives."""
        n_outputs, n_channels = self.weight.shape[:2]
        kernel = self.weight.permute(0, 2, 3, 1).reshape(n_outputs, -1, n_channels)
        if self._has_padding:
            kernel = functional.pad(kernel, (0, 0, 0, 1))
        matrix = kernel.index_select(1, self._place)
        pixels = images.permute(0, 2, 3, 1).reshape(len(images), -1)
        found = functional.linear(pixels, matrix.view(-1, pixels.shape[1]))
        found = found.view(len(images), n_outputs, *self.output_size)
        return found if self.bias is None else found + self.bias[:, None, None]


def make_dense(network: Any, image_size: Size) -> None:
    """Put matrices where images have no more pixels than the kernel."""
    for name, conv, size in convolutions(network, image_size):
        is_plain = conv.groups == 1 and conv.dilation == (1, 1)
        if is_plain and size[0] * size[1] <= conv.kernel_size[0] * conv.kernel_size[1]:
            parent, _, own = name.rpartition(".")
            network.get_submodule(parent).add_module(own, DenseConvolution(conv, size))


def _taps(conv: nn.Conv2d, axis: int, length: int) -> Tensor:
    """Of each output (row) and input (column), the place in the kernel; -1 if it is not in it."""
    kernel, stride, padding = conv.kernel_size[axis], conv.stride[axis], int(conv.padding[axis])
    n_outputs = (length + 2 * padding - kernel) // stride + 1
    taps = torch.arange(length)[None, :] - torch.arange(n_outputs)[:, None] * stride + padding
    return torch.where((taps >= 0) & (taps < kernel), taps, -1)
