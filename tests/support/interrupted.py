"""A KeyboardInterrupt at a chosen line of the library, as if Ctrl-C had been pressed there."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

# CPython runs signal handlers where functions begin, after calls and in loops, but not before any line: these functions
# end with what has to be done in any case, or their exceptions are ignored.
_SKIPPED = ("__del__", "__enter__", "__exit__", "disown", "forget", "free", "items", "recycle", "<listcomp>")


def _no_place(frame: FrameType) -> bool:
    """Whether no signal is handled at the line: a `with`, which comes again before `__exit__`, or a `try`."""
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith(("with ", "try:"))


def _raise() -> None:
    raise KeyboardInterrupt


def interrupted(call: Callable[[], Any], at: int, handle: Callable[[], Any] = _raise) -> bool:
    """Call it, with an interrupt before line number `at` that the library executes; False if it has fewer lines.
    handle: what the signal's handler does."""
    left = at

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        name = frame.f_code.co_name
        module = frame.f_globals.get("__name__", "")
        if "emberlet" not in module or name in _SKIPPED or (module, name) == ("emberlet.session", "step"):
            return None
        if event == "line" and not _no_place(frame):
            left -= 1
            if left == 0:
                sys.settrace(None)
                handle()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return handle is not _raise and left <= 0
