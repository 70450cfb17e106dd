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


def _none(name, type):
    """Raises UnsupportedError; both backends have the kernels of this folder."""
    refuse("no kernel", "{} of {}".format(name, type), "the wasm or native")


def _truth(a, type):
    """Whether a number is not 0, as 0 or 1."""
    if type == "bool":
        return a
    return op("f32.ne", a, f32(0.0)) if type == "f32" else op("i32.ne", a, i32(0))


def _mask(a, type):
    """`_truth` of four, as masks."""
    if type == "bool":
        return a
    return op("f32x4.ne", a, f32x4(0.0)) if type == "f32" else op("i32x4.ne", a, i32x4(0))


def scalar(name, type, args):
    """The expression of an operation on numbers of `type`; args: expressions without side effects, which may be
    repeated."""
    a = args[0]
    b = args[1] if len(args) > 1 else None
    if type == "bool":
        return _scalar_bool(name, a, b)
    if name == "logical_not":
        return op("i32.eqz", _truth(a, type))
    if name.startswith("logical_"):
        return op("i32." + name[8:], _truth(a, type), _truth(b, type))
    made = _scalar_float(name, args) if type == "f32" else _scalar_integer(name, type, a, b)
    if made is not None:
        return made
    if name in library.VECTOR and type == "f32":
        return lane("f32x4.extract_lane", 0, call(name, "v128", op("f32x4.splat", a)))
    if name in library.ONE and type == "f32":
        return call(name, "f32", a)
    if name in _LIBRARY:
        return call(name + "_" + type, type if type == "f32" else "i32", *args)
    return _none(name, type)


def _scalar_bool(name, a, b):
    if name in ("logical_not", "bitwise_not"):
        return op("i32.eqz", a)
    if name in _BOOL:
        return op("i32." + _BOOL[name], a, b)
    if name in _SAME_BOOL:
        return a
    if name in ("isnan", "isinf"):
        return i32(0)
    if name in ("eq", "lt", "le", "gt", "ge"):
        return op("i32." + name + ("" if name == "eq" else "_u"), a, b)
    return _none(name, "bool")


def _scalar_float(name, args):
    a = args[0]
    if name in _FLOAT:
        return op("f32." + _FLOAT[name], *args)
    if name == "isnan":
        return op("f32.ne", a, a)
    if name == "isinf":
        return op("f32.eq", op("f32.abs", a), f32(float("inf")))
    if name == "sign":
        zero = f32(0.0)
        below = select(op("f32.lt", a, zero), f32(-1.0), select(op("f32.eq", a, zero), zero, a))
        return select(op("f32.gt", a, zero), f32(1.0), below)
    return None


def _scalar_integer(name, type, a, b):
    if name in _INTEGER:
        known = _INTEGER[name]
        return op("i32." + known + ("" if known[-1] != "_" else "s" if type == "i32" else "u"), a, b)
    if name in _BITS:
        return op("i32." + _BITS[name], a, b)
    if name in _SAME_INTEGER or (type == "u32" and name == "abs"):
        return a
    if name in ("maximum", "minimum", "max", "min"):
        kind = ("gt_" if name[:3] == "max" else "lt_") + ("s" if type == "i32" else "u")
        return select(op("i32." + kind, a, b), a, b)
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
    return i32(0) if name in ("isnan", "isinf") else None


def exponent(value):
    """The Value x of 1 + exp(x), else None. Of such a sum, subnormal results of exp are no part."""
    if value.op == "add" and value.type == "f32":
        for i in (0, 1):
            one, grown = value.args[i], value.args[1 - i]
            if grown.op == "exp" and one.op == "const" and not is_open(one.attr) and one.attr == 1:
                return grown.args[0]
    return None


def vector(name, type, args, plain=None):
    """`scalar` on four numbers at once, bools as masks; None if there is no such instruction.

    plain: the Python number that the last argument broadcasts, None if it is not constant.
    """
    a = args[0]
    b = args[1] if len(args) > 1 else None
    if type == "bool":
        return _vector_bool(name, a, b)
    if name == "logical_not":
        return op("v128.not", _mask(a, type))
    if name.startswith("logical_"):
        return op("v128." + name[8:], _mask(a, type), _mask(b, type))
    if type == "f32":
        return _vector_float(name, args, plain)
    sign = "s" if type == "i32" else "u"
    if name in _INTEGER:
        known = _INTEGER[name]
        return op("i32x4." + known + ("" if known[-1] != "_" else sign), a, b)
    if name in _BITS:
        return op("v128." + _BITS[name], a, b)
    if name in _SAME_INTEGER or (type == "u32" and name == "abs"):
        return a
    if name in ("maximum", "minimum", "max", "min"):
        return op("i32x4." + name[:3] + "_" + sign, a, b)
    if name in ("neg", "abs"):
        return op("i32x4." + name, a)
    if name == "bitwise_not":
        return op("v128.not", a)
    if name in ("isnan", "isinf"):
        return i32x4(0)
    return None


def _vector_float(name, args, plain):
    a = args[0]
    if name in ("maximum", "minimum", "max", "min") and plain is not None and plain == plain:
        # One instruction on x86, whereas `max` takes eight. A NaN in the first argument is kept.
        return op("f32x4.p" + name[:3], a, args[1])
    if name in _FLOAT:
        return op("f32x4." + _FLOAT[name], *args)
    if name == "isnan":
        return op("f32x4.ne", a, a)
    if name == "isinf":
        return op("f32x4.eq", op("f32x4.abs", a), f32x4(float("inf")))
    if name == "sign":
        zero = f32x4(0.0)
        below = bits(op("f32x4.lt", a, zero), f32x4(-1.0), bits(op("f32x4.eq", a, zero), zero, a))
        return bits(op("f32x4.gt", a, zero), f32x4(1.0), below)
    return call(name, "v128", a) if name in library.VECTOR else None


def _vector_bool(name, a, b):
    if name in ("logical_not", "bitwise_not"):
        return op("v128.not", a)
    if name in _BOOL:
        return op("v128." + _BOOL[name], a, b)
    if name in _SAME_BOOL:
        return a
    if name in ("isnan", "isinf"):
        return i32x4(0)
    if name == "eq":
        return op("v128.not", op("v128.xor", a, b))
    if name == "lt":
        return op("v128.andnot", b, a)
    if name == "gt":
        return op("v128.andnot", a, b)
    if name == "le":
        return op("v128.or", op("v128.not", a), b)
    if name == "ge":
        return op("v128.or", a, op("v128.not", b))
    return None


def cast(a, source, target):
    """A number of one register type as another, without rounding to narrow dtypes."""
    if source == target:
        return a
    if target == "bool":
        return _truth(a, source)
    if target == "f32":
        return op("f32.convert_i32_s" if source == "i32" else "f32.convert_i32_u", a)
    if source == "f32":
        return op("i32.trunc_sat_f32_s" if target == "i32" else "i32.trunc_sat_f32_u", a)
    return a


def cast_four(a, source, target):
    """`cast` of four numbers."""
    if source == target:
        return a
    if target == "bool":
        return _mask(a, source)
    if source == "bool":
        return op("v128.and", a, f32x4(1.0) if target == "f32" else i32x4(1))
    if target == "f32":
        return op("f32x4.convert_i32x4_s" if source == "i32" else "f32x4.convert_i32x4_u", a)
    if source == "f32":
        return op("i32x4.trunc_sat_f32x4_s" if target == "i32" else "i32x4.trunc_sat_f32x4_u", a)
    return a


def function(attr, type, args):
    """The expression of a function that lowering asks for by name (render/shaders/math.wgsl) of one number."""
    name, a = attr[0], args[0]
    if name == "to_i32":
        low, high = float(attr[1]), float(attr[2])
        whole = op("i32.trunc_sat_f32_s", a)
        if high > _WHOLE_I32:
            return whole
        return scalar("min", "i32", (scalar("max", "i32", (whole, i32(int(low)))), i32(int(high))))
    if name == "to_u32":
        high = float(attr[1])
        whole = op("i32.trunc_sat_f32_u", a)
        return whole if high > _WHOLE_U32 else scalar("min", "u32", (whole, i32(int(high))))
    if name == "round_f16":
        return lane("f32x4.extract_lane", 0, call(name, "v128", op("f32x4.splat", a)))
    if name == "round_bf16":
        near, nan = _rounded_bf16(op("i32.reinterpret_f32", a), "i32.", "i32.", i32)
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
    found = _of_either(attr, args, "i32.", "i32.", i32)
    if found is None:
        return _none(name, type)
    return found


def function_of_four(attr, args):
    """`function` of four numbers at once; None if there is none."""
    name, a = attr[0], args[0]
    if name == "to_i32":
        low, high = float(attr[1]), float(attr[2])
        whole = op("i32x4.trunc_sat_f32x4_s", a)
        if high > _WHOLE_I32:
            return whole
        return op("i32x4.min_s", op("i32x4.max_s", whole, i32x4(int(low))), i32x4(int(high)))
    if name == "to_u32":
        high = float(attr[1])
        whole = op("i32x4.trunc_sat_f32x4_u", a)
        return whole if high > _WHOLE_U32 else op("i32x4.min_u", whole, i32x4(int(high)))
    if name == "round_f16":
        return call(name, "v128", a)
    if name == "round_bf16":
        near, nan = _rounded_bf16(a, "i32x4.", "v128.", i32x4)
        return bits(op("f32x4.eq", a, a), near, nan)
    return _of_either(attr, args, "i32x4.", "v128.", i32x4)


def _of_either(attr, args, integer, bitwise, number):
    """A function with the same form on scalars and vectors, or None.

    integer, bitwise: prefixes of the integer and bitwise instructions; number: makes constants.
    """
    name, a = attr[0], args[0]
    if name == "wrap_u":
        return op(bitwise + "and", a, number((1 << int(attr[1][:-1])) - 1))
    if name == "wrap_i":
        free = i32(32 - int(attr[1][:-1]))
        return op(integer + "shr_s", op(integer + "shl", a, free), free)
    if name == "times_zero":
        return a * args[1]
    if name == "over_zero":
        return a / args[1]
    if name == "over_itself":
        return a / a
    return None


def _rounded_bf16(word, integer, bitwise, number):
    """(the bits of float32 rounded to the nearest bfloat16, half to even; the bits of a NaN as one)."""
    odd = op(bitwise + "and", op(integer + "shr_u", word, i32(16)), number(1))
    up = op(integer + "add", op(integer + "add", word, number(0x7FFF)), odd)
    kept = number(0xFFFF0000)
    return op(bitwise + "and", up, kept), op(bitwise + "or", op(bitwise + "and", word, kept), number(0x00400000))
