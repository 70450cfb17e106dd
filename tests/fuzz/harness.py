"""What the fuzzing harnesses share: seeds become a corpus, and the slowest input is told.

A harness imports what it fuzzes under `atheris.instrument_imports` and calls `run`, which never comes back. libFuzzer
counts in whole seconds; here the processor's time of each input is measured, and every new maximum is printed.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import atheris

SLOWEST = "slowest input so far: "


def timed(read: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """`read`, which prints how long it took (seconds of this thread) whenever that was longer than ever before."""
    longest = 0.05  # less is not worth a line
    print(f"{SLOWEST}{longest} s", file=sys.stderr)

    def measured(data: bytes) -> None:
        nonlocal longest
        begin = time.thread_time()
        try:
            read(data)
        finally:
            took = time.thread_time() - begin
            if took > longest:
                longest = took
                print(f"{SLOWEST}{took:.2f} s", file=sys.stderr, flush=True)

    return measured


def scratch() -> str:
    """A folder that lasts as long as the process."""
    return tempfile.mkdtemp()


def run(read: Callable[[bytes], None], seeds: Mapping[str, bytes], largest: int, **options: Any) -> None:
    """Fuzz `read` from `seeds` with inputs of at most `largest` bytes; libFuzzer's options are the command's."""
    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate(seeds.values()):
            if len(data) <= largest:
                pathlib.Path(corpus, str(number)).write_bytes(data)
        atheris.Setup([*sys.argv, f"-max_len={largest}", "-rss_limit_mb=4096", corpus], timed(read), **options)
        atheris.Fuzz()
