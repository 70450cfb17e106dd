"""Classes: drafts of the regions' code, and their merging into classes.

Two drafts are one class if their code differs only in numbers. The differing numbers become arguments of the
constructor, so that the class with a draft's arguments is that draft's code: nothing else needs to be proved.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from ..emit.expression import WIDTH, Attribute, Call, Expr, Name, flat, lift
from ..emit.names import Names
from ..emit.statement import Assign, Statement
from ..emit.traversal import inner, mapped, with_expressions
from ..emit.variables import Hints
from ..ir.types import Shape
from ..ir.value import Value
from ..records import dataclass, replace
from .options import Option, option, pieces
from .templates import Holes, Spare, field_value, key_of, taken_out

SHORTCUT = "shortcut"
BACKEND = ("backend", Name("backend"))


@dataclass
class Draft:
    """The code of one region. `fields`: what its constructor assigns; `body`: the statements of `forward`."""

    path: tuple[str, ...]
    name: str
    fields: list[Assign]
    parameters: list[str]
    body: list[Statement]
    hints: Hints
    record: dict[str, Value]
    about: str
    shapes: tuple[Shape, Shape] | None = None
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
    """A class shared by several drafts."""

    name: str
    arguments: list[str]
    fields: list[Statement]
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
        "num_features", "hidden",
    )  # fmt: skip


# -- one class of many drafts -----------------------------------------------------------------------------------------


@dataclass
class Group:
    """The drafts of one class. rows: the numbers of each, in the order of the longest draft's code, None for absent
    ones. bodies: the statements of each, as many as in the first. on: whether a draft has the option."""

    drafts: list[Draft]
    rows: list[list[Expr | None]]
    words: list[str]
    bodies: list[list[Statement]]
    on: list[bool]
    option: Option | None = None


def classified(drafts: Sequence[Draft], names: Names, known: dict[str, Class], nameless: bool = False) -> list[Class]:
    """Make a class for each kind of draft, and give every draft its class and arguments. known: existing classes, to
    which the new ones are added. nameless: field names do not come from the source."""
    groups: dict[str, Group] = {}
    for draft in drafts:
        holes = Holes(known=known)
        fields, body = taken_out(draft, holes)
        group = groups.setdefault(key_of(fields, draft.parameters, body), Group([], [], holes.words, [], []))
        group.drafts.append(draft)
        group.rows.append(list(holes.values))
        group.bodies.append(draft.body)
        group.on.append(True)
    made = [_class(group, names, known) for group in _with_options(list(groups.values()), known, nameless)]
    known.update((c.name, c) for c in made)
    return made


def _with_options(groups: list[Group], known: dict[str, Class], nameless: bool) -> list[Group]:
    """The groups, with those merged that differ from another of the same name by an optional part."""
    called = Counter(_kind(g) for g in groups)
    if max(called.values(), default=0) < 2:
        return groups
    cut = {id(g): pieces(g.drafts[0], known) for g in groups if called[_kind(g)] > 1}
    out = list(groups)
    for small in sorted(groups, key=lambda g: -len(g.bodies[0])):
        for large in out:
            if large is small or _kind(large) != _kind(small) or small.option is not None:
                continue
            found = option(large.drafts[0], small.drafts[0], cut[id(large)], cut[id(small)])
            if found is None or (large.option is not None and large.option.steps != found.steps):
                continue
            if nameless and large.option is None and found.field is not None:
                found = replace(found, name=SHORTCUT)
                for draft in large.drafts:
                    _rename(draft, draft.fields[found.field or 0].targets[0].removeprefix("self."), SHORTCUT)
            large.option = found
            for draft, row in zip(small.drafts, small.rows, strict=True):
                large.rows.append(found.padded(row, cut[id(large)]))
                large.bodies.append(found.widened(draft.body, large.drafts[0].body))
                large.drafts.append(draft)
                large.on.append(False)
            out.remove(small)
            break
    return out


def _rename(draft: Draft, old: str, new: str) -> None:
    """Rename a field, if the new name is free."""
    if old == new or any(f.targets == (f"self.{new}",) for f in draft.fields):
        return
    here, there = Attribute(Name("self"), old), Attribute(Name("self"), new)

    def changed(e: Expr) -> Expr:
        return mapped(e, lambda x: there if x == here else None)

    draft.fields = [Assign((f"self.{new}",), f.value) if f.targets == (f"self.{old}",) else f for f in draft.fields]
    draft.body = [with_expressions(s, changed) for s in draft.body]
    keys = [(new + k[len(old) :] if k.partition(".")[0] == old else k, v) for k, v in draft.record.items()]
    draft.record.clear()
    draft.record.update(keys)


def _spared(group: Group) -> None:
    """Drop the numbers that do not matter if others in their place do."""
    for i in range(len(group.words)):
        column = [row[i] for row in group.rows]
        if any(v is not None and not isinstance(v, Spare) for v in column):
            for row in group.rows:
                row[i] = None if isinstance(row[i], Spare) else row[i]


def _kind(group: Group) -> str:
    return group.drafts[0].name.removeprefix("Projection")


def _class(group: Group, names: Names, known: dict[str, Class]) -> Class:
    first = group.drafts[0]
    taken = Names({"self", "backend"})
    inside = _count(first, known)
    _spared(group)
    arguments, columns, places = _arguments(group, taken)
    fills: list[Expr] = []
    own: list[str] = []
    for i in range(len(group.words)):
        if i not in places:
            fills.append(next(row[i] for row in group.rows if row[i] is not None))  # type: ignore[arg-type]
            continue
        name = arguments[places[i]]
        fills.append(Name(name) if i < inside else Attribute(Name("self"), name))
        if i >= inside and name not in own:
            own.append(name)
    fields, body = taken_out(first, Holes(fills=fills, known=known))
    held = {f.targets[0] for f in fields}
    extra = []
    renames = {}
    for name in own:
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
        fields, body = taken_out(first, Holes(fills=fills, known=known))
    _shared_comments(body, group.bodies)
    defaults = _defaults(first.name, arguments, columns)
    steps: list[Statement] = list(fields)
    if group.option is not None:
        flag = taken.unique(group.option.name)
        arguments.append(flag)
        columns.append([lift(on) for on in group.on])
        defaults[flag] = lift(False)
        steps, body = group.option.applied(flag, fields, body)
    order = sorted(range(len(arguments)), key=lambda i: (arguments[i] in defaults, not _positional(arguments[i])))
    arguments, columns = [arguments[i] for i in order], [columns[i] for i in order]
    about = first.about if len({d.about for d in group.drafts}) == 1 else _about(group, arguments, columns)
    name = names.unique(first.name if group.option is None else _kind(group))
    made = Class(name, arguments, [*extra, *steps], first.parameters, body, first.hints, about)
    made.count = len(group.drafts)
    made.defaults = defaults
    for n, draft in enumerate(group.drafts):
        draft.kind = made
        draft.args = tuple(column[n] for column in columns)
    return made


_WIDTHS = {"out_channels": "hidden", "d_output": "hidden"}


_AXES = {3: ("batch", "channels", "width"), 4: ("batch", "channels", "height", "width")}


def _about(group: Group, arguments: Sequence[str], columns: Sequence[Sequence[Expr]]) -> str:
    """The shapes of the first input and output, with sizes that differ as arguments of the class, or as words."""
    shapes = [d.shapes for d in group.drafts]
    if any(s is None or len(s[0]) not in _AXES or len(s[1]) != len(s[0]) for s in shapes):
        return ""
    full = [s for s in shapes if s is not None]
    if len({len(s[0]) for s in full}) > 1:
        return ""
    words = []
    for side in (0, 1):
        said: list[str] = []
        for axis, word in enumerate(_AXES[len(full[0][0])]):
            sizes = [s[side][axis] for s in full]
            if len(set(sizes)) == 1:
                said.append(str(sizes[0]))
                continue
            numbers = list(map(str, sizes))
            fits = [a for a, column in zip(arguments, columns, strict=True) if [flat(v) for v in column] == numbers]
            if not fits and axis == 1:
                if len(full[0][0]) != 3:
                    return ""
                word = "length"  # of a sequence
            if not fits and side and any(s[0][axis] != s[1][axis] for s in full):
                word = f"new {word}"
            said.append(fits[0] if fits else word)
        words.append(f"({', '.join(said)})")
    text = f"{words[0]} to {words[1]}."
    if len(text) > WIDTH - 10:
        text = " to ".join(f"({', '.join(w[1:-1].split(', ')[:2])}, ...)" for w in words) + "."
    return text if text.isprintable() and not set(text) & set('"\\?') and len(text) <= WIDTH - 10 else ""


def _arguments(group: Group, taken: Names) -> tuple[list[str], list[list[Expr]], dict[int, int]]:
    """The numbers in which the drafts differ: (names of the arguments, their values for each draft, {position:
    argument}). Numbers that always agree are one argument."""
    columns = [[row[i] for row in group.rows] for i in range(len(group.words))]
    table: dict[tuple[str, ...], int] = {}
    values: list[list[Expr]] = []
    words: list[str] = []
    places: dict[int, int] = {}
    for i, column in enumerate(columns):
        full = [v for v in column if v is not None]
        texts = tuple(map(flat, full))
        if len(full) < len(column) or len(set(texts)) == 1:
            continue
        if texts not in table:
            table[texts] = len(values)
            values.append(full)
            words.append("")
        k = places[i] = table[texts]
        if _meaning(group.words[i]) > _meaning(words[k]):
            words[k] = group.words[i]
    words = [re.sub(r"_\d+$", "", w) or "size" for w in words]
    for i, column in enumerate(columns):
        if None not in column:
            continue
        fits = [
            k
            for k, others in enumerate(values)
            if all(v is None or flat(v) == flat(other) for v, other in zip(column, others, strict=True))
        ]
        alike = [k for k in fits if words[k] == group.words[i]]
        some = next(v for v in column if v is not None)
        if alike or (fits and len({flat(v) for v in column if v is not None}) > 1):
            places[i] = (alike or fits)[0]
        elif len({flat(v) for v in column if v is not None}) > 1:
            places[i] = len(values)
            values.append([Spare(flat(some)) if v is None else v for v in column])
            words.append(group.words[i] or "size")
    _name_inner(words, group.words, places)
    return [taken.unique(w) for w in words], values, places


def _name_inner(words: list[str], of_columns: Sequence[str], places: dict[int, int]) -> None:
    """Of two widths of one word, the one that is not used last is the inner one."""
    for word, inner_word in _WIDTHS.items():
        mine = [k for k, w in enumerate(words) if w == word]
        last = max((i for i, w in enumerate(of_columns) if w == word and i in places), default=-1)
        if last >= 0 and (len(mine) == 2 or (len(mine) == 1 and places[last] != mine[0])):
            for k in mine:
                if k != places[last]:
                    words[k] = inner_word


_VAGUE = ("", "size", "normalized_shape")  # words that say less than others for the same number, the vaguest first


def _meaning(word: str) -> int:
    """How much a word for a number says."""
    return _VAGUE.index(word) if word in _VAGUE else len(_VAGUE)


_DEFAULTS = {"stride": lift(1), "padding": lift(0), "groups": lift(1), "dilation": lift(1), "bias": lift(True)}


def _defaults(name: str, arguments: Sequence[str], columns: Sequence[Sequence[Expr]]) -> dict[str, Expr]:
    """The arguments that a call may omit: those that equal the layer's defaults in some block. None if writing the
    defaults takes more lines than it saves."""
    found = {}
    for argument, column in zip(arguments, columns, strict=True):
        default = _DEFAULTS.get(argument)
        if default is not None and any(flat(v) == flat(default) for v in column):
            found[argument] = default
    return found if found and _taken(name, arguments, columns, found) <= _taken(name, arguments, columns, {}) else {}


def _taken(name: str, arguments: Sequence[str], columns: Sequence[Sequence[Expr]], defaults: dict[str, Expr]) -> int:
    """The approximate number of lines of a constructor and its distinct calls."""
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
    """The constructor's parameters as written, those with a default last."""
    named = [n for n in arguments if n not in defaults]
    return [*named, *(f"{n}={flat(defaults[n])}" for n in arguments if n in defaults), "backend=None"]


def _count(draft: Draft, known: dict[str, Class]) -> int:
    """The number of numbers in the fields."""
    only = Holes(known=known)
    for f in draft.fields:
        field_value(f.value, only)
    return len(only.values)


def _shared_comments(body: list[Statement], bodies: Sequence[Sequence[Statement]]) -> None:
    """Keep only the comments that are true for every draft."""
    for i, s in enumerate(body):
        others = [b[i] for b in bodies]
        if isinstance(s, Assign) and s.comment:
            if any(isinstance(o, Assign) and o.comment != s.comment for o in others):
                body[i] = Assign(s.targets, s.value)
        for part, nested in enumerate(inner(s)):
            _shared_comments(nested, [inner(o)[part] for o in others])
