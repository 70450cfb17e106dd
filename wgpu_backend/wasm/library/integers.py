"""Functions of integers, by the protocol's rule that x / 0 is 0, and of the bits of numbers."""

from ..assembler import call, f32, i32, i64, lane, op, select


def guarded(instruction, signed, at_minus_one):
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


def remainder_i32(f):
    a, b = f.param(0), f.param(1)
    r = f.let(call("fmod_i32", "i32", a, b))
    move = op("i32.and", op("i32.ne", r, i32(0)), op("i32.ne", _negative(r), _negative(b)))
    f.give(select(move, op("i32.add", r, b), r))


def floor_divide_i32(f):
    a, b = f.param(0), f.param(1)
    q = f.let(call("div_i32", "i32", a, b))
    inexact = op("i32.and", op("i32.ne", b, i32(0)), op("i32.ne", op("i32.mul", q, b), a))
    low = op("i32.and", inexact, op("i32.ne", _negative(a), _negative(b)))
    f.give(op("i32.sub", q, low))


def pow_integer(signed):
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


def shift_left(f):
    a, b = f.param(0), f.param(1)
    f.give(select(op("i32.gt_u", b, i32(31)), i32(0), op("i32.shl", a, b)))


def shift_right_i32(f):
    a, b = f.param(0), f.param(1)
    f.give(op("i32.shr_s", a, select(op("i32.gt_u", b, i32(31)), i32(31), b)))


def shift_right_u32(f):
    a, b = f.param(0), f.param(1)
    f.give(select(op("i32.gt_u", b, i32(31)), i32(0), op("i32.shr_u", a, b)))


# -- bits ---------------------------------------------------------------------------------------------------------


def float16_of_bits(f):
    x = f.param(0)
    m, e = f.let(op("i32.and", x, i32(0x3FF))), f.let(op("i32.and", op("i32.shr_u", x, i32(10)), i32(31)))
    word = op("i32.or", op("i32.shl", op("i32.add", e, i32(112)), i32(23)), op("i32.shl", m, i32(13)))
    normal = op("f32.reinterpret_i32", word)
    special = op("f32.reinterpret_i32", op("i32.or", i32(0x7F800000), op("i32.shl", m, i32(13))))
    small = op("f32.convert_i32_u", m) * 2.0**-24
    magnitude = f.let(select(op("i32.eq", e, i32(31)), special, select(e, normal, small)))
    f.give(select(op("i32.and", x, i32(0x8000)), op("f32.neg", magnitude), magnitude))


def bits_of_float16(f):
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


def philox_at(f):
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


def sort_key_f32(f):
    # Unsigned keys in the order of the values; NaN is the largest, -0 equals 0.
    x = f.param(0)
    word = f.let(select(op("f32.eq", x, f32(0.0)), i32(0), op("i32.reinterpret_f32", x)))
    key = select(_negative(word), op("i32.xor", word, i32(-1)), op("i32.or", word, i32(0x80000000)))
    f.give(select(op("f32.ne", x, x), i32(-1), key))


_F, _I = "f32", "i32"
# name -> (types of the parameters, type of the result, function that writes the code)
FUNCTIONS = {
    "div_i32": ((_I, _I), _I, guarded("div_s", True, True)),
    "div_u32": ((_I, _I), _I, guarded("div_u", False, False)),
    "fmod_i32": ((_I, _I), _I, guarded("rem_s", True, False)),
    "fmod_u32": ((_I, _I), _I, guarded("rem_u", False, False)),
    "remainder_i32": ((_I, _I), _I, remainder_i32),
    "remainder_u32": ((_I, _I), _I, guarded("rem_u", False, False)),
    "floor_divide_i32": ((_I, _I), _I, floor_divide_i32),
    "floor_divide_u32": ((_I, _I), _I, guarded("div_u", False, False)),
    "pow_i32": ((_I, _I), _I, pow_integer(True)),
    "pow_u32": ((_I, _I), _I, pow_integer(False)),
    "shift_left_i32": ((_I, _I), _I, shift_left),
    "shift_left_u32": ((_I, _I), _I, shift_left),
    "shift_right_i32": ((_I, _I), _I, shift_right_i32),
    "shift_right_u32": ((_I, _I), _I, shift_right_u32),
    "float16_of_bits": ((_I,), _F, float16_of_bits),
    "bits_of_float16": ((_F,), _I, bits_of_float16),
    "philox_at": ((_I,) * 7, _I, philox_at),
    "sort_key_f32": ((_F,), _I, sort_key_f32),
}
