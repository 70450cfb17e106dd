"""Operators of two or more tensors: Max and Min, powers, sums, comparisons, logic, Where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, log
from typing import Any

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ops import arithmetic as a
from emberlet.codegen.ops.elementwise import Not

from ..functions import Chain
from ..kernels.elementwise import BinaryFloat, MapFloat, WholeQuotientFloat, _Binary
from ..kernels.layer import Array
from ..kernels.move import strides
from ..kernels.nest import Axis
from ..kernels.pairs import MIRRORED, CompareFloat, ExtremeFloat
from ..kernels.power import PowerFloat
from ..kernels.select import Select
from .activations import aligned, apply_chain, laid_out, pairwise, repeated, widened
from .layout import StoredTensor, dims_of, dtype_of
from .masks import LOWEST
from .state import Importer
from .table import translates

Operand = StoredTensor | Array


def _operands(t: Importer, node: Node[Any], limits: bool = False) -> list[Operand]:
    """The inputs: tensors, and constants as arrays."""
    if getattr(node.config, "axis", None) is not None:
        raise Problem("operands aligned along an axis (before opset 7) are not supported")
    for argument in node.inputs:
        dtype_of(argument)
    return [t.of(x) if x.value is None else t.array(node, k, "an operand", limits) for k, x in enumerate(node.inputs)]


def _mapped(t: Importer, name: str, held: StoredTensor, output: Argument, chain: Chain) -> StoredTensor:
    """A function of one tensor, which is broadcast to the output's shape first."""
    dims = dims_of(output)
    held = repeated(t, widened(t, held, len(dims)), dims)
    out = t.define(output, held.order)
    t.add(MapFloat(name, (held.name,), out.name, t.layout.shapes[held.name], chain))
    return out


def _paired(
    t: Importer, name: str, kind: type[_Binary], operation: str, x: Operand, y: Operand, output: Argument
) -> StoredTensor:
    """A layer of two operands, of which the first is a tensor. They keep their order unless `operation` is mirrored."""
    dims = dims_of(output)
    assert isinstance(x, StoredTensor)
    if isinstance(y, StoredTensor):
        may_swap = kind not in (PowerFloat, WholeQuotientFloat)
        x, y, swapped = aligned(t, dims, x, y, may_swap)
        operation = MIRRORED.get(operation, operation) if swapped else operation
        out = t.define(output, x.order)
        t.add(kind(name, (x.name, y.name), out.name, operation, t.layout.shapes[x.name], t.layout.shapes[y.name], None))
        return out
    x = repeated(t, widened(t, x, len(dims)), dims)
    laid, other = laid_out(
        x, y.reshape((1,) * (len(dims) - y.ndim) + y.shape).astype(np.float64), t.layout.shapes[x.name]
    )
    out = t.define(output, x.order)
    t.add(kind(name, (x.name,), out.name, operation, t.layout.shapes[x.name], other, laid))
    return out


def _part(node: Node[Any], what: str, *shapes: Sequence[int]) -> Argument:
    """An intermediate tensor of a node; shapes: those that broadcast to its own."""
    first = node.outputs[0]
    assert isinstance(first.type, TensorType)
    return Argument(f"{first.name}:{what}", TensorType(first.type.dtype, np.broadcast_shapes(*map(tuple, shapes))))


def _dims(x: Operand) -> tuple[int, ...]:
    return x.dims if isinstance(x, StoredTensor) else x.shape


def _chained(t: Importer, node: Node[Any], kind: type[_Binary], operation: str, given: list[Operand]) -> None:
    """Combine all operands pair by pair, constants last."""
    given.sort(key=lambda x: not isinstance(x, StoredTensor))
    x = given.pop(0)
    for k, y in enumerate(given):
        last = k == len(given) - 1
        output = node.outputs[0] if last else _part(node, f"part {k}", _dims(x), _dims(y))
        x = _paired(t, node.name if last else f"{node.name} {k}", kind, operation, x, y, output)


@translates(a.Div)
def quotient(t: Importer, node: a.Div) -> None:
    if node.dtype(0).is_float:
        pairwise(t, node)
        return
    divisor: Operand = t.of(node.inputs[1]) if node.value(1) is None else t.array(node, 1, "a divisor")
    _paired(t, node.name, WholeQuotientFloat, "div", t.computed(node, 0), divisor, node.outputs[0])


# -- maximum, minimum, sums, powers ----------------------------------------------------------------------------


@translates(a.Max, a.Min)
def extreme(t: Importer, node: a.Extreme) -> None:
    """Constant numbers become a clamp."""
    given = _operands(t, node, True)
    operation = "max" if isinstance(node, a.Max) else "min"
    tensors: list[Operand] = [x for x in given if isinstance(x, StoredTensor)]
    arrays: list[Operand] = [x for x in given if not isinstance(x, StoredTensor) and x.size > 1]
    numbers = [float(x.reshape(-1)[0]) for x in given if not isinstance(x, StoredTensor) and x.size == 1]
    others = [*tensors, *arrays]
    bounds = (max(numbers, default=-inf), inf) if operation == "max" else (-inf, min(numbers, default=inf))
    if len(others) == 1:
        (held,) = others
        assert isinstance(held, StoredTensor)
        _mapped(t, node.name, held, node.outputs[0], (("clip", bounds),) if numbers else (("affine", (1.0, 0.0)),))
        return
    if numbers:
        middle = _part(node, "unclamped", *(_dims(x) for x in others))
        _chained(t, replace(node, name=f"{node.name} of tensors", outputs=(middle,)), ExtremeFloat, operation, others)
        _mapped(t, node.name, t.layout.held[middle.name], node.outputs[0], (("clip", bounds),))
        return
    _chained(t, node, ExtremeFloat, operation, others)


@translates(a.Sum)
def total(t: Importer, node: a.Sum) -> None:
    """Mean is a sum times a constant."""
    given = _operands(t, node)
    target = node
    if isinstance(node, a.Mean):
        target = replace(node, name=f"{node.name} sum", outputs=(_part(node, "sum", dims_of(node.outputs[0])),))
    if len(given) == 1:
        (held,) = given
        assert isinstance(held, StoredTensor)
        _mapped(t, node.name, held, node.outputs[0], (("affine", (1.0, 0.0)),))
        return
    _chained(t, target, BinaryFloat, "add", given)
    if target is not node:
        held = t.layout.held[target.outputs[0].name]
        _mapped(t, node.name, held, node.outputs[0], (("affine", (1 / len(node.inputs), 0.0)),))


@translates(a.Pow)
def power(t: Importer, node: a.Pow) -> None:
    """With a single exponent or a single base, it is a function of one number."""
    base, exponent = _operands(t, node)
    if not isinstance(exponent, StoredTensor) and exponent.size == 1:
        assert isinstance(base, StoredTensor)
        _mapped(t, node.name, base, node.outputs[0], (("pow", (float(exponent.reshape(-1)[0]),)),))
        return
    if isinstance(base, StoredTensor):
        _paired(t, node.name, PowerFloat, "pow", base, exponent, node.outputs[0])
        return
    assert isinstance(exponent, StoredTensor)
    if base.size != 1 or base.reshape(-1)[0] <= 0:
        raise Problem("the constant base must be one positive number")
    chain: Chain = (("affine", (log(float(base.reshape(-1)[0])), 0.0)), ("exp", ()))
    _mapped(t, node.name, exponent, node.outputs[0], chain)


# -- comparisons and logic --------------------------------------------------------------------------------------------

OPERATIONS: dict[type[Node[Any]], str] = {
    a.Greater: "greater",
    a.GreaterOrEqual: "greater_equal",
    a.Less: "less",
    a.LessOrEqual: "less_equal",
    a.Equal: "equal",
    a.And: "min",
    a.Or: "max",
    a.Xor: "equal",
}


@translates(*OPERATIONS)
def compared(t: Importer, node: a.Pairwise) -> None:
    """1 for true, 0 for false: And is the minimum, Or the maximum."""
    x, y = _operands(t, node, True)
    operation, output = OPERATIONS[type(node)], node.outputs[0]
    if not isinstance(x, StoredTensor):
        x, y, operation = y, x, MIRRORED.get(operation, operation)
    assert isinstance(x, StoredTensor)
    kind = ExtremeFloat if operation in ("min", "max") else CompareFloat
    differs: Chain = (("affine", (-1.0, 1.0)),) if isinstance(node, a.Xor) else ()
    if not isinstance(y, StoredTensor) and y.size == 1:
        number = float(y.reshape(-1)[0])
        bounds = (number, inf) if operation == "max" else (-inf, number)
        chain: Chain = ((operation, (number,)),) if kind is CompareFloat else (("clip", bounds),)
        _mapped(t, node.name, x, output, chain + differs)
        return
    if not isinstance(y, StoredTensor):
        y = np.clip(y, LOWEST, -LOWEST)
    if not differs:
        _paired(t, node.name, kind, operation, x, y, output)
        return
    middle = _part(node, "same", dims_of(output))
    held = _paired(t, f"{node.name} same", kind, operation, x, y, middle)
    _mapped(t, node.name, held, output, differs)


@translates(Not)
def negated(t: Importer, node: Not) -> None:
    apply_chain(t, node, (("affine", (-1.0, 1.0)),))


@translates(a.Where)
def where(t: Importer, node: a.Where) -> None:
    """Any operand may be constant. Minus infinity becomes the smallest float32."""
    given, dims = _operands(t, node, True), dims_of(node.outputs[0])
    held = [widened(t, x, len(dims)) for x in given if isinstance(x, StoredTensor)]
    order = next((x.order for x in held if x.dims == dims), tuple(range(len(dims))))
    laid: list[StoredTensor | Array] = []
    for x in given:
        if isinstance(x, StoredTensor):
            laid.append(t.ordered(widened(t, x, len(dims)), order))
        else:
            wide = np.clip(x.astype(np.float32), LOWEST, -LOWEST).reshape((1,) * (len(dims) - x.ndim) + x.shape)
            laid.append(np.ascontiguousarray(np.transpose(wide, order)))
    out = t.define(node.outputs[0], order)
    sizes = [dims[k] for k in order]
    steps = [_steps([x.dims[k] for k in order] if isinstance(x, StoredTensor) else x.shape) for x in laid]
    axes = tuple(Axis(n, tuple(each)) for n, *each in zip(sizes, *steps, strides(sizes), strict=True))
    names = tuple(x.name for x in laid if isinstance(x, StoredTensor))
    constants = tuple(None if isinstance(x, StoredTensor) else x for x in laid)
    t.add(Select(node.name, names, out.name, out.shape, axes, constants))  # type: ignore[arg-type]


def _steps(sizes: Sequence[int]) -> list[int]:
    """The strides in elements, 0 along a broadcast axis."""
    return [step if n > 1 else 0 for n, step in zip(sizes, strides(sizes), strict=True)]
