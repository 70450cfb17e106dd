"""Problem: why one node cannot be handled. The reader collects problems and raises one ModelError for all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emberlet.errors import EmberletError, ModelError
from emberlet.host.listing import listed, shortened
from emberlet.host.memory import ADVICE, OutOfMemoryError, error_text

MOST_PROBLEMS = 1000  # a reader stops there: a file of a million broken parts would give a million


class Problem(Exception):
    """Raised by a node's `read`, `infer` and `emit`; the text says what was found and what was expected."""


class Enough(Exception):
    """There are MOST_PROBLEMS problems; reading on would only add to them."""


class Problems(list[str]):
    """The problems found in a model. Raises Enough in place of adding too many."""

    def append(self, problem: str) -> None:
        if len(self) >= MOST_PROBLEMS:
            raise Enough
        super().append(shortened(problem))


def quoted(name: str) -> str:
    """A name from a file for a message: escaped, and cut if long."""
    return repr(name if len(name) <= 80 else name[:77] + "...")


def explained(error: Exception) -> str:
    """The text of the error that a node's reading ended with."""
    if isinstance(error, Problem | EmberletError):
        return str(error)
    if isinstance(error, RecursionError):
        return "nests too deeply"
    return f"is malformed ({type(error).__name__}: {str(error)[:200]})"


def bug(error: Exception) -> str:
    """The text for an error of this library, in a step that reads no file: the model is not to blame."""
    return f"a bug of emberlet ({type(error).__name__}: {str(error)[:200]}); please report it with the model."


def failed(error: Exception) -> str:
    """The text of the error that a step after reading ended with."""
    if isinstance(error, Problem | EmberletError | RecursionError):
        return explained(error)
    return f"cannot be translated because of {bug(error)}"


MALFORMED = (
    Problem, EmberletError, ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""The errors that reading or emitting a node of an untrusted model may raise; any other is a bug."""


def report(origin: str, problems: list[str]) -> str:
    """The message of the one error for every problem of a model: lists the first twenty and counts the rest."""
    if len(problems) == 1:
        return f"{origin}: {shortened(problems[0])}"
    stopped = isinstance(problems, Problems) and len(problems) >= MOST_PROBLEMS
    count = f"{len(problems)} problems or more" if stopped else f"{len(problems)} problems"
    return f"{origin} has {count}:\n{listed(problems, stopped)}"


@contextmanager
def refusing(source: object) -> Iterator[None]:
    """Turn any error in reading, rewriting and emitting a model into a ModelError; no other place does so.

    Errors of the EmberletError family and of the system (OSError, ImportError) pass unchanged. An error that is not a
    Problem becomes the `__cause__`: it is a bug of this library, which fuzzing looks for, and the message says so.
    """
    try:
        yield
    except (EmberletError, OSError, ImportError):
        raise
    except Problem as problem:
        raise ModelError(f"{origin_of(source)}: {shortened(str(problem))}") from problem.__cause__
    except MemoryError as error:
        raise OutOfMemoryError(f"{origin_of(source)}: {error_text(error)}; {ADVICE}") from error
    except Exception as error:
        raise ModelError(f"{origin_of(source)}: {shortened(failed(error))}") from error


def origin_of(source: object) -> str:
    """The name of a model in messages: its file's name, or "model"."""
    return quoted(Path(source).name)[1:-1] if isinstance(source, str | os.PathLike) else "model"
