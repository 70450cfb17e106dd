"""Makes text from a file safe to print on a terminal."""

from __future__ import annotations


def plain(text: str) -> str:
    """`text` with control characters (escape sequences, direction marks) escaped; line breaks are kept."""
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
