"""The instructions that kernels use, under the names of the WebAssembly specification (3.0, section 5.4).

OPCODES: name -> (bytes, type of the result, natural alignment as a power of two or None). The type is "" for an
instruction that leaves nothing on the stack.
"""


def unsigned(n):
    """n >= 0 as unsigned LEB128. Raises ValueError if n is negative, such as a wrong offset of a load."""
    if n < 0:
        raise ValueError("{} is negative and has no unsigned LEB128".format(n))
    out = []
    while True:
        low = n & 0x7F
        n >>= 7
        out.append(low | (0x80 if n else 0))
        if not n:
            return bytes(out)


def signed(n):
    """n as signed LEB128."""
    out = []
    while True:
        low = n & 0x7F
        n >>= 7
        if (n == 0 and not low & 0x40) or (n == -1 and low & 0x40):
            out.append(low)
            return bytes(out)
        out.append(low | 0x80)


OPCODES = {}


def _plain(text, type):
    for part in text.split():
        name, _, code = part.partition("=")
        OPCODES[name] = (bytes((int(code, 16),)), type, None)


def _series(prefix, first, names, type):
    for i, name in enumerate(names.split()):
        if name != "_":
            OPCODES[prefix + "." + name] = (bytes((first + i,)), type, None)


def _memory(text, type):
    for part in text.split():
        name, code, align = part.split(":")
        OPCODES[name] = (bytes((int(code, 16),)), type, int(align))


def _simd(prefix, first, names, type):
    for i, name in enumerate(names.split()):
        if name != "_":
            OPCODES[prefix + "." + name] = (b"\xfd" + unsigned(first + i), type, None)


def _simd_memory(text, type):
    for part in text.split():
        name, code, align = part.split(":")
        OPCODES["v128." + name] = (b"\xfd" + unsigned(int(code)), type, int(align))


_memory("i32.load:28:2 i32.load8_s:2c:0 i32.load8_u:2d:0 i32.load16_s:2e:1 i32.load16_u:2f:1", "i32")
_memory("f32.load:2a:2", "f32")
_memory("i32.store:36:2 f32.store:38:2 i32.store8:3a:0 i32.store16:3b:1", "")
_plain("i32.eqz=45 i32.eq=46 i32.ne=47 i32.lt_s=48 i32.lt_u=49 i32.gt_s=4a i32.gt_u=4b i32.le_s=4c i32.le_u=4d", "i32")
_plain("i32.ge_s=4e i32.ge_u=4f i64.eqz=50 i64.eq=51 i64.ne=52 i64.lt_s=53 i64.lt_u=54 i64.gt_u=56", "i32")
_series("f32", 0x5B, "eq ne lt gt le ge", "i32")
_series("f64", 0x61, "eq ne lt gt le ge", "i32")
_series("i32", 0x67, "clz ctz popcnt add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u rotl rotr", "i32")
_series("i64", 0x79, "clz ctz popcnt add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u rotl rotr", "i64")
_series("f32", 0x8B, "abs neg ceil floor trunc nearest sqrt add sub mul div min max copysign", "f32")
_series("f64", 0x99, "abs neg ceil floor trunc nearest sqrt add sub mul div min max copysign", "f64")
_plain("i32.wrap_i64=a7 i32.reinterpret_f32=bc", "i32")
_plain("i64.extend_i32_s=ac i64.extend_i32_u=ad i64.reinterpret_f64=bd", "i64")
_plain("f32.convert_i32_s=b2 f32.convert_i32_u=b3 f32.demote_f64=b6 f32.reinterpret_i32=be", "f32")
_plain(
    "f64.convert_i32_s=b7 f64.convert_i32_u=b8 f64.convert_i64_s=b9 f64.promote_f32=bb f64.reinterpret_i64=bf", "f64"
)
_plain("i32.extend8_s=c0 i32.extend16_s=c1", "i32")
OPCODES["i32.trunc_sat_f32_s"] = (b"\xfc\x00", "i32", None)
OPCODES["i32.trunc_sat_f32_u"] = (b"\xfc\x01", "i32", None)
OPCODES["i32.trunc_sat_f64_s"] = (b"\xfc\x02", "i32", None)
OPCODES["i64.trunc_sat_f64_s"] = (b"\xfc\x06", "i64", None)

# Atomic instructions (the threads proposal).
for _name, _code, _type in (
    ("memory.atomic.notify", 0x00, "i32"),
    ("memory.atomic.wait32", 0x01, "i32"),
    ("i32.atomic.load", 0x10, "i32"),
    ("i64.atomic.load", 0x11, "i64"),
    ("i32.atomic.store", 0x17, ""),
    ("i64.atomic.store", 0x18, ""),
    ("i32.atomic.rmw.add", 0x1E, "i32"),
    ("i64.atomic.rmw.cmpxchg", 0x49, "i64"),
):
    OPCODES[_name] = (b"\xfe" + unsigned(_code), _type, 3 if _name.startswith("i64") else 2)

_simd_memory("load:0:4 load8_splat:7:0 load32_splat:9:2 load32_zero:92:2 load64_zero:93:3 load32_lane:86:2", "v128")
_simd_memory("load8_lane:84:0 load8x8_s:1:3 load8x8_u:2:3 load16x4_u:4:3", "v128")
_simd_memory("store:11:4 store32_lane:90:2", "")
_simd("i8x16", 13, "shuffle swizzle splat", "v128")
_simd("i16x8", 16, "splat", "v128")
_simd("i32x4", 17, "splat", "v128")
_simd("f32x4", 19, "splat", "v128")
OPCODES["i32x4.extract_lane"] = (b"\xfd" + unsigned(27), "i32", None)
OPCODES["i32x4.replace_lane"] = (b"\xfd" + unsigned(28), "v128", None)
OPCODES["f32x4.extract_lane"] = (b"\xfd" + unsigned(31), "f32", None)
OPCODES["f32x4.replace_lane"] = (b"\xfd" + unsigned(32), "v128", None)
_simd("i32x4", 55, "eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u", "v128")
_simd("f32x4", 65, "eq ne lt gt le ge", "v128")
_simd("v128", 77, "not and andnot or xor bitselect", "v128")
OPCODES["v128.any_true"] = (b"\xfd" + unsigned(83), "i32", None)
OPCODES["i32x4.all_true"] = (b"\xfd" + unsigned(163), "i32", None)
_simd("f32x4", 103, "ceil floor trunc nearest", "v128")
_simd("i16x8", 135, "extend_low_i8x16_s extend_high_i8x16_s extend_low_i8x16_u extend_high_i8x16_u", "v128")
_simd("i8x16", 120, "max_s max_u", "v128")
_simd("i16x8", 142, "add _ _ sub _ _ _ mul", "v128")
_simd("i32x4", 160, "abs neg", "v128")
_simd("i32x4", 167, "extend_low_i16x8_s extend_high_i16x8_s extend_low_i16x8_u extend_high_i16x8_u", "v128")
_simd("i32x4", 171, "shl shr_s shr_u add _ _ sub _ _ _ mul min_s min_u max_s max_u dot_i16x8_s", "v128")
_simd("f32x4", 224, "abs neg _ sqrt add sub mul div min max pmin pmax", "v128")
_simd("i32x4", 248, "trunc_sat_f32x4_s trunc_sat_f32x4_u", "v128")
_simd("f32x4", 250, "convert_i32x4_s convert_i32x4_u", "v128")
_simd("f32x4", 261, "relaxed_madd relaxed_nmadd", "v128")

# Instructions on vectors of other lengths, in the same form. ../llvm renders them; WebAssembly does not have them.
# ramp: lane n is n times a number; turn: lanes turned by a number of them; reverse; even: the even lanes of two
# vectors; even_odd: those of one and the odd ones of another; load_i8, load_u8, store_8: bytes as lanes; load_masked
# and store_masked: the lanes whose mask is set; whole: floats within 32 bits as integers; dot_bytes: a vector of sums,
# plus those of four neighboring products of unsigned and of signed bytes; prefetch: nothing, but the line of the cache
# is needed soon; nearest: floats rounded to integers, half to even, those without one as the lowest integer; store_i8
# and store_u8: lanes as bytes, saturated; store_two_i8 and store_two_u8: those of two vectors, one behind the other;
# dot_pairs: a vector of sums, plus those of two neighboring products of int16, added in the order of the code.
WIDER = {}
_WIDER = (
    "ramp turn reverse even even_odd load_i8 load_u8 store_8 load_masked store_masked prefetch whole dot_bytes nearest "
    "store_i8 store_u8 store_two_i8 store_two_u8 dot_pairs"
)
for _n, _name in enumerate(_WIDER.split()):
    _align = 0 if _name.split("_")[0] in ("load", "store", "prefetch") else None
    _type = "" if _name[:6] == "store_" or _name == "prefetch" else "v128"
    WIDER["v128." + _name] = (b"\xfd" + unsigned(0x1000 + _n), _type, _align)

TYPES = {"i32": 0x7F, "i64": 0x7E, "f32": 0x7D, "f64": 0x7C, "v128": 0x7B}
