"""Models of one operator of ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

Array = np.ndarray[Any, Any]


def one_node(op: str, inputs: list[Array], outputs: int = 1, version: int = 3, **attributes: Any) -> onnx.ModelProto:
    """A model of one node with inputs x0, … of these arrays' types and outputs y0, …."""
    names, results = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain="ai.onnx.ml", **attributes)
    types = [8 if x.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(x.dtype) for x in inputs]
    infos = [helper.make_tensor_value_info(n, t, x.shape) for n, t, x in zip(names, types, inputs, strict=True)]
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info(r) for r in results])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def with_maps(op: str, key: int, value: int, to: int, **attributes: Any) -> onnx.ModelProto:
    """A model of one node whose input is a map; key, value and to are element types."""
    node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    graph = helper.make_graph(
        [node], "g", [helper.make_value_info("x", kind)], [helper.make_tensor_value_info("y", to, None)]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def svm(kernel: str, classes: int, proba: bool = False, **attributes: Any) -> dict[str, Any]:
    """The attributes of an SVMClassifier of 4 features."""
    counts = [2, 3, 2, 4][:classes]
    vectors, pairs = sum(counts), classes * (classes - 1) // 2
    random = np.random.default_rng(classes)
    out: dict[str, Any] = {
        "kernel_type": kernel,
        "kernel_params": [0.4, 0.7, 2.0],
        "coefficients": random.normal(size=(classes - 1) * vectors).tolist(),
        "support_vectors": random.normal(size=vectors * 4).tolist(),
        "vectors_per_class": counts,
        "rho": random.normal(size=pairs, scale=0.2).tolist(),
        "classlabels_ints": list(range(classes)),
    }
    if proba:
        out.update(prob_a=(-1 - random.random(pairs)).tolist(), prob_b=random.normal(size=pairs, scale=0.1).tolist())
    return {**out, **attributes}


def forest(what: str, targets: list[int], positive: bool, entries: int = 1, trees: int = 3) -> dict[str, Any]:
    """Complete trees of depth 2 with every mode, and one tree of a leaf alone."""
    random = np.random.default_rng(len(targets))
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    out: dict[str, Any] = {f"nodes_{k}": [] for k in ("treeids", "nodeids", "featureids", "modes", "values")}
    out.update({f"nodes_{k}": [] for k in ("truenodeids", "falsenodeids", "missing_value_tracks_true")})
    out.update({f"{what}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")})
    for tree in range(trees + 1):
        for node in range(7 if tree < trees else 1):
            leaf = node > 2 or tree == trees
            row = [tree, node, int(random.integers(4)), "LEAF" if leaf else modes[(tree * 3 + node) % 6]]
            row += [0.0 if leaf else float(random.normal()), 0 if leaf else 2 * node + 1, 0 if leaf else 2 * node + 2]
            for key, value in zip(list(out)[:7], [*row], strict=True):
                out[key].append(value)
            # To onnxruntime NaN differs from everything, whatever this flag says.
            out["nodes_missing_value_tracks_true"].append(int(row[3] == "BRANCH_NEQ" or random.integers(2)))
            for target in random.permutation(targets)[:entries].tolist() if leaf else ():
                weight = float(random.random() / trees if positive else random.normal())
                for key, value in zip(
                    ("treeids", "nodeids", "ids", "weights"), (tree, node, target, weight), strict=True
                ):
                    out[f"{what}_{key}"].append(value)
    return out


def models() -> list[onnx.ModelProto]:
    """One of each kind."""
    x = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32)
    linear: dict[str, Any] = {"coefficients": [1.0] * 12, "intercepts": [0.0, 1.0, 2.0]}
    vectors: dict[str, Any] = {"coefficients": [0.5, 1.0], "support_vectors": [0.5] * 8, "n_supports": 2, "rho": [0.1]}
    return [
        one_node("LinearClassifier", [x], 2, classlabels_strings=["a", "b", "c"], post_transform="SOFTMAX", **linear),
        one_node("LinearRegressor", [x], targets=3, **linear),
        one_node("SVMClassifier", [x], 2, **svm("RBF", 3, True)),
        one_node("SVMRegressor", [x], kernel_type="POLY", kernel_params=[0.4, 0.7, 3.0], **vectors),
        one_node("TreeEnsembleClassifier", [x], 2, classlabels_int64s=[5, 7, 9], **forest("class", [0, 1, 2], True, 3)),
        one_node("TreeEnsembleRegressor", [x], n_targets=2, **forest("target", [0, 1], True, 2)),
        one_node("Scaler", [x], offset=[0.5], scale=[2.0]),
        one_node("Normalizer", [x], norm="L1"),
        one_node("Imputer", [x], imputed_value_floats=[7.0], replaced_value_float=1.0),
        one_node("FeatureVectorizer", [x, x], inputdimensions=[4, 2]),
        one_node("OneHotEncoder", [np.array([1, 2])], cats_int64s=[1, 2]),
        one_node("CategoryMapper", [np.array([1])], cats_int64s=[1], cats_strings=["a"]),
        one_node("ZipMap", [x], classlabels_int64s=[1, 2, 3, 4]),
        with_maps("CastMap", 7, 1, 1, map_form="SPARSE", max_map=4),
        with_maps("DictVectorizer", 8, 1, 1, string_vocabulary=["a"]),
    ]
