"""The errors of emberlet: one family, so that `except EmberletError` catches everything the library raises on purpose.

A message names the file, node or tensor, what was found, what was expected, and what to do about it.
"""


class EmberletError(Exception):
    """Base of every error emberlet raises on purpose."""


# MicroPython cannot inherit from two built-in exceptions.
_Type, _Value, _Index = (TypeError, ValueError, IndexError) if hasattr(memoryview, "cast") else (object,) * 3


class ShapeError(EmberletError, _Value):  # type: ignore[misc, valid-type]
    """Incompatible shapes. A ValueError too (not on MicroPython)."""


class AxisError(ShapeError, _Index):  # type: ignore[misc, valid-type]
    """An axis that does not exist. A ValueError and an IndexError too (not on MicroPython)."""


class IndexingError(EmberletError, _Index):  # type: ignore[misc, valid-type]
    """An index out of range, or an invalid one. An IndexError too (not on MicroPython)."""


class DTypeError(EmberletError, _Type):  # type: ignore[misc, valid-type]
    """A dtype that an operation does not support, two incompatible dtypes, or an argument of the wrong type. A
    TypeError too (not on MicroPython)."""


class ArgumentError(EmberletError, _Value):  # type: ignore[misc, valid-type]
    """An argument that is not one of the values a function takes. A ValueError too (not on MicroPython)."""


class BackendError(EmberletError):
    """A backend that is unknown, not installed, or whose device failed."""


class FormatError(EmberletError):
    """An invalid file: truncated, malformed, or past a limit."""


class LoadError(EmberletError):
    """Weights that do not match the module they are loaded into."""


class UnsupportedError(EmberletError):
    """A valid request that this backend, port or release does not support."""


class ModelError(EmberletError):
    """A model that is malformed or uses unsupported features; lists every problem with its node."""


def refuse(what, *found):
    """Raise the error called `what` in refusals.py. The messages are loaded only now, so that they take no memory on a
    device that meets no error."""
    from .refusals import refuse

    refuse(what, found)
