"""The methods of Module that act on all its parameters at once; `__init__.py` imports them on first use."""

from ..param import Param
from ..tensor import Tensor
from . import leaves


def params(module):
    seen = {}
    found = []
    for _, param in module.named_params():
        if id(param) not in seen:
            seen[id(param)] = True
            found.append(param)
    return found


def num_params(module):
    return sum([p.size for p in module.params()])


def visit(module, visitor):
    call = getattr(visitor, "visit", visitor)
    for name, param in module.named_params():
        call(name, param)


def map(module, mapper):
    call = getattr(mapper, "map", mapper)
    seen = {}
    for name, param in module.named_params():
        if id(param) not in seen:
            seen[id(param)] = True
            param.set(call(name, param.val()))
    return module


def no_grad(module):
    for param in module.params():
        param.set_require_grad(False)
    return module


def backends(module):
    found = []
    for _, _, _, leaf in leaves(module, (Param, Tensor)):
        backend = leaf.backend
        if not any(b is backend for b in found):
            found.append(backend)
    return found
