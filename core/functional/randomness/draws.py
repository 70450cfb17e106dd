"""Random numbers from one counter-based generator, Philox 4×32-10: the same integers and uniforms on every backend.

Each draw takes the next blocks of one sequence, which `manual_seed` restarts; threads share the sequence and never get
the same blocks. A draw with `seed=` is independent of the sequence: the same seed always gives the same numbers, on
every backend. A seed is any integer; it is taken modulo 2**64, the range of Philox's keys.
"""

from ... import dtypes
from ...backend import get_backend
from ...backend.drawing import check_draw, source
from ...errors import ArgumentError, ShapeError
from ...shapes import size
from ..operands import floating, tensor
from ..overriding import composite

try:
    from _thread import allocate_lock

    _lock = allocate_lock()
except ImportError:  # a port of MicroPython without threads

    class _NoLock:
        def __enter__(self):
            pass

        def __exit__(self, *_):
            pass

    _lock = _NoLock()

# Key and next counter of the sequence; the first draw chooses the key.
_state = [None, 0]
# float dtype -> random bits that fit its mantissa, so that no value rounds up to 1; float64 takes 53 from two words
_MANTISSA = {"float32": 24, "float16": 11, "bfloat16": 8}


#: function; PyTorch manual_seed -> None
def manual_seed(seed):
    """Restart the sequence: the same seed, an integer modulo 2**64, gives the same draws in the same order."""
    with _lock:
        _restart(int(seed))


def _restart(seed):
    _state[0] = seed & 0xFFFFFFFFFFFFFFFF
    _state[1] = 0


def _entropy():
    try:
        from os import urandom

        return urandom(8)
    except ImportError:
        import time

        return str(time.time()).encode()[-8:]


def _taken(blocks):
    """Reserve `blocks` blocks of the sequence; returns the key and the counter of the first."""
    check_draw()
    given = source()
    if given is not None:
        key, counter = given.state
        # Its counters only tell draws apart.
        given.state = key, counter + (blocks if type(blocks) is int else 1)
        return key, counter
    blocks = int(blocks)  # an open size raises here, before it becomes part of the state
    with _lock:
        if _state[0] is None:
            _restart(int.from_bytes(_entropy(), "little"))
        key, counter = _state
        _state[1] = counter + blocks
    return key, counter


def _shape(shape):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in shape:
        if n < 0:
            raise ShapeError("a shape has no negative sizes, found {}".format(shape))
    return shape


#: function
def random_bits(shape, *, seed=None, backend=None):
    """uint32 of `shape`: Philox output, 32 random bits per element."""
    shape = _shape(shape)
    key, counter = (seed, 0) if seed is not None else _taken(-(-size(shape) // 4))
    given = source() if seed is None else None
    if given is not None:  # a plan, which takes them from an input
        return given.words(shape, counter)
    return get_backend(backend).random_bits(shape, int(key) & 0xFFFFFFFFFFFFFFFF, counter)


def _words(count, shape, seed, backend):
    """`count` uint32 tensors of `shape`."""
    shape = _shape(shape)
    bits = random_bits((count,) + shape, seed=seed, backend=backend)
    if count == 1:
        return [bits.backend.reshape(bits, shape)]
    zeros, ones = (0,) * len(shape), (1,) * (len(shape) + 1)
    backend = bits.backend
    return [backend.reshape(backend.slice(bits, (i,) + zeros, (1,) + shape, ones), shape) for i in range(count)]


def _words_each(dtype):
    """How many random words a uniform of `dtype` takes from the sequence: as many on every backend."""
    return 2 if dtype is dtypes.float64 else 1


def _unit(words, dtype, offset=0):
    """Uniforms in [0, 1), or (0, 1] with offset 1, from one word per element (two for the 53 bits of float64, of which
    a backend that computes float64 in float32 uses the upper 24)."""
    backend = words[0].backend

    def upper(bits, kept, wide):
        return backend.cast(backend.binary("shift_right", bits, backend.full((), 32 - kept, dtypes.uint32)), wide)

    if len(words) == 2 and not getattr(backend, "float64_is_float32", False):
        kept, wide = 53, dtypes.float64
        high = backend.binary("mul", upper(words[0], 27, wide), backend.full((), float(1 << 26), wide))
        x = backend.binary("add", high, upper(words[1], 26, wide))
    else:
        kept = _MANTISSA.get(dtype.name, 24 if dtype is dtypes.float64 else 8)
        wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
        x = upper(words[0], kept, wide)
    if offset:
        x = backend.binary("add", x, backend.full((), offset, wide))
    return backend.binary("mul", x, backend.full((), 1.0 / (1 << kept), wide))


def _log_of_unit(words, wide):
    """The logarithm of uniforms in (0, 1]. Where float64 is computed in float32, the 53 bits count too: near 1, where
    the logarithm is that of the distance from 1, and near 0."""
    backend = words[0].backend
    if len(words) == 1 or not getattr(backend, "float64_is_float32", False):
        return backend.unary("log", _unit(words, wide, 1))

    def scaled(words):
        parts = []
        for word, kept, power in ((words[0], 27, -27), (words[1], 26, -53)):
            part = backend.binary("shift_right", word, backend.full((), 32 - kept, dtypes.uint32))
            parts.append(backend.binary("mul", backend.cast(part, wide), backend.full((), 2.0**power, wide)))
        return backend.binary("add", *parts)

    x, rest = scaled(words), scaled([backend.unary("bitwise_not", word) for word in words])
    x = backend.binary("add", x, backend.full((), 2.0**-53, wide))
    near = backend.unary("log1p", backend.unary("neg", rest))
    return backend.where(backend.binary("lt", x, backend.full((), 0.5, wide)), backend.unary("log", x), near)


def _below(value, dtype):
    """The largest number of a float dtype that is less than `value`."""
    from struct import pack, unpack

    if dtype.bits > 16:
        number, code = ("<d", "<Q") if dtype.bits == 64 else ("<f", "<I")

        def bits_of(v):
            return unpack(code, pack(number, v))[0]

        def value_of(bits):
            return unpack(number, pack(code, bits))[0]
    else:
        from ...dtypes.narrow import decode, encode

        def bits_of(v):
            return encode(dtype, v)

        def value_of(bits):
            return decode(dtype, bits)

    sign = 1 << (dtype.bits - 1)
    bits = bits_of(value)
    if value_of(bits) < value:
        return value_of(bits)
    if not bits & (sign - 1):  # below zero
        return value_of(sign | 1)
    return value_of(bits + 1 if bits & sign else bits - 1)


#: function; ONNX RandomUniform -> Tensor[float]
def uniform(shape, low=0.0, high=1.0, *, dtype=None, seed=None, backend=None):
    """Floats uniformly distributed over [low, high), in steps of 2**-24 of the range (2**-53 in float64).

    Raises ShapeError if high is less than low or the range is not finite.
    """
    dtype = dtypes.dtype(dtype or dtypes.float32)
    span = high - low
    if not (span >= 0 and span - span == 0):
        raise ShapeError("uniform needs finite numbers with low <= high, found {} and {}".format(low, high))
    plain = low == 0 and high == 1
    drawn = dtype if plain or dtype is dtypes.float64 else dtypes.float32
    x = _unit(_words(_words_each(drawn), shape, seed, backend), drawn)
    backend = x.backend
    if span != 1:
        x = backend.binary("mul", x, backend.full((), span, x.dtype))
    if low:
        x = backend.binary("add", x, backend.full((), low, x.dtype))
    x = x if x.dtype is dtype else backend.cast(x, dtype)
    if span and not (plain and dtype.bits >= 16):
        # The last steps may have been rounded up to `high`.
        last = _below(
            high, dtypes.float32 if getattr(backend, "float64_is_float32", False) and dtype.bits > 32 else dtype
        )
        x = backend.binary("minimum", x, backend.full((), last, dtype))
    return x


#: function; ONNX RandomNormal -> Tensor[float]
def normal(shape, mean=0.0, std=1.0, *, dtype=None, seed=None, backend=None):
    """Normally distributed floats (the Box-Muller transform of two uniforms)."""
    dtype = dtypes.dtype(dtype or dtypes.float32)
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    each = _words_each(wide)
    words = _words(2 * each, shape, seed, backend)
    backend = words[0].backend
    log = _log_of_unit(words[:each], wide)
    radius = backend.unary("sqrt", backend.binary("mul", log, backend.full((), -2, wide)))
    angle = backend.binary("mul", _unit(words[each:], wide), backend.full((), 6.283185307179586, wide))
    x = backend.binary("mul", radius, backend.unary("cos", angle))
    if std != 1:
        x = backend.binary("mul", x, backend.full((), std, wide))
    if mean:
        x = backend.binary("add", x, backend.full((), mean, wide))
    return x if wide is dtype else backend.cast(x, dtype)


#: function; ONNX Bernoulli; p: TensorLike
def bernoulli(p, shape=None, *, dtype=None, seed=None, backend=None):
    """True with probability p: a number (`shape` is then required) or a tensor of probabilities. bool unless `dtype` is
    given."""
    if shape is not None:
        draw = uniform(shape, seed=seed, backend=backend)
        p = draw.backend.full((), p, draw.dtype)
    else:
        p = floating(tensor(p))
        # A draw in p's own dtype would be too coarse for a narrow one: 2**8 steps cannot represent 0.1.
        wide = dtypes.float64 if p.dtype is dtypes.float64 else dtypes.float32
        p = p if p.dtype is wide else p.backend.cast(p, wide)
        draw = uniform(p.shape, dtype=wide, seed=seed, backend=p.backend)
    out = draw.backend.binary("lt", draw, p)
    return out if dtype is None else draw.backend.cast(out, dtypes.dtype(dtype))


#: function; PyTorch randint; Burn int_random; low: int; high: int -> Tensor[int]
def randint(low, high=None, shape=(), *, dtype=None, seed=None, backend=None):
    """Integers uniformly distributed over low … high - 1 (0 … low - 1 without high), int64 unless `dtype` is given.

    Raises ShapeError if the range is empty or wider than 2**32, DTypeError if it does not fit dtype.
    """
    low, high = (0, low) if high is None else (low, high)
    span = high - low
    if not 0 < span <= 1 << 32:
        raise ShapeError("randint needs 1 to 2**32 different numbers, found {} to {}".format(low, high))
    dtype = dtypes.dtype(dtype or dtypes.int64)
    from ..promotion import check_range

    check_range(low, dtype)
    check_range(high - 1, dtype)
    first, second = _words(2, shape, seed, backend)
    backend = first.backend
    x = first
    if span < 1 << 32:
        # floor(64 random bits * span / 2**64): from 32 bits, spans near 2**32 would draw some numbers twice as often.
        below = _upper_product(second, span)
        bottom = backend.binary("mul", first, backend.full((), span, dtypes.uint32))
        total = backend.binary("add", bottom, below)
        carry = backend.cast(backend.binary("lt", total, below), dtypes.uint32)
        x = backend.binary("add", _upper_product(first, span), carry)
    x = backend.cast(x, dtype)
    return backend.binary("add", x, backend.full((), low, dtype)) if low else x


def _upper_product(bits, span):
    """The upper half of the 64-bit product bits * span, from 16-bit halves: no backend needs more than uint32."""
    backend = bits.backend

    def number(v):
        return backend.full((), v, dtypes.uint32)

    def times(a, v):
        return backend.binary("mul", a, number(v))

    def upper(a):
        return backend.binary("shift_right", a, number(16))

    def lower(a):
        return backend.binary("bitwise_and", a, number(0xFFFF))

    top, bottom = upper(bits), lower(bits)
    one, two = times(top, span & 0xFFFF), times(bottom, span >> 16)
    carry = backend.binary("add", backend.binary("add", lower(one), lower(two)), upper(times(bottom, span & 0xFFFF)))
    x = backend.binary("add", times(top, span >> 16), backend.binary("add", upper(one), upper(two)))
    return backend.binary("add", x, upper(carry))


#: function; PyTorch randperm; n: int
def permutation(n, *, seed=None, backend=None):
    """0 … n - 1 in random order (int64)."""
    return random_bits((n,), seed=seed, backend=backend).argsort()


#: function; Burn random; args: Any
def random(shape, distribution="uniform", *args, dtype=None, seed=None, backend=None):
    """A draw by name: "uniform" (low, high), "normal" (mean, std) or "bernoulli" (p), each with its defaults."""
    if distribution in ("uniform", "default"):
        return uniform(shape, *args, dtype=dtype, seed=seed, backend=backend)
    if distribution == "normal":
        return normal(shape, *args, dtype=dtype, seed=seed, backend=backend)
    if distribution == "bernoulli":
        p = args[0] if args else 0.5
        return bernoulli(p, shape, dtype=dtype or dtypes.float32, seed=seed, backend=backend)
    raise ArgumentError("distribution is uniform, normal or bernoulli, found {!r}".format(distribution))


#: method; Burn random_like; args: Any
@composite
def random_like(x, distribution="uniform", *args, seed=None):
    """`random` with x's shape, dtype and backend."""
    return random(x.shape, distribution, *args, dtype=x.dtype, seed=seed, backend=x.backend)
