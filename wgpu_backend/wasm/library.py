"""Elementwise functions that WebAssembly has no instruction for, as functions of the module.

Functions common in networks work on four float32 at once; the others on one number, in float64 where that rounds
correctly almost everywhere. tests/wasm/test_library.py states the error of each.
"""

from .assembler import Function, bits, call, f32, f32x4, f64, i32, i32x4, i64, lane, op, select

INF = float("inf")
NAN = float("nan")


class _Function(Function):
    """A function of this library. relaxed: whether its multiply-adds of vectors are fused."""

    def __init__(self, name, params, results, relaxed):
        Function.__init__(self, name, params, results)
        self.relaxed = relaxed

    def fused(self, a, b, c):
        """a b + c."""
        return op("f32x4.relaxed_madd", a, b, c) if self.relaxed else a * b + c

    def poly(self, z, terms):
        """`_poly` of vectors."""
        out = f32x4(terms[0])
        for c in terms[1:]:
            out = self.fused(out, z, f32x4(c))
        return out


def _poly(z, terms, number=f32x4):
    """The polynomial in z with coefficients `terms`, highest first, by Horner's scheme."""
    out = number(terms[0])
    for c in terms[1:]:
        out = out * z + number(c)
    return out


_MAGIC = 1.5 * 2.0**23  # a float32 plus this, of less than 2^22, is rounded to a whole number, which its last bits are
_LOG2E = 1.44269504088896341


def _power(word):
    """2^n as float32, given n in the exponent's place of a word: exponents without their bias."""
    return op("i32x4.add", word, f32x4(1.0))


def _exp_from(lowest):
    # Below the lowest x, results are 0. They are not computed, since processors take ten times as long for what
    # underflows.
    def build(f):
        low = f.let(op("f32x4.lt", f.param(0), f32x4(lowest)))
        x = f.let(op("v128.andnot", op("f32x4.pmin", f.param(0), f32x4(90.0)), low))
        f.give(op("v128.andnot", _power_of_e(f, x), low))

    return build


def _power_of_e(f, x):
    # x = n log(2) + r (Cody and Waite), and e^r by a polynomial that is off by 4e-9; the power of two is applied in two
    # steps, so that results may be subnormal.
    whole = f.let(f.fused(x, f32x4(_LOG2E), f32x4(_MAGIC)))
    n = f.let(whole - _MAGIC)
    r = f.let(f.fused(n, f32x4(2.12194440e-4), f.fused(n, f32x4(-0.693359375), x)))
    terms = (1.3863727026e-3, 8.3675425296e-3, 4.1667239964e-2, 1.6666533546e-1, 0.5)
    y = f.let(f.fused(f.poly(r, terms), r * r, r) + f32x4(1.0))
    n = f.let(op("i32x4.shl", whole, i32(23)))
    half = f.let(op("v128.and", op("i32x4.shl", whole, i32(22)), i32x4(0xFF800000)))
    return y * _power(half) * _power(op("i32x4.sub", n, half))


def _log(f):
    # Reduction to [sqrt(1/2), sqrt(2)) and the polynomial of Cephes' logf.
    x = f.param(0)
    tiny = f.let(op("f32x4.lt", x, f32x4(1.17549435e-38)))
    word = f.let(bits(tiny, x * 8388608.0, x))
    e = op("f32x4.convert_i32x4_s", op("i32x4.sub", op("i32x4.shr_u", word, i32(23)), i32x4(126)))
    e = f.let(e - op("v128.and", tiny, f32x4(23.0)))
    m = f.let(op("v128.or", op("v128.and", word, i32x4(0x007FFFFF)), i32x4(0x3F000000)))
    low = f.let(op("f32x4.lt", m, f32x4(0.707106781)))
    e = f.let(e - op("v128.and", low, f32x4(1.0)))
    r = f.let(m + op("v128.and", low, m) - f32x4(1.0))
    z = f.let(r * r)
    terms = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1)
    terms += (-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
    tail = f.poly(r, terms) * r * z - z * f32x4(0.5)
    normal = r + (tail + e * -2.12194440e-4) + e * 0.693359375
    special = bits(op("f32x4.eq", x, f32x4(0.0)), f32x4(-INF), bits(op("f32x4.ge", x, f32x4(0.0)), x, f32x4(NAN)))
    inside = op("v128.and", op("f32x4.gt", x, f32x4(0.0)), op("f32x4.lt", x, f32x4(INF)))
    f.give(bits(inside, normal, special))


def _signed(f, magnitude, x):
    """`magnitude` with the sign of x."""
    return bits(i32x4(0x80000000), x, magnitude)


def _tanh(f):
    x = f.param(0)
    a = f.let(op("f32x4.abs", x))
    z = f.let(x * x)
    terms = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
    small = f.let(f.fused(f.poly(z, terms) * z, x, x))
    grown = call("exp", "v128", op("f32x4.pmin", a, f32x4(20.0)) * 2.0)
    large = f32x4(1.0) - f32x4(2.0) / (grown + f32x4(1.0))
    f.give(bits(op("f32x4.lt", a, f32x4(0.625)), small, _signed(f, large, x)))


def _erf(f):
    # Below 0.92 x + x times a polynomial in x*x; above it 1 - erfc, of which a polynomial is the logarithm. Both were
    # fitted for the least largest error of the result: 1.5e-8 and 2.4e-8. At 4 the result is 1.
    x = f.param(0)
    a = f.let(op("f32x4.pmin", op("f32x4.abs", x), f32x4(4.0)))
    terms = (-1.23098027e-3, 1.54193486e-2, -9.06265048e-2, -6.51466104e-1, -1.11968026, -2.02089734e-3)
    log = f.let(f.poly(a, terms))
    whole = f.let(f.fused(log, f32x4(_LOG2E), f32x4(_MAGIC)))
    r = f.let(f.fused(whole - _MAGIC, f32x4(-0.69314718056), log))
    terms = (8.29621648e-3, 4.19253663e-2, 1.66676494e-1, 4.99988047e-1, 9.99999653e-1, 1.00000008)
    large = f32x4(1.0) - f.poly(r, terms) * _power(op("i32x4.shl", whole, i32(23)))
    terms = (-5.99940641e-4, 4.99483042e-3, -2.67677190e-2, 1.12818460e-1, -3.76124965e-1, 1.28379150e-1)
    small = f.fused(f.poly(f.let(a * a), terms), x, x)
    f.give(bits(op("f32x4.lt", a, f32x4(0.92)), small, _signed(f, large, x)))


def _round_f16(f):
    x = f.param(0)
    a = f.let(op("f32x4.abs", x))
    odd = op("v128.and", op("i32x4.shr_u", a, i32(13)), i32x4(1))
    near = op("v128.and", op("i32x4.add", op("i32x4.add", a, i32x4(0xFFF)), odd), i32x4(0xFFFFE000))
    near = bits(op("f32x4.lt", a, f32x4(2.0**-14)), a + f32x4(0.5) - f32x4(0.5), near)
    near = bits(op("f32x4.ge", a, f32x4(65520.0)), f32x4(INF), near)
    f.give(_signed(f, bits(op("f32x4.eq", x, x), near, a), x))


# -- one number, in float64 ---------------------------------------------------------------------------------------


def _exp64(f):
    x = f.let(op("f64.min", op("f64.max", f.param(0), f64(-740.0)), f64(700.0)))
    n = f.let(op("f64.nearest", x * 1.4426950408889634))
    r = f.let(x - n * 6.93147180369123816490e-01 - n * 1.90821492927058770002e-10)
    terms = []
    factorial = 1.0
    for k in range(13):
        terms.insert(0, 1.0 / factorial)
        factorial *= k + 1
    power = op("i64.shl", op("i64.add", op("i64.trunc_sat_f64_s", op("f64.max", n, f64(-1000.0))), i64(1023)), i64(52))
    f.give(_poly(r, terms, f64) * op("f64.reinterpret_i64", power))


def _log64(f):
    # For a positive, normal number: m in [sqrt(1/2), sqrt(2)), and log(m) = 2 atanh((m - 1) / (m + 1)).
    word = f.let(op("i64.reinterpret_f64", f.param(0)))
    moved = f.let(op("i64.sub", word, i64(0x3FE6A09E667F3BCD)))
    e = f.let(op("i64.shr_s", moved, i64(52)))
    m = f.let(op("f64.reinterpret_i64", op("i64.sub", word, op("i64.shl", e, i64(52)))))
    t = f.let((m - f64(1.0)) / (m + f64(1.0)))
    z = f.let(t * t)
    series = _poly(z, [2.0 / (2 * k + 1) for k in range(10, -1, -1)], f64)
    f.give(op("f64.convert_i64_s", e) * 0.6931471805599453 + series * t)


def _atan64(f):
    x = f.param(0)
    a = f.let(op("f64.abs", x))
    far = f.let(op("f64.gt", a, f64(2.414213562373095)))
    near = f.let(op("f64.lt", a, f64(0.4142135623730950)))
    middle = (a - f64(1.0)) / (a + f64(1.0))
    t = f.let(select(far, f64(-1.0) / a, select(near, a, middle)))
    base = select(far, f64(1.5707963267948966), select(near, f64(0.0), f64(0.7853981633974483)))
    z = f.let(t * t)
    series = _poly(z, [(-1.0) ** k / (2 * k + 1) for k in range(16, -1, -1)], f64)
    f.give(op("f64.copysign", base + series * t, x))


TWO_OVER_PI = (0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561)


def _sine(f):
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
    y = f.let(select(odd, _poly(z, cosine[::-1], f64), _poly(z, sine[::-1], f64) * r))
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
    f.give(_demote(select(small, _poly(x, terms, f64) * x, otherwise)))


def _sine_of(quarters):
    def build(f):
        f.give(_demote(call("sine", "f64", f.param(0), i32(quarters))))

    return build


def _tan(f):
    f.give(_demote(call("sine", "f64", f.param(0), i32(0)) / call("sine", "f64", f.param(0), i32(1))))


def _nan_and_infinity(f, low=None):
    """Return x itself for NaN and positive infinity, and `low` for negative infinity (x itself if `low` is None)."""
    x = f.param(0)
    f.begin_if(op("i32.eqz", op("f32.lt", op("f32.abs", x), f32(INF))))
    f.exit(x if low is None else select(op("f32.eq", x, f32(-INF)), f32(low), x))
    f.end()


def _expm1(f):
    _nan_and_infinity(f, -1.0)
    x = _wide(f)
    _near_zero(f, x, (1.0 / 6, 0.5, 1.0), _exp_of(x) - f64(1.0))


def _sinh(f):
    _nan_and_infinity(f)
    x = _wide(f)
    e = f.let(_exp_of(x))
    _near_zero(f, x, (1.0 / 6, 0.0, 1.0), (e - f64(1.0) / e) * 0.5)


def _cosh(f):
    x = _wide(f)
    e = f.let(_exp_of(op("f64.abs", x)))
    f.give(_demote((e + f64(1.0) / e) * 0.5))


def _log1p(f):
    _nan_and_infinity(f, NAN)
    x = _wide(f)
    f.begin_if(op("f64.le", x, f64(-1.0)))
    f.exit(select(op("f64.eq", x, f64(-1.0)), f32(-INF), f32(NAN)))
    f.end()
    _near_zero(f, x, (1.0 / 3, -0.5, 1.0), _log_of(x + f64(1.0)))


def _asinh(f):
    _nan_and_infinity(f)
    x = _wide(f)
    a = f.let(op("f64.abs", x))
    y = op("f64.copysign", _log_of(a + op("f64.sqrt", a * a + f64(1.0))), x)
    _near_zero(f, x, (-1.0 / 6, 0.0, 1.0), y)


def _acosh(f):
    x = _wide(f)
    f.begin_if(op("i32.eqz", op("f64.ge", x, f64(1.0))))
    f.exit(f32(NAN))
    f.end()
    _nan_and_infinity(f)
    f.give(_demote(_log_of(x + op("f64.sqrt", (x - f64(1.0)) * (x + f64(1.0))))))


def _atanh(f):
    x = _wide(f)
    f.begin_if(op("i32.eqz", op("f64.lt", op("f64.abs", x), f64(1.0))))
    f.exit(select(op("f64.eq", op("f64.abs", x), f64(1.0)), op("f32.copysign", f32(INF), f.param(0)), f32(NAN)))
    f.end()
    y = _log_of((x + f64(1.0)) / (f64(1.0) - x)) * 0.5
    _near_zero(f, x, (1.0 / 3, 0.0, 1.0), y)


def _asin64(x):
    return call("atan64", "f64", x / op("f64.sqrt", (f64(1.0) - x) * (x + f64(1.0))))


def _asin(f):
    f.give(_demote(_asin64(_wide(f))))


def _acos(f):
    f.give(_demote(f64(1.5707963267948966) - _asin64(_wide(f))))


def _atan(f):
    f.give(_demote(call("atan64", "f64", op("f64.promote_f32", f.param(0)))))


def _atan2(f):
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


def _pow_f32(f):
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


def _fmod_f32(f):
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


def _remainder_f32(f):
    b = f.param(1)
    r = f.let(call("fmod_f32", "f32", f.param(0), b))
    moved = select(_differ(r, b), r + b, r)
    f.give(select(op("f32.eq", r, f32(0.0)), op("f32.copysign", f32(0.0), b), moved))


def _floor_divide_f32(f):
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


# -- integers; the protocol defines x / 0 as 0 --------------------------------------------------------------------


def _guarded(instruction, signed, at_minus_one):
    def build(f):
        a, b = f.param(0), f.param(1)
        f.begin_if(op("i32.eqz", b))
        f.exit(i32(0))
        f.end()
        if signed:  # dividing the most negative number by -1 would trap
            f.begin_if(op("i32.eq", b, i32(-1)))
            f.exit(op("i32.sub", i32(0), a) if at_minus_one else i32(0))
            f.end()
        f.give(op("i32." + instruction, a, b))

    return build


def _negative(x):
    return op("i32.lt_s", x, i32(0))


def _remainder_i32(f):
    a, b = f.param(0), f.param(1)
    r = f.let(call("fmod_i32", "i32", a, b))
    move = op("i32.and", op("i32.ne", r, i32(0)), op("i32.ne", _negative(r), _negative(b)))
    f.give(select(move, op("i32.add", r, b), r))


def _floor_divide_i32(f):
    a, b = f.param(0), f.param(1)
    q = f.let(call("div_i32", "i32", a, b))
    inexact = op("i32.and", op("i32.ne", b, i32(0)), op("i32.ne", op("i32.mul", q, b), a))
    low = op("i32.and", inexact, op("i32.ne", _negative(a), _negative(b)))
    f.give(op("i32.sub", q, low))


def _pow_integer(signed):
    def build(f):
        a, b = f.param(0), f.param(1)
        if signed:
            f.begin_if(_negative(b))
            at_minus_one = select(op("i32.and", b, i32(1)), i32(-1), i32(1))
            f.exit(select(op("i32.eq", a, i32(1)), i32(1), select(op("i32.eq", a, i32(-1)), at_minus_one, i32(0))))
            f.end()
        n, square, r = f.local("i32"), f.local("i32"), f.local("i32")
        f.set(n, b)
        f.set(square, a)
        f.set(r, i32(1))
        f.begin_loop()
        f.begin_if(f.get(n))
        f.set(r, select(op("i32.and", f.get(n), i32(1)), op("i32.mul", f.get(r), f.get(square)), f.get(r)))
        f.set(square, op("i32.mul", f.get(square), f.get(square)))
        f.set(n, op("i32.shr_u", f.get(n), i32(1)))
        f.branch(1)
        f.end()
        f.end()
        f.give(f.get(r))

    return build


def _shift_left(f):
    a, b = f.param(0), f.param(1)
    f.give(select(op("i32.gt_u", b, i32(31)), i32(0), op("i32.shl", a, b)))


def _shift_right_i32(f):
    a, b = f.param(0), f.param(1)
    f.give(op("i32.shr_s", a, select(op("i32.gt_u", b, i32(31)), i32(31), b)))


def _shift_right_u32(f):
    a, b = f.param(0), f.param(1)
    f.give(select(op("i32.gt_u", b, i32(31)), i32(0), op("i32.shr_u", a, b)))


# -- bits ---------------------------------------------------------------------------------------------------------


def _float16_of_bits(f):
    x = f.param(0)
    m, e = f.let(op("i32.and", x, i32(0x3FF))), f.let(op("i32.and", op("i32.shr_u", x, i32(10)), i32(31)))
    word = op("i32.or", op("i32.shl", op("i32.add", e, i32(112)), i32(23)), op("i32.shl", m, i32(13)))
    normal = op("f32.reinterpret_i32", word)
    special = op("f32.reinterpret_i32", op("i32.or", i32(0x7F800000), op("i32.shl", m, i32(13))))
    small = op("f32.convert_i32_u", m) * 2.0**-24
    magnitude = f.let(select(op("i32.eq", e, i32(31)), special, select(e, normal, small)))
    f.give(select(op("i32.and", x, i32(0x8000)), op("f32.neg", magnitude), magnitude))


def _bits_of_float16(f):
    x = f.let(lane("f32x4.extract_lane", 0, call("round_f16", "v128", op("f32x4.splat", f.param(0)))))
    word = f.let(op("i32.reinterpret_f32", x))
    a = f.let(op("i32.and", word, i32(0x7FFFFFFF)))
    small = op("i32.trunc_sat_f32_u", op("f32.reinterpret_i32", a) * 2.0**24)
    normal = op("i32.sub", op("i32.shr_u", a, i32(13)), i32(112 << 10))
    tiny = op("i32.lt_u", a, i32(0x38800000))
    nan = op("i32.or", op("i32.and", op("i32.shr_u", a, i32(13)), i32(0x3FF)), i32(0x7E00))
    magnitude = select(op("i32.gt_u", a, i32(0x7F800000)), nan, select(tiny, small, normal))
    magnitude = select(op("i32.eq", a, i32(0x7F800000)), i32(0x7C00), magnitude)
    f.give(op("i32.or", magnitude, op("i32.and", op("i32.shr_u", word, i32(16)), i32(0x8000))))


def _philox_at(f):
    # Philox 4x32-10 (Salmon et al., 2011): element i of the stream that starts at a 128-bit counter.
    at = f.param(0)
    c = [f.local("i32") for _ in range(4)]
    k = [f.local("i32") for _ in range(2)]
    f.set(c[0], op("i32.add", f.param(1), op("i32.shr_u", at, i32(2))))
    carry = op("i32.lt_u", f.get(c[0]), f.param(1))
    for n in range(1, 4):
        carry = f.let(carry)
        f.set(c[n], op("i32.add", f.param(1 + n), carry))
        carry = op("i32.and", carry, op("i32.eqz", f.get(c[n])))
    f.set(k[0], f.param(5))
    f.set(k[1], f.param(6))
    for _ in range(10):
        products = []
        for n, factor in ((0, 0xD2511F53), (2, 0xCD9E8D57)):
            products.append(f.let(op("i64.mul", op("i64.extend_i32_u", f.get(c[n])), i64(factor))))
        high = [f.let(op("i32.wrap_i64", op("i64.shr_u", p, i64(32)))) for p in products]
        first = f.let(op("i32.xor", op("i32.xor", high[1], f.get(c[1])), f.get(k[0])))
        third = f.let(op("i32.xor", op("i32.xor", high[0], f.get(c[3])), f.get(k[1])))
        f.set(c[0], first)
        f.set(c[1], op("i32.wrap_i64", products[1]))
        f.set(c[2], third)
        f.set(c[3], op("i32.wrap_i64", products[0]))
        f.set(k[0], op("i32.add", f.get(k[0]), i32(0x9E3779B9)))
        f.set(k[1], op("i32.add", f.get(k[1]), i32(0xBB67AE85)))
    word = f.let(op("i32.and", at, i32(3)))
    out = f.get(c[3])
    for n in (2, 1, 0):
        out = select(op("i32.eq", word, i32(n)), f.get(c[n]), out)
    f.give(out)


def _sort_key_f32(f):
    # Unsigned keys in the order of the values; NaN is the largest, -0 equals 0.
    x = f.param(0)
    word = f.let(select(op("f32.eq", x, f32(0.0)), i32(0), op("i32.reinterpret_f32", x)))
    key = select(_negative(word), op("i32.xor", word, i32(-1)), op("i32.or", word, i32(0x80000000)))
    f.give(select(op("f32.ne", x, x), i32(-1), key))


_F, _I = "f32", "i32"
# name -> (types of the parameters, type of the result, function that writes the code)
_FUNCTIONS = {
    "exp": (("v128",), "v128", _exp_from(-104.0)),
    "exp_normal": (("v128",), "v128", _exp_from(-87.336544)),  # 0 instead of subnormal numbers
    "log": (("v128",), "v128", _log),
    "tanh": (("v128",), "v128", _tanh),
    "erf": (("v128",), "v128", _erf),
    "round_f16": (("v128",), "v128", _round_f16),
    "exp64": (("f64",), "f64", _exp64),
    "log64": (("f64",), "f64", _log64),
    "atan64": (("f64",), "f64", _atan64),
    "sine": ((_F, _I), "f64", _sine),
    "sin": ((_F,), _F, _sine_of(0)),
    "cos": ((_F,), _F, _sine_of(1)),
    "tan": ((_F,), _F, _tan),
    "expm1": ((_F,), _F, _expm1),
    "log1p": ((_F,), _F, _log1p),
    "sinh": ((_F,), _F, _sinh),
    "cosh": ((_F,), _F, _cosh),
    "asinh": ((_F,), _F, _asinh),
    "acosh": ((_F,), _F, _acosh),
    "atanh": ((_F,), _F, _atanh),
    "asin": ((_F,), _F, _asin),
    "acos": ((_F,), _F, _acos),
    "atan": ((_F,), _F, _atan),
    "atan2_f32": ((_F, _F), _F, _atan2),
    "pow_f32": ((_F, _F), _F, _pow_f32),
    "fmod_f32": ((_F, _F), _F, _fmod_f32),
    "remainder_f32": ((_F, _F), _F, _remainder_f32),
    "floor_divide_f32": ((_F, _F), _F, _floor_divide_f32),
    "div_i32": ((_I, _I), _I, _guarded("div_s", True, True)),
    "div_u32": ((_I, _I), _I, _guarded("div_u", False, False)),
    "fmod_i32": ((_I, _I), _I, _guarded("rem_s", True, False)),
    "fmod_u32": ((_I, _I), _I, _guarded("rem_u", False, False)),
    "remainder_i32": ((_I, _I), _I, _remainder_i32),
    "remainder_u32": ((_I, _I), _I, _guarded("rem_u", False, False)),
    "floor_divide_i32": ((_I, _I), _I, _floor_divide_i32),
    "floor_divide_u32": ((_I, _I), _I, _guarded("div_u", False, False)),
    "pow_i32": ((_I, _I), _I, _pow_integer(True)),
    "pow_u32": ((_I, _I), _I, _pow_integer(False)),
    "shift_left_i32": ((_I, _I), _I, _shift_left),
    "shift_left_u32": ((_I, _I), _I, _shift_left),
    "shift_right_i32": ((_I, _I), _I, _shift_right_i32),
    "shift_right_u32": ((_I, _I), _I, _shift_right_u32),
    "float16_of_bits": ((_I,), _F, _float16_of_bits),
    "bits_of_float16": ((_F,), _I, _bits_of_float16),
    "philox_at": ((_I,) * 7, _I, _philox_at),
    "sort_key_f32": ((_F,), _I, _sort_key_f32),
}
# Operations that are functions of four float32, and of one.
VECTOR = tuple([name for name in _FUNCTIONS if _FUNCTIONS[name][:2] == (("v128",), "v128")])
ONE = tuple([name for name in _FUNCTIONS if _FUNCTIONS[name][:2] == ((_F,), _F)])
_made = {}


def function(name, relaxed=False):
    """The Function of that name. relaxed: whether to use relaxed SIMD."""
    key = name, relaxed
    if key not in _made:
        params, result, build = _FUNCTIONS[name]
        f = _Function(name, params, (result,), relaxed)
        build(f)
        _made[key] = f.finish()
    return _made[key]


def result_type(name):
    """The type of a function's result."""
    return _FUNCTIONS[name][1]
