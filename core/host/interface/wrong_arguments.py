"""Explaining an exception inside a public function by the caller's arguments."""

from __future__ import annotations

import ast
import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from types import FrameType
from typing import Any

from ...backend import Backend
from ...dtypes import DType
from ...errors import ArgumentError, BackendError, DTypeError, EmberletError, IndexingError, ShapeError
from ...module import Module
from ...tensor import Tensor
from .declarations import CORE, Declaration, DeclarationError, read_file
from .elsewhere.names import nearest

# Exceptions that a wrong argument causes; others (MemoryError, OSError) are not due to arguments.
_RAW = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, AssertionError, RecursionError)
# Modules whose code runs between a public function and an error of its arguments.
_OWN = {"emberlet", "numpy", "ml_dtypes"} | sys.stdlib_module_names
# Calls of these stand between a function and the function that called it.
_BETWEEN = (
    "emberlet.tensor",
    "emberlet.host.interface.guarding",
    "emberlet.host.interface.wrong_arguments",
    "emberlet.functional.overriding",
)
# Whether their modules got a function or its gate depends on what was imported first, which must not show.
_PUBLIC = ("emberlet.functional", "emberlet.nn")
_CONTAINERS = "emberlet.nn.containers"
_LISTED = 1000  # elements of a list to check


def explained(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> EmberletError | None:
    """The error to raise instead of `error`; None to keep it: inside another public function or a layer, whose
    arguments are the caller's, or if foreign code (a callback, an added backend) raised it."""
    apart = type(error) is BackendError  # of operands on different backends, one may be no tensor at all
    meant = apart or isinstance(error, (ArgumentError, DTypeError, IndexingError, ShapeError))
    if not (meant or isinstance(error, _RAW)) or _within_another() or not _of_our_own(error):
        return None
    name = function.__name__
    signature = inspect.signature(function)
    try:
        given = list(_given(name, signature, args, kwargs))
    except DTypeError as unbound:
        return unbound
    types = _types(function)
    for strict in (False, True) if isinstance(error, (TypeError, AttributeError)) and not meant else (False,):
        for argument, value, parameter in given:
            declared = types.get(parameter, "Any")
            listed = declared.startswith("TensorLike") and isinstance(value, (list, tuple))
            if apart and not _is_no_tensor(value):
                continue
            if meant and (listed or "TensorLike" not in declared):
                continue  # the function's own message is better, also about a list, which it has converted by now
            if said := _misfit(value, declared, strict):
                return DTypeError(f"{name}: {argument} {said}")
    if meant:
        return None
    everything = ", ".join(f"{argument} is {shown(value)}" for argument, value, _ in given)
    return _kind(error)(f"{name} cannot compute this ({type(error).__name__}: {error}): {everything}")


def explained_layer(
    layer: type[Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> EmberletError | None:
    """The error to raise instead of `error` in the constructor of a layer; None to keep it."""
    if isinstance(error, EmberletError) or not isinstance(error, _RAW) or not _of_our_own(error):
        return None
    name, signature = f"nn.{layer.__name__}", inspect.signature(layer)
    try:
        given = ", ".join(f"{a} is {shown(value)}" for a, value, _ in _given(name, signature, args, kwargs))
    except DTypeError as unbound:
        return unbound
    said = f"{type(error).__name__}: {error}"
    return _kind(error)(f"{name}: {given} ({said}); it is called as {name}{signature}")


def explained_call(
    layer: type[Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> EmberletError | None:
    """The error to raise instead of `error` in a call of a layer; None to keep it, where no argument is to blame."""
    meant = isinstance(error, EmberletError)
    if not (meant or isinstance(error, _RAW)) or layer.__module__ == _CONTAINERS or not _of_our_own(error):
        return None
    name, signature = f"nn.{layer.__name__}", _without_self(layer.forward)
    try:
        given = list(_given(name, signature, args, kwargs))
    except DTypeError as unbound:
        return unbound
    for argument, value, parameter in given:
        default = signature.parameters[parameter].default
        needed = default is inspect.Parameter.empty
        # An error of ours says more about options, and about what a layer converts.
        if value is default or isinstance(value, Tensor) or (meant and not (needed and _is_no_tensor(value))):
            continue
        if needed or (not meant and _is_tensor_like(value)):
            listed = _is_tensor_like(value) or isinstance(value, (list, tuple))
            advice = "; emberlet.asarray(…) makes one" if listed else ""
            return DTypeError(f"{name}: {argument} is {shown(value)}; it takes a tensor{advice}")
        if _is_no_tensor(value) or isinstance(value, (list, tuple)):
            return DTypeError(f"{name}: {argument} is {shown(value)}; it is called as {name}(…){signature}")
    return None


def _is_no_tensor(value: Any) -> bool:
    """Whether a value is neither a tensor nor anything that may hold some."""
    return value is None or isinstance(value, (str, bytes, Mapping, type, slice, Module))


def _without_self(method: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(method)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _kind(error: Exception) -> type[EmberletError]:
    if isinstance(error, (TypeError, AttributeError)):
        return DTypeError
    return IndexingError if isinstance(error, IndexError) else ShapeError


def _within_another() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).startswith(_PUBLIC)


def _of_our_own(error: Exception) -> bool:
    at = error.__traceback__
    while at:
        if str(at.tb_frame.f_globals.get("__name__")).partition(".")[0] not in _OWN:
            return False
        at = at.tb_next
    return True


def _given(
    function: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, Any, str]]:
    """(name to show, value, parameter) of each argument; those of *arrays are numbered. Raises DTypeError if they do
    not fit the signature."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        unknown = next((k for k in kwargs if k not in signature.parameters), "")
        near = nearest(unknown, signature.parameters) if "unexpected keyword" in str(error) else ""
        raise DTypeError(f"{function}: {error}{near}; it is called as {function}{signature}") from None
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((f"{name}[{i}]", v, name) for i, v in enumerate(value))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            yield from ((k, v, name) for k, v in value.items())
        else:
            yield name, value, name


@cache
def _declarations(module: str) -> dict[str, Declaration]:
    file = CORE.joinpath(*module.split(".")[1:]).with_suffix(".py")
    try:
        return {d.name: d for d in read_file(module, file)}
    except (OSError, DeclarationError):  # a program that was packed without its source
        return {}


def _types(function: Callable[..., Any]) -> dict[str, str]:
    """The declared type of each parameter, as text."""
    d = _declarations(function.__module__).get(function.__name__)
    return {p.name: d.type_of(p) for p in d.parameters() if p.kind != "mark"} if d else {}


# -- values and declared types ---------------------------------------------------------------------------------------


def _misfit(value: Any, said: str, strict: bool) -> str:
    """Why a value does not match a parameter's declared type `said`; "" if it does. strict: a number or an array does
    not count as a tensor. Most functions convert these; the one that failed may not."""
    declared = ast.parse(said, mode="eval").body
    if _fits(value, declared) and not (strict and said == "TensorLike" and not isinstance(value, Tensor)):
        return ""
    listed = isinstance(value, (int, float, list, tuple)) and said.startswith("TensorLike")
    advice = "; emberlet.asarray(…) makes one" if listed else ""
    if type(value).__name__ == "JsProxy" and said.startswith("TensorLike"):
        advice = "; emberlet.asarray(….to_py()) makes one"
    return f"is {shown(value)}; it takes {_in_words(declared)}{advice}"


def _fits(value: Any, declared: ast.expr) -> bool:
    if isinstance(declared, ast.BinOp):
        return _fits(value, declared.left) or _fits(value, declared.right)
    if isinstance(declared, ast.Subscript):
        kind = ast.unparse(declared.value)
        if kind == "Callable":
            return callable(value)
        if kind == "Mapping":
            return isinstance(value, Mapping)
        if not hasattr(value, "__iter__") or isinstance(value, (str, bytes, Mapping)):
            return False
        try:
            values = list(islice(value, _LISTED))
        except TypeError:  # a tensor without axes
            return False
        inner = declared.slice
        if isinstance(inner, ast.Tuple):
            return len(values) == len(inner.elts) and all(map(_fits, values, inner.elts))
        return all(_fits(v, inner) for v in values)
    if isinstance(declared, ast.Constant):
        return value is declared.value
    return _SIMPLE.get(ast.unparse(declared), _anything)(value)


def _anything(value: Any) -> bool:
    return True


def _is_tensor_like(value: Any) -> bool:
    """Whether a list may be a tensor: functions that do not convert lists have failed by now."""
    numbers = isinstance(value, (bool, int, float)) or hasattr(value, "__array__") or hasattr(value, "__dlpack__")
    return isinstance(value, Tensor) or numbers


def _is_integer(value: Any) -> bool:
    try:
        operator.index(value)
    except Exception:  # a tensor of several elements, too
        return False
    return True


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except Exception:
        return False
    return not isinstance(value, str)


_SIMPLE: dict[str, Callable[[Any], bool]] = {
    "TensorLike": _is_tensor_like,
    "Tensor": lambda value: isinstance(value, Tensor),
    "int": _is_integer,
    "float": _is_number,
    "bool": lambda value: isinstance(value, (bool, int)) or type(value).__name__ in ("bool_", "bool"),
    "str": lambda value: isinstance(value, str),
    "slice": lambda value: isinstance(value, slice),
    "DType": lambda value: value is not None,  # an invalid one raises its own error
    "Backend": lambda value: isinstance(value, (Backend, str)),
}
_WORDS = {
    "TensorLike": "a tensor",
    "Tensor": "a tensor",
    "int": "an int",
    "float": "a number",
    "DType": "a dtype",
    "Any": "anything",
}


def _in_words(declared: ast.expr) -> str:
    """A declared type in words: "an int, a list of ints or None"."""
    options: list[str] = []
    while isinstance(declared, ast.BinOp):
        options.insert(0, _option(declared.right))
        declared = declared.left
    options.insert(0, _option(declared))
    return " or ".join(filter(None, (", ".join(options[:-1]), options[-1])))


def _option(declared: ast.expr) -> str:
    text = ast.unparse(declared)
    if isinstance(declared, ast.Subscript):
        kind = ast.unparse(declared.value)
        if kind == "Callable":
            return "a function"
        if kind == "Mapping":
            return "a dict"
        if kind == "Sequence":
            each = _in_words(declared.slice)
            return "a list of ints" if each == "an int" else f"a list ({each} each)"
        return f"a {text}"
    return "None" if text == "None" else _WORDS.get(text, f"a {text}")


def shown(value: Any) -> str:
    """A value in a few words: "a tensor float32 (2, 3)", "None", "the list [1, 2]"."""
    if isinstance(value, Tensor):
        return f"a tensor {value.dtype.name} {value.shape}"
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    kind = type(value).__name__
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value[:_LISTED]):
        return f"a {kind} of {', '.join(map(shown, value[:4]))}{', …' if len(value) > 4 else ''}"
    if isinstance(value, (str, list, tuple, dict, DType, Backend)):
        text = repr(value)
        return f"the {kind} {text}" if len(text) <= 60 else f"a {kind}, {text[:40]}…"
    return f"a {kind}"
