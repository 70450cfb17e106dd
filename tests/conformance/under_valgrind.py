"""Compiled NumPy plans under valgrind: python -m tests.conformance.under_valgrind [PATTERN] [--minutes N].

The parent runs ONNX's node cases as compiled models and keeps those that call C functions by machine code
(core/host/numpy_backend/compile/native). They run again under memcheck (`child`), a chunk per process, with every
buffer of a plan in a block of its own: what a call reads or writes beyond its buffer, or reads before it was written,
is a report. The results are compared with the case's. `--threads N` lets N threads run every plan, however small.

Reports from the interpreter and the dynamic loader are their own and only counted. Any other report is a failure.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SHOWN = 40  # different failures that are printed
CHUNK = 150  # cases of a process: starting one takes about ten of them
# Objects whose own reports are no concern of ours: the interpreter, and the loader, whose strncmp reads words.
INNOCENT = re.compile(r"/(lib)?python3[^/]*$|/ld-[^/]*$")


class Report(NamedTuple):
    """A report of memcheck. frames: "function (object)", the innermost first."""

    kind: str
    frames: list[str]
    ours: bool

    def __str__(self) -> str:
        return f"{self.kind}: " + " < ".join(self.frames[:6])


def reports(log: str) -> Iterator[Report]:
    """The reports in memcheck's XML. Files of processes that ended early, or forked, are not well-formed as a whole."""
    for text in re.findall(r"<error>.*?</error>", log, re.DOTALL):
        element = ET.fromstring(text)
        # With XML, memcheck always looks for leaks; the interpreter frees little at its end.
        if element.findtext("kind", "").startswith("Leak_"):
            continue
        stack = element.find("stack")
        frames = [] if stack is None else stack.findall("frame")
        objects = [frame.findtext("obj", "") for frame in frames]
        names = [
            f"{frame.findtext('fn', '???')} ({Path(where).name or 'machine code'})"
            for frame, where in zip(frames, objects, strict=True)
        ]
        # A frame in no object is our machine code.
        innocent = bool(objects) and "" not in objects and bool(INNOCENT.search(objects[0]))
        yield Report(element.findtext("kind", "?"), names, not innocent)


def memcheck(arguments: Sequence[str], log: Path) -> tuple[subprocess.CompletedProcess[str], list[Report]]:
    """Run `python ARGUMENTS` under memcheck.

    Each object has a block of malloc's, with its bounds. It is filled with bytes first, because CPython multiplies an
    uninitialized digit by zero (longobject.c, maybe_small_long) and memcheck follows the result everywhere. Elements of
    NumPy's arrays are not filled.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit("valgrind is missing: on Debian or Ubuntu `sudo apt-get install valgrind`")
    command = [valgrind, "--error-limit=no", "--num-callers=20", "--xml=yes", f"--xml-file={log}"]
    environment = {**os.environ, "PYTHONMALLOC": "malloc_debug", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, sys.executable, *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False,
    )  # fmt: skip
    return done, list(reports(log.read_text(encoding="utf-8", errors="replace")))


def one_block_each() -> None:
    """Give every buffer of every plan a block of malloc's."""
    import numpy as np
    from emberlet.host.numpy_backend.compile import memory

    def apart(self: Any, buffers: Any, arena: int) -> None:
        before(self, buffers, 0)
        for buffer in buffers.all:
            if buffer.offset >= 0:
                self._places[id(buffer.base)] = np.empty(buffer.nbytes, np.uint8), 0

    before = memory.Memory.__init__
    memory.Memory.__init__ = apart  # type: ignore[method-assign]


def on_threads(count: int) -> None:
    """Let `count` threads run every plan."""
    from emberlet.host.numpy_backend.compile.threads import schedule, workers

    schedule.large = lambda multiplications: True  # type: ignore[assignment]
    workers.available = lambda: count  # type: ignore[assignment]


def counted() -> Counter[str]:
    """Count the calls of machine code, and their records, from now on."""
    from emberlet.host.numpy_backend.compile.native import machine

    found: Counter[str] = Counter()

    def call(self: Any, records: Sequence[Any], held: Any) -> Any:
        found["tables"] += 1
        found["records"] += sum(len(r) for r in records)
        found["calls of C functions"] += sum(int(r[:, 1].sum()) for r in records)
        return before(self, records, held)

    before = machine.Machine.call
    machine.Machine.call = call  # type: ignore[method-assign]
    return found


def with_native_calls(pattern: str, threads: int) -> tuple[list[str], int]:
    """(names of the node cases whose compiled models make native calls, how many cases ran)."""
    from .cases import node_cases, run_case

    if threads > 1:
        on_threads(threads)
    names = sorted(name for name in node_cases() if pattern in name)
    count = counted()
    found = []
    for name in names:
        before = count["tables"]
        try:
            run_case(name, "numpy compiled")
        except Exception as error:  # the tests of node cases say so
            print(f"{name} is left out, it fails without valgrind: {type(error).__name__}", flush=True)
            continue
        if count["tables"] > before:
            found.append(name)
    return found, len(names)


def child(file: Path, threads: int) -> int:
    """Run the pickled cases; prints a line for each."""
    from . import cases

    given = pickle.loads(file.read_bytes())
    cases.node_cases = lambda: given  # type: ignore[assignment]
    one_block_each()
    if threads > 1:
        on_threads(threads)
    count = counted()
    for name in given:
        try:
            cases.run_case(name, "numpy compiled")
            print(f"right {name}", flush=True)
        except Exception as error:
            print(f"wrong {name}: {type(error).__name__}: {str(error).strip()[:300]}", flush=True)
    print("counts", *(f"{number} {what.replace(' ', '_')}" for what, number in count.items()), flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="part of the names of cases")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no further process after these")
    parser.add_argument("--threads", type=int, default=1, help="threads of every plan (default 1)")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.threads)
    from .cases import node_cases

    end = time.monotonic() + 60 * options.minutes
    names, tried = with_native_calls(options.pattern, options.threads)
    print(f"{len(names)} of {tried} node cases make native calls", flush=True)
    right, failures, theirs = 0, [], 0
    counts: Counter[str] = Counter()
    for start in range(0, len(names), CHUNK):
        if time.monotonic() > end:
            print(f"out of time before case {start}")
            break
        some = names[start : start + CHUNK]
        with TemporaryDirectory() as folder:
            file = Path(folder, "cases.pickle")
            file.write_bytes(pickle.dumps({name: node_cases()[name] for name in some}))
            arguments = ["-m", "tests.conformance.under_valgrind", "--child", str(file)]
            done, found = memcheck([*arguments, "--threads", str(options.threads)], Path(folder, "log.xml"))
        lines = done.stdout.splitlines()
        right += sum(line.startswith("right ") for line in lines)
        failures += [line for line in lines if line.startswith("wrong ")]
        failures += [str(report) for report in found if report.ours]
        theirs += sum(not report.ours for report in found)
        if done.returncode:
            failures.append(f"a process ended with {done.returncode} after {lines[-1:]}: {done.stderr[-500:]}")
        for said in (line for line in lines if line.startswith("counts ")):
            words = said.split()[1:]
            counts.update({what: int(number) for number, what in zip(words[::2], words[1::2], strict=True)})
        print(f"  {start + len(some)} of {len(names)}: {right} right, {len(failures)} failures", flush=True)
    for failure, times in Counter(failures).most_common(SHOWN):
        print(f"{times} times {failure}")
    made = ", ".join(f"{number:,} {what.replace('_', ' ')}" for what, number in counts.items())
    print(f"{right} cases right ({made}); {len(failures)} failures; {theirs} reports of the interpreter and the loader")
    return int(bool(failures))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
