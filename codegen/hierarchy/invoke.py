"""Nodes that represent whole modules: a call of one, and a loop over a list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..emit.emitter import Emission, Emitter
from ..emit.expression import Attribute, Binary, Call, Expr, Index, Literal, Name, SliceKey, Tuple, flat, lift
from ..emit.statement import Assign, Do, For, Statement
from ..ir.types import Type
from ..ops.internal import Internal
from ..records import dataclass

if TYPE_CHECKING:
    from .region_writer import RegionWriter


@dataclass(frozen=True)
class InvokeConfig:
    """place: the index of the region among the model's modules."""

    place: tuple[str, ...]


class Invoke(Internal[InvokeConfig]):
    """A call of a module: its region's inputs and outputs."""

    def infer(self) -> tuple[Type, ...]:
        return tuple(o.type for o in self.outputs)

    def emit(self, e: Emitter) -> Emission:
        writer = cast("RegionWriter", e.block.module)
        module = writer.child(self.config.place)
        return Call(module, tuple(e.block.held(a) for a in self.inputs))


@dataclass(frozen=True)
class RepeatConfig:
    """carried: (input, output) for each value passed to the next iteration; collected: outputs kept from every
    iteration; own: inputs that differ in each iteration. The node's inputs are those of the first iteration, then, for
    each own input, those of the later ones. Its outputs are the carried values of the last iteration, then all values
    of each collected output."""

    calls: tuple[Invoke, ...]
    carried: tuple[tuple[int, int], ...]
    own: tuple[int, ...]
    collected: tuple[int, ...]
    whole: bool


class Repeat(Internal[RepeatConfig]):
    """`for layer in self.layers: x = layer(x)`"""

    def infer(self) -> tuple[Type, ...]:
        return tuple(o.type for o in self.outputs)

    def emit(self, e: Emitter) -> Emission:
        writer = cast("RegionWriter", e.block.module)
        c, block = self.config, e.block
        first = c.calls[0]
        places = [writer.child(call.config.place) for call in c.calls]
        held = [block.held(a) for a in first.inputs]
        state: dict[int, str] = {}
        results: dict[str, Expr] = {}
        for i, o in c.carried:
            name = writer.variable(first.outputs[o], first)
            state[o] = name
            e.push(Assign((name,), held[i]))
            held[i] = Name(name)
            results[c.calls[-1].outputs[o].name] = Name(name)
        source = places[0]
        start, count = int(c.calls[0].config.place[-1]), len(c.calls)
        items: Expr
        if not isinstance(source, Index):  # something else has the list's name
            items = Tuple(tuple(places))
        elif c.whole:
            items = source.object
        else:
            items = Index(source.object, SliceKey(lift(start) if start else None, lift(start + count)))
        loop = writer.word(singular(c.calls[0].config.place[-2]))
        writer.hints.callees[loop] = writer.hints.callees.get(flat(source), [])
        targets, iterables = [loop], [items]
        for i in c.own:
            name = writer.variable(first.inputs[i], first)
            values = [block.held(call.inputs[i]) for call in c.calls]
            targets.append(name)
            iterables.append(elements(values))
            held[i] = Name(name)
        body: list[Statement] = []
        outs = []
        lists = []
        for o, output in enumerate(first.outputs):
            if o in state:
                outs.append(state[o])
            elif o in c.collected:
                name = writer.variable(output, first)
                parts = writer.variable(output, first)
                writer.hints.words[parts] = writer.list_word(output) or writer.hints.words.get(name, "output") + "s"
                width = writer.cache_width(output)
                e.push(Assign((parts,), Tuple(()) if width else lift([])))
                outs.append(name)
                lists.append((parts, name, width))
                for k, call in enumerate(c.calls):
                    results[call.outputs[o].name] = Index(Name(parts), writer.place(k, width))
            else:
                outs.append("_")
        body.append(Assign(tuple(outs), Call(Name(loop), tuple(held))))
        for parts, name, width in lists:
            if width:
                more: Expr = Name(name) if width > 1 else Tuple((Name(name),))
                body.append(Assign((parts,), Binary("+", Name(parts), more), grows=True))
            else:
                body.append(Do(Call(Attribute(Name(parts), "append"), (Name(name),))))
        iterable = iterables[0] if len(iterables) == 1 else Call(Name("zip"), tuple(iterables))
        e.push(For(", ".join(targets), iterable, body))
        made = tuple(results[o.name] for o in self.outputs)
        block.settle(self, made)
        return made


def elements(values: list[Expr]) -> Expr:
    """An iterable of these expressions: a list itself, if they are its first elements."""
    match values[0]:
        case Index(base, Literal("0")):
            if all(v == Index(base, lift(n)) for n, v in enumerate(values)):
                return base
    return Tuple(tuple(values))


def singular(name: str) -> str:
    """The name for one item of a list: "layer" for "layers" and "layer2"."""
    name = name.rstrip("0123456789_")
    if len(name) < 3 or name.isdigit():
        return "block"
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def invoke(place: tuple[str, ...], name: str, inputs: Any, outputs: Any) -> Invoke:
    return Invoke(name, tuple(inputs), tuple(outputs), InvokeConfig(place))
