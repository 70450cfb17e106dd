"""Templates: the code of a draft with its numbers taken out, so that code that differs only in numbers becomes
equal."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any

from emberlet import nn

from ..emit.expression import Attribute, Call, Comprehension, Expr, Literal, Name, Tuple, Unary, flat, lift
from ..emit.statement import Assign, Def, For, If, Return, Statement, While
from ..emit.traversal import inner, mapped, with_expressions
from ..records import dataclass

if TYPE_CHECKING:
    from .classes import Class, Draft

HOLE = "§"


class Spare(Literal):
    """The number that a call passes for an argument that its block does not use: any number would do."""


@dataclass
class Holes:
    """The numbers of a draft in order of occurrence, each with a word for its meaning."""

    values: list[Expr] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    fills: list[Expr] | None = None
    known: dict[str, Class] = field(default_factory=dict)

    def hole(self, value: Expr, word: str) -> Expr:
        self.values.append(value)
        self.words.append(word)
        return Name(HOLE) if self.fills is None else self.fills[len(self.values) - 1]


def constant(e: Expr) -> bool:
    """Whether an expression is a number, or a tuple of such."""
    match e:
        case Literal(text):
            return text[0] not in "\"'"
        case Unary("-", operand):
            return constant(operand)
        case Tuple(items):
            return all(constant(i) for i in items)
        case Call(Name("float"), _):
            return True
        case _:
            return False


@cache
def _signature(kind: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    found = inspect.signature(getattr(nn, kind)).parameters
    defaults = {k: p.default for k, p in found.items() if p.default is not inspect.Parameter.empty}
    return tuple(found), defaults


def field_value(e: Expr, holes: Holes) -> Expr:
    """A field's value with its numbers taken out. Keywords that equal a layer's defaults are written out first."""

    def change(x: Expr) -> Expr | None:
        match x:
            case Call(Attribute(Name("nn"), kind), args, kwargs) if kind != "Group":
                names, defaults = _signature(kind)
                given = dict(kwargs)
                for name in names[len(args) :]:
                    plain = defaults.get(name, None)
                    if name not in given and isinstance(plain, bool | int | float):
                        given[name] = lift(plain)
                ordered = [(n, given[n]) for n in (*names, *given) if n in given]
                made = tuple(holes.hole(a, names[i]) if constant(a) else a for i, a in enumerate(args))
                named = [(k, holes.hole(v, k) if constant(v) else v) for k, v in dict(ordered).items()]
                if holes.fills is not None:
                    named = [(k, v) for k, v in named if k not in defaults or v != _default(defaults[k])]
                return Call(x.function, made, tuple(named))
            case Call(Name(name), args, kwargs) if name in holes.known:
                known = holes.known[name]
                given = dict(kwargs)
                every = [(n, given.get(n, known.defaults.get(n))) for n in known.arguments[len(args) :]]
                pairs = [*((n, v) for n, v in every if v is not None), ("backend", given["backend"])]
                made = tuple(holes.hole(a, known.arguments[i]) if constant(a) else a for i, a in enumerate(args))
                named = [(k, holes.hole(v, k) if constant(v) else v) for k, v in pairs]
                if holes.fills is not None:
                    named = [(k, v) for k, v in named if k not in known.defaults or v != known.defaults[k]]
                return Call(x.function, made, tuple(named))
            case Call(Attribute(Attribute(Name("nn"), "Param"), _), args, kwargs):
                return Call(x.function, tuple(_each(a, holes) for a in args), kwargs)
            case Comprehension(item, target, Call(Name("range"), (times,), ()), None):
                inside = mapped(item, change)
                return Comprehension(inside, target, Call(Name("range"), (holes.hole(times, "depth"),)))
            case Literal() if constant(x):
                return holes.hole(x, "")
            case _:
                return None

    return mapped(e, change)


def _each(e: Expr, holes: Holes) -> Expr:
    """A shape with its numbers taken out one by one, since one of them is often another layer's."""
    if isinstance(e, Tuple):
        return Tuple(tuple(_each(i, holes) for i in e.items))
    return holes.hole(e, "size") if constant(e) else e


def _default(value: Any) -> Expr | None:
    return lift(value) if isinstance(value, bool | int | float) or value is None else None


def _code_value(e: Expr, holes: Holes) -> Expr:
    """An expression of forward with its numbers taken out, except axes and flags."""

    def change(x: Expr) -> Expr | None:
        match x:
            case Literal(text) if text[0].isdigit():
                return holes.hole(x, "size")
            case Unary("-", Literal(text)) if text[0].isdigit():
                return holes.hole(x, "size")
            case Call(function, args, kwargs):
                f = mapped(function, change)
                given = tuple(mapped(a, change) for a in args)
                named = []
                for k, v in kwargs:
                    whole = constant(v) and not isinstance(v, Tuple)
                    named.append((k, holes.hole(v, k) if whole else mapped(v, change)))
                return Call(f, given, tuple(named))
            case _:
                return None

    return mapped(e, change)


def taken_out(draft: Draft, holes: Holes) -> tuple[list[Assign], list[Statement]]:
    """The draft's fields and body with its numbers taken out, or replaced by others."""
    fields = [Assign(f.targets, field_value(f.value, holes)) for f in draft.fields]
    return fields, [statement(s, holes) for s in draft.body]


def statement(s: Statement, holes: Holes) -> Statement:
    s = with_expressions(s, lambda e: _code_value(e, holes))
    again = lambda body: [statement(t, holes) for t in body]  # noqa: E731
    match s:
        case If(test, then, otherwise):
            return If(test, again(then), again(otherwise))
        case For(target, iterable, body):
            return For(target, iterable, again(body))
        case While(test, body):
            return While(test, again(body))
        case Def(name, parameters, body):
            return Def(name, parameters, again(body))
        case _:
            return s


def key_of(fields: Sequence[Assign], parameters: Sequence[str], body: Sequence[Statement]) -> str:
    """A text that is equal for two drafts only if their code differs only in numbers."""
    lines = [", ".join(f.targets) + "=" + flat(f.value) for f in fields]
    lines.append("(" + ", ".join(parameters))
    _lines(body, lines, "")
    return "\n".join(lines)


def _lines(statements: Sequence[Statement], out: list[str], pad: str) -> None:
    for s in statements:
        match s:
            case Assign(targets, value):
                out.append(pad + ", ".join(targets) + "=" + flat(value))
            case Return(values):
                out.append(pad + "return " + "; ".join(flat(v) for v in values))
            case For(target, iterable):
                out.append(f"{pad}for {target} in {flat(iterable)}")
            case If(test, then, _):
                out.append(f"{pad}if {flat(test)} {len(then)}")
            case While(test):
                out.append(f"{pad}while {flat(test)}")
            case Def(name, parameters):
                out.append(f"{pad}def {name} {parameters}")
            case other:
                out.append(pad + repr(other))
        for body in inner(s):
            _lines(body, out, pad + " ")
