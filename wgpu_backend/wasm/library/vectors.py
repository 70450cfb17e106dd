"""Functions of four float32 at once: those that are common in networks."""

from ..assembler import bits, call, f32x4, i32, i32x4, op

INF = float("inf")
NAN = float("nan")
_MAGIC = 1.5 * 2.0**23  # a float32 plus this, of less than 2^22, is rounded to a whole number, which its last bits are
_LOG2E = 1.44269504088896341


def _power(word):
    """2^n as float32, given n in the exponent's place of a word: exponents without their bias."""
    return op("i32x4.add", word, f32x4(1.0))


def exp_from(lowest):
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


def log(f):
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


def tanh(f):
    x = f.param(0)
    a = f.let(op("f32x4.abs", x))
    z = f.let(x * x)
    terms = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
    small = f.let(f.fused(f.poly(z, terms) * z, x, x))
    grown = call("exp", "v128", op("f32x4.pmin", a, f32x4(20.0)) * 2.0)
    large = f32x4(1.0) - f32x4(2.0) / (grown + f32x4(1.0))
    f.give(bits(op("f32x4.lt", a, f32x4(0.625)), small, _signed(f, large, x)))


def erf(f):
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


def round_f16(f):
    x = f.param(0)
    a = f.let(op("f32x4.abs", x))
    odd = op("v128.and", op("i32x4.shr_u", a, i32(13)), i32x4(1))
    near = op("v128.and", op("i32x4.add", op("i32x4.add", a, i32x4(0xFFF)), odd), i32x4(0xFFFFE000))
    near = bits(op("f32x4.lt", a, f32x4(2.0**-14)), a + f32x4(0.5) - f32x4(0.5), near)
    near = bits(op("f32x4.ge", a, f32x4(65520.0)), f32x4(INF), near)
    f.give(_signed(f, bits(op("f32x4.eq", x, x), near, a), x))


# name -> (types of the parameters, type of the result, function that writes the code)
FUNCTIONS = {
    "exp": (("v128",), "v128", exp_from(-104.0)),
    "exp_normal": (("v128",), "v128", exp_from(-87.336544)),  # 0 instead of subnormal numbers
    "log": (("v128",), "v128", log),
    "tanh": (("v128",), "v128", tanh),
    "erf": (("v128",), "v128", erf),
    "round_f16": (("v128",), "v128", round_f16),
}
