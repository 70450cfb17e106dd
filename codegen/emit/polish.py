"""Polish: statements in which each value has a variable of its own, as a person would write them.

A value that only the next statement reads becomes part of it, up to a line's length, and the remaining variables get
names for what they hold. Names are taken again once nothing reads what they held.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from operator import is_
from typing import Any, get_args

from ..records import dataclass
from .expression import (
    WIDTH,
    Attribute,
    Binary,
    Call,
    Comprehension,
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
from .names import RESERVED, snake
from .statement import Assign, Break, Def, Delete, Do, For, If, Return, Statement, While

MAX_DEPTH = 3
ROOM = WIDTH - 9
_VARIABLE = re.compile(r"\b[pv]\d+\b")  # before it has its name


@dataclass
class Hints:
    """What is known of variables: words for a name, and those whose value must be computed where it stands. callees:
    the parameters' names of what a call's function is, by its text."""

    words: dict[str, str] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    kinds: dict[str, str] = field(default_factory=dict)
    callees: dict[str, list[str]] = field(default_factory=dict)


def polished(
    parameters: Sequence[str], statements: list[Statement], hints: Hints, taken: Iterable[str] = ()
) -> tuple[list[str], list[Statement]]:
    """The parameters' names and the statements."""
    statements = joined(without_unread(statements), hints)
    names = _Naming(parameters, statements, hints, set(taken)).names()
    return [names.get(p, p) for p in parameters], unpacked(renamed(statements, names))


def without_unread(statements: list[Statement]) -> list[Statement]:
    """Without sizes that nobody reads."""
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


# -- expressions ------------------------------------------------------------------------------------------------------


_EXPRESSIONS = frozenset(get_args(Expr))


def mapped(e: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """`e` with `change` applied to every part, the outermost first; None goes on inward. What has no changed part is
    the same object as before."""
    made = change(e)
    if made is not None:
        return made
    kind = e.__class__
    if kind is Name or kind is Literal:
        return e
    old = tuple(vars(e).values())
    new = tuple([_part(x, change) for x in old])
    return e if all(map(is_, old, new)) else kind(*new)


def _part(x: Any, change: Callable[[Expr], Expr | None]) -> Any:
    """A field of an expression: one, or a tuple of some, or of pairs with one; else as it is."""
    if x.__class__ is not tuple:
        return mapped(x, change) if x.__class__ in _EXPRESSIONS else x
    if not x:
        return x
    made = tuple([_part(i, change) for i in x])
    return x if all(map(is_, x, made)) else made


def count(e: Expr, into: Counter[str]) -> None:
    """Add the variables that `e` reads to `into`, as often as it reads them."""

    def visit(x: Expr) -> Expr | None:
        if isinstance(x, Name):
            into[x.id] += 1
            return x
        if isinstance(x, Comprehension):  # which computes its item again and again
            count(x.item, into)
        return None

    mapped(e, visit)


def expressions(s: Statement) -> list[Expr]:
    """The expressions of a statement, without those of the statements in it."""
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
    match s:
        case If(_, then, otherwise):
            return [then, otherwise]
        case For(_, _, body) | While(_, body) | Def(_, _, body):
            return [body]
        case _:
            return []


def reads(statements: Iterable[Statement], into: Counter[str]) -> None:
    for s in statements:
        for e in expressions(s):
            count(e, into)
        for body in inner(s):
            reads(body, into)


def with_expressions(s: Statement, change: Callable[[Expr], Expr]) -> Statement:
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
    return mapped(e, lambda x: names.get(x.id) if isinstance(x, Name) else None)


# -- joining ----------------------------------------------------------------------------------------------------------


def joined(statements: list[Statement], hints: Hints) -> list[Statement]:
    """The statements, with values that only the next one reads written where they are read."""
    total: Counter[str] = Counter()
    reads(statements, total)
    written: Counter[str] = Counter()
    _assigned(statements, written)
    return _joined(statements, hints, total, written)


def _assigned(statements: Iterable[Statement], into: Counter[str]) -> None:
    for s in statements:
        match s:
            case Assign(targets, _):
                into.update(targets)
            case For(target, _, _):
                into.update(target.split(", "))
            case Def(name, parameters, _):
                into.update((name, *parameters))
        for body in inner(s):
            _assigned(body, into)


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
        while out and isinstance(s, Assign | Return | Do) and isinstance(before := out[-1], Assign):
            made = _merged(before, s, hints, total, written)
            if made is None:
                break
            out.pop()
            s = made
        out.append(s)
    return out


def _merged(
    before: Assign, s: Assign | Return | Do, hints: Hints, total: Counter[str], written: Counter[str]
) -> Statement | None:
    if len(before.targets) != 1:
        return None
    name = before.targets[0]
    if total[name] != 1 or written[name] != 1 or name in hints.fixed or "." in name:
        return None
    mine: Counter[str] = Counter()
    for e in expressions(s):
        count(e, mine)
    if mine[name] != 1:
        return None
    if isinstance(s, Return) and len(s.values) > 1:
        if name in hints.words or not all(_held(v) for v in s.values if v != Name(name)):
            return None  # a name that the file gives says what is returned
    if _is_activated(before.value) and any(_layer_takes(e, name) for e in expressions(s)):
        return None
    if isinstance(before.value, Conditional) and s != Return((Name(name),)):
        return None
    made = with_expressions(s, lambda e: substituted(e, {name: before.value}))
    said = lambda m: hints.words.get(m[0], "middle")  # noqa: E731
    text = ", ".join(_VARIABLE.sub(said, flat(e)) for e in expressions(made))
    head = sum(len(t) + 2 for t in made.targets) if isinstance(made, Assign) else 7
    if len(text) + min(head, 9) > ROOM or any(depth(e) > MAX_DEPTH + isinstance(s, Return) for e in expressions(made)):
        return None
    return made


def _held(e: Expr) -> bool:
    """Whether an expression is variables alone, so that nothing is computed before or after it."""
    return all(map(_held, e.items)) if isinstance(e, Tuple) else isinstance(e, Name)


def _is_layer(e: Expr) -> bool:
    """Whether an expression calls a module of the model."""
    if not isinstance(e, Call):
        return False
    function = e.function
    while isinstance(function, Attribute | Index):
        function = function.object
    return function == Name("self") and not (isinstance(e.function, Attribute) and e.function.name == "val")


def _is_activated(e: Expr) -> bool:
    """Whether an expression is a function of a layer's result: a line ends there."""
    match e:
        case Call(Attribute(Name("F"), _), (first, *_), _):
            return _is_layer(first) or _is_activated(first)
        case _:
            return False


def _layer_takes(e: Expr, name: str) -> bool:
    found = False

    def visit(x: Expr) -> Expr | None:
        nonlocal found
        if isinstance(x, Call) and _is_layer(x) and Name(name) in x.args:
            found = True
        return None

    mapped(e, visit)
    return found


def depth(e: Expr) -> int:
    """How deep calls and operators nest; a chain of methods counts as one."""
    match e:
        case Call(function, args, kwargs):
            base = depth(function.object) if isinstance(function, Attribute) else 0
            return max(base, 1 + max((depth(x) for x in (*args, *(v for _, v in kwargs))), default=0))
        case Binary(_, left, right):
            return 1 + max(depth(left), depth(right))
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


# -- naming -----------------------------------------------------------------------------------------------------------

_ROLES = (
    ("query", ("query", "q", "q_proj", "to_q", "wq", "q_lin", "q_linear", "queries")),
    ("key", ("key", "k", "k_proj", "to_k", "wk", "k_lin", "k_linear", "keys")),
    ("value", ("value", "v", "v_proj", "to_v", "wv", "v_lin", "v_linear", "values")),
    ("gate", ("gate", "gate_proj", "w1")),
    ("qkv", ("qkv", "c_attn", "in_proj", "qkv_proj", "query_key_value")),
)
_LAYER_ROLES = {attribute: role for role, attributes in _ROLES for attribute in attributes}
_FUNCTION_ROLES = {
    "arange": "positions",
    "softmax": "weights",
    "concat": "joined",
    "stack": "stacked",
    "silu": "gate",
    "sigmoid": "gate",
    "cos": "cos",
    "sin": "sin",
    "split": "part",
    "mean": "mean",
    "var": "variance",
    "topk": "best",
    "one_hot": "one_hot",
    "argmax": "best",
}
_ARGUMENT_ROLES = {
    "attention": ("query", "key", "value", "mask"),
    "rotary_embedding": ("", "cos", "sin"),
    "cos": ("angles",),
    "sin": ("angles",),
}
_WEAK = ("joined", "stacked", "part")  # words that say less than what a value is used as
_KEEP = ("reshape", "permute", "expand", "astype", "squeeze", "flatten")
_PLAIN = ("x", "y", "z", "a", "b", "c", "d", "e", "g", "h")


class _Naming:
    """Gives the variables of one function their names."""

    def __init__(self, parameters: Sequence[str], statements: list[Statement], hints: Hints, taken: set[str]) -> None:
        self.parameters = parameters
        self.hints = hints
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}
        self.made_by: dict[str, tuple[Expr, int, int]] = {}
        self.at = 0.0
        for p in parameters:
            self._write(p, -1.0)
        self.frozen: set[str] = set()
        self.uses: dict[str, str] = {}
        self._scan(statements)
        for name in sorted(self.first, key=lambda n: -self.first[n]):
            self._passed_on(name)
        read: Counter[str] = Counter()
        reads(statements, read)
        known = set(self.first)
        # What is read and never assigned is not ours: self, F, nn, backend, and what a layout step may add.
        self.taken = taken | RESERVED | {n for n in read if n not in known} - _bound(statements) | self.frozen

    def _write(self, name: str, at: float) -> None:
        self.first[name] = min(self.first.get(name, at), at)
        self.last[name] = max(self.last.get(name, at), at)

    def _read(self, e: Expr) -> None:
        mapped(e, self._use)
        found: Counter[str] = Counter()
        count(e, found)
        for name in found:
            if name in self.first:
                self.last[name] = max(self.last[name], self.at)

    def _use(self, e: Expr) -> Expr | None:
        """Note what a call takes a variable as."""
        match e:
            case Call(Attribute(Name("F"), function), args, _):
                roles = _ARGUMENT_ROLES.get(function, ())
            case Call(function, args, _):
                roles = tuple(self.hints.callees.get(flat(function), ()))
            case Binary("+", left, Name(variable)) if _is_layer(left) and variable in self.parameters[1:]:
                args, roles = (Name(variable),), ("residual",)
            case _:
                return None
        for a, role in zip(args, roles, strict=False):
            if isinstance(a, Name) and role and role not in _PLAIN:
                self.uses.setdefault(a.id, role)
        return None

    def _passed_on(self, name: str) -> None:
        """What a variable is used as, its source is used as too."""
        role = self.uses.get(name, "")
        if role not in ("query", "key", "value") or name not in self.made_by:
            return
        e = self.made_by[name][0]
        while True:
            match e:
                case Call(Attribute(base, method), _, _) if method in _KEEP and base != Name("F"):
                    e = base
                case Call(Attribute(Name("F"), "rotary_embedding" | "expand_dims"), (first, *_), _):
                    e = first
                case Call(Attribute(Name("F"), "concat"), (Tuple((_, second)), *_), _):
                    e = second
                case Name(source):
                    self.uses.setdefault(source, role)
                    return
                case _:
                    return

    def _scan(self, statements: Iterable[Statement]) -> None:
        for s in statements:
            self.at += 1
            start = self.at
            for e in expressions(s):
                self._read(e)
            match s:
                case Assign(targets, value):
                    for i, t in enumerate(targets):
                        if t == "_" or "." in t or "[" in t:
                            continue
                        self._write(t, self.at + 0.5)
                        self.made_by.setdefault(t, (value, i, len(targets)))
                case For(target, _, _):
                    for t in target.split(", "):
                        self._write(t, self.at + 0.5)
                case Def(name, parameters, body):
                    self.frozen |= {name, *parameters}
                    found: Counter[str] = Counter()
                    _assigned(body, found)
                    self.frozen |= set(found)
            for body in inner(s):
                self._scan(body)
            if isinstance(s, For | While):
                # What a round leaves is there in the next one, but for what each round makes before it reads it.
                touched: Counter[str] = Counter()
                reads([s], touched)
                _assigned([s], touched)
                for name in set(touched) - _own(s):
                    if name in self.first:
                        self.last[name] = max(self.last[name], self.at + 0.75)
                        self.first[name] = min(self.first[name], start + 0.25)

    def names(self) -> dict[str, str]:
        chosen: dict[str, str] = {}
        busy: list[tuple[float, str]] = []  # (last read, name)
        for name in self.frozen:
            chosen[name] = name
        order = sorted(self.first, key=lambda n: (self.first[n], 0 if n in self.parameters else 1))
        for variable in order:
            if variable in chosen:
                continue
            at = self.first[variable]
            busy = [b for b in busy if b[0] >= at]
            held = {n for _, n in busy} | self.taken
            name = self._pick(variable, held, chosen)
            chosen[variable] = name
            busy.append((self.last[variable], name))
        return chosen

    def _pick(self, variable: str, held: set[str], chosen: Mapping[str, str]) -> str:
        match self.made_by.get(variable):
            case (Name(source), _, 1) if variable not in self.hints.words and chosen.get(source, "") not in {*held, ""}:
                return chosen[source]  # a loop goes on with what was made before it
        if variable in self.hints.words:
            wanted = self.hints.words[variable]
        else:
            wanted = self._role(variable, chosen)
        kind = self.hints.kinds.get(variable, "")
        if not wanted or wanted in _WEAK:
            wanted = self.uses.get(variable, "") or wanted
        if not wanted:
            wanted = {"scalar": "n", "shape": "shape", "bool": "mask"}.get(kind, "x")
        if wanted in _PLAIN:
            for name in (wanted, *_PLAIN):
                if name not in held:
                    return name
        if variable == wanted == "backend":
            return wanted
        if keyword.iskeyword(wanted) or hasattr(builtins, wanted) or wanted in RESERVED:
            wanted = f"{wanted}_value" if not wanted.endswith("_") else wanted
        name, n = wanted, 1
        while name in held:
            n += 1
            name = f"{wanted}{n}" if not wanted[-1].isdigit() else f"{wanted}_{n}"
        return name

    def _role(self, variable: str, chosen: Mapping[str, str]) -> str:
        found = self.made_by.get(variable)
        if found is None:
            return ""
        value, _, width = found
        if width > 1:
            return ""
        return self._role_of(value, chosen)

    def _role_of(self, e: Expr, chosen: Mapping[str, str]) -> str:
        match e:
            case Call(Attribute(base, method), _, _) if method in _KEEP and base != Name("F"):
                return self._kept(base, chosen)
            case Call(Attribute(Name("F"), "expand_dims" | "rotary_embedding"), (first, *_), _):
                return self._kept(first, chosen)
            case Call(Attribute(Name("F"), "where"), (test, Literal(), _), _):
                return "mask" if self._role_of(test, chosen) == "mask" else ""
            case Call(Attribute(Name("F"), "logical_and" | "logical_or" | "logical_not"), _, _):
                return "mask"
            case Call(Attribute(Name("F"), function), _, _):
                return _FUNCTION_ROLES.get(function, "")
            case Call(Attribute(Name("self"), layer), _, _):
                return _LAYER_ROLES.get(snake(layer), "")
            case Name(variable):
                word = chosen.get(variable, "")
                return "" if word in _PLAIN else word.rstrip("0123456789")
            case Binary("@", _, _):
                return "scores" if self._is_scores(e) else ""
            case Binary(">=", left, right) if self._is_positions(left) and self._is_positions(right):
                return "causal"
            case Binary(op, left, right) if op in ("==", "!=", "<", "<=", ">", ">=", "&", "|"):
                return "mask"
            case Binary(op, left, right) if op in ("*", "/", "+", "-"):
                for side in (left, right):
                    role = self._role_of(side, chosen)
                    if role in ("query", "key", "value", "scores", "mask", "positions"):
                        return role
                return ""
            case Unary(_, operand):
                return self._role_of(operand, chosen)
            case _:
                return ""

    def _kept(self, e: Expr, chosen: Mapping[str, str]) -> str:
        """The word for what an expression is only another view of."""
        role = self._role_of(e, chosen)
        return "" if role in ("positions", "joined", "mean", "part") else role

    def _is_positions(self, e: Expr) -> bool:
        """Whether an expression counts up, along one axis or another."""
        match e:
            case Call(Attribute(Name("F"), "arange"), _, _):
                return True
            case Call(Attribute(Name("F"), "expand_dims"), (inside, *_), _) | Binary("+", inside, _):
                return self._is_positions(inside)
            case Name(variable) if variable in self.made_by:
                return self._is_positions(self.made_by[variable][0])
            case _:
                return False

    def _is_scores(self, e: Expr) -> bool:
        names: Counter[str] = Counter()
        count(e, names)
        return any(n in ("query", "key") for n in names)


def _bound(statements: Iterable[Statement]) -> set[str]:
    """The names that comprehensions have for themselves."""
    found: set[str] = set()

    def visit(e: Expr) -> None:
        if isinstance(e, Comprehension):
            found.update(e.target.split(", "), () if e.then is None else e.then[0].split(", "))

    for s in statements:
        for e in expressions(s):
            mapped(e, visit)
        for body in inner(s):
            found |= _bound(body)
    return found


def _own(s: Statement) -> set[str]:
    """The variables that every round of a loop makes before it reads them. Of a loop that may end within a round, and
    of one that computes its condition again, nothing is said."""
    if not isinstance(s, For) or any(inner(t) or isinstance(t, Break) for t in s.body):
        return set()
    own, read = set(s.target.split(", ")), Counter[str]()
    for t in s.body:
        reads([t], read)
        if isinstance(t, Assign):
            own.update(name for name in t.targets if not read[name])
    return own


def renamed(statements: list[Statement], names: Mapping[str, str]) -> list[Statement]:
    """The statements with other names for their variables."""
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
