"""Gradients: a backend that wraps a backend and records what is computed, so that it can be differentiated.

    backend = emberlet.get_backend("autodiff:numpy")      # or emberlet.autodiff("numpy")
    x = emberlet.asarray([1.0, 2.0], backend=backend).require_grad()
    grads = (x * x).sum().backward()
    x.grad(grads)                                          # a tensor on "numpy"

Nothing is global. The graph hangs on the tensors (tape.py), the rules of the primitives are in rules/, one file for
each family, and functions whose backward is faster or more stable than that of their primitives are in composites/.
Everything else is differentiable because it is computed from primitives. A model on a plain backend loads none of this.
"""

import sys

_HOMES = {
    "Autodiff": "backend",
    "Gradients": "tape",
    "backward": "extending",
    "checkpoint": "checkpointing",
    "straight_through": "layers",
}


def autodiff(inner=None, strategy=None):
    """The Autodiff backend around `inner`: a name, a Backend, or None for the default; always the same one for the same
    backend and strategy. strategy: see `Autodiff`. On CPython `emberlet.autodiff(…)` is this function.

    Raises BackendError for an unknown name.
    """
    from ..backend import get_backend
    from .backend import COMPUTE, Autodiff

    inner = get_backend(inner)
    strategy = strategy or COMPUTE
    known = inner.__dict__.get("_autodiff")
    if known is None:
        known = inner._autodiff = {}
    found = known.get(strategy)
    if found is None:
        found = known.setdefault(strategy, Autodiff(inner, strategy))
    return found


def __getattr__(name):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError("module 'emberlet.autodiff' has no attribute " + repr(name))
    found = getattr(__import__("emberlet.autodiff." + home, None, None, ("*",)), name)
    globals()[name] = found
    return found


if hasattr(memoryview, "cast"):  # not on MicroPython, whose modules cannot be called

    class _Module(type(sys)):
        def __call__(self, inner=None, strategy=None):
            return autodiff(inner, strategy)

        def __dir__(self):
            return sorted(__all__)

    __all__ = ["autodiff"] + list(_HOMES)
    sys.modules[__name__].__class__ = _Module
