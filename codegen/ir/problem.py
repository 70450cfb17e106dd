"""Problem: why one node cannot be handled. The reader collects problems and raises one ModelError for all of them."""

from __future__ import annotations


class Problem(Exception):
    """Raised by `read`, `infer` and `emit` of a node; the text says what was found and what was expected."""
