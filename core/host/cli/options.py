"""Options of the command that several commands take: sentences that name one, and the values of --freeze NAME=VALUE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import EmberletError
from .. import npy


class Named(str):
    """The message of an error, "{before}--{option} {word}{after}", or with each of several words.

    parts: (before, option, words, after). In a tab, --dim rows=1..8 is dims: { rows: [1, 8] }
    (web/package/compiler/emberlet_compile.py).
    """

    parts: tuple[str, str, Sequence[str], str]

    def __new__(cls, option: str, words: Sequence[str], after: str = "", before: str = "") -> Named:
        """The sentence; without words, it has the option alone."""
        said = " ".join(f"--{option} {word}" for word in words) or f"--{option}"
        made = super().__new__(cls, before + said + after)
        made.parts = before, option, words, after
        return made


def frozen_values(words: Sequence[str]) -> dict[str, Any]:
    """The values by the inputs' names: a number, true or false, a list of them, the Tensor of an .npy file, else the
    text itself. Raises EmberletError, OSError."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise EmberletError(Named("freeze", [word], ": expected NAME=VALUE"))
        if name in found:
            raise EmberletError(Named("freeze", [name], ": given twice"))
        found[name] = npy.load(text, "python") if text.endswith(".npy") else _value(text)
    return found


def _value(text: str) -> Any:
    """The JSON value of a text (Python's JSON has names for infinity and NaN); the text itself if it is not JSON."""
    import json

    names = {"True": "true", "False": "false", "inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    try:
        value = json.loads(names.get(text, text))
    except (ValueError, RecursionError):
        return text
    return text if value is None or isinstance(value, dict) else value
