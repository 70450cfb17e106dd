"""Traversal of the generated code's expressions and statements: what they read, and copies with parts replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import Any, get_args

from .expression import Attribute, Call, Comprehension, Expr, Index, Literal, Name, flat
from .statement import Assign, Def, Delete, Do, For, If, Return, Statement, While

_EXPRESSIONS = frozenset(get_args(Expr))


def mapped(e: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """`e` with `change` applied to every part, the outermost first; if it returns None, the inner parts follow. An
    expression without changes stays the same object."""
    made = change(e)
    if made is not None:
        return made
    kind = e.__class__
    if kind is Name or kind is Literal:
        return e
    if kind is Attribute:  # most are one of these two
        base = mapped(e.object, change)  # type: ignore[union-attr]
        return e if base is e.object else Attribute(base, e.name)  # type: ignore[union-attr]
    if kind is Call:
        return _mapped_call(e, change)  # type: ignore[arg-type]
    old = tuple(vars(e).values())
    new = tuple([_part(x, change) for x in old])
    return e if all(map(is_, old, new)) else kind(*new)


def _mapped_call(e: Call, change: Callable[[Expr], Expr | None]) -> Call:
    function = mapped(e.function, change)
    args, kwargs = e.args, e.kwargs
    if args:
        given = tuple([mapped(a, change) for a in args])
        args = args if all(map(is_, args, given)) else given
    if kwargs:
        named = [mapped(v, change) for _, v in kwargs]
        if any(v is not old for v, (_, old) in zip(named, kwargs, strict=True)):
            kwargs = tuple([(k, v) for (k, _), v in zip(kwargs, named, strict=True)])
    return e if function is e.function and args is e.args and kwargs is e.kwargs else Call(function, args, kwargs)


def _part(x: Any, change: Callable[[Expr], Expr | None]) -> Any:
    """Apply `mapped` to a field of an expression, a tuple of expressions or of pairs with one; else return it
    unchanged."""
    if x.__class__ is not tuple:
        return mapped(x, change) if x.__class__ in _EXPRESSIONS else x
    if not x:
        return x
    made = tuple([_part(i, change) for i in x])
    return x if all(map(is_, x, made)) else made


def count(e: Expr, into: Counter[str]) -> None:
    """Count the reads of each variable in `e` into `into`; those of a comprehension's item twice, as it is computed
    repeatedly."""
    todo: list[Any] = [e]
    while todo:
        x = todo.pop()
        kind = x.__class__
        if kind is Name:
            into[x.id] += 1
        elif kind is Attribute:
            todo.append(x.object)
        elif kind is Call:
            todo.append(x.function)
            todo += x.args
            todo += [v for _, v in x.kwargs]
        elif kind is tuple:
            todo += x
        elif kind in _EXPRESSIONS and kind is not Literal:
            todo += vars(x).values()
            if kind is Comprehension:
                todo.append(x.item)


def expressions(s: Statement) -> list[Expr]:
    """The expressions of a statement, excluding those of nested statements."""
    match s:
        case Assign(_, value) | Do(value):
            return [value]
        case If(test) | While(test):
            return [test]
        case For(_, iterable):
            return [iterable]
        case Return(values):
            return list(values)
        case _:
            return []


def inner(s: Statement) -> list[list[Statement]]:
    """The blocks of a statement."""
    match s:
        case If(_, then, otherwise):
            return [then, otherwise]
        case For(_, _, body) | While(_, body) | Def(_, _, body):
            return [body]
        case _:
            return []


def reads(statements: Iterable[Statement], into: Counter[str]) -> None:
    """Count the reads of each variable in the statements and their blocks into `into`."""
    for s in statements:
        for e in expressions(s):
            count(e, into)
        for body in inner(s):
            reads(body, into)


def assigned(statements: Iterable[Statement], into: Counter[str]) -> None:
    """Count the assignments of each variable into `into`."""
    for s in statements:
        match s:
            case Assign(targets, _):
                into.update(targets)
            case For(target, _, _):
                into.update(target.split(", "))
            case Def(name, parameters, _):
                into.update((name, *parameters))
        for body in inner(s):
            assigned(body, into)


def with_expressions(s: Statement, change: Callable[[Expr], Expr]) -> Statement:
    """The statement with `change` applied to its own expressions; its blocks stay the same."""
    match s:
        case Assign(targets, value, comment, grows):
            return Assign(targets, change(value), comment, grows)
        case Do(value):
            return Do(change(value))
        case If(test, then, otherwise):
            return If(change(test), then, otherwise)
        case While(test, body):
            return While(change(test), body)
        case For(target, iterable, body):
            return For(target, change(iterable), body)
        case Return(values):
            return Return(tuple(change(v) for v in values))
        case _:
            return s


def substituted(e: Expr, names: Mapping[str, Expr]) -> Expr:
    """`e` with expressions in the place of variables."""
    return mapped(e, lambda x: names.get(x.id) if isinstance(x, Name) else None)


def is_layer(e: Expr) -> bool:
    """Whether an expression calls a module of the model."""
    if not isinstance(e, Call):
        return False
    function = e.function
    while isinstance(function, Attribute | Index):
        function = function.object
    return function == Name("self") and not (isinstance(e.function, Attribute) and e.function.name == "val")


def renamed(statements: list[Statement], names: Mapping[str, str]) -> list[Statement]:
    """The statements with renamed variables."""
    out: list[Statement] = []
    table = {old: Name(new) for old, new in names.items()}
    for s in statements:
        s = with_expressions(s, lambda e: substituted(e, table))
        match s:
            case Assign(targets, value, comment, grows):
                made = tuple(names.get(t, t) if "[" not in t else _indexed(t, names) for t in targets)
                if len(made) == 1 and value == Name(made[0]):
                    continue
                s = Assign(made, value, "" if comment and comment in flat(value) else comment, grows)
            case If(test, then, otherwise):
                s = If(test, renamed(then, names), renamed(otherwise, names))
            case For(target, iterable, body):
                target = ", ".join(names.get(t, t) for t in target.split(", "))
                s = For(target, iterable, renamed(body, names))
            case While(test, body):
                s = While(test, renamed(body, names))
            case Def(name, parameters, body):
                s = Def(name, parameters, renamed(body, names))
            case Delete(held):
                s = Delete(tuple(names.get(n, n) for n in held))
        out.append(s)
    return out


def _indexed(target: str, names: Mapping[str, str]) -> str:
    head, _, rest = target.partition("[")
    inside = rest[:-1]
    return f"{names.get(head, head)}[{names.get(inside, inside)}]"
