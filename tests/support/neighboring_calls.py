"""Calls that differ from a given one by a single literal or argument, and how the outcomes of two calls differ."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import warnings
from collections.abc import Iterator
from typing import Any

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet import nn

# Words that take each other's places; an unknown one is tried besides.
WORDS = [
    "constant reflect edge wrap", "nearest linear cubic", "zeros border reflection", "avg max", "forward reverse both",
    "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_crop_and_resize",
    "round_prefer_floor round_prefer_ceil floor ceil", "stretch not_larger not_smaller", "none tanh", "mean sum none",
    "DCR CRD", "linear circular", "none add mul min max", "left right", "xy ij", "same valid", "LOWER UPPER NONE",
    "linear poly rbf sigmoid", "TF IDF TFIDF", "sum average min max", "uniform normal bernoulli", "zeros error",
    "softmax softmax_zero logistic probit", "gated_delta gated linear delta", "default none", "linear yarn llama3",
    "up down nearest", "same_upper same_lower",
]  # fmt: skip
DTYPES = ["float64", "float16", "int32", "uint8", "bool", "string"]


def _elements(count: int, dtype: str) -> list[Any]:
    if dtype == "string":
        return [f"{'ab'[i % 2]}{i * 5 % 7}" for i in range(count)]
    if dtype == "bool":
        return [i * 5 % 7 % 3 > 0 for i in range(count)]
    if "int" in dtype:
        return [(i * 5 + 3) % 8 - (0 if dtype.startswith("u") else 3) for i in range(count)]
    return [((i * 37 + 11) % 101 - 50) / 8 for i in range(count)]  # 101 different ones, exact in every format


def X(*shape: int, dtype: str = "float32") -> Any:
    """Different numbers of both signs."""
    count = math.prod(shape)
    return F.reshape(F.astype(F.asarray(_elements(count, dtype), dtype=None if count else "float32"), dtype), shape)


def P(*shape: int, dtype: str = "float32") -> Any:
    """Numbers above 0, at most 1."""
    count = math.prod(shape)
    return F.reshape(F.asarray([(i * 37 + 11) % 64 / 64 + 1 / 64 for i in range(count)], dtype=dtype), shape)


def V(values: Any, dtype: str | None = None) -> Any:
    return F.asarray(values, dtype=dtype)


SCOPE: dict[str, Any] = {
    **{name: getattr(F, name) for name in dir(F)}, "F": F, "nn": nn, "emberlet": emberlet, "X": X, "P": P, "V": V,
    "S": builtins.slice, "nan": math.nan, "inf": math.inf,
}  # fmt: skip


def _number(node: ast.AST) -> Any:
    """The number that a node spells, a sign included; None of anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if isinstance(value, (int, float)) else None
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    return None


def _others(node: ast.AST, text: str) -> list[str]:
    """What to write in place of a literal."""
    number = _number(node)
    if isinstance(number, int):
        return [str(v) for v in dict.fromkeys((number - 1, number + 1, 0, -number)) if v != number]
    if isinstance(number, float):
        return [repr(v) for v in dict.fromkeys((0.0, -number, number * 2)) if v != number]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [repr(not node.value)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if node.value in DTYPES:
            return [repr(w) for w in (*DTYPES, "complex32") if w != node.value]
        near = [w for group in WORDS if node.value in group.split() for w in group.split()]
        return [repr(w) for w in dict.fromkeys([*near, "unknown"]) if w != node.value]
    if isinstance(node, (ast.Tuple, ast.List)) and node.elts and all(_number(e) is not None for e in node.elts):
        items = [ast.unparse(e) for e in node.elts]
        given = [items[:-1], [*items, items[-1]], items[::-1]]
        return [str(v) for v in dict.fromkeys("[" + ", ".join(v) + "]" for v in given) if v != text]
    return []


def _tensors(call: ast.Call) -> Iterator[str]:
    """A call that makes a tensor, with one length, the number of axes, the dtype or an element changed."""
    assert isinstance(call.func, ast.Name)
    make, more = call.func.id, [ast.unparse(k) for k in call.keywords]
    dtype = next((ast.literal_eval(k.value) for k in call.keywords), "")
    if make == "V":
        values = ast.unparse(call.args[0])
        for other in ("float64", "float16", "int64", "int32", "uint8", "bool"):
            if other != dtype:
                yield f"V({values}, dtype={other!r})"
        nodes = [n for n in ast.walk(ast.parse(values, mode="eval")) if isinstance(n, ast.expr)]
        if len([n for n in nodes if isinstance(n, ast.Constant)]) < 10:
            for node in nodes:
                for new in _others(node, "")[: 2 if _number(node) is not None else 1]:
                    changed = values[: node.col_offset] + new + values[node.end_col_offset :]
                    yield f"V({', '.join([changed, *more])})"
        return
    shape = [ast.literal_eval(a) for a in call.args]
    lengths = [(i, m) for i, n in enumerate(shape) for m in (n - 1, n + 1) if m >= 0]
    lengths += [(i, 0) for i, n in enumerate(shape) if n > 1]
    shapes = [[*shape[:i], n, *shape[i + 1 :]] for i, n in lengths]
    shapes += [shape[1:], [1, *shape], [*shape, 1]] if shape else [[1]]
    for lengths_of_one in shapes:
        yield f"{make}({', '.join([*map(str, lengths_of_one), *more])})"
    for name in ("float32", *DTYPES):
        if name != (dtype or "float32") and (make == "X" or name.startswith("f")):
            yield f"{make}({', '.join([*map(str, shape), f'dtype={name!r}'])})"


def neighbors(text: str) -> Iterator[tuple[str, str]]:
    """(the change, the call) of each call that differs from `text` by one thing."""
    calls = [n for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Call)]
    makers = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id in "XPV"]
    inside = {id(n) for c in makers for n in ast.walk(c)}
    for call in calls:
        if id(call) in inside:
            continue
        where = "" if call is calls[0] else f"{ast.unparse(call.func)} "
        named = {k.arg: k.value for k in call.keywords if k.arg}
        arguments = [(f"{i}: ", a) for i, a in enumerate(call.args)] + [(f"{k}=", v) for k, v in named.items()]
        for name, argument in arguments:
            start, end = argument.col_offset, argument.end_col_offset or 0
            for new in _changed(argument, text, inside):
                yield f"{where}{name}{new}".replace(", ", ","), text[:start] + new + text[end:]
        own, end = ast.unparse(call.func), (call.end_col_offset or 0) - 1
        for k in call.keywords:
            left = [ast.unparse(a) for a in (*call.args, *call.keywords) if a is not k]
            yield f"{where}without {k.arg}", text[: call.col_offset] + f"{own}({', '.join(left)})" + text[end + 1 :]
        for i, parameter in enumerate(_parameters(call.func)):
            if i >= len(call.args) and parameter.name not in named:
                for new in _of_default(parameter.default):
                    yield (
                        f"{where}{parameter.name}={new}",
                        f"{text[:end]}{', ' if arguments else ''}{parameter.name}={new}{text[end:]}",
                    )


def _changed(argument: ast.expr, text: str, inside: set[int]) -> Iterator[str]:
    """An argument's text with one thing in it changed; "None" in its place."""
    whole = text[argument.col_offset : argument.end_col_offset]
    for node in ast.walk(argument):
        if not isinstance(node, ast.expr):
            continue
        a, b = node.col_offset - argument.col_offset, (node.end_col_offset or 0) - argument.col_offset
        if isinstance(node, ast.Call) and id(node) in inside:
            for new in _tensors(node):
                yield whole[:a] + new + whole[b:]
        elif id(node) not in inside:
            signed = isinstance(node, ast.Constant) and whole[a - 1 : a] == "-"
            for new in () if signed else _others(node, whole[a:b]):
                yield whole[:a] + new + whole[b:]
    if isinstance(argument, ast.Constant) and not (argument.value is None or isinstance(argument.value, bool)):
        yield "None"


def _parameters(function: ast.expr) -> list[inspect.Parameter]:
    if isinstance(function, (ast.Name, ast.Attribute)):
        try:
            return list(inspect.signature(eval(ast.unparse(function), SCOPE)).parameters.values())
        except (TypeError, ValueError, NameError):
            pass
    return []


def _of_default(default: Any) -> list[str]:
    if isinstance(default, bool):
        return [repr(not default)]
    if isinstance(default, (int, float)):
        return [repr(default + 1), repr(default - 1), "-2"] if isinstance(default, int) else [repr(default + 0.5)]
    if isinstance(default, str):
        return _others(ast.Constant(default), "")
    return []


def outcome(text: str) -> Any:
    """The result of a call, or the error that it raises."""
    F.manual_seed(0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return eval(text, SCOPE)
        except Exception as error:
            return error


def difference(here: Any, there: Any, least: float = 1e-5) -> str:
    """Where two outcomes differ: only one is an error, or they are errors of two classes (of one that no check foresaw,
    the class depends on the backend), or floats are further apart than `least`, relative above 1."""
    if isinstance(here, Exception) or isinstance(there, Exception):
        same = type(here) is type(there) or ("cannot compute" in str(here) and "cannot compute" in str(there))
        return "" if same else f"{_named(here)} and {_named(there)}"
    if isinstance(here, emberlet.Tensor) and isinstance(there, emberlet.Tensor):
        if (here.dtype, here.shape) != (there.dtype, there.shape):
            return f"{here.dtype.name}{here.shape} and {there.dtype.name}{there.shape}"
        a, b = here.backend.to_list(here), there.backend.to_list(there)
        least = (
            least if here.dtype.name in ("float32", "float64") else max(least, 0.03 if here.dtype.bits == 16 else 0.2)
        )
        close = all(_close(x, y, least) for x, y in zip(a, b, strict=True))
        return "" if close else f"{a[:8]} and {b[:8]}"
    if isinstance(here, list | tuple):
        if not isinstance(there, list | tuple) or len(here) != len(there):
            return f"{here} and {there}"
        return next((text for x, y in zip(here, there, strict=True) if (text := difference(x, y, least))), "")
    if isinstance(here, dict):
        return difference([*here, *here.values()], [*there, *there.values()], least)
    if isinstance(here, int | float | str | bool | None):
        return "" if _close(here, there, least) else f"{here} and {there}"
    return difference(type(here).__name__, type(there).__name__) or difference(_parts(here), _parts(there), least)


def _parts(value: Any) -> Any:
    parts = getattr(value, "__dict__", None)
    return [v for v in parts.values() if isinstance(v, emberlet.Tensor | int | float | str)] if parts else []


def _close(x: Any, y: Any, least: float) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        if math.isinf(x) or math.isinf(y):
            return x == y
        return (x != x and y != y) or abs(x - y) <= least * max(1.0, abs(x))
    if isinstance(x, str) and isinstance(y, str):
        return x == y.replace("numpy", "python")  # the backend's name
    return type(x) is type(y) and x == y


def _named(found: Any) -> str:
    return f"{type(found).__name__}: {found}"[:200] if isinstance(found, Exception) else "a result"
