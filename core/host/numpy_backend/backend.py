"""NumpyBackend: the primitives of the backend protocol, in a few lines of NumPy each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backend.protocol import Protocol
from ...dtypes import DType
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor
from . import (
    assignment,
    attention,
    block_weights,
    composites,
    convolution,
    elementwise,
    integers,
    quantized_recurrent,
    recurrent,
    storage,
    windows,
)
from .storage import WIDE, Array, numpy_dtype

_SCANS = elementwise.Kernels({"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}, "cumulative")
_EXTREMES = elementwise.Kernels({"max": np.argmax, "min": np.argmin}, "argreduce")


class NumpyBackend(Protocol):
    """Tensors whose data is a NumPy array."""

    name = "numpy"
    OVERRIDES: tuple[str, ...] = (
        "dft", "relu", "sigmoid", "softmax", "log_softmax", "gelu", "batch_norm", "layer_norm", "rms_norm", "clip",
        "linear", "signbit", "dot_product_attention", "lstm_steps", "gru_steps", "matmul_8bit", "conv_8bit",
        "to_levels", "from_levels", "range_levels", "matmul_nbits", "quantized_lstm_steps",
    )  # fmt: skip
    relu = composites.relu
    sigmoid = composites.sigmoid
    softmax = composites.softmax
    log_softmax = composites.log_softmax
    gelu = composites.gelu
    batch_norm = composites.batch_norm
    layer_norm = composites.layer_norm
    rms_norm = composites.rms_norm
    clip = composites.clip
    linear = composites.linear
    signbit = composites.signbit
    dot_product_attention = attention.dot_product_attention
    lstm_steps = recurrent.lstm_steps
    gru_steps = recurrent.gru_steps
    directions_apart = staticmethod(recurrent.directions_apart)
    matmul_8bit = integers.matmul_8bit
    conv_8bit = integers.conv_8bit
    to_levels = integers.to_levels
    from_levels = integers.from_levels
    range_levels = integers.range_levels
    matmul_nbits = block_weights.matmul_nbits
    quantized_lstm_steps = quantized_recurrent.quantized_lstm_steps
    multiplies_bytes = True  # plans make floats of levels and their zero point (compile/exact_sums.py)

    def _tensor(self, array: Array, dtype: DType) -> Tensor:
        if not isinstance(array, np.ndarray):  # NumPy's functions turn 0-D arrays into scalars
            array = np.asarray(array)
        return Tensor(array, dtype, array.shape, self)

    # -- data in and out

    def from_bytes(self, data: Any, dtype: DType, shape: tuple[int, ...]) -> Tensor:
        return self._tensor(storage.from_bytes(data, dtype, shape), dtype)

    def to_bytes(self, x: Tensor) -> memoryview:
        return storage.to_bytes(x.data, x.dtype)

    def from_list(self, values: Sequence[Any], dtype: DType, shape: tuple[int, ...]) -> Tensor:
        target = numpy_dtype(dtype)
        if dtype.name in storage.NARROW or dtype is dtypes.float16:
            wide = np.array(values, np.float64 if dtype.is_float else np.int64)
            return self._tensor(elementwise.cast(wide, dtype, True).reshape(shape), dtype)
        if dtype.is_integer:
            # Converted by way of the widest integer: NumPy refuses numbers out of range, the protocol wraps them.
            try:
                wide = np.array(values, np.uint64 if dtype is dtypes.uint64 else np.int64)
            except OverflowError as error:
                raise DTypeError(f"an integer of the list does not fit {dtype}: {error}") from None
            return self._tensor(wide.astype(target, copy=False).reshape(shape), dtype)
        return self._tensor(np.array(values, target).reshape(shape), dtype)

    def to_list(self, x: Tensor) -> list[Any]:
        array = x.data
        if x.dtype.name in storage.NARROW:
            array = array.astype(WIDE[x.dtype.name])
        out: list[Any] = array.reshape(-1).tolist()
        return out

    # -- creation

    def full(self, shape: tuple[int, ...], value: Any, dtype: DType) -> Tensor:
        return self._tensor(_filled(shape, value, numpy_dtype(dtype)), dtype)

    def arange(self, start: float, step: float, count: int, dtype: DType) -> Tensor:
        index = np.arange(count, dtype=np.int64)
        if isinstance(start, float) or isinstance(step, float):
            return self._tensor(elementwise.cast(start + index * np.float64(step), dtype, True), dtype)
        return self._tensor((start + index * step).astype(numpy_dtype(dtype)), dtype)

    def random_bits(self, shape: tuple[int, ...], key: int, counter: int) -> Tensor:
        from .philox import philox

        return self._tensor(philox(shape, key, counter), dtypes.uint32)

    def linear_algebra(self, what: str, *operands: Any) -> tuple[Tensor, ...]:  # for core/linalg/dispatch.py
        from .linear_algebra import linear_algebra

        return linear_algebra(self, what, *operands)

    # -- overridden composites

    def dft(self, x: Tensor, length: int, axis: int, inverse: bool, onesided: bool) -> Tensor:
        from .fourier import dft

        return self._tensor(dft(x.data, length, axis, inverse, onesided), x.dtype)

    # -- elementwise

    def unary(self, op: str, x: Tensor) -> Tensor:
        return elementwise.unary(self, op, x)

    def binary(self, op: str, a: Tensor, b: Tensor) -> Tensor:
        return elementwise.binary(self, op, a, b)

    def where(self, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return self._tensor(elementwise.where(condition.data, a.data, b.data), a.dtype)

    def cast(self, x: Tensor, dtype: DType, saturate: bool = True) -> Tensor:
        return self._tensor(elementwise.cast(x.data, dtype, saturate), dtype)

    def bitcast(self, x: Tensor, dtype: DType) -> Tensor:
        return self._tensor(np.ascontiguousarray(x.data).reshape(x.shape).view(numpy_dtype(dtype)), dtype)

    # -- reductions, order

    def reduce(self, op: str, x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
        return elementwise.reduce(self, op, x, axes, keepdims)

    def argreduce(self, op: str, x: Tensor, axis: int, keepdims: bool) -> Tensor:
        array = _comparable(x)
        found = np.asarray(_EXTREMES[op](array, axis), np.int64)
        return self._tensor(np.expand_dims(found, axis) if keepdims else found, dtypes.int64)

    def cumulative(self, op: str, x: Tensor, axis: int) -> Tensor:
        array = x.data.astype(WIDE[x.dtype.name]) if x.dtype.name in WIDE else x.data
        with np.errstate(all="ignore"):
            out = _SCANS[op].accumulate(array, axis=axis, dtype=array.dtype)
        return self._tensor(elementwise.narrowed(out, x.dtype), x.dtype)

    def sort(self, x: Tensor, axis: int, descending: bool) -> tuple[Tensor, Tensor]:
        keys = _comparable(x)
        if descending:
            # Reversed twice, so that equal elements keep their order.
            order = np.argsort(np.flip(keys, axis), axis=axis, kind="stable")
            order = keys.shape[axis] - 1 - np.flip(order, axis)
        else:
            order = np.argsort(keys, axis=axis, kind="stable")
        order = np.asarray(order, np.int64)
        return self._tensor(np.take_along_axis(x.data, order, axis), x.dtype), self._tensor(order, dtypes.int64)

    # -- linear algebra and windows

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        left, right = a.data, b.data
        if a.dtype.name in WIDE:
            left, right = left.astype(WIDE[a.dtype.name]), right.astype(WIDE[a.dtype.name])
        with np.errstate(all="ignore"):
            return self._tensor(elementwise.narrowed(np.matmul(left, right), a.dtype), a.dtype)

    def conv(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: tuple[int, ...],
        padding: tuple[tuple[int, int], ...],
        dilation: tuple[int, ...],
        groups: int,
    ) -> Tensor:
        image, taps, shift = x.data, weight.data, None if bias is None else bias.data
        if x.dtype.name in WIDE:
            image, taps = image.astype(np.float32), taps.astype(np.float32)
            shift = None if shift is None else shift.astype(np.float32)
        out = convolution.conv(image, taps, shift, stride, padding, dilation, groups)
        return self._tensor(elementwise.narrowed(out, x.dtype), x.dtype)

    def pool(
        self,
        op: str,
        x: Tensor,
        kernel: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[tuple[int, int], ...],
        dilation: tuple[int, ...],
    ) -> Tensor:
        array = x.data.astype(WIDE[x.dtype.name]) if x.dtype.name in WIDE else x.data
        out = windows.pool(op, array, kernel, stride, padding, dilation)
        return self._tensor(elementwise.narrowed(out, x.dtype), x.dtype)

    # -- indexing

    def take(self, x: Tensor, indices: Tensor, axis: int) -> Tensor:
        return self._tensor(np.take(x.data, indices.data, axis), x.dtype)

    # -- backward passes (core/autodiff/rules)

    def conv_input_gradient(self, g: Tensor, weight: Tensor, shape: tuple[int, ...], *args: Any) -> Tensor:
        from . import gradients

        return self._tensor(gradients.conv_input(g.data, weight.data, shape, *args), g.dtype)

    def conv_weight_gradient(self, x: Tensor, g: Tensor, shape: tuple[int, ...], *args: Any) -> Tensor:
        from . import gradients

        return self._tensor(gradients.conv_weight(x.data, g.data, shape, *args), g.dtype)

    def max_pool_gradient(self, x: Tensor, y: Tensor, g: Tensor, *args: Any) -> Tensor:
        from . import gradients

        return self._tensor(gradients.max_pool(x.data, y.data, g.data, *args), g.dtype)

    # -- indexing along an axis

    def gather(self, x: Tensor, indices: Tensor, axis: int) -> Tensor:
        return self._tensor(np.take_along_axis(x.data, indices.data, axis), x.dtype)

    def scatter(self, x: Tensor, indices: Tensor, updates: Tensor, axis: int, op: str) -> Tensor:
        return elementwise.scatter(self, x, indices, updates, axis, op)

    def assign_in_place(self, x: Tensor, key: Any, value: Any) -> bool:
        return assignment.assign_in_place(x, key, value)

    def nonzero(self, x: Tensor) -> Tensor:
        array = x.data.astype(np.float32) if x.dtype.name in storage.NARROW else x.data
        return self._tensor(np.stack(np.nonzero(array)).astype(np.int64, copy=False), dtypes.int64)

    # -- movement

    def reshape(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        return self._tensor(x.data.reshape(shape), x.dtype)

    def permute(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return self._tensor(x.data.transpose(axes), x.dtype)

    def expand(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        return self._tensor(np.broadcast_to(x.data, shape), x.dtype)

    def slice(self, x: Tensor, starts: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...]) -> Tensor:
        key = []
        for start, count, step in zip(starts, sizes, steps, strict=True):
            stop = start + count * step
            key.append(slice(start, None if stop < 0 else stop, step))
        return self._tensor(x.data[tuple(key)], x.dtype)

    def pad(self, x: Tensor, padding: tuple[tuple[int, int], ...], value: Any) -> Tensor:
        # np.pad costs several times as much for small arrays.
        shape = tuple(n + low + high for n, (low, high) in zip(x.shape, padding, strict=True))
        out = _filled(shape, value, x.data.dtype)
        out[tuple(slice(low, low + n) for n, (low, _) in zip(x.shape, padding, strict=True))] = x.data
        return self._tensor(out, x.dtype)

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        first = tensors[0]
        if type(first) is not Tensor and hasattr(
            first, "grow"
        ):  # the state of a session, which may have spare capacity
            grown: Tensor | None = first.grow(tensors, axis)
            if grown is not None:
                return grown
        return self._tensor(np.concatenate([t.data for t in tensors], axis), tensors[0].dtype)


def _comparable(x: Tensor) -> Array:
    """x's array in a dtype that NumPy orders (NaN last)."""
    out: Array = x.data.astype(WIDE[x.dtype.name]) if x.dtype.name in storage.NARROW else x.data
    return out


def _filled(shape: tuple[int, ...], value: Any, dtype: np.dtype[Any]) -> Array:
    if shape and min(shape) < 0:
        raise ShapeError(f"a shape has no negative sizes, found {shape}")
    if dtype.kind != "O":
        out: Array = np.full(shape, bool(value) if dtype.kind == "b" else value, dtype)  # of any size
        return out
    texts = np.empty(shape, object)
    texts.fill(value)  # np.full would cut the zeros off the end of a string
    return texts
