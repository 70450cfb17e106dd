"""Freezing: gives inputs their values when the model is read, so that they become constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from emberlet.dtypes import DType, string
from emberlet.errors import EmberletError
from emberlet.functional.arrays import asarray
from emberlet.tensor import Tensor

from ..ir.problem import Problem, quoted
from ..ir.types import TensorType, Type, describe, describe_shape
from ..ir.value import Inline, Value, text_value

Frozen = Mapping[str, Any]
"""Values of inputs by their names: numbers, texts, nested lists, arrays or Tensors."""


def unknown(names: Iterable[str], inputs: list[str], defaults: set[str]) -> list[str]:
    """A problem for each name that is not an input. defaults: the inputs that already have a value, which may be
    many."""
    said = []
    for name in names:
        if name in inputs:
            continue
        from difflib import get_close_matches

        near = get_close_matches(name, inputs, 1)
        hint = f" (did you mean {quoted(near[0])}?)" if near else ""
        has = ", ".join(quoted(i) for i in inputs if i not in defaults) or "no inputs"
        said.append(f"there is no input {quoted(name)} to freeze{hint}; the model has {has}")
    return said


def frozen(given: Any, t: Type, sizes: dict[str, int]) -> Value:
    """The value of an input of type `t`.

    sizes: the size of each named dimension fixed by other frozen inputs; those of this one are added. For an input of
    one element a number is enough. Raises Problem if the dtype or shape does not match.
    """
    if not isinstance(t, TensorType):
        raise Problem(f"only tensors can be frozen, and this is {describe(t)}")
    if isinstance(given, int | float | str) and t.shape is not None and all(d == 1 for d in t.shape):
        for _ in t.shape:
            given = [given]
    x = _tensor(given, t)
    if t.shape is not None:
        fits = len(t.shape) == len(x.shape)
        for d, n in zip(t.shape, x.shape, strict=False):
            fits = fits and n == (sizes.setdefault(d, n) if isinstance(d, str) else n if d is None else d)
        if not fits:
            wanted = tuple(sizes.get(d, d) if isinstance(d, str) else d for d in t.shape)
            raise Problem(f"its shape is {describe_shape(wanted)}, but the given value has {describe_shape(x.shape)}")
    if t.dtype is string:
        return text_value(tuple(x.backend.to_list(x)), x.shape)
    return Value(t.dtype, x.shape, Inline(bytes(x.backend.to_bytes(x))))


def _tensor(given: Any, t: TensorType) -> Tensor:
    """The value as a Tensor of the input's dtype. Raises Problem."""
    try:
        if isinstance(given, bool | int | float | str | list | tuple):
            _check_numbers(given, t.dtype)
            return asarray(given, dtype=t.dtype, device="python")
        x = asarray(given, device="python")
    except EmberletError as error:
        raise Problem(f"its dtype is {t.dtype}: {error}") from None
    if x.dtype is not t.dtype:
        raise Problem(f"its dtype is {t.dtype}, but the given value has {x.dtype}")
    return x


def _check_numbers(given: Any, dtype: DType) -> None:
    """Refuse Python values that this dtype cannot represent exactly."""
    if isinstance(given, list | tuple):
        for item in given:
            _check_numbers(item, dtype)
        return
    if dtype is string:
        fits = isinstance(given, str)
    elif dtype.is_bool:
        fits = isinstance(given, bool) or given in (0, 1)
    elif dtype.is_float:
        fits = isinstance(given, int | float) and not isinstance(given, bool)
    else:
        fits = isinstance(given, int) and not isinstance(given, bool)
    if not fits:
        found = quoted(given) if isinstance(given, str) else repr(given)
        raise Problem(f"its dtype is {dtype}, found {found}")
