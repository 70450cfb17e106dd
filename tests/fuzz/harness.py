"""Shared by the fuzzing harnesses: a corpus, and limits of time and memory for each input.

A harness calls `instrument`, imports the code that it fuzzes and calls `run`, which never returns. An input's time is
processor time, since other work on the machine would make elapsed time meaningless; an input that hangs without
computing is ended by libFuzzer's own `-timeout`. An input's memory is what it adds to the process's peak. An input over
a limit fails like one that raises, so libFuzzer keeps it.
"""

from __future__ import annotations

import os
import pathlib
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import atheris

SLOWEST = "slowest input so far: "
SECONDS = 5.0  # of the processor, for one input; instrumented code is several times slower
SLOW_SEED = 0.02  # seconds; an input that takes longer is tried once and not varied
CORPUS = "EMBERLET_FUZZ_CORPUS"  # a folder: inputs that reached new code in earlier runs, and where new ones go


class TooMuch(BaseException):
    """An input took more time or memory than is allowed. No `except Exception` of a reader hides it."""


def instrument(*packages: str) -> None:
    """Trace all modules of these packages that are imported from now on, also those that a reader imports as it
    runs."""
    atheris.instrument_imports(include=list(packages)).__enter__()


def limited(read: Callable[[bytes], None], megabytes: int) -> Callable[[bytes], None]:
    """`read`, which raises TooMuch over a limit and prints how long it took whenever that was longer than before."""
    longest = 0.05  # less is not worth a line
    print(f"{SLOWEST}{longest} s", file=sys.stderr)

    def measured(data: bytes) -> None:
        nonlocal longest
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
        if took > SECONDS or added > megabytes:
            raise TooMuch(f"{took:.2f} s, {added:.0f} MB more than any input before")

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
    read: Callable[[bytes], None], seeds: Mapping[str, bytes], largest: int, megabytes: int = 16, **options: Any
) -> None:
    """Fuzz `read` from `seeds` with inputs of at most `largest` bytes; libFuzzer's options are the command's.

    megabytes: how much one input may add to the memory's peak.
    """
    measured = limited(read, megabytes)
    with tempfile.TemporaryDirectory() as made:
        for number, data in enumerate(seeds.values()):
            if len(data) <= largest and _quick(measured, data):
                pathlib.Path(made, str(number)).write_bytes(data)
        kept = [os.environ[CORPUS]] if CORPUS in os.environ else []
        corpus = [*kept, made]
        atheris.Setup([*sys.argv, f"-max_len={largest}", "-rss_limit_mb=4096", *corpus], measured, **options)
        atheris.Fuzz()


def _quick(measured: Callable[[bytes], None], data: bytes) -> bool:
    """Whether an input takes little time; its variants then do too."""
    measured(data)  # the first time it imports what it needs
    begin = time.thread_time()
    measured(data)
    return time.thread_time() - begin < SLOW_SEED
