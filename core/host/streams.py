"""Keeps a character that a stream's encoding lacks from ending the command."""

from __future__ import annotations

import codecs
import io
import sys

_HANDLER = "emberlet.ascii"
_ESCAPING = "emberlet.ascii.escaping"
# What stands for the characters that this project prints; any other becomes a question mark.
_ASCII = {
    "×": "x", "·": ".", "…": "...", "µ": "u", "–": "-", "—": "-", "−": "-", "→": "->", "←": "<-", "≤": "<=", "≥": ">=",
    "≠": "!=", "±": "+-", "²": "2", "³": "3", "√": "sqrt", "∞": "inf", "✓": "ok", "✗": "no", "•": "*", "█": "#",
    "░": ".", "▏": "|", "│": "|", "─": "-", "├": "+", "└": "+", "‘": "'", "’": "'", "“": '"', "”": '"',
    "\u00a0": " ", "\u202f": " ",
}  # fmt: skip


def _fall_back(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _ASCII.get(error.object[error.start], "?"), error.start + 1


def _fall_back_or_escape(error: UnicodeError) -> tuple[str | bytes, int]:
    """The same, but a lone surrogate, which stands for a byte of a file name, is written as that byte."""
    if isinstance(error, UnicodeEncodeError) and "\udc80" <= error.object[error.start] <= "\udcff":
        return bytes([ord(error.object[error.start]) - 0xDC00]), error.start + 1
    return _fall_back(error)


def substitute_unencodable() -> None:
    """Make stdout and stderr print an ASCII substitute for each character that their encoding lacks."""
    codecs.register_error(_HANDLER, _fall_back)
    codecs.register_error(_ESCAPING, _fall_back_or_escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "backslashreplace", "surrogateescape"):
            # The locale C escapes, others do not.
            stream.reconfigure(errors=_ESCAPING if stream.errors == "surrogateescape" else _HANDLER)
