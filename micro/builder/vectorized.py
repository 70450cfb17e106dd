"""A kernel's lines for one element, computed by NumPy for all elements at once.

So a layer's arithmetic is written once: printed for boards, and computed here as its reference. A branch becomes a
choice for each element. What `try` guards is computed without its `except`: NumPy reports no errors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import erf
from textwrap import dedent
from types import CodeType
from typing import Any

import numpy as np
import numpy.typing as npt

_SAME = "abs ceil cos cosh exp floor log sin sinh sqrt tan tanh asarray where logical_and logical_or logical_not"
_ARCS = "asin acos atan asinh acosh atanh"
_CALLS: dict[str, Any] = {
    **{name: getattr(np, name) for name in _SAME.split()},
    **{name: getattr(np, "arc" + name[1:]) for name in _ARCS.split()},
    "erf": np.vectorize(erf, otypes=[np.float64]),
    "float": np.float64,
    "int": np.trunc,
    "pow": np.power,
    "round": np.rint,
}


def evaluate(lines: Sequence[str], result: str = "s", **names: Any) -> npt.NDArray[Any]:
    """What the lines leave in `result`. names: what they read; a buffer is an array, and an element an array of any
    shape that broadcasts with the others."""
    with np.errstate(all="ignore"):
        exec(_program("\n".join(lines), tuple(names)), _CALLS, names)
    return np.asarray(names[result])


@lru_cache(1024)
def _program(text: str, known: tuple[str, ...]) -> CodeType:
    return compile("\n".join(_flat(ast.parse(dedent(text)).body, "", {*known})), "kernel", "exec")


def _flat(body: Iterable[ast.stmt], where: str, known: set[str]) -> Iterable[str]:
    """The statements without branches. where: a name of the elements that they are for, or "" for all; known: names
    that have a value before."""
    for node in body:
        if isinstance(node, ast.If):
            test = f"_{len(known)}"
            known.add(test)
            before = f"{where} & " if where else ""
            yield f"{test} = {before}(asarray({_expression(node.test)}) != 0)"
            yield from _flat(node.body, test, known)
            if node.orelse:
                other = f"_{len(known)}"
                known.add(other)
                yield f"{other} = {before}~{test}"
                yield from _flat(node.orelse, other, known)
        elif isinstance(node, ast.Try):
            yield from _flat(node.body, where, known)
        else:
            yield _assignment(node, where, known)


def _assignment(node: ast.stmt, where: str, known: set[str]) -> str:
    assert isinstance(node, ast.Assign | ast.AugAssign), ast.unparse(node)
    name = node.targets[0] if isinstance(node, ast.Assign) else node.target
    assert isinstance(name, ast.Name), ast.unparse(node)
    value = node.value if isinstance(node, ast.Assign) else ast.BinOp(ast.Name(name.id), node.op, node.value)
    text = f"asarray({_expression(value)})"
    kept = where and name.id in known
    known.add(name.id)
    return f"{name.id} = where({where}, {text}, {name.id})" if kept else f"{name.id} = {text}"


def _expression(node: ast.expr) -> str:
    return ast.unparse(_Choices().visit(node))


class _Choices(ast.NodeTransformer):
    """Writes decisions about one number as choices for each of many."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return self._call("where", node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        first, *others = node.values
        for other in others:
            first = self._call("logical_and" if isinstance(node.op, ast.And) else "logical_or", first, other)
        return first

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        return self._call("logical_not", node.operand) if isinstance(node.op, ast.Not) else self.generic_visit(node)

    def _call(self, name: str, *arguments: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(name), [self.visit(node) for node in arguments], [])
