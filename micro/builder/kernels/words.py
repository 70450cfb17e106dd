"""Numbers of one, two or three bytes, the lowest one first (quantization/sixteen.py)."""

from __future__ import annotations

from .writer import Pointer, Writer


def word_at(w: Writer, p: Pointer, k: int = 0) -> str:
    """The word at an offset of bytes, as an expression."""
    return f"{w.load(p, k)} | {w.load(p, k + 1)} << 8"


def store_word(w: Writer, p: Pointer, k: int = 0) -> None:
    """Write code that stores `s`, which fits a word."""
    w.store(p, "s & 255", k)
    w.store(p, "s >> 8", k + 1)


def element_at(w: Writer, p: Pointer, k: int, width: int) -> str:
    """The element of `width` bytes at an offset, as an expression."""
    return w.load(p, k) if width == 1 else word_at(w, p, k)


def store_element(w: Writer, p: Pointer, k: int, width: int) -> None:
    """Write code that stores `s` as an element of `width` bytes."""
    if width == 1:
        w.store(p, "s", k)
    else:
        store_word(w, p, k)


def store24(w: Writer, p: Pointer, k: int = 0) -> None:
    """Store `s`, which fits 24 bits."""
    w.store(p, "s & 255", k)
    w.store(p, "s >> 8 & 255", k + 1)
    w.store(p, "s >> 16", k + 2)


def number24(w: Writer, p: Pointer, k: int = 0) -> str:
    """The number of 24 bits at an offset of bytes, as an expression."""
    return f"{word_at(w, p, k)} | {w.load(p, k + 2)} << 16"
