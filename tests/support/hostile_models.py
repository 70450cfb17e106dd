"""Inconsistent and oversized models for several tests."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from .onnx_models import parse


def with_external(folder: Path, **entries: str) -> Path:
    model = parse("g (float[4] x) => (float[4] y) { y = Add(x, w) }")
    t = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[4])
    t.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        t.external_data.add(key=key, value=value)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def functions(calls: int, levels: int, back: bool = False) -> onnx.ModelProto:
    """Functions that call the next `calls` times each; the last one computes, or calls the first."""
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("d", 1)]
    made = []
    for i in range(levels):
        last = i == levels - 1
        op, domain = (("f0", "d") if back else ("Neg", "")) if last else (f"f{i + 1}", "d")
        nodes = [helper.make_node(op, [f"v{j}"], [f"v{j + 1}"], domain=domain) for j in range(1 if last else calls)]
        made.append(helper.make_function("d", f"f{i}", ["v0"], [f"v{len(nodes)}"], nodes, imports))
    infos = [helper.make_tensor_value_info(n, 1, [2]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("f0", ["x"], ["y"], domain="d")], "g", infos[:1], infos[1:])
    return helper.make_model(graph, opset_imports=imports, functions=made)


def computing(levels: int) -> onnx.ModelProto:
    """Functions of functions, the innermost of which computes indices of constants."""
    made = functions(2, levels)
    body = [
        helper.make_node("Constant", [], ["two"], value_int=2),
        helper.make_node("Constant", [], ["many"], value_ints=range(10**6, 10**6 + 300)),
        helper.make_node("Mod", ["many", "two"], ["i"]),
        helper.make_node("Gather", ["v0", "i"], ["w"]),
        helper.make_node("ReduceSum", ["w"], ["sum"]),
        helper.make_node("Add", ["v0", "sum"], ["v1"]),
    ]
    del made.functions[-1].node[:]
    made.functions[-1].node.extend(body)
    return made


def named(made: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """A model whose first node has this name."""
    made.graph.node[0].name = name
    return made


# -- little that asks for much ----------------------------------------------------------------------------------------

FLOAT, INT64, STRING, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL
N = helper.make_node


def model(nodes, constants=None, inputs=(), output=FLOAT, texts=None, sparse=(), domain=None):  # type: ignore[no-untyped-def]
    made = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    made += [helper.make_tensor(k, STRING, [len(v)], [s.encode() for s in v]) for k, v in (texts or {}).items()]
    infos = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs]
    outputs = [helper.make_tensor_value_info("y", output, None)]
    graph = helper.make_graph(nodes, "g", infos, outputs, made, sparse_initializer=list(sparse))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def sparse(k: int, size: int) -> onnx.SparseTensorProto:
    values = helper.make_tensor(f"w{k}", FLOAT, [1], [1.0])
    return helper.make_sparse_tensor(values, helper.make_tensor(f"i{k}", INT64, [1], [0]), [size])


def summed(*nodes: onnx.NodeProto) -> list[onnx.NodeProto]:
    return [*nodes, N("ReduceSum", ["z"], ["y"])]


def pixel() -> NDArray[Any]:
    return np.ones((1, 1, 2, 2), np.float32)


def filled(node: onnx.NodeProto, shape: list[int], more=None, output=FLOAT):  # type: ignore[no-untyped-def]
    """A node whose input "a" is a fill: a few bytes that demand much computing."""
    nodes = [N("ConstantOfShape", ["a_shape"], ["a"]), node]
    made = model(nodes, {"a_shape": np.int64(shape), **(more or {})}, output=output)
    made.opset_import.add(domain="ai.onnx.ml", version=5)
    return made


def recurrent(layers: int) -> onnx.ModelProto:
    names = [f"h{i}" for i in range(layers)]
    weight = np.ones((1, 4, 1), np.float32)
    nodes = [N("LSTM", ["a", "w", "w"], ["", name], hidden_size=1) for name in names]
    made = filled(nodes[0], [100_000, 1, 1], {"w": weight})
    made.graph.node.extend([*nodes[1:], N("Sum", names, ["y"])])
    return made


TREE = {
    "nodes_splits": helper.make_tensor("s", FLOAT, [1], [0.5]), "nodes_featureids": [0], "nodes_truenodeids": [0],
    "nodes_modes": helper.make_tensor("m", TensorProto.UINT8, [1], [0]), "nodes_falsenodeids": [1],
    "nodes_trueleafs": [1], "nodes_falseleafs": [1], "leaf_targetids": [0, 0], "n_targets": 1,
    "leaf_weights": helper.make_tensor("w", FLOAT, [2], [1.0, 2.0]), "tree_roots": [0] * 2000,
}  # fmt: skip
BOXES = np.float32([[[i, i, i + 1e-3, i + 1e-3] for i in range(4000)]])
CASES: dict[str, Callable[[], onnx.ModelProto]] = {
    "a regular expression": lambda: model(
        [N("RegexFullMatch", ["s"], ["y"], pattern="(a+)+$")], output=BOOL, texts={"s": ["a" * 40 + "b"]}
    ),
    "n-grams": lambda: model(
        [
            N(
                "TfIdfVectorizer", ["s"], ["y"], mode="TF", min_gram_length=1, max_gram_length=1 << 40,
                max_skip_count=1 << 40, ngram_counts=[0, 2], ngram_indexes=[0, 1], pool_int64s=[1, 2],
            )
        ],
        {"s": np.int64([1, 2, 3])},
    ),
    "a resize": lambda: model(
        [N("Resize", ["a", "", "by"], ["y"])], {"a": pixel(), "by": np.float32([1, 1, 1e30, 1e30])}
    ),
    "padding of a convolution": lambda: model(
        [N("Conv", ["a", "w"], ["y"], pads=[8192] * 4, strides=[16384, 16384])], {"a": pixel(), "w": pixel()}
    ),
    "padding of a pool": lambda: model(
        [N("MaxPool", ["a"], ["y"], kernel_shape=[16384] * 2, pads=[8192] * 4, strides=[16384] * 2)], {"a": pixel()}
    ),
    "one element of a fill": lambda: model(
        [N("ConstantOfShape", ["s"], ["f"]), N("Gather", ["f", "i"], ["y"])],
        {"s": np.int64([1 << 29]), "i": np.int64([3])},
    ),
    "the sum of a fill": lambda: model(
        summed(N("ConstantOfShape", ["s"], ["z"])), {"s": np.int64([1 << 29])}
    ),
    "ones in Expand": lambda: model(
        [N("Expand", ["x", "s"], ["y"])], {"s": np.ones(100_000, np.int64)}, [("x", ["n"])]
    ),
    "ones in Reshape": lambda: model(
        [N("Reshape", ["x", "s"], ["y"])], {"s": np.ones(100_000, np.int64)}, [("x", ["n"])]
    ),
    "axes": lambda: model([N("Unsqueeze", ["x", "s"], ["y"])], {"s": np.arange(100_000)}, [("x", ["n"])]),
    "70 axes": lambda: model([N("Unsqueeze", ["x", "s"], ["y"])], {"s": np.arange(69)}, [("x", ["n"])]),
    "sampling of a region": lambda: model(
        [N("RoiAlign", ["a", "r", "b"], ["y"], output_height=1, output_width=1, sampling_ratio=1 << 15)],
        {"a": pixel(), "r": np.float32([[0, 0, 1, 1]]), "b": np.int64([0])},
    ),
    "a window over channels": lambda: model([N("LRN", ["a"], ["y"], size=1 << 30)], {"a": pixel()}),
    "strings that double": lambda: model(
        [N("StringConcat", ["s0", "s0"], ["s1"])]
        + [N("StringConcat", [f"s{i}", f"s{i}"], [f"s{i + 1}"]) for i in range(1, 31)]
        + [N("Identity", ["s31"], ["y"])],
        output=STRING, texts={"s0": ["ab"]},
    ),
    "tensors that double": lambda: model(
        [N("Concat", ["a", "a"], ["t0"], axis=0)]
        + [N("Concat", [f"t{i}", f"t{i}"], [f"t{i + 1}"], axis=0) for i in range(40)]
        + [N("ReduceSum", ["t40"], ["y"])],
        {"a": np.ones(1, np.float32)},
    ),
    "an outer product": lambda: model(
        [N("Einsum", ["a"] * 6, ["y"], equation="a,b,c,d,e,f->")], {"a": np.ones(1000, np.float32)}
    ),
    "a long range": lambda: model(
        [N("Range", ["a", "b", "c"], ["y"])],
        {"a": np.int64(0), "b": np.int64(1 << 50), "c": np.int64(1)}, output=INT64,
    ),
    "a long transform": lambda: model(
        summed(N("DFT", ["a", "n"], ["z"])), {"a": np.ones((1, 4, 1), np.float32), "n": np.int64(1 << 30)}
    ),
    "a power of a size": lambda: model(
        [N("Shape", ["x"], ["s"]), N("Pow", ["s", "e"], ["t"]), N("Expand", ["x", "t"], ["y"])],
        {"e": np.int64([1 << 40])}, [("x", [3])],
    ),
    "n-grams of many lengths": lambda: model(
        [
            N(
                "TfIdfVectorizer", ["s"], ["y"], mode="TF", min_gram_length=1, max_gram_length=2000, pool_int64s=[1, 2],
                max_skip_count=2000, ngram_counts=[0] + [2] * 1999, ngram_indexes=[0, 1],
            )
        ],
        {"s": np.arange(4000)},
    ),
    "a transform of prime length": lambda: filled(N("DFT", ["a"], ["y"]), [1, 8191, 1]),
    "boxes apart": lambda: model(
        [N("NonMaxSuppression", ["b", "s", "n"], ["y"])],
        {"b": BOXES, "s": np.ones((1, 8, 4000), np.float32), "n": np.int64([1 << 40])}, output=INT64,
    ),
    "trees": lambda: filled(N("TreeEnsemble", ["a"], ["y"], domain="ai.onnx.ml", **TREE), [16_000, 1]),
    "regions": lambda: filled(
        N("MaxRoiPool", ["a", "r"], ["y"], pooled_shape=[7, 7]), [1, 1, 100, 100],
        {"r": np.float32([[0, 0, 0, 99, 99]] * 300)},
    ),
    "layers of many steps": lambda: recurrent(4),
    "antialiasing of a long row": lambda: filled(
        N("Resize", ["a", "", "", "s"], ["y"], mode="cubic", antialias=1), [1, 1, 2, 1 << 18],
        {"s": np.int64([1, 1, 2, 1000])},
    ),
    "numbers as text": lambda: filled(N("Cast", ["a"], ["y"], to=STRING), [1 << 21], output=STRING),
    "a pattern of many words": lambda: model(
        [N("RegexFullMatch", ["s"], ["y"], pattern="|".join(map(str, range(60_000))))], output=BOOL, texts={"s": ["a"]}
    ),
    "functions of functions": lambda: functions(2, 40),
    "a function that computes the same a thousand times": lambda: computing(10),
    "names of many parts": lambda: named(functions(2, 12), "a/" * 1500),
}  # fmt: skip
