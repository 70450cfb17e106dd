"""Gradient (ai.onnx.preview.training): replaced by the operators that compute the derivatives, before types are
inferred.

Reverse mode over the nodes between `y` and `xs`. A model with an operator that has no rule is refused, with the
operator's name. https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Gradient.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..ir.problem import Problem
from ..protobuf import NodeProto
from ..protobuf.messages import AttributeType
from ..protobuf.messages import node as make_node

DOMAIN = "ai.onnx.preview.training"
OPSET = {"": 21, "emberlet": 1}
OWN = "emberlet"


class Tape:
    """The nodes written for one Gradient node; their values get new names."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.nodes: list[NodeProto] = []

    def emit(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"{self.label}::{len(self.nodes)}"
        self.nodes.append(make_node(op, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def number(self, value: float, like: str) -> str:
        """A constant of the type of a value."""
        return self.emit("CastLike", self.emit("Constant", value_float=value), like)


Rule = Callable[[Tape, NodeProto, str], Iterator[str]]
"""(tape, node, gradient of its output) -> the gradient of each input; "" for one that has none."""


def gradient(
    node: NodeProto, label: str, before: Sequence[NodeProto]
) -> tuple[Sequence[NodeProto], Sequence[NodeProto]]:
    """(a copy of the differentiated nodes, on the given values; nodes that compute the derivatives, of OPSET).

    Raises Problem.
    """
    xs, zs, y = (_attribute(node, name) for name in ("xs", "zs", "y"))
    if len(y) != 1 or len(node.input) != len(xs) + len(zs) or len(node.output) > len(xs):
        raise Problem(f"xs {xs}, zs {zs} and y {y} do not fit {len(node.input)} inputs and {len(node.output)} outputs")
    tape = Tape(label)
    values: dict[str, str] = {}
    copies: list[NodeProto] = []
    for name, source in zip((*xs, *zs), node.input, strict=True):
        if source in values.values():  # one tensor under two names: each has a derivative of its own
            copies.append(make_node("Identity", [source], [f"{label}::{name}"], name=f"{label}::{name}"))
            source = f"{label}::{name}"
        values[name] = source
    path = between(before, set(values), y[0])
    # Computed again, since the inputs need not be the tensors that xs and zs name.
    forward = [_copied(n, label, values) for n in path]
    if y[0] not in values:
        raise Problem(f"no earlier node computes {y[0]!r} from {', '.join(xs)}")
    of = _derivatives(tape, forward, values[y[0]])
    for x, output in zip(xs, node.output, strict=False):
        if output:
            found = of.get(values[x]) or tape.emit("Sub", values[x], values[x])
            tape.nodes.append(make_node("Identity", [found], [output], name=f"{label}::{output}"))
    return [*copies, *forward], tape.nodes


def _copied(node: NodeProto, label: str, values: dict[str, str]) -> NodeProto:
    """The node on the given values; its outputs are added to these."""
    copy = type(node)()
    copy.CopyFrom(node)
    copy.name = f"{label}::{node.name or node.op_type}"
    del copy.input[:], copy.output[:]
    copy.input.extend(values.get(i, i) for i in node.input)
    copy.output.extend(f"{label}::{o}" for o in node.output)
    values.update(zip(node.output, copy.output, strict=True))
    return copy


def _derivatives(tape: Tape, forward: Sequence[NodeProto], y: str) -> dict[str, str]:
    """The derivative of `y` by each tensor that no node makes. Raises Problem."""
    of = {y: _ones(tape, y)}
    for n in reversed(forward):
        given = of.pop(n.output[0], None)
        if given is None:
            continue
        rule = RULES.get(n.op_type) if n.domain in ("", "ai.onnx") else None
        if rule is None:
            raise Problem(f"the derivative of {n.op_type} is not supported")
        for source, part in zip(n.input, rule(tape, n, given), strict=False):
            if part:
                of[source] = tape.emit("Add", of[source], part) if source in of else part
    return of


def between(before: Sequence[NodeProto], sources: set[str], y: str) -> list[NodeProto]:
    """The nodes between the sources and y: those that y depends on and that depend on a source, in order."""
    reached, wanted = set(sources), {y}
    forward = []
    for n in before:
        if any(i in reached for i in n.input) and not any(o in sources for o in n.output):
            reached.update(n.output)
            forward.append(n)
    path = []
    for n in reversed(forward):
        if any(o in wanted for o in n.output):
            wanted.update(n.input)
            path.append(n)
    return path[::-1]


def _attribute(node: NodeProto, name: str) -> list[str]:
    for a in node.attribute:
        if a.name == name:
            found = a.strings if a.type == AttributeType.STRINGS else [a.s]
            return [s.decode("utf-8", "replace") for s in found]
    return []


def _ones(tape: Tape, like: str) -> str:
    return tape.emit("Expand", tape.number(1.0, like), tape.emit("Shape", like))


def _to(tape: Tape, part: str, operand: str) -> str:
    """A part summed over the axes along which its operand was broadcast."""
    return tape.emit("SumTo", part, operand, domain=OWN)


def add(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
    yield from (_to(tape, g, i) for i in n.input)


def subtract(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
    yield _to(tape, g, n.input[0])
    yield _to(tape, tape.emit("Neg", g), n.input[1])


def multiply(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
    a, b = n.input
    yield _to(tape, tape.emit("Mul", g, b), a)
    yield _to(tape, tape.emit("Mul", g, a), b)


def divide(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
    a, b = n.input
    part = tape.emit("Div", g, b)
    yield _to(tape, part, a)
    yield _to(tape, tape.emit("Neg", tape.emit("Mul", part, n.output[0])), b)


def power(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
    """The gradient of the base only; the exponent counts as constant."""
    x, p = n.input
    less = tape.emit("Sub", p, tape.number(1.0, p))
    yield _to(tape, tape.emit("Mul", g, tape.emit("Mul", tape.emit("CastLike", p, x), tape.emit("Pow", x, less))), x)


def matmul(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
    a, b = n.input
    yield tape.emit("Gemm", g, b, transB=1)  # refused unless they are matrices
    yield tape.emit("Gemm", a, g, transA=1)


def reduce_sum(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
    yield tape.emit("Expand", _restored(tape, n, g), tape.emit("Shape", n.input[0]))


def reduce_mean(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
    x = n.input[0]
    count = tape.emit("Div", *(tape.emit("CastLike", tape.emit("Size", v), x) for v in (x, n.output[0])))
    yield tape.emit("Div", tape.emit("Expand", _restored(tape, n, g), tape.emit("Shape", x)), count)


def _restored(tape: Tape, n: NodeProto, g: str) -> str:
    """The gradient with the reduced axes restored, of length 1."""
    kept = [a.i for a in n.attribute if a.name == "keepdims"]
    axes = [list(a.ints) for a in n.attribute if a.name == "axes"]
    if kept != [0]:
        return g
    if not axes and len(n.input) < 2:
        return g  # all axes were reduced: a scalar broadcasts
    return tape.emit("Unsqueeze", g, n.input[1] if not axes else tape.emit("Constant", value_ints=axes[0]))


def reshape(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
    yield tape.emit("Reshape", g, tape.emit("Shape", n.input[0]))


def transpose(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
    perm = next((list(a.ints) for a in n.attribute if a.name == "perm"), None)
    yield (
        tape.emit("Transpose", g)
        if perm is None
        else tape.emit("Transpose", g, perm=sorted(range(len(perm)), key=perm.__getitem__))
    )


def scaled(factor: Callable[[Tape, NodeProto], str]) -> Rule:
    """The rule of a function of one tensor whose derivative is a factor for each element."""

    def rule(tape: Tape, n: NodeProto, g: str) -> Iterator[str]:
        yield tape.emit("Mul", g, factor(tape, n))

    return rule


def _sigmoid(t: Tape, n: NodeProto) -> str:
    y = n.output[0]
    return t.emit("Mul", y, t.emit("Sub", t.number(1.0, y), y))


def _tanh(t: Tape, n: NodeProto) -> str:
    y = n.output[0]
    return t.emit("Sub", t.number(1.0, y), t.emit("Mul", y, y))


RULES: dict[str, Rule] = {
    "Abs": scaled(lambda t, n: t.emit("Sign", n.input[0])),
    "Add": add,
    "Cos": scaled(lambda t, n: t.emit("Neg", t.emit("Sin", n.input[0]))),
    "Div": divide,
    "Exp": scaled(lambda t, n: n.output[0]),
    "Identity": lambda t, n, g: iter([g]),
    "Log": scaled(lambda t, n: t.emit("Reciprocal", n.input[0])),
    "MatMul": matmul,
    "Mul": multiply,
    "Neg": lambda t, n, g: iter([t.emit("Neg", g)]),
    "Pow": power,
    "ReduceMean": reduce_mean,
    "ReduceSum": reduce_sum,
    "Relu": scaled(lambda t, n: t.emit("Sign", n.output[0])),
    "Reshape": reshape,
    "Sigmoid": scaled(_sigmoid),
    "Sin": scaled(lambda t, n: t.emit("Cos", n.input[0])),
    "Sqrt": scaled(lambda t, n: t.emit("Div", t.number(0.5, n.output[0]), n.output[0])),
    "Sub": subtract,
    "Sum": add,
    "Tanh": scaled(_tanh),
    "Transpose": transpose,
}
