"""Keyword arguments of Module's methods and of the classes of data, optim and train: those of other libraries are
understood, and a slip is answered with the nearest name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar

_Found = TypeVar("_Found")


def guard(found: _Found) -> _Found:
    """A class of these packages, whose constructor then explains wrong keywords; all else as it is."""
    init = vars(found).get("__init__") if isinstance(found, type) else None
    if isinstance(init, FunctionType) and not hasattr(init, "__wrapped__"):
        found.__init__ = explained(init, lambda self: type(self).__name__)  # type: ignore[misc]
    return found


def explained(function: FunctionType, name: Callable[[Any], str]) -> Any:
    """The method `function`; it understands other libraries' keywords and explains wrong ones. name: of what is called,
    for `self`."""

    @functools.wraps(function)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        except TypeError as error:
            if not kwargs or error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # not of this call
            # Not above: what nothing needs until a call fails.
            theirs = import_module("emberlet.host.interface.elsewhere.keywords").ours(function, kwargs, name(self))
            if theirs is None:
                raise
        return call(self, *args, **theirs)

    return call
