"""Compiled models on NumPy: the traced graph as a list of NumPy calls into buffers that are made once.

tracing.py runs the model once and records which primitives it calls; lowering.py and its siblings write each as calls
of NumPy over arrays that have no memory yet; blocks.py cuts chains of elementwise calls to the size of the cache;
memory.py gives the arrays their memory, that of others whose time is over; plan.py runs the list; compiled.py is what
`model.compile(backend="numpy")` returns.
"""

from .compiled import Compiled, compile

__all__ = ["Compiled", "compile"]
