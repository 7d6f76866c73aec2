"""What an ONNX model gets of an image: its size, its range of values, the order of its axes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.models.images import Image, Size

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_BILINEAR = 2  # in Pillow, and in a preprocessor_config.json
_RANGES = {  # ONNX's own property for images: the factor, the mean and the deviation
    "NominalRange_0_255": (1.0, 0.0, 1.0),
    "Normalized_0_1": (1 / 255, 0.0, 1.0),
    "Normalized_1_1": (1 / 255, 0.5, 0.5),
}
_OPTIONS = {"mean": "image_mean", "std": "image_std", "scale": "rescale_factor"}


@dataclass(frozen=True)
class Pixels:
    """How an image becomes what a model takes.

    Parameters
    ----------
    resize
        The length of the shorter side, or height and width.
    size
        Height and width of what is cut out of the middle after that.
    resample
        Pillow's number of the interpolation.
    scale, mean, std
        A byte times ``scale``, minus ``mean``, divided by ``std``. Bytes stay as they are.
    """

    resize: int | Size
    size: Size
    resample: int
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    is_bgr: bool
    channels_last: bool
    dtype: str

    @property
    def side(self) -> int:
        """Images can be as small as this before they are resized."""
        return max(*self.size, *((self.resize,) if isinstance(self.resize, int) else self.resize))

    def card(self) -> dict[str, Any]:
        """All of it as JSON."""
        card: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return card

    def cut(self, image: Image) -> Image:
        """The image at its size, in bytes."""
        from PIL import Image as Pillow

        picture = Pillow.fromarray(np.ascontiguousarray(image))
        height, width = self._resized(*image.shape[:2])
        filter = Pillow.Resampling(self.resample)
        resized = np.asarray(picture.resize((width, height), filter))
        top, left = (height - self.size[0]) // 2, (width - self.size[1]) // 2
        return resized[top : top + self.size[0], left : left + self.size[1]]

    def _resized(self, height: int, width: int) -> Size:
        if not isinstance(self.resize, int):
            return self.resize
        if height <= width:
            return self.resize, int(self.resize * width / height)
        return int(self.resize * height / width), self.resize

    def batch(self, images: Sequence[Image]) -> NDArray[Any]:
        """Images of one size as the model takes them."""
        table: NDArray[Any] = np.stack(images)
        if self.is_bgr:
            table = table[..., ::-1]
        if self.dtype != "uint8":
            mean, std = (np.array(each, dtype=np.float32) for each in (self.mean, self.std))
            table = (table * np.float32(self.scale) - mean) / std
        if not self.channels_last:
            table = table.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(table, dtype=self.dtype)


def parse_options(text: str, name: str) -> dict[str, Any]:
    """What is given after the @ of a name: ``224,mean=0.5,std=0.5,scale=1``, in any order."""
    given: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, is_pair, value = part.partition("=")
        if not is_pair and part.isdecimal() and int(part) > 0:
            given["side"] = int(part)
        elif is_pair and key in _OPTIONS and (numbers := _numbers(value.split(":"))) is not None:
            given[_OPTIONS[key]] = numbers if key != "scale" else numbers[0]
        else:
            raise InvalidArgument(
                f"{name}: after the @ give a side in pixels, mean=, std= (one number, or three as "
                f"in 0.485:0.456:0.406) or scale=, separated by commas, got {part!r}."
            )
    return given


def read_metadata(metadata: Mapping[str, str]) -> dict[str, Any]:
    """What the properties in a file say, under the names of a preprocessor_config.json."""
    found: dict[str, Any] = {}
    if metadata.get("Image.NominalPixelRange") in _RANGES:
        scale, mean, std = _RANGES[metadata["Image.NominalPixelRange"]]
        found |= {"rescale_factor": scale, "image_mean": mean, "image_std": std}
    found["is_bgr"] = metadata.get("Image.BitmapPixelFormat", "").startswith("Bgr")
    for key in ("image_mean", "image_std", "rescale_factor", "size", "crop_size", "resample"):
        with suppress(ValueError, KeyError):
            found[key] = json.loads(metadata[key])
    return found


def make_pixels(
    config: Mapping[str, Any], shape: tuple[int | None, int | None], *, where: str, **layout: Any
) -> Pixels:
    """How to prepare images.

    Parameters
    ----------
    config
        The keys of a preprocessor_config.json, and ``side`` if one was given.
    shape
        The height and width in the model's own shape; None where any will do.
    where
        The name of the model, for messages.
    layout
        ``channels_last`` and ``dtype``.
    """
    config = {key: value for key, value in config.items() if value is not None}
    resize, size = _sizes(config, shape, where)
    scale = config.get("rescale_factor", 1 / 255) if config.get("do_rescale", True) else 1.0
    mean, std = config.get("image_mean", IMAGENET_MEAN), config.get("image_std", IMAGENET_STD)
    if not config.get("do_normalize", True):
        mean, std = 0.0, 1.0
    factor, means, stds = (_channels(each, where) for each in (scale, mean, std))
    if 0 in stds:
        raise GalaxyError(f"{where}: the standard deviation must not be 0, got {std!r}.")
    resample = config.get("resample", _BILINEAR)
    if resample not in range(6):
        raise GalaxyError(f"{where}: resample must be from 0 to 5, got {resample!r}.")
    is_bgr = bool(config.get("is_bgr"))
    return Pixels(resize, size, resample, factor[0], means, stds, is_bgr, **layout)


def _sizes(
    config: Mapping[str, Any], shape: tuple[int | None, int | None], where: str
) -> tuple[int | Size, Size]:
    side = config.get("side")
    if side is not None and any(length not in (None, side) for length in shape):
        takes = " x ".join("?" if length is None else str(length) for length in shape)
        raise InvalidArgument(f"{where} takes images of {takes} pixels, got a side of {side}.")
    resize, size = _configured(config, where)
    height, width = (length or side for length in shape)
    if size is None:
        if height is None or width is None:
            raise InvalidArgument(
                f"{where} takes images of any size. Give one after its name, as in model.onnx@224."
            )
        return (height, width), (height, width)
    final = (height or size[0], width or size[1])
    by = final[0] / size[0], final[1] / size[1]
    if isinstance(resize, int):
        return round(resize * max(by)), final
    assert resize is not None
    return (round(resize[0] * by[0]), round(resize[1] * by[1])), final


def _configured(config: Mapping[str, Any], where: str) -> tuple[int | Size | None, Size | None]:
    """To what a preprocessor_config.json resizes, and what it cuts out of that."""
    crop = None
    if config.get("do_center_crop", "crop_size" in config):
        crop = _size(config.get("crop_size"), where)
    size = config.get("size")
    short = size.get("shortest_edge") if isinstance(size, Mapping) else size
    resize: int | Size | None
    final: Size | None
    if isinstance(short, int) and (crop is not None or isinstance(size, Mapping)):
        resize, final = short, crop or (short, short)
    else:
        whole = _size(size, where)
        resize, final = whole or crop, crop or whole
    height, width = (resize, resize) if isinstance(resize, int) else resize or (0, 0)
    if final and (final[0] > height or final[1] > width):
        raise GalaxyError(f"{where}: {final} cannot be cut out of images resized to {resize}.")
    return resize, final


def _size(value: Any, where: str) -> Size | None:
    if value is None:
        return None
    both = value if isinstance(value, Mapping) else {"height": value, "width": value}
    height, width = both.get("height"), both.get("width")
    if not (isinstance(height, int) and isinstance(width, int) and height > 0 and width > 0):
        raise GalaxyError(f"{where}: a size must be a height and a width in pixels, got {value!r}.")
    return height, width


def _channels(value: Any, where: str) -> tuple[float, ...]:
    numbers = _numbers(value if isinstance(value, Sequence) else [value])
    if numbers is None:
        raise GalaxyError(
            f"{where}: mean, std and scale must be one number or three, got {value!r}."
        )
    return tuple(numbers * 3 if len(numbers) == 1 else numbers)


def _numbers(values: Sequence[Any]) -> list[float] | None:
    with suppress(TypeError, ValueError):
        numbers = [float(value) for value in values]
        if len(numbers) in (1, 3) and np.isfinite(numbers).all():
            return numbers
    return None
