"""The wrapper of all public functions on CPython, which turns wrong arguments into an EmberletError. A working call
costs one more Python call.

Nothing is checked beforehand: interface/wrong_arguments.py, loaded on the first failure, compares the arguments with
the function's declaration. Only the few calls that mean something else in PyTorch are adapted
(interface/elsewhere/calls.py); keyword arguments by other libraries' names are understood once a call has failed
(interface/elsewhere/names.py).
"""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from types import FunctionType
from typing import Any

from .documenting import with_example
from .python_numbers import as_python, holds_complex

# Once there are complex numbers, what looks at the arguments of every call and at its result (complex_tensors/gate.py).
complex_gate: list[Any] = []


def guarded(function: Any) -> Any:
    """`function`, wrapped; also set in its module, so that it can be pickled. Classes and coroutines are returned
    unchanged."""
    if not isinstance(function, FunctionType) or function.__code__.co_flags & 0x80 or hasattr(function, "is_gate"):
        return function

    adapt = _adapter(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            gated, called = bool(complex_gate), function
            if gated:
                called, args, kwargs = complex_gate[0](function, args, kwargs)
            if adapt and called is function:
                args, kwargs = adapt(args, kwargs)
            found = called(*args, **kwargs)
            if complex_gate:
                # The first complex numbers of the program: the gate has not seen these arguments yet.
                if not gated and holds_complex((args, kwargs)):
                    return call(*args, **kwargs)
                complex_gate[1](found)
            return found
        except MemoryError:  # an explanation would need more
            raise
        except Exception as error:
            if adapt and type(error).__module__ == adapt.__module__:  # it says what to write
                raise
            again = _as_meant(function, call, args, kwargs, error)
            if again is None:
                raise
            return again[0]

    call.__doc__ = with_example(function.__doc__, function)
    call.__wrapped__ = getattr(function, "__wrapped__", function)
    call.is_gate = True  # type: ignore[attr-defined]
    home = vars(sys.modules[function.__module__])
    for name in [name for name, value in home.items() if value is function]:  # an operator's may be another's, renamed
        home[name] = call
    return call


def _adapter(function: FunctionType) -> Any:
    """What turns the arguments that PyTorch would be given; None for nearly all functions."""
    if not function.__module__.startswith("emberlet.functional"):
        return None
    # By name: an import statement would be a circle, since the modules import Tensor.
    return import_module("emberlet.host.interface.elsewhere.calls").ADAPTERS.get(function.__name__)


def _as_meant(
    function: FunctionType, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> tuple[Any] | None:
    """The result, in a tuple, of a call that failed by the names or the types of its arguments; None if these are as
    they should be. Raises the error that explains another mistake."""
    if kwargs and isinstance(error, TypeError):
        renamed = import_module("emberlet.host.interface.elsewhere.names").renamed(function, kwargs)
        if renamed is not None:
            return (call(*args, **renamed),)
    if function.__name__ == "asarray" and isinstance(error, TypeError):
        made = import_module("emberlet.host.complex_tensors.lists").from_lists(*args, **kwargs)
        if made is not None:
            return (made,)
    plain = as_python((args, kwargs))
    if plain[0] is not args or plain[1] is not kwargs:
        return (call(*plain[0], **plain[1]),)
    told = import_module("emberlet.host.interface.wrong_arguments").explained(function, args, kwargs, error)
    if told is None:
        return None
    raise told from error
