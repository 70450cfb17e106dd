"""Post-processing of classifiers: softmax_zero, probit, one_hot_encode, and ONNX maps (dicts).

Semantics: the operators of ai.onnx.ml.
"""

import math

from ... import dtypes
from ...backend import get_backend
from ...errors import ArgumentError, IndexingError, ShapeError
from ..operands import astype, floating, tensor
from ..overriding import composite

_INF = float("inf")  # math.inf is missing on some ports


#: function; ai.onnx.ml SOFTMAX_ZERO
@composite
def softmax_zero(x):
    """Softmax along the last axis over the nonzero elements; zeros stay 0."""
    x = floating(x)
    backend, axis = x.backend, (x.ndim - 1,)
    zero = backend.full((), 0, x.dtype)
    powers = backend.unary("exp", backend.binary("sub", x, backend.reduce("max", x, axis, True)))
    powers = backend.where(backend.binary("eq", x, zero), zero, powers)
    total = backend.reduce("sum", powers, axis, True)
    return backend.binary(
        "div", powers, backend.where(backend.binary("eq", total, zero), backend.full((), 1, x.dtype), total)
    )


def probit_of(p):
    """The inverse of the normal distribution function at a Python number, by bisection of erf; NaN outside [0, 1]."""
    if not 0 < p < 1:
        return -_INF if p == 0 else _INF if p == 1 else float("nan")
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        if 0.5 * (1 + math.erf(middle / math.sqrt(2))) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


#: function; ai.onnx.ml PROBIT
@composite
def probit(x):
    """The inverse of the normal distribution function of every element; NaN outside [0, 1]. Reads its input."""
    x = floating(x)
    return x.backend.from_list([probit_of(p) for p in x.backend.to_list(x)], x.dtype, x.shape)


#: function; ai.onnx.ml OneHotEncoder; categories: Sequence[int | str]
@composite
def one_hot_encode(x, categories, unknown="zeros"):
    """float32 (*x.shape, n): 1 where x equals the n-th of `categories`, which are all strings or all integers. Reads
    its input.

    Floats are truncated to integers. An unknown category gives all zeros; with unknown="error" it raises IndexingError.
    """
    if unknown not in ("zeros", "error"):
        raise ArgumentError("one_hot_encode: unknown is 'zeros' or 'error', found {!r}".format(unknown))
    x = tensor(x)
    place = {}
    for i in range(len(categories)):
        place[categories[i]] = i
    out = []
    for value in x.backend.to_list(x if x.dtype.kind == "string" else astype(x, dtypes.int64)):
        row = [0.0] * len(categories)
        if value in place:
            row[place[value]] = 1.0
        elif unknown == "error":
            raise IndexingError("one_hot_encode: {!r} is not one of the {} categories".format(value, len(categories)))
        out += row
    return x.backend.from_list(out, dtypes.float32, x.shape + (len(categories),))


#: function; ai.onnx.ml ZipMap; keys: Sequence[int | str] -> list[dict[Any, float]]
def zip_map(x, keys):
    """A dict from keys[i] to element i for each row of x (rows, n) or (n,). Reads its input."""
    x = tensor(x)
    if x.ndim not in (1, 2) or x.shape[-1] != len(keys):
        raise ShapeError("zip_map takes (rows, {}), one element for each key, found {}".format(len(keys), x.shape))
    rows = x.tolist() if x.ndim == 2 else [x.tolist()]
    return [dict(zip(keys, row)) for row in rows]


#: function; ai.onnx.ml DictVectorizer; x: Mapping[Any, Any]; vocabulary: Sequence[Any]
def dict_vectorize(x, vocabulary, dtype, backend=None):
    """(1, n) of dtype: the dict's value for each word of the vocabulary; 0, or "", for a missing word."""
    dtype = dtypes.dtype(dtype)
    missing = "" if dtype is dtypes.string else 0
    values = [x.get(word, missing) for word in vocabulary]
    return get_backend(backend).from_list(values, dtype, (1, len(values)))


#: function; ai.onnx.ml CastMap; x: Mapping[int, Any]; size: int
def map_to_tensor(x, dtype, size=None, backend=None):
    """(1, n) of dtype: the values of a dict with integer keys, sorted by key; strings are parsed as numbers.

    size: the keys are positions in a row of this length instead; positions without a key are 0, or "". Raises
    IndexingError for a key out of range.
    """
    dtype = dtypes.dtype(dtype)
    convert = _written if dtype is dtypes.string else float if dtype.is_float else int
    if size is None:
        values = [convert(x[key]) for key in sorted(x)]
    else:
        values = ["" if dtype is dtypes.string else 0] * size
        for key in x:
            if not 0 <= key < size:
                raise IndexingError("map_to_tensor: the key {} is outside [0, {})".format(key, size))
            values[key] = convert(x[key])
    return get_backend(backend).from_list(values, dtype, (1, len(values)))


def _written(value):
    from .text import as_strings

    return value if isinstance(value, str) else as_strings(tensor(float(value), "python")).tolist()
