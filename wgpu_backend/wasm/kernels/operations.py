"""Operations of the kernel IR on scalars or vectors of four, as expressions."""

from emberlet.errors import refuse
from emberlet.sizes.size import is_open

from .. import library
from ..assembler import bits, call, f32, f32x4, i32, i32x4, lane, op, select

# Operations that are one instruction -> its name after the type. Integer comparisons append the signedness.
_FLOAT = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "neg": "neg", "abs": "abs", "sqrt": "sqrt",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "nearest", "maximum": "max", "minimum": "min",
    "max": "max", "min": "min", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
}  # fmt: skip
_INTEGER = {
    "add": "add", "sub": "sub", "mul": "mul", "eq": "eq", "ne": "ne", "lt": "lt_", "le": "le_", "gt": "gt_",
    "ge": "ge_",
}  # fmt: skip
_BITS = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
_EXTREMES = ("maximum", "minimum", "max", "min")
_SAME_INTEGER = ("floor", "ceil", "round", "trunc")
_BOOL = {
    "logical_and": "and", "logical_or": "or", "logical_xor": "xor", "bitwise_and": "and", "bitwise_or": "or",
    "bitwise_xor": "xor", "maximum": "or", "minimum": "and", "add": "or", "mul": "and", "sub": "xor", "ne": "xor",
    "max": "or", "min": "and",
}  # fmt: skip
_SAME_BOOL = ("abs", "sign", "floor", "ceil", "round", "trunc")
_LIBRARY = ("div", "floor_divide", "remainder", "fmod", "pow", "shift_left", "shift_right", "atan2")
# Upper bounds that a saturating conversion enforces without a separate clamp.
_WHOLE_I32, _WHOLE_U32 = 2e9, 4e9


class _Numbers:
    """How numbers are held: prefixes of the instructions on integers, on floats and on bits; what makes constants of
    integers and of floats; what chooses between two by a condition; what negates a bool."""

    def __init__(self, integer, real, bitwise, whole, number, choose, negate):
        self.integer = integer
        self.real = real
        self.bitwise = bitwise
        self.whole = whole
        self.number = number
        self.choose = choose
        self.negate = negate

    def extreme(self, name, type, a, b):
        """The larger ("max") or smaller integer."""
        sign = "s" if type == "i32" else "u"
        if self is FOUR:
            return op("i32x4.{}_{}".format(name, sign), a, b)
        return select(op("i32.{}_{}".format("gt" if name == "max" else "lt", sign), a, b), a, b)

    def truth(self, a, type):
        """Whether a number is not 0: as 0 or 1, or as a mask."""
        if type == "bool":
            return a
        if type == "f32":
            return op(self.real + "ne", a, self.number(0.0))
        return op(self.integer + "ne", a, self.whole(0))


ONE = _Numbers("i32.", "f32.", "i32.", i32, f32, select, "i32.eqz")
FOUR = _Numbers("i32x4.", "f32x4.", "v128.", i32x4, f32x4, bits, "v128.not")


def _none(name, type):
    """Raises UnsupportedError; both backends have the kernels of this folder."""
    refuse("no kernel", "{} of {}".format(name, type), "the wasm or native")


def exponent(value):
    """The Value x of 1 + exp(x), else None. Of such a sum, subnormal results of exp are no part."""
    if value.op == "add" and value.type == "f32":
        for i in (0, 1):
            one, grown = value.args[i], value.args[1 - i]
            if grown.op == "exp" and one.op == "const" and not is_open(one.attr) and one.attr == 1:
                return grown.args[0]
    return None


def scalar(name, type, args):
    """The expression of an operation on numbers of `type`; args: expressions without side effects, which may be
    repeated."""
    a, b = args[0], args[-1]
    made = _either(ONE, name, type, args)
    if made is not None:
        return made
    if type == "bool":
        return op("i32." + name + "_u", a, b) if name in ("lt", "le", "gt", "ge") else _none(name, type)
    if type != "f32":
        made = _scalar_integer(name, type, a)
    elif name in library.VECTOR:
        made = lane("f32x4.extract_lane", 0, call(name, "v128", op("f32x4.splat", a)))
    elif name in library.ONE:
        made = call(name, "f32", a)
    if made is None and name in _LIBRARY:
        made = call(name + "_" + type, type if type == "f32" else "i32", *args)
    return _none(name, type) if made is None else made


def _scalar_integer(name, type, a):
    if name == "neg":
        return op("i32.sub", i32(0), a)
    if name == "bitwise_not":
        return op("i32.xor", a, i32(-1))
    if name == "abs":
        return select(op("i32.lt_s", a, i32(0)), op("i32.sub", i32(0), a), a)
    if name == "sign":
        if type == "u32":
            return op("i32.ne", a, i32(0))
        return op("i32.sub", op("i32.gt_s", a, i32(0)), op("i32.lt_s", a, i32(0)))
    return None


def vector(name, type, args, plain=None):
    """`scalar` on four numbers at once, bools as masks; None if there is no such instruction.

    plain: the Python number that the last argument broadcasts, None if it is not constant.
    """
    a, b = args[0], args[-1]
    if type == "f32" and name in _EXTREMES and plain is not None and plain == plain:
        # One instruction on x86, whereas `max` takes eight. A NaN in the first argument is kept.
        return op("f32x4.p" + name[:3], a, b)
    made = _either(FOUR, name, type, args)
    if made is not None:
        return made
    if type == "bool":
        return _compared_masks(name, a, b)
    if type == "f32":
        return call(name, "v128", a) if name in library.VECTOR else None
    if name in ("neg", "abs"):
        return op("i32x4." + name, a)
    return op("v128.not", a) if name == "bitwise_not" else None


def _compared_masks(name, a, b):
    if name in ("lt", "gt"):
        return op("v128.andnot", b, a) if name == "lt" else op("v128.andnot", a, b)
    if name == "le":
        return op("v128.or", op("v128.not", a), b)
    return op("v128.or", a, op("v128.not", b)) if name == "ge" else None


def _either(numbers, name, type, args):
    """An operation with the same form on one number and on four, else None."""
    if type == "f32" and name in _FLOAT:
        return op(numbers.real + _FLOAT[name], *args)
    a, b = args[0], args[-1]
    if name == "logical_not" or (type == "bool" and name == "bitwise_not"):
        return op(numbers.negate, numbers.truth(a, type))
    if type == "bool":
        return _either_bool(numbers, name, a, b)
    if name.startswith("logical_"):
        return op(numbers.bitwise + name[8:], numbers.truth(a, type), numbers.truth(b, type))
    if type == "f32":
        return _either_float(numbers, name, args[0])
    if name in _INTEGER:
        known = _INTEGER[name]
        return op(numbers.integer + known + ("" if known[-1] != "_" else "s" if type == "i32" else "u"), a, b)
    if name in _BITS:
        return op(numbers.bitwise + _BITS[name], a, b)
    if name in _SAME_INTEGER or (type == "u32" and name == "abs"):
        return a
    if name in _EXTREMES:
        return numbers.extreme(name[:3], type, a, b)
    return numbers.whole(0) if name in ("isnan", "isinf") else None


def _either_bool(numbers, name, a, b):
    if name in _BOOL:
        return op(numbers.bitwise + _BOOL[name], a, b)
    if name in _SAME_BOOL:
        return a
    if name == "eq":
        return op("i32.eq", a, b) if numbers is ONE else op("v128.not", op("v128.xor", a, b))
    return numbers.whole(0) if name in ("isnan", "isinf") else None


def _either_float(numbers, name, a):
    real, choose, number = numbers.real, numbers.choose, numbers.number
    if name == "isnan":
        return op(real + "ne", a, a)
    if name == "isinf":
        return op(real + "eq", op(real + "abs", a), number(float("inf")))
    if name == "sign":
        zero = number(0.0)
        below = choose(op(real + "lt", a, zero), number(-1.0), choose(op(real + "eq", a, zero), zero, a))
        return choose(op(real + "gt", a, zero), number(1.0), below)
    return None


def cast(numbers, a, source, target):
    """A number (ONE) or four (FOUR) of one register type as another, without rounding to narrow dtypes."""
    if source == target:
        return a
    if target == "bool":
        return numbers.truth(a, source)
    if source == "bool" and numbers is FOUR:
        return op("v128.and", a, f32x4(1.0) if target == "f32" else i32x4(1))
    if target == "f32":
        return op(numbers.real + "convert_" + numbers.integer[:-1] + ("_s" if source == "i32" else "_u"), a)
    return _truncated(numbers, a, target) if source == "f32" else a


def _truncated(numbers, a, target):
    """Floats as integers, saturated to 32 bits."""
    return op(numbers.integer + "trunc_sat_" + numbers.real[:-1] + ("_s" if target == "i32" else "_u"), a)


def function(attr, type, args):
    """The expression of a function that lowering asks for by name (render/shaders/math.wgsl) of one number."""
    name, a = attr[0], args[0]
    if name == "round_f16":
        return lane("f32x4.extract_lane", 0, call(name, "v128", op("f32x4.splat", a)))
    if name == "round_bf16":
        near, nan = _rounded_bf16(ONE, op("i32.reinterpret_f32", a))
        return op("f32.reinterpret_i32", select(op("f32.ne", a, a), nan, near))
    if name == "bits_of_bfloat16":
        return op("i32.shr_u", op("i32.reinterpret_f32", a), i32(16))
    if name == "bfloat16_of_bits":
        return op("f32.reinterpret_i32", op("i32.shl", a, i32(16)))
    if name == "sort_key_i32":
        return op("i32.xor", a, i32(0x80000000))
    if name == "sort_key_u32":
        return a
    if name in ("bits_of_float16", "float16_of_bits", "philox_at", "sort_key_f32"):
        return call(name, "f32" if type == "f32" else "i32", *args)
    found = _either_function(ONE, attr, args)
    return _none(name, type) if found is None else found


def function_of_four(attr, args):
    """`function` of four numbers at once; None if there is none."""
    name, a = attr[0], args[0]
    if name == "round_f16":
        return call(name, "v128", a)
    if name == "round_bf16":
        near, nan = _rounded_bf16(FOUR, a)
        return bits(op("f32x4.eq", a, a), near, nan)
    return _either_function(FOUR, attr, args)


def _either_function(numbers, attr, args):
    """A function with the same form on one number and on four, else None."""
    name, a, whole = attr[0], args[0], numbers.whole
    if name in ("to_i32", "to_u32"):
        type, high = name[3:], float(attr[-1])
        out = _truncated(numbers, a, type)
        if high > (_WHOLE_I32 if type == "i32" else _WHOLE_U32):
            return out
        if type == "i32":
            out = numbers.extreme("max", type, out, whole(int(float(attr[1]))))
        return numbers.extreme("min", type, out, whole(int(high)))
    if name == "wrap_u":
        return op(numbers.bitwise + "and", a, whole((1 << int(attr[1][:-1])) - 1))
    if name == "wrap_i":
        free = i32(32 - int(attr[1][:-1]))
        return op(numbers.integer + "shr_s", op(numbers.integer + "shl", a, free), free)
    if name == "times_zero":
        return a * args[1]
    if name == "over_zero":
        return a / args[1]
    return a / a if name == "over_itself" else None


def _rounded_bf16(numbers, word):
    """(the bits of float32 rounded to the nearest bfloat16, half to even; the bits of a NaN as one)."""
    integer, bitwise, whole = numbers.integer, numbers.bitwise, numbers.whole
    odd = op(bitwise + "and", op(integer + "shr_u", word, i32(16)), whole(1))
    up = op(integer + "add", op(integer + "add", word, whole(0x7FFF)), odd)
    kept = whole(0xFFFF0000)
    return op(bitwise + "and", up, kept), op(bitwise + "or", op(bitwise + "and", word, kept), whole(0x00400000))
