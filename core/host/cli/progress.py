"""The progress of a command on stderr, shown only on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from .plain import plain


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Show `text` while the block runs and, where that took over a second, how long; nothing when stderr is a file."""
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
    """A bar on stderr with the bytes that are done, from the first second on and while a person watches.

    total: how many bytes there are; `add` tells of some that are done.
    """

    def __init__(self, text: str, total: int) -> None:
        self._text = plain(text)
        self._total = max(1, total)
        self._done = 0
        self._shown = False
        self._begin = self._last = time.monotonic()
        self._watched = sys.stderr.isatty()

    def __enter__(self) -> Bytes:
        return self

    def add(self, count: int) -> None:
        """Some more bytes are done."""
        self._done += count
        now = time.monotonic()
        if self._watched and now - self._begin > 1 and now - self._last > 0.1:
            self._last, self._shown = now, True
            part = min(1.0, self._done / self._total)
            bar = ("#" * round(24 * part)).ljust(24, ".")
            rate = self._done / (now - self._begin)
            sys.stderr.write(
                f"\r\x1b[K{self._text} [{bar}] {amount(self._done)} of {amount(self._total)}, {amount(rate)}/s"
            )
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def amount(count: float) -> str:
    """Bytes in words: "12.3 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return ""


class Rows:
    """A bar on stderr with the rows that are done and how many a second, while a person watches."""

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
        """So many rows are done, of `total` if that is known."""
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
