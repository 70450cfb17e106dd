"""State: inputs that return as outputs, which a caller passes from one call to the next.

Found by how the graph computes an output (an operator that takes and returns a state, a concatenation to an input), or
by name and shape. A wrong pair is worse than none, so unclear ones are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from emberlet.errors import ModelError

from .ir.argument import Argument
from .ir.graph import Graph, Model, Node, State
from .ir.problem import quoted
from .ir.types import Dim, Shape, TensorType
from .ops.base import axis_of
from .ops.indexing import Gather
from .ops.joining import Concat, Split
from .ops.movement import Identity, Reshape, Squeeze, Transpose, Unsqueeze
from .ops.slicing import Slice

MOVES = (Identity, Reshape, Squeeze, Unsqueeze, Transpose, Slice, Split, Gather)
WORDS = {
    "past", "present", "cache", "kv", "key", "value", "k", "v", "state", "states", "hidden", "cell", "h", "c", "mem",
    "memory", "buffer", "context", "hist", "history", "carry", "hx", "cx",
}  # fmt: skip
"""Words, one of which is in the name of every state."""
BEFORE = {"past", "in", "input", "prev", "previous", "old", "init", "initial", "last"}
AFTER = {"present", "out", "output", "next", "new", "updated", "n", "last", "final", "current", "curr"}


def find(model: Model) -> tuple[State, ...]:
    """The states of a model, before any pass, in the order of its inputs."""
    finder = _Finder(model.graph)
    pairs = [*finder.computed()]
    taken = {(s.input, "in") for s in pairs} | {(s.output, "out") for s in pairs}
    for s in finder.named(model):
        if (s.input, "in") not in taken and (s.output, "out") not in taken:
            pairs.append(s)
    if len(pairs) >= len(model.graph.inputs) or len(pairs) >= len(model.graph.outputs):
        return ()  # a step must have other inputs and other outputs
    return tuple(sorted(pairs, key=lambda s: s.input))


def given(model: Model, words: Iterable[str], found: Sequence[State]) -> tuple[State, ...]:
    """The states that were found, amended by `words`: INPUT=OUTPUT, INPUT=OUTPUT:AXIS, or "none" to keep only the given
    ones.

    Raises ModelError for unknown names and shapes that do not fit.
    """
    states = {s.input: s for s in found}
    words = list(words)
    if "none" in words:
        states.clear()
    for word in words:
        if word == "none":
            continue
        before, equals, after = word.partition("=")
        axis: int | None = None
        if equals and after not in model.outputs and re.fullmatch(r".*:-?\d+", after):
            after, _, number = after.rpartition(":")
            axis = int(number)
        if not equals:
            raise ModelError(f"state {quoted(word)}: expected INPUT=OUTPUT, INPUT=OUTPUT:AXIS or none")
        i, o = _place(before, model.inputs, "input", word), _place(after, model.outputs, "output", word)
        state = State(i, o, _axis(model.graph.inputs[i], model.graph.outputs[o], axis, word))
        states = {k: s for k, s in states.items() if s.output != o}
        states[i] = state
    return tuple(states[i] for i in sorted(states))


def _place(name: str, names: Sequence[str], what: str, word: str) -> int:
    if name in names:
        return names.index(name)
    from difflib import get_close_matches

    near = get_close_matches(name, names, 1)
    hint = f" (did you mean {quoted(near[0])}?)" if near else ""
    has = ", ".join(map(quoted, names)) or "none"
    raise ModelError(f"state {quoted(word)}: there is no {what} {quoted(name)}{hint}; the model has {has}")


def _axis(a: Argument, b: Argument, axis: int | None, word: str) -> int | None:
    """The axis of a state given by the user. Raises ModelError if the two types do not fit."""
    if not isinstance(a.type, TensorType) or not isinstance(b.type, TensorType):
        raise ModelError(f"state {quoted(word)}: only tensors can be states")
    if a.type.dtype is not b.type.dtype:
        raise ModelError(f"state {quoted(word)}: the input is {a.type.dtype}, the output {b.type.dtype}")
    before, after = a.type.shape, b.type.shape
    if before is None or after is None:
        return axis
    rank = len(before)
    if rank != len(after):
        raise ModelError(f"state {quoted(word)}: the input has rank {rank}, the output {len(after)}")
    pairs = list(zip(before, after, strict=True))
    differ = [k for k, (d, e) in enumerate(pairs) if d is not None and e is not None and d != e]
    if axis is None and len(differ) == 1:
        axis = differ[0]
    if axis is not None:
        if not -rank <= axis < rank:
            raise ModelError(f"state {quoted(word)}: axis {axis} is outside [-{rank}, {rank})")
        axis %= rank
        if isinstance(before[axis], int):
            always = f"the input has {before[axis]} along axis {axis}, always"
            raise ModelError(f"state {quoted(word)}: {always}, and cannot grow there")
    for k in differ:
        d, e = pairs[k]
        if k != axis and isinstance(d, int) and isinstance(e, int):
            raise ModelError(f"state {quoted(word)}: the input has {d} along axis {k}, the output {e}")
    return axis


class _Finder:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers: dict[str, tuple[Node[Any], int]] = {}
        for node in graph.nodes:
            for k, o in enumerate(node.outputs):
                if o.present:
                    self.makers[o.name] = (node, k)
        self.inputs = {a.name: i for i, a in enumerate(graph.inputs) if isinstance(a.type, TensorType)}

    # -- by how it is computed ----------------------------------------------------------------------------------------

    def computed(self) -> list[State]:
        """States proved by the graph itself."""
        found = []
        for o, a in enumerate(self.graph.outputs):
            state = self._appended(o, a) or self._replaced(o, a)
            if state is not None:
                found.append(state)
        inputs = [s.input for s in found]
        return [s for s in found if inputs.count(s.input) == 1]

    def _appended(self, o: int, a: Argument) -> State | None:
        """The output is an input with elements appended, and other outputs depend on both."""
        node, k = self._maker(a)
        carried: list[tuple[int, int]] = []
        if isinstance(node, Concat) and len(node.inputs) > 1:
            rank = len(shape) if (shape := _shape(a)) is not None else 0
            if rank:
                carried = [(0, axis_of(node.config.axis, rank))]
        elif node is not None:
            carried = [(i, axis) for i, out, axis in node.carries if out == k and axis is not None and node.has(i)]
        for i, axis in carried:
            assert node is not None
            source = self._input(node.inputs[i])
            if source is None or not _grows(self.graph.inputs[source], a, axis):
                continue
            if isinstance(node, Concat):
                joined = _shape(self.graph.inputs[source])
                if joined is None or len(joined) < 3 or not self._grows_by_another(node, source, o):
                    continue
            return State(source, o, axis)
        return None

    def _grows_by_another(self, node: Node[Any], source: int, o: int) -> bool:
        """Whether what a concatenation appends depends on another input, and another output depends on it."""
        behind = {i for x in node.inputs[1:] for i in self._sources(x)}
        if not behind - {source}:
            return False
        joined = {x.name for x in node.outputs}
        return any(joined & self._values(x) for k, x in enumerate(self.graph.outputs) if k != o)

    def _replaced(self, o: int, a: Argument) -> State | None:
        """The output is the last state of operators whose initial state is an input."""
        sources: set[int | None] = set()
        for node, k in self._leaves(a):
            carried = [i for i, out, axis in node.carries if out == k and axis is None and node.has(i)]
            if not carried:
                return None
            for i in carried:
                found = self._roots(node.inputs[i])
                sources |= found
        if len(sources) != 1:
            return None
        (source,) = sources
        if source is None or not _equal(self.graph.inputs[source], a):
            return None
        return State(source, o, None)

    def _maker(self, a: Argument) -> tuple[Node[Any] | None, int]:
        """(the node that computes a value, skipping those that return their input; which of its outputs it is)."""
        while a.name in self.makers:
            node, k = self.makers[a.name]
            if not _hands_on(node):
                return node, k
            a = node.inputs[0]
        return None, 0

    def _input(self, a: Argument) -> int | None:
        """The index of the input that a value equals, skipping nodes that return their input."""
        while a.name in self.makers and _hands_on(self.makers[a.name][0]):
            a = self.makers[a.name][0].inputs[0]
        return self.inputs.get(a.name)

    def _leaves(self, a: Argument) -> Iterator[tuple[Node[Any], int]]:
        """The operators that compute a value's elements."""
        waiting, seen = [a], set()
        while waiting:
            a = waiting.pop()
            if a.name in seen or a.value is not None:
                continue
            seen.add(a.name)
            if a.name not in self.makers:
                continue
            node, k = self.makers[a.name]
            if isinstance(node, MOVES):
                waiting.append(node.inputs[0])
            elif isinstance(node, Concat):
                waiting += node.inputs
            else:
                yield node, k

    def _roots(self, a: Argument) -> set[int | None]:
        """The inputs whose elements a value contains; None if it contains anything else."""
        while a.name in self.makers:
            node, _ = self.makers[a.name]
            if not isinstance(node, MOVES):
                return {None}
            a = node.inputs[0]
        return {self.inputs.get(a.name)}

    # -- by names and shapes ------------------------------------------------------------------------------------------

    def named(self, model: Model) -> list[State]:
        """States by name and shape, each depending on its input."""
        ins = [(i, _forms(name, BEFORE, "0")) for i, name in enumerate(model.inputs)]
        outs = [(o, _forms(name, AFTER, "n")) for o, name in enumerate(model.outputs)]
        pairs = [(i, o) for i, before in ins for o, after in outs if before & after]
        found = []
        for i, o in pairs:
            if sum(i == p[0] for p in pairs) > 1 or sum(o == p[1] for p in pairs) > 1:
                continue
            words = set(_words(model.inputs[i])) | set(_words(model.outputs[o]))
            a, b = self.graph.inputs[i], self.graph.outputs[o]
            if not words & WORDS or i not in self._sources(b):
                continue
            axis = _growing_axis(a, b) if {"past", "present", "cache", "kv"} & words else None
            if axis is not None:
                found.append(State(i, o, axis))
            elif _equal(a, b) or (_alike(a, b) and not words & {"past", "present", "cache", "kv"}):
                found.append(State(i, o, None))
        return found

    # -- what depends on what -----------------------------------------------------------------------------------------

    def _values(self, a: Argument) -> set[str]:
        """The names of all values that a value depends on, and its own."""
        waiting, seen = [a], set()
        while waiting:
            name = waiting.pop().name
            if name in seen:
                continue
            seen.add(name)
            if name in self.makers:
                waiting += [x for x in self.makers[name][0].uses() if x.present and x.value is None]
        return seen

    def _sources(self, a: Argument) -> set[int]:
        """The inputs that a value depends on."""
        return {self.inputs[name] for name in self._values(a) if name in self.inputs}


def _hands_on(node: Node[Any]) -> bool:
    """Whether a node returns its only input unchanged."""
    return isinstance(node, Identity) or (isinstance(node, Concat) and len(node.inputs) == 1)


def _shape(a: Argument) -> Shape | None:
    """A tensor's shape. PyTorch's exporter calls a size of `y` of which it knows nothing "Concaty_dim_0"."""
    if not isinstance(a.type, TensorType) or a.type.shape is None:
        return None
    return tuple(
        None if isinstance(d, str) and d.endswith(f"{a.name}_dim_{k}") else d for k, d in enumerate(a.type.shape)
    )


def _same_kind(a: Argument, b: Argument) -> bool:
    """Whether two tensors have the same dtype and the same known rank."""
    x, y = a.type, b.type
    if not isinstance(x, TensorType) or not isinstance(y, TensorType) or x.dtype is not y.dtype:
        return False
    return x.shape is not None and y.shape is not None and len(x.shape) == len(y.shape)


def _may_equal(d: Dim, e: Dim) -> bool:
    return d is None or e is None or d == e or isinstance(d, str) != isinstance(e, str)


def _grows(a: Argument, b: Argument, axis: int) -> bool:
    """Whether the second tensor may be the first one extended along this axis, whose size is open."""
    x, y = _shape(a), _shape(b)
    if not _same_kind(a, b) or x is None or y is None:
        return False
    if isinstance(x[axis], int) or isinstance(y[axis], int):
        return False
    return all(_may_equal(d, e) for k, (d, e) in enumerate(zip(x, y, strict=True)) if k != axis)


def _growing_axis(a: Argument, b: Argument) -> int | None:
    """The only axis in which two shapes differ, with names on both sides and equal sizes elsewhere; else None."""
    x, y = _shape(a), _shape(b)
    if not _same_kind(a, b) or x is None or y is None or None in x or None in y:
        return None
    differ = [k for k, (d, e) in enumerate(zip(x, y, strict=True)) if d != e]
    if len(differ) != 1 or not isinstance(x[differ[0]], str) or not isinstance(y[differ[0]], str):
        return None
    return differ[0]


def _equal(a: Argument, b: Argument) -> bool:
    """Whether two tensors have the same shape, with no size open on both sides."""
    x, y = _shape(a), _shape(b)
    if not _same_kind(a, b) or x is None or y is None:
        return False
    return all(d == e or (d is None) != (e is None) for d, e in zip(x, y, strict=True)) and x.count(None) <= 1


def _alike(a: Argument, b: Argument) -> bool:
    """Whether two tensors may have the same shape."""
    x, y = _shape(a), _shape(b)
    return _same_kind(a, b) and x is not None and y is not None and all(map(_may_equal, x, y))


def _words(name: str) -> list[str]:
    """ "past_key_values.0.key" as ["past", "key", "values", "0", "key"]; "stateN" as ["state", "n"]."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name.rpartition("/")[2])
    return [p.lower() for p in parts]


def _forms(name: str, drop: set[str], end: str) -> set[tuple[str, ...]]:
    """The possible names of a state without words for before or after: "h0" and "hn" are both "h"."""
    words = _words(re.sub(r"(past|present)_key_values?", "", name))
    plain = tuple(w for w in words if w not in drop)
    forms = {plain}
    if plain and plain[-1] == end:
        forms.add(plain[:-1])
    if plain and len(plain[-1]) > 1 and plain[-1].endswith(end):
        forms.add((*plain[:-1], plain[-1][:-1]))
    forms.discard(())
    return forms
