"""The same network without the weights that small images never reach.

In its last layers a ResNet-18 sees an image of 32 x 32 as a single pixel. Of a kernel of 3 x 3 only
the middle meets that pixel, and the other eight weights meet padding: they count for nothing. They
are two thirds of all weights of the network.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from galaxy_al.models.images import Size

Windows = dict[str, tuple[slice, slice]]
"""By the name of a convolution's weights, the rows and columns of its kernel that count."""


def windows_of(network: Any, image_size: Size) -> Windows:
    """The parts of kernels that count for images of this size, of kernels that have others."""
    found = {}
    for name, conv, size in convolutions(network, image_size):
        rows, columns = (_window(conv, axis, size[axis]) for axis in (0, 1))
        if (rows.stop - rows.start, columns.stop - columns.start) != conv.kernel_size:
            found[f"{name}.weight"] = rows, columns
    return found


def compact(network: Any, windows: Windows) -> Any:
    """A copy of the network that has only these parts of its kernels."""
    smaller = copy.deepcopy(network)
    for name, (rows, columns) in windows.items():
        conv = smaller.get_submodule(name.removesuffix(".weight"))
        kernel = conv.weight.detach()[:, :, rows, columns]
        conv.weight = nn.Parameter(kernel.contiguous(memory_format=torch.channels_last))
        conv.padding = tuple(p - part.start for p, part in zip(conv.padding, (rows, columns)))
        conv.kernel_size = tuple(kernel.shape[2:])
    return smaller


def put_back(smaller: Any, network: Any, windows: Windows) -> None:
    """Take over everything that a compact copy has learned; weights it lacks stay as they are."""
    own = network.state_dict()
    with torch.no_grad():
        for name, value in smaller.state_dict().items():
            rows, columns = windows.get(name, (slice(None), slice(None)))
            (own[name][:, :, rows, columns] if name in windows else own[name]).copy_(value)


def convolutions(network: Any, image_size: Size) -> list[tuple[str, nn.Conv2d, Size]]:
    """The convolutions by name, and the height and width of what reaches them."""
    found: list[tuple[str, nn.Conv2d, Size]] = []

    def note(name: str) -> Any:
        return lambda conv, inputs: found.append((name, conv, tuple(inputs[0].shape[2:])))

    hooks = [
        module.register_forward_pre_hook(note(name))
        for name, module in network.named_modules()
        if isinstance(module, nn.Conv2d)
    ]
    was_training, like = network.training, next(network.parameters())
    with torch.inference_mode():
        network.eval().embed(torch.zeros(1, 3, *image_size, device=like.device, dtype=like.dtype))
    network.train(was_training)
    for hook in hooks:
        hook.remove()
    return found


def _window(conv: nn.Conv2d, axis: int, length: int) -> slice:
    """The part of the kernel that meets inputs of this length; all of it if that is not simple."""
    kernel, stride, padding = conv.kernel_size[axis], conv.stride[axis], int(conv.padding[axis])
    outputs = range((length + 2 * padding - kernel) // stride + 1)
    used = [
        tap
        for tap in range(kernel)
        if any(0 <= output * stride - padding + tap < length for output in outputs)
    ]
    if not used:
        return slice(0, kernel)
    window = slice(used[0], used[-1] + 1)
    left, taps = padding - window.start, window.stop - window.start
    keeps_outputs = (length + 2 * left - taps) // stride + 1 == len(outputs)
    return window if left >= 0 and keeps_outputs else slice(0, kernel)
