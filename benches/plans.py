"""Every function of emberlet on NumPy, compiled and not: no plan may be slower than the functions themselves.

Each function is called alone, on the arguments of the first of ARGUMENTS that it takes, at three sizes; a function that
takes none of these is called as in OTHERS or in tests/core/calls. A plan's results are the caller's own: where the
function returns a part of an argument, it is compared with the function and a copy of that.

Both ways are called in turns, in one thread and in its processor time: other work of the machine changes little.
A ratio is that of their lower deciles, the plan's divided by the function's. What seems slower is measured again and
longer, and that measure counts. What NumPy's BLAS and a plan compute in several threads is measured once more by the
clock: those rows need a machine that does nothing else.

Writes benches/results/plans.md; a pattern limits the functions and prints the ratios instead.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from _plan_cases import AS_TESTED, SIDES, WHY, Compared, cases, functions, prepared

SLOWER = 1.1  # above, a plan counts as slower
LOOKED_UP = 1.5e-6  # seconds more that are none: a compiled function looks up the shapes
TURN = 3e-5  # least seconds of a turn: of several calls of what is short
LEAST = 8  # turns
BUDGETS = (0.05, 0.3, 2.0)  # seconds of all turns, and of those where the plan seemed slower before
REST = 0.2  # seconds before turns of several threads: BLAS's keep a core after the other way's product
MOST = 0.03  # seconds: beyond a hundredth of it, the next size is left out


class Row(NamedTuple):
    """What was measured at a size: the plan's time divided by the function's, the function's seconds, whether a copy
    is among them; products: what is compared, where it multiplies matrices."""

    ratio: float
    seconds: float
    copies: bool
    products: Compared | None


def turns(ways: tuple[Callable[[], Any], ...], clock: Callable[[], float], budget: float, rest: float) -> list[float]:
    """The lower decile of the seconds of each way, called in turns."""
    start = clock()
    ways[0]()
    times = max(1, math.ceil(TURN / max(clock() - start, 1e-7)))
    seconds: list[list[float]] = [[] for _ in ways]
    spent = 0.0
    while spent < budget or len(seconds[0]) < LEAST:
        time.sleep(rest)
        for way, found in zip(ways, seconds, strict=True):
            start = clock()
            for _ in range(times):
                way()
            took = clock() - start
            found.append(took / times)
            spent += took + rest
    return [sorted(found)[len(found) // 10] for found in seconds]


def ratio(compared: Compared, clock: Callable[[], float] = time.thread_time, rest: float = 0.0) -> tuple[float, float]:
    """(seconds of the plan divided by those of the function, seconds of the function)."""
    call, compiled, tensors = compared.call, compared.compiled, compared.tensors
    ways = (lambda: call(*tensors), lambda: compiled(*tensors))
    for way in ways:
        way()
    for budget in BUDGETS:
        function, plan = turns(ways, clock, budget, rest)
        if plan <= SLOWER * function or plan - function <= LOOKED_UP:
            break
    return plan / function, function


def measured(name: str) -> dict[int, Row] | str:
    """What was measured at each size while that took no longer than a hundredth of MOST, or one of WHY."""
    out: dict[int, Row] = {}
    for n, compared in cases(name):
        if isinstance(compared, str):
            return compared
        out[n] = Row(*ratio(compared), compared.views, compared if compared.products else None)
        if out[n].seconds > MOST / 100:
            break
    return out


def in_threads(found: Mapping[str, dict[int, Row]], threads: int) -> dict[str, dict[int, Row]]:
    """The same by the clock, of those whose plans several threads run."""
    set_threads(threads)
    out: dict[str, dict[int, Row]] = {}
    for name, sizes in found.items():
        for n, row in sizes.items():
            again = prepared(row.products.call, row.products.tensors) if row.products else ""
            if not isinstance(again, str) and again.compiled.plan().threads > 1:
                out.setdefault(name, {})[n] = Row(*ratio(again, time.perf_counter, REST), again.views, None)
    set_threads(1)
    return out


def set_threads(count: int) -> None:
    """How many threads NumPy's BLAS multiplies in, and so those of a plan."""
    from emberlet.host import blas_kernels

    function = blas_kernels.function("set_num_threads")
    if function is not None:
        function(count)


def line(what: str, rows: Mapping[str, Row]) -> str:
    """A line of the table."""
    ratios = sorted(row.ratio for row in rows.values())
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    slow = {name: r for name, (r, s, *_) in rows.items() if r > SLOWER and (r - 1) * s > LOOKED_UP}
    said = ", ".join(f"`{name}` {r:.2f}" for name, r in sorted(slow.items(), key=lambda entry: -entry[1])) or "none"
    return f"| {what} | {len(rows)} | {mean:.2f} | {ratios[len(ratios) // 2]:.2f} | {said} |"


def report(
    found: Mapping[str, dict[int, Row]], threaded: Mapping[str, dict[int, Row]], none: Mapping[str, str], threads: int
) -> str:
    lines = [
        "# Compiled and uncompiled functions on NumPy", "",
        "Written by `python3 dev.py bench plans`. Each function alone, on arrays of n × n, or as in tests/core/calls:",
        "the time of its plan over that of the function itself, in one thread and its processor time; in several",
        "threads by the clock. The last column has the functions whose plan is slower by more than a tenth and",
        f"{LOOKED_UP * 1e6:.1f} µs, also when it is measured again. The machine's load was {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores.", "",
        "| n | functions | geometric mean | median | slower |", "|---:|---:|---:|---:|---|",
    ]  # fmt: skip
    for of, title in ((found, ""), (threaded, f", {threads} threads")):
        for n in (*SIDES, AS_TESTED):
            rows = {name: sizes[n] for name, sizes in of.items() if n in sizes}
            lines += [line(f"{n or 'as tested'}{title}", rows)] if rows else []
    viewed = [f"`{name}`" for name, sizes in found.items() if any(row.copies for row in sizes.values())]
    lines += [
        "", f"A plan's results are the caller's own. {len(viewed)} functions return an argument or a part of it",
        f"and are compared with the function and a copy of that: {', '.join(viewed)}.",
        "", f"Of {len(found) + len(none)} functions, {len(none)} are not compared:", "",
    ]  # fmt: skip
    for why, said in WHY.items():
        names = [f"`{name}`" for name, reason in none.items() if reason == why]
        lines += [f"- {said} ({len(names)}): {', '.join(names)}."] if names else []
    return "\n".join([*lines, ""])


def said(of: Mapping[int, Row] | str) -> list[str]:
    """What is printed of a function."""
    if isinstance(of, str):
        return [WHY[of]]
    return [
        f"{n or 'as tested'}: {row.ratio:.2f} of {row.seconds * 1e6:.1f} µs{' and a copy' * row.copies}"
        for n, row in of.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", help="a regular expression for the names of functions")
    pattern = parser.parse_args().pattern
    warnings.simplefilter("ignore")  # that a function has no plan, which the report says, or that it overflows
    from emberlet.host import blas_kernels

    threads = blas_kernels.threads() or 1
    set_threads(1)
    found: dict[str, dict[int, Row]] = {}
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
            print(name, *said(sizes), flush=True)
    threaded = in_threads(found, threads) if threads > 1 else {}
    if pattern:
        for name, sizes in threaded.items():
            print(name, f"in {threads} threads", *said(sizes))
        return 0
    text = report(found, threaded, none, threads)
    (Path(__file__).parent / "results" / "plans.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
