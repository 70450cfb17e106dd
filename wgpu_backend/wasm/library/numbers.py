"""Functions of one float32, in float64 where that rounds correctly almost everywhere."""

from ..assembler import call, f32, f64, i32, i64, op, select

INF = float("inf")
NAN = float("nan")


def _poly(z, terms):
    """The polynomial in z with coefficients `terms`, highest first, by Horner's scheme."""
    out = f64(terms[0])
    for c in terms[1:]:
        out = out * z + f64(c)
    return out


def exp64(f):
    x = f.let(op("f64.min", op("f64.max", f.param(0), f64(-740.0)), f64(700.0)))
    n = f.let(op("f64.nearest", x * 1.4426950408889634))
    r = f.let(x - n * 6.93147180369123816490e-01 - n * 1.90821492927058770002e-10)
    terms = []
    factorial = 1.0
    for k in range(13):
        terms.insert(0, 1.0 / factorial)
        factorial *= k + 1
    power = op("i64.shl", op("i64.add", op("i64.trunc_sat_f64_s", op("f64.max", n, f64(-1000.0))), i64(1023)), i64(52))
    f.give(_poly(r, terms) * op("f64.reinterpret_i64", power))


def log64(f):
    # For a positive, normal number: m in [sqrt(1/2), sqrt(2)), and log(m) = 2 atanh((m - 1) / (m + 1)).
    word = f.let(op("i64.reinterpret_f64", f.param(0)))
    moved = f.let(op("i64.sub", word, i64(0x3FE6A09E667F3BCD)))
    e = f.let(op("i64.shr_s", moved, i64(52)))
    m = f.let(op("f64.reinterpret_i64", op("i64.sub", word, op("i64.shl", e, i64(52)))))
    t = f.let((m - f64(1.0)) / (m + f64(1.0)))
    z = f.let(t * t)
    series = _poly(z, [2.0 / (2 * k + 1) for k in range(10, -1, -1)])
    f.give(op("f64.convert_i64_s", e) * 0.6931471805599453 + series * t)


def atan64(f):
    x = f.param(0)
    a = f.let(op("f64.abs", x))
    far = f.let(op("f64.gt", a, f64(2.414213562373095)))
    near = f.let(op("f64.lt", a, f64(0.4142135623730950)))
    middle = (a - f64(1.0)) / (a + f64(1.0))
    t = f.let(select(far, f64(-1.0) / a, select(near, a, middle)))
    base = select(far, f64(1.5707963267948966), select(near, f64(0.0), f64(0.7853981633974483)))
    z = f.let(t * t)
    series = _poly(z, [(-1.0) ** k / (2 * k + 1) for k in range(16, -1, -1)])
    f.give(op("f64.copysign", base + series * t, x))


TWO_OVER_PI = (0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561)


def sine(f):
    # sin(x + quarters quarter turns). Cody and Waite's reduction up to 2^28, beyond it Payne and Hanek's: the product
    # with a 96-bit window of 2/pi that starts at the first bit worth less than two full turns (eight quarters).
    x, quarters = f.param(0), f.param(1)
    wide = f.let(op("f64.promote_f32", x))
    f.begin_if(op("i32.eqz", op("f64.lt", op("f64.abs", wide), f64(INF))))
    f.exit(f64(NAN))
    f.end()
    k = f.let(op("f64.nearest", wide * 0.6366197723675814))
    r = f.local("f64")
    f.set(r, wide - k * 1.57079631090164184570 - k * 1.58932547735281966916e-08)
    q = f.local("i32")
    f.set(q, op("i32.trunc_sat_f64_s", k))
    f.begin_if(op("f64.ge", op("f64.abs", wide), f64(2.0**28)))
    word = f.let(op("i32.reinterpret_f32", x))
    e = op("i32.and", op("i32.shr_u", word, i32(23)), i32(255))
    first = f.let(op("i32.sub", e, i32(152)))  # the exponent of the significand's last bit, minus 2
    m = op("i32.or", op("i32.and", word, i32(0x7FFFFF)), i32(0x800000))
    m = f.let(op("i64.extend_i32_u", m))
    at = f.let(op("i32.shr_u", first, i32(5)))

    def half(further):
        out = i64(TWO_OVER_PI[0])
        for n in range(1, 8):
            out = select(op("i32.eq", op("i32.add", at, i32(further)), i32(n)), i64(TWO_OVER_PI[n]), out)
        return f.let(out)

    words = [half(n) for n in range(4)]
    shift = f.let(op("i64.extend_i32_u", op("i32.and", first, i32(31))))

    def window(n):
        pair = op("i64.or", op("i64.shl", words[n], i64(32)), words[n + 1])
        return f.let(op("i64.shr_u", op("i64.shl", pair, shift), i64(32)))

    high, low, last = window(0), window(1), window(2)
    product = op("i64.mul", m, op("i64.or", op("i64.shl", high, i64(32)), low))
    turned = op("i64.add", product, op("i64.shr_u", op("i64.mul", m, last), i64(32)))
    sign = f.let(op("i32.shr_s", word, i32(31)))
    turned = f.let(turned)
    whole = f.let(op("i64.shr_u", op("i64.add", turned, i64(1 << 61)), i64(62)))
    rest = op("f64.convert_i64_s", op("i64.sub", turned, op("i64.shl", whole, i64(62))))
    f.set(r, op("f64.copysign", f64(1.0), wide) * (rest * (1.5707963267948966 * 2.0**-62)))
    whole = op("i32.wrap_i64", whole)
    f.set(q, op("i32.sub", op("i32.xor", whole, sign), sign))
    f.end()
    r = f.get(r)
    q = f.let(op("i32.add", f.get(q), quarters))
    z = f.let(r * r)
    sine = [1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800]
    cosine = [1.0, -0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600]
    odd = op("i32.and", q, i32(1))
    y = f.let(select(odd, _poly(z, cosine[::-1]), _poly(z, sine[::-1]) * r))
    f.give(select(op("i32.and", q, i32(2)), op("f64.neg", y), y))


def _wide(f, n=0):
    return f.let(op("f64.promote_f32", f.param(n)))


def _demote(x):
    return op("f32.demote_f64", x)


def _exp_of(x):
    return call("exp64", "f64", x)


def _log_of(x):
    return call("log64", "f64", x)


def _near_zero(f, x, terms, otherwise):
    """The polynomial x * terms(x) where |x| < 1e-4, else `otherwise`."""
    small = op("f64.lt", op("f64.abs", x), f64(1e-4))
    f.give(_demote(select(small, _poly(x, terms) * x, otherwise)))


def sine_of(quarters):
    def build(f):
        f.give(_demote(call("sine", "f64", f.param(0), i32(quarters))))

    return build


def tan(f):
    f.give(_demote(call("sine", "f64", f.param(0), i32(0)) / call("sine", "f64", f.param(0), i32(1))))


def _nan_and_infinity(f, low=None):
    """Return x itself for NaN and positive infinity, and `low` for negative infinity (x itself if `low` is None)."""
    x = f.param(0)
    f.begin_if(op("i32.eqz", op("f32.lt", op("f32.abs", x), f32(INF))))
    f.exit(x if low is None else select(op("f32.eq", x, f32(-INF)), f32(low), x))
    f.end()


def expm1(f):
    _nan_and_infinity(f, -1.0)
    x = _wide(f)
    _near_zero(f, x, (1.0 / 6, 0.5, 1.0), _exp_of(x) - f64(1.0))


def sinh(f):
    _nan_and_infinity(f)
    x = _wide(f)
    e = f.let(_exp_of(x))
    _near_zero(f, x, (1.0 / 6, 0.0, 1.0), (e - f64(1.0) / e) * 0.5)


def cosh(f):
    x = _wide(f)
    e = f.let(_exp_of(op("f64.abs", x)))
    f.give(_demote((e + f64(1.0) / e) * 0.5))


def log1p(f):
    _nan_and_infinity(f, NAN)
    x = _wide(f)
    f.begin_if(op("f64.le", x, f64(-1.0)))
    f.exit(select(op("f64.eq", x, f64(-1.0)), f32(-INF), f32(NAN)))
    f.end()
    _near_zero(f, x, (1.0 / 3, -0.5, 1.0), _log_of(x + f64(1.0)))


def asinh(f):
    _nan_and_infinity(f)
    x = _wide(f)
    a = f.let(op("f64.abs", x))
    y = op("f64.copysign", _log_of(a + op("f64.sqrt", a * a + f64(1.0))), x)
    _near_zero(f, x, (-1.0 / 6, 0.0, 1.0), y)


def acosh(f):
    x = _wide(f)
    f.begin_if(op("i32.eqz", op("f64.ge", x, f64(1.0))))
    f.exit(f32(NAN))
    f.end()
    _nan_and_infinity(f)
    f.give(_demote(_log_of(x + op("f64.sqrt", (x - f64(1.0)) * (x + f64(1.0))))))


def atanh(f):
    x = _wide(f)
    f.begin_if(op("i32.eqz", op("f64.lt", op("f64.abs", x), f64(1.0))))
    f.exit(select(op("f64.eq", op("f64.abs", x), f64(1.0)), op("f32.copysign", f32(INF), f.param(0)), f32(NAN)))
    f.end()
    y = _log_of((x + f64(1.0)) / (f64(1.0) - x)) * 0.5
    _near_zero(f, x, (1.0 / 3, 0.0, 1.0), y)


def _asin64(x):
    return call("atan64", "f64", x / op("f64.sqrt", (f64(1.0) - x) * (x + f64(1.0))))


def asin(f):
    f.give(_demote(_asin64(_wide(f))))


def acos(f):
    f.give(_demote(f64(1.5707963267948966) - _asin64(_wide(f))))


def atan(f):
    f.give(_demote(call("atan64", "f64", op("f64.promote_f32", f.param(0)))))


def atan2(f):
    y, x = _wide(f, 0), _wide(f, 1)
    f.begin_if(op("i32.or", op("f64.ne", x, x), op("f64.ne", y, y)))
    f.exit(f32(NAN))
    f.end()
    a, b = f.let(op("f64.abs", y)), f.let(op("f64.abs", x))
    both = op("i32.and", op("f64.eq", a, f64(INF)), op("f64.eq", b, f64(INF)))
    ratio = select(both, f64(1.0), select(op("f64.eq", a, f64(0.0)), f64(0.0), a / b))
    r = f.let(call("atan64", "f64", ratio))
    left = op("f64.lt", op("f64.copysign", f64(1.0), x), f64(0.0))
    r = select(left, f64(3.141592653589793) - r, r)
    f.give(_demote(op("f64.copysign", r, y)))


def pow_f32(f):
    a, b = f.param(0), f.param(1)
    f.begin_if(op("i32.or", op("f32.eq", b, f32(0.0)), op("f32.eq", a, f32(1.0))))
    f.exit(f32(1.0))
    f.end()
    f.begin_if(op("i32.or", op("f32.ne", a, a), op("f32.ne", b, b)))
    f.exit(f32(NAN))
    f.end()
    m = f.let(op("f32.abs", a))
    whole = f.let(op("f32.eq", op("f32.floor", b), b))
    size = f.let(op("f32.abs", b))
    odd = op("i32.and", op("i32.trunc_sat_f32_u", size), i32(1))
    odd = f.let(op("i32.and", op("i32.and", whole, op("f32.lt", size, f32(16777216.0))), odd))
    infinite = f.let(op("f32.eq", size, f32(INF)))
    # The base or the exponent is infinite, or the base is 0.
    large = op("i32.eq", op("f32.gt", m, f32(1.0)), op("f32.gt", b, f32(0.0)))
    edge = f.let(select(op("f32.eq", m, f32(1.0)), f32(1.0), select(large, f32(INF), f32(0.0))))
    inside = op("i32.and", op("f32.gt", m, f32(0.0)), op("f32.lt", m, f32(INF)))
    inside = f.let(op("i32.and", inside, op("i32.eqz", infinite)))
    r = f.local("f32")
    f.set(r, edge)
    f.begin_if(inside)
    f.set(r, _demote(_exp_of(_log_of(op("f64.promote_f32", m)) * op("f64.promote_f32", b))))
    f.end()
    below = op("i32.and", op("f32.lt", a, f32(0.0)), op("i32.eqz", whole))
    below = op("i32.and", below, op("f32.lt", m, f32(INF)))
    f.begin_if(below)
    f.exit(f32(NAN))
    f.end()
    negative = op("i32.and", odd, op("i32.shr_u", op("i32.reinterpret_f32", a), i32(31)))
    f.give(select(negative, op("f32.neg", f.get(r)), f.get(r)))


def fmod_f32(f):
    # Exact, by long division of the significands: 38 bits of the quotient per step.
    a, b = f.param(0), f.param(1)
    small, large = f.let(op("f32.abs", a)), f.let(op("f32.abs", b))
    f.begin_if(op("i32.eqz", op("i32.and", op("f32.lt", small, f32(INF)), op("f32.gt", large, f32(0.0)))))
    f.exit(f32(NAN))
    f.end()
    f.begin_if(op("f32.lt", small, large))
    f.exit(a)
    f.end()

    def parts(x):
        word = f.let(op("i32.reinterpret_f32", x))
        e = f.let(op("i32.shr_u", word, i32(23)))
        m = op("i32.and", word, i32(0x7FFFFF))
        m = select(e, op("i32.or", m, i32(0x800000)), m)
        return f.let(op("i64.extend_i32_u", m)), select(e, e, i32(1))

    m, e = parts(small)
    n, other = parts(large)
    other = f.let(other)
    left = f.local("i32")
    f.set(left, op("i32.sub", e, other))
    rest = f.local("i64")
    f.set(rest, op("i64.rem_u", m, n))
    f.begin_loop()
    f.begin_if(op("i32.gt_s", f.get(left), i32(0)))
    step = f.let(select(op("i32.lt_s", f.get(left), i32(38)), f.get(left), i32(38)))
    f.set(rest, op("i64.rem_u", op("i64.shl", f.get(rest), op("i64.extend_i32_u", step)), n))
    f.set(left, op("i32.sub", f.get(left), step))
    f.branch(1)
    f.end()
    f.end()
    # The remainder times two to the exponent of b, exact in float64.
    power = op("i64.shl", op("i64.extend_i32_u", op("i32.add", other, i32(1023 - 150))), i64(52))
    r = _demote(op("f64.convert_i64_s", f.get(rest)) * op("f64.reinterpret_i64", power))
    f.give(op("f32.copysign", r, a))


def _differ(a, b):
    """Whether exactly one of two float32 is negative."""
    return op("i32.ne", op("f32.lt", a, f32(0.0)), op("f32.lt", b, f32(0.0)))


def remainder_f32(f):
    b = f.param(1)
    r = f.let(call("fmod_f32", "f32", f.param(0), b))
    moved = select(_differ(r, b), r + b, r)
    f.give(select(op("f32.eq", r, f32(0.0)), op("f32.copysign", f32(0.0), b), moved))


def floor_divide_f32(f):
    a, b = f.param(0), f.param(1)
    f.begin_if(op("f32.eq", b, f32(0.0)))
    f.exit(a / b)
    f.end()
    r = f.let(call("fmod_f32", "f32", a, b))
    q = f.let((a - r) / b)
    low = op("i32.and", op("f32.ne", r, f32(0.0)), _differ(r, b))
    q = f.let(select(low, q - f32(1.0), q))
    below = f.let(op("f32.floor", q))
    whole = below + op("f32.convert_i32_s", op("f32.gt", q - below, f32(0.5)))
    f.give(select(op("f32.eq", q, f32(0.0)), op("f32.copysign", f32(0.0), a / b), whole))


_F, _I = "f32", "i32"
# name -> (types of the parameters, type of the result, function that writes the code)
FUNCTIONS = {
    "exp64": (("f64",), "f64", exp64),
    "log64": (("f64",), "f64", log64),
    "atan64": (("f64",), "f64", atan64),
    "sine": ((_F, _I), "f64", sine),
    "sin": ((_F,), _F, sine_of(0)),
    "cos": ((_F,), _F, sine_of(1)),
    "tan": ((_F,), _F, tan),
    "expm1": ((_F,), _F, expm1),
    "log1p": ((_F,), _F, log1p),
    "sinh": ((_F,), _F, sinh),
    "cosh": ((_F,), _F, cosh),
    "asinh": ((_F,), _F, asinh),
    "acosh": ((_F,), _F, acosh),
    "atanh": ((_F,), _F, atanh),
    "asin": ((_F,), _F, asin),
    "acos": ((_F,), _F, acos),
    "atan": ((_F,), _F, atan),
    "atan2_f32": ((_F, _F), _F, atan2),
    "pow_f32": ((_F, _F), _F, pow_f32),
    "fmod_f32": ((_F, _F), _F, fmod_f32),
    "remainder_f32": ((_F, _F), _F, remainder_f32),
    "floor_divide_f32": ((_F, _F), _F, floor_divide_f32),
}
