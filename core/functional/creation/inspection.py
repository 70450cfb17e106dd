"""The array API standard's inspection of dtypes and of this library."""

from ... import dtypes
from ...dtypes import narrow
from ...errors import ArgumentError, DTypeError
from ...tensor import Tensor
from ..operands import is_scalar
from ..promotion import scalar_dtype


class _Info:
    def __init__(self, **facts):
        for name in facts:
            setattr(self, name, facts[name])


def _dtype(x):
    return x.dtype if isinstance(x, Tensor) else dtypes.dtype(x)


#: function; array API; type: DType | str | Tensor -> FloatInfo
def finfo(type):
    """bits, eps, max, min, smallest_normal and dtype of a floating-point dtype or tensor."""
    d = _dtype(type)
    d = getattr(d, "part", d)  # of a complex dtype
    if d is dtypes.float64:
        mantissa, low, largest = 52, -1022, (2.0 - 2.0**-52) * 2.0**1023
    elif d is dtypes.float32:
        mantissa, low, largest = 23, -126, (2.0 - 2.0**-23) * 2.0**127
    elif d.name in narrow.FORMATS:
        _, mantissa, bias, code, _, _ = narrow.FORMATS[d.name]
        low, largest = 1 - bias, narrow.decode(d, code)
    else:
        raise DTypeError("finfo is for floating-point dtypes, found {}".format(d))
    return _Info(bits=d.bits, eps=2.0**-mantissa, max=largest, min=-largest, smallest_normal=2.0**low, dtype=d)


#: function; array API; type: DType | str | Tensor -> IntInfo
def iinfo(type):
    """bits, max, min and dtype of an integer dtype or tensor."""
    d = _dtype(type)
    if not d.is_integer:
        raise DTypeError("iinfo is for integer dtypes, found {}".format(d))
    low, high = d.range
    return _Info(bits=d.bits, max=high, min=low, dtype=d)


#: function; array API; kind: DType | str | tuple[Any, ...] -> bool
def isdtype(dtype, kind):
    """Whether dtype is of a kind ("bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric"), is that dtype, or fits one of a tuple of those."""
    d = dtypes.dtype(dtype)
    if isinstance(kind, tuple):
        for k in kind:
            if isdtype(d, k):
                return True
        return False
    if isinstance(kind, dtypes.DType):
        return d is kind
    if kind == "bool":
        return d.is_bool
    if kind == "signed integer":
        return d.kind == "int"
    if kind == "unsigned integer":
        return d.kind == "uint"
    if kind == "integral":
        return d.is_integer
    if kind == "real floating":
        return d.kind == "float"
    if kind == "complex floating":
        return d.kind == "complex"
    if kind == "numeric":
        return d.is_float or d.is_integer  # complex numbers too
    raise ArgumentError("unknown kind of dtypes {!r}".format(kind))


#: function; array API; from_: DType | str | Tensor; to: DType | str -> bool
def can_cast(from_, to):
    """Whether type promotion allows a cast from a dtype (or a tensor's) to another."""
    to = dtypes.dtype(to)
    try:
        return dtypes.promote(_dtype(from_), to) is to
    except DTypeError:
        return False


#: function; array API; arrays_and_dtypes: TensorLike | DType -> DType
def result_type(*arrays_and_dtypes):
    """The dtype to which tensors, dtypes and Python scalars promote together. Raises DTypeError if there is none."""
    found = None
    scalars = []
    for a in arrays_and_dtypes:
        if is_scalar(a) and not isinstance(a, str):
            scalars.append(a)
        else:
            found = _dtype(a) if found is None else dtypes.promote(found, _dtype(a))
    if found is None:
        raise ArgumentError("result_type needs at least one tensor or dtype")
    for s in scalars:
        found = scalar_dtype(s, found)
    return found


def _has_complex(device):
    from ...backend import get_backend

    return hasattr(memoryview, "cast") and get_backend(device).name in ("numpy", "python")  # not on MicroPython


class _NamespaceInfo:
    """What this library can do (array API standard, inspection)."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        from ...backend import get_backend

        return repr(get_backend())

    def devices(self):
        from ...backend import available

        return available()

    def default_dtypes(self, *, device=None):
        return {
            "real floating": dtypes.float32,
            "complex floating": dtypes.dtype("complex64") if _has_complex(device) else None,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device=None, kind=None):
        standard = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
        if _has_complex(device):
            standard += ["complex64", "complex128"]
        found = {n: dtypes.dtype(n) for n in standard}
        if kind is None:
            return found
        return {n: found[n] for n in found if isdtype(found[n], kind)}


def __array_namespace_info__():
    """Devices, dtypes and capabilities of emberlet, for array-agnostic code."""
    return _NamespaceInfo()
