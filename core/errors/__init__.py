"""The errors of emberlet: one family, so that `except EmberletError` catches everything the library raises on purpose.

A message names the file, node or tensor, what was found, what was expected, and what to do about it.
"""


class EmberletError(Exception):
    """Base of every error emberlet raises on purpose."""


# MicroPython cannot inherit from two built-in exceptions.
_Type, _Value, _Index = (TypeError, ValueError, IndexError) if hasattr(memoryview, "cast") else (object,) * 3


class ShapeError(EmberletError, _Value):  # type: ignore[misc, valid-type]
    """Shapes that do not fit together. A ValueError too (not on MicroPython)."""


class AxisError(ShapeError, _Index):  # type: ignore[misc, valid-type]
    """An axis that does not exist. A ValueError and an IndexError too (not on MicroPython)."""


class IndexingError(EmberletError, _Index):  # type: ignore[misc, valid-type]
    """An index outside its axis, or one that is not understood. An IndexError too (not on MicroPython)."""


class DTypeError(EmberletError, _Type):  # type: ignore[misc, valid-type]
    """A dtype an operation is not defined for, two that do not mix, or an argument of another type than the function
    takes. A TypeError too (not on MicroPython)."""


class BackendError(EmberletError):
    """A backend that is unknown, not installed, or that met a failure of its device."""


class FormatError(EmberletError):
    """A file that is not what it says it is: truncated, malformed, or past a limit."""


class LoadError(EmberletError):
    """Weights that do not fit the module they are loaded into."""


class UnsupportedError(EmberletError):
    """Something well-formed that this backend, port or release does not do."""


class ModelError(EmberletError):
    """A model that is malformed or uses what is not supported; lists every problem with the node it sits at."""


def refuse(what, *found):
    """Raise the error that `what` names in refusals.py. The words are loaded only now: a device that meets no error
    never holds them."""
    from .refusals import refuse

    refuse(what, found)
