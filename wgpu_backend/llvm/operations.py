"""The operations of the kernels' instructions, on numbers and on vectors, as LLVM IR."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from .values import SCALARS, Values, float_text

_INTEGER = {
    "add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor",
    "div_s": "sdiv", "div_u": "udiv", "rem_s": "srem", "rem_u": "urem",
}  # fmt: skip
_SHIFTS = {"shl": "shl", "shr_s": "ashr", "shr_u": "lshr"}
_COMPARED = {
    "eq": "eq", "ne": "ne", "lt_s": "slt", "lt_u": "ult", "gt_s": "sgt", "gt_u": "ugt", "le_s": "sle", "le_u": "ule",
    "ge_s": "sge", "ge_u": "uge",
}  # fmt: skip
_EXTREMES = {"min_s": "smin", "min_u": "umin", "max_s": "smax", "max_u": "umax"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
# These propagate NaN, and -0 is less than 0, as in the kernels' instructions.
_FLOAT_CALLS = {
    "min": "minimum", "max": "maximum", "copysign": "copysign", "abs": "fabs", "ceil": "ceil", "floor": "floor",
    "trunc": "trunc", "nearest": "roundeven", "sqrt": "sqrt",
}  # fmt: skip
_FLOAT_COMPARED = {"eq": "oeq", "ne": "une", "lt": "olt", "gt": "ogt", "le": "ole", "ge": "oge"}
_CONVERTED = {  # operation -> (LLVM's, type of the operand)
    "wrap_i64": ("trunc", "i64"),
    "extend_i32_s": ("sext", "i32"),
    "extend_i32_u": ("zext", "i32"),
    "convert_i32_s": ("sitofp", "i32"),
    "convert_i32_u": ("uitofp", "i32"),
    "convert_i64_s": ("sitofp", "i64"),
    "demote_f64": ("fptrunc", "f64"),
    "promote_f32": ("fpext", "f32"),
    "reinterpret_f32": ("bitcast", "f32"),
    "reinterpret_f64": ("bitcast", "f64"),
    "reinterpret_i32": ("bitcast", "i32"),
    "reinterpret_i64": ("bitcast", "i64"),
}

_PAIRS = {16: "avx512.pmaddw.d.512", 8: "avx2.pmadd.wd", 4: "sse2.pmadd.wd"}  # by lanes


class Operations(Values):
    """dots: what sums of products the processor has itself (processor.py); joined: the flags of operations on floats
    that LLVM may make one instruction of."""

    def __init__(self, lanes: int, dots: int, declared: set[str]) -> None:
        super().__init__(lanes, declared)
        self.dots = dots
        self.joined = ""

    def shuffle(self, picks: Iterable[int]) -> None:
        type = f"<{4 * self.lanes} x i8>"
        a, b = self.pops(type, 2)
        mask = ", ".join([f"i32 {n}" for n in picks])
        self.push(type, f"shufflevector {type} {a}, {type} {b}, <{4 * self.lanes} x i32> <{mask}>")

    def lane(self, name: str, lane: int) -> None:
        kind, _, how = name.partition(".")
        element, type = ("float", self.floats) if kind == "f32x4" else ("i32", self.whole)
        value = self.pop(element) if how == "replace_lane" else ""
        vector = self.pop(type)
        if value:
            self.push(type, f"insertelement {type} {vector}, {element} {value}, i32 {lane}")
        else:
            self.push(element, f"extractelement {type} {vector}, i32 {lane}")

    def _halves(self, how: str) -> None:
        """extend_low_i8x16_s and its kin."""
        _, half, narrow, sign = how.split("_")
        count = 4 * self.lanes if narrow == "i8x16" else 2 * self.lanes
        bits = 8 if narrow == "i8x16" else 16
        source, part = f"<{count} x i{bits}>", f"<{count // 2} x i{bits}>"
        value = self.pop(source)
        first = 0 if half == "low" else count // 2
        mask = ", ".join([f"i32 {first + n}" for n in range(count // 2)])
        value = self.let(f"shufflevector {source} {value}, {source} poison, <{count // 2} x i32> <{mask}>")
        wide = f"<{count // 2} x i{2 * bits}>"
        self.push(wide, f"{'sext' if sign == 's' else 'zext'} {part} {value} to {wide}")

    def _dot(self) -> None:
        """The sums of the products of neighboring pairs of int16."""
        narrow, wide = f"<{2 * self.lanes} x i16>", f"<{2 * self.lanes} x i32>"
        if self.dots:
            a, b = self.pops(narrow, 2)
            called = f"{self.whole} @llvm.x86.{_PAIRS[self.lanes]}"
            self.declared.add(f"declare {called}({narrow}, {narrow})")
            self.push(self.whole, f"call {called}({narrow} {a}, {narrow} {b})")
            return
        a, b = [self.let(f"sext {narrow} {value} to {wide}") for value in self.pops(narrow, 2)]
        product = self.let(f"mul {wide} {a}, {b}")
        parts = []
        for first in (0, 1):
            mask = ", ".join([f"i32 {2 * n + first}" for n in range(self.lanes)])
            parts.append(self.let(f"shufflevector {wide} {product}, {wide} poison, <{self.lanes} x i32> <{mask}>"))
        self.push(self.whole, f"add {self.whole} {parts[0]}, {parts[1]}")

    # -- operations -----------------------------------------------------------------------------------------------

    def operation(self, name: str) -> None:
        kind, _, how = name.partition(".")
        if kind == "v128":
            self._bits(how)
        elif how == "splat":
            element = {"i32x4": "i32", "f32x4": "float", "i16x8": "i32", "i8x16": "i32"}[kind]
            value = self.pop(element)
            type = self._vector_type(kind)
            if kind in ("i16x8", "i8x16"):
                value = self.let(f"trunc i32 {value} to i{'16' if kind == 'i16x8' else '8'}")
            self.splat(value, type)
        elif how.startswith("extend_low") or how.startswith("extend_high"):
            self._halves(how)
        elif how == "dot_i16x8_s":
            self._dot()
        elif how in ("extend8_s", "extend16_s"):
            narrow = self.let(f"trunc i32 {self.pop('i32')} to i{how[6:-2]}")
            self.push("i32", f"sext i{how[6:-2]} {narrow} to i32")
        elif "x" in kind:
            self._arithmetic(kind[0] == "f", self._vector_type(kind), how)
        else:
            self._arithmetic(kind[0] == "f", SCALARS[kind], how)

    def _vector_type(self, kind: str) -> str:
        return {
            "i32x4": self.whole,
            "f32x4": self.floats,
            "i16x8": f"<{2 * self.lanes} x i16>",
            "i8x16": f"<{4 * self.lanes} x i8>",
        }[kind]

    def _bits(self, how: str) -> None:
        type = self.whole
        if how in ("turn", "reverse", "even", "even_odd"):
            self._picked(how)
        elif how == "ramp":
            self.splat(self.pop("i32"), type)
            numbers = ", ".join([f"i32 {n}" for n in range(self.lanes)])
            self.push(type, f"mul {type} {self.pop(type)}, <{numbers}>")
        elif how == "dot_bytes":
            narrow = f"<{4 * self.lanes} x i8>"
            a, b = self.pops(narrow, 2)
            called = f"{type} @llvm.x86.avx512.vpdpbusd.{32 * self.lanes}"
            self.declared.add(f"declare {called}({type}, {narrow}, {narrow})")
            self.push(type, f"call {called}({type} {self.pop(type)}, {narrow} {a}, {narrow} {b})")
        elif how == "dot_pairs":
            self._dot()
            a, b = self.pops(type, 2)
            self.push(type, f"add {type} {a}, {b}")
            # LLVM would add the products of several steps to each other first, for which registers do not suffice.
            self.intrinsic("arithmetic.fence", self.floats, self.floats, (self.floats, self.pop(self.floats)))
        elif how == "nearest":
            self._nearest()
        elif how == "whole":
            self.push(type, f"fptosi {self.floats} {self.pop(self.floats)} to {type}")
        elif how == "not":
            self.push(type, f"xor {type} {self.pop(type)}, {self._ones()}")
        elif how == "bitselect":
            a, b, mask = self.pops(type, 3)
            kept = self.let(f"and {type} {a}, {mask}")
            other = self.let(f"and {type} {b}, {self.let(f'xor {type} {mask}, {self._ones()}')}")
            self.push(type, f"or {type} {kept}, {other}")
        elif how == "andnot":
            a, b = self.pops(type, 2)
            self.push(type, f"and {type} {a}, {self.let(f'xor {type} {b}, {self._ones()}')}")
        else:
            a, b = self.pops(type, 2)
            self.push(type, f"{how} {type} {a}, {b}")

    def _nearest(self) -> None:
        """As the processor converts: LLVM's own conversions say nothing of numbers without an integer."""
        value, type = self.pop(self.floats), self.whole
        called, more = "x86.avx.cvt.ps2dq.256", ""
        if self.lanes == 16:
            called, more = "x86.avx512.mask.cvtps2dq.512", f", {type} zeroinitializer, i16 -1, i32 4"
        types = ", ".join([part.rpartition(" ")[0] for part in f"{self.floats} x{more}".split(", ")])
        self.declared.add(f"declare {type} @llvm.{called}({types})")
        self.push(type, f"call {type} @llvm.{called}({self.floats} {value}{more})")

    def _picked(self, how: str) -> None:
        """Some lanes of a vector or of two."""
        type, count = self.whole, self.lanes
        if how in ("turn", "reverse"):
            by = int(self.pop("i32")) if how == "turn" else 0
            picks = [(n + by) % count for n in range(count)] if by else list(range(count - 1, -1, -1))
            a = b = self.pop(type)
        else:
            picks = list(range(0, 2 * count, 2))
            if how == "even_odd":
                picks[count // 2 :] = [count + n for n in range(1, count, 2)]
            a, b = self.pops(type, 2)
        mask = ", ".join([f"i32 {n}" for n in picks])
        self.push(type, f"shufflevector {type} {a}, {type} {b}, <{count} x i32> <{mask}>")

    def _ones(self) -> str:
        return "<" + ", ".join(["i32 -1"] * self.lanes) + ">"

    def _arithmetic(self, is_float: bool, type: str, how: str) -> None:
        write: Callable[[str, str], bool] = self._float if is_float else self._integer
        if not write(type, how) and not self._convert(type, how):
            raise NotImplementedError(f"{how} of {type}")

    def _truths(self, type: str, text: str) -> None:
        """A comparison as a number, or as masks."""
        value = self.let(text)
        if type[0] == "<":
            self.push(self.whole, f"sext <{self.lanes} x i1> {value} to {self.whole}")
        else:
            self.push("i32", f"zext i1 {value} to i32")

    def _integer(self, type: str, how: str) -> bool:
        if how in _INTEGER:
            a, b = self.pops(type, 2)
            self.push(type, f"{_INTEGER[how]} {type} {a}, {b}")
        elif how in _SHIFTS:
            self._shift(type, how)
        elif how in _COMPARED:
            a, b = self.pops(type, 2)
            self._truths(type, f"icmp {_COMPARED[how]} {type} {a}, {b}")
        elif how == "eqz":
            self._truths(type, f"icmp eq {type} {self.pop(type)}, 0")
        elif how in _EXTREMES:
            a, b = self.pops(type, 2)
            self.intrinsic(_EXTREMES[how], type, type, (type, a), (type, b))
        elif how == "neg":
            self.push(type, f"sub {type} zeroinitializer, {self.pop(type)}")
        elif how == "abs":
            self.intrinsic("abs", type, type, (type, self.pop(type)), ("i1", "false"))
        elif how == "clz":
            self.intrinsic("ctlz", type, type, (type, self.pop(type)), ("i1", "false"))
        else:
            return False
        return True

    def _shift(self, type: str, how: str) -> None:
        """The count is taken modulo the number of bits."""
        if type[0] == "<":
            count = self.let(f"and i32 {self.pop('i32')}, 31")
            self.splat(count, type)
            by = self.pop(type)
        else:
            by = self.let(f"and {type} {self.pop(type)}, {int(type[1:]) - 1}")
        self.push(type, f"{_SHIFTS[how]} {type} {self.pop(type)}, {by}")

    def _float(self, type: str, how: str) -> bool:
        if how in _FLOAT:
            a, b = self.pops(type, 2)
            self.push(type, f"{_FLOAT[how]}{self.joined} {type} {a}, {b}")
        elif how in ("min", "max", "copysign"):
            a, b = self.pops(type, 2)
            self.intrinsic(_FLOAT_CALLS[how], type, type, (type, a), (type, b))
        elif how in _FLOAT_CALLS:
            self.intrinsic(_FLOAT_CALLS[how], type, type, (type, self.pop(type)))
        elif how == "neg":
            self.push(type, f"fneg {type} {self.pop(type)}")
        elif how in _FLOAT_COMPARED:
            a, b = self.pops(type, 2)
            self._truths(type, f"fcmp {_FLOAT_COMPARED[how]} {type} {a}, {b}")
        elif how in ("pmin", "pmax"):
            a, b = self.pops(type, 2)
            first, second = (b, a) if how == "pmin" else (a, b)
            less = self.let(f"fcmp olt {type} {first}, {second}")
            self.push(type, f"select <{self.lanes} x i1> {less}, {type} {b}, {type} {a}")
        elif how in ("relaxed_madd", "relaxed_nmadd"):
            a, b, c = self.pops(type, 3)
            if how == "relaxed_nmadd":
                a = self.let(f"fneg {type} {a}")
            self.intrinsic("fma", type, type, (type, a), (type, b), (type, c))
        else:
            return False
        return True

    def _convert(self, type: str, how: str) -> bool:
        if how in _CONVERTED:
            name, kind = _CONVERTED[how]
            source = SCALARS[kind]
            self.push(type, f"{name} {source} {self.pop(source)} to {type}")
        elif how.startswith("convert_i32x4"):
            name = "sitofp" if how[-1] == "s" else "uitofp"
            self.push(type, f"{name} {self.whole} {self.pop(self.whole)} to {type}")
        elif how.startswith("trunc_sat"):
            source = self.floats if "x4" in how else SCALARS[how.split("_")[2]]
            if type[0] == "<":
                self._saturated(how[-1] == "s")
            else:
                name = "fptosi.sat" if how[-1] == "s" else "fptoui.sat"
                self.intrinsic(name, source, type, (source, self.pop(source)))
        else:
            return False
        return True

    def _saturated(self, signed: bool) -> None:
        """LLVM's own saturating conversion is written number by number."""
        type, floats, truths = self.whole, self.floats, f"<{self.lanes} x i1>"
        low, high = (-(2.0**31), 2.0**31) if signed else (0.0, 2.0**32)
        bounds = []
        for bound in (low, high):
            self.splat(float_text(struct.pack("<f", bound)), floats)
            bounds.append(self.pop(floats))
        x = self.pop(floats)
        above = self.let(f"fcmp oge {floats} {x}, {bounds[1]}")
        enough = self.let(f"fcmp oge {floats} {x}, {bounds[0]}")
        inside = self.let(f"and {truths} {enough}, {self.let(f'xor {truths} {above}, {self._all_true()}')}")
        kept = self.let(f"select {truths} {inside}, {floats} {x}, {floats} zeroinitializer")
        whole = self.let(f"{'fptosi' if signed else 'fptoui'} {floats} {kept} to {type}")
        most = str((1 << 31) - 1 if signed else -1)
        most = "<" + ", ".join([f"i32 {most}"] * self.lanes) + ">"
        whole = self.let(f"select {truths} {above}, {type} {most}, {type} {whole}")
        if signed:
            least = "<" + ", ".join([f"i32 {-(1 << 31)}"] * self.lanes) + ">"
            below = self.let(f"fcmp olt {floats} {x}, {bounds[0]}")
            whole = self.let(f"select {truths} {below}, {type} {least}, {type} {whole}")
        self.stack.append((whole, type))

    def _all_true(self) -> str:
        return "<" + ", ".join(["i1 true"] * self.lanes) + ">"
