"""Visitors and mappers of a module's parameters."""

from ..errors import ArgumentError, DTypeError, ShapeError
from ..param import Param
from . import leaves
from .copying import alias, rebuilt


def visit(module, visitor):
    """See Module.visit."""
    call = _function(visitor, "visit")
    for name, param in module.named_params():
        if call:
            call(name, param)
        else:
            of_kind = getattr(visitor, "visit_" + _kind(param), None)
            if of_kind:
                of_kind(param.id, param.val())


def mapped(module, mapper):
    """See Module.map."""
    call = _function(mapper, "map")
    values = {}  # id of a Param -> its value
    packed = {}  # id of a quantized weight -> (it, its new floats)
    memo = {}
    for name, holder, _, param in leaves(module, Param):
        if hasattr(holder, "cast_values"):
            if id(holder) not in packed:
                packed[id(holder)] = holder, _floats(name, holder, mapper, call)
        elif id(param) not in values:
            old = param.val()
            given = alias(old)
            of_kind = None if call else getattr(mapper, "map_" + _kind(param), None)
            value = call(name, given) if call else of_kind(param.id, given) if of_kind else given
            values[id(param)] = old if value is given and given.data is old.data else value

    def change(leaf):
        if not isinstance(leaf, Param):
            return alias(leaf)
        value = values.get(id(leaf), leaf)  # the Param itself: a part of a quantized weight, which is set below
        return leaf.clone() if value is leaf or value is leaf.val() else leaf.clone().set(value)

    made = rebuilt(module, memo, change, True)
    for key in packed:
        value = packed[key][1]
        if value is not None:
            memo[key].cast_values(value.dtype)
            memo[key].set(value)
    return made


def _floats(name, weight, mapper, call):
    """What a mapper makes of a quantized weight, dequantized; None if it returns what it is given."""
    name = name[: max(name.rfind("."), 0)]  # "" for the weight itself
    old = weight.val()
    given = alias(old)
    of_float = None if call else getattr(mapper, "map_float", None)
    if not call and not of_float:
        return None
    value = call(name, given) if call else of_float(weight.values.id, given)
    if value is given and value.data is old.data:
        return None
    from .casting import FLOATS

    if getattr(value, "dtype", None) not in FLOATS:
        raise DTypeError(
            "a mapper is given the quantized weight {!r} as floats and returns a Tensor of float16, bfloat16, float32 "
            "or float64, which is quantized again; found {}".format(name, getattr(value, "dtype", value))
        )
    if value.shape != weight.shape:
        raise ShapeError(
            "the quantized weight {!r} keeps its shape {}; the mapper returned {}".format(
                name, weight.shape, value.shape
            )
        )
    return value


def _function(given, verb):
    """The function of a visitor or mapper that takes names; None if it has Burn's methods."""
    found = getattr(given, verb, given)
    if callable(found):
        return found
    for kind in ("float", "int", "bool"):
        if hasattr(given, verb + "_" + kind):
            return None
    raise ArgumentError("{0} takes a function, or an object with {0} or {0}_float, found {1!r}".format(verb, given))


def _kind(param):
    kind = param.dtype.kind
    return "int" if kind == "uint" else kind
