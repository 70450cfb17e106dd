"""Standard streams that never end a command because of a character that their encoding lacks."""

from __future__ import annotations

import codecs
import io
import sys

_HANDLER = "emberlet.ascii"
# What stands for the characters that this project prints; any other becomes a question mark.
_ASCII = {
    "×": "x", "·": ".", "…": "...", "µ": "u", "–": "-", "—": "-", "−": "-", "→": "->", "←": "<-", "≤": "<=", "≥": ">=",
    "≠": "!=", "±": "+-", "²": "2", "³": "3", "√": "sqrt", "∞": "inf", "✓": "ok", "✗": "no", "•": "*", "█": "#",
    "░": ".", "▏": "|", "│": "|", "─": "-", "├": "+", "└": "+", "‘": "'", "’": "'", "“": '"', "”": '"',
    "\u00a0": " ", "\u202f": " ",
}  # fmt: skip


def _fall_back(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_ASCII.get(c, "?") for c in error.object[error.start : error.end]), error.end


def replace_what_cannot_be_shown() -> None:
    """From now on stdout and stderr print an ASCII substitute for a character that their encoding lacks."""
    codecs.register_error(_HANDLER, _fall_back)
    for stream in (sys.stdout, sys.stderr):
        # Surrogates stand for the bytes of a file name: the locale C gives those back as they were.
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "backslashreplace"):
            stream.reconfigure(errors=_HANDLER)
