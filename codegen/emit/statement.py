"""Statements of the generated code, and their text."""

from __future__ import annotations

from dataclasses import field
from typing import assert_never

from ..records import dataclass
from .expression import WIDTH, Binary, Expr, Name, Tuple, flat, spread


@dataclass
class Assign:
    """`a, b = value  # comment`; a target may be an attribute path such as self.conv1. grows: `a += value`, where value
    may also be `a + value`."""

    targets: tuple[str, ...]
    value: Expr
    comment: str = ""
    grows: bool = False


@dataclass
class Do:
    """An expression for its effect."""

    value: Expr


@dataclass
class If:
    test: Expr
    then: list[Statement]
    otherwise: list[Statement] = field(default_factory=list)


@dataclass
class For:
    target: str
    iterable: Expr
    body: list[Statement]


@dataclass
class While:
    test: Expr
    body: list[Statement]


@dataclass
class Break:
    pass


@dataclass
class Delete:
    names: tuple[str, ...]


@dataclass
class Return:
    values: tuple[Expr, ...]


@dataclass
class Def:
    """A nested function: a subgraph that an operation calls."""

    name: str
    parameters: tuple[str, ...]
    body: list[Statement]


@dataclass
class Comment:
    text: str


Statement = Assign | Do | If | For | While | Break | Def | Delete | Return | Comment


def render(statements: list[Statement], indent: int) -> list[str]:
    """The lines of a block."""
    lines: list[str] = []
    after_function = False
    for s in statements:
        new = _render(s, indent)
        if lines and new and (after_function or isinstance(s, Def)):
            lines.append("")  # a formatter puts a blank line around functions
        lines += new
        after_function = isinstance(s, Def)
    return lines or [" " * indent + "pass"]


def _render(s: Statement, indent: int) -> list[str]:
    pad = " " * indent
    match s:
        case Assign():
            return _assignment(s, indent)
        case Do(value):
            return (pad + spread(value, indent)).splitlines()
        case If(test, then, otherwise):
            lines = [*f"{pad}if {spread(test, indent, 3, 1)}:".splitlines(), *render(then, indent + 4)]
            if otherwise:
                lines += [f"{pad}else:", *render(otherwise, indent + 4)]
            return lines
        case For(target, iterable, body):
            head = f"{pad}for {target} in "
            return [
                *(f"{head}{spread(iterable, indent, len(head) - indent, 1)}:").splitlines(),
                *render(body, indent + 4),
            ]
        case While(test, body):
            return [f"{pad}while {flat(test)}:", *render(body, indent + 4)]
        case Break():
            return [pad + "break"]
        case Def(name, parameters, body):
            return [f"{pad}def {name}({', '.join(parameters)}):", *render(body, indent + 4)]
        case Delete(names):
            return [pad + "del " + ", ".join(names)]
        case Return(values):
            return _returned(values, indent)
        case Comment(text):
            return [f"{pad}# {text}"]
        case other:
            assert_never(other)


def _returned(values: tuple[Expr, ...], indent: int) -> list[str]:
    head = " " * indent + "return "
    if len(values) == 1:
        return (head + spread(values[0], indent, 7)).splitlines()
    line = head + ", ".join(flat(v) for v in values)
    if values and len(line) <= WIDTH:
        return [line]
    return (head + spread(Tuple(values), indent, 7)).splitlines()


def _assignment(s: Assign, indent: int) -> list[str]:
    targets, value, pad = s.targets, s.value, " " * indent
    if len(targets) == 1 and value == Name(targets[0]):
        return []
    if s.grows and isinstance(value, Binary) and value.left == Name(targets[0]):
        value = value.right
    head = ", ".join(targets) + (" += " if s.grows else " = ")
    if len(targets) > 1 and indent + len(head) > WIDTH - 4:  # the targets themselves do not fit a line
        listed = "".join(f"{pad}    {t},\n" for t in targets)
        text = f"{pad}(\n{listed}{pad}) = " + spread(value, indent, 4)
    else:
        bare = _bare(value) if len(targets) > 1 else None
        if bare is not None and indent + len(head) + len(bare) <= WIDTH:
            text = pad + head + bare
        else:
            text = pad + head + spread(value, indent, len(head))
    tail = "  # " + s.comment if s.comment else ""
    room = WIDTH - len(text.splitlines()[-1])
    return (text + (tail if len(tail) <= room else "")).splitlines()


def _bare(value: Expr) -> str | None:
    """A tuple on the right of `a, b =`, without parentheses if it fits on the line."""
    if isinstance(value, Tuple) and len(value.items) > 1:
        return ", ".join(flat(i) for i in value.items)
    return None


def fold_return(body: list[Statement]) -> list[Statement]:
    """`x = f(x); return x` as `return f(x)`."""
    if len(body) >= 2 and isinstance(body[-1], Return) and isinstance(body[-2], Assign):
        last, value = body[-1], body[-2]
        if len(last.values) == 1 and len(value.targets) == 1 and last.values[0] == Name(value.targets[0]):
            return [*body[:-2], Return((value.value,))]
    return body
