"""The description of inputs and outputs in a generated class: INPUTS, OUTPUTS and STATE."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from ..ir.argument import Argument
from ..ir.graph import Model
from ..ir.types import ScalarType, Shape, ShapeType, TensorType, Type, as_tensor, describe
from ..records import dataclass
from .expression import WIDTH, flat, lift, string_literal
from .names import clean
from .statement import Assign, render

Entry = tuple[str, str, Shape | None]


@dataclass(frozen=True)
class Repeated:
    """The last of a model's inputs or outputs: the tensors of several layers, layer by layer. start: the index of the
    first; parts: the name of each tensor of a layer; name: their common name."""

    start: int
    layers: int
    parts: tuple[str, ...]
    name: str


def uniform(arguments: Sequence[Argument], width: int) -> bool:
    """Whether the tensors of every layer have the types of the first layer's."""
    return all(type_text(a.type) == type_text(arguments[i % width].type) for i, a in enumerate(arguments))


# -- data -------------------------------------------------------------------------------------------------------------


def signature_data(model: Model, given: Repeated | None = None, made: Repeated | None = None) -> list[str]:
    """INPUTS and OUTPUTS: the name, dtype and shape of each. STATE: the outputs that become inputs of the next call."""
    graph = model.graph
    inputs = [_entry(name, a.type) for name, a in zip(model.inputs, graph.inputs, strict=True)]
    outputs = [_entry(name, a.type) for name, a in zip(model.outputs, graph.outputs, strict=True)]
    lines = [*_listed("INPUTS", inputs, given), *_listed("OUTPUTS", outputs, made)]
    states = tuple(
        (inputs[s.input][0], outputs[s.output][0], "replace" if s.axis is None else "append", s.axis)
        for s in model.states
    )
    if not states:
        return lines
    if given is not None and made is not None:
        pairs = [(s.input - given.start, s.output - made.start) for s in model.states]
        kinds = {s[2:] for s in states}
        if len(kinds) == 1 and pairs == [(n, n) for n in range(len(inputs) - given.start)]:
            row = f"(i[0], o[0], {flat(lift(states[0][2]))}, {flat(lift(states[0][3]))})"
            pairing = f"for i, o in zip(INPUTS[{given.start}:], OUTPUTS[{made.start}:])"
            return [*lines, *_tuple_of("STATE =", row, [pairing])]
    return [*lines, *render([Assign(("STATE",), lift(states))], 4)]


def _listed(name: str, entries: Sequence[Entry], group: Repeated | None) -> list[str]:
    """The assignment of the entries, with those of the layers as a comprehension."""
    if group is None:
        return render([Assign((name,), lift(tuple(entries)))], 4)
    first, rest = tuple(entries[: group.start]), entries[group.start :]
    lines = render([Assign((name,), lift(first))], 4) if first else []
    head = f"{name} +=" if first else f"{name} ="
    width = len(group.parts)
    names = [e[0] for e in rest]
    kinds = [flat(lift(e[1])) + ", " + flat(lift(e[2])) for e in rest[:width]]
    if len(set(kinds)) > 1:
        return render([Assign((name,), lift(tuple(entries)))], 4)
    label = group.name.upper()
    said_of = _names(label, names, width)
    if label not in _TAKEN and said_of is not None and all(len(line) <= WIDTH for line in said_of):
        return [*said_of, *lines, *_tuple_of(head, f"(n, {kinds[0]})", [f"for n in {label}"])]
    template = numbered(names, width)
    if template is None:
        if any(re.search(r"\s", n) for n in names) or "" in names:
            return render([Assign((name,), lift(tuple(entries)))], 4)
        loops = [f"for n in {_tuple(names)}"]
        if len(loops[0]) > WIDTH - 8:
            loops = [f"for n in {string_literal(' '.join(names))}.split()"]
        if len(loops[0]) > WIDTH - 8:
            rows = textwrap.wrap(" ".join(names), WIDTH - 15, break_long_words=False, break_on_hyphens=False)
            texts = [string_literal(row + " ") for row in rows[:-1]] + [string_literal(rows[-1])]
            loops = ["for n in (", *("    " + text for text in texts), ").split()"]
        return [*lines, *_tuple_of(head, f"(n, {kinds[0]})", loops)]
    text, loops = _loops(template, len(names) // width)
    return [*lines, *_tuple_of(head, f"({text}, {kinds[0]})", loops)]


_TAKEN = ("WEIGHTS", "INPUTS", "OUTPUTS", "STATE", "EMBEDDED")


def _loops(template: tuple[str, int, int, list[str]], layers: int) -> tuple[str, list[str]]:
    """An f-string and the loops of its comprehension."""
    text, start, step, parts = template
    bounds = [start, start + step * layers, step] if step > 1 else [start, start + layers]
    loops = [f"for i in range({', '.join(map(str, bounds if any(bounds[:1]) or step > 1 else bounds[1:]))})"]
    if parts:
        loops.append(f"for part in {_tuple(parts)}")
    return text, loops


def _names(label: str, names: Sequence[str], width: int) -> list[str] | None:
    """A list of all names, as a comprehension; the first layer's are separate if the exporter did not number them."""
    template, first = numbered(names, width), []
    if template is None and len(names) > 2 * width:
        template, first = numbered(names[width:], width), list(names[:width])
    if template is None:
        return None
    text, loops = _loops(template, (len(names) - len(first)) // width)
    made = f"[{' '.join([text, *loops])}]"
    if not first:
        return [f"    {label} = {made}"]
    return [f"    {label} = {flat(lift(first))}", f"    {label} += {made}"]


def _tuple(words: Sequence[str]) -> str:
    return flat(lift(tuple(words)))


def _tuple_of(head: str, item: str, loops: Sequence[str]) -> list[str]:
    """`head` and a tuple comprehension: on one line, or its content on one line, or each part on its own."""
    whole = " ".join([item, *loops])
    if len(head) + len(whole) + 12 <= WIDTH and len(loops) < 3:
        return [f"    {head} tuple({whole})"]
    inside = [whole] if len(whole) + 8 <= WIDTH and len(loops) < 3 else [item, *loops]
    return [f"    {head} tuple(", *(f"        {line}" for line in inside), "    )"]


def numbered(names: Sequence[str], width: int) -> tuple[str, int, int, list[str]] | None:
    """(an f-string of `i` and `part`, the first number, the step, the parts) from which the names follow, `width` per
    number; None if the names have no such form."""
    split = [re.split(r"(\d+)", n) for n in names]
    if len({len(s) for s in split[::width]}) > 1:
        return None
    places = [k for k in range(1, len(split[0]), 2) if split[0][k] != split[width][k]]
    if len(places) != 1:
        return None
    place = places[0]
    before = ["".join(s[:place]) for s in split[:width]]
    after = ["".join(s[place + 1 :]) for s in split[:width]]
    start, step = int(split[0][place]), int(split[width][place]) - int(split[0][place])
    for n, name in enumerate(names):
        if step < 1 or name != f"{before[n % width]}{start + n // width * step}{after[n % width]}":
            return None
    if any(c in "".join(before + after) for c in "{}\\\"'\n"):
        return None
    if width == 1:
        return f'f"{before[0]}{{i}}{after[0]}"', start, step, []
    if len(set(before)) == 1:
        head, tail, parts = _split(after)
        return f'f"{before[0]}{{i}}{head}{{part}}{tail}"', start, step, parts
    if len(set(after)) == 1:
        head, tail, parts = _split(before)
        return f'f"{head}{{part}}{tail}{{i}}{after[0]}"', start, step, parts
    return None


def _split(words: Sequence[str]) -> tuple[str, str, list[str]]:
    """The common prefix and suffix of the names, in whole words of letters, and what is between them."""
    pieces = [re.findall(r"[A-Za-z]+|[^A-Za-z]+", w) for w in words]
    lead, least = 0, min(map(len, pieces))
    while lead < least - 1 and len({p[lead] for p in pieces}) == 1:
        lead += 1
    trail = 0
    while trail < least - 1 - lead and len({p[-1 - trail] for p in pieces}) == 1:
        trail += 1
    cut = [p[lead : len(p) - trail] for p in pieces]
    return "".join(pieces[0][:lead]), "".join(pieces[0][len(pieces[0]) - trail :]), ["".join(c) for c in cut]


def _entry(name: str, t: Type) -> Entry:
    """An entry of INPUTS or OUTPUTS."""
    if not isinstance(t, TensorType | ScalarType | ShapeType):
        return clean(name), type_text(t), None
    t = as_tensor(t)
    return clean(name), t.dtype.name, t.shape


def type_text(t: Type) -> str:
    return clean(describe(t))
