"""Real and imaginary parts. Real numbers are their own; complex tensors belong to CPython and the backends numpy and
python (core/host/complex_tensors)."""

from ...errors import DTypeError, ShapeError
from ..operands import alias, floating, numeric, tensor
from .arithmetic import atan2


def _complex():
    # Not by an import statement: devices have no such package.
    return __import__("emberlet.host.complex_tensors.parts", None, None, ("*",))


#: method; array API
def real(x):
    """The real part, of x's float dtype; real numbers as they are."""
    x = numeric(x, "real")
    return _complex().part(x, "real") if x.dtype.kind == "complex" else alias(x)


#: method; array API
def imag(x):
    """The imaginary part, of x's float dtype; 0 for real numbers."""
    x = numeric(x, "imag")
    return _complex().part(x, "imag") if x.dtype.kind == "complex" else x.backend.full(x.shape, 0, x.dtype)


#: method; array API
def conj(x):
    """The conjugate: the imaginary part negated; real numbers as they are."""
    x = numeric(x, "conj")
    return _complex().conjugate(x) if x.dtype.kind == "complex" else alias(x)


#: method; NumPy angle
def angle(x):
    """The angle of a complex number in the plane, from -π to π; of real numbers 0 or π."""
    x = floating(x)
    return atan2(imag(x), real(x))


#: method; PyTorch view_as_complex
def view_as_complex(x):
    """The complex tensor (…) of x (…, 2), whose last axis holds real and imaginary parts. Raises ShapeError."""
    x = floating(tensor(x))
    if x.dtype.bits < 32:
        raise DTypeError("view_as_complex takes float32 or float64, found {}".format(x.dtype))
    if x.shape[-1:] != (2,):
        raise ShapeError("view_as_complex takes (…, 2), found shape {}".format(x.shape))
    return _complex().joined(x)


#: method; PyTorch view_as_real
def view_as_real(x):
    """The real and imaginary parts of a complex x (…) as a last axis (…, 2). Raises DTypeError for real numbers."""
    x = tensor(x)
    if x.dtype.kind != "complex":
        raise DTypeError("view_as_real takes complex numbers, found {}".format(x.dtype))
    return _complex().part(x, "pairs")
