"""Products of one row with constant weights as linear layers, whose bias costs no call (bias.py): a product and an
addition, and a convolution at one position."""

from __future__ import annotations

import math

from ....backend import get_backend
from ....backend.tracing import Trace
from ....dtypes import float32, float64
from ....tensor import Tensor
from .of_integers import OfIntegers
from .tracing import Call, Value


def as_linear(trace: Trace) -> None:
    """Change a trace so that such products are linear layers."""
    uses: dict[Value, int] = {}
    for value in (*trace.roots, *(v for call in trace.calls for v in call.operands())):
        uses[value] = uses.get(value, 0) + 1
    calls: list[Call] = []
    gone: set[Call] = set()
    for call in trace.calls:
        product = None if call.keywords else _added(call, uses)
        if product is not None:
            gone.add(product)
            x, weight = product.args
            bias = call.args[2] if call.args[1] is product.results[0] else call.args[1]
            _become(call, x, _shaped(weight, weight.shape[-2:]), _shaped(bias, (bias.size,)))
            calls.append(call)
        elif call.op == "conv" and not call.keywords and _at_one_position(call):
            calls += _layer(call)
        else:
            calls.append(call)
    trace.calls = [call for call in calls if call not in gone]


def _added(call: Call, uses: dict[Value, int]) -> Call | None:
    """The product of one row to which a call adds constants alone; None for others."""
    if call.op != "binary" or call.args[0] != "add":
        return None
    for x, bias in (call.args[1:], call.args[:0:-1]):
        product = x.call if type(x) is Value and uses[x] == 1 else None
        if product is None or product.op != "matmul" or product.keywords or not isinstance(bias, Tensor):
            continue
        row, weight = product.args
        if isinstance(product.method, OfIntegers) and product.method.in_units(bias) is None:
            continue  # it is added to sums that are exact
        if type(row) is not Value or not isinstance(weight, Tensor) or len(weight.shape) < 2:
            continue
        count, width = weight.shape[-2:]
        alike = row.dtype is weight.dtype is bias.dtype and row.dtype in (float32, float64)
        one = math.prod(row.shape) == count > 0 and math.prod(weight.shape) == count * width > 0
        fits = call.results[0].shape == x.shape == (*row.shape[:-1], width)
        if alike and one and fits and bias.shape[-1:] == (width,) and bias.size == width:
            return product
    return None


def _at_one_position(call: Call) -> bool:
    """Whether a convolution sees a whole image at once, and gives one position."""
    x, weight, bias, _, padding, _, groups = call.args
    return (
        type(x) is Value
        and isinstance(weight, Tensor)
        and isinstance(bias, Tensor)
        and groups == 1
        and x.shape[0] == 1
        and weight.shape[2:] == x.shape[2:]
        and math.prod(call.results[0].shape[2:]) == 1
        and not any(low or high for low, high in padding)
        and x.dtype is weight.dtype is bias.dtype
        and x.dtype in (float32, float64)
        and math.prod(weight.shape) > 0
    )


def _layer(call: Call) -> list[Call]:
    """The calls that compute such a convolution."""
    x, weight, bias = call.args[:3]
    result = call.results[0]
    reshape = get_backend("numpy").reshape
    count = math.prod(x.shape)
    flat = Call("reshape", reshape, (x, (1, count)), {})
    flat.results.append(Value(flat, 0, x.dtype, (1, count), x.inputs))
    layer = Call("linear", call.method, (), {})
    layer.results.append(Value(layer, 0, x.dtype, (1, weight.shape[0]), result.inputs))
    matrix = Tensor(weight.data.reshape(-1, count).T, weight.dtype, (count, weight.shape[0]), weight.backend)
    _become(layer, flat.results[0], matrix, bias)
    shaped = Call("reshape", reshape, (layer.results[0], result.shape), {})
    shaped.results.append(result)
    result.call = shaped
    return [flat, layer, shaped]


def _become(call: Call, x: Value, weight: Tensor, bias: Tensor) -> None:
    """Make a call one of a linear layer."""
    call.op = "linear"
    call.method = linear
    call.args = (x, weight, bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x @ weight + bias."""
    return x @ weight + bias


def _shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(x.data.reshape(shape), x.dtype, shape, x.backend)
