"""What a command is doing, on stderr, while a person watches."""

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
