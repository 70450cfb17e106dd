"""The sizes of the inputs' unknown dimensions: those given by `--dim`, and sizes with which a model can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TypeVar

from ...errors import EmberletError, ShapeError
from .model import Dims, Input, Loaded
from .options import Named

Sizes = dict[str, int]
"""Size by the name of a dimension, or by "input:axis"."""

MOST = 1 << 24
"""Elements of an input that is tried."""

TRIED = (1, 2, 3, 4, 8, 16, 32, 64, 128, 224, 256, 512, 1024, 2048, 4096, 16000)
T = TypeVar("T")


def sizes(given: Sequence[str], loaded: Loaded) -> Sizes:
    """The NAME=N and INPUT:AXIS=N pairs of --dim. Raises EmberletError for a dimension that no input has."""
    found: Sizes = {}
    known = unknown(loaded.inputs)
    for pair in given:
        name, _, size = pair.rpartition("=")
        if not size.isdecimal() or not name:
            raise _refusal(pair, "expected NAME=NUMBER")
        key = _place(name, loaded.inputs) if ":" in name and name not in known else name
        if key not in known:
            raise _refusal(pair, f"no input has a dimension {name!r}; there are {', '.join(known) or 'none'}")
        found[key] = int(size)
    return found


Range = tuple[int, int] | range
"""The lowest and highest size of a dimension, or every size."""


def ranges(given: Sequence[str], loaded: Loaded) -> tuple[dict[str, Range], list[str]]:
    """(the range of each dimension that --dim leaves open, NAME=LOWEST..HIGHEST or NAME=LOWEST..HIGHEST:STEP; the other
    pairs). NAME may be INPUT:AXIS; a dimension without a name is then "input[axis]".

    Raises EmberletError for a dimension that no input has, or an invalid range.
    """
    found: dict[str, Range] = {}
    rest = []
    for pair in given:
        name, _, size = pair.rpartition("=")
        low, dots, high = size.partition("..")
        high, colon, step = high.partition(":")
        if not dots:
            rest.append(pair)
            continue
        numbers = [low, high, step] if colon else [low, high]
        if (
            not all(n.isdecimal() for n in numbers)
            or not int(low) <= int(high)
            or not int(high)
            or (colon and not int(step))
        ):
            such = name or "length"
            raise _refusal(
                pair, f"expected NAME=LOWEST..HIGHEST, such as {such}=1..512, or with a step, {such}=64..512:64"
            )
        known = {d for i in loaded.inputs for d in i.shape or () if isinstance(d, str)}
        words = {w for d in known for w in d.replace("*", "+").split(" + ")}
        if name not in words:
            key = _open_place(pair, name, loaded.inputs) if ":" in name else ""
            if not key:
                there = ", ".join(sorted(unknown(loaded.inputs))) or "none"
                raise _refusal(pair, f"no input has a dimension named {name!r}; there are {there}")
            name = key
        found[name] = range(int(low), int(high) + 1, int(step)) if colon else (int(low), int(high))
    return found, rest


def _refusal(pair: str, says: str) -> EmberletError:
    return EmberletError(Named("dim", [pair], f": {says}"))


def _open_place(pair: str, name: str, inputs: Sequence[Input]) -> str:
    """The name of the open dimension INPUT:AXIS; "" if there is no such dimension.

    Raises EmberletError if the model fixes its size, or it is a sum.
    """
    word, _, axis = name.rpartition(":")
    for i in inputs:
        if word in (i.name, i.parameter) and axis.isdecimal() and int(axis) < len(i.shape or ()):
            d = (i.shape or ())[int(axis)]
            if isinstance(d, int):
                raise _refusal(pair, f"the model fixes this dimension to {d}")
            if d and " + " in d:
                raise _refusal(pair, f"this dimension is {d}; give the ranges of its parts")
            return d or f"{i.name}[{axis}]"
    return ""


def unknown(inputs: Sequence[Input]) -> list[str]:
    """The names of the dimensions of unknown size; "input:axis" for unnamed ones."""
    found: dict[str, None] = {}
    for i in inputs:
        for axis, d in enumerate(i.shape or ()):
            if not isinstance(d, int):
                found[d or f"{i.name}:{axis}"] = None
    return list(found)


def free_names(inputs: Sequence[Input], given: Sizes) -> list[str]:
    """The names of the free dimensions: those that were not given, and are not sums of others."""
    names = unknown(inputs)
    sums = {n for n in names if " + " in n and all(p.isdecimal() or p in names for p in n.split(" + "))}
    return [n for n in names if n not in given and n not in sums]


def _place(name: str, inputs: Sequence[Input]) -> str:
    """The dimension's name, or "input:axis" with the input's name if it has none."""
    word, _, axis = name.rpartition(":")
    for i in inputs:
        if word in (i.name, i.parameter) and axis.isdecimal() and int(axis) < len(i.shape or ()):
            return (i.shape or ())[int(axis)] or f"{i.name}:{axis}"  # type: ignore[return-value]
    return name


def sized(i: Input, known: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an input with sizes for its unknown dimensions, by default 1."""
    shape: Dims = i.shape or ()
    return tuple(d if isinstance(d, int) else _size(d or f"{i.name}:{k}", known) for k, d in enumerate(shape))


def _size(name: str, known: Mapping[str, int]) -> int:
    """The size of a dimension; for "past + new", computed from its parts."""
    if name in known or " + " not in name:
        return known.get(name, 1)
    return sum(int(part) if part.isdecimal() else known.get(part, 1) for part in name.split(" + "))


def fitted(loaded: Loaded, given: Sizes, attempt: Callable[[Sizes], T]) -> tuple[T, Sizes]:
    """(the result of `attempt`, the sizes it was called with).

    Sizes not given are 1 or, if the model refuses that, the smallest of TRIED that works: for all axes but the first,
    which are batches; then for one of them; then for all, with at most MOST elements in an input. First axes, and
    inputs, that need no larger size stay 1. Raises EmberletError; if no size works, it mentions `--dim`.
    """
    names = free_names(loaded.inputs, given)
    first = {_name(i, 0) for i in loaded.inputs if i.shape}
    inner = [n for n in names if n not in first]
    plans = [dict.fromkeys(inner or names, n) for n in TRIED]
    if len(inner) > 1:
        plans += [{name: n} for name in inner for n in TRIED[1:]]
    if inner:
        plans += [dict.fromkeys(names, n) for n in TRIED[1:]]

    def is_small(i: Input, plan: Sizes) -> bool:
        return prod(sized(i, {**given, **plan})) <= max(MOST, prod(sized(i, given)))

    plans = [plan for plan in plans if all(is_small(i, plan) for i in loaded.inputs)] or plans[:1]
    problem: EmberletError | None = None
    for plan in plans if names else [{}]:
        tried = {**given, **plan}
        try:
            return _smaller(loaded.inputs, plan, given, attempt, attempt(tried))
        except EmberletError as error:
            problem = problem or error
            if not isinstance(error, ShapeError):
                break
    assert problem is not None
    if not names or not isinstance(problem, ShapeError):
        raise problem
    asked = f"{problem}; give the sizes of the unknown dimensions: "
    raise type(problem)(Named("dim", [f"{n}=…" for n in names], before=asked))


def _smaller(
    inputs: Sequence[Input], plan: Sizes, given: Sizes, attempt: Callable[[Sizes], T], result: T
) -> tuple[T, Sizes]:
    """As `fitted`, where `result` is that of a plan: with the sizes of each input, then of each first axis, 1 where the
    model takes that."""
    groups = []
    for i in inputs:
        others = unknown([other for other in inputs if other != i])
        groups.append([n for n in unknown([i]) if n not in others])
    groups += [[_name(i, 0)] for i in inputs if i.shape]
    for group in groups:
        alone = {n: 1 for n in group if plan.get(n, 1) > 1}
        if not alone or len(alone) == sum(n > 1 for n in plan.values()):
            continue
        try:
            result = attempt({**given, **plan, **alone})
        except EmberletError:
            continue
        plan = {**plan, **alone}
    return result, {**given, **plan}


def _name(i: Input, axis: int) -> str:
    d = (i.shape or ())[axis]
    return d if isinstance(d, str) else f"{i.name}:{axis}"
