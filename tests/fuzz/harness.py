"""Shared by the fuzzing harnesses: a corpus, and limits of time and memory for each input.

A harness calls `instrument`, imports the code that it fuzzes and calls `run`. An input is one call
of the reader on changed bytes. Its time is processor time, since other work on the machine would make elapsed time
meaningless; an input that hangs without computing is ended by libFuzzer's own `-timeout`. Its memory is the most that
the process had during the call beyond what it had before. An input over a limit fails like one that raises, and is
kept. The limits grow with the input's size.

There are two ways to run. Guided: first come recipes (multiplied.py), for a quarter of the time: small inputs that
stand for much larger files, which repeat a part thousands of times or whose parts share bytes. Then libFuzzer changes
inputs, guided by coverage, which costs most of the time. Unguided (the variable UNGUIDED is set): nothing is traced,
inputs of the corpus that a guided run made are changed (mutations.py), several times as many a second, and recipes get
an eighth of the time.

    python tests/fuzz/fuzz_plan.py FILE     read an input that failed once more
"""

from __future__ import annotations

import contextlib
import itertools
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
from fuzz import multiplied, mutations

SLOWEST = "slowest input so far: "
RECIPES = "files that repeat and share: "
MEMORY = "most memory: "
SECONDS = 10.0  # of the processor, for one input; instrumented code is several times slower, and so are some machines
SECONDS_EACH, BYTES_EACH = 1 / 20_000, 512  # as much more for each byte of an input
SLOW_SEED = 0.02  # seconds; an input that takes longer is tried once and not varied
QUICK = 0.001  # seconds; inputs that take less are changed equally often
CORPUS = "EMBERLET_FUZZ_CORPUS"  # a folder: inputs that reached new code in earlier runs, and where new ones go
UNGUIDED = "EMBERLET_FUZZ_UNGUIDED"


class TooMuch(BaseException):
    """An input took more time or memory than is allowed. No `except Exception` of a reader hides it."""


def instrument(*packages: str) -> None:
    """Trace all modules of these packages that are imported from now on, also those that a reader imports as it
    runs."""
    if not os.environ.get(UNGUIDED):
        atheris.instrument_imports(include=list(packages)).__enter__()


def limited(
    read: Callable[[bytes], None], megabytes: int, build: multiplied.Build | None = None
) -> Callable[[bytes], None]:
    """`read`, which raises TooMuch over a limit and prints how long it took whenever that was longer than before.

    build: makes a file from numbers.
    """
    longest, largest = 0.05, 0.0  # less is not worth a line
    print(f"{SLOWEST}{longest} s", file=sys.stderr)
    memory = Memory()

    def measured(data: bytes) -> None:
        nonlocal longest, largest
        data = multiplied.made(data, build)
        before = memory.begin()
        modules = len(sys.modules)
        begin = time.thread_time()
        try:
            read(data)
        finally:
            took = time.thread_time() - begin
            if took > longest:
                longest = took
                print(f"{SLOWEST}{took:.2f} s", file=sys.stderr, flush=True)
        peak = memory.peak()
        if peak > largest + 1:
            largest = peak
            print(f"{MEMORY}{peak:.0f} MB", file=sys.stderr, flush=True)
        added = peak - before
        if len(sys.modules) > modules:
            took = 0  # which went into instrumenting what was imported
        if took > SECONDS + len(data) * SECONDS_EACH or added > megabytes + len(data) * BYTES_EACH / (1 << 20):
            raise TooMuch(f"{took:.2f} s, {added:.0f} MB more than before, for {len(data)} bytes")

    return measured


class Memory:
    """The most memory that this process has had since `begin`, where Linux can forget an earlier peak; else since its
    start, so that an input below an earlier peak is not measured."""

    def __init__(self) -> None:
        self._status = self._forget = -1
        with contextlib.suppress(OSError):
            self._status = os.open("/proc/self/status", os.O_RDONLY)
            self._forget = os.open("/proc/self/clear_refs", os.O_WRONLY)

    def begin(self) -> float:
        """Start anew; the memory now, in MB."""
        if self._forget >= 0:
            os.write(self._forget, b"5")
        return self.peak()

    def peak(self) -> float:
        """In MB."""
        if self._status < 0:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        # Linux's ru_maxrss includes the peak of the process that started it
        status = os.pread(self._status, 4096, 0)
        return int(status[status.index(b"VmHWM:") + 6 :].split(None, 1)[0]) / 1024


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

    megabytes: how much memory one input may add. change: a mutation by (input, its most bytes, a seed), in place of
    one of its bytes; it may call `changed`. build: makes a file whose parts are repeated and shared from a few numbers.
    """
    measured = limited(read, megabytes, build)
    if files := [a for a in sys.argv[1:] if a[:1] != "-"]:
        for file in files:
            measured(pathlib.Path(file).read_bytes())
        return
    given = [data for data in seeds.values() if len(data) <= largest]
    if os.environ.get(UNGUIDED):
        _unguided(measured, given, largest, change, build is not None)
        return
    options: dict[str, Any] = {} if change is None else {"custom_mutator": change}
    with tempfile.TemporaryDirectory() as made:
        for number, data in enumerate(given):
            if _seconds(measured, data) < SLOW_SEED:
                pathlib.Path(made, str(number)).write_bytes(data)
        _recipes(measured, given, build is not None)
        kept = [os.environ[CORPUS]] if CORPUS in os.environ else []
        corpus = [*kept, made]
        # Before the command's options, so that those hold: the last one of a name does.
        ours = [f"-max_len={largest}", "-rss_limit_mb=4096"]
        atheris.Setup([sys.argv[0], *ours, *sys.argv[1:], *corpus], measured, **options)
        atheris.Fuzz()


def _unguided(
    measured: Callable[[bytes], None],
    given: Sequence[bytes],
    largest: int,
    change: Callable[[bytes, int, int], bytes] | None,
    can_build: bool,
) -> None:
    """Change the inputs of the corpus as fast as the reader reads them; prints the counts as libFuzzer does."""
    folder = os.environ.get(CORPUS, "")
    kept = [file.read_bytes() for file in sorted(pathlib.Path(folder).iterdir())] if folder else []
    times = {data: _seconds(measured, data) for data in [*given, *kept]}
    inputs = [data for data, took in times.items() if took < SLOW_SEED]
    # Each input gets about as much time, but for quick ones: most readers take a hundred times as long for some as for
    # others, and the others should not be nearly all that is counted.
    shares = list(itertools.accumulate(1 / max(times[data], QUICK) for data in inputs))
    seed = int(_option("seed", "0")) or random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}, {len(inputs)} inputs to change", file=sys.stderr, flush=True)
    r, most, seconds = random.Random(seed), int(_option("runs", "100000")), int(_option("max_total_time", "0")) or 1e9
    begin, of_recipes, count, recipes = time.monotonic(), 0.0, 0, 0
    data, now = b"", begin
    try:
        while count < most and now - begin < seconds:
            if of_recipes < (now - begin) / 8:
                data = multiplied.recipe(r.choice(given), r, can_build)
                measured(data)
                recipes += 1
                of_recipes += time.monotonic() - now
            elif change is not None and count % 2:
                data = change(r.choices(inputs, cum_weights=shares)[0], largest, r.getrandbits(32))
                measured(data)
            else:
                data = mutations.changed(r.choices(inputs, cum_weights=shares)[0], inputs, largest, r)
                measured(data)
            count += 1
            now = time.monotonic()
    except BaseException:
        path = pathlib.Path(_option("artifact_prefix", "./") + f"crash-unguided-{seed}-{count}")
        path.write_bytes(data)
        print(f"failed: {path}", file=sys.stderr)
        raise
    finally:
        print(f"{RECIPES}{recipes}\nstat::number_of_executed_units: {count - recipes}", file=sys.stderr, flush=True)


def changed(data: bytes, largest: int, seed: int) -> bytes:
    """The input with some changed bytes, for a `change` that found nothing better."""
    if os.environ.get(UNGUIDED):
        return mutations.changed(data, [data], largest, random.Random(seed))
    return bytes(atheris.Mutate(data, largest))


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


def _seconds(measured: Callable[[bytes], None], data: bytes) -> float:
    """How long an input takes; its variants take about as long."""
    measured(data)  # the first time it imports what it needs
    begin = time.thread_time()
    measured(data)
    return time.thread_time() - begin
