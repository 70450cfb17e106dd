"""Expressions of the generated code, and their text, laid out as by ruff's formatter.

Only the forms the emission uses. A call's arguments that do not fit on its line go on a line of their own; if they do
not fit there either, and in other brackets, each item gets its own line with a trailing comma.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from emberlet.dtypes import DType

from ..records import dataclass

WIDTH = 88

# The precedence of each operator; an operand of one that binds tighter is parenthesized.
PRECEDENCE = {
    "if": 0, "or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "is": 4, "is not": 4,
    "in": 4,
    "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "@": 10,
    "~": 11, "**": 12,
}  # fmt: skip
POSTFIX, ATOM = 14, 15


@dataclass(frozen=True)
class Name:
    id: str


@dataclass(frozen=True)
class Literal:
    """A number, bool, None or string, as Python source."""

    text: str


@dataclass(frozen=True)
class Attribute:
    object: Expr
    name: str


@dataclass(frozen=True)
class Index:
    object: Expr
    key: Expr


@dataclass(frozen=True)
class SliceKey:
    """start:stop:step between brackets; None omits a part."""

    start: Expr | None = None
    stop: Expr | None = None
    step: Expr | None = None


@dataclass(frozen=True)
class Call:
    function: Expr
    args: tuple[Expr, ...] = ()
    kwargs: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True)
class Tuple:
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class List:
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Dict:
    items: tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True)
class Unary:
    """op is "-", "~" or "not"."""

    op: str
    operand: Expr


@dataclass(frozen=True)
class Binary:
    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Conditional:
    """`then if test else otherwise`"""

    test: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class Comprehension:
    """`[item for target in iterable]`; `then`: a second target and iterable, which may use the first target."""

    item: Expr
    target: str
    iterable: Expr
    then: tuple[str, Expr] | None = None


Expr = (
    Name
    | Literal
    | Attribute
    | Index
    | SliceKey
    | Call
    | Tuple
    | List
    | Dict
    | Unary
    | Binary
    | Conditional
    | Comprehension
)

Plain = int | float | bool | str | DType | None
Liftable = Expr | Plain | Sequence["Liftable"]
"""Accepted where an expression is expected: an expression, or Python data that becomes a literal."""


def lift(value: Liftable) -> Expr:
    """An expression for plain data; sequences become tuples (lists stay lists), dtypes `emberlet.float32`."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, DType):
        return Attribute(Name("emberlet"), value.name)
    if value is None or isinstance(value, bool):
        return Literal(repr(value))
    if isinstance(value, str):
        return Literal(string_literal(str(value)))
    if isinstance(value, float):
        return float_literal(value)
    if isinstance(value, int):
        return Unary("-", Literal(repr(-value))) if value < 0 else Literal(repr(value))
    if isinstance(value, list):
        return List(tuple(lift(v) for v in value))
    return Tuple(tuple(lift(v) for v in value))


def float_literal(value: float) -> Expr:
    if value != value or value in (float("inf"), float("-inf")):
        return Call(Name("float"), (Literal(string_literal(repr(value))),))
    text = repr(value).replace("e+", "e")  # as a formatter writes it
    return Unary("-", Literal(text[1:])) if text.startswith("-") else Literal(text)


def string_literal(text: str) -> str:
    """`text` as Python source, with the quotes a formatter prefers; nothing in it can end the literal."""
    body = repr(text)[1:-1]
    doubles, singles = text.count('"'), text.count("'")
    if repr(text)[0] == '"':  # repr chose double quotes: single ones inside, no double ones
        return repr(text)
    if doubles == 0:
        return '"' + body + '"'
    if singles and doubles <= singles:
        return '"' + body.replace("\\'", "'").replace('"', '\\"') + '"'
    return repr(text)


def precedence(e: Expr) -> int:
    match e:
        case Binary(op) | Unary(op):
            return PRECEDENCE["~"] if isinstance(e, Unary) and op == "-" else PRECEDENCE[op]
        case Conditional():
            return PRECEDENCE["if"]
        case Call() | Attribute() | Index():
            return POSTFIX
        case Literal(text):
            # 1.real is not valid Python: a number in front of a dot needs parentheses.
            return ATOM if text[0] in "\"'" or text in ("None", "True", "False") else POSTFIX
        case _:
            return ATOM


def flat(e: Expr) -> str:
    """`e` on one line."""
    kind = e.__class__  # most are one of these
    if kind is Name:
        return e.id  # type: ignore[union-attr]
    if isinstance(e, Literal):  # and what derives from it
        return e.text
    if kind is Attribute and e.object.__class__ is Name:  # type: ignore[union-attr]
        return f"{e.object.id}.{e.name}"  # type: ignore[union-attr]
    return _FLAT[kind](e)


def _attribute(e: Attribute) -> str:
    number = isinstance(e.object, Literal) and e.object.text[0].isdigit()
    return f"{_inside(e.object, ATOM if number else POSTFIX)}.{e.name}"


def _index(e: Index) -> str:
    key = flat(e.key)
    if isinstance(e.key, Tuple) and e.key.items:
        key = key[1:-1]
    return f"{_inside(e.object, POSTFIX)}[{key}]"


def _call(e: Call) -> str:
    match e:
        case Call(Name("tuple"), (Comprehension() as items,), ()):
            return f"tuple({flat(items)[1:-1]})"
    given = [flat(a) for a in e.args] + [f"{k}={flat(v)}" for k, v in e.kwargs]
    return f"{_inside(e.function, POSTFIX)}({', '.join(given)})"


def _tuple(e: Tuple) -> str:
    return f"({_listed(e.items)}{',' if len(e.items) == 1 else ''})"


def _unary(e: Unary) -> str:
    if e.op == "not":
        return "not " + _inside(e.operand, PRECEDENCE["not"])
    return e.op + _inside(e.operand, PRECEDENCE["~"])


def _comprehension(e: Comprehension) -> str:
    more = "" if e.then is None else f" for {e.then[0]} in {_inside(e.then[1], 1)}"
    return f"[{flat(e.item)} for {e.target} in {_inside(e.iterable, 1)}{more}]"


def _listed(items: Iterable[Expr]) -> str:
    return ", ".join(flat(i) for i in items)


def _slice(e: SliceKey) -> str:
    # A formatter treats the colon as an operator if an operand is more than a name or a number.
    space = "" if all(p is None or _plain(p) for p in (e.start, e.stop, e.step)) else " "
    start = "" if e.start is None else flat(e.start) + space
    text = start + ":" + ("" if e.stop is None else space + flat(e.stop))
    if e.step is None:
        return text
    return text + (space if e.stop is not None else "") + ":" + space + flat(e.step)


def _binary(e: Binary) -> str:
    if e.op == "**" and _simple(e.left) and _simple(e.right):
        return flat(e.left) + "**" + flat(e.right)  # a formatter writes a power of simple operands without spaces
    mine = PRECEDENCE[e.op]
    compare = mine == PRECEDENCE["=="]
    left, right = (mine + 1, mine) if e.op == "**" else (mine + compare, mine + 1)
    return f"{_inside(e.left, left)} {e.op} {_inside(e.right, right)}"


_FLAT: dict[type, Callable[[Any], str]] = {
    Attribute: _attribute,
    Index: _index,
    SliceKey: _slice,
    Call: _call,
    Tuple: _tuple,
    List: lambda e: f"[{_listed(e.items)}]",
    Dict: lambda e: "{" + ", ".join(f"{flat(k)}: {flat(v)}" for k, v in e.items) + "}",
    Unary: _unary,
    Binary: _binary,
    Conditional: lambda e: f"{_inside(e.then, 1)} if {_inside(e.test, 1)} else {_inside(e.otherwise, 0)}",
    Comprehension: _comprehension,
}


def _plain(e: Expr) -> bool:
    return _plain(e.operand) if isinstance(e, Unary) and e.op != "not" else isinstance(e, Name | Literal)


def _simple(e: Expr) -> bool:
    if isinstance(e, Unary):
        return isinstance(e.operand, Literal)
    if isinstance(e, Attribute):
        return isinstance(e.object, Name) or (isinstance(e.object, Attribute) and _simple(e.object))
    return isinstance(e, Name) or (isinstance(e, Literal) and e.text[0].isdigit())


def _inside(e: Expr, binding: int) -> str:
    return flat(e) if precedence(e) >= binding else "(" + flat(e) + ")"


def spread(e: Expr, indent: int, before: int = 0, after: int = 0) -> str:
    """`e` starting in column `indent + before` and followed by `after` characters, on as many lines as needed."""
    text = flat(e)
    if indent + before + len(text) + after <= WIDTH:
        return text
    inner, outer = " " * (indent + 4), " " * indent
    match e:
        case Call(function, args, kwargs) if (args or kwargs) and dotted(function):
            opening, closing = _inside(function, POSTFIX) + "(", ")"
            parts = [("", a) for a in args] + [(k + "=", v) for k, v in kwargs]
        case Index(base, Tuple(keys)) if dotted(base) and len(keys) > 1:
            opening, closing = flat(base) + "[", "]"
            parts = [("", k) for k in keys]
        case Tuple(items) | List(items) if items:
            opening, closing = "()" if isinstance(e, Tuple) else "[]"
            parts = [("", i) for i in items]
        case Dict(pairs) if pairs:
            opening, closing = "{}"
            parts = [(flat(k) + ": ", v) for k, v in pairs]
        case Comprehension(item, target, iterable, None):
            if indent + 4 + len(text) - 2 <= WIDTH:
                return f"[\n{inner}{text[1:-1]}\n{outer}]"
            tail = f"for {target} in {_inside(iterable, 1)}"
            return f"[\n{inner}{spread(item, indent + 4)}\n{inner}{tail}\n{outer}]"
        case _:
            return text
    line = ", ".join(before + flat(part) for before, part in parts)
    if isinstance(e, Call) and indent + 4 + len(line) <= WIDTH:
        return f"{opening}\n{inner}{line}\n{outer}{closing}"
    lines = [f"{inner}{before}{spread(part, indent + 4, len(before), 1)},\n" for before, part in parts]
    return f"{opening}\n{''.join(lines)}{outer}{closing}"


def dotted(e: Expr) -> bool:
    """Whether `e` is a name or an attribute path."""
    return isinstance(e, Name) or (isinstance(e, Attribute) and dotted(e.object))


def names_in(e: Expr) -> set[str]:
    """The variables `e` reads."""
    found: set[str] = set()
    todo: list[Any] = [e]
    while todo:
        x = todo.pop()
        kind = x.__class__
        if kind is Name:
            found.add(x.id)
        elif kind is tuple:
            todo += x
        elif kind is Comprehension:
            read = names_in(x.item)
            if x.then is not None:
                read = (read - {x.then[0]}) | names_in(x.then[1])
            found |= (read - {x.target}) | names_in(x.iterable)
        elif kind is not Literal and isinstance(x, Expr):
            todo += vars(x).values()
    return found
