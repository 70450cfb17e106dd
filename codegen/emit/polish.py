"""Polish: rewrites statements in which each value has its own variable as a person would write them.

A value read only by the next statement becomes part of it, up to a line's length, and the remaining variables get
descriptive names. A name is reused once its value is no longer read.
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
from .names import MAX_LOCAL, RESERVED, snake
from .statement import Assign, Break, Def, Delete, Do, For, If, Return, Statement, While

MAX_DEPTH = 3
ROOM = WIDTH - 9
_VARIABLE = re.compile(r"\b[pv]\d+\b")  # before it is named


@dataclass
class Hints:
    """What is known of variables: words for names, and those whose value must be computed where it is. callees: text of
    a called function -> its parameters' names."""

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


# -- expressions ------------------------------------------------------------------------------------------------------


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
    old = tuple(vars(e).values())
    new = tuple([_part(x, change) for x in old])
    return e if all(map(is_, old, new)) else kind(*new)


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
    """Count the reads of each variable in `e` into `into`."""

    def visit(x: Expr) -> Expr | None:
        if isinstance(x, Name):
            into[x.id] += 1
            return x
        if isinstance(x, Comprehension):  # which computes its item repeatedly
            count(x.item, into)
        return None

    mapped(e, visit)


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
    """The statements, with values read only by the next one inlined into it."""
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
    """A statement with the value of one before it written where it is read, and that one's place: of the last one, or
    of one further up that computes with nothing but what the function is given, which is there all along."""
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
        made = _merged(before, s, hints, total, written)
        if made is not None:
            return at, made
    return None


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
            return None  # a name from the file says what is returned
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
    """Whether an expression consists of variables only, so that its order of evaluation does not matter."""
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
    """Whether an expression is a function of a layer's result, after which a line ends."""
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
    """The nesting depth of calls and operators; a chain of methods counts once."""
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
    "non_max_suppression": ("boxes", "scores"),
    "rotary_embedding": ("", "cos", "sin"),
    "cos": ("angles",),
    "sin": ("angles",),
}
_WEAK = ("joined", "stacked", "part")  # words that say less than a value's use
_KEEP = ("reshape", "permute", "expand", "astype", "squeeze", "flatten")
_PLAIN = ("x", "y", "z")  # what flows through a model is x
_ASIDE = "hidden"  # what is computed beside it
_EMBEDDINGS = ("_embeddings", "_embedding")
_FAR = 2  # statements between a value and the concatenation to which it skips
# Words of a field that say how a layer computes rather than what.
_LAYER_KINDS = frozenset(
    "conv linear fc dense norm layer layers block blocks bn ln proj mlp group instance batch embedding p relu prelu "
    "features stem head down up mix in out bottom encoder decoder body net model module main seq act self dw pw se "
    "transpose shortcut reduce expand downsample pool ff ffn gemm matmul".split()
)


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
        self.factors: set[str] = set()
        self.joins: dict[str, float] = {}
        self._scan(statements)
        for name in sorted(self.first, key=lambda n: -self.first[n]):
            self._passed_on(name)
        read: Counter[str] = Counter()
        reads(statements, read)
        known = set(self.first)
        # Names that are read but never assigned are not ours: self, F, nn, backend, and what a layout step may add.
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
        """Note the parameter for which a call takes a variable."""
        match e:
            case Call(Attribute(Name("F"), "softmax"), (scores, *_), _):
                self._scored(scores)
                return None
            case Call(Attribute(Name("F"), "concat"), (Tuple(items), *_), _):
                self.joins.update((i.id, self.at) for i in items if isinstance(i, Name))
                match items:
                    case (Binary("-", Name(center), Name(half)), Binary("+", left, right)):
                        if (left, right) == (Name(center), Name(half)):  # corners of boxes
                            self.uses.setdefault(center, "center")
                            self.uses.setdefault(half, "half_size")
                return None
            case Call(Attribute(Name("F"), function), args, _):
                roles = _ARGUMENT_ROLES.get(function, ())
            case Call(Attribute(_, field), (Name(ids),), _) if _is_layer(e) and field.endswith(_EMBEDDINGS):
                word = field.removesuffix("s").removesuffix("_embedding")
                self.uses.setdefault(ids, f"{word}s")
                return None
            case Call(function, args, _):
                roles = tuple(self.hints.callees.get(flat(function), ()))
            case Binary("+", left, Name(variable)) if _is_layer(left) and variable in self.parameters[1:]:
                args, roles = (Name(variable),), ("residual",)
            case Binary("@", left, right) if self._is_softmax(left):
                args, roles = (right,), ("value",)
            case Binary("*", left, right):
                self.factors.update(i.id for i in (left, right) if isinstance(i, Name))
                return None
            case _:
                return None
        for a, role in zip(args, roles, strict=False):
            if role and role not in _PLAIN:
                self._used(a, role)
        return None

    def _used(self, e: Expr, role: str) -> None:
        """Note what the variable of which an expression is a view is taken for."""
        while True:
            match e:
                case Name(variable):
                    self.uses.setdefault(variable, role)
                    return
                case Call(Attribute(base, method), _, _) if method in _KEEP and base != Name("F"):
                    e = base
                case _:
                    return

    def _scored(self, e: Expr, steps: int = 6) -> None:
        """Note the query and the key of the product that a softmax is taken of."""
        match e:
            case Binary("@", left, right):
                self._used(left, "query")
                self._used(right, "key")
            case Binary("/" | "*" | "+" | "-", left, _):
                self._scored(left, steps)
            case Call(Attribute(Name("F"), "where"), (_, left, right), _):
                self._scored(left, steps)
                self._scored(right, steps)
            case Name(variable) if variable in self.made_by and steps and self.made_by[variable][2] == 1:
                value = self.made_by[variable][0]
                self._scored(value, steps - 1)
                if isinstance(value, Binary):
                    self.uses.setdefault(variable, "scores")
            case _:
                return

    def _is_softmax(self, e: Expr) -> bool:
        match e:
            case Call(Attribute(Name("F"), "softmax"), _, _):
                return True
            case Name(variable) if variable in self.made_by:
                value = self.made_by[variable][0]
                return isinstance(value, Call) and value.function == Attribute(Name("F"), "softmax")
            case _:
                return False

    def _passed_on(self, name: str) -> None:
        """Propagate a variable's use to its source."""
        role = self.uses.get(name, "")
        if role not in ("query", "key", "value", "scores", "mask") or name not in self.made_by:
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
                # Variables of one iteration are still live in the next, unless each iteration assigns them before
                # reading.
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
                return chosen[source]  # a loop continues with values made before it
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
            joined = self.joins.get(variable, 0.0) == self.last[variable]
            far = joined and self.last[variable] > self.first[variable] + _FAR
            aside = self._aside(variable)
            if "x" not in held and not far and (not joined or aside == _ASIDE):
                return "x"
            wanted = "skip" if far else aside
        if variable == wanted == "backend":
            return wanted
        if keyword.iskeyword(wanted) or hasattr(builtins, wanted) or wanted in RESERVED:
            wanted = f"{wanted}_value" if not wanted.endswith("_") else wanted
        name, n = wanted, 1
        while name in held:
            n += 1
            name = f"{wanted}{n}" if not wanted[-1].isdigit() else f"{wanted}_{n}"
        return name

    def _aside(self, variable: str) -> str:
        """A word for a value beside the main flow: the last layer's name if that says more than its kind."""
        if variable in self.parameters:
            return "other"
        found = self.made_by.get(variable)
        return (found is not None and _layer_word(found[0])) or _ASIDE

    def _role(self, variable: str, chosen: Mapping[str, str]) -> str:
        found = self.made_by.get(variable)
        if found is None:
            return ""
        value, _, width = found
        if width > 1:
            return ""
        role = self._role_of(value, chosen)
        is_gate = variable in self.factors or not _is_function(value, "silu", "sigmoid")
        return role if role != "gate" or is_gate else ""

    def _role_of(self, e: Expr, chosen: Mapping[str, str]) -> str:
        match e:
            case Call(Attribute(base, method), _, _) if method in _KEEP and base != Name("F"):
                return self._kept(base, chosen)
            case Call(Attribute(Name("F"), "expand_dims" | "rotary_embedding"), (first, *_), _):
                return self._kept(first, chosen)
            case Call(Attribute(Name("F"), "where"), (_, Call(Name("float"), (Literal('"-inf"'),), _), other), _):
                return "scores" if self._role_of(other, chosen) == "scores" else "mask"
            case Call(Attribute(Name("F"), "where"), (test, Literal(), _), _):
                return "mask" if self._role_of(test, chosen) == "mask" else ""
            case Call(Attribute(Name("F"), "logical_and" | "logical_or" | "logical_not"), _, _):
                return "mask"
            case Call(Attribute(Name("F"), function), _, _):
                return _FUNCTION_ROLES.get(function, "")
            case Call(Attribute(Name("self"), layer), _, _):
                return _LAYER_ROLES.get(snake(layer), "")
            case Index(Call() as base, Tuple(keys)) if all(isinstance(k, SliceKey) for k in keys):
                return self._kept(base, chosen)
            case Name(variable):
                word = chosen.get(variable, "")
                word = word.rstrip("0123456789")
                return "" if word in (*_PLAIN, _ASIDE, "skip", "other") else word
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
        """The word for the value of which an expression is a mere view."""
        role = self._role_of(e, chosen)
        if role == "positions" and not isinstance(e, Name):
            return role
        return "" if role in ("positions", "joined", "mean", "part") else role

    def _is_positions(self, e: Expr) -> bool:
        """Whether an expression counts up along some axis."""
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


def _is_function(e: Expr, *names: str) -> bool:
    return isinstance(e, Call) and isinstance(e.function, Attribute) and e.function.name in names


def _layer_word(e: Expr) -> str:
    """The name of the layer whose result an expression changes no more than in shape and by functions of one value;
    empty if that says only what kind of layer it is."""
    while True:
        match e:
            case Call(Attribute(Name("F"), _), (first, *rest), _) if not any(isinstance(r, Name | Call) for r in rest):
                e = first
            case Call(Attribute(base, method), _, _) if method in _KEEP and base != Name("F"):
                e = base
            case Call() if _is_layer(e):
                field = e.function
                while isinstance(field, Index):
                    field = field.object
                word = snake(field.name) if isinstance(field, Attribute) else ""
                parts = {re.sub(r"\d+", "", w) for w in word.split("_")} - {""}
                return "" if not parts or parts & _LAYER_KINDS or len(word) > MAX_LOCAL else word
            case _:
                return ""


def _bound(statements: Iterable[Statement]) -> set[str]:
    """The names bound by comprehensions."""
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
    """The variables that every iteration of a loop assigns before reading. Empty for a loop that may end within an
    iteration or that recomputes its condition."""
    if not isinstance(s, For) or any(inner(t) or isinstance(t, Break) for t in s.body):
        return set()
    own, read = set(s.target.split(", ")), Counter[str]()
    for t in s.body:
        reads([t], read)
        if isinstance(t, Assign):
            own.update(name for name in t.targets if not read[name])
    return own


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
