"""Single operators of ai.onnx.ml, set in every way, on one row: onnxruntime's numbers, or a reason why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.errors import ModelError
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.trees_float import TreesFloat
from onnx import TensorProto, helper, numpy_helper
from support.machine_learning import forest, one_node, svm
from support.microcontrollers.modules import importable
from support.microcontrollers.rows import row_by_row, scores_of
from support.rows import every

from tools.micropython import Port

Array = np.ndarray[Any, Any]
Make = Callable[[], onnx.ModelProto]

WIDTH = 4
ROW = np.zeros((1, WIDTH), np.float32)
ROWS = np.random.default_rng(5).normal(0, 1, (25, WIDTH)).astype(np.float32)
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC")


def _r(*shape: int) -> list[float]:
    return [float(v) for v in np.random.default_rng(len(shape) + sum(shape)).normal(0, 1, shape).reshape(-1)]


def given(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def linear(columns: int, labels: int, transform: str, **more: Any) -> Make:
    how = {"coefficients": _r(columns, WIDTH), "intercepts": _r(columns), "classlabels_ints": list(range(labels))}
    return lambda: one_node("LinearClassifier", [ROW], 2, post_transform=transform, **given(how | more))


def regressor(targets: int, transform: str, **more: Any) -> Make:
    how = {"coefficients": _r(targets, WIDTH), "intercepts": _r(targets), "targets": targets}
    return lambda: one_node("LinearRegressor", [ROW], post_transform=transform, **given(how | more))


def machine(kernel: str, classes: int, proba: bool = False, **more: Any) -> Make:
    return lambda: one_node("SVMClassifier", [ROW], 2, **svm(kernel, classes, proba, **more))


def vectors(kernel: str, **more: Any) -> Make:
    how: dict[str, Any] = {"kernel_type": kernel, "kernel_params": [0.4, 0.7, 3.0], "rho": [0.1]}
    how |= {"coefficients": [0.5, -1.0, 0.25], "support_vectors": _r(3, WIDTH), "n_supports": 3}
    return lambda: one_node("SVMRegressor", [ROW], **given(how | more))


def classes(targets: list[int], labels: int, transform: str, positive: bool = True, **more: Any) -> Make:
    """An ensemble that scores each class, or, with one target, one of two."""
    how = forest("class", targets, positive, min(len(targets), 2))
    how |= {"classlabels_int64s": list(range(labels)), "post_transform": transform, **more}
    return lambda: one_node("TreeEnsembleClassifier", [ROW], 2, **how)


def targets(count: int, members: int = 3, **more: Any) -> Make:
    how = forest("target", list(range(count)), False, min(count, 2), members)
    return lambda: one_node("TreeEnsembleRegressor", [ROW], n_targets=count, **how, **more)


def trees(**more: Any) -> Make:
    """An ensemble of version 5: two trees of a branch or two, and a leaf alone."""
    how: dict[str, Any] = {
        "nodes_featureids": [0, 2, 1, 3],
        "nodes_modes": numpy_helper.from_array(np.array([0, 1, 3, 0], np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array([0.2, -0.4, 0.1, 0.0], np.float32)),
        "nodes_truenodeids": [1, 0, 2, 4],
        "nodes_falsenodeids": [2, 1, 3, 4],
        "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falseleafs": [1, 1, 1, 1],
        "tree_roots": [0, 2, 3],
        "n_targets": 2,
        "leaf_targetids": [0, 1, 0, 1, 0],
        "leaf_weights": numpy_helper.from_array(np.array([0.5, -1.25, 2.0, 0.75, -3.0], np.float32)),
    }
    return lambda: one_node("TreeEnsemble", [ROW], version=5, **(how | more))


def before(first: tuple[str, str, dict[str, Any]], make: Make) -> Make:
    """A model whose input passes another operator first: (domain, operator, attributes)."""

    def made() -> onnx.ModelProto:
        model, (domain, op, how) = make(), first
        prepared = f"prepared{len(model.graph.node)}"
        model.graph.node[0].input[0] = prepared
        model.graph.node.insert(0, helper.make_node(op, ["x0"], [prepared], domain=domain, **how))
        return model

    return made


ML = "ai.onnx.ml"
SCALER = {"offset": [0.5, -1.0, 0.25, 0.0], "scale": [2.0, -0.5, 0.0, -3.0]}

COMPUTED: dict[str, Make] = {
    **{f"linear, {t}": linear(3, 3, t) for t in TRANSFORMS},
    **{f"linear of one score, {t}": linear(1, 2, t) for t in TRANSFORMS if t != "SOFTMAX"},
    **{f"regressor, {t}": regressor(3, t) for t in TRANSFORMS},
    "regressor of one": regressor(1, "NONE"),
    "regressor without intercepts": regressor(2, "NONE", intercepts=None),
    **{f"machine of {n}, {k}": machine(k, n) for k in ("LINEAR", "POLY", "RBF", "SIGMOID") for n in (2, 3, 4)},
    **{f"machine of {n} with chances": machine("RBF", n, True) for n in (2, 3, 4)},
    **{f"vectors, {k}": vectors(k) for k in ("LINEAR", "POLY", "RBF", "SIGMOID")},
    "vectors of one class": vectors("RBF", one_class=1, rho=[-0.6]),
    "a product with a row": vectors("LINEAR", n_supports=0, coefficients=_r(4), support_vectors=None),
    **{f"classes of trees, {t}": classes([0, 1, 2], 3, t) for t in TRANSFORMS},
    "classes with a base": classes([0, 1, 2], 3, "NONE", base_values=[0.5, -0.25, 1.0]),
    **{f"one score of trees, {t}": classes([0], 2, t) for t in ("NONE", "LOGISTIC")},
    "one score of either sign": classes([0], 2, "NONE", positive=False),
    "one score with a base": classes([0], 2, "LOGISTIC", positive=False, base_values=[0.3]),
    **{f"{n} targets": targets(n) for n in (1, 2, 3)},
    "targets with a base": targets(2, base_values=[0.5, -1.0]),
    "averages": targets(2, aggregate_function="AVERAGE"),
    "averages with a base": targets(2, aggregate_function="AVERAGE", base_values=[0.5, -1.0]),
    "averages with a base far above": targets(2, 20, aggregate_function="AVERAGE", base_values=[50.0, -30.0]),
    "targets, SOFTMAX": targets(3, post_transform="SOFTMAX"),
    "targets, LOGISTIC": targets(3, post_transform="LOGISTIC"),
    "trees": trees(),
    "averages of trees": trees(aggregate_function=0),
    "scaled": lambda: one_node("Scaler", [ROW], **SCALER),
    "scaled by one number": lambda: one_node("Scaler", [ROW], offset=[0.5], scale=[2.0]),
    **{f"normalized, {n}": (lambda n=n: one_node("Normalizer", [ROW], norm=n)) for n in ("L1", "L2", "MAX")},
    "a threshold": lambda: one_node("Binarizer", [ROW], threshold=0.25),
    "another number": lambda: one_node("Imputer", [ROW], imputed_value_floats=[7.0], replaced_value_float=0.5),
    "categories": lambda: one_node("OneHotEncoder", [ROW], cats_int64s=[2, 0, 1], zeros=1),
}  # fmt: skip


def alone(model: onnx.ModelProto, output: int = -1) -> bytes:
    """The model with its last output, the scores, alone."""
    kept = model.graph.output[output]
    del model.graph.output[:]
    model.graph.output.append(kept)
    return bytes(model.SerializeToString())


def rows_for(name: str) -> Array:
    if name == "categories":
        return np.random.default_rng(1).integers(0, 4, (12, WIDTH)).astype(np.float32)
    return np.where(ROWS > 1, np.float32(0.5), ROWS) if name == "another number" else ROWS


def after(result: BuildResult, x: Array) -> Array:
    """The scores, with the transform that the module applies."""
    found = scores_of(result, x)
    sums = result.graph.sums.get(result.graph.outputs[0])
    if sums is None or sums.transform is None:
        return found
    if sums.transform == "logistic":
        return np.asarray(1 / (1 + np.exp(-found)))
    e = np.exp(found - found.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


@every("name", COMPUTED)
@pytest.mark.parametrize("behind", ["", "a sum", "scaled", "scaled twice"])
def test_scores_are_onnxruntimes(name: str, behind: str) -> None:
    """Alone, which gives trees ranks of the input, and behind other layers."""
    make = COMPUTED[name]
    if behind.startswith("scaled"):
        make = before((ML, "Scaler", SCALER), make)
    if behind == "scaled twice":
        make = before((ML, "Scaler", {"offset": [0.25], "scale": [-1.5]}), make)
    if behind == "a sum":
        make = before(("", "Neg", {}), make)
    data = alone(make())
    result = build(read_graph(data, "m"), Options("m", floats=True))
    rows = rows_for(name)
    wanted = row_by_row(data, rows)[-1].reshape(len(rows), -1)
    np.testing.assert_allclose(after(result, rows).reshape(wanted.shape), wanted, rtol=2e-4, atol=2e-5)


REFUSED: dict[str, Make] = {
    "post_transform softmax_zero is not supported; NONE, SOFTMAX and LOGISTIC are": linear(3, 3, "SOFTMAX_ZERO"),
    "post_transform probit is not supported; NONE": linear(3, 3, "PROBIT"),
    "aggregate_function min and post_transform None": targets(2, aggregate_function="MIN"),
    "aggregate_function max and": targets(2, aggregate_function="MAX"),
    "and post_transform softmax_zero are not": targets(2, post_transform="SOFTMAX_ZERO"),
    "some leaves are NaN or infinite": trees(
        leaf_weights=numpy_helper.from_array(np.array([0.5, np.inf, 2.0, 0.75, -3.0], np.float32))
    ),
    r"the input has shape \(2, 4\); only one row is": lambda: one_node("Normalizer", [np.zeros((2, 4), np.float32)]),
    r"the input has shape \(2, 4\); one row of at most": lambda: one_node(
        "TreeEnsembleRegressor", [np.zeros((2, 4), np.float32)], n_targets=1, **forest("target", [0], False)
    ),
    r"the input has shape \(1, 16385\); one row of at most 16384": lambda: one_node(
        "TreeEnsembleRegressor", [np.zeros((1, 16385), np.float32)], n_targets=1, **forest("target", [0], False)
    ),
    "categories that are text are not supported": lambda: one_node(
        "OneHotEncoder", [np.array(["a"], object)], cats_strings=["a", "b"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_computed_is_refused_with_a_reason(reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        read_graph(REFUSED[reason]().SerializeToString(), "m")


def test_the_widest_row_of_trees_is_taken() -> None:
    wide = np.zeros((1, 16384), np.float32)
    model = one_node("TreeEnsembleRegressor", [wide], n_targets=1, **forest("target", [0], False))
    graph = read_graph(model.SerializeToString(), "m")
    assert len(graph.cuts[graph.inputs[0]]) == 16384


def test_infinite_thresholds_are_compared() -> None:
    """Also behind a scale of zero, where every number becomes the same."""
    splits = numpy_helper.from_array(np.array([np.inf, -np.inf, 0.0, 0.0], np.float32))
    for make in (trees(nodes_splits=splits), before((ML, "Scaler", SCALER), trees(nodes_splits=splits))):
        data = alone(make())
        wanted = row_by_row(data, ROWS)[-1]
        np.testing.assert_allclose(
            after(build(read_graph(data, "m"), Options("m")), ROWS), wanted, rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("whole", [True, False])
def test_a_place_for_each_category(whole: bool) -> None:
    x = np.array([[2, 5, 1, 0]], np.int64 if whole else np.float32)
    model = one_node("OneHotEncoder", [x], cats_int64s=[2, 0, 1], zeros=1)
    kind = TensorProto.INT64 if whole else TensorProto.FLOAT
    assert model.graph.input[0].type.tensor_type.elem_type == kind
    graph = build(read_graph(model.SerializeToString(), "m"), Options("m", floats=True)).graph
    found = graph.run({graph.inputs[0]: x.astype(np.float32)})[graph.outputs[0]].reshape(4, 3)
    np.testing.assert_array_equal(found, [[1, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0]])


OF_TREES = [name for name in COMPUTED if "tree" in name or "target" in name or "average" in name]


@pytest.mark.parametrize("name", OF_TREES)
def test_trees_behind_a_layer_predict_on_micropython(name: str, unix_port: Port, tmp_path: Path) -> None:
    data = alone(before(("", "Neg", {}), COMPUTED[name])())
    result = build(read_graph(data, "m"), Options("m", floats=True))
    assert any(isinstance(layer, TreesFloat) for layer in result.graph.layers)
    script = importable(tmp_path, result) + f"import m\nfor row in {ROWS.tolist()}:\n    print(*m.predict(row))\n"
    lines = unix_port.run(script, heap="4M", micropypath=[]).check().stdout.splitlines()
    found = np.array([[float(v) for v in line.split()] for line in lines])
    wanted = row_by_row(data, ROWS)[-1].reshape(found.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
