"""Converting the arguments of a generated model to its INPUTS; on the host only."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from ... import dtypes
from ...backend import Backend
from ...dtypes import DType
from ...errors import BackendError, DTypeError, EmberletError, ShapeError
from ...functional.arrays import asarray
from ...tensor import Tensor

Entry = tuple[str, str, tuple[int | str | None, ...] | None]
"""A name, a dtype (or words for what is no tensor), and a shape: an entry of INPUTS or OUTPUTS."""


def parameters_of(model: Any) -> list[str]:
    """The names of `forward`'s parameters; those collected by a `*past` are named as in INPUTS, as identifiers.
    model: a model, or the class of one."""
    found = [p for p in inspect.signature(model.forward).parameters.values() if p.name != "self"]
    names = [p.name for p in found if p.kind is not p.VAR_POSITIONAL]
    if len(names) < len(found):
        names += [re.sub(r"[\W_]+", "_", e[0]) for e in (getattr(model, "INPUTS", None) or ())[len(names) :]]
    return names


def takes(model: Any, count: int) -> str:
    """Why `forward` does not take this many positional arguments; empty if it does."""
    try:
        inspect.signature(model.forward).bind(*[None] * count)
    except TypeError as error:
        return str(error)
    return ""


def in_order(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call in the order of the model's parameters, defaults included. model: a Module or a function.
    Raises TypeError where the call would, and BackendError for an argument that can only be given by name."""
    bound = inspect.signature(getattr(model, "forward", model)).bind(*args, **kwargs)
    by_name = [name for name in kwargs if name in bound.kwargs]
    if by_name:
        raise BackendError(
            f"a compiled model takes its arguments in their order, but {by_name[0]} can only be given by name: compile "
            f"functools.partial(model, {by_name[0]}=...) instead"
        )
    bound.apply_defaults()
    return bound.args


def bind(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], backend: Backend | None = None) -> list[Any]:
    """The arguments of `model.forward` in their order: tensors with the dtypes and shapes in INPUTS.

    args, kwargs: the arguments of the call. An input is a Tensor, an array (NumPy's, PyTorch's, anything that DLPack or
    the buffer protocol describes), nested lists or a number; or one dict of all inputs by name. Arrays and Tensors are
    moved to the model's backend; with `backend`, arrays are moved there and Tensors are not moved. Raises DTypeError or
    ShapeError if an input does not match INPUTS, EmberletError if one is missing or unknown.
    """
    if backend is not None and not kwargs and fits(model.INPUTS, args):
        return list(args)
    entries: list[Entry] = list(model.INPUTS)
    names = _names(model)[: len(entries)]
    if len(args) == 1 and not kwargs and isinstance(args[0], dict) and not _is_dict(entries):
        kwargs = args[0]
        args = ()
    if len(args) > len(entries):
        raise EmberletError(f"{_takes(model)}; found {len(args)} inputs")
    given = dict(zip(names, args, strict=False))
    known = {**dict(zip((e[0] for e in entries), names, strict=True)), **{n: n for n in names}}
    for name, value in kwargs.items():
        if name not in known:
            raise EmberletError(f"{_takes(model)}; there is no input {name!r}")
        if known[name] in given:
            raise EmberletError(f"{_takes(model)}; {name!r} is given twice")
        given[known[name]] = value
    missing = [e[0] for n, e in zip(names, entries, strict=True) if n not in given]
    if missing:
        raise EmberletError(f"{_takes(model)}; {' and '.join(map(repr, missing))} missing")
    home, move = (backend, False) if backend is not None else (_home(model, given.values()), True)
    sizes: dict[str, tuple[int, str]] = {}
    out = []
    for name, entry in zip(names, entries, strict=True):
        x = _converted(given[name], entry, home, move)
        if isinstance(x, Tensor) and entry[1] in dtypes.BY_NAME:
            _check(x, entry, sizes)
        out.append(x)
    return out


def fits(entries: Any, args: tuple[Any, ...]) -> bool:
    """Whether the arguments are Tensors with the dtypes and shapes in INPUTS, in order."""
    if len(args) != len(entries):
        return False
    sizes: dict[str, int] = {}
    for x, (_, kind, shape) in zip(args, entries, strict=True):
        if type(x) is not Tensor or x.dtype.name != kind:
            return False
        if shape is not None:
            found = x.shape
            if len(found) != len(shape):
                return False
            for d, n in zip(shape, found, strict=True):
                if d != n and d is not None and (type(d) is not str or sizes.setdefault(d, n) != n):
                    return False
    return True


def _names(model: Any) -> list[str]:
    """The names of the parameters of `model.forward`, looked up once for each function."""
    function = getattr(model.forward, "__func__", None)
    if function is None:
        return parameters_of(model)
    found = _NAMES.get(function)
    if found is None or len(found) < len(model.INPUTS):
        found = _NAMES[function] = parameters_of(model)
    return found


_NAMES: WeakKeyDictionary[Callable[..., Any], list[str]] = WeakKeyDictionary()


def _is_dict(entries: list[Entry]) -> bool:
    """Whether the only input is a dict itself."""
    return len(entries) == 1 and str(entries[0][1]).startswith("dict ")


def _takes(model: Any) -> str:
    inputs = ", ".join(describe(e) for e in model.INPUTS) or "no inputs"
    return f"{type(model).__name__} takes {inputs}"


def describe(entry: Entry) -> str:
    """An entry of INPUTS or OUTPUTS in words: "image: float32 (batch, 1, 8, 8)"."""
    name, dtype, shape = entry
    if shape is None:
        return f"{name}: {dtype}"
    inner = ", ".join("?" if d is None else str(d) for d in shape)
    return f"{name}: {dtype} ({inner}{',' if len(shape) == 1 else ''})"


def _home(model: Any, given: Iterable[Any]) -> Backend | None:
    """The backend of the model's first parameter; without parameters, that of the first Tensor argument, else the one
    the model was created for."""
    for _, param in model.named_params():
        home: Backend = param.backend
        return home
    return next((x.backend for x in given if isinstance(x, Tensor)), getattr(model, "backend", None))


def _converted(x: Any, entry: Entry, home: Backend | None, move: bool) -> Any:
    """An input as a Tensor; values of an input that is not a tensor (lists, dicts, None) are returned unchanged."""
    name, kind, _ = entry
    if isinstance(x, Tensor):
        return asarray(x, device=home) if move and home is not None and x.backend is not home else x
    if kind not in dtypes.BY_NAME:
        if isinstance(x, (list, tuple)) and kind.startswith("list "):
            return [_converted(v, (name, "", None), home, move) for v in x]
        return asarray(x, device=home) if hasattr(x, "shape") and hasattr(x, "dtype") else x
    wanted = dtypes.dtype(kind)
    try:
        if isinstance(x, (bool, int, float, str, list, tuple)):
            if wanted.kind != "string" and _holds(x, str):
                raise DTypeError("found a text")
            if not wanted.is_float and _holds(x, float):
                raise DTypeError("found numbers that are not integers")
            return asarray(x, dtype=wanted, device=home)
        return _array(x, wanted, home)
    except (DTypeError, ShapeError) as error:
        raise type(error)(f"{describe(entry)}: {error}") from None


def _holds(x: Any, kind: type) -> bool:
    """Whether nested lists hold a value of this type."""
    return any(_holds(v, kind) for v in x) if isinstance(x, (list, tuple)) else isinstance(x, kind)


def _array(x: Any, wanted: DType, home: Backend | None) -> Tensor:
    if wanted.kind == "string":  # NumPy's objects and fixed-width texts
        items = x.tolist() if hasattr(x, "tolist") else list(x)
        return asarray(items, dtype=wanted, device=home)
    return asarray(x, device=home)


def _check(x: Tensor, entry: Entry, sizes: dict[str, tuple[int, str]]) -> None:
    """Raise DTypeError or ShapeError unless a tensor matches its entry in INPUTS."""
    name, kind, shape = entry
    if x.dtype.name != kind:
        found = f"{x.dtype} {x.shape}"
        raise DTypeError(f"the model takes {describe(entry)}, found {found}; .astype({kind!r}) converts it")
    if shape is None:
        return
    known = len(shape) == len(x.shape)
    for d, n in zip(shape, x.shape, strict=False):
        known = known and (d == n or not isinstance(d, int))
    if not known:
        raise ShapeError(f"the model takes {describe(entry)}, found {x.dtype} {x.shape}")
    for d, n in zip(shape, x.shape, strict=True):
        if isinstance(d, str):
            size, where = sizes.setdefault(d, (n, name))
            if size != n:
                found = f"{x.dtype} {x.shape}"
                raise ShapeError(f"the model takes {describe(entry)}, found {found}; {d} is {size} in {where}")
