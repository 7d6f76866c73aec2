"""What can be labelled: one object per kind of example, and the registry that plugins add to."""

from galaxy_al.data.modalities.base import Items, Modality, Source
from galaxy_al.data.modalities.images import ImageFiles, Images
from galaxy_al.data.modalities.texts import Texts
from galaxy_al.data.modalities.vectors import Vectors
from galaxy_al.system.registry import Registry

MODALITIES: Registry[Modality] = Registry(
    "kind",
    "galaxy_al.modalities",
    {modality.name: modality for modality in (Texts(), Images(), Vectors())},
)

__all__ = ["MODALITIES", "ImageFiles", "Items", "Modality", "Source"]
