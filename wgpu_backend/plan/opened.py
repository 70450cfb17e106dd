"""Plans with open sizes to be saved: which one serves all sizes, and how a file describes them (open_ports.py)."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from emberlet.backend.axes import ATTEMPTS, Axes, argument_names, named, of_model
from emberlet.backend.opening import Opening
from emberlet.errors import EmberletError, ModelError, ShapeError
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

    def attempt(axes: Axes) -> tuple[Any, str, bool]:
        return _attempted(axes, opened, numbers, shapes, lambda opening: plan(model, examples, backend, opening))

    planned, problem, refused = attempt(axes)
    if planned:
        return planned
    if refused:
        plan(model, examples, backend)  # raises the model's own error where it refuses the examples, too
    above = _above_0(axes, opened, numbers, lambda axes: bool(attempt(axes)[0]))
    raise ModelError(f"no single plan serves all of these sizes: {problem}{above}")


def _attempted(
    axes: Axes, opened: list[str], numbers: dict[str, int], shapes: list[Any], plan: Callable[[Opening], Any]
) -> tuple[Any, str, bool]:
    """(the first plan that serves all sizes, or None; else why the first attempt failed, as a text; whether the model
    refused the sizes in all attempts)."""
    problem = ""
    refused = True
    for attempt in ATTEMPTS:
        try:
            planned = plan(Opening(axes, opened, numbers, attempt, shapes, []))
        except SizeNeeded as error:
            raise ModelError(f"{' and '.join(error.symbols)} cannot be left open: {error}") from error
        except ShapeError as error:
            problem = problem or str(error)
            continue
        refused = False
        found = _unserved(next(iter(planned[-1].values()))[0].counts, axes)
        if found is None:
            return planned, "", False
        problem = problem or found
    return None, problem, refused


def _above_0(axes: Axes, opened: list[str], numbers: dict[str, int], serves: Callable[[Axes], bool]) -> str:
    """What to do where a plan serves all sizes once some ranges leave 0 out, as the end of a message: the fewest
    ranges, one or all. serves: whether there is a plan for such Axes."""
    at_0 = [name for name in opened if axes.limits[name][0] == 0 and numbers[name]]
    for names in [[name] for name in at_0] + ([at_0] if len(at_0) > 1 else []):
        limits = dict(axes.limits)
        for name in names:
            _, highest, capacity, step = limits[name]
            limits[name] = (step, highest, capacity, step)
        raised = copy.copy(axes)
        raised.limits = limits
        try:
            if serves(raised):
                ranges = " and ".join(_range_of(name, limits[name]) for name in names)
                return f"; {' and '.join(names)} cannot be 0 here: take {ranges}"
        except EmberletError:
            continue
    return ""


def _range_of(name: str, limits: tuple[int, int, int | None, int]) -> str:
    lowest, highest, _, step = limits
    return f"{name} from {lowest} to {highest}" + (f" in steps of {step}" if step > 1 else "")


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
