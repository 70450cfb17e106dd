"""Bugs found by random models (tests/fuzz/differential/kinds/models.py): what is refused, and axes that are known only
when the model runs. Results are compared with onnxruntime's there and in test_changed_nodes.py."""

import numpy as np
import pytest
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_array, to_tensor
from emberlet.errors import EmberletError, ModelError, ShapeError
from onnx import helper
from support.onnx_models import assert_same, expected, generated
from support.rows import every


def _model(operator, inputs, opset=21, typed=False, **attributes):
    """One node; None: an input that is absent. typed: the inputs have the shapes of `inputs`, else open sizes."""
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    infos = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape if typed else [None] * x.ndim
        )
        for n, x in zip(names, inputs, strict=True)
        if n
    ]
    node = helper.make_node(operator, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if typed else 10)


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


def test_a_shape_of_bools_is_refused():
    with pytest.raises(EmberletError, match="the shape is bool, expected int64"):
        load(_model("ConstantOfShape", [np.array([True])]), "numpy")


REDUCTIONS = [
    "ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
]  # fmt: skip


@every("operator", REDUCTIONS)
@pytest.mark.parametrize("shape", [(2, 0), (0, 0), (2, 3)])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_repeated_axis_given_at_run_time_is_refused(operator, shape, keepdims):
    x, axes = np.ones(shape, np.float32), np.array([1, -1])
    model = load(_model(operator, [x, axes], opset=18, typed=True, keepdims=keepdims), "numpy")
    with pytest.raises(ShapeError, match="axis 1"):
        model(to_tensor(x, "numpy"), to_tensor(axes, "numpy"))


@pytest.mark.parametrize("operator", [*REDUCTIONS, "Squeeze", "Unsqueeze", "Reshape", "Expand", "Tile"])
def test_axes_and_sizes_of_floats_are_refused_when_the_model_is_read(operator):
    with pytest.raises(ModelError, match=r"input 1.*float32.*int64"):
        load(_model(operator, [ONE, np.ones(2, np.float32)], opset=18, typed=True), "numpy")


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
        load(_model(operator, inputs, opset=18, typed=True), "numpy")


SLOPES = [((2, 3), (2, 2, 3)), ((1, 3), (4, 3)), ((2, 3), (5,)), ((2, 3, 4), (3,)), ((3,), (1, 3)), ((), (1,))]


@pytest.mark.parametrize(("shape", "slope"), SLOPES)
def test_a_slope_that_does_not_broadcast_to_x_is_refused(shape, slope):
    x, slope = -np.ones(shape, np.float32), np.ones(slope, np.float32)
    with pytest.raises(ModelError, match=r"slope's shape .* does not broadcast to"):
        load(_model("PRelu", [x, slope], opset=18, typed=True), "numpy")
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
