"""What a model returned while it was traced: its tensors are taken out, and each call puts its own in their places."""

from ..dtypes import DType
from ..tensor import Tensor
from . import Backend

_set = getattr(object, "__setattr__", setattr)  # for frozen dataclasses; some builds of MicroPython have no other
DEEPEST = 100  # objects within one another; those that refer to themselves have no end


def disassemble(value, leaf, refusal, deep=0):
    """The structure of a value: ("tensor", number), ("value", what holds no tensor that changes), (list or a class
    of tuples, parts), (dict, [(key, part)]) or ("object", (class, [(name, part)])). leaf: gives the structure of a
    Tensor. Raises refusal(text), an error, for a value that may hold tensors elsewhere, or that no call could make
    again, such as an OrderedDict."""
    if isinstance(value, Tensor):
        return leaf(value)
    if value is None or isinstance(value, (bool, int, float, str, bytes, DType, Backend)):
        return ("value", value)
    if deep < DEEPEST:
        if type(value) is list or (isinstance(value, tuple) and not getattr(value, "__dict__", None)):
            return (type(value), [disassemble(v, leaf, refusal, deep + 1) for v in value])
        if type(value) is dict:
            return (dict, [(k, disassemble(value[k], leaf, refusal, deep + 1)) for k in value])
        parts = None if isinstance(value, (list, tuple, dict)) else getattr(value, "__dict__", None)
        if isinstance(parts, dict) and _is_remade(type(value)):  # such as AttentionOutput
            return ("object", (type(value), [(k, disassemble(parts[k], leaf, refusal, deep + 1)) for k in parts]))
    raise refusal("the model returns a {}, whose parts are not known".format(type(value).__name__))


def _is_remade(kind):
    """Whether an object of a class is its `__dict__`."""
    try:
        object.__new__(kind)
    except TypeError:
        return False
    return not [k for k in getattr(kind, "__mro__", (kind,)) if getattr(k, "__slots__", ())]


def assemble(structure, tensors, constant=None):
    """The value with these tensors. constant: gives what a call returns for a Tensor that no call changes."""
    kind, parts = structure
    if kind == "tensor":
        return tensors[parts]
    if kind == "value":
        return constant(parts) if constant and isinstance(parts, Tensor) else parts
    if kind == "object":
        out = object.__new__(parts[0])
        for k, v in parts[1]:
            _set(out, k, assemble(v, tensors, constant))
        return out
    if kind is dict:
        return {k: assemble(v, tensors, constant) for k, v in parts}
    whole = [assemble(v, tensors, constant) for v in parts]
    if kind is list or kind is tuple:
        return kind(whole)
    if hasattr(tuple, "__new__"):
        return tuple.__new__(kind, whole)
    return kind(*whole) if hasattr(kind, "_fields") else kind(whole)  # MicroPython


def leaves(structure):
    """All ("tensor", number) and ("value", …) of a structure."""
    kind, parts = structure
    if kind in ("tensor", "value"):
        return [structure]
    if kind is dict or kind == "object":
        parts = [part for _, part in (parts if kind is dict else parts[1])]
    return [leaf for part in parts for leaf in leaves(part)]
