"""Modules in training: on the autodiff backend around their own, and back."""

from ..module.copying import alias, rebuilt
from ..param import Param
from .backend import Autodiff, around


def _around(backend):
    return backend if isinstance(backend, Autodiff) else around(backend)


def train(module):
    """Move the module to the autodiff backend around its own; see `Module.train`."""
    if "backend" in module.__dict__:
        module.backend = _around(module.backend)
    return rebuilt(module, {}, lambda leaf: leaf.to(_around(leaf.backend)), False)


def trained(module):
    """A copy of the module on the autodiff backend around its own, whatever that is."""

    def change(leaf):
        if isinstance(leaf, Param):
            return leaf.clone().set(around(leaf.backend).from_inner(leaf.val()))
        return around(leaf.backend).from_inner(leaf)

    return rebuilt(module, {}, change, True)


def _inside(x):
    return alias(x.data.inner) if isinstance(x.backend, Autodiff) else alias(x)


def valid(module):
    """A copy of the module on the inner backend, sharing all values; see `Module.valid`."""

    def change(leaf):
        if not isinstance(leaf.backend, Autodiff):
            return leaf
        return leaf.clone().set(_inside(leaf.val())) if isinstance(leaf, Param) else _inside(leaf)

    out = rebuilt(module, {}, change, True)
    if isinstance(out.__dict__.get("backend"), Autodiff):
        out.backend = out.backend.inner
    return out
