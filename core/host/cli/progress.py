"""The progress of a command on stderr, shown only on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .plain import plain

if TYPE_CHECKING:
    import threading


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Context manager: shows `text` while the block runs, and the time if it took over a second; nothing if stderr is a
    file."""
    if not sys.stderr.isatty():
        yield
        return
    text = plain(text)
    sys.stderr.write(f"{text} …")
    sys.stderr.flush()
    begin = time.monotonic()
    try:
        yield
    finally:
        sys.stderr.write("\r\x1b[K")
        if time.monotonic() - begin > 1:
            sys.stderr.write(f"{text}: {time.monotonic() - begin:.1f} s\n")
        sys.stderr.flush()


class Bytes:
    """A progress bar of bytes on stderr, shown after the first second if stderr is a terminal.

    total: the number of bytes; `add` reports finished ones. A thread redraws it, so that a large tensor shows a bar
    before its end.
    """

    def __init__(self, text: str, total: int) -> None:
        self._text = plain(text)
        self._total = max(1, total)
        self._done = 0
        self._shown = False
        self._begin = time.monotonic()
        self._ended: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Bytes:
        if sys.stderr.isatty():
            import threading  # commands without a bar start sooner

            self._ended = threading.Event()
            self._thread = threading.Thread(target=self._redraw, args=(self._ended,), daemon=True)
            self._thread.start()
        return self

    def add(self, count: int) -> None:
        """Report finished bytes."""
        self._done += count

    def _redraw(self, ended: threading.Event) -> None:
        wait = 1.0
        while not ended.wait(wait):
            wait, self._shown = 0.2, True
            part = min(1.0, self._done / self._total)
            bar = ("#" * round(24 * part)).ljust(24, ".")
            rate = self._done / (time.monotonic() - self._begin)
            sys.stderr.write(
                f"\r\x1b[K{self._text} [{bar}] {size_text(self._done)} of {size_text(self._total)}, {size_text(rate)}/s"
            )
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._ended is not None and self._thread is not None:
            self._ended.set()
            self._thread.join()
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def size_text(count: float) -> str:
    """A number of bytes as text: "12.3 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return ""


class Rows:
    """A progress bar of rows and rows per second on stderr, shown if stderr is a terminal."""

    def __init__(self, text: str) -> None:
        self._text = plain(text)
        self._begin: float | None = None
        self._first = 0
        self._watched = sys.stderr.isatty()

    def __enter__(self) -> Rows:
        if self._watched:
            sys.stderr.write(f"{self._text}: starting the workers …")
            sys.stderr.flush()
        return self

    def at(self, rows: int, total: int | None, skipped: int) -> None:
        """Report the number of finished rows, of `total` if that is known."""
        if not self._watched or not rows:
            return
        now = time.monotonic()
        if self._begin is None:  # the workers have started
            self._begin, self._first = now, rows
        rate = (rows - self._first) / max(now - self._begin, 1e-9)
        part = min(1.0, rows / total) if total else 0.0
        bar = f" [{('#' * round(24 * part)).ljust(24, '.')}]" if total else ""
        of = f" of {total:,}" if total else ""
        also = f", {skipped:,} skipped" if skipped else ""
        sys.stderr.write(f"\r\x1b[K{self._text}{bar} {rows:,}{of} rows, {rate:,.0f} rows/s{also}")
        sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._watched:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
