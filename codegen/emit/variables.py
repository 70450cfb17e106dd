"""Names the variables of a generated function after what computes a value and what uses it.

A name is reused once its value is no longer read.
"""

from __future__ import annotations

import builtins
import keyword
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from ..records import dataclass
from .expression import Attribute, Binary, Call, Comprehension, Expr, Index, Literal, Name, SliceKey, Tuple, Unary, flat
from .names import RESERVED, snake
from .statement import Assign, Break, Def, For, Statement, While
from .traversal import assigned, count, expressions, inner, is_layer, mapped, reads
from .words import (
    ARGUMENT_ROLES,
    ASIDE,
    EMBEDDINGS,
    FAR,
    FUNCTION_ROLES,
    KEEP,
    LAYER_ROLES,
    OPTION_ROLES,
    PLAIN,
    WEAK,
    is_function,
    layer_word,
)


@dataclass
class Hints:
    """What is known about variables: words for their names, and those whose computation must stay in its place.
    callees: text of a called function -> its parameters' names."""

    words: dict[str, str] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    kinds: dict[str, str] = field(default_factory=dict)
    callees: dict[str, list[str]] = field(default_factory=dict)


class Naming:
    """Gives the variables of one function their names."""

    def __init__(self, parameters: Sequence[str], statements: list[Statement], hints: Hints) -> None:
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
        # Names that are read but never assigned are not variables of this function: self, F, nn, backend, and names
        # that layout may add.
        self.taken = RESERVED | {n for n in read if n not in known} - _bound(statements) | self.frozen

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
                self._joined(items)
                return None
            case Call(Attribute(Name("F"), function), args, options):
                roles = ARGUMENT_ROLES.get(function, ())
                self._options(options)
            case Call(Attribute(_, field), (Name(ids),), _) if is_layer(e) and field.endswith(EMBEDDINGS):
                word = field.removesuffix("s").removesuffix("_embedding")
                if word != "patch":  # into which an image is cut
                    self.uses.setdefault(ids, f"{word}s")
                return None
            case Call(function, args, _):
                roles = tuple(self.hints.callees.get(flat(function), ()))
            case Binary("+", left, Name(variable)) if is_layer(left) and variable in self.parameters[1:]:
                args, roles = (Name(variable),), ("residual",)
            case Binary("@", left, right) if self._is_softmax(left):
                args, roles = (right,), ("value",)
            case Binary("*", left, right):
                self.factors.update(i.id for i in (left, right) if isinstance(i, Name))
                return None
            case _:
                return None
        for a, role in zip(args, roles, strict=False):
            if role and role not in PLAIN:
                self._used(a, role)
        return None

    def _options(self, options: tuple[tuple[str, Expr], ...]) -> None:
        for name, value in options:
            if name in OPTION_ROLES:
                self._used(value, OPTION_ROLES[name])

    def _joined(self, items: tuple[Expr, ...]) -> None:
        self.joins.update((i.id, self.at) for i in items if isinstance(i, Name))
        match items:
            case (Binary("-", Name(center), Name(half)), Binary("+", left, right)):
                if (left, right) == (Name(center), Name(half)):  # corners of boxes
                    self.uses.setdefault(center, "center")
                    self.uses.setdefault(half, "half_size")

    def _used(self, e: Expr, role: str) -> None:
        """Note what a variable is used for if an expression is a view of it."""
        while True:
            match e:
                case Name(variable):
                    self.uses.setdefault(variable, role)
                    return
                case Call(Attribute(base, method), _, _) if method in KEEP and base != Name("F"):
                    e = base
                case Call(Attribute(Name("F"), "expand_dims"), (first, *_), _):
                    e = first
                case _:
                    return

    def _scored(self, e: Expr, steps: int = 6) -> None:
        """Note the query and the key of the product inside a softmax."""
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
                case Call(Attribute(base, method), _, _) if method in KEEP and base != Name("F"):
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
            self._targets(s)
            for body in inner(s):
                self._scan(body)
            if isinstance(s, For | While):
                self._keep(s, start)

    def _targets(self, s: Statement) -> None:
        """Note the variables that the statement itself assigns."""
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
                assigned(body, found)
                self.frozen |= set(found)

    def _keep(self, loop: For | While, start: float) -> None:
        """Variables of one iteration are still live in the next, unless each iteration assigns them before reading."""
        touched: Counter[str] = Counter()
        reads([loop], touched)
        assigned([loop], touched)
        for name in set(touched) - _own(loop):
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
                return chosen[source]  # a loop also reads values from before it
        if variable in self.hints.words:
            wanted = self.hints.words[variable]
        else:
            wanted = self._role(variable, chosen)
        kind = self.hints.kinds.get(variable, "")
        if not wanted or wanted in WEAK:
            wanted = self.uses.get(variable, "") or wanted
        if not wanted:
            wanted = {"scalar": "n", "shape": "shape", "bool": "mask"}.get(kind, "x")
        if wanted in PLAIN:
            joined = self.joins.get(variable, 0.0) == self.last[variable]
            far = joined and self.last[variable] > self.first[variable] + FAR
            aside = self._aside(variable)
            if "x" not in held and not far and (not joined or aside == ASIDE):
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
        return (found is not None and layer_word(found[0])) or ASIDE

    def _role(self, variable: str, chosen: Mapping[str, str]) -> str:
        found = self.made_by.get(variable)
        if found is None:
            return ""
        value, _, width = found
        if width > 1:
            return ""
        role = self._role_of(value, chosen)
        is_gate = variable in self.factors or not is_function(value, "silu", "sigmoid")
        return role if role != "gate" or is_gate else ""

    def _role_of(self, e: Expr, chosen: Mapping[str, str]) -> str:
        match e:
            case Call(Attribute(base, method), _, _) if method in KEEP and base != Name("F"):
                return self._kept(base, chosen)
            case Call(Attribute(Name("F"), "expand_dims" | "rotary_embedding"), (first, *_), _):
                return self._kept(first, chosen)
            case Call(Attribute(Name("F"), "where"), (_, Call(Name("float"), (Literal('"-inf"'),), _), other), _):
                return "scores" if self._role_of(other, chosen) == "scores" else "mask"
            case Call(Attribute(Name("F"), "where"), (test, Literal(), _), _):
                return "mask" if self._role_of(test, chosen) == "mask" else ""
            case Call(Attribute(Name("F"), function), _, _):
                return FUNCTION_ROLES.get(function, "")
            case Call(Attribute(Name("self"), layer), _, _):
                return LAYER_ROLES.get(snake(layer), "")
            case Index(Call() as base, Tuple(keys)) if all(isinstance(k, SliceKey) for k in keys):
                return self._kept(base, chosen)
            case Name(variable):
                word = chosen.get(variable, "")
                word = word.rstrip("0123456789")
                return "" if word in (*PLAIN, ASIDE, "skip", "other") else word
            case Binary(op, left, right):
                return self._role_of_binary(op, left, right, chosen)
            case Unary(_, operand):
                return self._role_of(operand, chosen)
            case _:
                return ""

    def _role_of_binary(self, op: str, left: Expr, right: Expr, chosen: Mapping[str, str]) -> str:
        if op == ">=" and self._is_positions(left) and self._is_positions(right):
            return "causal"
        if op in ("==", "!=", "<", "<=", ">", ">=", "&", "|"):
            return "mask"
        for side in (left, right) if op in ("*", "/", "+", "-") else ():
            role = self._role_of(side, chosen)
            if role in ("query", "key", "value", "scores", "mask", "positions"):
                return role
        return ""

    def _kept(self, e: Expr, chosen: Mapping[str, str]) -> str:
        """The word for the value that an expression is only a view of."""
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
