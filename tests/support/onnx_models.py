"""Small ONNX models whose outputs are easy to compute by hand."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "uint8": TensorProto.UINT8,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "my", "card", "was", "declined", "hello", "there"]


def save(path, nodes, inputs, outputs, constants=None, metadata=None):
    """Write a model; an input or output is its name, type and shape."""

    def info(ports):
        return [helper.make_tensor_value_info(name, TYPES[t], shape) for name, t, shape in ports]

    arrays = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "small", info(inputs), info(outputs), arrays)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    helper.set_model_props(model, metadata or {})
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return str(path)


def flat_model(path, shape, dtype="float32", width=5, **more):
    """All values of an image times a table, which is returned as well."""
    table = np.random.default_rng(0).normal(size=(int(np.prod(shape[1:])), width))
    table = table.astype(np.float32)
    nodes = [
        helper.make_node("Cast", ["image"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["numbers"], ["flat"]),
        helper.make_node("MatMul", ["flat", "table"], ["vector"]),
    ]
    outputs = [("vector", "float32", [shape[0], width])]
    save(path, nodes, [("image", dtype, shape)], outputs, {"table": table}, **more)
    return table


def square_model(path, shape, output="features", **more):
    """The square of every value, in the shape of the image."""
    nodes = [helper.make_node("Mul", ["image", "image"], [output])]
    return save(path, nodes, [("image", "float32", shape)], [(output, "float32", shape)], **more)


def text_model(path, inputs=("input_ids", "attention_mask", "token_type_ids"), **options):
    """A vector per token, or for each text the sum; returns the tables of tokens and of types."""
    shape = options.get("shape", ["batch", "tokens"])
    rng, kind = np.random.default_rng(0), options.get("dtype", "int64")
    tables = {name: rng.normal(size=(n, 4)).astype(np.float32) for name, n in
              (("words", len(WORDS)), ("kinds", 2))}  # fmt: skip
    nodes = [helper.make_node("Gather", ["words", "input_ids"], ["seen"])]
    last = "seen"
    if "token_type_ids" in inputs:
        nodes += [
            helper.make_node("Gather", ["kinds", "token_type_ids"], ["kind"]),
            helper.make_node("Add", [last, "kind"], ["both"]),
        ]
        last = "both"
    if "attention_mask" in inputs:  # what is masked becomes a large number
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
            helper.make_node("Sub", ["mask", "one"], ["hidden"]),
            helper.make_node("Mul", ["hidden", "far"], ["moved"]),
            helper.make_node("Unsqueeze", ["moved", "axis"], ["wide"]),
            helper.make_node("Sub", [last, "wide"], ["masked"]),
        ]
        last = "masked"
    nodes.append(helper.make_node("Identity", [last], ["last_hidden_state"]))
    nodes.append(helper.make_node("ReduceMax", [last, "tokens_axis"], ["other"], keepdims=0))
    outputs = [("other", "float32", [shape[0], 4]), ("last_hidden_state", "float32", [*shape, 4])]
    if options.get("sentence"):
        nodes.append(helper.make_node("Identity", ["other"], ["sentence_embedding"]))
        outputs.append(("sentence_embedding", "float32", [shape[0], 4]))
    constants = {
        **tables, "one": np.float32([1]), "far": np.float32([1000]),
        "axis": np.int64([2]), "tokens_axis": np.int64([1]),
    }  # fmt: skip
    save(path, nodes, [(name, kind, shape) for name in inputs], outputs, constants)
    return tables["words"], tables["kinds"]


def write_tokenizer(folder, **config):
    """A tokenizer of ten words that puts [CLS] and [SEP] around a text."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return tokenizer
