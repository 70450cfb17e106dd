"""Comparisons, logic, bitwise operations, and choosing between two tensors."""

from ... import dtypes
from ...errors import DTypeError
from ...shapes import broadcast
from ..operands import astype, is_scalar, like, same_backend, tensor
from ..overriding import composite, one_backend
from ..promotion import integers, paired


def _compare(op, x1, x2):
    a, b = paired(x1, x2)
    return a.backend.binary(op, a, b)


#: method; array API -> Tensor[bool]
def equal(x1, x2):
    """Elementwise x1 == x2 (bool). NaN equals nothing."""
    return _compare("eq", x1, x2)


#: method; array API -> Tensor[bool]
def not_equal(x1, x2):
    """Elementwise x1 != x2 (bool)."""
    return _compare("ne", x1, x2)


#: method; array API -> Tensor[bool]
def less(x1, x2):
    """Elementwise x1 < x2 (bool)."""
    return _compare("lt", x1, x2)


#: method; array API -> Tensor[bool]
def less_equal(x1, x2):
    """Elementwise x1 <= x2 (bool)."""
    return _compare("le", x1, x2)


#: method; array API -> Tensor[bool]
def greater(x1, x2):
    """Elementwise x1 > x2 (bool)."""
    return _compare("gt", x1, x2)


#: method; array API -> Tensor[bool]
def greater_equal(x1, x2):
    """Elementwise x1 >= x2 (bool)."""
    return _compare("ge", x1, x2)


#: method; array API; ONNX IsNaN; Burn is_nan -> Tensor[bool]
def isnan(x):
    """Whether each element is NaN."""
    x = tensor(x)
    return x.backend.unary("isnan", x) if x.dtype.is_float else x.backend.full(x.shape, False, dtypes.bool)


#: method; array API; ONNX IsInf -> Tensor[bool]
def isinf(x):
    """Whether each element is an infinity."""
    x = tensor(x)
    return x.backend.unary("isinf", x) if x.dtype.is_float else x.backend.full(x.shape, False, dtypes.bool)


#: method; array API -> Tensor[bool]
@composite
def isfinite(x):
    """Whether each element is neither NaN nor an infinity."""
    x = tensor(x)
    if not x.dtype.is_float:
        return x.backend.full(x.shape, True, dtypes.bool)
    backend = x.backend
    return backend.unary(
        "logical_not", backend.binary("logical_or", backend.unary("isnan", x), backend.unary("isinf", x))
    )


#: method; Burn contains_nan -> Tensor[bool]
@composite
def contains_nan(x):
    """Whether any element is NaN, as a bool tensor without axes."""
    x = isnan(x)
    return x.backend.reduce("any", x, tuple(range(len(x.shape))), False)


def _logic(op, x1, x2):
    a, b = paired(x1, x2)
    return a.backend.binary(op, a, b)


#: method; array API -> Tensor[bool]
def logical_and(x1, x2):
    """Both true (not 0)."""
    return _logic("logical_and", x1, x2)


#: method; array API -> Tensor[bool]
def logical_or(x1, x2):
    """Either true (not 0)."""
    return _logic("logical_or", x1, x2)


#: method; array API -> Tensor[bool]
def logical_xor(x1, x2):
    """Exactly one true (not 0)."""
    return _logic("logical_xor", x1, x2)


#: method; array API -> Tensor[bool]
def logical_not(x):
    """True where x is False or 0."""
    x = tensor(x)
    return x.backend.unary("logical_not", x)


def _bits(op, x1, x2, bools=True):
    a, b = paired(x1, x2)
    if not (a.dtype.is_integer or (bools and a.dtype.is_bool)):
        raise DTypeError("{} takes integers, found {}".format(op, a.dtype))
    if a.dtype.is_bool:
        op = op.replace("bitwise", "logical")
    return a.backend.binary(op, a, b)


#: method; array API
def bitwise_and(x1, x2):
    """Bits set in both; for bools, logical and."""
    return _bits("bitwise_and", x1, x2)


#: method; array API
def bitwise_or(x1, x2):
    """Bits set in either; for bools, logical or."""
    return _bits("bitwise_or", x1, x2)


#: method; array API
def bitwise_xor(x1, x2):
    """Bits set in exactly one; for bools, logical exclusive or."""
    return _bits("bitwise_xor", x1, x2)


#: method; array API
def bitwise_left_shift(x1, x2):
    """x1 << x2 within x1's width."""
    return _bits("shift_left", x1, x2, False)


#: method; array API
def bitwise_right_shift(x1, x2):
    """x1 >> x2; arithmetic for signed dtypes."""
    return _bits("shift_right", x1, x2, False)


#: method; array API
def bitwise_invert(x):
    """Every bit flipped; for bools, logical not."""
    x = integers(x, "bitwise_invert")
    return x.backend.unary("logical_not" if x.dtype.is_bool else "bitwise_not", x)


# Called by the operators &, |, ^ and ~.
#: operator
_and = bitwise_and
#: operator
_or = bitwise_or
#: operator
_xor = bitwise_xor
#: operator
_invert = bitwise_invert


#: function; array API
@one_backend
def where(condition, x1, x2):
    """x1 where condition is True (or a nonzero number), else x2; all three broadcast."""
    condition = tensor(condition, getattr(x1, "backend", None) or getattr(x2, "backend", None))
    if is_scalar(x1) and is_scalar(x2):
        x1 = tensor(x1, condition.backend)
    a, b = paired(x1, x2)
    same_backend(condition, a)
    broadcast(condition.shape, a.shape, b.shape)
    return a.backend.where(astype(condition, dtypes.bool), a, b)


#: method; Burn mask_where
@one_backend
def mask_where(x, mask, value):
    """`value` (tensor) where mask is True, else x, in x's dtype. Raises ShapeError unless the three broadcast."""
    x = tensor(x)
    mask = tensor(mask, x.backend)
    value = like(value, x)
    same_backend(x, mask)
    broadcast(x.shape, mask.shape, value.shape)
    return x.backend.where(astype(mask, dtypes.bool), value, x)


#: method; Burn mask_fill
@composite
def mask_fill(x, mask, value):
    """`value` (number) where mask is True, else x, in x's dtype."""
    return mask_where(x, mask, value)


#: method; NumPy isclose; Burn is_close -> Tensor[bool]
@composite
def is_close(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Elementwise |x1 - x2| <= atol + rtol * |x2|; an infinity is close only to itself."""
    a, b = paired(x1, x2)
    backend = a.backend
    same = backend.binary("eq", a, b)
    if not a.dtype.is_float:
        a, b = astype(a, dtypes.float64), astype(b, dtypes.float64)
    gap = backend.unary("abs", backend.binary("sub", a, b))
    size = backend.unary("abs", b)
    bound = backend.binary(
        "add", backend.full((), atol, size.dtype), backend.binary("mul", backend.full((), rtol, size.dtype), size)
    )
    infinite = backend.binary("logical_or", backend.unary("isinf", a), backend.unary("isinf", b))
    near = backend.where(infinite, same, backend.binary("le", gap, bound))
    if equal_nan:
        near = backend.binary(
            "logical_or", near, backend.binary("logical_and", backend.unary("isnan", a), backend.unary("isnan", b))
        )
    return near


#: method; NumPy allclose; Burn all_close -> Tensor[bool]
@composite
def all_close(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether every pair `is_close`; a bool tensor without axes."""
    near = is_close(x1, x2, rtol, atol, equal_nan)
    return near.backend.reduce("all", near, tuple(range(len(near.shape))), False)
