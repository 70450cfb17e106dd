"""What a case has to give: the results of eager NumPy, and how far others may be off.

**Tolerances.** Dtypes, shapes, integers, bools and strings are equal. A float may be off by

    8 * E + eps(dtype) * (64 * M + 8 * G)

where M and G are the largest finite magnitudes of the result and of the inputs, and E how far eager NumPy's own result
moves when the inputs and weights are moved by one unit in the last place, up or down at random, three times: what the
precision of the dtype loses on this case. Integers, bools and whether a float is finite are not compared where such a
move changes them; of a case with floats whose results are integers, nothing beyond 2**24, where float32 rounds. Where
float64 is computed in float32, float32 inputs are such a move as well. The inputs of layer_norm and of softmax and the
bias of attention are moved as well: where the elements of a row are equal, which they stay when inputs move, the
rounding of their mean is divided by the root of epsilon; and a score of -10,000 that was rounded has lost the digits
that its exponential shows. Drawn programs are compared in float64 as well (kinds/programs.py).
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import emberlet
import numpy as np
from emberlet import dtypes
from emberlet.errors import EmberletError
from emberlet.host.numpy_backend.backend import NumpyBackend

from .case import Case
from .ways import REFERENCE

EPSILON = {"float64": 2.3e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}
COARSE = {**EPSILON, "float64": EPSILON["float32"]}
MOVES = 3


class Leaf(NamedTuple):
    """A tensor of a result, or another value: dtype is its kind then. sure: the elements that are compared; limit: how
    far each may be off; coarse: the same where float64 is computed in float32 (docs/wgpu.md, docs/wasm.md)."""

    array: Any
    dtype: str
    sure: Any = True
    limit: Any = 0.0
    coarse: Any = 0.0


class Refused(NamedTuple):
    """An error: the name of its class, and its words."""

    kind: str
    words: str


Expected = list[Leaf] | Refused


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def leaves(result: Any) -> list[Leaf]:
    """The tensors and other values of a result, in order."""
    if isinstance(result, emberlet.Tensor):
        if result.dtype.kind == "string":
            return [Leaf(np.array(result.backend.to_list(result), object).reshape(result.shape), "string")]
        if result.dtype.bits < 8 or (result.dtype.name not in np.sctypeDict and result.dtype.name != "bfloat16"):
            values = np.array(result.backend.to_list(result), np.float64)  # what NumPy has no dtype for
            return [Leaf(values.reshape(result.shape), result.dtype.name)]
        return [Leaf(np.array(np.asarray(result)), result.dtype.name)]
    if isinstance(result, np.ndarray):
        return [Leaf(np.array(result), result.dtype.name)]
    if isinstance(result, dict):
        return [Leaf(repr(list(result)), "dict"), *(x for v in result.values() for x in leaves(v))]
    if isinstance(result, (list, tuple)):
        return [x for v in result for x in leaves(v)]
    if hasattr(result, "dequantize"):
        return leaves(result.dequantize())
    if hasattr(result, "__dict__") and type(result).__module__.startswith(("emberlet.nn", "contract_case")):
        return leaves(vars(result))
    return [Leaf(repr(result), type(result).__name__)]


def refused(error: BaseException) -> Refused:
    return Refused(type(error).__name__, str(error))


def outcome(run: Any, arrays: tuple[Any, ...]) -> Expected:
    """What a call gives: its leaves, or the error by which it is refused."""
    try:
        with quiet():
            return leaves(run(arrays))
    except EmberletError as error:
        return refused(error)


def expected(case: Case, arrays: tuple[Any, ...], exact: bool = False) -> Expected:
    """The reference. exact: without tolerances."""
    found = outcome(REFERENCE.open(case, arrays), arrays)
    if exact or isinstance(found, Refused):
        return found
    if not any(x.dtype in EPSILON for x in found):
        floats = any(isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in arrays)
        return [_exact_floats(x) for x in found] if floats else found
    given = [np.abs(a.astype(np.float64)) for a in arrays if isinstance(a, np.ndarray) and a.size]
    most = max((float(a[np.isfinite(a)].max(initial=0.0)) for a in given), default=0.0)
    others = _neighbors(case, arrays, found, EPSILON)
    near = [_limited(x, rest, EPSILON, most) for x, *rest in zip(found, *others, strict=True)]
    if not any(x.dtype == "float64" for x in found) and not any(_is_float64(a) for a in arrays):
        return near
    others = [*_neighbors(case, arrays, found, COARSE), *_in_float32(case, arrays, found)]
    far = [_limited(x, rest, COARSE, most) for x, *rest in zip(found, *others, strict=True)]
    return [a._replace(sure=a.sure & b.sure, coarse=b.limit) for a, b in zip(near, far, strict=True)]


def _is_float64(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.float64


def _neighbors(case: Case, arrays: tuple[Any, ...], found: list[Leaf], precision: dict[str, float]) -> list[list[Leaf]]:
    """The results for inputs and weights that are moved by one unit in the last place."""
    others = []
    model = case.make("numpy")  # once, since models of ONNX take long to make
    for number in range(MOVES):
        with _moved_inside(number, precision):
            other = outcome(_moved_model(model, number, precision), _moved(arrays, number, precision))
        if not isinstance(other, Refused) and len(other) == len(found):
            others.append(other)
    return others


def _exact_floats(x: Leaf) -> Leaf:
    """A result that may have been a float: beyond 2**24 it was rounded."""
    return x._replace(sure=np.abs(x.array.astype(np.float64)) <= 1 << 24) if x.dtype in ("int32", "int64") else x


def _in_float32(case: Case, arrays: tuple[Any, ...], found: list[Leaf]) -> list[list[Leaf]]:
    """The results for float64 inputs in float32: what lies between may overflow although the result does not. A cast
    to float64 gives float32 as well, and a model of ONNX does not ask for its dtypes."""
    model = case.make("numpy")
    model = getattr(model, "forward", model)
    given = [emberlet.asarray(a, backend="numpy", copy=True) if isinstance(a, np.ndarray) else a for a in arrays]
    narrow = [x.backend.cast(x, dtypes.float32) if getattr(x, "dtype", None) is dtypes.float64 else x for x in given]
    plain = NumpyBackend.cast

    def cast(backend: NumpyBackend, x: emberlet.Tensor, dtype: Any, *rest: Any) -> emberlet.Tensor:
        return plain(backend, x, dtypes.float32 if dtype is dtypes.float64 else dtype, *rest)

    with patch.object(NumpyBackend, "cast", cast):
        try:
            other = outcome(lambda arguments: model(*arguments), tuple(narrow))
        except Exception:  # NumPy's own, of a model that has to have float64
            return []
    if isinstance(other, Refused) or len(other) != len(found):
        return []
    return [[_as_float64(o) if x.dtype == "float64" else o for o, x in zip(other, found, strict=True)]]


def _as_float64(x: Leaf) -> Leaf:
    return x._replace(array=x.array.astype(np.float64), dtype="float64") if x.dtype == "float32" else x


def _moved_model(made: Any, seed: int, precision: dict[str, float]) -> Any:
    model = copy.deepcopy(made) if hasattr(made, "params") else made
    draw = np.random.default_rng(seed)
    for param in model.clone().params() if hasattr(model, "params") else ():
        x = param.val()
        if x.dtype.name in EPSILON:
            array = np.asarray(x)
            param.set(emberlet.asarray(_shaken(array, precision[x.dtype.name], draw), dtype=x.dtype, backend="numpy"))
    return lambda arrays: model(
        *[emberlet.asarray(a, backend="numpy") if isinstance(a, np.ndarray) else a for a in arrays]
    )


def _moved(arrays: tuple[Any, ...], seed: int, precision: dict[str, float]) -> tuple[Any, ...]:
    draw = np.random.default_rng(seed + 100)
    return tuple(
        _shaken(a, precision[a.dtype.name], draw) if isinstance(a, np.ndarray) and a.dtype.name in EPSILON else a
        for a in arrays
    )


# The arguments of NumPy's composites that are moved, by position: what was rounded just before, and is divided by
# little or exponentiated there.
_MOVED_INSIDE = {"layer_norm": 0, "softmax": 0, "log_softmax": 0, "dot_product_attention": 3}


@contextmanager
def _moved_inside(seed: int, precision: dict[str, float]) -> Iterator[None]:
    plain, draw = {name: getattr(NumpyBackend, name) for name in _MOVED_INSIDE}, np.random.default_rng(seed + 200)

    def moved(name: str, place: int) -> Any:
        def call(backend: NumpyBackend, *given: Any) -> emberlet.Tensor:
            arguments = list(given)
            x = arguments[place]
            if x is not None and x.dtype.name in precision:
                array = _shaken(np.asarray(x), precision[x.dtype.name], draw)
                arguments[place] = emberlet.asarray(array, dtype=x.dtype, backend=backend)
            result: emberlet.Tensor = plain[name](backend, *arguments)
            return result

        return call

    for name, place in _MOVED_INSIDE.items():
        setattr(NumpyBackend, name, moved(name, place))
    try:
        yield
    finally:
        for name, method in plain.items():
            setattr(NumpyBackend, name, method)


def _shaken(array: Any, precision: float, draw: Any) -> Any:
    with np.errstate(all="ignore"):
        return (array * (1 + precision * draw.choice([-1.0, 1.0], array.shape))).astype(array.dtype)


def _limited(found: Leaf, others: list[Leaf], precision: dict[str, float], given: float) -> Leaf:
    if not isinstance(found.array, np.ndarray):
        return found
    others = [o for o in others if o.dtype == found.dtype and np.shape(o.array) == np.shape(found.array)]
    if found.dtype not in EPSILON:
        sure = np.ones(found.array.shape, bool)
        for o in others:
            sure &= o.array == found.array
        return found._replace(sure=sure)
    wide = found.array.astype(np.float64)
    finite = np.isfinite(wide)
    sure, moved = np.ones(wide.shape, bool), np.zeros(wide.shape)
    for o in others:
        other = o.array.astype(np.float64)
        sure &= np.isfinite(other) == finite
        with np.errstate(all="ignore"):
            moved = np.maximum(moved, np.where(finite & np.isfinite(other), np.abs(other - wide), 0.0))
    size = float(np.abs(wide[finite]).max(initial=0.0))
    most = float(moved.max(initial=0.0))
    # Where nothing overflows, the wider exponents of float64 still may, in float32.
    if precision is COARSE:
        sure &= (np.abs(wide) < 1e38) | ~finite
    return found._replace(sure=sure, limit=8 * most + precision[found.dtype] * (64 * size + 8 * given))


def differs(got: Expected, want: Expected) -> str:
    """Empty where a result is as expected, else what differs."""
    if isinstance(want, Refused) or isinstance(got, Refused):
        if isinstance(want, Refused) and isinstance(got, Refused) and _same_refusal(got, want):
            return ""
        return f"{_said(got)}, eager NumPy {_said(want)}"
    if len(got) != len(want):
        return f"{len(got)} values, expected {len(want)}"
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if said := _unlike(a, b):
            return f"output {i}: {said}"
    return ""


# Where a function has no check of its own, the words are those of NumPy, or of Python.
# A saved plan names the file and its input, where the function is not known any more.
EXPLAINED = ("cannot compute this", "out of bounds", "plan.wasm", "plan.bpk", "index of input")


def _same_refusal(got: Refused, want: Refused) -> bool:
    """Whether two errors are of one class and, unless one of them explains an error of NumPy, say the same."""
    explained = any(words in found.words for words in EXPLAINED for found in (got, want))
    return got.kind == want.kind and (explained or got.words == want.words)


def _said(found: Expected) -> str:
    if isinstance(found, Refused):
        return f"raises {found.kind}: {found.words.partition(chr(10))[0]}"
    return "returns " + ", ".join(f"{x.dtype} {np.shape(x.array)}" for x in found)[:200]


def _unlike(got: Leaf, want: Leaf) -> str:
    if not isinstance(want.array, np.ndarray):
        return "" if got.array == want.array else f"{got.array}, expected {want.array}"
    if got.dtype != want.dtype or got.array.shape != want.array.shape:
        return f"{got.dtype} {np.shape(got.array)}, expected {want.dtype} {want.array.shape}"
    a, b = got.array, want.array
    if want.dtype in EPSILON:
        a, b = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            right = (np.abs(a - b) <= want.limit) | (a == b) | (np.isnan(a) & np.isnan(b))
    else:
        right = (a == b) | ((a != a) & (b != b))  # NaN of dtypes that NumPy has not
    wrong = np.asarray(want.sure & ~right)
    if not wrong.any():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    values = np.atleast_1d(got.array)[at], np.atleast_1d(want.array)[at]
    return f"{int(wrong.sum())} of {b.size} elements differ; at {at} it has {values[0]}, expected {values[1]}"


def choice(seed: int, *words: Any) -> random.Random:
    """The random choices of a case, by its seed."""
    return random.Random(f"{seed}/{'/'.join(map(str, words))}")
