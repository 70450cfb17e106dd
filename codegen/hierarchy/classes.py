"""Classes: drafts of the code of regions, and which of them are one class.

Two drafts are one class where their code is the same but for numbers. The numbers that differ become arguments of the
constructor, so that the class with a draft's arguments is that draft's code: nothing else needs to be proved.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import field
from functools import cache
from itertools import pairwise
from typing import Any

from emberlet import nn

from ..emit.expression import (
    WIDTH,
    Attribute,
    Binary,
    Call,
    Comprehension,
    Dict,
    Expr,
    List,
    Literal,
    Name,
    Tuple,
    Unary,
    flat,
    lift,
)
from ..emit.names import Names
from ..emit.polish import Hints, inner, mapped, with_expressions
from ..emit.statement import Assign, Def, For, If, Return, Statement, While
from ..ir.value import Value
from ..records import dataclass

HOLE = "§"
BACKEND = ("backend", Name("backend"))


@dataclass
class Draft:
    """The code of one region. `fields` are what its constructor assigns, `body` what forward does."""

    path: tuple[str, ...]
    name: str
    fields: list[Assign]
    parameters: list[str]
    body: list[Statement]
    hints: Hints
    record: dict[str, Value]
    about: str
    kind: Class | None = None
    args: tuple[Expr, ...] = ()

    def call(self) -> Expr:
        """The constructor's call."""
        assert self.kind is not None
        given: list[Expr] = []
        named: list[tuple[str, Expr]] = []
        for name, value in zip(self.kind.arguments, self.args, strict=True):
            if name in self.kind.defaults and flat(self.kind.defaults[name]) == flat(value):
                continue
            if named or not _positional(name):
                named.append((name, value))
            else:
                given.append(value)
        return Call(Name(self.kind.name), tuple(given), (*named, BACKEND))


@dataclass
class Class:
    """What several drafts have in common."""

    name: str
    arguments: list[str]
    fields: list[Assign]
    parameters: list[str]
    body: list[Statement]
    hints: Hints
    about: str
    count: int = 1
    defaults: dict[str, Expr] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)


def _positional(name: str) -> bool:
    return name.rstrip("0123456789_") in (
        "d_input", "d_output", "in_channels", "out_channels", "kernel_size", "d_model", "normalized_shape",
        "num_features",
    )  # fmt: skip


# -- what two drafts share --------------------------------------------------------------------------------------------


@dataclass
class _Holes:
    """The numbers of a draft in the order they stand in, each with a word for what it is."""

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


def _field_value(e: Expr, holes: _Holes) -> Expr:
    """A field's value with its numbers taken out. Keywords that a layer has by default are written out before."""

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


def _each(e: Expr, holes: _Holes) -> Expr:
    """A shape with its numbers taken out one by one, for one of them is often another layer's."""
    if isinstance(e, Tuple):
        return Tuple(tuple(_each(i, holes) for i in e.items))
    return holes.hole(e, "size") if constant(e) else e


def _default(value: Any) -> Expr | None:
    return lift(value) if isinstance(value, bool | int | float) or value is None else None


def _code_value(e: Expr, holes: _Holes) -> Expr:
    """An expression of forward with its numbers taken out, those of axes and flags aside."""

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


def taken_out(draft: Draft | Class, holes: _Holes) -> tuple[list[Assign], list[Statement]]:
    """The draft's fields and body with its numbers taken out, or others put in."""
    fields = [Assign(f.targets, _field_value(f.value, holes)) for f in draft.fields]
    return fields, [_statement(s, holes) for s in draft.body]


def _statement(s: Statement, holes: _Holes) -> Statement:
    s = with_expressions(s, lambda e: _code_value(e, holes))
    again = lambda body: [_statement(t, holes) for t in body]  # noqa: E731
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
    """A text that is equal for two drafts only where their code is the same but for numbers."""
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


# -- one class of many drafts -----------------------------------------------------------------------------------------


def classified(drafts: Sequence[Draft], names: Names, known: dict[str, Class]) -> list[Class]:
    """A class for each kind of draft; every draft is told its class and arguments. known: the classes
    that there are already, to which the new ones are added."""
    groups: dict[str, list[tuple[Draft, _Holes]]] = {}
    for draft in drafts:
        holes = _Holes(known=known)
        fields, body = taken_out(draft, holes)
        groups.setdefault(key_of(fields, draft.parameters, body), []).append((draft, holes))
    made = [_class(group, names, known) for group in groups.values()]
    known.update((c.name, c) for c in made)
    return made


def _class(group: list[tuple[Draft, _Holes]], names: Names, known: dict[str, Class]) -> Class:
    first, holes = group[0]
    table: dict[tuple[str, ...], int] = {}
    arguments: list[str] = []
    columns: list[list[Expr]] = []
    fills: list[Expr] = []
    taken = Names({"self", "backend"})
    inside = _count(first, holes)
    own: list[tuple[str, str]] = []
    for i, value in enumerate(holes.values):
        column = [h.values[i] for _, h in group]
        texts = tuple(flat(v) for v in column)
        if len(set(texts)) == 1:
            fills.append(value)
            continue
        if texts not in table:
            table[texts] = len(arguments)
            arguments.append(taken.unique(holes.words[i] or "size"))
            columns.append(column)
        name = arguments[table[texts]]
        if i < inside:
            fills.append(Name(name))
        else:
            fills.append(Attribute(Name("self"), name))
            if (name, name) not in own:
                own.append((name, name))
    put = _Holes(fills=fills, known=known)
    fields, body = taken_out(first, put)
    held = {f.targets[0] for f in fields}
    extra = []
    renames = {}
    for name, _ in own:
        target = f"self.{name}"
        while target in held:
            target += "_"
        renames[name] = target
        extra.append(Assign((target,), Name(name)))
    if any(t != f"self.{n}" for n, t in renames.items()):
        fills = [
            Attribute(Name("self"), renames[f.name][5:]) if isinstance(f, Attribute) and f.name in renames else f
            for f in fills
        ]
        put = _Holes(fills=fills, known=known)
        fields, body = taken_out(first, put)
    defaults = _defaults(first.name, arguments, columns)
    order = sorted(range(len(arguments)), key=lambda i: (arguments[i] in defaults, not _positional(arguments[i])))
    arguments, columns = [arguments[i] for i in order], [columns[i] for i in order]
    about = first.about if len({d.about for d, _ in group}) == 1 else ""
    made = Class(names.unique(first.name), arguments, [*extra, *fields], first.parameters, body, first.hints, about)
    made.count = len(group)
    made.defaults = defaults
    _shared_comments(made.body, [d.body for d, _ in group])
    for n, (draft, _) in enumerate(group):
        draft.kind = made
        draft.args = tuple(column[n] for column in columns)
    return made


_DEFAULTS = {"stride": lift(1), "padding": lift(0), "groups": lift(1), "dilation": lift(1), "bias": lift(True)}


def _defaults(name: str, arguments: Sequence[str], columns: Sequence[Sequence[Expr]]) -> dict[str, Expr]:
    """The arguments that a call may leave out: those that some block has as its layer has them by default. None where
    writing them down takes more lines than it saves."""
    found = {}
    for argument, column in zip(arguments, columns, strict=True):
        usual = _DEFAULTS.get(argument)
        if usual is not None and any(flat(v) == flat(usual) for v in column):
            found[argument] = usual
    return found if found and _taken(name, arguments, columns, found) <= _taken(name, arguments, columns, {}) else {}


def _taken(name: str, arguments: Sequence[str], columns: Sequence[Sequence[Expr]], defaults: dict[str, Expr]) -> int:
    """About how many lines a constructor and its different calls take."""
    broken = len(arguments) + 4
    lines = broken if len(head(arguments, defaults)) > WIDTH else 1
    calls = set()
    for row in zip(*columns, strict=True):
        pairs = [(a, flat(v)) for a, v in zip(arguments, row, strict=True)]
        said = [(a, v) for a, v in pairs if a not in defaults or v != flat(defaults[a])]
        calls.add(f"{name}({', '.join(v if _positional(a) else f'{a}={v}' for a, v in said)}, backend=backend),")
    return lines + sum(broken if 12 + len(call) > WIDTH else 1 for call in calls)


def head(arguments: Sequence[str], defaults: dict[str, Expr]) -> str:
    """The first line of a constructor, however long."""
    return f"    def __init__({', '.join(('self', *parameters_of(arguments, defaults)))}):"


def parameters_of(arguments: Sequence[str], defaults: dict[str, Expr]) -> list[str]:
    """The constructor's parameters as they are written, those with a default last."""
    named = [n for n in arguments if n not in defaults]
    return [*named, *(f"{n}={flat(defaults[n])}" for n in arguments if n in defaults), "backend=None"]


def _count(draft: Draft, holes: _Holes) -> int:
    """How many of the numbers stand in the fields."""
    only = _Holes(known=holes.known)
    for f in draft.fields:
        _field_value(f.value, only)
    return len(only.values)


def _shared_comments(body: list[Statement], bodies: Sequence[Sequence[Statement]]) -> None:
    """Leave only the comments that are true of every draft."""
    for i, s in enumerate(body):
        others = [b[i] for b in bodies]
        if isinstance(s, Assign) and s.comment:
            if any(isinstance(o, Assign) and o.comment != s.comment for o in others):
                body[i] = Assign(s.targets, s.value)
        for part, nested in enumerate(inner(s)):
            _shared_comments(nested, [inner(o)[part] for o in others])


def listed(items: Sequence[Expr]) -> Expr:
    """A list of constructors: a comprehension of those that are equal, one after the other, or that differ in a number
    that grows by steps."""
    runs: list[list[Expr]] = []
    for item in items:
        if runs and (flat(runs[-1][0]) == flat(item) and len(set(map(flat, runs[-1]))) == 1):
            runs[-1].append(item)
        elif runs and _stepped([*runs[-1], item]) is not None:
            runs[-1].append(item)
        else:
            runs.append([item])
    out: Expr | None = None
    single: list[Expr] = []
    for run in [*runs, []]:
        again = _repeated(run)
        if run and again is None:
            single += run
            continue
        for part in (List(tuple(single)) if single else None, again):
            if part is not None:
                out = part if out is None else Binary("+", out, part)
        single = []
    return out if out is not None else List(())


def _repeated(run: Sequence[Expr]) -> Expr | None:
    """Several constructors as a comprehension."""
    if len(run) < 2:
        return None
    if flat(run[0]) == flat(run[-1]):
        return Comprehension(run[0], "_", Call(Name("range"), (lift(len(run)),)))
    return _stepped(run) if len(run) > 2 else None


def _stepped(run: Sequence[Expr]) -> Expr | None:
    """Constructors that differ in one number, which grows by the same step from one to the next."""
    first = run[0]
    if not isinstance(first, Call):
        return None
    rows: list[tuple[Expr, ...]] = []
    for item in run:
        if not isinstance(item, Call) or item.function != first.function or len(item.args) != len(first.args):
            return None
        if [k for k, _ in item.kwargs] != [k for k, _ in first.kwargs]:
            return None
        rows.append((*item.args, *(v for _, v in item.kwargs)))
    columns = list(zip(*rows, strict=True))
    moving = [c for c in columns if len({flat(v) for v in c}) > 1]
    if not moving or any(c != moving[0] for c in moving):
        return None
    if not all(isinstance(v, Literal) and v.text.isdigit() for v in moving[0]):
        return None
    numbers = [int(v.text) for v in moving[0] if isinstance(v, Literal)]
    step = numbers[1] - numbers[0]
    if step <= 0 or any(b - a != step for a, b in pairwise(numbers)):
        return None
    values = [Name("n") if c == moving[0] else c[0] for c in columns]
    width = len(first.args)
    names = [k for k, _ in first.kwargs]
    call = Call(first.function, tuple(values[:width]), tuple(zip(names, values[width:], strict=True)))
    ends = (numbers[0], numbers[-1] + step) if step == 1 else (numbers[0], numbers[-1] + step, step)
    return Comprehension(call, "n", Call(Name("range"), tuple(map(lift, ends))))


def held(tree: dict[str, Any]) -> Expr:
    """A field's value: a constructor, or a list or dict of such."""
    keys = list(tree)
    values = [v if not isinstance(v, dict) else held(v) for v in tree.values()]
    if all(k.isdigit() for k in keys):
        numbers = [int(k) for k in keys]
        pairs = sorted(zip(numbers, values, strict=True), key=lambda p: p[0])
        if [n for n, _ in pairs] == list(range(len(pairs))):
            return listed([v for _, v in pairs])
        return Dict(tuple((lift(n), v) for n, v in pairs))
    return Call(Attribute(Name("nn"), "Group"), (), tuple(zip(keys, values, strict=True)))
