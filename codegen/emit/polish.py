"""Rewrites statements in which each value has its own variable as a person would write them.

A value read only by the next statement becomes part of it, up to a line's length, and the remaining variables get
descriptive names (variables.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .expression import (
    PRECEDENCE,
    WIDTH,
    Attribute,
    Binary,
    Call,
    Conditional,
    Expr,
    Index,
    List,
    Literal,
    Name,
    SliceKey,
    Tuple,
    Unary,
    flat,
)
from .statement import Assign, Def, Do, For, If, Return, Statement, While
from .traversal import assigned, count, expressions, is_layer, mapped, reads, renamed, substituted, with_expressions
from .variables import Hints, Naming

MAX_DEPTH = 3
MAX_LINE = WIDTH - 9
_VARIABLE = re.compile(r"\b[pv]\d+\b")  # before it is named


def polished(parameters: Sequence[str], statements: list[Statement], hints: Hints) -> tuple[list[str], list[Statement]]:
    """The parameters' names and the statements."""
    statements = joined(without_unread(statements), hints)
    names = Naming(parameters, statements, hints).names()
    return [names.get(p, p) for p in parameters], unpacked(renamed(statements, names))


def without_unread(statements: list[Statement]) -> list[Statement]:
    """The statements without unread sizes."""
    read: Counter[str] = Counter()
    reads(statements, read)

    def idle(s: Statement) -> bool:
        match s:
            case Assign((name,), Index(Attribute(Name() | Index(), "shape"), Literal(_)), _):
                return not read[name]
            case _:
                return False

    return [s for s in statements if not idle(s)]


def unpacked(statements: list[Statement]) -> list[Statement]:
    """`batch = x.shape[0]`, `length = x.shape[1]` as `batch, length = x.shape[:2]`."""
    out: list[Statement] = []
    i = 0
    while i < len(statements):
        targets: list[str] = []
        base: Expr | None = None
        while i + len(targets) < len(statements):
            s = statements[i + len(targets)]
            match s:
                case Assign((name,), Index(Attribute(Name(x), "shape"), Literal(n)), _):
                    if n != str(len(targets)) or (base is not None and base != Name(x)) or name in targets or name == x:
                        break
                    base = Name(x)
                    targets.append(name)
                case _:
                    break
        if base is not None and len(targets) > 1:
            value = Index(Attribute(base, "shape"), SliceKey(None, Literal(str(len(targets)))))
            out.append(Assign(tuple(targets), value))
            i += len(targets)
        else:
            out.append(statements[i])
            i += 1
    return out


def joined(statements: list[Statement], hints: Hints) -> list[Statement]:
    """The statements, with values read only by the next one inlined into it."""
    total: Counter[str] = Counter()
    reads(statements, total)
    written: Counter[str] = Counter()
    assigned(statements, written)
    return _joined(statements, hints, total, written)


def _joined(statements: list[Statement], hints: Hints, total: Counter[str], written: Counter[str]) -> list[Statement]:
    out: list[Statement] = []
    for s in statements:
        match s:
            case If(test, then, otherwise):
                s = If(test, _joined(then, hints, total, written), _joined(otherwise, hints, total, written))
            case For(target, iterable, body):
                s = For(target, iterable, _joined(body, hints, total, written))
            case While(test, body):
                s = While(test, _joined(body, hints, total, written))
            case Def(name, parameters, body):
                s = Def(name, parameters, _joined(body, hints, total, written))
        while isinstance(s, Assign | Return | Do):
            found = _written_in(s, out, hints, total, written)
            if found is None:
                break
            at, s = found
            del out[at]
        out.append(s)
    return out


def _written_in(
    s: Assign | Return | Do, out: Sequence[Statement], hints: Hints, total: Counter[str], written: Counter[str]
) -> tuple[int, Statement] | None:
    """(the index of an earlier assignment, `s` with its value in place of its variable), or None. The assignment is the
    last one, or one further up that reads only names that are never assigned, such as the arguments."""
    read: Counter[str] = Counter()
    for e in expressions(s):
        count(e, read)
    once = {name for name in read if total[name] == 1}
    for at in range(len(out) - 1, -1, -1):
        before = out[at]
        if not once or not isinstance(before, Assign):
            return None
        if at < len(out) - 1:
            if before.targets[0] not in once:
                continue
            once.remove(before.targets[0])
            mine: Counter[str] = Counter()
            count(before.value, mine)
            if any(written[name] for name in mine) or "backend" in mine:
                continue
        made = _merged(before, s, read, hints, total, written)
        if made is not None:
            return at, made
    return None


def _merged(
    before: Assign,
    s: Assign | Return | Do,
    read: Counter[str],
    hints: Hints,
    total: Counter[str],
    written: Counter[str],
) -> Statement | None:
    """`s` with the value of `before` in place of its variable; None if that is not possible or too long. read: the
    variables of `s`."""
    if len(before.targets) != 1:
        return None
    name = before.targets[0]
    if total[name] != 1 or written[name] != 1 or name in hints.fixed or "." in name:
        return None
    if read[name] != 1:
        return None
    if isinstance(s, Return) and len(s.values) > 1:
        if name in hints.words or not all(_held(v) for v in s.values if v != Name(name)):
            return None  # a name from the file describes the result
    if _is_activated(before.value) and any(_layer_takes(e, name) for e in expressions(s)):
        return None
    if isinstance(before.value, Conditional) and s != Return((Name(name),)):
        return None
    made = with_expressions(s, lambda e: substituted(e, {name: before.value}))
    said = lambda m: hints.words.get(m[0], "middle")  # noqa: E731
    text = ", ".join(_VARIABLE.sub(said, flat(e)) for e in expressions(made))
    head = sum(len(t) + 2 for t in made.targets) if isinstance(made, Assign) else 7
    if len(text) + min(head, 9) > MAX_LINE or any(
        depth(e) > MAX_DEPTH + isinstance(s, Return) for e in expressions(made)
    ):
        return None
    return made


def _held(e: Expr) -> bool:
    """Whether an expression consists of variables only, so that its order of evaluation does not matter."""
    return all(map(_held, e.items)) if isinstance(e, Tuple) else isinstance(e, Name)


def _is_activated(e: Expr) -> bool:
    """Whether an expression applies a function to a layer's result: a line ends after it."""
    match e:
        case Call(Attribute(Name("F"), _), (first, *_), _):
            return is_layer(first) or _is_activated(first)
        case _:
            return False


def _layer_takes(e: Expr, name: str) -> bool:
    found = False

    def visit(x: Expr) -> Expr | None:
        nonlocal found
        if isinstance(x, Call) and is_layer(x) and Name(name) in x.args:
            found = True
        return None

    mapped(e, visit)
    return found


def depth(e: Expr) -> int:
    """The nesting depth of calls and operators; a chain of methods, or of sums or products, counts once."""
    match e:
        case Call(function, args, kwargs):
            base = depth(function.object) if isinstance(function, Attribute) else 0
            return max(base, 1 + max((depth(x) for x in (*args, *(v for _, v in kwargs))), default=0))
        case Binary(op, left, right):
            same = isinstance(left, Binary) and PRECEDENCE[left.op] == PRECEDENCE[op]  # a * b * c
            return max(depth(left) if same else 1 + depth(left), 1 + depth(right))
        case Unary(_, operand):
            return 1 + depth(operand) if not isinstance(operand, Literal) else 0
        case Attribute(base, _):
            return depth(base)
        case Index(base, key):
            return max(depth(base), depth(key))
        case Tuple(items) | List(items):
            return max((depth(i) for i in items), default=0)
        case Conditional(test, then, otherwise):
            return 1 + max(depth(test), depth(then), depth(otherwise))
        case _:
            return 0
