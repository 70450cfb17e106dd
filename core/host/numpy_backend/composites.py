"""Composites of the functional layer in fewer passes over memory than their primitives take.

tests/core/test_activations.py compares each with its composite. Narrow floats are computed in float32 and rounded once,
except in softmax, whose every step ONNX rounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...tensor import Tensor
from .elementwise import erf, narrowed
from .storage import WIDE, Array

if TYPE_CHECKING:
    from .backend import NumpyBackend


def _wide(x: Tensor) -> Array:
    array: Array = x.data
    return array.astype(WIDE[x.dtype.name]) if x.dtype.name in WIDE else array


def _back(backend: NumpyBackend, array: Array, like: Tensor) -> Tensor:
    return backend._tensor(narrowed(array, like.dtype), like.dtype)


def _operand(value: Any, x: Tensor) -> Array:
    """A parameter (tensor or array-like) in the dtype that x is computed in."""
    array = value.data if isinstance(value, Tensor) else np.asarray(value)
    wide = WIDE.get(x.dtype.name, x.data.dtype)
    return array if array.dtype == wide else array.astype(wide)


def relu(backend: NumpyBackend, x: Tensor) -> Tensor:
    array = _wide(x)
    zero = array.dtype.type(0)
    if array.dtype.kind == "f":
        # NumPy's maximum with a scalar takes one element at a time, its clip a vector of them.
        return _back(backend, array.clip(zero, array.dtype.type(np.inf)), x)
    return _back(backend, np.maximum(array, zero), x)


def sigmoid(backend: NumpyBackend, x: Tensor) -> Tensor:
    with np.errstate(all="ignore"):
        out = np.asarray(np.negative(_wide(x)))  # of a tensor without axes it would be a scalar
        np.exp(out, out=out)
        out += 1
        np.reciprocal(out, out=out)
    return _back(backend, out, x)


def softmax(backend: NumpyBackend, x: Tensor, axis: int) -> Tensor:
    if not x.size:
        return x
    with np.errstate(all="ignore"):
        if x.dtype.name in WIDE:
            wide = WIDE[x.dtype.name]
            e = narrowed(_wide(x) - _wide(x).max(axis, keepdims=True), x.dtype).astype(wide)
            e = narrowed(np.exp(e), x.dtype).astype(wide)
            total = e.sum(axis, keepdims=True)
            rounded = narrowed(total, x.dtype).astype(wide)
            return _back(backend, e / np.where(np.isinf(rounded), total, rounded), x)
        out = x.data - x.data.max(axis, keepdims=True)
        np.exp(out, out=out)
        out /= out.sum(axis, keepdims=True)
    return backend._tensor(out, x.dtype)


def log_softmax(backend: NumpyBackend, x: Tensor, axis: int) -> Tensor:
    if not x.size:
        return x
    array = _wide(x)
    with np.errstate(all="ignore"):
        out = array - array.max(axis, keepdims=True)
        out -= np.log(np.exp(out).sum(axis, keepdims=True))
    return _back(backend, out, x)


def gelu(backend: NumpyBackend, x: Tensor, approximate: str) -> Tensor:
    array = _wide(x)
    with np.errstate(all="ignore"):
        if approximate == "tanh":
            bend = np.asarray(array * array)  # of a tensor without axes it would be a scalar
            bend *= 0.044715
            bend += 1
            bend *= array
            bend *= 0.7978845608028654
            np.tanh(bend, out=bend)
        else:
            bend = erf(array * array.dtype.type(0.7071067811865476))
        bend += 1
        bend *= array
        bend *= 0.5
    return _back(backend, bend, x)


def layer_norm(backend: NumpyBackend, x: Tensor, weight: Any, bias: Any, epsilon: float, axis: int) -> Tensor:
    array = _wide(x)
    axes = tuple(range(axis, x.ndim))
    with np.errstate(all="ignore"):
        out = array - array.mean(axes, keepdims=True)
        scale = np.mean(out * out, axes, keepdims=True)
        scale += epsilon
        np.sqrt(scale, out=scale)
        out /= scale
        if weight is not None:
            out *= _operand(weight, x)
        if bias is not None:
            out += _operand(bias, x)
    return _back(backend, out, x)


def rms_norm(backend: NumpyBackend, x: Tensor, weight: Any, epsilon: float, axis: int) -> Tensor:
    array = _wide(x)
    with np.errstate(all="ignore"):
        scale = np.mean(array * array, tuple(range(axis, x.ndim)), keepdims=True)
        scale += epsilon
        np.sqrt(scale, out=scale)
        out = array / scale
        if weight is not None:
            out *= _operand(weight, x)
    return _back(backend, out, x)


def batch_norm(backend: NumpyBackend, x: Tensor, mean: Any, var: Any, weight: Any, bias: Any, epsilon: float) -> Tensor:
    array = _wide(x)
    one = array.dtype.type
    mean, var, weight, bias = (None if p is None else _channels(p, x) for p in (mean, var, weight, bias))
    with np.errstate(all="ignore"):
        scale = one(1) / np.sqrt(var + one(epsilon))
        if weight is not None:
            scale *= weight
        shift = -mean * scale
        if bias is not None:
            shift += bias
        out = array * scale
        out += shift
    return _back(backend, out, x)


def _channels(value: Any, x: Tensor) -> Array:
    """One value per channel (axis 1), shaped to broadcast along x."""
    array = _operand(value, x)
    if array.shape != x.shape[1:2]:
        raise ShapeError(f"expected one value per channel of {x.shape}, found shape {array.shape}")
    return array.reshape(-1, *(1,) * (x.ndim - 2))


def clip(backend: NumpyBackend, x: Tensor, low: float | Tensor | None, high: float | Tensor | None) -> Tensor:
    if isinstance(low, Tensor):
        x, low = backend.binary("maximum", x, low), None
    if isinstance(high, Tensor):  # low is None by now: bounds are both tensors or both numbers
        x, high = backend.binary("minimum", x, high), None
    array = _wide(x)
    if x.dtype.is_integer:
        info = np.iinfo(array.dtype)
        low = None if low is None else min(max(low, info.min), info.max)
        high = None if high is None else min(max(high, info.min), info.max)
    if low is None and high is None:
        return x
    # The bounds in x's own dtype, so that they round as they would beside it.
    low, high = (None if v is None else array.dtype.type(v) for v in (low, high))
    return _back(backend, np.clip(array, low, high), x)


def linear(backend: NumpyBackend, x: Tensor, weight: Tensor, bias: Any) -> Tensor:
    with np.errstate(all="ignore"):
        out = np.matmul(_wide(x), _wide(weight))
        if bias is not None:
            out += _operand(bias, x)
    return _back(backend, out, x)


def signbit(backend: NumpyBackend, x: Tensor) -> Tensor:
    from ... import dtypes

    return backend._tensor(np.signbit(_wide(x)), dtypes.bool)
