"""Calling a generated model: tensors that match INPUTS go straight to `forward`, everything else through
model_inputs."""

from __future__ import annotations

from typing import Any

from ...module import Module, leaves
from ...param import Param
from ...tensor import Tensor
from .inputs import bind, fits

_FITTING: dict[int, tuple[Any, set[Any]]] = {}  # id of INPUTS -> itself, and the (dtype, shape)s of inputs that match
_FIRST: dict[type, list[str]] = {}  # model class -> the attributes that lead to its first parameter
MOST = 256  # the maximum number of entries of each, and of matches per INPUTS


def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a Model's `forward`. An input may be a Tensor, an array, nested lists or a number; all of them may be one
    dict by name. They are checked against INPUTS. Raises DTypeError, ShapeError, EmberletError."""
    entries = getattr(self, "INPUTS", None)
    if entries is None:
        return self.forward(*args, **kwargs)
    if not kwargs and fits_cached(entries, args) and on_one_backend(self, args):
        return self.forward(*args)
    return self.forward(*bind(self, args, kwargs))


def fits_cached(entries: Any, args: tuple[Any, ...]) -> bool:
    """`fits`, evaluated once for each combination of dtypes and shapes."""
    signature: list[Any] = []
    for x in args:
        if type(x) is not Tensor:
            return False
        signature += (x.dtype.name, x.shape)
    key = tuple(signature)
    kept = _FITTING.get(id(entries))
    if kept is not None and kept[0] is entries and key in kept[1]:
        return True
    if not fits(entries, args):
        return False
    if type(entries) is tuple:  # it is never changed
        if kept is None or kept[0] is not entries:
            if len(_FITTING) >= MOST:
                _FITTING.clear()
            kept = _FITTING[id(entries)] = (entries, set())
        if len(kept[1]) < MOST:
            kept[1].add(key)
    return True


def on_one_backend(model: Any, args: tuple[Any, ...]) -> bool:
    """Whether the Tensors are on the backend of the model's first parameter, or on one backend if there is no
    parameter."""
    if not args:
        return True
    param = model
    for name in _FIRST.get(type(model)) or ("",):
        param = getattr(param, "__dict__", _NOTHING).get(name)
    if type(param) is not Param:
        param = first_param(model)
    home = args[0].backend if param is None else param.backend
    for x in args:
        if x.backend is not home:
            return False
    return True


_NOTHING: dict[str, Any] = {}


def first_param(module: Any) -> Any:
    """The first parameter of a module, without the generators of named_params; None if there is none."""
    found = _first_of(module.__dict__.values(), 0)
    if found is not None:
        _remember(module, found)
    return found


def _remember(model: Any, param: Any) -> None:
    """Cache where the first parameter was found: the next call of a model of this class looks there first."""
    for name, child in model.__dict__.items():
        if child is param:
            way = [name]
        elif isinstance(child, Module) and (inner := [n for n, p in child.__dict__.items() if p is param]):
            way = [name, inner[0]]
        else:
            continue
        if len(_FIRST) >= MOST:
            _FIRST.clear()
        _FIRST[type(model)] = way
        return


def _first_of(children: Any, depth: int) -> Any:
    for child in children:
        kind = type(child)
        if kind is Param:
            return child
        if kind is int or child is None or (kind is tuple and child and type(child[0]) is int):
            continue  # sizes
        found = None
        if depth == 8:  # perhaps a child that knows its parent
            if isinstance(child, (Module, list, tuple, dict)):
                found = next((leaf[3] for leaf in leaves([child], Param)), None)
        elif isinstance(child, Module):
            found = _first_of(child.__dict__.values(), depth + 1)
        elif kind is dict:
            found = _first_of(child.values(), depth + 1)
        elif kind is list or kind is tuple:
            found = _first_of(child, depth + 1)
        elif isinstance(child, (Param, list, tuple, dict)):  # of a class of their own
            found = next((leaf[3] for leaf in leaves([child], Param)), None)
        if found is not None:
            return found
    return None
