"""Parts of .tflite files that cannot be converted are refused with the reason, and similar parts that can be are
not."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import flatbuffers
import numpy as np
import pytest
import tflite
from emberlet.errors import EmberletError, FormatError, ModelError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.tflite.importing import read_tflite
from emberlet.micro.builder.tflite.reading import FileTensor, read_file, values
from support.rows import every

from tools.microcontrollers.tflite_files import File

Array = np.ndarray[Any, Any]
Grid = tuple[float, int]

IMAGE = (1, 4, 4, 3)
WINDOW = {"Padding": 1, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}


def _ones(*shape: int, dtype: str = "float32") -> Array:
    return np.ones(shape, dtype)


def _i(*numbers: Any) -> Array:
    return np.array(numbers, np.int32)


def model(
    kind: str,
    *constants: Any,
    shape: Sequence[int] = IMAGE,
    out: Sequence[int] = IMAGE,
    table: str = "",
    dtype: str = "float32",
    grid: Grid | None = None,
    out_grid: Grid | None = None,
    at: int = 0,
    outputs: int = 1,
    out_dtype: str = "",
    **options: Any,
) -> Graph:
    """The graph of one operator of x, at place `at` of its inputs, and constants: an array, (array, scales, zeros) or
    (array, scales, zeros, axis), or a number of a tensor. grid: that of x and, unless there is another, of y."""
    file = File()
    scale, zero = grid or (0.0, 0)
    x = file.tensor(shape, dtype, scale, zero)
    given = []
    for c in constants:
        if isinstance(c, int):
            given.append(c)
        elif isinstance(c, tuple):
            given.append(file.constant(*c))
        else:
            given.append(file.constant(c))
    given.insert(at, x)
    ys = [file.tensor(out, out_dtype or dtype, *(out_grid or (scale, zero))) for _ in range(outputs)]
    file.operator(kind, given, ys, table, **options)
    file.inputs, file.outputs = [x], ys
    return read_graph(file.written(), "m")


def quantized(kind: str, weights: Any, bias: Any = None, **more: Any) -> Graph:
    given = [weights] if bias is None else [weights, bias]
    return model(kind, *given, **({"grid": (0.1, 0), "dtype": "int8"} | more))


def dense(weights: Any, bias: Any = None, **more: Any) -> Graph:
    return quantized("FULLY_CONNECTED", weights, bias, shape=(1, 4), out=(1, 2), table="FullyConnected", **more)


def conv(weights: Any, **more: Any) -> Graph:
    how: dict[str, Any] = {"table": "Conv2D", **WINDOW, **more}
    return model("CONV_2D", weights, **({"out": (1, 4, 4, 2)} | how))


def cut(begin: Array, end: Array, steps: Array, **masks: int) -> Graph:
    return model("STRIDED_SLICE", begin, end, steps, shape=(1, 6), out=(1, 3), table="StridedSlice", **masks)


I8 = _ones(2, 4, dtype="int8")
KERNEL = _ones(2, 1, 1, 3)

ACCEPTED: dict[str, Callable[[], Graph]] = {
    "weights with a zero point": lambda: dense((I8, [0.1], [3])),
    "a convolution of groups": lambda: conv(_ones(3, 1, 1, 1), out=IMAGE),
    "the greatest zero point": lambda: model("RELU", dtype="int8", grid=(0.1, 127)),
    "the least zero point": lambda: model("RELU", dtype="int8", grid=(0.1, -128)),
    "the greatest byte": lambda: model("RELU", dtype="uint8", grid=(0.1, 255)),
    "a cast between floats": lambda: model("CAST", dtype="float16", out_dtype="float32"),
    "a number in place of a row of one": lambda: model("RELU", shape=(1, 1), out=()),
}  # fmt: skip

REFUSED: dict[str, Callable[[], Graph]] = {
    "strides (0, 1), dilations (1, 1) and a kernel of (1, 1) are not": lambda: conv(KERNEL, StrideH=0),
    "strides (1, 0), dilations (1, 1) and a kernel of (1, 1) are not": lambda: conv(KERNEL, StrideW=0),
    "strides (1, 1), dilations (1, -1) and a kernel of (1, 1) are not": lambda: conv(KERNEL, DilationWFactor=-1),
    "strides (1, 1), dilations (0, 1) and a kernel of (1, 1) are not": lambda: conv(KERNEL, DilationHFactor=0),
    "dilations (1, 1) and a kernel of (0, 1) are not": lambda: model(
        "MAX_POOL_2D", table="Pool2D", Padding=1, StrideH=1, StrideW=1, FilterWidth=1
    ),
    "the weights have shape (2, 1, 3), expected 4 axes": lambda: conv(_ones(2, 1, 3)),
    "the input has 3 channels, but the weights are for 2": lambda: conv(_ones(2, 1, 1, 2)),
    "the input has shape (4, 3), expected an image": lambda: conv(KERNEL, shape=(4, 3)),
    "depthwise weights of shape (2, 1, 1, 3) are not supported": lambda: model(
        "DEPTHWISE_CONV_2D", _ones(2, 1, 1, 3), table="DepthwiseConv2D", **WINDOW
    ),
    "an output of shape (1, 3, 4, 2) does not fit an input of shape (1, 4, 4, 3)": lambda: model(
        "TRANSPOSE_CONV", _i(1, 3, 4, 2), KERNEL, at=2, table="TransposeConv", Padding=1, StrideH=1, StrideW=1
    ),
    "an output of shape (1, 4, 3, 2) does not fit an input of shape (1, 4, 4, 3)": lambda: model(
        "TRANSPOSE_CONV", _i(1, 4, 3, 2), KERNEL, at=2, table="TransposeConv", Padding=1, StrideH=1, StrideW=1
    ),
    "an output of shape (4, 4) is not supported": lambda: model(
        "TRANSPOSE_CONV", _i(4, 4), KERNEL, at=2, table="TransposeConv", Padding=1, StrideH=1, StrideW=1
    ),
    "int8 or uint8 with one zero point for all": lambda: dense((I8, [0.1, 0.2], [0, 1])),
    "the weights must be int8 or uint8": lambda: dense((_ones(2, 4, dtype="int16"), [0.1], [0])),
    "a scale for each index of axis 1, expected axis 0": lambda: dense((I8, [0.1] * 4, [0] * 4, 1)),
    "2 scales along axis 1 of (2, 4)": lambda: dense((I8, [0.1, 0.2], [0, 0], 1)),
    "2 scales along axis 2 of (2, 4)": lambda: dense((I8, [0.1, 0.2], [0, 0], 2)),
    "2 scales along axis -1 of (2, 4)": lambda: dense((I8, [0.1, 0.2], [0, 0], -1)),
    "3 scales along axis 0 of (2, 4)": lambda: dense((I8, [0.1, 0.2, 0.3], [0, 0, 0])),
    "1 zero points for 2 scales": lambda: dense((I8, [0.1, 0.2], [0])),
    "2 zero points for 1 scales": lambda: dense((I8, [0.1], [0, 0])),
    "has scales of 0.0 to 0.1": lambda: dense((I8, [0.1, 0.0], [0, 0])),
    "has scales of -0.5 to": lambda: dense((I8, [-0.5], [0])),
    "has scales of inf to inf": lambda: dense((I8, [np.inf], [0])),
    "the bias has type INT64 and shape (2,), expected int32": lambda: dense((I8, [0.1], [0]), np.array([1, 2])),
    "the bias has type INT32 and shape (2,), expected int64": lambda: dense(
        (I8, [0.1], [0]), _i(1, 2), dtype="int16", grid=(0.1, 0)
    ),
    "the bias has type INT32 and shape (1, 2), expected int32": lambda: dense((I8, [0.1], [0]), _i((1, 2))),
    "the bias has type INT32 and shape (3,), expected int32": lambda: dense((I8, [0.1, 0.2], [0, 0]), _i(1, 2, 3)),
    "shuffled weights are not supported": lambda: dense((I8, [0.1], [0]), WeightsFormat=1),
    "an input of shape (1, 6) does not fit weights of 2 x 4": lambda: model(
        "FULLY_CONNECTED", _ones(2, 4), shape=(1, 6), out=(1, 2), table="FullyConnected"
    ),
    "quantized squared differences are not supported": lambda: quantized(
        "SQUARED_DIFFERENCE", (_ones(3, dtype="int8"), [0.1], [0])
    ),
    "a softmax with beta 0.5 is not supported": lambda: model(
        "SOFTMAX", table="Softmax", Beta=0.5, dtype="int8", grid=(0.1, 0), out_grid=(1 / 256, -128)
    ),
    "a cast from FLOAT32 to INT32 is not supported": lambda: model("CAST", out_dtype="int32"),
    "a cast from INT32 to FLOAT32 is not supported": lambda: model("CAST", dtype="int32", out_dtype="float32"),
    "new axes or an offset": lambda: cut(_i(0, 1), _i(1, 4), _i(1, 1), Offset=True),
    "an ellipsis": lambda: cut(_i(0, 1), _i(1, 4), _i(1, 1), EllipsisMask=1),
    "an ellipsis, new axes": lambda: cut(_i(0, 1), _i(1, 4), _i(1, 1), NewAxisMask=1),
    "begins (0, 1), ends (1, 4) and strides (1, 0) do not fit": lambda: cut(_i(0, 1), _i(1, 4), _i(1, 0)),
    "begins (0, 1, 0), ends (1, 4, 1) and strides (1, 1, 1)": lambda: cut(_i(0, 1, 0), _i(1, 4, 1), _i(1, 1, 1)),
    "begins (0,), ends (1, 4) and strides (1, 1) do not": lambda: cut(_i(0), _i(1, 4), _i(1, 1)),
    "begins (0, 1), ends (1, 4) and strides (1,) do not": lambda: cut(_i(0, 1), _i(1, 4), _i(1)),
    "symmetric padding is not supported": lambda: model("MIRROR_PAD", _i(*[(0, 0)] * 4), table="MirrorPad", Mode=1),
    "batched indices are not supported": lambda: model(
        "GATHER", _i(0, 1, 2, 3), table="Gather", Axis=1, BatchDims=1
    ),
    "the order of axes must be constant integers": lambda: model("TRANSPOSE", _ones(4)),
    "the axes must be constant integers": lambda: model("MEAN", 0, table="Reducer"),
    "weights must be constant": lambda: conv(0),
    "activation 4 is not supported": lambda: model("ADD", _ones(3), table="Add", FusedActivationFunction=4),
    "a required input is missing": lambda: _missing(),
    "every size must be fixed": lambda: model("RELU", shape=(1, -1, 3)),
    "'t0' has shape (8193, 8192); every size": lambda: model("RELU", shape=(8193, 8192)),
    "is of type STRING, without a scale": lambda: model("RELU", dtype="string"),
    "is of type INT8, without a scale": lambda: model("RELU", dtype="int8"),
    "is of type INT32; activations of int8, uint8 and int16": lambda: model("RELU", dtype="int32", grid=(0.1, 0)),
    "has a scale of 0.10000000149011612 and a zero point of 128": lambda: model("RELU", dtype="int8", grid=(0.1, 128)),
    "and a zero point of -129": lambda: model("RELU", dtype="int8", grid=(0.1, -129)),
    "and a zero point of -1": lambda: model("RELU", dtype="uint8", grid=(0.1, -1)),
    "and a zero point of 256": lambda: model("RELU", dtype="uint8", grid=(0.1, 256)),
    "and a zero point of 32768": lambda: model("RELU", dtype="int16", grid=(0.1, 32768)),
    "has a scale of -0.25": lambda: model("RELU", dtype="int8", grid=(-0.25, 0)),
    "has a scale of inf": lambda: model("RELU", dtype="int8", grid=(np.inf, 0)),
    "it has 2 outputs, expected 1": lambda: model("RELU", outputs=2),
    "'t1' has shape (1, 4, 4, 2) in the file, but its operator gives (1, 4, 4, 3)": lambda: model(
        "RELU", out=(1, 4, 4, 2)
    ),
    "'t1' has shape () in the file, but its operator gives (1, 4, 4, 3)": lambda: model("RELU", out=()),
    "'t1' has shape (1,) in the file, but its operator gives (1, 1)": lambda: model("RELU", shape=(1, 1), out=(1,)),
    "'t1' has shape (4, 4, 3) in the file, but its operator gives (1, 4, 4, 3)": lambda: model("RELU", out=(4, 4, 3)),
    "this operator is not supported": lambda: model("FLOOR_MOD", _ones(3)),
    "its inputs do not fit": lambda: model("MEAN", table="Reducer"),
}  # fmt: skip


def _missing() -> Graph:
    file = File()
    x, y = (file.tensor((1, 4), "float32") for _ in range(2))
    file.inputs, file.outputs = [x, -1], [y]
    file.operator("RELU", [x], [y])
    return read_graph(file.written(), "m")


@pytest.mark.parametrize("tall", [True, False])
def test_an_average_over_a_far_larger_window_or_image_takes_little_memory(tall: bool) -> None:
    size = 100_000_000
    window = {"FilterHeight": size if tall else 1, "FilterWidth": 1, "StrideH": 1, "StrideW": 1, "Padding": 0}
    tracemalloc.start()
    try:
        with suppress(ModelError):
            model("AVERAGE_POOL_2D", shape=(1, 4, 4, 3) if tall else (1, size, 4, 3), table="Pool2D", **window)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", ACCEPTED)
def test_what_borders_on_a_refusal_is_converted(what: str) -> None:
    graph = ACCEPTED[what]()
    quantized = any(name in graph.grids for name in graph.inputs)
    assert build(graph, Options("m", floats=not quantized)).program.is_float != quantized


@every("reason", REFUSED)
def test_what_is_not_converted_is_refused_with_a_reason(reason: str) -> None:
    with pytest.raises(ModelError, match=re.escape(reason)):
        REFUSED[reason]()


def test_a_tensor_that_is_read_before_it_is_computed_is_named() -> None:
    file = File()
    x, a, y = (file.tensor((1, 4), "float32") for _ in range(3))
    file.operator("RELU", [a], [y])
    file.operator("TANH", [x], [a])
    file.inputs, file.outputs = [x], [y]
    with pytest.raises(ModelError, match="tensor 't1' is read before it is computed"):
        read_graph(file.written(), "m")


def test_what_follows_a_refused_operator_is_not_reported() -> None:
    file = File()
    x, a, b, y = (file.tensor((1, 4), "float32") for _ in range(4))
    file.operator("FLOOR_MOD", [x, x], [a])
    file.operator("RELU", [a], [b])
    file.operator("TANH", [b], [y])
    file.inputs, file.outputs = [x], [y]
    with pytest.raises(ModelError) as raised:
        read_graph(file.written(), "m")
    assert str(raised.value).count("\n- ") == 1


@pytest.mark.parametrize(("scales", "zeros"), [((0.1, 0.2), (0, 0)), ((0.1,), (0, 0)), ((0.1, 0.2), (0,))])
def test_an_activation_has_one_scale(scales: tuple[float, ...], zeros: tuple[int, ...]) -> None:
    file = File()
    x, y = (file.tensor((1, 4), "int8", 0.1, 0) for _ in range(2))
    file.tensors[x].scales, file.tensors[x].zeros = scales, zeros
    file.operator("RELU", [x], [y])
    file.inputs, file.outputs = [x], [y]
    with pytest.raises(ModelError, match=r"tensor 't0' has \d scales; one for all of an activation is supported"):
        read_graph(file.written(), "m")


def test_a_variable_that_is_read_again_holds_what_was_assigned() -> None:
    file = File()
    x, a, b, y = (file.tensor((1, 4), "int8", 0.1, 3) for _ in range(4))
    handle = file.tensor((), "resource")
    file.operator("VAR_HANDLE", [], [handle], "VarHandle", SharedName="v")
    file.operator("READ_VARIABLE", [handle], [a])
    file.operator("ASSIGN_VARIABLE", [handle, x], [])
    file.operator("READ_VARIABLE", [handle], [b])
    file.operator("ADD", [a, b], [y], "Add")
    file.inputs, file.outputs = [x], [y]
    graph, kept = build(read_graph(file.written(), "m"), Options("m")).graph, dict[str, Any]()
    given = [131 + n for n in (10, 20, 30)]
    found = [graph.run({graph.inputs[0]: np.full((1, 4), v, np.uint8)}, kept)[graph.outputs[0]] for v in given]
    # Zero bytes, which stand for -0.3, at first.
    assert [int(f.reshape(-1)[0]) - 131 for f in found] == [7, 30, 50]


# -- variables --------------------------------------------------------------------------------------------------------


def counter(
    first: Any = None, dtype: str = "int8", *, out: Sequence[int] = (1, 4), grid: Grid = (0.1, 3), subgraph: int = 1
) -> Graph:
    """Adds its input to a variable, which is its output too. first: the variable's first value; out, grid: of what is
    assigned to it; subgraph: what is run once."""
    file, once = File(), File()
    x = file.tensor((1, 4), dtype, 0.1, 3)
    handle = file.tensor((), "resource")
    before = file.tensor((1, 4), dtype, 0.1, 3)
    after = file.tensor((1, 4), dtype, *(grid if tuple(out) == (1, 4) else (0.1, 3)))
    own = once.tensor((), "resource")
    names = {"Container": "box", "SharedName": "sum"}
    once.operator("VAR_HANDLE", [], [own], "VarHandle", **names)
    if first is not None:
        once.operator("ASSIGN_VARIABLE", [own, once.constant(np.asarray(first, dtype))], [])
    file.operator("CALL_ONCE", [], [], "CallOnce", InitSubgraphIndex=subgraph)
    file.operator("VAR_HANDLE", [], [handle], "VarHandle", **names)
    file.operator("READ_VARIABLE", [handle], [before])
    file.operator("ADD", [x, before], [after], "Add")
    given = after
    if tuple(out) != (1, 4):
        given = file.tensor(out, dtype, 0.1, 3)
        file.operator("RESHAPE", [after, file.constant(np.array(out, np.int32))], [given], "Reshape")
    file.operator("ASSIGN_VARIABLE", [handle, given], [])
    file.inputs, file.outputs = [x], [after]
    return read_graph(file.written(once), "m")


@pytest.mark.parametrize(("dtype", "first", "value"), [("int8", None, 0), ("uint8", None, 0), ("int8", -7, -7)])
def test_a_variable_starts_with_its_first_value(dtype: str, first: int | None, value: int) -> None:
    graph = counter(None if first is None else np.full((1, 4), first), dtype)
    (state,) = graph.states.values()
    assert state == pytest.approx((value - 3) * 0.1)
    built = build(graph, Options("m")).graph
    zero, kept = built.grids[built.inputs[0]].zero, {}
    step = np.full(built.shapes[built.inputs[0]], zero + 20, np.uint8)
    start = value + (128 if dtype == "int8" else 0)
    for n in range(1, 4):
        found = built.run({built.inputs[0]: step}, kept)[built.outputs[0]]
        assert found.reshape(-1).tolist() == [start + 20 * n] * 4


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: counter(np.array([[1, 1, 2, 1]])), "a variable whose initial values differ is not supported"),
        (lambda: counter(subgraph=2), "it calls subgraph 2, but the file has 2"),
        (lambda: counter(subgraph=0), "it calls subgraph 0, but the file has 2"),
        (lambda: counter(out=(4, 1)), "variable 'box/sum' is assigned a tensor of another shape"),
        (lambda: counter(grid=(0.2, 3)), "variable 'box/sum' is assigned a tensor with another scale"),
    ],
)
def test_a_variable_that_cannot_be_kept_is_refused(make: Callable[[], Graph], says: str) -> None:
    with pytest.raises(ModelError, match=re.escape(says)):
        make()


@pytest.mark.parametrize("kind", ["READ_VARIABLE", "ASSIGN_VARIABLE"])
@pytest.mark.parametrize("handles", [0, 1])
def test_an_operator_on_no_variable_is_refused(kind: str, handles: int) -> None:
    file = File()
    x, y = (file.tensor((1, 4), "float32") for _ in range(2))
    given = [x] * handles if kind == "READ_VARIABLE" else [x] * (1 + handles)
    file.operator(kind, given, [y] if kind == "READ_VARIABLE" else [])
    file.inputs, file.outputs = [x], [y]
    with pytest.raises(ModelError, match="the variable is missing"):
        read_graph(file.written(), "m")


def test_only_variables_are_set_by_a_subgraph_that_runs_once() -> None:
    file, once = File(), File()
    x, y = (file.tensor((1, 4), "float32") for _ in range(2))
    a, b = (once.tensor((1, 4), "float32") for _ in range(2))
    once.operator("RELU", [a], [b])
    file.operator("CALL_ONCE", [], [], "CallOnce", InitSubgraphIndex=1)
    file.operator("RELU", [x], [y])
    file.inputs, file.outputs = [x], [y]
    with pytest.raises(ModelError, match="RELU in a subgraph that runs once is not supported"):
        read_graph(file.written(once), "m")


# -- the file's own contents ---------------------------------------------------------------------------------------

DTYPES = ["float32", "float16", "float64", "int8", "uint8", "int16", "int32", "int64", "uint32", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_has_the_files_numbers(dtype: str) -> None:
    file = File()
    data = (np.arange(6).reshape(2, 3) * 37 % 5).astype(dtype)
    file.constant(data)
    (graph,) = read_file(file.written(), "m")
    found = values(graph.tensors[0], "a constant")
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data)


@pytest.mark.parametrize(
    ("shape", "dtype", "data", "says"),
    [
        ((2, 3), "FLOAT32", bytes(23), "23 bytes for a shape of (2, 3)"),
        ((2, 3), "FLOAT32", bytes(28), "28 bytes for a shape of (2, 3)"),
        ((-2, -3), "FLOAT32", bytes(0), "0 bytes for a shape of (-2, -3)"),
        ((), "INT8", bytes(2), "2 bytes for a shape of ()"),
        ((2,), "STRING", bytes(2), "of type STRING, which is not supported"),
        ((2,), "INT8", None, "a bias must be constant"),
    ],
)
def test_a_constant_that_does_not_fit_its_shape_is_refused(
    shape: tuple[int, ...], dtype: str, data: bytes | None, says: str
) -> None:
    with pytest.raises(EmberletError, match=re.escape(says)):
        values(FileTensor("t", shape, dtype, (), (), 0, data), "a bias")


@pytest.mark.parametrize("data", [b"", b"TFL3", b"TFL3TFL", b"TFL3TFL3"])
def test_a_file_that_ends_behind_its_name_is_damaged(data: bytes) -> None:
    with pytest.raises(FormatError):
        read_file(data, "m")


class Beyond(File):
    """Writes numbers of buffers or of operator codes that the file does not have."""

    def __init__(self, buffer: int = 0, code: int = 0) -> None:
        super().__init__()
        self.buffer, self.code = buffer, code

    def _tensor(self, b: Any, t: Any, buffer: int, name: str) -> int:
        return super()._tensor(b, t, buffer + self.buffer, name)

    def _operator(self, b: Any, codes: list[str], op: Any) -> int:
        return super()._operator(b, [*[""] * self.code, *codes], op)


@pytest.mark.parametrize(("buffer", "code"), [(0, 0), (1, 0), (7, 0), (0, 1), (0, 7)])
def test_a_file_that_names_what_it_does_not_have_is_damaged(buffer: int, code: int) -> None:
    file = Beyond(buffer, code)
    x, y = (file.tensor((1, 4), "float32") for _ in range(2))
    file.operator("TANH", [x], [y])
    file.inputs, file.outputs = [x], [y]
    if not buffer and not code:
        assert len(read_file(file.written(), "m")) == 1
        return
    with pytest.raises(FormatError, match=f"buffer {buffer}" if buffer else f"operator code {code}"):
        read_file(file.written(), "m")


def test_a_sparse_tensor_is_refused() -> None:
    file = File()
    x, y = (file.tensor((1, 4), "float32") for _ in range(2))
    file.operator("TANH", [x], [y])
    file.inputs, file.outputs = [x], [y]
    read_file(file.written(), "m")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tflite.Tensor, "Sparsity", lambda self: object())
        with pytest.raises(FormatError, match="sparse tensors are not supported"):
            read_file(file.written(), "m")


def test_a_file_without_a_graph_is_refused() -> None:
    with pytest.raises(ModelError, match="holds no graph"):
        read_graph(bytes(4) + b"TFL3", "m")


def shared(tensors: int, size: int, subgraphs: int) -> bytes:
    """A file whose tensors all have one buffer, and whose subgraphs are all one."""
    b = flatbuffers.Builder(1024)
    data, name = b.CreateByteVector(bytes(size)), b.CreateString("t")
    tflite.BufferStart(b)
    tflite.BufferAddData(b, data)
    buffers = offsets(b, tflite.ModelStartBuffersVector, [tflite.BufferEnd(b)])
    tflite.TensorStartShapeVector(b, 1)
    b.PrependInt32(size)
    shape = b.EndVector()
    made = []
    for _ in range(tensors):
        tflite.TensorStart(b)
        tflite.TensorAddShape(b, shape)
        tflite.TensorAddName(b, name)
        tflite.TensorAddType(b, tflite.TensorType.INT8)
        made.append(tflite.TensorEnd(b))
    tensors_at = offsets(b, tflite.SubGraphStartTensorsVector, made)
    outputs = b.CreateNumpyVector(np.arange(tensors, dtype=np.int32))
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, tensors_at)
    tflite.SubGraphAddOutputs(b, outputs)
    graphs = offsets(b, tflite.ModelStartSubgraphsVector, [tflite.SubGraphEnd(b)] * subgraphs)
    tflite.ModelStart(b)
    tflite.ModelAddSubgraphs(b, graphs)
    tflite.ModelAddBuffers(b, buffers)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def offsets(b: Any, start: Callable[[Any, int], Any], tables: list[int]) -> Any:
    start(b, len(tables))
    for table in reversed(tables):
        b.PrependUOffsetTRelative(table)
    return b.EndVector()


def test_a_file_whose_parts_are_read_again_and_again_is_refused() -> None:
    with pytest.raises(FormatError, match="its lists share their bytes"):
        read_file(shared(100, 1000, 1000), "x")


def test_constants_that_share_a_buffer_cannot_exhaust_the_memory() -> None:
    with pytest.raises(ModelError, match="they hold more than 8 times what the file does") as raised:
        read_tflite(shared(300, 10_000, 1), "x")
    lines = str(raised.value).splitlines()
    assert len(lines) == 22 and lines[-1] == "- and 280 more"
