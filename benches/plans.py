"""Every function of emberlet on NumPy, compiled and not: no plan may be slower than the functions themselves.

Each function is called alone, on the arguments of the first of ARGUMENTS that it takes, at three sizes. Both ways run
in turns, and the best of the turns counts. A ratio is the plan's time divided by the uncompiled one. What has no plan
(it asks for values) runs uncompiled, and what returns a view of its argument is left out, since a plan has to copy it.
Writes benches/results/plans.md; a pattern limits the functions and prints the
ratios instead.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SIDES = (8, 128, 1024)
SLOWER = 1.1  # above, a plan counts as slower: the noise of the machine
LOOKED_UP = 1.5e-6  # seconds more that are none: a compiled function looks up the shapes
TURNS = 5
MORE = 20  # turns where the plan seems slower, which is often other work of the machine
LEAST = 5e-4  # seconds of a turn
REST = 0.2  # seconds before such a turn of a millisecond: BLAS's threads keep a core after the other way's product
MOST = 0.02  # seconds: beyond a hundredth of it, the next size is left out
Arguments = Callable[[int], list[Any]]

_DRAW = np.random.default_rng(0)


def _x(n: int, *shape: int) -> Any:
    return _DRAW.random(shape or (n, n), np.float32) + np.float32(0.1)


def _ints(n: int, *shape: int) -> Any:
    return _DRAW.integers(0, n, shape or (n, n))


def _mask(n: int) -> Any:
    return _DRAW.random((n, n)) > 0.5


# The first that a function takes and computes, and none of whose tensors it reads on the host.
ARGUMENTS: tuple[Arguments, ...] = (
    lambda n: [_x(n)],
    lambda n: [_x(n), _x(n)],
    lambda n: [_x(n), _x(n), _x(n)],
    lambda n: [_mask(n), _x(n), _x(n)],
    lambda n: [_mask(n)],
    lambda n: [_mask(n), _mask(n)],
    lambda n: [_ints(n), _ints(n)],
    lambda n: [_x(n), 0],
    lambda n: [_x(n), 1.5],
    lambda n: [_x(n), (n, n)],
    lambda n: [_x(n), _ints(n, n)],
    lambda n: [_x(n), _ints(n)],
    lambda n: [_ints(n, n), _x(n)],
    lambda n: [_x(n), 0, _ints(n)],
    lambda n: [_x(n), 0, _ints(n), _x(n)],
    lambda n: [[_x(n), _x(n)]],
    lambda n: [_x(n), _x(n, n)],
    lambda n: [_x(n), _x(n), _x(n, n)],
    lambda n: [_x(n), 0, 1],
    lambda n: [_x(n), 0, 0, n // 2],
)
POOLS = ("max_pool2d", "avg_pool2d", "lp_pool2d", "max_pool", "avg_pool")
IMAGES: Mapping[str, Arguments] = {
    **{name: lambda n: [_x(n, 1, 4, n, n), 2] for name in POOLS},
    "conv": lambda n: [_x(n, 1, 4, n, n), _x(n, 8, 4, 3, 3)],
    "conv2d": lambda n: [_x(n, 1, 4, n, n), _x(n, 8, 4, 3, 3)],
    "conv_transpose2d": lambda n: [_x(n, 1, 4, n, n), _x(n, 4, 8, 3, 3)],
    "interpolate": lambda n: [_x(n, 1, 4, n, n), (2 * n, n)],
    "dot_product_attention": lambda n: [_x(n, 1, 4, n, 16), _x(n, 1, 4, n, 16), _x(n, 1, 4, n, 16)],
    "instance_norm": lambda n: [_x(n, 1, 4, n, n)],
    "pixel_shuffle": lambda n: [_x(n, 1, 4, n, n), 2],
    "leaky_relu": lambda n: [_x(n) - 0.5],
}  # fmt: skip


def functions() -> Iterator[str]:
    """The names of all functions."""
    from emberlet.names import FAMILIES

    for methods, others in FAMILIES.values():
        yield from methods.split()
        yield from others.split()


def prepared(name: str, arguments: Arguments, n: int) -> tuple[Callable[..., Any], Any, list[Any]] | None:
    """(the function of its tensors, the same compiled, the tensors); None if it does not take these arguments, or has
    no plan of NumPy calls."""
    import emberlet
    from emberlet import functional as F
    from emberlet.errors import EmberletError
    from emberlet.host.numpy_backend.compile import compile
    from emberlet.tensor import Tensor

    function = getattr(F, name)
    given = arguments(n)
    listed = isinstance(given[0], list)
    arrays = [a for a in (given[0] if listed else given) if isinstance(a, np.ndarray)]
    tensors = [emberlet.asarray(a, backend="numpy") for a in arrays]

    def call(*xs: Any) -> Any:
        rest = iter(xs)
        if listed:
            return function(list(xs))
        return function(*[next(rest) if isinstance(a, np.ndarray) else a for a in given])

    try:
        out = call(*tensors)
        compiled = compile(call, *tensors)
        compiled(*tensors)
    except (EmberletError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        return None
    if compiled.cut is not None or not isinstance(out, (Tensor, list, tuple)) or shares(out, arrays):
        return None
    return call, compiled, tensors


def shares(out: Any, arrays: list[Any]) -> bool:
    """Whether a result is a view of an argument, which a plan has to copy."""
    parts = out if isinstance(out, (list, tuple)) else [out]
    return any(np.may_share_memory(np.asarray(part), a) for part in parts for a in arrays)


def best(call: Callable[[], Any], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def ratio(name: str, arguments: Arguments, n: int) -> tuple[float, float] | None:
    """(seconds of the plan divided by those of the function, seconds of the function)."""
    found = prepared(name, arguments, n)
    if found is None:
        return None
    call, compiled, tensors = found
    ways = (lambda: call(*tensors), lambda: compiled(*tensors))
    first = min(best(ways[0], 1) for _ in range(2))
    times = max(1, math.ceil(LEAST / max(first, 1e-7)))
    seconds = [math.inf, math.inf]
    for turn in range(MORE):
        if turn >= TURNS and seconds[1] <= SLOWER * seconds[0]:
            break
        for i, way in enumerate(ways):
            if turn >= TURNS and seconds[0] > 1e-3:
                time.sleep(REST)
            seconds[i] = min(seconds[i], best(way, times))
    return seconds[1] / seconds[0], seconds[0]


def measured(name: str) -> dict[int, tuple[float, float]]:
    """`ratio` at the sizes at which the function takes less than MOST."""
    out: dict[int, tuple[float, float]] = {}
    known = (IMAGES[name],) if name in IMAGES else ARGUMENTS
    taken = next((a for a in known if prepared(name, a, SIDES[0]) is not None), None)
    for n in SIDES if taken is not None else ():
        if out and list(out.values())[-1][1] > MOST / 100:
            break
        found = ratio(name, taken, n)
        if found is not None:
            out[n] = found
    return out


def report(found: Mapping[str, dict[int, tuple[float, float]]], none: list[str]) -> str:
    lines = [
        "# Compiled and uncompiled functions on NumPy", "",
        "Written by `python3 dev.py bench plans`. Each function alone, on arrays of n × n: the time of its plan over",
        f"that of the function itself. The machine was shared: its load was {os.getloadavg()[0]:.0f} on "
        f"{os.cpu_count()} cores.", "",
        "| n | functions | geometric mean | median | more than a tenth slower |", "|---:|---:|---:|---:|---|",
    ]  # fmt: skip
    for n in SIDES:
        ratios = {name: sizes[n][0] for name, sizes in found.items() if n in sizes}
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        slower = {name: r for name, r in ratios.items() if r > SLOWER and (r - 1) * found[name][n][1] > LOOKED_UP}
        slow = sorted((r, name) for name, r in slower.items())[::-1]
        said = ", ".join(f"`{name}` {r:.2f}" for r, name in slow) or "none"
        lines.append(f"| {n} | {len(ratios)} | {mean:.2f} | {sorted(ratios.values())[len(ratios) // 2]:.2f} | {said} |")
    lines += ["", f"Without a plan, or with other arguments than these: {len(none)}.", ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", help="a regular expression for the names of functions")
    pattern = parser.parse_args().pattern
    found: dict[str, dict[int, tuple[float, float]]] = {}
    none: list[str] = []
    for name in sorted(set(functions())):
        if pattern and not re.fullmatch(pattern, name):
            continue
        if name.endswith("_async"):
            continue
        sizes = measured(name)
        if sizes:
            found[name] = sizes
        else:
            none.append(name)
        if pattern:
            print(name, *(f"{n}: {r:.2f} of {s * 1e6:.1f} µs" for n, (r, s) in sizes.items()), flush=True)
    if not pattern:
        text = report(found, none)
        (Path(__file__).parent / "results" / "plans.md").write_text(text, encoding="utf-8")
        print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
