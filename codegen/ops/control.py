"""Control flow, as Python's own."""

from __future__ import annotations

from dataclasses import replace

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter
from ..emit.expression import Attribute, Binary, Call, Conditional, Expr, List, Name, Tuple, Unary, lift
from ..emit.layout import names_of
from ..emit.statement import Assign, Break, Do, For, Statement, While
from ..emit.statement import If as IfStatement
from ..ir.graph import Graph, Node
from ..ir.problem import Problem
from ..ir.types import (
    ScalarType,
    SequenceType,
    ShapeType,
    TensorType,
    Type,
    UnknownType,
    as_tensor,
    join,
)
from ..records import dataclass
from .attributes import Attributes
from .base import axis_of


def carried(t: Type) -> Type:
    """The type of a value that leaves a branch or a loop iteration: sizes and numbers become tensors."""
    return as_tensor(t) if isinstance(t, ScalarType | ShapeType) else t


@dataclass(frozen=True)
class IfConfig:
    then_branch: Graph
    else_branch: Graph


class If(Node[IfConfig]):
    """One of two graphs."""

    since = (1, 11, 13, 16, 19, 21, 23, 24, 25)

    @classmethod
    def read(cls, a: Attributes) -> IfConfig:
        config = IfConfig(a.graph("then_branch"), a.graph("else_branch"))
        for graph in (config.then_branch, config.else_branch):
            if len(graph.outputs) < len(a.outputs):
                raise Problem(f"a branch has {len(graph.outputs)} outputs, the node {len(a.outputs)}")
        return config

    def infer(self) -> tuple[Type, ...]:
        then, otherwise = self.config.then_branch.outputs, self.config.else_branch.outputs
        return tuple(_either(carried(a.type), carried(b.type)) for a, b in zip(then, otherwise, strict=False))

    def emit(self, e: Emitter) -> Emission:
        targets = e.targets()
        names = tuple(t.id for t in targets if isinstance(t, Name))
        blocks: list[list[Statement]] = []
        for graph in (self.config.then_branch, self.config.else_branch):
            statements, outputs = e.body(graph, (), names)
            blocks.append([*statements, *assignments(names, outputs)])
        test = e.held(0) if isinstance(self.type(0), ScalarType) else e.x(0)
        e.push(IfStatement(test, blocks[0], blocks[1]))
        return targets


def _either(a: Type, b: Type) -> Type:
    try:
        return join(a, b)
    except Problem:
        return UnknownType()  # the branches have different types; later nodes find out at run time


def assignments(names: tuple[str, ...], values: tuple[Expr, ...]) -> list[Statement]:
    """`a, b = x, y`, without unused targets."""
    pairs = [(n, v) for n, v in zip(names, values, strict=False) if n != "_" and v != Name(n)]
    if not pairs:
        return []
    if len(pairs) == 1:
        return [Assign((pairs[0][0],), pairs[0][1])]
    return [Assign(tuple(n for n, _ in pairs), Tuple(tuple(v for _, v in pairs)))]


ENDLESS = 1 << 62  # iterations: exporters write this if only the condition ends the loop


@dataclass(frozen=True)
class LoopConfig:
    """outputs: the types of the values carried from one iteration to the next."""

    body: Graph
    states: tuple[Type, ...]


class Loop(Node[LoopConfig]):
    """A for or a while: trip count and condition, values carried along, and one list for each scan output."""

    since = (1, 11, 13, 16, 19, 21, 23, 24, 25)

    @classmethod
    def read(cls, a: Attributes) -> LoopConfig:
        number, flag = ScalarType(dtypes.int64, None, True), ScalarType(dtypes.bool)
        states = tuple(carried(x.type) for x in a.inputs[2:])
        for _ in range(4):
            body = a.graph("body", (number, flag, *states))
            after = tuple(carried(o.type) for o in body.outputs[1 : 1 + len(states)])
            joined = tuple(join(s, t) for s, t in zip(states, after, strict=False))
            if joined == states:
                return LoopConfig(body, states)
            states = joined
        raise Problem("the types of the values carried by the loop do not converge")

    def infer(self) -> tuple[Type, ...]:
        body, count = self.config.body, len(self.config.states)
        if len(body.inputs) != count + 2:
            raise Problem(f"the body has {len(body.inputs)} inputs, expected {count + 2}")
        scans = []
        for o in body.outputs[1 + count :]:
            t = as_tensor(o.type)
            trips = self.ints(0) if self.has(0) else None
            first = trips[0] if trips and not self.has(1) and body.outputs[0].value is not None else None
            scans.append(TensorType(t.dtype, None if t.shape is None else (first, *t.shape)))
        return (*self.config.states, *scans)

    def emit(self, e: Emitter) -> Emission:
        body, count = self.config.body, len(self.config.states)
        targets = e.targets()
        names = []
        for i, t in enumerate(targets):
            unused = isinstance(t, Name) and t.id == "_"
            names.append(e.fresh("state" if i < count else "scan") if unused else t.id if isinstance(t, Name) else "_")
        states, scans = tuple(names[:count]), names[count:]
        e.push(
            *assignments(
                states, tuple(e.held(i + 2) if self.value(i + 2) is None else e.x(i + 2) for i in range(count))
            )
        )
        lists = [e.fresh(f"{n}_parts") for n in scans]
        e.push(*(Assign((n,), List(())) for n in lists))
        step = e.fresh("i")
        stays = body.outputs[0].value
        always = (stays is not None and bool(stays.item())) or body.outputs[0].name == body.inputs[1].name
        flag = e.fresh("keep_on")
        statements, outputs = e.body(body, (Name(step), Name(flag) if not always else lift(True), *map(Name, states)))
        for target, part in zip(lists, outputs[1 + count :], strict=True):
            statements.append(Do(Call(_attribute(target, "append"), (part,))))
        statements += assignments(states, outputs[1 : 1 + count])
        self.loop(e, step, flag, always, statements, outputs[0])
        results: list[Expr] = [Name(n) for n in states]
        for target, items, o in zip(scans, lists, body.outputs[1 + count :], strict=True):
            e.push(Assign((target,), stacked(e, Name(items), as_tensor(o.type))))
            results.append(Name(target))
        return targets

    def loop(self, e: Emitter, step: str, flag: str, always: bool, body: list[Statement], condition: Expr) -> None:
        """The loop statement around the body."""
        count = self.value(0)
        endless = not always and count is not None and count.ints()[0] >= ENDLESS
        trips = e.builtin("range", e.integer(0)) if self.has(0) and not endless else None
        starts = e.builtin("bool", e.x(1)) if self.has(1) and self.value(1) is None else None
        first = self.value(1)
        never = first is not None and not bool(first.item())
        if never:
            return
        if always:
            loop: Statement = For(step, trips, body) if trips is not None else While(lift(True), body)
            if trips is None:
                body.append(Assign((step,), Binary("+", Name(step), lift(1))))
                e.push(Assign((step,), lift(0)))
            e.push(IfStatement(starts, [loop]) if starts is not None else loop)
            return
        e.push(Assign((flag,), starts if starts is not None else lift(True)))
        body.append(Assign((flag,), e.builtin("bool", condition)))
        if trips is None:
            if step in names_of([*body, Do(condition)]):
                e.push(Assign((step,), lift(0)))
                body.append(Assign((step,), Binary("+", Name(step), lift(1))))
            e.push(While(Name(flag), body))
        else:
            e.push(For(step, trips, [IfStatement(Unary("not", Name(flag)), [Break()]), *body]))


def _attribute(name: str, attribute: str) -> Expr:
    return Attribute(Name(name), attribute)


def stacked(e: Emitter, items: Expr, t: TensorType, axis: int = 0) -> Expr:
    """A list of tensors stacked into one, even if the list may be empty."""
    shape = tuple(d if isinstance(d, int) else 0 for d in t.shape or ())
    empty = e.create("zeros", (*shape[:axis], 0, *shape[axis:]), dtype=t.dtype)
    together = e.call("stack", items, axis=axis) if axis else e.call("stack", items)
    return Conditional(items, together, empty)


@dataclass(frozen=True)
class ScanConfig:
    body: Graph
    num_scan_inputs: int
    input_axes: tuple[int, ...]
    input_reverse: tuple[bool, ...]
    output_axes: tuple[int, ...]
    output_reverse: tuple[bool, ...]
    batched: bool


class Scan(Node[ScanConfig]):
    """A loop over slices of the scan inputs. Opset 8 had a batch axis in front, and sequence lengths."""

    since = (8, 9, 11, 16, 19, 21, 23, 24, 25)

    @classmethod
    def read(cls, a: Attributes) -> ScanConfig:
        n, batched = a.int("num_scan_inputs"), a.opset < 9
        inputs = a.inputs[1:] if batched else a.inputs
        states = len(inputs) - n
        if states < 0 or n < 1:
            raise Problem(f"has {len(inputs)} inputs, of which {n} are scanned")
        scans = len(a.outputs) - states
        if batched:
            reverse = tuple(bool(d) for d in a.ints("directions", (0,) * n))
            axes, out_axes, out_reverse = (1,) * n, (1,) * scans, (False,) * scans
        else:
            axes = a.ints("scan_input_axes", (0,) * n)
            reverse = tuple(bool(d) for d in a.ints("scan_input_directions", (0,) * n))
            out_axes = a.ints("scan_output_axes", (0,) * scans)
            out_reverse = tuple(bool(d) for d in a.ints("scan_output_directions", (0,) * scans))
        if not (len(axes) == len(reverse) == n and len(out_axes) == len(out_reverse) == scans):
            raise Problem("scan axes or directions do not match the number of scanned values")
        types: list[Type] = [carried(x.type) for x in inputs[:states]]
        if batched:
            types = [without_axis(as_tensor(t), 0) for t in types]
        for x, axis in zip(inputs[states:], axes, strict=True):
            t = without_axis(as_tensor(x.type), axis)
            types.append(without_axis(t, 0) if batched else t)
        body = a.graph("body", types)
        return ScanConfig(body, n, axes, reverse, out_axes, out_reverse, batched)

    def infer(self) -> tuple[Type, ...]:
        c = self.config
        inputs = self.inputs[1:] if c.batched else self.inputs
        states = len(inputs) - c.num_scan_inputs
        first = as_tensor(inputs[states].type)
        length = None if first.shape is None else first.shape[c.input_axes[0]]
        batch = None if first.shape is None else first.shape[0]
        out: list[Type] = []
        for o in c.body.outputs[:states]:
            t = carried(o.type)
            if c.batched and isinstance(t, TensorType):
                t = replace(t, shape=None if t.shape is None else (batch, *t.shape))
            out.append(t)
        for o, axis in zip(c.body.outputs[states:], c.output_axes, strict=True):
            t = as_tensor(o.type)
            if t.shape is None:
                out.append(t)
                continue
            lead = (batch,) if c.batched else ()
            shape = (*lead, *t.shape)
            at = axis_of(axis, len(shape) + 1)
            out.append(TensorType(t.dtype, (*shape[:at], length, *shape[at:])))
        return tuple(out)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        shift = 1 if c.batched else 0
        states = len(self.inputs) - shift - c.num_scan_inputs
        targets = e.targets()
        names = [
            t.id if isinstance(t, Name) and t.id != "_" else e.fresh("state" if i < states else "scan")
            for i, t in enumerate(targets)
        ]
        if c.batched:
            return self.each_of_batch(e, targets, names, states)
        self.rounds(e, names, states, [e.x(i) for i in range(len(self.inputs))], c.input_axes, c.output_axes)
        return targets

    def rounds(
        self,
        e: Emitter,
        names: list[str],
        states: int,
        inputs: list[Expr],
        axes: tuple[int, ...],
        output_axes: tuple[int, ...],
        push: list[Statement] | None = None,
    ) -> None:
        """The loop over the slices; its statements go to `push`, or straight into the code."""
        c, out = self.config, push if push is not None else None
        emit = (lambda *s: out.extend(s)) if out is not None else e.push
        emit(*assignments(tuple(names[:states]), tuple(inputs[:states])))
        lists = [e.fresh(f"{n}_parts") for n in names[states:]]
        emit(*(Assign((n,), List(())) for n in lists))
        slices = []
        for i, axis in enumerate(axes):
            x = inputs[states + i]
            if c.input_reverse[i]:
                x = e.call("flip", x, axis=axis)
            slices.append(e.call("unstack", x, axis=axis) if axis else e.call("unstack", x))
        items = [e.fresh("item") for _ in slices]
        statements, outputs = e.body(c.body, tuple(map(Name, (*names[:states], *items))))
        for target, part in zip(lists, outputs[states:], strict=True):
            statements.append(Do(Call(_attribute(target, "append"), (part,))))
        statements += assignments(tuple(names[:states]), outputs[:states])
        iterable = slices[0] if len(slices) == 1 else e.builtin("zip", *slices)
        emit(For(", ".join(items), iterable, statements))
        for i, (name, parts) in enumerate(zip(names[states:], lists, strict=True)):
            t = as_tensor(c.body.outputs[states + i].type)
            axis = axis_of(output_axes[i], len(t.shape or ()) + 1)
            whole = stacked(e, Name(parts), t, axis)
            emit(Assign((name,), e.call("flip", whole, axis=axis) if c.output_reverse[i] else whole))

    def each_of_batch(self, e: Emitter, targets: tuple[Expr, ...], names: list[str], states: int) -> Emission:
        """Opset 8: the loop for each element of the batch, up to its length, with the results stacked."""
        c, n = self.config, len(self.inputs) - 1
        rows = [e.fresh("rows") for _ in names]
        e.push(*(Assign((r,), List(())) for r in rows))
        element = e.fresh("b")
        inner: list[Statement] = []
        inputs = [e.index(e.x(i + 1), Name(element)) for i in range(n)]
        if self.has(0):
            length = e.index(e.assign("lengths", e.ints(0)), Name(element))
            inputs[states:] = [e.method(x, "narrow", 0, 0, length) for x in inputs[states:]]
        self.rounds(e, names, states, inputs, (0,) * c.num_scan_inputs, (0,) * len(c.output_axes), inner)
        if self.has(0):  # padding after shorter elements is 0
            whole = e.index(e.shape_of(e.x(states + 1)), 1)
            for name, o in zip(names[states:], c.body.outputs[states:], strict=True):
                rank = as_tensor(o.type).rank
                if rank is None:
                    raise Problem("the rank of a scan output is not known, and sequence lengths need it")
                fill = Binary("-", whole, e.index(e.shape_of(Name(name)), 0))
                pads = Tuple((Tuple((lift(0), fill)), *(lift((0, 0)) for _ in range(rank))))
                inner.append(Assign((name,), e.call("pad", Name(name), pads)))
        inner += [Do(Call(_attribute(r, "append"), (Name(m),))) for r, m in zip(rows, names, strict=True)]
        count = e.index(e.shape_of(e.x(1)), 0)
        e.push(For(element, e.builtin("range", count), inner))
        for name, row in zip(names, rows, strict=True):
            e.push(Assign((name,), e.call("stack", Name(row))))
        return targets


@dataclass(frozen=True)
class SequenceMapConfig:
    body: Graph


class SequenceMap(Node[SequenceMapConfig]):
    """A loop over the elements of sequences; other inputs are the same in each iteration."""

    since = (17,)

    @classmethod
    def read(cls, a: Attributes) -> SequenceMapConfig:
        if not a.inputs or not isinstance(a.inputs[0].type, SequenceType):
            raise Problem("the first input is not a sequence")
        types = [x.type.element if isinstance(x.type, SequenceType) else carried(x.type) for x in a.inputs]
        body = a.graph("body", types)
        if len(body.inputs) != len(types) or len(body.outputs) < len(a.outputs):
            raise Problem(f"the body has {len(body.inputs)} inputs and {len(body.outputs)} outputs")
        return SequenceMapConfig(body)

    def infer(self) -> tuple[Type, ...]:
        return tuple(SequenceType(carried(o.type)) for o in self.config.body.outputs)

    def emit(self, e: Emitter) -> Emission:
        targets = e.targets()
        lists = [t.id if isinstance(t, Name) and t.id != "_" else e.fresh("mapped") for t in targets]
        mapped = [i for i, a in enumerate(self.inputs) if isinstance(a.type, SequenceType)]
        items = {i: e.fresh("item") for i in mapped}
        given = [Name(items[i]) if i in items else e.x(i) for i in range(len(self.inputs))]
        sequences = [e.x(i) for i in mapped]
        e.push(*(Assign((name,), List(())) for name in lists))
        statements, outputs = e.body(self.config.body, given)
        for name, value in zip(lists, outputs, strict=False):
            statements.append(Do(Call(_attribute(name, "append"), (value,))))
        iterable = sequences[0] if len(sequences) == 1 else e.builtin("zip", *sequences)
        e.push(For(", ".join(items.values()), iterable, statements))
        return tuple(map(Name, lists))


def without_axis(t: TensorType, axis: int) -> TensorType:
    if t.shape is None:
        return t
    at = axis_of(axis, len(t.shape))
    return TensorType(t.dtype, t.shape[:at] + t.shape[at + 1 :])
