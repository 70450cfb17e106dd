"""Problem: why one node cannot be handled. The reader collects problems and raises one ModelError for all of them."""

from __future__ import annotations


class Problem(Exception):
    """Raised by `read`, `infer` and `emit` of a node; the text says what was found and what was expected."""


def report(origin: str, problems: list[str]) -> str:
    """The message of the one error that lists every problem of a model."""
    if len(problems) == 1:
        return f"{origin}: {problems[0]}"
    return f"{origin} has {len(problems)} problems:\n" + "\n".join("- " + p for p in problems)
