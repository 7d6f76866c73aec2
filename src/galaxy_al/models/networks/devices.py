"""Where networks run."""

from __future__ import annotations

from typing import Any

import torch


def pick_device(name: str) -> torch.device:
    """The device of that name; ``"auto"`` is CUDA, MPS or the CPU, the first that is there."""
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def mixed_precision(device: torch.device) -> Any:
    """A context in which a GPU computes in half precision where that is safe."""
    return torch.autocast(device.type, enabled=device.type == "cuda")
