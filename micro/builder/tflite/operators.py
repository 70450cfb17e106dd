"""Conversion of each TensorFlow Lite operator to ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from emberlet.codegen.ir.argument import ABSENT, Argument
from emberlet.codegen.ir.problem import Problem

from .reading import FileOperator, values
from .table import CONVERTERS, Inputs, converts

if TYPE_CHECKING:
    from .importing import Converting

__all__ = ["CONVERTERS"]

VALID = 1
"""The number of a padding without zeros; the other one is SAME."""


def padding(op: FileOperator, sizes: Sequence[int], kernel: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    """ONNX's pads of a window: (top, left, bottom, right). Raises Problem."""
    strides = (op.whole("StrideH"), op.whole("StrideW"))
    if min(*strides, *dilations, *kernel) < 1:
        raise Problem(
            f"strides {strides}, dilations {tuple(dilations)} and a kernel of {tuple(kernel)} are not supported"
        )
    if op.whole("Padding") == VALID:
        return (0, 0, 0, 0)
    before, after = [], []
    for size, k, d, s in zip(sizes, kernel, dilations, strides, strict=True):
        total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
        before.append(total // 2)
        after.append(total - total // 2)
    return (*before, *after)


def _window(t: Converting, op: FileOperator, image: Argument, kernel: Sequence[int]) -> dict[str, Any]:
    dilations = (op.whole("DilationHFactor", 1), op.whole("DilationWFactor", 1))
    pads = padding(op, t.dims(image)[2:], kernel, dilations)
    strides = (op.whole("StrideH"), op.whole("StrideW"))
    return {"pads": pads, "strides": strides, "dilations": dilations, "kernel_shape": tuple(kernel)}


def _weights(t: Converting, n: int, order: Sequence[int], channel: int) -> Argument:
    """Constant weights with their axes reordered; records the scales of their channels. Raises Problem.

    channel: the axis of the file's tensor that counts output channels.
    """
    file = t.file.tensors[n]
    array = t.array(t.argument(n), "weights")
    if array.ndim != len(order):
        raise Problem(f"the weights have shape {array.shape}, expected {len(order)} axes")
    moved = t.constant(np.transpose(array, order))
    if t.is_quantized and file.is_quantized:
        if file.dtype not in ("INT8", "UINT8") or len(set(file.zeros)) != 1:
            raise Problem("the weights must be int8 or uint8 with one zero point for all channels")
        if len(file.scales) > 1 and file.axis != channel:
            raise Problem(f"the weights have a scale for each index of axis {file.axis}, expected axis {channel}")
        zero = file.zeros[0] + (128 if file.dtype == "INT8" else 0)
        t.importer.scales[moved.name] = np.asarray(file.scales, np.float64), 0, zero
    return moved


def _bias(t: Converting, op: FileOperator, given: Inputs) -> list[Argument]:
    if len(given) < 3 or not given[2].present:
        return []
    file = t.file.tensors[op.inputs[2]]
    stored = t.array(given[2], "a bias")
    if not t.is_quantized or file.dtype == "FLOAT32":
        return [given[2]]
    # A bias is in steps of the sums, whatever scale the file states.
    x, w = t.file.tensors[op.inputs[0]], t.file.tensors[op.inputs[1]]
    steps = values(file, "a bias").astype(np.float64)
    wanted = "INT64" if x.dtype == "INT16" else "INT32"
    if file.dtype != wanted or steps.ndim != 1 or len(w.scales) not in (1, steps.size) or not x.scales:
        raise Problem(
            f"the bias has type {file.dtype} and shape {stored.shape}, expected {wanted.lower()} and one number for "
            "each channel"
        )
    return [t.constant(steps * (np.asarray(w.scales, np.float64) * x.scales[0]))]


@converts("CONV_2D")
def conv(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    image = t.channels_first(given[0])
    weights = _weights(t, op.inputs[1], (0, 3, 1, 2), 0)
    each = t.dims(weights)[1]
    channels = t.dims(image)[1]
    if channels % each:
        raise Problem(f"the input has {channels} channels, but the weights are for {each}")
    window = _window(t, op, image, t.dims(weights)[2:])
    out = t.node("Conv", [image, weights, *_bias(t, op, given)], group=channels // each, **window)
    return t.channels_last(t.activated(out, merged=True))


@converts("DEPTHWISE_CONV_2D")
def depthwise(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    image = t.channels_first(given[0])
    weights = _weights(t, op.inputs[1], (3, 0, 1, 2), 3)
    if t.dims(weights)[1] != 1:
        raise Problem(f"depthwise weights of shape {t.dims(given[1])} are not supported")
    window = _window(t, op, image, t.dims(weights)[2:])
    out = t.node("Conv", [image, weights, *_bias(t, op, given)], group=t.dims(image)[1], **window)
    return t.channels_last(t.activated(out, merged=True))


@converts("TRANSPOSE_CONV")
def conv_transpose(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    if t.is_quantized:
        raise Problem("quantized transposed convolutions are not supported; build from the float model")
    image = t.channels_first(given[2])
    weights = _weights(t, op.inputs[1], (3, 0, 1, 2), 0)
    size = t.ints(given[0], "the shape of the output")
    if len(size) != 4:
        raise Problem(f"an output of shape {size} is not supported")
    kernel, strides = t.dims(weights)[2:], (op.whole("StrideH"), op.whole("StrideW"))
    pads = padding(op, size[1:3], kernel, (1, 1))
    whole = [(n - 1) * s + k for n, s, k in zip(t.dims(image)[2:], strides, kernel, strict=True)]
    extra = [n - w + a + b for n, w, a, b in zip(size[1:3], whole, pads[:2], pads[2:], strict=True)]
    if min(extra) < 0:
        raise Problem(f"an output of shape {size} does not fit an input of shape {t.dims(given[2])}")
    attributes: dict[str, Any] = {"strides": strides, "pads": pads, "output_padding": tuple(extra)}
    bias = [given[3]] if len(given) > 3 and given[3].present else []
    return t.channels_last(t.activated(t.node("ConvTranspose", [image, weights, *bias], **attributes), merged=True))


@converts("FULLY_CONNECTED")
def dense(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    if op.whole("WeightsFormat"):
        raise Problem("shuffled weights are not supported")
    weights = _weights(t, op.inputs[1], (0, 1), 0)
    dims, (n, k) = t.dims(given[0]), t.dims(weights)
    rows = int(np.prod(dims)) // k
    if rows * k != np.prod(dims):
        raise Problem(f"an input of shape {dims} does not fit weights of {n} x {k}")
    flat = given[0] if dims == (rows, k) else _reshape(t, given[0], (rows, k))
    out = t.activated(t.node("Gemm", [flat, weights, *_bias(t, op, given)], transB=1), merged=True)
    shape = (*dims[:-1], n) if op.whole("KeepNumDims") else (rows, n)
    return out if shape == (rows, n) else _reshape(t, out, shape)


@converts("BATCH_MATMUL")
def matmul(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    operands = [_turned(t, a, bool(op.options.get(k))) for a, k in zip(given, ("AdjX", "AdjY"), strict=True)]
    return t.node("MatMul", operands)


def _turned(t: Converting, a: Argument, turned: bool) -> Argument:
    rank = len(t.dims(a))
    return t.node("Transpose", [a], perm=(*range(rank - 2), rank - 1, rank - 2)) if turned else a


@converts("MAX_POOL_2D", "AVERAGE_POOL_2D")
def pool(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    image = t.channels_first(given[0])
    window = _window(t, op, image, (op.whole("FilterHeight"), op.whole("FilterWidth")))
    if op.kind == "AVERAGE_POOL_2D":
        del window["dilations"]
    out = t.node("MaxPool" if op.kind == "MAX_POOL_2D" else "AveragePool", [image], **window)
    return t.channels_last(t.activated(out))


# -- elementwise ------------------------------------------------------------------------------------------------------

PAIRS = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div"}


@converts(*PAIRS)
def pair(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.activated(t.node(PAIRS[op.kind], given), merged=True)


PLAIN = {
    "RELU": "Relu",
    "LOGISTIC": "Sigmoid",
    "TANH": "Tanh",
    "HARD_SWISH": "HardSwish",
    "EXP": "Exp",
    "LOG": "Log",
    "SQRT": "Sqrt",
    "ABS": "Abs",
    "NEG": "Neg",
    "SIN": "Sin",
    "COS": "Cos",
    "FLOOR": "Floor",
    "CEIL": "Ceil",
    "SIGN": "Sign",
    "MAXIMUM": "Max",
    "MINIMUM": "Min",
    "POW": "Pow",
    "SHAPE": "Shape",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
    "EQUAL": "Equal",
    "LOGICAL_AND": "And",
    "LOGICAL_OR": "Or",
    "LOGICAL_NOT": "Not",
}


@converts(*PLAIN)
def plain(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node(PLAIN[op.kind], given)


@converts("NOT_EQUAL")
def not_equal(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node("Not", [t.node("Equal", given)])


@converts("ELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "RSQRT", "SQUARE", "LEAKY_RELU", "GELU", "SQUARED_DIFFERENCE")
def made_of_others(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    x = given[0]
    bounds = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}
    if op.kind in bounds:
        out = t.node("Clip", [x, *(t.real_constant(b) for b in bounds[op.kind])])
    elif op.kind == "RSQRT":
        out = t.node("Reciprocal", [t.node("Sqrt", [x])])
    elif op.kind == "SQUARE":
        out = t.node("Mul", [x, x])
    elif op.kind == "SQUARED_DIFFERENCE":
        if t.is_quantized:
            raise Problem("quantized squared differences are not supported")
        difference = t.node("Sub", given)
        out = t.node("Mul", [difference, difference])
    elif op.kind == "LEAKY_RELU":
        out = t.node("LeakyRelu", [x], alpha=float(op.options.get("Alpha", 0.0)))  # type: ignore[arg-type]
    elif op.kind == "GELU":
        out = t.node("Gelu", [x], approximate="tanh" if op.options.get("Approximate") else "none")
    else:
        out = t.node("Elu", [x])
    return out


@converts("PRELU")
def prelu(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    """Of quantized tensors both sides lie on the output's grid, so that only one rounding is left of each."""
    x, out = (t.grid(t.file.tensors[n]) for n in (op.inputs[0], op.outputs[0]))
    if x is None or out is None:
        return t.node("PRelu", given)
    zero = t.real_constant(0.0)
    positive, negative = t.node("Clip", [given[0], zero]), t.node("Clip", [given[0], ABSENT, zero])
    scaled = t.node("Mul", [negative, given[1]])
    for part, grid in ((positive, out), (negative, x), (scaled, out)):
        t.on_grid(part.name, grid)
    return t.node("Add", [positive, scaled])


@converts("SOFTMAX")
def softmax(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    beta = float(op.options.get("Beta", 1.0))  # type: ignore[arg-type]
    if beta != 1:
        if t.is_quantized:
            raise Problem(f"a softmax with beta {beta} is not supported; beta must be 1")
        return t.node("Softmax", [t.node("Mul", [given[0], t.real_constant(beta)])])
    return t.node("Softmax", given)


@converts("LOG_SOFTMAX")
def log_softmax(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node("LogSoftmax", given)


@converts("L2_NORMALIZATION")
def l2_normalization(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.activated(t.node("LpNormalization", given, axis=-1, p=2))


@converts("QUANTIZE", "DEQUANTIZE", "CAST")
def requantize(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    """The result's grid determines the conversion; none is needed if it is the same."""
    source, target = t.file.tensors[op.inputs[0]], t.file.tensors[op.outputs[0]]
    if op.kind == "CAST" and not (source.dtype.startswith("FLOAT") and target.dtype.startswith("FLOAT")):
        raise Problem(f"a cast from {source.dtype} to {target.dtype} is not supported")
    return t.node("Identity", given)


# -- reductions -------------------------------------------------------------------------------------------------------

REDUCTIONS = {"MEAN": "ReduceMean", "SUM": "ReduceSum", "REDUCE_MAX": "ReduceMax", "REDUCE_MIN": "ReduceMin"}


@converts(*REDUCTIONS)
def reduce(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    axes = t.constant(np.asarray(t.ints(given[1], "the axes"), np.int64).reshape(-1))
    return t.node(REDUCTIONS[op.kind], [given[0], axes], keepdims=int(bool(op.options.get("KeepDims"))))


@converts("ARG_MAX", "ARG_MIN")
def arg(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    (axis,) = t.ints(given[1], "the axis")
    return t.node("ArgMax" if op.kind == "ARG_MAX" else "ArgMin", [given[0]], axis=axis, keepdims=0)


# -- movement ---------------------------------------------------------------------------------------------------------


def _reshape(t: Converting, a: Argument, shape: Sequence[int]) -> Argument:
    return t.node("Reshape", [a, t.constant(np.asarray(shape, np.int64))])


@converts("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    """The output shape is the one in the file."""
    return _reshape(t, given[0], t.file.tensors[op.outputs[0]].shape)


@converts("TRANSPOSE")
def transpose(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node("Transpose", [given[0]], perm=t.ints(given[1], "the order of axes"))


@converts("CONCATENATION")
def concatenation(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.activated(t.node("Concat", given, axis=op.whole("Axis")))


@converts("PACK")
def pack(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    axis = op.whole("Axis")
    axes = t.constant(np.asarray([axis], np.int64))
    return t.node("Concat", [t.node("Unsqueeze", [a, axes]) for a in given], axis=axis)


@converts("UNPACK")
def unpack(t: Converting, op: FileOperator, given: Inputs) -> Sequence[Argument]:
    axis, n = op.whole("Axis"), len(op.outputs)
    sizes = t.constant(np.ones(n, np.int64))
    parts = _several(t.node("Split", [given[0], sizes], outputs=n, axis=axis))
    axes = t.constant(np.asarray([axis], np.int64))
    return [t.node("Squeeze", [part, axes]) for part in parts]


def _several(made: Any) -> Sequence[Argument]:
    return [made] if isinstance(made, Argument) else made


@converts("SPLIT")
def split(t: Converting, op: FileOperator, given: Inputs) -> Sequence[Argument]:
    (axis,), n = t.ints(given[0], "the axis"), len(op.outputs)
    return _several(t.node("Split", [given[1]], outputs=n, axis=axis, num_outputs=n))


@converts("SPLIT_V")
def split_by_sizes(t: Converting, op: FileOperator, given: Inputs) -> Sequence[Argument]:
    (axis,) = t.ints(given[2], "the axis")
    sizes = list(t.ints(given[1], "the sizes"))
    if sizes.count(-1) == 1:
        whole = t.dims(given[0])[axis % len(t.dims(given[0]))]
        sizes[sizes.index(-1)] = whole - sum(sizes) - 1
    return _several(
        t.node("Split", [given[0], t.constant(np.asarray(sizes, np.int64))], outputs=len(op.outputs), axis=axis)
    )


@converts("SLICE")
def cut(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    begins, sizes = t.ints(given[1], "the beginning"), t.ints(given[2], "the size")
    dims = t.dims(given[0])
    ends = [d if n == -1 else b + n for b, n, d in zip(begins, sizes, dims, strict=True)]
    return t.node("Slice", [given[0], t.constant(np.asarray(begins)), t.constant(np.asarray(ends))])


@converts("STRIDED_SLICE")
def strided_slice(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    if op.whole("EllipsisMask") or op.whole("NewAxisMask") or op.whole("Offset"):
        raise Problem("an ellipsis, new axes or an offset in a slice are not supported")
    begins, ends, steps = (t.ints(a, "the bounds") for a in given[1:4])
    dims, far = t.dims(given[0]), np.iinfo(np.int32).max
    if not len(begins) == len(ends) == len(steps) <= len(dims) or 0 in steps:
        raise Problem(f"begins {begins}, ends {ends} and strides {steps} do not fit the shape {dims}")
    first, last = list(begins), list(ends)
    for k, step in enumerate(steps):
        if op.whole("BeginMask") >> k & 1:
            first[k] = 0 if step > 0 else far
        if op.whole("EndMask") >> k & 1:
            last[k] = far if step > 0 else -far
        if op.whole("ShrinkAxisMask") >> k & 1:
            last[k] = first[k] + 1 if first[k] != -1 else far
    axes = np.arange(len(steps))
    bounds = [t.constant(np.asarray(v, np.int64)) for v in (first, last, axes, steps)]
    out = t.node("Slice", [given[0], *bounds])
    shape = t.file.tensors[op.outputs[0]].shape
    gone = [k for k in range(len(steps)) if op.whole("ShrinkAxisMask") >> k & 1]
    return t.node("Squeeze", [out, t.constant(np.asarray(gone, np.int64))]) if len(shape) < len(dims) else out


def _pads(t: Converting, a: Argument) -> Argument:
    pads = np.asarray(t.ints(a, "the padding"), np.int64).reshape(-1, 2)
    return t.constant(pads.T.reshape(-1))


@converts("PAD", "PADV2")
def pad(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node("Pad", [given[0], _pads(t, given[1]), *given[2:3]])


@converts("MIRROR_PAD")
def mirror_pad(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    if op.whole("Mode"):
        raise Problem("symmetric padding is not supported; reflect is")
    return t.node("Pad", [given[0], _pads(t, given[1])], mode="reflect")


@converts("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR")
def resize(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    half, corners = bool(op.options.get("HalfPixelCenters")), bool(op.options.get("AlignCorners"))
    sizes = (*t.dims(given[0])[:1], *t.ints(given[1], "the size"), t.dims(given[0])[-1])
    nearest = op.kind == "RESIZE_NEAREST_NEIGHBOR"
    coordinates = "align_corners" if corners else "half_pixel" if half else "asymmetric"
    rounding: dict[str, Any] = {"nearest_mode": "round_prefer_ceil" if half or corners else "floor"} if nearest else {}
    sized = t.constant(np.asarray((sizes[0], sizes[3], *sizes[1:3]), np.int64))
    image = t.channels_first(given[0])
    mode = "nearest" if nearest else "linear"
    out = t.node(
        "Resize", [image, ABSENT, ABSENT, sized], mode=mode, coordinate_transformation_mode=coordinates, **rounding
    )
    return t.channels_last(out)


@converts("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")
def blocks(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    kind = "DepthToSpace" if op.kind == "DEPTH_TO_SPACE" else "SpaceToDepth"
    return t.channels_last(t.node(kind, [t.channels_first(given[0])], blocksize=op.whole("BlockSize")))


@converts("GATHER")
def gather(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    if op.whole("BatchDims"):
        raise Problem("batched indices are not supported")
    return t.node("Gather", given, axis=op.whole("Axis"))


@converts("TILE")
def tile(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node("Tile", given)


@converts("BROADCAST_TO")
def broadcast(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node("Expand", given)


# -- variables --------------------------------------------------------------------------------------------------------


@converts("CALL_ONCE")
def call_once(t: Converting, op: FileOperator, given: Inputs) -> None:
    """Initial values of variables, which must be the same for all elements."""
    number = op.whole("InitSubgraphIndex")
    if not 0 < number < len(t.graphs):
        raise Problem(f"it calls subgraph {number}, but the file has {len(t.graphs)}")
    graph, handles = t.graphs[number], dict[int, str]()
    for step in graph.operators:
        if step.kind == "VAR_HANDLE" and step.outputs:
            handles[step.outputs[0]] = _variable(step)
        elif step.kind == "ASSIGN_VARIABLE" and len(step.inputs) == 2 and step.inputs[0] in handles:
            first = values(graph.tensors[step.inputs[1]], "the first value of a variable")
            if first.size and np.any(first != first.reshape(-1)[0]):
                raise Problem("a variable whose initial values differ is not supported")
            byte = 128 if first.dtype == np.int8 else 0
            t.initial[handles[step.inputs[0]]] = int(first.reshape(-1)[0]) + byte if first.size else byte
        else:
            raise Problem(f"{step.kind} in a subgraph that runs once is not supported")


def _variable(op: FileOperator) -> str:
    return f"{op.options.get('Container', '')}/{op.options.get('SharedName', '')}".strip("/")


@converts("VAR_HANDLE")
def var_handle(t: Converting, op: FileOperator, given: Inputs) -> None:
    for n in op.outputs:
        t.handles[n] = _variable(op)


@converts("READ_VARIABLE")
def read_variable(t: Converting, op: FileOperator, given: Inputs) -> Sequence[Argument]:
    if len(op.inputs) != 1 or op.inputs[0] not in t.handles or len(op.outputs) != 1:
        raise Problem("the variable is missing")
    return [t.read_variable(t.handles[op.inputs[0]], op.outputs[0])]


@converts("ASSIGN_VARIABLE")
def assign_variable(t: Converting, op: FileOperator, given: Inputs) -> None:
    if len(op.inputs) != 2 or op.inputs[0] not in t.handles:
        raise Problem("the variable is missing")
    t.assigned[t.handles[op.inputs[0]]] = t.argument(op.inputs[1])
