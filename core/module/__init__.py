"""Module: the base of layers and models, a tree of parameters that is found by looking at attributes.

Whatever a module holds counts: a Param is a parameter, a Module a child, and lists, tuples and dicts of these are
looked into, to any depth. A plain Tensor is a constant: `to` moves it, records leave it out. Everything else, None
included, is left alone, and so a field may hold one of several layers, or none. A parameter's name is its path:
"blocks.0.weight".
"""

from ..errors import refuse
from ..param import Param


class Module:
    """Subclass it, set Params and Modules as attributes in __init__ (there is no need to call this class's), and write
    `forward`. Calling the module calls it."""

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def forward(self, *args, **kwargs):
        refuse("forward", type(self).__name__)

    # -- parameters --------------------------------------------------------------------------------------------------

    def named_params(self):
        """(name, Param) of every parameter, in the order of the attributes; one that is held twice comes twice."""
        for name, _, _, param in leaves(self, Param):
            yield name, param

    def params(self):
        """The Params, each once."""
        from .methods import params

        return params(self)

    def num_params(self):
        """Number of elements of all parameters; nothing is initialized."""
        from .methods import num_params

        return num_params(self)

    def visit(self, visitor):
        """Call visitor(name, param), or visitor.visit(name, param), for every parameter."""
        from .methods import visit

        visit(self, visitor)

    def map(self, mapper):
        """Replace every parameter's value by mapper(name, tensor), or mapper.map(name, tensor). Returns self."""
        from .methods import map

        return map(self, mapper)

    def no_grad(self):
        """Mark every parameter as one that needs no gradient. Returns self."""
        from .methods import no_grad

        return no_grad(self)

    def valid(self):
        """This module, for inference: no backend here differentiates, so it is the same."""
        return self

    # -- backends ----------------------------------------------------------------------------------------------------

    def backends(self):
        """The backends on which the parameters and constants are, or will be made."""
        from .methods import backends

        return backends(self)

    def to(self, backend):
        """Move every parameter and constant to another backend; a lazy parameter stays lazy. Returns self."""
        from .copying import move

        return move(self, backend)

    def clone(self):
        """A copy with Params of its own, of the same identities; lazy ones stay lazy."""
        from .copying import clone

        return clone(self)

    def fork(self, backend):
        """A copy on another backend; this module stays where it is."""
        return self.clone().to(backend)

    def compile(self, *examples, backend="wgpu", tune=False):
        """A callable that runs this module as one plan on a GPU, planned for the dtypes and shapes of `examples`.

        The parameters move to `backend`. Other shapes get plans of their own when first met. tune: measure first which
        kernels suit the device best. See docs/wgpu.md.
        """
        from ..wgpu_backend.compiled import compile

        return compile(self, *examples, backend=backend, tune=tune)

    # -- records -----------------------------------------------------------------------------------------------------

    def to_record(self):
        """The parameters' values, by name, as a Record."""
        from .record import record_of

        return record_of(self)

    def load_record(self, record, strict=True):
        """Take the values from a Record, an open Burnpack or a dict of name -> Tensor; returns a LoadReport.

        Widths are converted to the parameters' dtypes; no initializer runs. Raises LoadError, listing all names, where
        shapes or kinds of number differ and, unless strict is False, where names are missing or left over. Then
        nothing is loaded.
        """
        from .loading import load

        return load(self, record, strict)

    def save_file(self, path, precision=None, metadata=None):
        """Write the parameters to a burnpack at `path`; returns its size in bytes.

        precision: None to store what is computed with, else "double" (float64, int64), "full" (float32, int32),
        "half" (float16, int16) or "bfloat16" (bfloat16, int16), whatever the parameters' own dtypes. metadata: text ->
        text. Raises DTypeError where an integer does not fit, OSError; then a file that was there is as it was.
        """
        return self.to_record().save(path, precision, metadata)

    def load_file(self, path, strict=True):
        """`load_record` from the burnpack at `path`."""
        from ..burnpack import Burnpack

        return self.load_record(Burnpack.from_file(path), strict)

    # -- display -----------------------------------------------------------------------------------------------------

    def custom_settings(self):
        """DisplaySettings for printing this module and its children, or None. Override it."""
        return None

    def custom_content(self, content):
        """Add what is to be printed to `content` and return it, or return None for the default. Override it."""
        return None

    def __repr__(self):
        from .display import format_module

        return format_module(self)


def items(value):
    """(key, child) pairs of a module or container."""
    if isinstance(value, Module):
        return list(value.__dict__.items())
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value))


def leaves(value, kind, prefix="", path=()):
    """(name, holder, key, leaf) of every leaf of the class (or classes) `kind` in the tree below `value`."""
    path += (value,)
    for key, child in items(value):
        if isinstance(child, kind):
            yield prefix + str(key), value, key, child
        elif isinstance(child, (Module, list, tuple, dict)):
            if not any(p is child for p in path):  # a child that knows its parent
                yield from leaves(child, kind, prefix + str(key) + ".", path)
