"""Loops in the driver's table: the calls between `repeat` and `again` are made a number of times."""

from __future__ import annotations

REPEAT = {"times": "count", "istep": "i step", "ostep": "o step", "first": "i", "to": "o"}
"""Fields of `repeat` -> the words of the state that they set."""

AGAIN = {"i": "i step", "o": "o step"}
"""What moves after each turn -> by how much."""
