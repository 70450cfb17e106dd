"""Standard streams that never end a command because of a character that their encoding lacks."""

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
    """The same, where a lone surrogate stands for a byte of a file's name, which comes out as it was."""
    if isinstance(error, UnicodeEncodeError) and "\udc80" <= error.object[error.start] <= "\udcff":
        return bytes([ord(error.object[error.start]) - 0xDC00]), error.start + 1
    return _fall_back(error)


def substitute_unencodable() -> None:
    """From now on stdout and stderr print an ASCII substitute for a character that their encoding lacks."""
    codecs.register_error(_HANDLER, _fall_back)
    codecs.register_error(_ESCAPING, _fall_back_or_escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "backslashreplace", "surrogateescape"):
            # The locale C escapes, others do not.
            stream.reconfigure(errors=_ESCAPING if stream.errors == "surrogateescape" else _HANDLER)
