"""Says in words that memory ran out."""

from __future__ import annotations

import re
import sys

from ..errors import ModelError

ADVICE = "free some, or allow the process more (`ulimit -v`, a container's limit)"
# What the dynamic loader and protobuf say where there is no room.
_WORDS = ("failed to map segment", "annot allocate memory", "Arena alloc failed")


class OutOfMemoryError(ModelError, MemoryError):
    """There was less memory than a model needed. A MemoryError too."""


def out_of_memory(error: BaseException) -> bool:
    """Whether an error is due to a lack of memory, also one of a library that has no MemoryError."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _WORDS)


def error_text(error: BaseException, length: int = 200) -> str:
    """The text of an error, at most so long; one that is due to memory says so."""
    text = shortened(error)[:length]
    if out_of_memory(error) and not isinstance(error, OutOfMemoryError):
        return f"out of memory ({text})" if text else "out of memory"
    return text or type(error).__name__


def shortened(error: BaseException) -> str:
    """The text of an error; of NumPy's pages about a failed import, the line with the cause. Without the objects that
    Python names by their address, such as a file in memory."""
    text = re.sub(r" ?<[\w.]+ object at 0x[0-9a-f]+>", "", str(error).strip())
    _, found, cause = text.partition("Original error was: ")
    return cause.strip().splitlines()[0] if found and cause.strip() else text


def room() -> int | None:
    """The bytes of addresses that `ulimit -v` leaves this process; None without such a limit, and outside Linux."""
    if sys.platform != "linux":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    with open("/proc/self/statm", encoding="ascii") as file:
        return max(0, limit - int(file.read().split()[0]) * resource.getpagesize())
