"""Keys that are pressed in a terminal, read without waiting and without Enter."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator
from typing import Any


class Keys:
    """Puts the terminal of stdin into a mode that gives single keys, until `close`. Elsewhere there are no keys."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        with contextlib.suppress(ImportError, OSError, ValueError, AttributeError):
            import termios
            import tty

            if sys.stdin.isatty():
                self._before = termios.tcgetattr(sys.stdin)
                tty.setcbreak(sys.stdin)

    def pressed(self) -> Iterator[str]:
        """The keys that were pressed since the last call."""
        while self._before is not None and select.select([sys.stdin], [], [], 0)[0]:
            data = os.read(sys.stdin.fileno(), 64)
            if not data:
                return
            yield from data.decode(errors="replace")

    def close(self) -> None:
        """Put the terminal back."""
        if self._before is not None:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
            self._before = None
