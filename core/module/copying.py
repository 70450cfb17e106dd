"""Copying a module and moving one to another backend."""

from ..backend import Backend, get_backend
from ..param import Param
from ..tensor import Tensor
from . import Module, items


def clone(module):
    return rebuilt(module, {}, lambda leaf: leaf.clone() if isinstance(leaf, Param) else alias(leaf), True)


def alias(tensor):
    """Another tensor of the same elements: assigning to one of the two does not change the other."""
    return Tensor(tensor.data, tensor.dtype, tensor.shape, tensor.backend)


def move(module, backend):
    return rebuilt(module, {}, lambda leaf: leaf.to(backend), False, get_backend(backend))


def rebuilt(value, memo, change, copy, backend=None):
    """`value` with every Param and Tensor changed: a copy, or the same modules with their attributes replaced.

    memo: id of an original -> its result, so that shared objects stay shared. backend: the one that modules get whose
    own backend is an attribute, because they create tensors from none.
    """
    whole = isinstance(value, Module) or _holds_tensors(value)
    if not whole and not isinstance(value, (Param, Tensor, list, tuple, dict)):
        return value
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, (Param, Tensor)):
        memo[id(value)] = out = change(value)
    elif whole:
        memo[id(value)] = out = object.__new__(type(value)) if copy else value
        for key, child in list(value.__dict__.items()):
            own = backend and key == "backend" and isinstance(child, Backend)
            child = backend if own else rebuilt(child, memo, change, copy, backend)
            try:
                setattr(out, key, child)
            except AttributeError:  # a frozen dataclass
                object.__setattr__(out, key, child)
    elif isinstance(value, dict):
        memo[id(value)] = out = type(value)() if copy else value
        for key, child in items(value):
            out[key] = rebuilt(child, memo, change, copy, backend)
    elif isinstance(value, list):
        memo[id(value)] = out = [] if copy else value
        for i, child in items(value):
            child = rebuilt(child, memo, change, copy, backend)
            if copy:
                out.append(child)
            else:
                out[i] = child
    else:
        parts = [rebuilt(child, memo, change, copy, backend) for child in value]
        out = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)  # a named tuple stays one
        memo[id(value)] = out
    return out


def _holds_tensors(value):
    """Whether it is an object with tensors as attributes, such as an LstmState."""
    parts = getattr(value, "__dict__", None)
    if not parts or isinstance(value, (type, Tensor, Param, Backend)):
        return False
    return any(isinstance(parts[key], Tensor) for key in parts)
