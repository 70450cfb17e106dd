"""Bugs found by random models (tests/fuzz/differential/kinds/models.py), and similar cases, compared with
onnxruntime."""

import itertools

import numpy as np
import onnxruntime
import pytest
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_array, to_tensor
from emberlet.errors import EmberletError, ModelError, ShapeError
from onnx import helper, numpy_helper
from support.onnx_models import assert_same, expected, generated
from support.rows import every


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


@every("shape", [(0,), (0, 5), (5, 0), (0, 2, 3), (2, 0, 3), (0, 0)])
@pytest.mark.parametrize("constant", [0, 1])
@pytest.mark.parametrize(
    ("operator", "dtype"), [("Add", "float32"), ("Div", "int64"), ("Xor", "bool"), ("Concat", "int32")]
)
def test_constants_without_elements_keep_their_axes(operator, dtype, constant, shape):
    attributes = {"axis": 0} if operator == "Concat" else {}
    check(operator, [np.ones(shape, dtype), np.ones(shape, dtype)], (constant,), **attributes)


@every("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8"])
@every("shapes", [((), ()), ((1,), ()), ((1, 1), (3,)), ((3,), (1,)), ((2, 3), (2, 3))])
@pytest.mark.parametrize("constants", [(1, 2), (1,), (2,)])
def test_a_choice_between_constants_keeps_their_dtype(dtype, shapes, constants):
    one, other = (np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype) for shape in shapes)
    check(
        "Where",
        [np.array([[True, False, True], [False, True, False]]), one, np.asarray(other * 3 + 1, dtype)],
        constants,
    )


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
@pytest.mark.parametrize(("shape", "keepdims"), [*itertools.product([(0,), (1, 0), (2, 0, 3)], [0, 1])])
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


def _model(operator, inputs, outputs=1, opset=21, **attributes):
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), [None] * x.ndim)
        for n, x in zip(names, inputs, strict=True)
        if n
    ]
    made = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, made, **attributes)],
        "g",
        infos,
        [helper.make_empty_tensor_value_info(n) for n in made],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


ONE, TWO = np.ones((1, 1), np.float32), np.ones((2, 2), np.float32)
BYTE = np.ones((1, 4, 1, 1), np.uint8)
UNFIT = [
    ("EyeLike", [np.ones(3, np.float32)], {}),
    ("ReverseSequence", [ONE, np.array([3])], {}),
    ("ReverseSequence", [np.ones((2, 3), np.float32), np.ones(2, np.int64)], {}),
    ("LRN", [np.ones(3, np.float32)], {"size": 3}),
    ("InstanceNormalization", [np.ones(3, np.float32), np.ones(3, np.float32), np.ones(3, np.float32)], {}),
    ("Clip", [TWO, None, np.ones(3, np.float32)], {}),
    ("ConvInteger", [BYTE, BYTE[:, :2]], {}),
    ("ConvInteger", [np.ones((1, 1, 1), np.uint8), np.ones((1, 1, 2), np.uint8)], {}),
    ("Reshape", [TWO, np.array([2, 2, 0])], {}),
    ("Reshape", [TWO, np.ones((2, 2), np.int64)], {}),
    ("ReduceSum", [TWO, np.ones((2, 2), np.int64)], {}),
    ("Slice", [TWO, np.array([0]), np.array([1]), np.array([5])], {}),
    ("Slice", [TWO, np.array([0]), np.array([1, 1]), np.array([0])], {}),
    ("Pad", [TWO, np.array([1, 1]), None, np.array([4])], {}),
    ("Pad", [TWO, np.array([1]), None, np.array([0])], {}),
    ("ScatterND", [np.ones((1, 0), np.int8), np.zeros((1, 2), np.int64), np.ones(1, np.int8)], {}),
    ("RoiAlign", [np.ones((1, 1, 2, 2), np.float32), np.ones((1, 1), np.float32), np.zeros(1, np.int64)], {}),
    (
        "ConvTranspose",
        [np.ones((1, 2, 1), np.float32), np.ones((2, 1, 1), np.float32), np.ones((1, 2, 1), np.float32)],
        {},
    ),
    ("OneHot", [np.array([1]), np.array(3), np.ones((2, 2), np.float32)], {}),
    ("Col2Im", [np.ones((1, 1, 1), np.float32), np.array([1, 1]), np.array([0, 1])], {}),
]


@pytest.mark.parametrize("backend", ["numpy", "python"])
@every(("operator", "inputs", "attributes"), UNFIT)
def test_inputs_that_do_not_fit_are_refused_in_words(operator, inputs, attributes, backend):
    """No size is known before the model runs; every error is an EmberletError raised on purpose."""
    with pytest.raises(EmberletError) as error:
        load(_model(operator, inputs, **attributes), backend)(*[to_tensor(x, backend) for x in inputs if x is not None])
    assert error.value.__cause__ is None or isinstance(error.value.__cause__, EmberletError)


@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_axes_that_are_only_known_when_the_model_runs(backend):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def run(operator, *inputs, **attributes):
        given = [x, *inputs]
        model = load(_model(operator, given, **attributes), backend)
        return to_array(model(*[to_tensor(v, backend) for v in given if v is not None]))

    sliced = run("Slice", np.array([1, -1]), np.array([3, -5]), np.array([1, -1]), np.array([1, -2]))
    np.testing.assert_array_equal(sliced, x[:, 1:3, -1:-5:-2])
    np.testing.assert_array_equal(run("Slice", np.array([1]), np.array([2])), x[1:2])
    padded = run("Pad", np.array([1, 0, 0, 2]), np.array(5, np.float32), np.array([2, 0]))
    np.testing.assert_array_equal(padded, np.pad(x, ((0, 2), (0, 0), (1, 0)), constant_values=5))
    edges = run("Pad", np.array([1, 2]), None, np.array([-1]), mode="edge")
    np.testing.assert_array_equal(edges, np.pad(x, ((0, 0), (0, 0), (1, 2)), mode="edge"))
    np.testing.assert_array_equal(run("Reshape", np.array([0, -1])), x.reshape(2, 12))


@pytest.mark.parametrize("backend", ["numpy", "python"])
@pytest.mark.parametrize("opset", [10, 21])
@every("given", [g for k in (1, 2, 3) for g in itertools.combinations(("starts", "ends", "steps"), k)])
def test_bounds_of_a_slice_of_which_some_are_given_and_some_constant(given, opset, backend):
    """The lengths of the inputs may be open too; the axes are constant or absent."""
    random = np.random.default_rng(len(given))
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    for form, axes in itertools.product(("known", "open"), (None, [2, 0])):
        count = 3 if axes is None else 2
        bounds = {
            "starts": random.integers(-3, 3, count),
            "ends": random.integers(-6, 7, count),
            "steps": random.choice([-2, -1, 1, 2], count),
        }
        constants = {n: v for n, v in bounds.items() if n not in given}
        if axes is not None:
            constants["axes"] = np.array(axes)
        names = ["x", "starts", "ends", "axes" if axes is not None else "", "steps"]
        inputs = [helper.make_tensor_value_info("x", 1, x.shape)]
        inputs += [helper.make_tensor_value_info(n, 7, [n if form == "open" else count]) for n in given]
        graph = helper.make_graph(
            [helper.make_node("Slice", names, ["y"])],
            "g",
            inputs,
            [helper.make_tensor_value_info("y", 1, ["a", "b", "c"])],
            [numpy_helper.from_array(v, n) for n, v in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=5)
        fed = {"x": x, **{n: bounds[n] for n in given}}
        try:
            module = load(model, backend)
        except EmberletError as error:
            assert form == "open" and "number of axes" in str(error)
            continue
        got = to_array(module(*[to_tensor(v, backend) for v in fed.values()]))
        (want,) = expected(model, fed)
        np.testing.assert_array_equal(got, want)


def test_windows_of_one_sample_and_ranges_of_nothing():
    for window in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        check(window, [np.array(1)])
    for x in (np.zeros(0, np.float32), np.zeros((2, 0), np.float32), np.zeros(3, np.float32)):
        model = load(_model("DynamicQuantizeLinear", [x], 3), "numpy")
        values, scale, point = [to_array(v) for v in model(to_tensor(x, "numpy"))]
        assert (values.shape, values.dtype, scale, point) == (x.shape, np.uint8, 1, 0)


@pytest.mark.parametrize("operator", ["Sum", "Mean", "Max", "Min", "Concat"])
def test_a_thousand_operands_do_not_nest(operator):
    three = [np.arange(2, dtype=np.float32) + k for k in range(3)]
    inputs = [helper.make_tensor_value_info(f"x{k}", 1, [2]) for k in range(3)]
    node = helper.make_node(
        operator, [f"x{k % 3}" for k in range(1000)], ["y"], **({"axis": 0} if operator == "Concat" else {})
    )
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    want = expected(model, {f"x{k}": x for k, x in enumerate(three)})
    assert_same(generated(model, three), want, atol=0, rtol=1e-6)


def test_batch_normalization_of_one_axis_has_one_channel():
    x = np.array([1.5, -2, 0.25], np.float32)
    check("BatchNormalization", [x, *(np.array([v], np.float32) for v in (2, 1, 0.5, 4))])
    check("BatchNormalization", [x, *(np.array([v], np.float32) for v in (2, 1, 0.5, 4))], (1, 2, 3, 4))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("axis", [-1, 1])
def test_the_statistics_of_layer_normalization_are_float32(dtype, axis):
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(dtype)
    weight = np.ones(x.shape[axis:], dtype)
    model = _model("LayerNormalization", [x, weight], 3, axis=axis)
    want = expected(model, {"i0": x, "i1": weight})
    for backend in ("numpy", "python"):
        assert_same(generated(model, [x, weight], backend), want, atol=1e-3 if dtype == np.float16 else 1e-6)


def test_a_shape_of_bools_is_refused():
    with pytest.raises(EmberletError, match="the shape is bool, expected int64"):
        load(_model("ConstantOfShape", [np.array([True])]), "numpy")


@pytest.mark.parametrize("operator", ["ReduceMin", "ReduceMax"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize(
    ("shape", "axes"), [(("n", 0, 4), [1]), (("n", 0), [0]), ((0, "n", "m"), [0, 2]), (("n", 0), [])]
)
def test_the_extreme_of_an_empty_axis_beside_open_ones(operator, dtype, shape, axes):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "axes"] if axes else ["x"], ["y"], keepdims=0)],
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.array(axes, np.int64), "axes")] if axes else [],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    x = np.zeros([{"n": 2, "m": 3}.get(d, d) for d in shape], dtype)
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    for backend in ("numpy", "python"):
        np.testing.assert_array_equal(to_array(load(model, backend)(to_tensor(x, backend))), want)


@pytest.mark.parametrize("operator", ["ReduceMin", "ReduceMax"])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[1], [0], [0, 1]])
def test_the_extreme_of_an_empty_tensor_over_axes_given_at_run_time(operator, keepdims, axes):
    check(operator, [np.zeros((0, 2), np.float32), np.array(axes)], keepdims=keepdims, opset=18)


REDUCTIONS = [
    "ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
]  # fmt: skip


def _typed(operator, inputs, opset=18, **attributes):
    """One node whose inputs have the shapes of `inputs`."""
    names = [f"i{k}" for k in range(len(inputs))]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
    ]
    node = helper.make_node(operator, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@every("operator", REDUCTIONS)
@pytest.mark.parametrize("shape", [(2, 0), (0, 0), (2, 3)])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_repeated_axis_given_at_run_time_is_refused(operator, shape, keepdims):
    x, axes = np.ones(shape, np.float32), np.array([1, -1])
    model = load(_typed(operator, [x, axes], keepdims=keepdims), "numpy")
    with pytest.raises(ShapeError, match="axis 1"):
        model(to_tensor(x, "numpy"), to_tensor(axes, "numpy"))


@pytest.mark.parametrize("operator", [*REDUCTIONS, "Squeeze", "Unsqueeze", "Reshape", "Expand", "Tile"])
def test_axes_and_sizes_of_floats_are_refused_when_the_model_is_read(operator):
    with pytest.raises(ModelError, match=r"input 1.*float32.*int64"):
        load(_typed(operator, [ONE, np.ones(2, np.float32)]), "numpy")


@pytest.mark.parametrize(
    ("operator", "inputs", "place"),
    [
        ("CumSum", [TWO, np.float32(0).reshape(())], 1),
        ("Trilu", [TWO, np.float32(0).reshape(())], 1),
        ("DFT", [np.ones((1, 4, 1), np.float32), np.float32(4).reshape(())], 1),
        ("STFT", [np.ones((1, 4), np.float32), np.float32(2).reshape(()), np.ones(2, np.float32)], 1),
    ],
)
def test_an_axis_or_a_count_that_is_a_float_is_refused_when_the_model_is_read(operator, inputs, place):
    with pytest.raises(ModelError, match=f"input {place} is float32; expected an integer"):
        load(_typed(operator, inputs), "numpy")


SLOPES = [((2, 3), (2, 2, 3)), ((1, 3), (4, 3)), ((2, 3), (5,)), ((2, 3, 4), (3,)), ((3,), (1, 3)), ((), (1,))]


@pytest.mark.parametrize(("shape", "slope"), SLOPES)
def test_a_slope_that_does_not_broadcast_to_x_is_refused(shape, slope):
    x, slope = -np.ones(shape, np.float32), np.ones(slope, np.float32)
    with pytest.raises(ModelError, match=r"slope's shape .* does not broadcast to"):
        load(_typed("PRelu", [x, slope]), "numpy")
    for backend in ("numpy", "python"):
        with pytest.raises((ModelError, ShapeError), match=r"(does|do) not broadcast"):
            load(_model("PRelu", [x, slope], opset=18), backend)(to_tensor(x, backend), to_tensor(slope, backend))


@pytest.mark.parametrize("slope", [(), (1,), (4,), (3, 1), (3, 4), (1, 1, 1), (2, 3, 4)])
def test_a_slope_whose_sizes_are_known_only_at_run_time(slope):
    x = np.linspace(-1, 1, 24).astype(np.float32).reshape(2, 3, 4)
    slope = np.linspace(0.1, 0.9, int(np.prod(slope))).astype(np.float32).reshape(slope)
    for backend in ("numpy", "python"):
        model = load(_model("PRelu", [x, slope], opset=18), backend)
        got = to_array(model(to_tensor(x, backend), to_tensor(slope, backend)))
        np.testing.assert_array_equal(got, np.where(x < 0, x * slope, x))
