"""Where a generated model finds its own weights: in its module, or in a file beside it."""

import sys

from ..burnpack import Burnpack
from ..errors import refuse


def default(cls, backend):
    """The model with the weights in its module, else with those beside it."""
    if cls.EMBEDDED is not None:
        return cls.from_embedded(backend)
    return cls._loaded(weights_file(cls), backend)


def embedded(cls, backend):
    """The model with the weights in the module of `cls`."""
    if cls.EMBEDDED is None:
        refuse("not embedded", cls.__name__)
    pack = Burnpack.from_bytes(_word_aligned(cls.EMBEDDED), cls.__name__ + ".EMBEDDED")
    return cls._loaded(pack, backend)


def weights_file(cls):
    """The burnpack in the file WEIGHTS beside the module, also inside an archive.

    Raises OSError, FormatError.
    """
    name = cls.WEIGHTS
    if name is None:
        refuse("no weights", cls.__name__)
    while "WEIGHTS" not in cls.__dict__:
        cls = cls.__bases__[0]
    module = sys.modules.get(cls.__module__)
    path = (getattr(module, "__file__", None) or "").replace("\\", "/")
    path = path[: path.rfind("/") + 1] + name
    loader = getattr(module, "__loader__", None)
    if hasattr(loader, "archive"):  # zipimport's
        from ..host.archives import weights

        return weights(loader, path)
    return Burnpack.from_file(path)


def _word_aligned(data):
    """`data`, or a copy if its address is not a multiple of four: words are read in place, and a Cortex-M0+ faults on
    unaligned ones. MicroPython puts constants anywhere in flash; CPython aligns them to 16 bytes."""
    try:
        from uctypes import addressof
    except ImportError:
        return data
    return data if addressof(data) % 4 == 0 else bytearray(data)
