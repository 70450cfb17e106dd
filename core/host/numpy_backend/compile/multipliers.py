"""Multipliers of few bits between sums of integers and what reads them: the weights take them, and no pass multiplies.

Sums times such a number are integers times a power of two. Where they and all sums of some of their terms stay below
2**24 of that, floats hold them exactly, in every order: the results are those of the sums that are multiplied last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....backend import get_backend
from ....backend.tracing import Trace
from ....dtypes import float32
from ....tensor import Tensor
from ...quantization.multipliers import odd_part
from ..storage import Array
from . import winograd
from .exact_sums import EXACT, largest_sums
from .of_integers import OfIntegers
from .operands import alone, counts, live
from .scales import SCALES
from .tracing import Call, Value


class _Sums(NamedTuple):
    """A product of integers, its method, the axis of its outputs, and the Call that adds constants to it, if there is
    one."""

    product: Call
    method: OfIntegers
    axis: int
    added: Call | None

    def bias(self) -> Array | None:
        """The integer that is added to each output; None where constants of other kinds are added: after exact sums."""
        given = self.added.args[2] if self.added else self.product.args[2] if self.product.op == "conv" else None
        shape = self.product.results[0].shape
        if given is None:
            return np.zeros(shape[self.axis], np.float32)
        found = _of_outputs(given, shape, self.axis) if self.added else given.data
        return found if found is not None and np.array_equal(np.rint(found), found) else None


def fold(trace: Trace) -> None:
    """Change a trace so that weights of integers take the multipliers of their sums."""
    uses = counts(trace.roots, trace.calls)
    if [call for call in trace.calls if _is_scaled(call) and _take(call, uses)]:
        trace.calls = live(trace)


def _is_scaled(call: Call) -> bool:
    """Whether a call multiplies a Value by float32 constants."""
    if call.op != "binary" or call.keywords or call.args[0] != "mul" or type(call.args[1]) is not Value:
        return False
    factor = call.args[2]
    if not isinstance(factor, Tensor) or factor.dtype is not float32 or not factor.size:
        return False
    return bool((factor.data > SCALES[0]).all() and (factor.data < SCALES[1]).all())


def _take(call: Call, uses: dict[Value, int]) -> bool:
    """Whether the weights whose sums a call multiplies take its factors: the call is changed then."""
    sums = _sums(call, uses)
    if sums is None:
        return False
    product, method, axis, added = sums
    factors, bias = _of_outputs(call.args[2], product.results[0].shape, axis), sums.bias()
    if factors is None or bias is None or not _fit(sums, factors, bias):
        return False
    integers, conv = method.weight.data, product.op == "conv"
    spread = (-1, *(1,) * (integers.ndim - 1)) if conv else (-1,)
    weight = _constant(integers * factors.reshape(spread))
    units = (factors / odd_part(factors)).astype(np.float32).reshape(spread)
    before = product.args
    faster = conv and winograd.fits(product)
    last = _constant(bias * factors)
    product.args = (product.args[0], weight, *product.args[2:])
    if conv and product.args[2] is not None:
        product.args = (*product.args[:2], last, *product.args[3:])
    product.method = OfIntegers(product.op, weight, method.ends, units)
    if faster and not winograd.fits(product):
        product.args, product.method = before, method
        return False
    if added is not None:
        rest = len(product.results[0].shape) - axis - 1
        added.args = ("add", added.args[1], _constant(last.data.reshape((-1, *(1,) * rest))))
    call.op, call.method, call.args = "reshape", get_backend("numpy").reshape, (call.args[1], call.args[1].shape)
    return True


def _fit(sums: _Sums, factors: Array, bias: Array) -> bool:
    """Whether floats hold all sums of integers that are multiplied."""
    integers = sums.method.weight.data
    axes = tuple(range(1, integers.ndim)) if sums.product.op == "conv" else (integers.ndim - 2,)
    largest = largest_sums(integers, axes, sums.method.ends).reshape(-1, len(factors)).max(0) + np.abs(bias)
    return bool((largest * odd_part(factors) < EXACT).all())


def _sums(call: Call, uses: dict[Value, int]) -> _Sums | None:
    """The sums that a call multiplies, if nothing else reads them."""
    made, added = alone(call.args[1], uses), None
    if made is not None and made.op == "binary" and made.args[0] == "add" and isinstance(made.args[2], Tensor):
        added, made = made, alone(made.args[1], uses)
    if made is None or made.keywords or not isinstance(made.method, OfIntegers) or made.method.unit is not None:
        return None
    if made.method.weight is not made.args[1] or call.args[1].shape != call.results[0].shape:
        return None
    if added is not None and made.op == "conv" and made.args[2] is not None:
        return None
    return _Sums(made, made.method, 1 if made.op == "conv" else len(made.results[0].shape) - 1, added)


def _of_outputs(x: Tensor, shape: tuple[int, ...], axis: int) -> Array | None:
    """A number for each output of constants that broadcast against sums along other axes; None for others."""
    data, at = x.data, axis - len(shape) + x.ndim
    if x.size == 1:
        return np.broadcast_to(data.reshape(-1), shape[axis])
    return data.reshape(-1) if at >= 0 and x.shape[at] == x.size == shape[axis] else None


def _constant(x: Array) -> Tensor:
    data = np.asarray(x, np.float32, order="C")
    return Tensor(data, float32, data.shape, get_backend("numpy"))
