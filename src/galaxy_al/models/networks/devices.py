"""Where networks run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch

Precision = Literal["float32", "bfloat16", "fastest"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def pick_device(name: str) -> torch.device:
    """The device of that name; ``"auto"`` is CUDA, MPS or the CPU, the first that is there."""
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def half_precision(device: torch.device, precision: Precision | None = None) -> Any:
    """A context in which networks compute in bfloat16 where that is safe.

    By default a GPU does so, if it can, and a CPU does not: there it gains speed on some only.
    """
    if precision is None:
        is_half = device.type == "cuda" and has_fast_bfloat16(device)
    else:
        is_half = precision == "bfloat16" or (precision == "fastest" and has_fast_bfloat16(device))
    return torch.autocast(device.type, torch.bfloat16, enabled=is_half)


def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for bfloat16; without them it is slower than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    if device.type != "cpu" or not hasattr(torch.cpu, "get_capabilities"):
        return False
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("amx_bf16", "avx512_bf16", "bf16"))


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread on the CPU, as each of several processes does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
