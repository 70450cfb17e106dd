"""The one gate of the public functions on CPython: wrong arguments end in an error of the EmberletError family.

A call that works pays one Python call for it. Nothing is checked beforehand: interface/wrong_arguments.py, loaded on
the first failure, compares the arguments with what the function's declaration says.
"""

from __future__ import annotations

import functools
import sys
from types import FunctionType
from typing import Any


def guarded(function: Any) -> Any:
    """`function` behind the gate, set in its module, too, so that it can be pickled. Classes and coroutines are not
    changed."""
    if not isinstance(function, FunctionType) or function.__code__.co_flags & 0x80 or hasattr(function, "is_gate"):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            from .interface.wrong_arguments import explained

            told = explained(function, args, kwargs, error)
            if told is None:
                raise
            raise told from error

    call.__wrapped__ = getattr(function, "__wrapped__", function)
    call.is_gate = True  # type: ignore[attr-defined]
    home = vars(sys.modules[function.__module__])
    for name in [name for name, value in home.items() if value is function]:  # an operator's may be another's, renamed
        home[name] = call
    return call
