"""Calling a generated model: tensors that fit INPUTS go straight to `forward`, everything else through model_inputs."""

from __future__ import annotations

from typing import Any

from ..module import Module, leaves
from ..param import Param
from .model_inputs import bind, fits


def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a Model's `forward`. An input may be a Tensor, an array, nested lists or a number; all of them may be one
    dict by name. They are checked against INPUTS. Raises DTypeError, ShapeError, EmberletError."""
    entries = getattr(self, "INPUTS", None)
    if entries is None:
        return self.forward(*args, **kwargs)
    if not kwargs and fits(entries, args) and all_at_home(self, args):
        return self.forward(*args)
    return self.forward(*bind(self, args, kwargs))


def all_at_home(model: Any, args: tuple[Any, ...]) -> bool:
    """Whether the Tensors lie on the backend of the model's first parameter; of a model without any, on one backend."""
    if not args:
        return True
    param = first_param(model)
    home = args[0].backend if param is None else param.backend
    return all(x.backend is home for x in args)


def first_param(module: Any) -> Any:
    """What named_params of a module gives first, without its generators; None where there is no parameter."""
    return _first_of(module.__dict__.values(), 0)


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
