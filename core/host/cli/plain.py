"""Makes text from a file safe to print on a terminal, and warnings readable there."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...module.narrowing import PrecisionWarning


def plain(text: str) -> str:
    """`text` with control characters (escape sequences, direction marks) escaped; line breaks are kept."""
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@contextmanager
def noted() -> Iterator[None]:
    """Shows what stays in a wider dtype as a note of the command instead of a warning of the library."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if category is PrecisionWarning:
                print(plain(f"note: {message}"), file=sys.stderr)
            else:
                others(message, category, *rest, **named)

        warnings.showwarning = show
        warnings.simplefilter("always", PrecisionWarning)
        yield
