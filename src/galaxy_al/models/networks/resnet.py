"""ResNet-18: He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, CVPR 2016.

Parameters are named like torchvision's, so that its ImageNet weights load. torchvision itself is
not needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from galaxy_al.errors import GalaxyError, one_line
from galaxy_al.system.downloads import check_sum, download
from galaxy_al.system.folders import data_folder, home_folder

_HEX = set("0123456789abcdef")
IMAGENET = "https://download.pytorch.org/models/resnet18-f37072fd.pth"
# The same tensors, which are taken if they are in the folder that GALAXY_AL_DATA names.
OWN_IMAGENET = "resnet18-imagenet.safetensors"
OWN_IMAGENET_SHA256 = "9e59a24610ad2ea4fcdf29c541304f1550fa4cb2e6d4940247e28fd2597cdcdd"


class ResNet18(nn.Module):
    """The network of the paper's experiments; `embed` ends before the last layer, `fc`."""

    width = 512

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(_Block(64, 64, 1), _Block(64, 64, 1))
        self.layer2 = nn.Sequential(_Block(64, 128, 2), _Block(128, 128, 1))
        self.layer3 = nn.Sequential(_Block(128, 256, 2), _Block(256, 256, 1))
        self.layer4 = nn.Sequential(_Block(256, 512, 2), _Block(512, 512, 1))
        self.fc = nn.Linear(self.width, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @property
    def head(self) -> nn.Linear:
        """The last layer."""
        return self.fc

    def embed(self, images: Tensor) -> Tensor:
        """The inputs of the last layer."""
        x = functional.relu_(self.bn1(self.conv1(images)))
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return x.mean(dim=(2, 3))

    def forward(self, images: Tensor) -> Tensor:
        """The logits."""
        logits: Tensor = self.fc(self.embed(images))
        return logits


class _Block(nn.Module):
    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample: nn.Module | None = None
        if stride != 1 or n_in != n_out:
            shortcut = nn.Conv2d(n_in, n_out, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu_(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return functional.relu_(y + (x if self.downsample is None else self.downsample(x)))


def load_trunk(network: ResNet18, weights: Mapping[str, Tensor]) -> None:
    """Take over weights in torchvision's naming; the last layer stays as it is."""
    own = network.state_dict()
    trunk = {name: value for name, value in weights.items() if not name.startswith("fc.")}
    missing = [name for name in own if name not in trunk and not name.startswith("fc.")]
    counters = [name for name in missing if name.endswith("num_batches_tracked")]
    wrong = [name for name in trunk if name not in own or own[name].shape != trunk[name].shape]
    if wrong or len(missing) > len(counters):
        named = (wrong + [name for name in missing if name not in counters])[0]
        raise GalaxyError(f"These are not the weights of a ResNet-18: {named} does not fit.")
    network.load_state_dict(trunk, strict=False)


def read_weights(source: str | Path) -> dict[str, Any]:
    """Weights from a ``.safetensors`` file, or a ``.pth`` file of tensors only.

    Parameters
    ----------
    source
        A file; a URL, which is downloaded once; or ``"imagenet"``, torchvision's own:
        ``resnet18-imagenet.safetensors`` in the folder that ``GALAXY_AL_DATA`` names, or its URL.

    Notes
    -----
    torchvision's files carry the beginning of their SHA-256 sum in their names, as in
    ``resnet18-f37072fd.pth``; it is compared. Add the sum to any other URL, as in
    ``https://example.org/weights.pth#sha256=...``.
    """
    path = _imagenet() if source == "imagenet" else _local(str(source))
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        weights: Any = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(weights, dict) or not all(map(torch.is_tensor, weights.values())):
            raise GalaxyError("it does not hold tensors by name only")
    except Exception as error:  # torch and safetensors raise many kinds for a broken file
        raise GalaxyError(f"Cannot read weights from {path}: {one_line(error)}") from error
    return dict(weights)


def _imagenet() -> Path:
    folder = data_folder()
    if folder is not None and (own := folder / OWN_IMAGENET).exists():
        check_sum(own, f"sha256:{OWN_IMAGENET_SHA256}")
        return own
    return _local(IMAGENET)


def _local(source: str) -> Path:
    """The file itself, its sum compared if its name or its URL says one."""
    if not source.startswith(("http://", "https://")):
        path = Path(source)
        if not path.exists():
            raise GalaxyError(f"There is no {path}.")
        if found := _sum_in_name(path):
            check_sum(path, f"sha256:{found}")
        return path
    url, _, stated = source.partition("#sha256=")
    name = Path(url.partition("?")[0].rsplit("/", 1)[-1])
    expected = stated.lower() or _sum_in_name(name)
    if len(expected) < 8 or set(expected) - _HEX:
        raise GalaxyError(f"{url} needs a checksum: add #sha256=... to it.")
    place = home_folder() / "weights" / f"{expected[:8]}-{name}"
    return download(url, place, f"sha256:{expected}")


def _sum_in_name(path: Path) -> str:
    end = path.stem.rpartition("-")[2]
    is_date = end.isdecimal()
    return end if len(end) == 8 and not set(end) - _HEX and not is_date else ""
