"""Options: a part of a block that other blocks of its kind lack, such as the projection of a shortcut.

Two drafts are one class with an option if the code of one is that of the other with a few steps, and perhaps one field,
added: `x + y` instead of `y`, `self.shortcut(x)` instead of `x`. With the option off, the class is the shorter draft's
code; nothing else needs to be proved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..emit.expression import Attribute, Binary, Conditional, Expr, Literal, Name, flat, names_in
from ..emit.statement import Assign, Do, For, Return, Statement
from ..emit.traversal import assigned, count, mapped, reads, substituted, with_expressions
from ..records import dataclass
from .templates import Holes, field_value, statement

if TYPE_CHECKING:
    from .classes import Class, Draft

LEAST = 4  # the fewest fields and steps that two drafts must share
LONGEST = 72
RESIDUAL = "residual"


@dataclass
class Piece:
    """A field or a statement without its numbers, and the numbers."""

    template: Statement
    values: list[Expr]
    words: list[str]


@dataclass
class Pieces:
    """A draft's code as Pieces."""

    fields: list[Piece]
    body: list[Piece]

    def every(self) -> list[Piece]:
        return [*self.fields, *self.body]


@dataclass
class Option:
    """field: the index of the optional field, None if there is none. steps: the indices of the optional statements in
    the body. result: the variable that the last of them assigns. instead: what replaces it without them."""

    name: str
    field: int | None
    steps: tuple[int, ...]
    result: str
    instead: str

    def padded(self, row: Sequence[Expr | None], large: Pieces) -> list[Expr | None]:
        """The numbers of the shorter draft, with None for those that only the longer one has."""
        out: list[Expr | None] = []
        left = iter(row)
        for skipped, others in (((self.field,), large.fields), (self.steps, large.body)):
            for i, piece in enumerate(others):
                out += [None if i in skipped else next(left) for _ in piece.values]
        return out

    def widened(self, body: Sequence[Statement], large: Sequence[Statement]) -> list[Statement]:
        """The statements of the shorter draft, with the longer one's optional ones inserted."""
        left = iter(body)
        return [s if i in self.steps else next(left) for i, s in enumerate(large)]

    def applied(
        self, flag: str, fields: list[Assign], body: list[Statement]
    ) -> tuple[list[Statement], list[Statement]]:
        """The class's fields and statements, made from the longer draft's. flag: the constructor's argument."""
        self_ = Name("self")
        made: list[Statement] = list(fields)
        if self.field is None:
            made.insert(0, Assign((f"self.{self.name}",), Name(flag)))
            test: Expr = Attribute(self_, self.name)
        else:
            target, part = fields[self.field].targets, fields[self.field].value
            made[self.field] = Assign(target, Conditional(Name(flag), part, Literal("None")))
            test = Binary("is", Attribute(self_, target[0].removeprefix("self.")), Literal("None"))
        value = _composed([s for i, s in enumerate(body) if i in self.steps])
        assert value is not None
        sides = (value, Name(self.instead)) if self.field is None else (Name(self.instead), value)
        chosen = Assign((self.result,), Conditional(test, *sides))
        needed = names_in(chosen.value)
        out = [s for i, s in enumerate(body) if i not in self.steps]
        ahead = body[: self.steps[0]]
        at = max((i + 1 for i, s in enumerate(ahead) if needed & _given(s)), default=0)
        out.insert(at, chosen)
        return made, out


def pieces(draft: Draft, known: dict[str, Class]) -> Pieces:
    """A draft's code as Pieces."""

    def of(s: Assign | Statement, is_field: bool) -> Piece:
        holes = Holes(known=known)
        made = Assign(s.targets, field_value(s.value, holes)) if is_field and isinstance(s, Assign) else None
        return Piece(made if made is not None else statement(s, holes), holes.values, holes.words)

    return Pieces([of(f, True) for f in draft.fields], [of(s, False) for s in draft.body])


def option(large: Draft, small: Draft, longer: Pieces, shorter: Pieces) -> Option | None:
    """The Option that `large` has and `small` lacks; None if they differ in anything else."""
    if len(longer.body) <= len(shorter.body) or len(large.parameters) != len(small.parameters):
        return None
    place = _optional_field(longer.fields, shorter.fields)
    if place is False or len(shorter.fields) + len(shorter.body) < LEAST:
        return None
    env = dict(zip(small.parameters, large.parameters, strict=True))
    hidden: set[str] = set()
    swapped: dict[str, str] = {}
    steps: list[int] = []
    j = 0
    for i, piece in enumerate(longer.body):
        if j < len(shorter.body) and _same(piece.template, shorter.body[j].template, env, hidden, swapped):
            j += 1
            continue
        if not isinstance(piece.template, Assign) or len(piece.template.targets) != 1:
            return None
        steps.append(i)
        hidden.add(piece.template.targets[0])
    if j < len(shorter.body) or len(swapped) != 1:
        return None
    ((result, instead),) = swapped.items()
    if _result(large, steps) != result or instead not in _before(large, steps[-1]):
        return None
    value = _composed([large.body[i] for i in steps])
    if value is None or len(flat(value)) > LONGEST or hidden & large.hints.fixed:
        return None
    if place is None:
        fine = isinstance(value, Binary) and value.op == "+" and not _uses_self(value)
        fine = fine and all(f.targets != (f"self.{RESIDUAL}",) for f in large.fields)
        return Option(RESIDUAL, None, tuple(steps), result, instead) if fine else None
    target = large.fields[place].targets[0]
    name = target.removeprefix("self.")
    if not _uses_self(value) or not name.isidentifier():
        return None
    if any(_adds(s, result) for s in large.body):
        large.hints.words.setdefault(result, RESIDUAL)
    return Option(name, place, tuple(steps), result, instead)


def _given(s: Statement) -> set[str]:
    """The variables that a statement assigns, also in its blocks."""
    found: Counter[str] = Counter()
    assigned([s], found)
    return set(found)


def _result(large: Draft, steps: Sequence[int]) -> str:
    last = large.body[steps[-1]]
    return last.targets[0] if isinstance(last, Assign) else ""


def _before(large: Draft, end: int) -> set[str]:
    """The variables that have a value before a statement."""
    return set(large.parameters).union(*map(_given, large.body[:end]))


def _optional_field(longer: Sequence[Piece], shorter: Sequence[Piece]) -> int | bool | None:
    """The index of the only field that the shorter draft lacks, None if it lacks none; False if others differ too."""
    mine = [p.template for p in shorter]
    others = [p.template for p in longer]
    if len(others) == len(mine):
        return None if all(map(_equal_fields, others, mine)) else False
    if len(others) != len(mine) + 1:
        return False
    for i in range(len(others)):
        rest = [*others[:i], *others[i + 1 :]]
        if all(map(_equal_fields, rest, mine)):
            return i
    return False


def _equal_fields(a: Statement, b: Statement) -> bool:
    return isinstance(a, Assign) and isinstance(b, Assign) and (a.targets, flat(a.value)) == (b.targets, flat(b.value))


def _same(a: Statement, b: Statement, env: dict[str, str], hidden: set[str], swapped: dict[str, str]) -> bool:
    """Whether a statement of the longer draft equals one of the shorter draft's, with variables mapped by `env`.
    swapped: what replaces the result of the optional steps."""
    tried = dict(swapped)
    match a, b:
        case Assign(targets, value), Assign(others, other):
            if len(targets) != len(others) or not _equal(value, other, env, hidden, tried):
                return False
            if any("." in t or "[" in t for t in targets) and targets != others:
                return False
            env.update(zip(others, targets, strict=True))
            same = True
        case Return(values), Return(others):
            pairs = zip(values, others, strict=False)
            same = len(values) == len(others) and all(_equal(v, o, env, hidden, tried) for v, o in pairs)
        case For(), For():
            same = _same_loop(a, b, env, hidden, tried)
        case Do(value), Do(other):
            same = _equal(value, other, env, hidden, tried)
        case _:
            same = False
    if same:
        swapped.update(tried)
    return same


def _same_loop(a: For, b: For, env: dict[str, str], hidden: set[str], swapped: dict[str, str]) -> bool:
    if len(a.body) != len(b.body) or not _equal(a.iterable, b.iterable, env, hidden, swapped):
        return False
    mine, its = a.target.split(", "), b.target.split(", ")
    if len(mine) != len(its):
        return False
    env.update(zip(its, mine, strict=True))
    return all(_same(s, o, env, hidden, swapped) for s, o in zip(a.body, b.body, strict=True))


def _equal(a: Any, b: Any, env: dict[str, str], hidden: set[str], swapped: dict[str, str]) -> bool:
    if isinstance(a, Name) and isinstance(b, Name):
        want = env.get(b.id, b.id)
        return a.id == want or (a.id in hidden and swapped.setdefault(a.id, want) == want)
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(_equal(x, y, env, hidden, swapped) for x, y in zip(a, b, strict=True))
    if isinstance(a, Expr):
        return all(_equal(x, y, env, hidden, swapped) for x, y in zip(vars(a).values(), vars(b).values(), strict=True))
    return bool(a == b)


def _composed(steps: Sequence[Statement]) -> Expr | None:
    """The statements as one expression; None if a value is read more than once."""
    value: Expr | None = None
    held: dict[str, Expr] = {}
    total: Counter[str] = Counter()
    reads(steps, total)
    for s in steps:
        if not isinstance(s, Assign) or total[s.targets[0]] > 1:
            return None
        read: Counter[str] = Counter()
        reads([s], read)
        value = substituted(s.value, held)
        held = {name: e for name, e in held.items() if not read[name]}
        held[s.targets[0]] = value
    return value if len(held) == 1 else None


def _adds(s: Statement, name: str) -> bool:
    """Whether a statement adds the variable to something."""
    found = False

    def look(e: Expr) -> Expr | None:
        nonlocal found
        found = found or (isinstance(e, Binary) and e.op == "+" and Name(name) in (e.left, e.right))
        return None

    with_expressions(s, lambda e: mapped(e, look))
    return found


def _uses_self(e: Expr) -> bool:
    read: Counter[str] = Counter()
    count(e, read)
    return read["self"] > 0
