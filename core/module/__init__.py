"""Module: the base of layers and models, a tree of parameters that is discovered through its attributes.

A Param is a parameter, a Module a child, and lists, tuples and dicts of these are searched to any depth. A plain Tensor
is a constant: `to` moves it, records omit it. Everything else, None included, is ignored, so a field may hold one of
several layers, or none. A parameter's name is its path: "blocks.0.weight".
"""

from ..errors import refuse
from ..param import Param


class Module:
    """Subclass it, set Params and Modules as attributes in __init__ (super().__init__() need not be called), and write
    `forward`. Calling the module calls it."""

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def forward(self, *args, **kwargs):
        """Computes the result; calling the module calls it. Subclasses override it."""
        refuse("forward", type(self).__name__)

    def named_params(self):
        """(name, Param) of every parameter, in the order of the attributes; a Param held twice is yielded twice."""
        for name, _, _, param in leaves(self, Param):
            yield name, param

    def load_record(self, record, strict=True, layout=None):
        """Take the values from a Record, an open Burnpack or a dict of name -> Tensor; returns this module.

        Values are converted to the parameters' dtypes; no initializer runs. layout: "burn" if the weights of Linear are
        (d_input, d_output), "pytorch" if they are transposed, as in a PyTorch state dict; None: what the file declares.
        Raises LoadError, listing all names, where shapes or kinds of number differ, where an integer does not fit
        the parameter's dtype and, unless strict is False, where names are missing or left over; also for a dict with
        square Linear weights and no layout, since their shape does not tell which it is. Then nothing is loaded.
        """
        from .loading import load

        return load(self, record, strict, layout)

    def __repr__(self):
        from .display import format_module

        return format_module(self)

    def __getattr__(self, name):
        # methods.py has what running a loaded model never asks for, and the class gets it when it is first used.
        from .methods import METHODS

        found = METHODS.get(name)
        if found is None:
            raise AttributeError(type(self), name)  # CPython says more: host/interface/module_gate.py
        setattr(Module, name, found)
        return getattr(self, name)


def items(value):
    """The (key, child) pairs of a module or container."""
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


if hasattr(memoryview, "cast"):  # not on MicroPython
    from ..host.interface.module_gate import attach

    attach(Module)
