"""Shared by the fuzzing harnesses: a corpus, and limits of time and memory for each input.

A harness calls `instrument`, imports the code that it fuzzes and calls `run`, which never returns. An input's time is
processor time, since other work on the machine would make elapsed time meaningless; an input that hangs without
computing is ended by libFuzzer's own `-timeout`. An input's memory is what it adds to the process's peak. An input over
a limit fails like one that raises, so libFuzzer keeps it. The limits grow with the input's size.

First come recipes (multiplied.py), for a quarter of the time: small inputs that stand for much larger files, which
repeat a part thousands of times or whose parts share bytes. Then inputs are changed as bytes, guided by coverage.
"""

from __future__ import annotations

import os
import pathlib
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import atheris
from fuzz import multiplied

SLOWEST = "slowest input so far: "
RECIPES = "files that repeat and share: "
SECONDS = 5.0  # of the processor, for one input; instrumented code is several times slower
SECONDS_EACH, BYTES_EACH = 1 / 20_000, 512  # as much more for each byte of an input
SLOW_SEED = 0.02  # seconds; an input that takes longer is tried once and not varied
CORPUS = "EMBERLET_FUZZ_CORPUS"  # a folder: inputs that reached new code in earlier runs, and where new ones go


class TooMuch(BaseException):
    """An input took more time or memory than is allowed. No `except Exception` of a reader hides it."""


def instrument(*packages: str) -> None:
    """Trace all modules of these packages that are imported from now on, also those that a reader imports as it
    runs."""
    atheris.instrument_imports(include=list(packages)).__enter__()


def limited(
    read: Callable[[bytes], None], megabytes: int, build: multiplied.Build | None = None
) -> Callable[[bytes], None]:
    """`read`, which raises TooMuch over a limit and prints how long it took whenever that was longer than before.

    build: makes a file from numbers.
    """
    longest = 0.05  # less is not worth a line
    print(f"{SLOWEST}{longest} s", file=sys.stderr)

    def measured(data: bytes) -> None:
        nonlocal longest
        data = multiplied.made(data, build)
        peak = _peak()  # libFuzzer's own memory grows between inputs
        begin = time.thread_time()
        try:
            read(data)
        finally:
            took = time.thread_time() - begin
            if took > longest:
                longest = took
                print(f"{SLOWEST}{took:.2f} s", file=sys.stderr, flush=True)
        added = _peak() - peak
        if took > SECONDS + len(data) * SECONDS_EACH or added > megabytes + len(data) * BYTES_EACH / (1 << 20):
            raise TooMuch(f"{took:.2f} s, {added:.0f} MB more than any input before, for {len(data)} bytes")

    return measured


def _peak() -> float:
    """The most memory that this process has had, in MB. Linux's ru_maxrss includes the peak of the process that started
    it, so the process's own is read from its status."""
    try:
        status = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def scratch() -> str:
    """A folder that lasts as long as the process."""
    return tempfile.mkdtemp()


def run(
    read: Callable[[bytes], None],
    seeds: Mapping[str, bytes],
    largest: int,
    megabytes: int = 16,
    change: Callable[[bytes, int, int], bytes] | None = None,
    build: multiplied.Build | None = None,
) -> None:
    """Fuzz `read` from `seeds` with inputs of at most `largest` bytes; libFuzzer's options are the command's.

    megabytes: how much one input may add to the memory's peak. change: a mutation by (input, its most bytes, a
    seed), in place of one of its bytes. build: makes a file whose parts are repeated and shared from a few numbers.
    """
    measured = limited(read, megabytes, build)
    options: dict[str, Any] = {} if change is None else {"custom_mutator": change}
    with tempfile.TemporaryDirectory() as made:
        for number, data in enumerate(seeds.values()):
            if len(data) <= largest and _quick(measured, data):
                pathlib.Path(made, str(number)).write_bytes(data)
        _recipes(measured, [s for s in seeds.values() if len(s) <= largest], build is not None)
        kept = [os.environ[CORPUS]] if CORPUS in os.environ else []
        corpus = [*kept, made]
        atheris.Setup([*sys.argv, f"-max_len={largest}", "-rss_limit_mb=4096", *corpus], measured, **options)
        atheris.Fuzz()


def _recipes(measured: Callable[[bytes], None], seeds: Sequence[bytes], can_build: bool) -> None:
    """Run recipes for a quarter of the time, or as a hundredth of the runs; prints how many."""
    seconds = int(_option("max_total_time", "0")) / 4 or 1e9
    most = max(20, int(_option("runs", "100000")) // 100)
    r, begin, count = random.Random(int(_option("seed", "0")) or None), time.monotonic(), 0
    while count < most and time.monotonic() - begin < seconds:
        data = multiplied.recipe(r.choice(seeds), r, can_build)
        try:
            measured(data)
        except BaseException:
            path = pathlib.Path(_option("artifact_prefix", "./") + f"crash-recipe-{count}")
            path.write_bytes(data)
            print(f"{RECIPES}{count + 1}\na recipe failed: {path}", file=sys.stderr)
            raise
        count += 1
    print(f"{RECIPES}{count}", file=sys.stderr, flush=True)


def _option(name: str, otherwise: str) -> str:
    """libFuzzer's option of this name in the command."""
    found = [a.partition("=")[2] for a in sys.argv if a.startswith(f"-{name}=")]
    return found[-1] if found else otherwise


def _quick(measured: Callable[[bytes], None], data: bytes) -> bool:
    """Whether an input takes little time; its variants then do too."""
    measured(data)  # the first time it imports what it needs
    begin = time.thread_time()
    measured(data)
    return time.thread_time() - begin < SLOW_SEED
