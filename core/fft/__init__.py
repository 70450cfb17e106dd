"""Discrete Fourier transforms: the array API standard's extension, on the backends numpy and python of CPython.

Inputs become complex (or stay real in `rfft` and its kin): float32 gives complex64, float64 complex128. `n` cuts the
axis or fills it with zeros. norm: "backward" divides the inverse by n, "forward" the forward transform, "ortho" both by
its square root. For GPUs and devices, which have no complex numbers, `functional.dft` keeps pairs of floats.
"""

from math import sqrt

from ..errors import ArgumentError, DTypeError, ShapeError
from ..functional.creation.fills import arange
from ..functional.elementwise.complex_parts import conj, view_as_complex, view_as_real
from ..functional.movement.joining import concat
from ..functional.movement.rearranging import expand_dims, roll
from ..functional.operands import floating
from ..functional.windows.signal import dft
from ..shapes import axis_of

_FUNCTIONS = "fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn"  # for dir()


def _factor(norm, n, inverse):
    if norm not in ("backward", "ortho", "forward"):
        raise ArgumentError("fft: norm is 'backward', 'ortho' or 'forward', found {!r}".format(norm))
    # dft itself divides the inverse.
    if norm == "ortho":
        return sqrt(n) if inverse else 1 / sqrt(n)
    return {("forward", True): n, ("forward", False): 1 / n}.get((norm, inverse), 1)


def _length(n, have):
    n = have if n is None else n
    if n < 1:
        raise ShapeError("fft: a transform of {} elements is undefined".format(n))
    return n


def _pairs(x, real_only=False):
    """x as real and imaginary parts (…, 2), or real numbers as (…, 1)."""
    x = floating(x)
    if x.dtype.bits < 32:
        raise DTypeError("fft takes float32, float64 and complex numbers, found {}".format(x.dtype))
    if x.dtype.kind == "complex":
        if real_only:
            raise DTypeError("rfft takes real numbers, found {}; fft takes complex ones".format(x.dtype))
        return view_as_real(x)
    return expand_dims(x, x.ndim)


def _transform(x, n, axis, norm, inverse):
    pairs = _pairs(x)
    axis = axis_of(axis, pairs.ndim - 1)
    n = _length(n, pairs.shape[axis])
    factor = _factor(norm, n, inverse)
    out = dft(pairs, n, axis, inverse)
    return view_as_complex(out if factor == 1 else out * factor)


def fft(x, *, n=None, axis=-1, norm="backward"):
    """The transform of x along axis -> complex, `n` long there. Raises ShapeError for an empty axis."""
    return _transform(x, n, axis, norm, False)


def ifft(x, *, n=None, axis=-1, norm="backward"):
    """The inverse of `fft`."""
    return _transform(x, n, axis, norm, True)


def _sides(x, s, axes, last=None):
    """Pairs of an axis and its length; last: the length of the last one where s is None, which must be there."""
    rank = len(x.shape)
    if axes is None:
        axes = tuple(range(rank))[-(rank if s is None else len(s)) :]
    if last is not None and not axes:
        raise ShapeError("fft: there is no axis to transform in a tensor of shape {}, axes {}".format(x.shape, axes))
    if s is None:
        s = [x.shape[a] for a in axes]
        if last is not None:
            s[-1] = last(s[-1])
    if len(s) != len(axes):
        raise ShapeError("fft: {} lengths for {} axes".format(len(s), len(axes)))
    return list(zip(axes, s))


def fftn(x, *, s=None, axes=None, norm="backward"):
    """`fft` along several axes, by default all. s: a length for each of them."""
    for axis, n in _sides(x, s, axes):
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


def ifftn(x, *, s=None, axes=None, norm="backward"):
    """The inverse of `fftn`."""
    for axis, n in _sides(x, s, axes):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return x


def rfft(x, *, n=None, axis=-1, norm="backward"):
    """The first n // 2 + 1 frequencies of real numbers, which determine the others."""
    pairs = _pairs(x, True)
    axis = axis_of(axis, pairs.ndim - 1)
    n = _length(n, pairs.shape[axis])
    return view_as_complex(dft(pairs, n, axis, False, True) * _factor(norm, n, False))


def irfft(x, *, n=None, axis=-1, norm="backward"):
    """The inverse of `rfft`: real numbers, n along axis, by default 2 * (m - 1) for m frequencies."""
    pairs = _pairs(x)
    axis = axis_of(axis, pairs.ndim - 1)
    n = _length(n, 2 * (pairs.shape[axis] - 1))
    out = dft(pairs, n, axis, True, True) * _factor(norm, n, True)
    return out.reshape(out.shape[:-1])


def rfftn(x, *, s=None, axes=None, norm="backward"):
    """`rfft` along the last of several axes, by default all, and `fft` along the others."""
    sides = _sides(x, s, axes, int)
    axis, n = sides[-1]
    return fftn(
        rfft(x, n=n, axis=axis, norm=norm), s=[n for _, n in sides[:-1]], axes=[a for a, _ in sides[:-1]], norm=norm
    )  # fmt: skip


def irfftn(x, *, s=None, axes=None, norm="backward"):
    """The inverse of `rfftn`: real numbers."""
    sides = _sides(x, s, axes, lambda m: 2 * (m - 1))
    axis, n = sides[-1]
    x = ifftn(x, s=[n for _, n in sides[:-1]], axes=[a for a, _ in sides[:-1]], norm=norm)
    return irfft(x, n=n, axis=axis, norm=norm)


_SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x, *, n=None, axis=-1, norm="backward"):
    """The real transform of a signal that equals its reversed conjugate, of which x holds the first half."""
    return irfft(conj(x), n=n, axis=axis, norm=_SWAPPED.get(norm, norm))


def ihfft(x, *, n=None, axis=-1, norm="backward"):
    """The inverse of `hfft`."""
    return conj(rfft(x, n=n, axis=axis, norm=_SWAPPED.get(norm, norm)))


def fftfreq(n, *, d=1.0, dtype=None, device=None):
    """The frequencies of `fft` of n samples that are d apart: 0, 1, …, -2, -1 divided by n * d."""
    half = (n - 1) // 2 + 1
    both = [arange(a, b, dtype=dtype or "float32", device=device) for a, b in ((0, half), (half - n, 0))]
    return concat(both, 0) / (n * d)


def rfftfreq(n, *, d=1.0, dtype=None, device=None):
    """The frequencies of `rfft` of n samples that are d apart: 0, 1, …, n // 2 divided by n * d."""
    return arange(0, n // 2 + 1, dtype=dtype or "float32", device=device) / (n * d)


def fftshift(x, *, axes=None):
    """x with the frequency 0 in the middle of the axes, by default of all."""
    return _shifted(x, axes, 1)


def ifftshift(x, *, axes=None):
    """The inverse of `fftshift`."""
    return _shifted(x, axes, -1)


def _shifted(x, axes, way):
    axes = range(len(x.shape)) if axes is None else (axes,) if isinstance(axes, int) else axes
    axes = tuple([axis_of(a, len(x.shape)) for a in axes])
    half = tuple([x.shape[a] // 2 if way > 0 else -(x.shape[a] // 2) for a in axes])
    return roll(x, half, axes) if axes else x


def __getattr__(name):
    return __import__("emberlet.lookup", None, None, ("absent",)).absent("emberlet.fft", name)


def __dir__():
    return _FUNCTIONS.split()


def _explain():
    # As the functions of emberlet.functional: errors say which argument is wrong, and NumPy's numbers are taken.
    gate = __import__("emberlet.lookup", None, None, ("gate",)).gate
    for name in __dir__() if gate else ():
        globals()[name] = gate(globals()[name])


_explain()
