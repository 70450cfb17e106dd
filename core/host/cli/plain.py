"""Makes text from a file safe to print on a terminal."""

from __future__ import annotations


def plain(text: str) -> str:
    """`text` with what a terminal would obey (escape sequences, marks of direction) written out; lines stay lines."""
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
