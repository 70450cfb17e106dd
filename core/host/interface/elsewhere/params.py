"""What Burn and PyTorch call the methods of Param, and the class itself completed on CPython."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

# a method elsewhere -> what it returns; none of them initializes a lazy Param, except the value's own
METHODS: dict[str, Callable[[Any], Any]] = {
    "consume": lambda p: (p.id, p.val()),
    "into_value": lambda p: p.val(),
    "is_require_grad": lambda p: p.require_grad,
    "lazy_device": lambda p: p.backend,
    "lazy_is_require_grad": lambda p: p.require_grad,
    "lazy_shape": lambda p: p.shape,
}
# an attribute elsewhere
VALUES: dict[str, Callable[[Any], Any]] = {"device": lambda p: repr(p.backend)}

ADVICE = {
    "data": "write param.val() for the tensor, param.set(tensor) to replace it",
    "from_mapped_value": "write Param(tensor, id).load_mapper(function)",
    "grad": "write param.val().grad(gradients), where backward returned the gradients",
    "param_mapper": "write param.load_mapper(function) and param.save_mapper(function)",
    "requires_grad": "write param.require_grad",
    "requires_grad_": "write param.set_require_grad(True)",
}


def attach(param: Any) -> None:
    """Complete the class Param."""
    for name, method in import_module("emberlet.param.methods").METHODS.items():
        setattr(param, name, method)

    def initialized(id: Any, value: Any) -> Any:
        """Burn's Param::initialized: `Param(value, id)`."""
        return param(value, id)

    param.initialized = staticmethod(initialized)
    param.__getattr__ = _find


def _find(self: Any, name: str) -> Any:
    if name in METHODS:
        return lambda: METHODS[name](self)
    if name in VALUES:
        return VALUES[name](self)
    absent = import_module("emberlet.host.interface.elsewhere.names").Absent
    raise absent("Param", name, lambda: dir(type(self)), ADVICE)
