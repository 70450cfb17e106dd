"""Casting a module: its floats in another dtype."""

from .. import dtypes
from ..errors import DTypeError
from ..param import Param
from ..tensor import Tensor
from . import leaves
from .copying import rebuilt
from .narrowing import choose

FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


def cast(module, dtype):
    """See Module.cast."""
    dtype = dtypes.dtype(dtype)
    if dtype not in FLOATS:
        raise DTypeError(
            "a module is cast to float16, bfloat16, float32 or float64, not to {}; quantize_weights makes weights "
            "smaller than that".format(dtype)
        )
    found = {}  # name -> leaf, each leaf once
    known = {}
    packed = []
    for name, holder, key, leaf in leaves(module, (Param, Tensor)):
        if hasattr(holder, "cast_values"):
            packed.append(holder)
        elif hasattr(holder, "keeps") and holder.keeps(key):
            known[id(leaf)] = True
        elif id(leaf) not in known:
            known[id(leaf)] = True
            found[name] = leaf
    chosen = choose(
        {name: (leaf.dtype, _reader(leaf)) for name, leaf in found.items()},
        lambda own: dtype if own in FLOATS else own,
    )
    # All values are computed before the first one is set: an interrupt while they are computed changes nothing.
    new = {}  # id of a leaf -> its dtype, and its value if it has one
    for name in found:
        leaf, kind = found[name], chosen[name]
        if kind is not leaf.dtype:
            lazy = isinstance(leaf, Param) and not leaf.is_initialized
            new[id(leaf)] = kind, None if lazy else _reader(leaf)().astype(kind)

    def change(leaf):
        if id(leaf) not in new:
            return leaf
        kind, value = new[id(leaf)]
        if isinstance(leaf, Param):
            return leaf.cast(kind) if value is None else leaf.set(value)
        return value

    for holder in packed:
        holder.cast_values(dtype)
    return rebuilt(module, {}, change, False)


def _reader(leaf):
    """A function that reads a leaf's values; those of a lazy Param do not exist yet, so it has none."""
    if isinstance(leaf, Tensor):
        return lambda: leaf
    if leaf.is_initialized:
        return leaf.val
    return lambda: leaf.backend.full((0,), 0, leaf.dtype)
