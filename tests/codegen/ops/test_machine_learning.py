"""Operators of ai.onnx.ml: the generated code against onnxruntime, and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import load
from emberlet.codegen.generation import translate
from emberlet.codegen.onnx_backend import to_array, to_tensor
from emberlet.errors import EmberletError, IndexingError
from onnx import helper
from support import machine_learning
from support.machine_learning import Array, forest, one_node, svm, with_maps
from support.onnx_models import assert_same, expected, source

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(12, 4)).astype(np.float32)
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")


def run(model: onnx.ModelProto, *inputs: Any, backend: str = "numpy") -> list[Any]:
    out = load(model, backend)(*(to_tensor(x, backend) for x in inputs))
    return [to_array(o) for o in (out if isinstance(out, tuple) else (out,))]


def check(
    op: str,
    *inputs: Array,
    outputs: int = 1,
    atol: float = 1e-5,
    backends: Sequence[str] = ("numpy", "python"),
    **attributes: Any,
) -> None:
    model = one_node(op, list(inputs), outputs, **attributes)
    want = expected(model, {f"x{i}": x for i, x in enumerate(inputs)})
    for backend in backends:
        for got, right in zip(run(model, *inputs, backend=backend), want, strict=True):
            if right.dtype == object:
                assert got.tolist() == right.tolist()
            else:
                assert_same([got], [right], atol)


# -- features ---------------------------------------------------------------------------------------------------------


def test_features_side_by_side() -> None:
    check("FeatureVectorizer", X, X[:, :2] * 2, inputdimensions=[4, 2])
    check("FeatureVectorizer", np.rint(X).astype(np.int64), inputdimensions=[4])
    cut = run(one_node("FeatureVectorizer", [X, X], inputdimensions=[2, 6]), X, X)[0]
    assert_same([cut], [np.concatenate([X[:, :2], X, np.zeros((12, 2), np.float32)], 1)])


def test_one_hot_encoder() -> None:
    check("OneHotEncoder", np.array([[1, 5], [2, 1]]), cats_int64s=[1, 2, 3])
    check("OneHotEncoder", np.array([1.0, 2.5, 9.0], np.float32), cats_int64s=[1, 2, 3])
    check("OneHotEncoder", np.array(["a", "c"], object), cats_strings=["a", "b"])
    strict = load(one_node("OneHotEncoder", [np.array([1, 9])], cats_int64s=[1, 2], zeros=0), "numpy")
    assert strict(to_tensor(np.array([2, 1]), "numpy")).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(IndexingError, match="9 is not one of the 2 categories"):
        strict(to_tensor(np.array([1, 9]), "numpy"))


def test_the_first_label_encoder_maps_strings_to_their_places_and_back() -> None:
    classes: dict[str, Any] = {"classes_strings": ["five", "six", "three"]}
    for x in (np.array(["six", "one", "three"], object), np.array([[2, 0], [7, 1]])):
        model = one_node("LabelEncoder", [x], version=1, default_int64=-7, default_string="none", **classes)
        want = expected(model, {"x0": x})[0]
        assert run(model, x)[0].tolist() == want.tolist()


def test_dictionaries_become_rows() -> None:
    cases: list[tuple[onnx.ModelProto, dict[Any, Any]]] = [
        (with_maps("DictVectorizer", 8, 1, 1, string_vocabulary=["a", "b", "c"]), {"b": 2.5, "a": 1.0}),
        (with_maps("DictVectorizer", 7, 1, 1, int64_vocabulary=[4, 2]), {2: 0.5, 9: 1.0}),
        (with_maps("CastMap", 7, 1, 1), {3: 1.5, 1: 2.5}),
        (with_maps("CastMap", 7, 1, 7, cast_to="TO_INT64"), {3: 1.5, 1: 2.5}),
        (with_maps("CastMap", 7, 1, 1, map_form="SPARSE", max_map=4), {3: 1.5, 1: 2.5}),
    ]
    for model, given in cases:  # onnxruntime's Python API knows only dicts of floats
        assert_same(run(model, given), expected(model, {"x": given}))  # type: ignore[dict-item]
    words = {3: "1.5", 1: "2"}
    assert_same(run(with_maps("CastMap", 7, 8, 1), words), [np.array([[2, 1.5]], np.float32)])
    assert run(with_maps("CastMap", 7, 1, 8, cast_to="TO_STRING"), {3: 1.5, 1: 2.0})[0].tolist() == [["2.0", "1.5"]]
    assert run(with_maps("DictVectorizer", 8, 7, 7, string_vocabulary=["a", "b"]), {"b": 3})[0].tolist() == [[0, 3]]
    with pytest.raises(IndexingError, match="the key 9 is outside"):
        run(with_maps("CastMap", 7, 1, 1, map_form="SPARSE", max_map=4), {9: 1.5})


# -- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_models(transform: str) -> None:
    weights = RANDOM.normal(size=12).tolist()
    three: dict[str, Any] = {"coefficients": weights, "intercepts": [0.1, -0.2, 0.3], "post_transform": transform}
    if transform != "LOGISTIC":  # onnxruntime makes two columns of a single target there
        check("LinearRegressor", X, coefficients=weights[:4], intercepts=[0.5], post_transform=transform)
    check("LinearRegressor", X, targets=3, **three)
    check("LinearClassifier", X, outputs=2, classlabels_ints=[5, 0, 9], **three)
    check("LinearClassifier", X, outputs=2, classlabels_ints=[0, 1, 2], **three)
    check("LinearClassifier", X, outputs=2, classlabels_strings=["a", "b", "c"], **three)
    check("LinearClassifier", np.rint(X * 3).astype(np.int64), outputs=2, classlabels_ints=[0, 1, 2], **three)
    two: dict[str, Any] = {"coefficients": weights[:4], "intercepts": [0.1], "post_transform": transform}
    check("LinearClassifier", X, outputs=2, classlabels_ints=[5, 7], **two)
    check("LinearClassifier", X, outputs=2, classlabels_strings=["no", "yes"], **two)


def test_probit_is_the_inverse_of_the_normal_distribution() -> None:
    """onnxruntime approximates it to two digits."""
    from statistics import NormalDist

    model = one_node("LinearRegressor", [X[:3, :1]], coefficients=[1.0], post_transform="PROBIT")
    chances = np.array([[0.02], [0.5], [0.9]], np.float32)
    want = np.array([[NormalDist().inv_cdf(float(p))] for p in chances[:, 0]], np.float32)
    assert_same(run(model, chances), [want])


def test_a_linear_classifier_reads_as_one() -> None:
    model = one_node("LinearClassifier", [X], 2, coefficients=[1.0] * 12, intercepts=[0.0, 1.0, 2.0],
                     classlabels_strings=["a", "b", "c"], post_transform="SOFTMAX")  # fmt: skip
    text = source(model)
    assert "scores = self.linear1(x0)" in text
    assert "F.softmax(scores)" in text


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("proba", [False, True], ids=["decisions", "probabilities"])
def test_support_vectors_that_classify(kernel: str, classes: int, proba: bool) -> None:
    check("SVMClassifier", X, outputs=2, atol=1e-4, **svm(kernel, classes, proba))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_of_decisions(transform: str) -> None:
    for classes in (2, 3):
        check("SVMClassifier", X, outputs=2, atol=1e-4, **svm("RBF", classes, post_transform=transform))


def test_support_vectors_with_labels_that_are_words_and_without_vectors() -> None:
    words = svm("RBF", 3)
    words["classlabels_strings"] = ["a", "b", "c"]
    del words["classlabels_ints"]
    check("SVMClassifier", X, outputs=2, **words)
    check("SVMClassifier", X, outputs=2, coefficients=RANDOM.normal(size=12).tolist(), rho=[0.25], kernel_type="LINEAR",
          kernel_params=[0.0, 0.0, 0.0], classlabels_ints=[4, 2, 7])  # fmt: skip


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors_that_regress(kernel: str) -> None:
    given: dict[str, Any] = {"kernel_type": kernel, "kernel_params": [0.4, 0.7, 3.0], "rho": [0.3]}
    given.update(coefficients=RANDOM.normal(size=5).tolist(), support_vectors=RANDOM.normal(size=20).tolist())
    check("SVMRegressor", X, n_supports=5, **given)
    check("SVMRegressor", X, n_supports=5, one_class=1, **given)
    check(
        "SVMRegressor",
        X,
        coefficients=RANDOM.normal(size=4).tolist(),
        rho=[0.1],
        kernel_type="LINEAR",
        kernel_params=[0.0, 0.0, 0.0],
    )


# -- trees ------------------------------------------------------------------------------------------------------------


GAPS = np.where(RANDOM.random(X.shape) < 0.2, np.nan, X).astype(np.float32)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_forests_that_regress(aggregate: str) -> None:
    check("TreeEnsembleRegressor", GAPS, n_targets=1, aggregate_function=aggregate, **forest("target", [0], False))
    for entries in (1, 2):
        given = forest("target", [0, 1], False, entries)
        check("TreeEnsembleRegressor", X, n_targets=2, aggregate_function=aggregate, **given)
    if aggregate == "SUM":
        check("TreeEnsembleRegressor", X, n_targets=2, base_values=[0.5, -1.0], **forest("target", [0, 1], False, 2))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("positive", [True, False])
def test_forests_that_classify(transform: str, positive: bool) -> None:
    labels: dict[str, Any] = {"classlabels_int64s": [5, 7, 9], "post_transform": transform}
    check("TreeEnsembleClassifier", GAPS, outputs=2, **forest("class", [0, 1, 2], positive, 3), **labels)
    two: dict[str, Any] = {"classlabels_int64s": [5, 7], "post_transform": transform}
    check("TreeEnsembleClassifier", X, outputs=2, **forest("class", [0], positive), **two)
    check("TreeEnsembleClassifier", X, outputs=2, base_values=[0.2], **forest("class", [0], positive), **two)
    words: dict[str, Any] = {"classlabels_strings": ["no", "yes"], "post_transform": transform}
    check("TreeEnsembleClassifier", X, outputs=2, **forest("class", [0], positive), **words)


def test_two_classes_with_leaves_for_both_have_the_label_of_the_higher() -> None:
    """onnxruntime returns 0 and 1 there whatever the labels are; ONNX's reference does as here."""
    from onnx.reference import ReferenceEvaluator

    model = one_node("TreeEnsembleClassifier", [X], 2, **forest("class", [0, 1], True, 2), classlabels_int64s=[5, 7])
    want: Any = ReferenceEvaluator(model).run(None, {"x0": X})
    assert_same(run(model, X), want)


def test_a_forest_of_doubles_and_tensors() -> None:
    given = forest("target", [0, 1], False)
    for key in ("nodes_values", "target_weights"):
        given[key + "_as_tensor"] = helper.make_tensor(key, 11, [len(given[key])], given.pop(key))
    check("TreeEnsembleRegressor", X.astype(np.float64), n_targets=2, **given)


@pytest.mark.needs("gpu-driver")
def test_all_of_it_on_a_gpu() -> None:
    gpu = {"backends": ("wgpu",), "atol": 1e-4}
    check("Scaler", X, offset=[0.5], scale=[2.0], **gpu)
    check("Normalizer", X, norm="L2", **gpu)
    check("Imputer", GAPS, imputed_value_floats=[7.0, 8.0, 9.0, 1.0], replaced_value_float=float("nan"), **gpu)
    check("OneHotEncoder", np.array([[1, 5], [2, 1]]), cats_int64s=[1, 2, 3], **gpu)
    two: dict[str, Any] = {"coefficients": [0.3, -0.2, 0.5, 0.1], "intercepts": [0.1], "outputs": 2}
    check("LinearClassifier", X, classlabels_strings=["no", "yes"], **two, **gpu)
    check("SVMClassifier", X, outputs=2, **svm("RBF", 3, True), **gpu)
    check("SVMRegressor", X, coefficients=[0.5, 1.0], support_vectors=[0.5] * 8, n_supports=2, rho=[0.1],
          kernel_type="POLY", kernel_params=[0.4, 0.7, 3.0], **gpu)  # fmt: skip
    given = forest("class", [0, 1, 2], True, 3)
    check("TreeEnsembleClassifier", GAPS, outputs=2, classlabels_int64s=[5, 7, 9], **given, **gpu)


# -- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", machine_learning.models(), ids=lambda m: m.graph.node[0].op_type)
def test_an_input_of_any_dtype_is_translated_or_refused_on_purpose(model: onnx.ModelProto) -> None:
    for code in range(1, 27):
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        changed.graph.input[0].type.tensor_type.elem_type = code
        try:
            compile(translate(changed.SerializeToString())[1].source, "generated", "exec")
        except EmberletError as error:
            assert error.__cause__ is None or isinstance(error.__cause__, EmberletError), (code, error.__cause__)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_scaler(dtype: type) -> None:
    x: Array = (X * 3).astype(dtype)
    check("Scaler", x, offset=[0.5], scale=[2.0])
    check("Scaler", x, offset=[0.5, 1.0, -2.0, 0.0], scale=[2.0, 0.5, 1.5, 1.0])
    check("Scaler", x[0], offset=[0.5, 1.0, -2.0, 0.0], scale=[2.0, 0.5, 1.5, 1.0])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    x = X.copy()
    x[2] = 0
    for given in (x, x[1], np.rint(x * 5).astype(np.int64)):
        check("Normalizer", given, norm=norm)


def test_imputer() -> None:
    x = X.copy()
    x[1, 2] = x[3, 0] = np.nan
    check("Imputer", x, imputed_value_floats=[7.0], replaced_value_float=float("nan"))
    check("Imputer", x, imputed_value_floats=[7.0, 8.0, 9.0, 1.0], replaced_value_float=float("nan"))
    check("Imputer", np.rint(X).astype(np.int64), imputed_value_int64s=[7, 8, 9, 10], replaced_value_int64=-1)
