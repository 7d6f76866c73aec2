"""Embedding texts with an ONNX file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.models.onnx_embedders.files import (
    POOLING,
    TOKENIZER,
    TOKENIZER_CONFIG,
    beside,
    onnx_content,
    read_beside,
    split_name,
    whole_name,
)
from galaxy_al.models.onnx_embedders.session import TYPES, OnnxSession
from galaxy_al.models.protocols import Vectors
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import digest, reading

_OUTPUTS = ("sentence_embedding", "text_embeds", "last_hidden_state", "token_embeddings")
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_ALLOWED = "input_ids (integers, N x tokens), and may take attention_mask and token_type_ids"
_MAX_TOKENS, _MOST_TOKENS = 256, 100_000  # many tokenizers say 1e30: no limit of their own
_AT_ONCE = 32


class Tokens(NamedTuple):
    """A text as numbers."""

    ids: NDArray[np.int64]
    types: NDArray[np.int64]


class OnnxTexts:
    """Vectors of texts by an ONNX file with a ``tokenizer.json`` beside it.

    A table of vectors is taken as it is. Of tokens, N x tokens x d, it takes the mean, or the first
    one if ``1_Pooling/config.json`` says so.

    Parameters
    ----------
    name
        The file, and after an @ the number of tokens after which a text is cut off. Otherwise the
        shape in the file says it, or ``tokenizer_config.json``; and if neither does, it is 256.
    """

    kind, batch_size = "texts", 256
    side: int | None = None

    def __init__(self, name: str, *, device: str = "auto") -> None:
        path, options = split_name(name)
        if options and not (options.isdecimal() and int(options) > 0):
            raise InvalidArgument(f"{name}: after the @ give a number of tokens, got {options!r}.")
        content = onnx_content(path)
        self._session = session = OnnxSession(path, device=device)
        self._types = _token_inputs(session)
        lengths = (port.shape[1] for port in session.inputs)
        self._length = next(filter(None, lengths), None)  # None: any number of tokens
        self._tokenizer, self._padding = _load_tokenizer(path)
        limit = _max_tokens(path, int(options or 0), self._length)
        self._tokenizer.enable_truncation(limit)
        self._tokenizer.no_padding()
        self._output = session.choose_output(_OUTPUTS)
        config = read_beside(path, POOLING)
        is_first = config.get("pooling_mode_cls_token") or config.get("pooling_mode") == "cls"
        self._takes_first = bool(is_first)
        self.name = whole_name(name)
        self.width = self._try().shape[1]
        self.preprocessing: dict[str, Any] = {
            "max_tokens": limit,
            "output": self._output,
            "pooling": "first token" if self._takes_first else "mean",
        }
        self.version = f"onnx {digest([content, json.dumps(self.preprocessing, sort_keys=True)])}"

    def prepare(self, item: str) -> Tokens:
        """The tokens of the text, without a half of a character where it was cut off."""
        found = self._tokenizer.encode(str(item).encode(errors="replace").decode())
        return Tokens(np.array(found.ids, np.int64), np.array(found.type_ids, np.int64))

    def embed(self, batch: Sequence[Tokens]) -> Vectors:
        """The model's vectors. Texts of similar length are taken together, and little is padded."""
        vectors = np.empty((len(batch), self.width), dtype=np.float32)
        order = np.argsort([len(tokens.ids) for tokens in batch], kind="stable")
        for start in range(0, len(batch), _AT_ONCE):
            rows = order[start : start + _AT_ONCE]
            feed, mask = self._padded([batch[row] for row in rows.tolist()])
            vectors[rows] = self._pooled(self._session.run(feed, self._output), mask)
        return vectors

    def _try(self) -> Vectors:
        feed, mask = self._padded([self.prepare("a")])
        made = self._session.try_run(feed, self._output)
        if made.ndim > 3:
            raise GalaxyError(f"{self._session.path}: the output {self._output} is not of texts.")
        return self._pooled(made, mask)

    def _padded(self, batch: Sequence[Tokens]) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
        length = self._length or max(1, *(len(tokens.ids) for tokens in batch))
        mask = np.arange(length) < np.array([[len(tokens.ids)] for tokens in batch])
        tables = {name: np.zeros(mask.shape, np.int64) for name in _INPUTS}
        tables["input_ids"][:] = self._padding
        tables["input_ids"][mask] = np.concatenate([tokens.ids for tokens in batch])
        tables["token_type_ids"][mask] = np.concatenate([tokens.types for tokens in batch])
        tables["attention_mask"][mask] = 1
        return {name: tables[name].astype(kind) for name, kind in self._types.items()}, mask

    def _pooled(self, made: NDArray[Any], mask: NDArray[np.bool_]) -> Vectors:
        tokens: Vectors = made.astype(np.float32, copy=False)
        if tokens.ndim == 2:
            return tokens
        if self._takes_first:
            return tokens[:, 0]
        total = np.where(mask[..., None], tokens, 0).sum(axis=1, dtype=np.float32)
        mean: Vectors = total / np.maximum(mask.sum(axis=1, keepdims=True), 1).astype(np.float32)
        return mean


def _token_inputs(session: OnnxSession) -> dict[str, Any]:
    """The type of each input."""
    ports = {port.name: port for port in session.inputs}
    are_tokens = all(
        len(port.shape) == 2 and port.type in ("tensor(int64)", "tensor(int32)")
        for port in ports.values()
    )
    if "input_ids" not in ports or not ports.keys() <= set(_INPUTS) or not are_tokens:
        raise session.refuse("texts", _ALLOWED)
    return {name: TYPES[port.type] for name, port in ports.items()}


def _load_tokenizer(path: Path) -> tuple[Any, int]:
    """The tokenizer beside a model, and the number of its token for padding."""
    with needs_extra("An ONNX file for texts", "onnx"):
        from tokenizers import Tokenizer

    found = beside(path, TOKENIZER)
    if found is None:
        raise GalaxyError(f"{path} needs its {TOKENIZER} beside it to embed texts.")
    with reading(found):
        tokenizer = Tokenizer.from_file(str(found))
    if tokenizer.padding:
        return tokenizer, int(tokenizer.padding["pad_id"])
    known = (tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>"))
    return tokenizer, next((number for number in known if number is not None), 0)


def _max_tokens(path: Path, given: int, length: int | None) -> int:
    """After how many tokens a text is cut off."""
    if length is not None:
        if given > length:
            raise InvalidArgument(f"{path} takes {length} tokens, got a limit of {given}.")
        return given or length
    limit = read_beside(path, TOKENIZER_CONFIG).get("model_max_length")
    if not isinstance(limit, int | float) or not 1 <= limit <= _MOST_TOKENS:
        limit = _MAX_TOKENS
    return given or int(limit)
