"""Random numbers from one counter-based generator, Philox 4×32-10: the same integers and uniforms on every backend.

Each draw takes the next blocks of one sequence, which `manual_seed` restarts. With `seed=` a draw stands for itself:
the same seed gives the same numbers, wherever and whenever.
"""

from ... import dtypes
from ...backend import get_backend
from ...errors import ShapeError
from ...shapes import size
from ..operands import floating, tensor

# Key and next counter of the sequence; the key comes with the first draw.
_state = [None, 0]
# float dtype -> random bits that its mantissa takes, so that no value rounds up to 1
_MANTISSA = {"float64": 24, "float32": 24, "float16": 11, "bfloat16": 8}


def manual_seed(seed):
    """Restart the sequence: the same seed gives the same draws in the same order."""
    _state[0] = int(seed) & 0xFFFFFFFFFFFFFFFF
    _state[1] = 0


def _entropy():
    try:
        from os import urandom

        return urandom(8)
    except ImportError:
        import time

        return str(time.time()).encode()[-8:]


def random_bits(shape, *, seed=None, backend=None):
    """uint32 of `shape`: Philox output, 32 fair bits an element."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in shape:
        if n < 0:
            raise ShapeError("a shape has no negative sizes, found {}".format(shape))
    key, counter = seed, 0
    if seed is None:
        if _state[0] is None:
            manual_seed(int.from_bytes(_entropy(), "little"))
        key, counter = _state
        _state[1] += -(-size(shape) // 4)
    return get_backend(backend).random_bits(shape, int(key) & 0xFFFFFFFFFFFFFFFF, counter)


def _unit(bits, dtype, offset=0):
    """Uniforms in [0, 1), or (0, 1] with offset 1, from random bits."""
    k = bits.backend
    kept = _MANTISSA.get(dtype.name, 8)
    bits = k.binary("shift_right", bits, k.full((), 32 - kept, dtypes.uint32))
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    x = k.cast(bits, wide)
    if offset:
        x = k.binary("add", x, k.full((), offset, wide))
    return k.binary("mul", x, k.full((), 1.0 / (1 << kept), wide))


def uniform(shape, low=0.0, high=1.0, *, dtype=None, seed=None, backend=None):
    """Floats evenly spread over [low, high)."""
    dtype = dtypes.dtype(dtype or dtypes.float32)
    x = _unit(random_bits(shape, seed=seed, backend=backend), dtype)
    k = x.backend
    if high - low != 1:
        x = k.binary("mul", x, k.full((), high - low, x.dtype))
    if low:
        x = k.binary("add", x, k.full((), low, x.dtype))
    return x if x.dtype is dtype else k.cast(x, dtype)


def normal(shape, mean=0.0, std=1.0, *, dtype=None, seed=None, backend=None):
    """Floats of the normal distribution (Box and Muller's transform of two uniforms)."""
    dtype = dtypes.dtype(dtype or dtypes.float32)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    bits = random_bits((2,) + shape, seed=seed, backend=backend)
    k = bits.backend
    rest = len(shape)
    ones, zeros = (1,) * (rest + 1), (0,) * rest
    first = k.reshape(k.slice(bits, (0,) + zeros, (1,) + shape, ones), shape)
    second = k.reshape(k.slice(bits, (1,) + zeros, (1,) + shape, ones), shape)
    radius = k.unary("sqrt", k.binary("mul", k.unary("log", _unit(first, wide, 1)), k.full((), -2, wide)))
    angle = k.binary("mul", _unit(second, wide), k.full((), 6.283185307179586, wide))
    x = k.binary("mul", radius, k.unary("cos", angle))
    if std != 1:
        x = k.binary("mul", x, k.full((), std, wide))
    if mean:
        x = k.binary("add", x, k.full((), mean, wide))
    return x if wide is dtype else k.cast(x, dtype)


def bernoulli(p, shape=None, *, dtype=None, seed=None, backend=None):
    """True with probability p: a number (then `shape` is wanted) or a tensor of them. bool unless `dtype` is given."""
    if shape is not None:
        draw = uniform(shape, seed=seed, backend=backend)
        p = draw.backend.full((), p, draw.dtype)
    else:
        p = floating(tensor(p))
        draw = uniform(p.shape, dtype=p.dtype, seed=seed, backend=p.backend)
    out = draw.backend.binary("lt", draw, p)
    return out if dtype is None else draw.backend.cast(out, dtypes.dtype(dtype))


def randint(low, high=None, shape=(), *, dtype=None, seed=None, backend=None):
    """Whole numbers evenly spread over low … high - 1 (0 … low - 1 without high), int64 unless `dtype` is given.

    Raises ShapeError for an empty range or one wider than 2**32.
    """
    low, high = (0, low) if high is None else (low, high)
    span = high - low
    if not 0 < span <= 1 << 32:
        raise ShapeError("randint wants 1 to 2**32 different numbers, found {} to {}".format(low, high))
    dtype = dtypes.dtype(dtype or dtypes.int64)
    bits = random_bits(shape, seed=seed, backend=backend)
    k = bits.backend
    if span == 1 << 32:
        x = bits
    else:
        # The upper half of the 64-bit product bits * span, from 16-bit halves: no backend needs more than uint32.
        def number(v):
            return k.full((), v, dtypes.uint32)

        def times(a, v):
            return k.binary("mul", a, number(v))

        def upper(a):
            return k.binary("shift_right", a, number(16))

        def lower(a):
            return k.binary("bitwise_and", a, number(0xFFFF))

        top, bottom = upper(bits), lower(bits)
        one, two = times(top, span & 0xFFFF), times(bottom, span >> 16)
        carry = k.binary("add", k.binary("add", lower(one), lower(two)), upper(times(bottom, span & 0xFFFF)))
        x = k.binary("add", times(top, span >> 16), k.binary("add", upper(one), upper(two)))
        x = k.binary("add", x, upper(carry))
    x = k.cast(x, dtype)
    return k.binary("add", x, k.full((), low, dtype)) if low else x


def permutation(n, *, seed=None, backend=None):
    """0 … n - 1 in random order (int64)."""
    return random_bits((n,), seed=seed, backend=backend).argsort()


def random(shape, distribution="uniform", *args, dtype=None, seed=None, backend=None):
    """A draw by name: "uniform" (low, high), "normal" (mean, std) or "bernoulli" (p), each with its defaults."""
    if distribution in ("uniform", "default"):
        return uniform(shape, *args, dtype=dtype, seed=seed, backend=backend)
    if distribution == "normal":
        return normal(shape, *args, dtype=dtype, seed=seed, backend=backend)
    if distribution == "bernoulli":
        p = args[0] if args else 0.5
        return bernoulli(p, shape, dtype=dtype or dtypes.float32, seed=seed, backend=backend)
    raise ValueError("distribution is uniform, normal or bernoulli, found {!r}".format(distribution))


def random_like(x, distribution="uniform", *args, seed=None):
    """`random` with x's shape, dtype and backend."""
    return random(x.shape, distribution, *args, dtype=x.dtype, seed=seed, backend=x.backend)
