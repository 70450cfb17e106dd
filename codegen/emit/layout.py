"""Layout: makes statements fit the line, so that a formatter changes none of them.

A call, tuple or list that is too long for a line is spread over several. In any other form, an operand is first
assigned to a variable on its own line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .expression import (
    WIDTH,
    Attribute,
    Binary,
    Call,
    Comprehension,
    Conditional,
    Dict,
    Expr,
    Index,
    List,
    Literal,
    Name,
    SliceKey,
    Tuple,
    Unary,
    dotted,
    names_in,
    spread,
)
from .statement import Assign, Def, Delete, Do, For, If, Return, Statement, While


def laid_out(statements: list[Statement], indent: int) -> list[Statement]:
    """The statements of a function's body, each fitted to its lines."""
    taken = names_of(statements)
    return [made for s in statements for made in _Layout(taken).statement(s, indent)]


def names_of(statements: Iterable[Statement]) -> set[str]:
    """The variables that statements read or assign."""
    return set(_names(statements))


def _names(statements: Iterable[Statement]) -> Iterable[str]:
    for s in statements:
        match s:
            case Assign(targets, value):
                yield from targets
                yield from names_in(value)
            case Do(value):
                yield from names_in(value)
            case If(test, then, otherwise):
                yield from names_in(test)
                yield from _names((*then, *otherwise))
            case For(target, iterable, body):
                yield from target.split(", ")
                yield from names_in(iterable)
                yield from _names(body)
            case While(test, body):
                yield from names_in(test)
                yield from _names(body)
            case Def(name, parameters, body):
                yield from (name, *parameters)
                yield from _names(body)
            case Return(values):
                for value in values:
                    yield from names_in(value)
            case Delete(names):
                yield from names
            case _:
                pass


class _Layout:
    """Lays out one statement; `before`: the assignments of its operands to variables."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.mine: set[str] = set()
        self.before: list[Statement] = []

    def statement(self, s: Statement, indent: int) -> list[Statement]:
        match s:
            case Assign((target,), Conditional(test, then, Literal("None")) as value, _) if target.startswith(
                "self."
            ) and not _fits(value, indent, s):
                first = Assign((target,), Literal("None"))
                return [first, *self.statement(If(test, [Assign((target,), then)]), indent)]
            case Assign(targets, Conditional(test, then, otherwise) as value, _) if not _fits(value, indent, s):
                return self.statement(If(test, [Assign(targets, then)], [Assign(targets, otherwise)]), indent)
            case Assign((_,), Binary("+")) if not _fits(s.value, indent, s) and (parts := _lists(s.value)):
                return self.growing(s, parts, indent)
            case Assign(targets, value):
                head = len(", ".join(targets)) + 3
                value = self.fit(value, indent, head if indent + head < WIDTH else 4)
                return [*self.before, replace(s, value=value)]
            case Do(value):
                value = self.fit(value, indent, 0)
                return [*self.before, Do(value)]
            case Return(values):
                alone = len(values) == 1
                fitted = (self.fit(values[0], indent, 7),) if alone else self.fit_items(values, indent)
                return [*self.before, Return(fitted)]
            case If(test, then, otherwise):
                test = self.fit(test, indent, 3, 1)
                return [*self.before, If(test, self.block(then, indent + 4), self.block(otherwise, indent + 4))]
            case For(target, iterable, body):
                iterable = self.fit(iterable, indent, len(target) + 8, 1)
                return [*self.before, For(target, iterable, self.block(body, indent + 4))]
            case Def(name, parameters, body):
                return [Def(name, parameters, self.block(body, indent + 4))]
            case While(test, body):
                return [While(test, self.block(body, indent + 4))]
            case _:
                return [s]

    def growing(self, s: Assign, parts: list[Expr], indent: int) -> list[Statement]:
        """A sum of lists as statements: the first list is assigned, the others are added."""
        match parts[0]:
            case List((item,)) if "\n" in spread(item, indent + 4, 0, 1):
                parts[0] = List((self.named(item, "first", indent),))
        first, *more = (replace(s, value=part, grows=n > 0) for n, part in enumerate(parts))
        return [*self.before, *self.block([first], indent), *self.block(list(more), indent)]

    def block(self, statements: list[Statement], indent: int) -> list[Statement]:
        return [made for s in statements for made in _Layout(self.taken | self.mine).statement(s, indent)]

    def fit(self, e: Expr, indent: int, before: int, after: int = 0) -> Expr:
        """`e`, starting in column `indent + before`, with what does not fit moved to `self.before`."""
        text = spread(e, indent, before, after)
        first, *rest = text.split("\n")
        if indent + before + len(first) + (0 if rest else after) <= WIDTH and all(len(r) <= WIDTH for r in rest):
            return e
        for smaller in self.steps(e, indent):
            e = smaller
            text = spread(e, indent, before, after)
            first, *rest = text.split("\n")
            if indent + before + len(first) + (0 if rest else after) <= WIDTH and all(len(r) <= WIDTH for r in rest):
                break
        return e

    def steps(self, e: Expr, indent: int) -> Iterable[Expr]:
        """`e` with its operands assigned to variables one after the other."""
        match e:
            case Binary():
                yield from self.binary_steps(e, indent)
            case Unary(op, operand):
                yield Unary(op, self.named(operand, "operand", indent))
            case Conditional():
                yield self.named(e, "chosen", indent)
            case Attribute(base, name):
                yield Attribute(self.named(base, "base", indent), name)
            case Index():
                yield from self.index_steps(e, indent)
            case SliceKey():
                yield from self.slice_steps(e, indent)
            case Call():
                yield from self.call_steps(e, indent)
            case Tuple(items) | List(items):
                yield type(e)(self.fit_items(items, indent))
            case Dict(pairs):
                yield Dict(tuple((k, self.fit(v, indent + 4, 8, 1)) for k, v in pairs))
            case Comprehension(item, target, iterable, None) if not _short(iterable):
                yield Comprehension(item, target, self.named(iterable, "items", indent))

    def binary_steps(self, e: Binary, indent: int) -> Iterable[Expr]:
        left = e.left
        hints = ("first", "rest") if _lists(e) else ("left", "right")
        if not _short(left):
            left = self.named(left, hints[0], indent)
            yield Binary(e.op, left, e.right)
        if not _short(e.right):
            yield Binary(e.op, left, self.named(e.right, hints[1], indent))

    def index_steps(self, e: Index, indent: int) -> Iterable[Expr]:
        base, key = e.object, e.key
        if not dotted(base):
            base = self.named(base, "base", indent)
            yield Index(base, key)
        if isinstance(key, Tuple):
            yield Index(base, Tuple(self.fit_items(key.items, indent)))
        elif isinstance(key, SliceKey):
            for smaller in self.steps(key, indent):
                yield Index(base, smaller)
        elif not _short(key):
            yield Index(base, self.named(key, "index", indent))

    def slice_steps(self, e: SliceKey, indent: int) -> Iterable[Expr]:
        start, stop = e.start, e.stop
        if start is not None and not _short(start):
            start = self.named(start, "start", indent)
            yield SliceKey(start, stop, e.step)
        if stop is not None and not _short(stop):
            yield SliceKey(start, self.named(stop, "stop", indent), e.step)

    def call_steps(self, e: Call, indent: int) -> Iterable[Expr]:
        function = e.function
        if isinstance(function, Attribute) and not dotted(function):
            function = Attribute(self.named(function.object, "base", indent), function.name)
            yield Call(function, e.args, e.kwargs)
        given = tuple((k, self.fit(v, indent + 4, len(k) + 1, 1)) for k, v in e.kwargs)
        yield Call(function, self.fit_items(e.args, indent), given)

    def fit_items(self, items: tuple[Expr, ...], indent: int) -> tuple[Expr, ...]:
        """Each item on lines of its own, behind which a comma stands."""
        return tuple(self.fit(i, indent + 4, 0, 1) for i in items)

    def named(self, e: Expr, hint: str, indent: int) -> Expr:
        name, n = hint, 1
        while name in self.taken or name in self.mine:
            n += 1
            name = f"{hint}_{n}"
        self.mine.add(name)
        made = _Layout(self.taken | self.mine).statement(Assign((name,), e), indent)
        self.before += made
        return Name(name)


def _lists(e: Expr) -> list[Expr]:
    """The lists of which `e` is the sum; [] if it is something else."""
    match e:
        case Binary("+", left, right):
            before, after = _lists(left), _lists(right)
            return [*before, *after] if before and after else []
        case List() | Comprehension():
            return [e]
        case _:
            return []


def _fits(e: Expr, indent: int, s: Assign) -> bool:
    """Whether the assignment of `e` is one line."""
    before = len(", ".join(s.targets)) + 3
    return "\n" not in (text := spread(e, indent, before)) and indent + before + len(text) <= WIDTH


def _short(e: Expr) -> bool:
    """Whether assigning `e` to a variable would gain nothing."""
    return isinstance(e, Literal) or dotted(e) or (isinstance(e, Unary) and _short(e.operand))
