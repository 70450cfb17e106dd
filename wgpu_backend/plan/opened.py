"""Plans with open sizes to be saved: which one serves all sizes, and how a file describes them (open_ports.py)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from emberlet.backend.axes import ATTEMPTS, Axes, argument_names, named, of_model
from emberlet.backend.opening import Opening
from emberlet.errors import ModelError, ShapeError
from emberlet.sizes.polynomial import Polynomial
from emberlet.sizes.size import SizeNeeded
from emberlet.tensor import Tensor


def planned_for(
    model: Any,
    examples: Sequence[Tensor],
    backend: Any,
    dims: dict[str, Any] | None,
    plan: Callable[..., Any],
    axes: Axes | None = None,
) -> Any:
    """`plan`, such as `writer.planned`. Where `dims` leaves axes open, plans made for several typical sizes are tried,
    and the first that serves all of them is taken. axes: those of the arguments, if not as `dims` says."""
    if not dims:
        return plan(model, examples, backend)
    shapes = [x.shape if isinstance(x, Tensor) else None for x in examples]
    if axes is None:
        axes = of_model(model, argument_names(model, len(examples)), shapes, dims)
    numbers = axes.numbers(shapes)
    opened = named(dims)
    without = [name for name in opened if name not in axes.limits or axes.limits[name][2] is None]
    if without:
        raise ModelError(f"give {without[0]!r} a limit, such as {without[0]}=1..512: a plan reserves memory for it")
    if numbers is None:
        raise ModelError("the shapes of the examples do not fit the named axes of the model's inputs")
    problem = ""
    refused = True
    for attempt in ATTEMPTS:
        opening = Opening(axes, opened, numbers, attempt, shapes, [])
        try:
            planned = plan(model, examples, backend, opening)
        except SizeNeeded as error:
            raise ModelError(f"{' and '.join(error.symbols)} cannot be left open: {error}") from error
        except ShapeError as error:
            problem = problem or str(error)
            continue
        refused = False
        found = _unserved(next(iter(planned[-1].values()))[0].counts, axes)
        if found is None:
            return planned
        problem = problem or found
    if refused:
        plan(model, examples, backend)  # raises the model's own error where it refuses the examples, too
    raise ModelError(f"no single plan serves all of these sizes: {problem}")


def _unserved(counts: Any, axes: Any) -> str | None:
    """Why the plan does not serve some sizes of its ranges, as a text; None if it does. Tries all values of a single
    symbol, but only the extremes of several."""
    ranges = []
    for name, low, high in counts.symbols:
        step = axes.limits[name][3] if name in axes.limits else 1
        ranges.append(range(low, min(high, low + (1 << 16) * step) + 1, step))
    tried = itertools.product(*((r[0], r[-1]) for r in ranges)) if len(ranges) > 1 else ((n,) for n in ranges[0])
    for sizes in tried:
        found = counts.refusal(sizes, counts.values(sizes))
        if found:
            return str(found)
    return None


def number_of(n: Any) -> Any:
    """A number as it is; a Size or another Polynomial as the file's list of terms (open_ports.py)."""
    return [[n.terms[atoms], *atoms] for atoms in n.terms] if isinstance(n, Polynomial) else n


def sizes_of(counts: Any) -> dict[str, Any]:
    """The file's entry "sizes" (open_ports.py)."""
    return {
        "symbols": [list(symbol) for symbol in counts.symbols],
        "atoms": [a if isinstance(a, int) else [a[0], number_of(a[1]), number_of(a[2])] for a in counts.atoms],
        "block": [number_of(n) for n in counts.block],
        "guards": [[number_of(n), *answer, *([why] if why else [])] for n, *answer, why in counts.guards],
    }
