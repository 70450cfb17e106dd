"""Every function of emberlet on NumPy, compiled and not: no plan may be slower than the functions themselves.

Each function is called alone, on the arguments of the first of ARGUMENTS that it takes, at three sizes; a function that
takes none of these is called as in tests/core/calls. Both ways run in turns, and the best of the turns counts. A ratio
is the plan's time divided by the uncompiled one. What has no plan (it asks for values) runs uncompiled, and what
returns a view of its argument is left out, since a plan has to copy it. Writes benches/results/plans.md; a pattern
limits the functions and prints the ratios instead.
"""

from __future__ import annotations

import argparse
import ast
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

CALLS = Path(__file__).resolve().parents[1] / "tests" / "core" / "calls"
SIDES = (8, 128, 1024)
AS_TESTED = 0  # in place of a size: the arguments of tests/core/calls
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


class _Given(ast.NodeTransformer):
    """Puts names in the place of the tensors that a call of tests/core/calls makes: X(…), P(…), V(…)."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in ("X", "P", "V"):
            self.made.append(ast.unparse(node))
            return ast.Name(f"given{len(self.made)}", ast.Load())
        return self.generic_visit(node)


@cache
def tested() -> dict[str, list[str]]:
    """The calls of tests/core/calls by the name of their function."""
    found: dict[str, list[str]] = {}
    for path in sorted(CALLS.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            found.setdefault(line.partition("(")[0], []).append(line)
    return found


@cache
def _scope() -> dict[str, Any]:
    """The names in the calls of tests/core/calls."""
    import emberlet
    from emberlet import functional as F
    from emberlet import nn

    def drawn(shape: tuple[int, ...], dtype: str, low: int, high: int, step: float) -> Any:
        return F.astype(F.asarray(_DRAW.integers(low, high, shape) * np.float32(step)), dtype)

    return {
        **{name: getattr(F, name) for name in dir(F)}, "F": F, "nn": nn, "emberlet": emberlet, "S": slice,
        "nan": math.nan, "inf": math.inf, "V": lambda values, dtype=None: F.asarray(values, dtype=dtype),
        "P": lambda *shape, dtype="float32": drawn(shape, dtype, 1, 65, 1 / 64),
        "X": lambda *shape, dtype="float32": drawn(shape, dtype, -3, 4, 1 if "int" in dtype else 0.4),
    }  # fmt: skip


def as_tested(text: str) -> tuple[Callable[..., Any], list[Any]]:
    """(the function of its tensors, the tensors) for a call of tests/core/calls."""
    scope = _scope()
    given = _Given()
    body = ast.unparse(given.visit(ast.parse(text, mode="eval")))
    names = [f"given{i + 1}" for i in range(len(given.made))]
    call: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {body}", scope)
    return call, [eval(made, scope) for made in given.made]


def on_squares(name: str, arguments: Arguments, n: int) -> tuple[Callable[..., Any], list[Any]]:
    """(the function of its tensors, the tensors) for some of ARGUMENTS."""
    import emberlet
    from emberlet import functional as F

    function = getattr(F, name)
    given = arguments(n)
    listed = isinstance(given[0], list)
    arrays = [a for a in (given[0] if listed else given) if isinstance(a, np.ndarray)]

    def call(*xs: Any) -> Any:
        rest = iter(xs)
        if listed:
            return function(list(xs))
        return function(*[next(rest) if isinstance(a, np.ndarray) else a for a in given])

    return call, [emberlet.asarray(a, backend="numpy") for a in arrays]


def prepared(call: Callable[..., Any], tensors: list[Any]) -> Callable[..., Any] | str:
    """The function compiled, or why it is not compared: one of WHY, or empty where it does not take these arguments."""
    from emberlet.errors import EmberletError
    from emberlet.host.numpy_backend.compile import compile
    from emberlet.tensor import Tensor

    try:
        out = call(*tensors)
        if not tensors or not isinstance(out, (Tensor, list, tuple)):
            return "no tensor"
        compiled = compile(call, *tensors)
        compiled(*tensors)
    except (EmberletError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        return ""
    if compiled.cut is not None:
        return "values"
    parts = out if isinstance(out, (list, tuple)) else [out]
    if not all(isinstance(part, Tensor) for part in parts):
        return "no tensor"
    return "view" if shares(parts, [np.asarray(x) for x in tensors]) else compiled


WHY = {
    "view": "They return an argument or a view of it, which a plan copies",
    "values": "They ask for values, so that they have no plan and run as they are",
    "no tensor": "They take no tensor, or return something else",
    "": "In no call of the benchmark",
}


def shares(parts: Any, arrays: list[Any]) -> bool:
    """Whether a result is a view of an argument."""
    return any(np.may_share_memory(np.asarray(part), a) for part in parts for a in arrays)


def best(call: Callable[[], Any], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def ratio(call: Callable[..., Any], compiled: Callable[..., Any], tensors: list[Any]) -> tuple[float, float]:
    """(seconds of the plan divided by those of the function, seconds of the function)."""
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


def measured(name: str) -> dict[int, tuple[float, float]] | str:
    """`ratio` at the sizes at which the function takes less than MOST, or one of WHY."""
    whys: list[str] = []
    for arguments in (IMAGES[name],) if name in IMAGES else ARGUMENTS:
        call, tensors = on_squares(name, arguments, SIDES[0])
        compiled = prepared(call, tensors)
        if isinstance(compiled, str):
            whys.append(compiled)
            continue
        out = {SIDES[0]: ratio(call, compiled, tensors)}
        for n in SIDES[1:]:
            call, tensors = on_squares(name, arguments, n)
            if list(out.values())[-1][1] > MOST / 100 or isinstance(compiled := prepared(call, tensors), str):
                break
            out[n] = ratio(call, compiled, tensors)
        return out
    for text in tested().get(name, ()):
        call, tensors = as_tested(text)
        compiled = prepared(call, tensors)
        if not isinstance(compiled, str):
            return {AS_TESTED: ratio(call, compiled, tensors)}
        whys.append(compiled)
    return next((why for why in WHY if why in whys), "")


def report(found: Mapping[str, dict[int, tuple[float, float]]], none: Mapping[str, str]) -> str:
    lines = [
        "# Compiled and uncompiled functions on NumPy", "",
        "Written by `python3 dev.py bench plans`. Each function alone, on arrays of n × n, or as in tests/core/calls:",
        "the time of its plan over that of the function itself. The last column has the functions whose plan is slower",
        f"by more than a tenth and {LOOKED_UP * 1e6:.1f} µs. The machine's load was {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores.", "",
        "| n | functions | geometric mean | median | slower |", "|---:|---:|---:|---:|---|",
    ]  # fmt: skip
    for n in (*SIDES, AS_TESTED):
        ratios = {name: sizes[n][0] for name, sizes in found.items() if n in sizes}
        if not ratios:
            continue
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        slower = {name: r for name, r in ratios.items() if r > SLOWER and (r - 1) * found[name][n][1] > LOOKED_UP}
        slow = sorted((r, name) for name, r in slower.items())[::-1]
        said = ", ".join(f"`{name}` {r:.2f}" for r, name in slow) or "none"
        middle = sorted(ratios.values())[len(ratios) // 2]
        lines.append(f"| {n or 'as tested'} | {len(ratios)} | {mean:.2f} | {middle:.2f} | {said} |")
    lines += ["", f"Of {len(found) + len(none)} functions, {len(none)} are not compared:", ""]
    for why, said in WHY.items():
        names = [f"`{name}`" for name, reason in none.items() if reason == why]
        lines += [f"- {said} ({len(names)}): {', '.join(names)}."] if names else []
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", help="a regular expression for the names of functions")
    pattern = parser.parse_args().pattern
    warnings.simplefilter("ignore")  # that a function has no plan, which the report says, or that it overflows
    found: dict[str, dict[int, tuple[float, float]]] = {}
    none: dict[str, str] = {}
    for name in sorted(set(functions())):
        if name.endswith("_async") or (pattern and not re.fullmatch(pattern, name)):
            continue
        sizes = measured(name)
        if isinstance(sizes, str):
            none[name] = sizes
        else:
            found[name] = sizes
        if pattern:
            rows = [sizes] if isinstance(sizes, str) else [
                f"{n or 'as tested'}: {r:.2f} of {s * 1e6:.1f} µs" for n, (r, s) in sizes.items()
            ]  # fmt: skip
            print(name, *rows, flush=True)
    if not pattern:
        text = report(found, none)
        (Path(__file__).parent / "results" / "plans.md").write_text(text, encoding="utf-8")
        print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
