"""Attention in machine code, on one thread: in one pass, beside products and a softmax on a stored matrix of scores.

Both plans run in turns in one process; the least and the median of the turns count. Ends in about a minute. Writes
benches/results/attention.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
CASES = (  # batch, heads, queries, keys, channels, whether causal
    (1, 12, 64, 64, 32, False),
    (1, 12, 128, 128, 32, False),
    (1, 12, 128, 128, 64, False),
    (1, 12, 256, 256, 64, False),
    (1, 12, 512, 512, 64, False),
    (1, 12, 512, 512, 64, True),
    (1, 8, 1024, 1024, 64, True),
    (1, 8, 16, 512, 64, False),
    (1, 8, 256, 1024, 64, False),
    (1, 1, 300, 300, 64, False),
    (1, 8, 256, 256, 128, False),
)


def plans(case: tuple[int, int, int, int, int, bool]) -> list[tuple[Any, float]]:
    """(what runs it, megabytes of its memory), in one pass and by parts."""
    from emberlet import functional as F
    from emberlet.backend import get_backend
    from emberlet.wgpu_backend.compiled import compile
    from emberlet.wgpu_backend.wasm.kernels import attention

    batch, heads, queries, keys, channels, causal = case
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((batch, heads, n, channels)).astype(np.float32) for n in (queries, keys, keys)]
    out = []
    for one_pass in (True, False):
        with mock.patch.object(attention, "serves", lambda q, keys, values, chosen=one_pass: chosen):
            compiled = compile(
                lambda q, k, v: F.attention(q, k, v, is_causal=causal), *given, backend=get_backend("native")
            )
        compiled(*given)
        instance = compiled.planned().program.instance
        out.append((instance.run, instance.nbytes / 1e6))
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4, help="of each case (default: 4)")
    options = parser.parse_args()
    from emberlet.wgpu_backend.llvm import set_threads
    from emberlet.wgpu_backend.wasm.kernels.attention import (
        LEAST_KEYS,
        LEAST_ROWS,
        LEAST_SCORES,
        LEAST_WIDE_KEYS,
        WIDE,
    )

    set_threads(1)
    lines = [
        "# Attention in machine code",
        "",
        f"`python3 dev.py bench attention`: one thread, float32. Plans take one pass from {LEAST_ROWS} queries, "
        f"{LEAST_KEYS} keys ({LEAST_WIDE_KEYS:,} of more than {WIDE} channels) and {LEAST_SCORES:,} scores on. "
        f"{os.cpu_count()} CPUs, Python {platform.python_version()}; load of the machine when it began: "
        f"{os.getloadavg()[0]:.1f}. Above 1, only the ratios say something.",
        "",
        "| batch × heads × queries × keys × channels | one pass, ms | by parts | ratio | of medians | MB | by parts |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for case in CASES:
        (one, memory), (parts, more) = plans(case)
        taken: list[list[float]] = [[], []]
        end = time.perf_counter() + options.seconds
        while time.perf_counter() < end or len(taken[1]) < 3:
            for run, times in zip((one, parts), taken, strict=True):
                begin = time.perf_counter()
                run()
                times.append(1e3 * (time.perf_counter() - begin))
        least, median = np.min(taken, 1), np.median(taken, 1)
        name = " × ".join(str(n) for n in case[:5]) + (", causal" if case[5] else "")
        lines.append(
            f"| {name} | {least[0]:.3f} | {least[1]:.3f} | {least[0] / least[1]:.2f} | {median[0] / median[1]:.2f} "
            f"| {memory:.1f} | {more:.1f} |"
        )
        print(lines[-1], flush=True)
    page = ROOT / "benches" / "results" / "attention.md"
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote {page.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
