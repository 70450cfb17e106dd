"""Renders the functions of the kernels (../wasm/assembler.py) as LLVM IR.

Their code is structured, typed and sequential, and it was written for a machine with a stack; here each value gets a
name. A local that is set once, before all its uses and in a scope that they are in, is the name of its value; every
other one has a place on the processor's stack, which LLVM turns into registers. A vector, "v128" there, has `lanes`
numbers of 32 bits instead of four: as many as the function was written for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from emberlet.sizes.size import is_open

from ..wasm import library
from ..wasm.addresses import SIZES
from ..wasm.assembler import Function
from ..wasm.opcodes import OPCODES, WIDER

_Instruction = tuple[Any, ...]
_NAMES = {code: (name, type, align) for name, (code, type, align) in {**OPCODES, **WIDER}.items()}
_SCALARS = {"i32": "i32", "i64": "i64", "f32": "float", "f64": "double"}

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

# Large functions of one number are not inlined; all may use vectors of 512 bits, which LLVM avoids unless it is asked.
_WIDTH = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
_ATTRIBUTES = (
    f"attributes #0 = {{ alwaysinline nounwind {_WIDTH} }}",
    f"attributes #1 = {{ noinline nounwind {_WIDTH} }}",
)


def kernel(function: Function, dots: int = 0) -> str:
    """The text of a module for a processor with such `dots` (processor.py), whose function "kernel" takes the memory, a
    table of the function's addresses with the bytes from a thread's scratch memory to the next one's, and which part of
    how many of the shared loop to run by which thread."""
    rendered: dict[str, str] = {}
    declared: set[str] = set()
    _add(function, "body", function.lanes, dots, rendered, declared)
    lines = ["define void @kernel(ptr %memory, ptr %arguments, i32 %part, i32 %parts, i32 %thread) #1 {"]
    given = ["ptr %memory"]
    count = len(function.params) - 1  # of words in the table
    for n in range(count):
        lines.append(f"  %q{n} = getelementptr i32, ptr %arguments, i64 {n}")
        lines.append(f"  %p{n} = load i32, ptr %q{n}")
        given.append(f"i32 %p{n}")
    given[-2:] = ["i32 %scratch"]
    lines.append(f"  %apart = mul i32 %thread, %p{count - 1}")
    lines.append(f"  %scratch = add i32 %p{count - 2}, %apart")
    steps = str(function.steps)
    place = place_of_steps(function)
    if place is not None:
        lines.append(f"  %size = getelementptr i8, ptr %memory, i64 {SIZES + 4 * place}")
        lines.append("  %steps = load i32, ptr %size")
        steps = "%steps"
    lines += [f"  %many = zext i32 {steps} to i64", "  %of = zext i32 %parts to i64", "  %after = add i32 %part, 1"]
    lines.append("  %up = sub i64 %of, 1")  # a longer part is taken before a shorter one
    for at, name in (("part", "first"), ("after", "last")):
        lines += [f"  %{name}.wide = zext i32 %{at} to i64", f"  %{name}.all = mul i64 %{name}.wide, %many"]
        lines += [f"  %{name}.up = add i64 %{name}.all, %up", f"  %{name}.place = udiv i64 %{name}.up, %of"]
        lines.append(f"  %{name} = trunc i64 %{name}.place to i32")
        given.append(f"i32 %{name}")
    lines += [f"  call void @body({', '.join(given)})", "  ret void", "}"]
    return "\n".join([*rendered.values(), "\n".join(lines), *sorted(declared), *_ATTRIBUTES])


def place_of_steps(function: Function) -> int | None:
    """The position among the open sizes of how many steps the function's shared loop has, None if that is a number."""
    steps: Any = function.steps
    return steps.scope.place(steps.number) if is_open(steps) else None


def _add(function: Function, name: str, lanes: int, dots: int, rendered: dict[str, str], declared: set[str]) -> None:
    """Render a function and those that it calls."""
    rendered[name] = ""  # its place; functions do not call themselves
    for called in function.called():
        if called not in rendered:
            _add(library.function(called), called, lanes, dots, rendered, declared)
    writer = _Writer(function, lanes, dots, declared)
    if name in library.VECTOR:
        writer.joined = " contract"  # a polynomial's steps are one instruction each, with one rounding
    rendered[name] = writer.text(name, with_memory=name == "body")


class _Writer:
    """Writes one function. stack: (name, LLVM type) of the values; blocks: of the open blocks (label that a branch goes
    to, label after it, label of the "else" that may still come or None)."""

    def __init__(self, function: Function, lanes: int, dots: int, declared: set[str]) -> None:
        self.function = function
        self.lanes = lanes
        self.dots = dots
        self.declared = declared
        self.lines: list[str] = []
        self.named: dict[int, tuple[str, str]] = {}  # local -> its value, where it needs no place
        self.stack: list[tuple[str, str]] = []
        self.loaded: dict[int, tuple[str, str]] = {}  # in this basic block: local -> its value
        self.pointers: dict[tuple[str, int], str] = {}  # (address, offset) -> pointer, and with -1 its 64 bits
        self.blocks: list[tuple[str, str, str | None]] = []
        self.count = 0
        self.joined = ""
        self.whole = f"<{lanes} x i32>"
        self.floats = f"<{lanes} x float>"

    def type(self, name: str) -> str:
        return _SCALARS.get(name) or self.whole

    def text(self, name: str, with_memory: bool) -> str:
        f = self.function
        result = self.type(f.results[0]) if f.results else "void"
        self.result = result
        code = [self._decoded(chunk) if isinstance(chunk, bytes) else [chunk] for chunk in f.buffers[0]]
        self.placed = _placed(code, len(f.params))
        begin = []
        for n, type in enumerate([*f.params, *f.locals]):
            if n in self.placed:
                first = f"%p{n}" if n < len(f.params) else "zeroinitializer"
                begin.append(f"  %l{n} = alloca {self.type(type)}, align 64")
                begin.append(f"  store {self.type(type)} {first}, ptr %l{n}")
            elif n < len(f.params):
                self.named[n] = (f"%p{n}", self.type(type))
        for chunk in code:
            for instruction in chunk:
                self._write(*instruction)
        self._return()
        params = [f"{self.type(type)} %p{n}" for n, type in enumerate(f.params)]
        if with_memory:
            params.insert(0, "ptr %memory")
        kind = 0 if with_memory or name in library.VECTOR else 1
        head = f"define internal {result} @{name}({', '.join(params)}) #{kind} {{"
        return "\n".join([head, *begin, *self.lines, "}"])

    # -- values ---------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def let(self, text: str) -> str:
        """The name of a new value."""
        self.count += 1
        self.line(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def push(self, type: str, text: str) -> None:
        self.stack.append((self.let(text), type))

    def pop(self, type: str) -> str:
        """The value on top of the stack, as a type of the same size."""
        name, known = self.stack.pop()
        return name if known == type else self.let(f"bitcast {known} {name} to {type}")

    def pops(self, type: str, count: int) -> list[str]:
        return [self.pop(type) for _ in range(count)][::-1]

    def intrinsic(self, name: str, type: str, result: str, *arguments: tuple[str, str]) -> None:
        """Push the result of LLVM's function of that name for a type."""
        suffix = _suffix(type)
        if name.startswith("fpto"):
            suffix = _suffix(result) + "." + suffix
        whole = f"@llvm.{name}.{suffix}"
        self.declared.add(f"declare {result} {whole}({', '.join([t for t, _ in arguments])})")
        self.push(result, f"call {result} {whole}({', '.join([t + ' ' + a for t, a in arguments])})")

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def place(self, label: str) -> None:
        self.lines.append(label + ":")
        self.loaded, self.pointers = {}, {}

    # -- code -----------------------------------------------------------------------------------------------------

    def _decoded(self, code: bytes) -> list[_Instruction]:
        """The instructions of some code: (its first byte, what follows), or (name, what follows) of the many that have
        a name here."""
        out: list[_Instruction] = []
        at = 0
        while at < len(code):
            byte = code[at]
            at += 1
            if byte in (0x20, 0x21, 0x22, 0x0C, 0x0D):
                number, at = _unsigned(code, at)
                out.append((byte, number))
            elif byte in (0x02, 0x03, 0x04):
                out.append((byte, code[at]))
                at += 1
            elif byte in (0x05, 0x0B, 0x0F, 0x1B):
                out.append((byte,))
            elif byte in (0x41, 0x42):
                number, at = _signed(code, at)
                out.append((byte, number))
            elif byte in (0x43, 0x44):
                size = 4 if byte == 0x43 else 8
                out.append((byte, code[at : at + size]))
                at += size
            else:
                found, at = self._named(code, at - 1)
                out.append(found)
        return out

    def _named(self, code: bytes, at: int) -> tuple[_Instruction, int]:
        """The instruction of a name, or a constant vector, that begins there, and where the next one does."""
        start = at
        at += 1
        if code[start] in (0xFC, 0xFD):
            _, at = _unsigned(code, at)
        key = code[start:at]
        if key == b"\xfd\x0c":
            return (code[start], struct.unpack("<4I", code[at : at + 16])), at + 16
        name, _, align = _NAMES[bytes(key)]
        lane = name.endswith("_lane")
        if align is not None:
            _, at = _unsigned(code, at)
            offset, at = _unsigned(code, at)
            return (name, offset, code[at] if lane else 0), at + lane
        if name == "i8x16.shuffle":
            return (name, code[at : at + 4 * self.lanes]), at + 4 * self.lanes
        return ((name, code[at]), at + 1) if lane else ((name,), at)

    def _write(self, what: int | str, *given: Any) -> None:
        if isinstance(what, str):
            self._write_named(what, *given)
        elif what in (0x20, 0x21, 0x22):
            self._local(what, given[0])
        elif what in (0x0C, 0x0D):
            self._branch(what, given[0])
        elif what in (0x02, 0x03, 0x04):
            self._open(what, given[0])
        elif what == 0x05:
            self._otherwise()
        elif what == 0x0B:
            self._end()
        elif what == 0x0F:
            self._return()
            self.place(self.label())
        elif what == 0x1B:
            self._select()
        elif what in (0x41, 0x42):
            self.stack.append((str(given[0]), "i32" if what == 0x41 else "i64"))
        elif what in (0x43, 0x44):
            self.stack.append((_float(given[0]), "float" if what == 0x43 else "double"))
        else:
            self._constant(given[0])

    def _write_named(self, what: str, *given: Any) -> None:
        if what == "call":
            self._call(given[0])
        elif len(given) == 2:
            self._memory(what, *given)
        elif not given:
            self._operation(what)
        elif what == "i8x16.shuffle":
            self._shuffle(given[0])
        else:
            self._lane(what, given[0])

    def _constant(self, words: tuple[int, ...]) -> None:
        if self.lanes != 4:
            if len(set(words)) > 1:
                raise NotImplementedError("a constant of different numbers in a longer vector")
            words = words[:1] * self.lanes
        self.stack.append(("<" + ", ".join([f"i32 {w}" for w in words]) + ">", self.whole))

    def _branch(self, what: int, number: int) -> None:
        target = self.blocks[-1 - number][0]
        after = self.label()
        if what == 0x0C:
            self.line(f"br label %{target}")
        else:
            self.line(f"br i1 {self._truth()}, label %{target}, label %{after}")
        self.place(after)

    def _local(self, what: int, number: int) -> None:
        if number not in self.placed:
            if what == 0x20:
                self.stack.append(self.named[number])
            else:
                self.named[number] = self.stack[-1] if what == 0x22 else self.stack.pop()
            return
        params = self.function.params
        type = self.type(params[number] if number < len(params) else self.function.locals[number - len(params)])
        if what == 0x20:
            if number not in self.loaded:
                self.loaded[number] = (self.let(f"load {type}, ptr %l{number}"), type)
            self.stack.append(self.loaded[number])
            return
        self.loaded[number] = self.stack[-1]
        value = self.pop(type)
        self.line(f"store {type} {value}, ptr %l{number}")
        if what == 0x22:
            self.stack.append(self.loaded[number])

    def _truth(self) -> str:
        return self.let(f"icmp ne i32 {self.pop('i32')}, 0")

    def _open(self, byte: int, kind: int) -> None:
        condition = self._truth() if byte == 0x04 else ""
        if kind != 0x40:
            raise NotImplementedError("a block with a result")
        after = self.label()
        if byte == 0x02:
            self.blocks.append((after, after, None))
        elif byte == 0x03:
            begin = self.label()
            self.line(f"br label %{begin}")
            self.place(begin)
            self.blocks.append((begin, after, None))
        else:
            begin, other = self.label(), self.label()
            self.line(f"br i1 {condition}, label %{begin}, label %{other}")
            self.place(begin)
            self.blocks.append((after, after, other))

    def _otherwise(self) -> None:
        target, after, other = self.blocks.pop()
        self.line(f"br label %{after}")
        self.place(str(other))
        self.blocks.append((target, after, None))

    def _end(self) -> None:
        _, after, other = self.blocks.pop()
        self.line(f"br label %{after}")
        if other is not None:
            self.place(other)
            self.line(f"br label %{after}")
        self.place(after)

    def _return(self) -> None:
        if self.result == "void":
            self.line("ret void")
        elif self.stack:
            self.line(f"ret {self.result} {self.pop(self.result)}")
        else:
            self.line("unreachable")

    def _select(self) -> None:
        condition = self._truth()
        name, type = self.stack.pop()
        first = self.pop(type)
        self.push(type, f"select i1 {condition}, {type} {first}, {type} {name}")

    def _call(self, name: str) -> None:
        f = library.function(name)
        values = []
        for type in reversed(f.params):
            values.append(f"{self.type(type)} {self.pop(self.type(type))}")
        self.push(self.type(f.results[0]), f"call {self.type(f.results[0])} @{name}({', '.join(reversed(values))})")

    # -- memory ---------------------------------------------------------------------------------------------------

    def _address(self, offset: int) -> str:
        at = self.pop("i32")
        found = self.pointers.get((at, offset))
        if found is None:
            wide = self.pointers.get((at, -1))
            if wide is None:
                wide = self.pointers[at, -1] = self.let(f"zext i32 {at} to i64")
            if offset:
                wide = self.let(f"add nuw nsw i64 {wide}, {offset}")
            found = self.pointers[at, offset] = self.let(f"getelementptr i8, ptr %memory, i64 {wide}")
        return found

    def _memory(self, name: str, offset: int, lane: int) -> None:
        kind, _, how = name.partition(".")
        if how.startswith("store"):
            self._store(kind, how, offset, lane)
            return
        known = self.pop(self.whole) if how in ("load32_lane", "load_masked") else ""
        at = self._address(offset)
        if how == "prefetch":
            self.declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
            self.line(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")
        elif how == "load":
            self.push(self.type(kind), f"load {self.type(kind)}, ptr {at}, align 1")
        elif how == "load32_splat":
            self._splat(self.let(f"load i32, ptr {at}, align 1"), self.whole)
        elif how == "load32_zero":
            value = self.let(f"load i32, ptr {at}, align 1")
            self.push(self.whole, f"insertelement {self.whole} zeroinitializer, i32 {value}, i32 0")
        elif how == "load32_lane":
            value = self.let(f"load i32, ptr {at}, align 1")
            self.push(self.whole, f"insertelement {self.whole} {known}, i32 {value}, i32 {lane}")
        elif how == "load_masked":
            truths, mask = self._chosen_lanes(known)
            name = f"@llvm.masked.load.{_suffix(self.whole)}.p0"
            self.declared.add(f"declare {self.whole} {name}(ptr, i32, {truths}, {self.whole})")
            given = f"ptr {at}, i32 4, {truths} {mask}, {self.whole} zeroinitializer"
            self.push(self.whole, f"call {self.whole} {name}({given})")
        elif how in ("load_i8", "load_u8"):
            value = self.let(f"load <{self.lanes} x i8>, ptr {at}, align 1")
            self.push(self.whole, f"{'sext' if how[5] == 'i' else 'zext'} <{self.lanes} x i8> {value} to {self.whole}")
        elif how in ("load8x8_s", "load8x8_u"):
            narrow, wide = f"<{2 * self.lanes} x i8>", f"<{2 * self.lanes} x i16>"
            value = self.let(f"load {narrow}, ptr {at}, align 1")
            self.push(wide, f"{'sext' if how[-1] == 's' else 'zext'} {narrow} {value} to {wide}")
        else:  # load8_s, load8_u, load16_s, load16_u
            bits = "i" + how[4 : how.index("_")]
            value = self.let(f"load {bits}, ptr {at}, align 1")
            self.push("i32", f"{'sext' if how[-1] == 's' else 'zext'} {bits} {value} to i32")

    def _chosen_lanes(self, mask: str) -> tuple[str, str]:
        """The type and the name of a mask's bits."""
        return f"<{self.lanes} x i1>", self.let(f"icmp slt {self.whole} {mask}, zeroinitializer")

    def _store_masked(self, offset: int) -> None:
        truths, mask = self._chosen_lanes(self.pop(self.whole))
        value = self.pop(self.whole)
        name = f"@llvm.masked.store.{_suffix(self.whole)}.p0"
        self.declared.add(f"declare void {name}({self.whole}, ptr, i32, {truths})")
        at = self._address(offset)
        self.line(f"call void {name}({self.whole} {value}, ptr {at}, i32 4, {truths} {mask})")

    def _store(self, kind: str, how: str, offset: int, lane: int) -> None:
        if how == "store_masked":
            self._store_masked(offset)
            return
        name, type = self.stack.pop()
        if how == "store32_lane":
            self.stack.append((name, type))
            value = self.let(f"extractelement {self.whole} {self.pop(self.whole)}, i32 {lane}")
            type = "i32"
        elif how == "store":
            value = name
        elif how == "store_8":
            self.stack.append((name, type))
            type = f"<{self.lanes} x i8>"
            value = self.let(f"trunc {self.whole} {self.pop(self.whole)} to {type}")
        else:
            type = "i" + how[5:]
            value = self.let(f"trunc i32 {name} to {type}")
        self.line(f"store {type} {value}, ptr {self._address(offset)}, align 1")

    # -- vectors --------------------------------------------------------------------------------------------------

    def _splat(self, value: str, type: str) -> None:
        element = type[type.index("x ") + 2 : -1]
        one = self.let(f"insertelement {type} poison, {element} {value}, i32 0")
        count = type[1 : type.index(" x")]
        self.push(type, f"shufflevector {type} {one}, {type} poison, <{count} x i32> zeroinitializer")

    def _shuffle(self, picks: Iterable[int]) -> None:
        type = f"<{4 * self.lanes} x i8>"
        a, b = self.pops(type, 2)
        mask = ", ".join([f"i32 {n}" for n in picks])
        self.push(type, f"shufflevector {type} {a}, {type} {b}, <{4 * self.lanes} x i32> <{mask}>")

    def _lane(self, name: str, lane: int) -> None:
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

    def _operation(self, name: str) -> None:
        kind, _, how = name.partition(".")
        if kind == "v128":
            self._bits(how)
        elif how == "splat":
            element = {"i32x4": "i32", "f32x4": "float", "i16x8": "i32", "i8x16": "i32"}[kind]
            value = self.pop(element)
            type = self._vector_type(kind)
            if kind in ("i16x8", "i8x16"):
                value = self.let(f"trunc i32 {value} to i{'16' if kind == 'i16x8' else '8'}")
            self._splat(value, type)
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
            self._arithmetic(kind[0] == "f", _SCALARS[kind], how)

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
            self._splat(self.pop("i32"), type)
            numbers = ", ".join([f"i32 {n}" for n in range(self.lanes)])
            self.push(type, f"mul {type} {self.pop(type)}, <{numbers}>")
        elif how == "dot_bytes":
            narrow = f"<{4 * self.lanes} x i8>"
            a, b = self.pops(narrow, 2)
            called = f"{type} @llvm.x86.avx512.vpdpbusd.{32 * self.lanes}"
            self.declared.add(f"declare {called}({type}, {narrow}, {narrow})")
            self.push(type, f"call {called}({type} {self.pop(type)}, {narrow} {a}, {narrow} {b})")
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
            self._splat(count, type)
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
            source = _SCALARS[kind]
            self.push(type, f"{name} {source} {self.pop(source)} to {type}")
        elif how.startswith("convert_i32x4"):
            name = "sitofp" if how[-1] == "s" else "uitofp"
            self.push(type, f"{name} {self.whole} {self.pop(self.whole)} to {type}")
        elif how.startswith("trunc_sat"):
            source = self.floats if "x4" in how else _SCALARS[how.split("_")[2]]
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
            self._splat(_float(struct.pack("<f", bound)), floats)
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


def _placed(code: list[list[_Instruction]], params: int) -> set[int]:
    """The locals that are set more than once, or read where they may not have been set. A parameter is set at once."""
    found: set[int] = set()
    scopes = [0]  # the open ones, the function's first
    opened = 0
    begun: dict[int, int] = dict.fromkeys(range(params), 0)  # local -> the scope in which it is set
    for chunk in code:
        for what, *given in chunk:
            if what in (0x21, 0x22):
                if given[0] in begun:
                    found.add(given[0])
                begun[given[0]] = scopes[-1]
            elif what == 0x20:
                if begun.get(given[0]) not in scopes:
                    found.add(given[0])
            elif what in (0x02, 0x03, 0x04):
                opened += 1
                scopes.append(opened)
            elif what == 0x05:
                opened += 1
                scopes[-1] = opened
            elif what == 0x0B:
                scopes.pop()
    return found


def _short(type: str) -> str:
    return {"float": "f32", "double": "f64"}.get(type, type)


def _suffix(type: str) -> str:
    if type[0] != "<":
        return _short(type)
    count, _, element = type[1:-1].partition(" x ")
    return f"v{count}{_short(element)}"


def _float(data: bytes) -> str:
    """The text of a float32 or float64: LLVM writes both as the bits of a float64."""
    value = struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
    if value != value:
        return "0x7FF8000000000000"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _unsigned(code: bytes, at: int) -> tuple[int, int]:
    """(value, offset behind it) of an unsigned LEB128 number."""
    out = shift = 0
    while True:
        byte = code[at]
        at += 1
        out |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return out, at


def _signed(code: bytes, at: int) -> tuple[int, int]:
    """The same of a signed one."""
    begin = at
    out, at = _unsigned(code, at)
    return (out - (1 << 7 * (at - begin)) if code[at - 1] & 0x40 else out), at
