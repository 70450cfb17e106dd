"""Activations and normalizations, step for step as ../composites.py computes them: the results are the same bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....backend import get_backend
from ....tensor import Tensor
from ..elementwise import clipping
from ..storage import WIDE, Array
from .layout import gapless
from .steps import Writer
from .tracing import Call, Value

FEW = 1 << 14  # maximum bytes


def clipped(x: Array, low: Any, high: Any, out: Array) -> None:
    """np.clip into an array."""
    clipping(x, low, high, out)


def _plain(x: Any) -> bool:
    """Whether x is a Value of a float dtype that is computed in itself."""
    return type(x) is Value and x.dtype.is_float and x.dtype.name not in WIDE and bool(math.prod(x.shape))


def relu(w: Writer, call: Call) -> Any:
    (x,) = call.args
    if not _plain(x):
        return False
    array, kind = w.array(x), w.array(x).dtype.type
    out = w.out_over(call.results[0], call, x)
    whole = None if gapless(out) and gapless(array) else _small(w, call, x)
    if whole is None:
        w.map(clipping, array, kind(0), kind(np.inf), out)
        return None
    w.map(clipping, whole, kind(0), kind(np.inf), whole)
    w.copy(array, out)
    return None


def _small(w: Writer, call: Call, x: Value) -> Array | None:
    """The few elements of memory in which x lies, if nothing else lies there that is read behind the call. A ufunc and
    a copy take less time than the same ufunc over lines."""
    array = w.array(x)
    buffer = w.buffers.of(array)
    if buffer is None or buffer.fill is not None or buffer.nbytes > FEW or buffer.array.dtype != array.dtype:
        return None
    return buffer.array if w.dying(x, call) else None


def clip(w: Writer, call: Call) -> Any:
    x, low, high = call.args
    if not _plain(x) or isinstance(low, Value) or isinstance(high, Value) or hasattr(low or high, "backend"):
        return False
    if hasattr(high, "backend"):
        return False
    array, kind = w.array(x), w.array(x).dtype.type
    if low is None and high is None:
        w.put(call.results[0], array)
        return None
    out = w.out_over(call.results[0], call, x)
    if low is None:
        w.map(np.minimum, array, kind(high), out)
    elif high is None:
        w.map(np.maximum, array, kind(low), out)
    else:
        w.map(clipping, array, kind(low), kind(high), out)
    return None


def sigmoid(w: Writer, call: Call) -> Any:
    (x,) = call.args
    if not _plain(x):
        return False
    array = w.array(x)
    out = w.out_over(call.results[0], call, x)
    w.map(np.negative, array, out)
    w.map(np.exp, out, out)
    w.map(np.add, out, out.dtype.type(1), out)
    w.map(np.reciprocal, out, out)
    return None


def softmax(w: Writer, call: Call) -> Any:
    x, axis = call.args
    if not _plain(x):
        return False
    array = w.array(x)
    out = w.out_over(call.results[0], call, x)
    row = w.scratch(tuple(1 if i == axis else n for i, n in enumerate(x.shape)), out.dtype)
    w.emit(np.maximum.reduce, array, axis, None, row, True, writes=(row,))
    w.map(np.subtract, array, row, out)
    w.map(np.exp, out, out)
    w.emit(np.add.reduce, out, axis, None, row, True, writes=(row,))
    w.map(np.true_divide, out, row, out)
    return None


def log_softmax(w: Writer, call: Call) -> Any:
    x, axis = call.args
    if not _plain(x):
        return False
    array = w.array(x)
    out = w.out_over(call.results[0], call, x)
    row = w.scratch(tuple(1 if i == axis else n for i, n in enumerate(x.shape)), out.dtype)
    powers = w.scratch(x.shape, out.dtype)
    w.emit(np.maximum.reduce, array, axis, None, row, True, writes=(row,))
    w.map(np.subtract, array, row, out)
    w.map(np.exp, out, powers)
    w.emit(np.add.reduce, powers, axis, None, row, True, writes=(row,))
    w.map(np.log, row, row)
    w.map(np.subtract, out, row, out)
    return None


def gelu_over(x: Tensor, approximate: str, divisor: float) -> Tensor:
    """gelu(x, approximate) / divisor of float32."""
    backend = get_backend("numpy")
    return backend.binary("div", backend.gelu(x, approximate), backend.full((), divisor, x.dtype))


def gelu(w: Writer, call: Call) -> Any:
    """Lowers `gelu` and `gelu_over`: half of a number by another is it by twice that, to the same bits."""
    x, approximate, *divisor = call.args
    if not _plain(x) or w.array(x).dtype != np.float32:
        return False
    array, one = w.array(x), np.float32
    bend = w.scratch(x.shape, array.dtype)
    if approximate == "tanh":
        w.map(np.multiply, array, array, bend)
        w.map(np.multiply, bend, one(0.044715), bend)
        w.map(np.add, bend, one(1), bend)
        w.map(np.multiply, bend, array, bend)
        w.map(np.multiply, bend, one(0.7978845608028654), bend)
        w.map(np.tanh, bend, bend)
    else:
        w.map(np.multiply, array, one(0.7071067811865476), bend)
        _erf(w, bend, bend)
    w.map(np.add, bend, one(1), bend)
    w.map(np.multiply, bend, array, bend)
    out = w.out_over(call.results[0], call, x)
    if divisor:
        w.map(np.true_divide, bend, one(2 * divisor[0]), out)
    else:
        w.map(np.multiply, bend, one(0.5), out)
    return None


def erf(w: Writer, call: Call) -> Any:
    x = call.args[1]
    array = w.array(x)
    if array.dtype != np.float32 or not array.size:
        return False
    _erf(w, array, w.out(call.results[0]))
    return None


# The coefficients of ../elementwise.py
_P = (2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
      -2.95459980854025e-03)  # fmt: skip
_Q = (-2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03)


def _erf(w: Writer, source: Array, out: Array) -> None:
    """out = erf(source) of float32."""
    one = np.float32
    x, s, p = (w.scratch(source.shape, source.dtype) for _ in range(3))
    w.map(clipping, source, one(-4), one(4), x)
    w.map(np.multiply, x, x, s)
    w.map(np.multiply, one(-2.72614225801306e-10), s, p)
    for c in _P:
        w.map(np.add, p, one(c), p)
        w.map(np.multiply, p, s, p)
    w.map(np.add, p, one(-1.60960333262415e-02), p)
    w.map(np.multiply, x, p, x)
    w.map(np.multiply, one(-1.45660718464996e-05), s, p)
    for c in _Q:
        w.map(np.add, p, one(c), p)
        w.map(np.multiply, p, s, p)
    w.map(np.add, p, one(-1.42647390514189e-02), p)
    w.map(np.true_divide, x, p, out)


def _parameter(w: Writer, x: Any, dtype: np.dtype[Any]) -> Array | None:
    """A weight or bias as an array of a dtype. None if it is absent, or if it has another dtype and is not constant."""
    if type(x) is Value:
        return w.array(x) if w.array(x).dtype == dtype else None
    array = np.asarray(x.data if hasattr(x, "backend") else x)
    return array if array.dtype == dtype else array.astype(dtype)


def _alone(x: Any, *parameters: Any) -> list[Any]:
    """[x] if x may be overwritten before the parameters are read; [] if a parameter could share its memory."""
    return [] if any(type(p) is Value for p in parameters) else [x]


def layer_norm(w: Writer, call: Call) -> Any:
    x, weight, bias, epsilon, axis = call.args
    if not _plain(x):
        return False
    array = w.array(x)
    scaled = [None if p is None else _parameter(w, p, array.dtype) for p in (weight, bias)]
    if any(p is not None and s is None for p, s in zip((weight, bias), scaled, strict=True)):
        return False
    axes = tuple(range(axis, len(x.shape)))
    mean = _mean(w, array, axes)
    out = w.out_over(call.results[0], call, *_alone(x, weight, bias))
    w.map(np.subtract, array, mean, out)
    squares = w.scratch(x.shape, array.dtype)
    w.map(np.multiply, out, out, squares)
    scale = _mean(w, squares, axes)
    w.map(np.add, scale, array.dtype.type(epsilon), scale)
    w.map(np.sqrt, scale, scale)
    w.map(np.true_divide, out, scale, out)
    _affine(w, out, scaled[0], scaled[1])
    return None


def rms_norm(w: Writer, call: Call) -> Any:
    x, weight, epsilon, axis = call.args
    if not _plain(x):
        return False
    array = w.array(x)
    scaled = None if weight is None else _parameter(w, weight, array.dtype)
    if weight is not None and scaled is None:
        return False
    squares = w.scratch(x.shape, array.dtype)
    w.map(np.multiply, array, array, squares)
    scale = _mean(w, squares, tuple(range(axis, len(x.shape))))
    w.map(np.add, scale, array.dtype.type(epsilon), scale)
    w.map(np.sqrt, scale, scale)
    out = w.out_over(call.results[0], call, *_alone(x, weight))
    w.map(np.true_divide, array, scale, out)
    _affine(w, out, scaled, None)
    return None


def _affine(w: Writer, out: Array, weight: Array | None, bias: Array | None) -> None:
    if weight is not None:
        w.map(np.multiply, out, weight, out)
    if bias is not None:
        w.map(np.add, out, bias, out)


def batch_norm(w: Writer, call: Call) -> Any:
    x, *parameters, epsilon = call.args
    if not _plain(x) or any(type(p) is Value for p in parameters):
        return False
    array = w.array(x)
    one = array.dtype.type
    shape = (-1, *(1,) * (len(x.shape) - 2))
    found = [None if p is None else _parameter(w, p, array.dtype) for p in parameters]
    mean, var, weight, bias = (None if p is None else p.reshape(shape) for p in found)
    if mean is None or var is None or mean.size != x.shape[1]:
        return False
    with np.errstate(all="ignore"):
        scale = one(1) / np.sqrt(var + one(epsilon))
        if weight is not None:
            scale = scale * weight
        shift = -mean * scale
        if bias is not None:
            shift = shift + bias
    out = w.out_over(call.results[0], call, x)
    w.map(np.multiply, array, scale, out)
    w.map(np.add, out, shift, out)
    return None


def _mean(w: Writer, x: Array, axes: tuple[int, ...]) -> Array:
    """The mean over axes, which stay with length 1; added as ndarray.mean adds."""
    out = w.scratch(tuple(1 if i in axes else n for i, n in enumerate(x.shape)), x.dtype)
    w.emit(np.add.reduce, x, axes, None, out, True, writes=(out,))
    w.map(np.true_divide, out, x.dtype.type(math.prod(x.shape[a] for a in axes)), out)
    return out
