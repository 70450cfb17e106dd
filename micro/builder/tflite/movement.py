"""Converters of reductions, and of operators that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from emberlet.codegen.ir.argument import ABSENT, Argument
from emberlet.codegen.ir.problem import Problem

from .reading import FileOperator
from .table import Inputs, converts

if TYPE_CHECKING:
    from .importing import Converting


REDUCTIONS = {"MEAN": "ReduceMean", "SUM": "ReduceSum", "REDUCE_MAX": "ReduceMax", "REDUCE_MIN": "ReduceMin"}


@converts(*REDUCTIONS)
def reduce(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    axes = t.constant(np.asarray(t.ints(given[1], "the axes"), np.int64).reshape(-1))
    return t.node(REDUCTIONS[op.kind], [given[0], axes], keepdims=int(bool(op.options.get("KeepDims"))))


@converts("ARG_MAX", "ARG_MIN")
def arg(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    (axis,) = t.ints(given[1], "the axis")
    return t.node("ArgMax" if op.kind == "ARG_MAX" else "ArgMin", [given[0]], axis=axis, keepdims=0)


def reshaped(t: Converting, a: Argument, shape: Sequence[int]) -> Argument:
    return t.node("Reshape", [a, t.constant(np.asarray(shape, np.int64))])


@converts("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    """The output shape is the one in the file."""
    return reshaped(t, given[0], t.file.tensors[op.outputs[0]].shape)


@converts("TRANSPOSE")
def transpose(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node("Transpose", [given[0]], perm=t.ints(given[1], "the order of axes"))


@converts("CONCATENATION")
def concatenation(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.activated(t.node("Concat", given, axis=op.integer("Axis")))


@converts("PACK")
def pack(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    axis = op.integer("Axis")
    axes = t.constant(np.asarray([axis], np.int64))
    return t.node("Concat", [t.node("Unsqueeze", [a, axes]) for a in given], axis=axis)


@converts("UNPACK")
def unpack(t: Converting, op: FileOperator, given: Inputs) -> Sequence[Argument]:
    axis, n = op.integer("Axis"), len(op.outputs)
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
    if op.integer("EllipsisMask") or op.integer("NewAxisMask") or op.integer("Offset"):
        raise Problem("an ellipsis, new axes or an offset in a slice are not supported")
    begins, ends, steps = (t.ints(a, "the bounds") for a in given[1:4])
    dims, far = t.dims(given[0]), np.iinfo(np.int32).max
    if not len(begins) == len(ends) == len(steps) <= len(dims) or 0 in steps:
        raise Problem(f"begins {begins}, ends {ends} and strides {steps} do not fit the shape {dims}")
    first, last = list(begins), list(ends)
    for k, step in enumerate(steps):
        if op.integer("BeginMask") >> k & 1:
            first[k] = 0 if step > 0 else far
        if op.integer("EndMask") >> k & 1:
            last[k] = far if step > 0 else -far
        if op.integer("ShrinkAxisMask") >> k & 1:
            last[k] = first[k] + 1 if first[k] != -1 else far
    axes = np.arange(len(steps))
    bounds = [t.constant(np.asarray(v, np.int64)) for v in (first, last, axes, steps)]
    out = t.node("Slice", [given[0], *bounds])
    shape = t.file.tensors[op.outputs[0]].shape
    gone = [k for k in range(len(steps)) if op.integer("ShrinkAxisMask") >> k & 1]
    return t.node("Squeeze", [out, t.constant(np.asarray(gone, np.int64))]) if len(shape) < len(dims) else out


def _pads(t: Converting, a: Argument) -> Argument:
    pads = np.asarray(t.ints(a, "the padding"), np.int64).reshape(-1, 2)
    return t.constant(pads.T.reshape(-1))


@converts("PAD", "PADV2")
def pad(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node("Pad", [given[0], _pads(t, given[1]), *given[2:3]])


@converts("MIRROR_PAD")
def mirror_pad(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    if op.integer("Mode"):
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
    return t.channels_last(t.node(kind, [t.channels_first(given[0])], blocksize=op.integer("BlockSize")))


@converts("GATHER")
def gather(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    if op.integer("BatchDims"):
        raise Problem("batched indices are not supported")
    return t.node("Gather", given, axis=op.integer("Axis"))
