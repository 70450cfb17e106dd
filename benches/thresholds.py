"""The sizes at which the GPU's kernels switch: reductions and scans by invocation or workgroup, products by blocks.

Both kernels of every case run on the same device in turns, many times in one submission, and the best of the turns
counts. A cell is the time of the simple kernel divided by that of the other; **bold** if the constants of
wgpu_backend/kernels choose the other. Writes benches/results/thresholds.md, on a real GPU thresholds-NAME.md.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from _gpu_device import results_page
from _gpu_peers import best

LENGTHS = (32, 64, 128, 256, 512, 1024, 4096)
COUNTS = (1, 8, 32, 128, 512, 2048, 16384)
MOST = 1 << 21  # elements of a case
SIDES = (16, 32, 64, 128, 256, 512)
Timer = Callable[[int], float]
Case = Callable[[int, int], "tuple[float, bool] | None"]


@contextmanager
def simple_or_other(other: bool) -> Iterator[None]:
    """A context in which plans use the workgroup kernels (and products by blocks) wherever possible, or nowhere."""
    from emberlet.wgpu_backend.kernels import loop, matmul, scan, table

    with (
        mock.patch.object(loop, "wants_group", lambda count, extent, software: other and extent > 1),
        mock.patch.object(scan, "wants_group", lambda lines, length, software: other and length > 1),
        mock.patch.object(matmul, "serves", lambda what, options: other),
        mock.patch.object(matmul, "wins", lambda what: other),
        mock.patch.object(table, "by_groups", lambda what, options: other and what.depth() > 1),
    ):
        yield


def timer(device: Any, function: Callable[..., Any], inputs: list[Any]) -> tuple[Timer, list[str]]:
    """(seconds of one run, of many in one submission; the names of the kernels)."""
    from emberlet.wgpu_backend import WgpuBackend
    from emberlet.wgpu_backend.compiled import compile

    planned = compile(function, *inputs, backend=WgpuBackend(device=device)).planned()
    program, raw = planned.program, device.raw
    program.prepare()
    for (number, _), words in zip(program.inputs, planned.words(inputs), strict=True):
        device.write(program.allocations[number], words)
    output = program.allocations[program.results[0][0]].pages[0].gpu

    def run(times: int) -> float:
        def call() -> None:
            encoder = raw.create_command_encoder()
            step = encoder.begin_compute_pass()
            for _ in range(times):
                for pipeline, group, x, y, z in program.steps:
                    step.set_pipeline(pipeline)
                    step.set_bind_group(0, group)
                    step.dispatch_workgroups(x, y, z)
            step.end()
            raw.queue.submit([encoder.finish()])
            raw.queue.read_buffer(output, 0, 4)  # waits

        return best(call, 0.0, 1) / times

    return run, [source for _, source in planned.plan.kernels]


def ratio(device: Any, function: Callable[..., Any], inputs: list[Any], rounds: int) -> tuple[float, bool]:
    """(the simple kernel's time divided by the other's, whether the library's constants choose the other)."""
    timers, texts = [], []
    for other in (False, True):
        with simple_or_other(other):
            run, text = timer(device, function, inputs)
        timers.append(run)
        texts.append(text)
    chosen = timer(device, function, inputs)[1]
    times = max(1, min(64, int(0.004 / min(run(1) for run in timers))))
    seconds = [math.inf, math.inf]
    for _ in range(rounds):
        for at, run in enumerate(timers):
            seconds[at] = min(seconds[at], run(times))
    return seconds[0] / seconds[1], chosen == texts[1] != texts[0]


def table(title: str, across: str, rows: tuple[int, ...], columns: tuple[int, ...], case: Case) -> list[str]:
    """A table of ratios, and how much slower the choices are than the best."""
    lines = [f"| {across} | " + " | ".join(f"{c:,}" for c in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lost = []
    for row in rows:
        cells = []
        for column in columns:
            found = case(row, column)
            if found is None:
                cells.append("")
                continue
            value, other = found
            cells.append(f"**{value:.2f}**" if other else f"{value:.2f}")
            lost.append(max(1.0, 1 / value if other else value))
        lines.append(f"| {row:,} | " + " | ".join(cells) + " |")
        print(title, lines[-1], flush=True)
    mean = math.exp(sum(math.log(x) for x in lost) / len(lost))
    told = (
        f"The kernels chosen take {mean:.2f} times what the better ones take (geometric mean), at most {max(lost):.1f}."
    )
    return [f"## {title}", "", *lines, "", told, ""]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each pair (7)")
    rounds = parser.parse_args().rounds
    from emberlet import dtypes
    from emberlet import functional as F
    from emberlet.backend import get_backend

    backend: Any = get_backend("wgpu")
    host = get_backend("numpy")
    device = backend.device
    info = device.raw.adapter_info

    def tensor(*shape: int) -> Any:
        array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        return host.from_bytes(array.tobytes(), dtypes.float32, shape)

    def reduction(length: int, count: int) -> tuple[float, bool] | None:
        if length * count > MOST:
            return None
        return ratio(device, lambda x: F.sum(x, axis=1), [tensor(count, length)], rounds)

    def scan(length: int, count: int) -> tuple[float, bool] | None:
        if length * count > MOST:
            return None
        return ratio(device, lambda x: F.cumulative_sum(x, axis=1), [tensor(count, length)], rounds)

    def row(depth: int, count: int) -> tuple[float, bool] | None:
        if depth * count > MOST:
            return None
        return ratio(device, F.matmul, [tensor(1, depth), tensor(depth, count)], rounds)

    def product(side: int, depth: int) -> tuple[float, bool] | None:
        return ratio(device, F.matmul, [tensor(side, depth), tensor(depth, side)], rounds)

    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    shared = f" The machine was shared: its load was {load:.0f} on {cores} cores." if load > cores * 0.75 else ""
    parts = [
        "# Switch points of the GPU's kernels",
        "",
        "Written by `python3 dev.py bench thresholds`. A cell is the time of the kernel with an invocation a result (a",
        "line) over that with a workgroup a result: above 1 the workgroup is faster. **Bold**: the library chooses the",
        f"workgroup. Best of {rounds} turns on {info['device']} ({info['description']}).{shared}",
        "",
        *table("Sums: terms by results", "terms", LENGTHS, COUNTS, reduction),
        *table("Cumulative sums: elements of a line by lines", "elements", LENGTHS, COUNTS, scan),
        *table("Products of one row: inner steps by columns", "steps", LENGTHS, COUNTS, row),
    ]
    if not backend.options.software:
        parts += table("Products: sides by inner steps, tiles in registers over blocks", "side", SIDES, SIDES, product)
    else:
        parts += ["Products in blocks (`kernels/matmul.py`) are for hardware only, and not measured here.", ""]
    results_page("thresholds", device).write_text("\n".join(parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
