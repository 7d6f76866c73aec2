"""Embedders from ONNX files, run by onnxruntime: images or texts, without torch."""

from galaxy_al.models.onnx_embedders.files import is_onnx, onnx_content, split_name, whole_name
from galaxy_al.models.onnx_embedders.images import OnnxImages
from galaxy_al.models.onnx_embedders.texts import OnnxTexts

__all__ = ["OnnxImages", "OnnxTexts", "is_onnx", "onnx_content", "split_name", "whole_name"]
