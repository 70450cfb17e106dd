"""Model: the base of generated models, which know where their weights are.

A generated module sets attributes on its class. WEIGHTS: the name of a burnpack that lies beside the module's file; or
EMBEDDED: the burnpack itself, bytes in the module, used in place. INPUTS and OUTPUTS: a tuple (name, dtype, shape) for
each, in their order. The name is the file's own, the dtype a name too; the shape has an int where a size is fixed, a
name where equal names stand for equal sizes, None where nothing is known; it is None itself where not even the rank is
known, or where the value is no tensor and `dtype` says in words what it is.
"""

from ..burnpack import Burnpack
from ..module import Module


class Model(Module):
    """`M(backend)` has no weights yet, and makes random ones if it is run; `M.from_file`, `M.from_bytes`,
    `M.from_embedded` and `M.default` load them. Each takes a backend's name, a Backend, or None for the default."""

    WEIGHTS = None
    EMBEDDED = None
    try:
        from ..host.model_calls import __call__
    except ImportError:  # a device takes tensors as they are
        pass

    @classmethod
    def from_file(cls, path, backend=None, zero_copy=False):
        """The model with the weights of the burnpack at `path` (a path without extension is tried with `.bpk`).

        zero_copy: see Burnpack.from_file.

        Raises OSError, FormatError where it is no burnpack, LoadError where its tensors do not fit.
        """
        return cls._loaded(Burnpack.from_file(path, zero_copy), backend)

    @classmethod
    def from_bytes(cls, data, backend=None):
        """The model with the weights of a burnpack in memory, which stays in use. Raises FormatError, LoadError."""
        return cls._loaded(Burnpack.from_bytes(data), backend)

    @classmethod
    def from_embedded(cls, backend=None):
        """The model with the weights that its own module carries. Raises LoadError where it carries none."""
        from .weights import embedded

        return embedded(cls, backend)

    @classmethod
    def default(cls, backend=None):
        """The model with its own weights: those in its module, else the file WEIGHTS beside it."""
        from .weights import default

        return default(cls, backend)

    @classmethod
    def _loaded(cls, pack, backend):
        model = cls(backend)
        model.load_record(pack)
        return model
