"""ONNX Slice, Pad and Reshape whose starts, pads and shapes are computed by the model."""

from ...errors import ShapeError
from ...shapes import axis_of
from ..operands import tensor
from ..reshaping import reshape
from .rearranging import pad


def _pairs(what, ndim, axes, *lists):
    """[(axis, an element of each list)…]. Raises ShapeError if the lists differ in length."""
    # __index__: elements of a tensor are tensors, which a message would show in the words of their backend.
    axes = [axis_of(a if isinstance(a, int) else a.__index__(), ndim) for a in (range(ndim) if axes is None else axes)]
    for values in lists:
        if len(values) != len(axes):
            raise ShapeError("{}: got {} values for {} axes".format(what, len(values), len(axes)))
    return list(zip(axes, *lists))


#: function; starts: Sequence[int]; ends: Sequence[int]; axes: Sequence[int] | None; steps: Sequence[int] | None
def slice_axes(x, starts, ends, axes=None, steps=None):
    """x[starts[i] : ends[i] : steps[i]] along axes[i], as Python slices (ONNX Slice)."""
    from ..indexing.selection import _Span, getitem

    x = tensor(x)
    key = [_Span()] * x.ndim
    if axes is None:
        axes = range(len(starts))
    for axis, start, end, step in _pairs("slice_axes", x.ndim, axes, starts, ends, steps or [1] * len(starts)):
        key[axis] = _Span(start, end, step)
    return getitem(x, tuple(key))


#: function; pads: Sequence[int]; axes: Sequence[int] | None; value: float
def pad_axes(x, pads, axes=None, value=0, mode="constant"):
    """x with pads[i] elements before and pads[i + len(axes)] after it along axes[i]; modes as in `pad` (ONNX Pad)."""
    x = tensor(x)
    half = len(pads) // 2
    padding = [(0, 0)] * x.ndim
    for axis, low, high in _pairs("pad_axes", x.ndim, axes, pads[:half], pads[half : 2 * half]):
        padding[axis] = (low, high)
    return pad(x, tuple(padding), value, mode)


#: function; shape: Sequence[int]
def reshape_keeping(x, shape):
    """x reshaped; a 0 in `shape` keeps x's size of that axis (ONNX Reshape). Raises ShapeError."""
    x = tensor(x)
    for i in range(len(shape)):
        if shape[i] == 0 and i >= x.ndim:
            raise ShapeError("reshape_keeping: {} keeps axis {} of shape {}".format(tuple(shape), i, x.shape))
    return reshape(x, tuple([d or x.shape[i] for i, d in enumerate(shape)]))
