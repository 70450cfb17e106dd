"""Makes a generated model return and store its weights as separate tensors.

A weight belongs to the module: assigning to the result of `self.w.val()` changes the model. Operations make new
tensors, so they may take the weight itself. A weight that reaches a variable, a list or the caller is passed as
`.detach()`: a tensor over the same memory, copied on the first write.
"""

from __future__ import annotations

from dataclasses import replace

from .expression import Attribute, Binary, Call, Conditional, Expr, List, Name, Tuple
from .statement import Assign, Def, Do, For, If, Return, Statement, While

_KEEP_THEIR_ARGUMENTS = ("append", "sequence_insert")


def hand_on(statements: list[Statement]) -> list[Statement]:
    """The statements, with each parameter that is bound, collected or returned replaced by a separate tensor."""
    return [_statement(s) for s in statements]


def _statement(s: Statement) -> Statement:
    match s:
        case Assign(value=value):
            return replace(s, value=_value(value))
        case Do(value=value):
            return Do(_value(value))
        case Return(values=values):
            return Return(tuple(map(_value, values)))
        case If(test, then, otherwise):
            return If(test, hand_on(then), hand_on(otherwise))
        case For(target, iterable, body):
            return For(target, _value(iterable), hand_on(body))
        case While(test, body):
            return While(test, hand_on(body))
        case Def(name, parameters, body):
            return Def(name, parameters, hand_on(body))
        case _:
            return s


def _value(e: Expr) -> Expr:
    """An expression whose value is stored or returned."""
    match e:
        case Call(Attribute(_, "val"), ()):
            return Call(Attribute(e, "detach"))
        case Call(Attribute(_, name), args) if name in _KEEP_THEIR_ARGUMENTS:
            return replace(e, args=tuple(map(_value, args)))
        case Call(Name("zip"), args):
            return replace(e, args=tuple(map(_value, args)))
        case Tuple(items):
            return Tuple(tuple(map(_value, items)))
        case List(items):
            return List(tuple(map(_value, items)))
        case Conditional(test, then, otherwise):
            return Conditional(test, _value(then), _value(otherwise))
        case Binary("+", left, right):  # of lists
            return Binary("+", _list(left), _list(right))
        case _:
            return e


def _list(e: Expr) -> Expr:
    return _value(e) if isinstance(e, List | Binary) else e
