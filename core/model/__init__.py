"""Model: the base of generated models, which know where their weights are.

A generated module sets class attributes. WEIGHTS: the name of a burnpack beside the module's file; or EMBEDDED: the
burnpack itself, bytes in the module, used in place. INPUTS and OUTPUTS: a tuple (name, dtype, shape) for each, in their
order. The name is that of the ONNX file, the dtype a string. In the shape an int is a fixed size, a string a symbolic
size (equal names, equal sizes), and None an unknown size. The shape itself is None if the rank is unknown, or if the
value is not a tensor, in which case `dtype` describes it in words.
"""

from ..burnpack import Burnpack
from ..module import Module


class Model(Module):
    """`M(backend)` has no weights yet, and initializes random ones when it is run; `M.from_file`, `M.from_bytes`,
    `M.from_embedded` and `M.default` load them. Each takes a backend's name, a Backend, or None for the default."""

    WEIGHTS = None
    EMBEDDED = None
    try:
        from ..host.models.calls import __call__
    except ImportError:  # a device requires tensors
        pass

    @classmethod
    def from_file(cls, path, backend=None, zero_copy=False):
        """The model with the weights of the burnpack at `path` (`.bpk` is tried if the path has no extension).

        zero_copy: see Burnpack.from_file. Raises OSError, FormatError if it is not a burnpack, LoadError if its tensors
        do not match.
        """
        return cls._loaded(Burnpack.from_file(path, zero_copy), backend)

    @classmethod
    def from_bytes(cls, data, backend=None):
        """The model with the weights of a burnpack in memory, which must stay unchanged. Raises FormatError,
        LoadError."""
        return cls._loaded(Burnpack.from_bytes(data), backend)

    @classmethod
    def from_embedded(cls, backend=None):
        """The model with the weights embedded in its module. Raises LoadError if there are none."""
        from .weights import embedded

        return embedded(cls, backend)

    @classmethod
    def default(cls, backend=None):
        """The model with its own weights: those embedded in its module, else the file WEIGHTS beside it."""
        from .weights import default

        return default(cls, backend)

    @classmethod
    def _loaded(cls, pack, backend):
        model = cls(backend)
        model.load_record(pack)
        return model
