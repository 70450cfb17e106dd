"""Node cases and test models in WebAssembly, divided among threads: python -m tests.conformance.on_threads [PATTERN].

Every loop that threads may share is divided, however short, and its parts run in a random order (support/divided.py):
all memory must hold the same bytes as after a run on one thread, and the results are compared with the case's. `--part
K/N` runs every N-th case, from K on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from .cases import node_cases, run_case


def work() -> Iterator[tuple[str, str, Callable[[], None]]]:
    """(kind, name, run) of each node case and test model."""
    from models.index import cases
    from models.test_generated_models import check

    for name in sorted(node_cases()):
        yield "node cases", name, lambda name=name: run_case(name, "wasm")
    for case in cases():
        yield "test models", case.id, lambda case=case: check(case, "wasm compiled")


def main() -> int:
    from support.divided import in_parts

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th case, from K on")
    options = parser.parse_args()
    part, parts = (int(n) for n in options.part.split("/"))
    counts: dict[str, list[int]] = {}
    failed = 0
    for kind, name, run in [w for w in work() if options.pattern in w[1]][part::parts]:
        passed = counts.setdefault(kind, [0, 0, 0])
        try:
            with in_parts() as divided:
                run()
                passed[0] += 1
                passed[2] += divided.shared > 0
        except Exception as error:  # all of them are reported
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error).strip()[:300]}", flush=True)
        passed[1] += 1
    for kind, (right, ran, divided_ones) in counts.items():
        print(f"{kind}: {right} of {ran}, {divided_ones} of them with steps that were divided")
    return int(failed > 0)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
