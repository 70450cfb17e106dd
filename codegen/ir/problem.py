"""Problem: why one node cannot be handled. The reader collects problems and raises one ModelError for all of them."""

from __future__ import annotations

from emberlet.errors import EmberletError


class Problem(Exception):
    """Raised by `read`, `infer` and `emit` of a node; the text says what was found and what was expected."""


def quoted(name: str) -> str:
    """A file's own name in a message: escaped, and cut where it is long."""
    return repr(name if len(name) <= 80 else name[:77] + "...")


def explained(error: Exception) -> str:
    """What a node's reading ended with, in words."""
    if isinstance(error, Problem | EmberletError):
        return str(error)
    return f"is malformed ({type(error).__name__}: {str(error)[:200]})"


MALFORMED = (Problem, EmberletError, ArithmeticError, AssertionError, LookupError, MemoryError, TypeError, ValueError)
"""What reading or emitting a node of an untrusted model may end with; everything else is a bug."""


def report(origin: str, problems: list[str]) -> str:
    """The message of the one error that lists every problem of a model."""
    if len(problems) == 1:
        return f"{origin}: {problems[0]}"
    return f"{origin} has {len(problems)} problems:\n" + "\n".join("- " + p for p in problems)
