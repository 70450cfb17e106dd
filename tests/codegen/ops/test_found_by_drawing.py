"""What random models (tests/fuzz/differential/kinds/models.py) have found, and its kind, against onnxruntime."""

import itertools

import numpy as np
import onnxruntime
import pytest
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_array, to_tensor
from fuzz.differential import engine
from onnx import helper, numpy_helper


def check(operator, inputs, constants=(), opset=18, **attributes):
    """One node on NumPy and in plain Python; the inputs whose numbers are in `constants` are initializers."""
    names = [f"i{k}" for k in range(len(inputs))]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **attributes)],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for k, (n, x) in enumerate(zip(names, inputs, strict=True))
            if k not in constants
        ],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(inputs[k], names[k]) for k in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    fed = {n: x for k, (n, x) in enumerate(zip(names, inputs, strict=True)) if k not in constants}
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, fed)
    for backend in ("numpy", "python"):
        got = to_array(load(model, backend)(*[to_tensor(x, backend) for x in fed.values()]))
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (0, 2, 3), (2, 0, 3), (0, 0)])
@pytest.mark.parametrize("constant", [0, 1])
@pytest.mark.parametrize(
    ("operator", "dtype"), [("Add", "float32"), ("Div", "int64"), ("Xor", "bool"), ("Concat", "int32")]
)
def test_constants_without_elements_keep_their_axes(operator, dtype, constant, shape):
    attributes = {"axis": 0} if operator == "Concat" else {}
    check(operator, [np.ones(shape, dtype), np.ones(shape, dtype)], (constant,), **attributes)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_the_places_of_a_single_number_that_is_not_zero(value):
    check("NonZero", [np.array(value, np.float32)])


@pytest.mark.parametrize(
    ("operator", "dtype"),
    [
        *itertools.product(["ReduceLogSum", "ReduceL1", "ReduceL2", "ReduceSumSquare"], ["int32", "int64"]),
        ("ReduceLogSumExp", "int32"),  # onnxruntime has no other
    ],
)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions_of_integers_stay_integers(operator, dtype, keepdims):
    check(operator, [np.array([[3, 4], [5, 12]], dtype), np.array([1])], (1,), keepdims=keepdims)


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize(("shape", "keepdims"), itertools.product([(0,), (1, 0), (2, 0, 3)], [0, 1]))
def test_the_extremes_of_nothing(operator, shape, keepdims):
    check(operator, [np.zeros(shape, np.float32)], keepdims=keepdims, opset=20)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_place_of_the_extreme_of_one_number(operator, axis, keepdims):
    check(operator, [np.array(2, np.float32)], axis=axis, keepdims=keepdims, opset=10)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_a_slope_keeps_the_axes_of_its_operand(shape):
    check(
        "PRelu",
        [np.linspace(-1, 1, int(np.prod(shape))).astype(np.float32).reshape(shape), np.float32(0.5).reshape(())],
        (1,),
    )


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_the_place_of_the_largest_of_nothing(shape):
    check("Hardmax", [np.zeros(shape, np.float32)])


def test_random_models_agree_with_onnxruntime_or_the_reference():
    ran = engine.run(engine.kind("models"), seed=20261122, count=250)
    assert ran.cases == 250 and not ran.found
