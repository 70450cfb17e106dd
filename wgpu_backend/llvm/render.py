"""Renders the functions of the kernels (../wasm/assembler.py) as LLVM IR.

Their code is structured, typed and sequential, and it was written for a machine with a stack; here each value gets a
name. A local that is set once, before all its uses and in a scope that they are in, is the name of its value; every
other one has a place on the processor's stack, which LLVM turns into registers. A vector, "v128" there, has `lanes`
numbers of 32 bits instead of four: as many as the function was written for.
"""

from __future__ import annotations

from typing import Any

from emberlet.sizes.size import is_open

from ..wasm import library
from ..wasm.addresses import SIZES
from ..wasm.assembler import Function
from .instructions import decoded, placed
from .operations import Operations
from .values import float_text, suffix

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


class _Writer(Operations):
    """Writes one function. blocks: of the open blocks (label that a branch goes to, label after it, label of the "else"
    that may still come or None)."""

    def __init__(self, function: Function, lanes: int, dots: int, declared: set[str]) -> None:
        super().__init__(lanes, dots, declared)
        self.function = function
        self.named: dict[int, tuple[str, str]] = {}  # local -> its value, where it needs no place
        self.loaded: dict[int, tuple[str, str]] = {}  # in this basic block: local -> its value
        self.pointers: dict[tuple[str, int], str] = {}  # (address, offset) -> pointer, and with -1 its 64 bits
        self.blocks: list[tuple[str, str, str | None]] = []

    def text(self, name: str, with_memory: bool) -> str:
        f = self.function
        result = self.type(f.results[0]) if f.results else "void"
        self.result = result
        code = [decoded(chunk, self.lanes) if isinstance(chunk, bytes) else [chunk] for chunk in f.buffers[0]]
        self.placed = placed(code, len(f.params))
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

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def place(self, label: str) -> None:
        self.lines.append(label + ":")
        self.loaded, self.pointers = {}, {}

    # -- code -----------------------------------------------------------------------------------------------------

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
            self.stack.append((float_text(given[0]), "float" if what == 0x43 else "double"))
        else:
            self._constant(given[0])

    def _write_named(self, what: str, *given: Any) -> None:
        if what == "call":
            self._call(given[0])
        elif len(given) == 2:
            self._memory(what, *given)
        elif not given:
            self.operation(what)
        elif what == "i8x16.shuffle":
            self.shuffle(given[0])
        else:
            self.lane(what, given[0])

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
            self.splat(self.let(f"load i32, ptr {at}, align 1"), self.whole)
        elif how == "load32_zero":
            value = self.let(f"load i32, ptr {at}, align 1")
            self.push(self.whole, f"insertelement {self.whole} zeroinitializer, i32 {value}, i32 0")
        elif how == "load32_lane":
            value = self.let(f"load i32, ptr {at}, align 1")
            self.push(self.whole, f"insertelement {self.whole} {known}, i32 {value}, i32 {lane}")
        elif how == "load_masked":
            truths, mask = self._chosen_lanes(known)
            name = f"@llvm.masked.load.{suffix(self.whole)}.p0"
            self.declared.add(f"declare {self.whole} {name}(ptr, i32, {truths}, {self.whole})")
            given = f"ptr {at}, i32 4, {truths} {mask}, {self.whole} zeroinitializer"
            self.push(self.whole, f"call {self.whole} {name}({given})")
        elif how in ("load_i8", "load_u8"):
            value = self.let(f"load <{self.lanes} x i8>, ptr {at}, align 1")
            self.push(self.whole, f"{'sext' if how[5] == 'i' else 'zext'} <{self.lanes} x i8> {value} to {self.whole}")
        elif how == "load16x4_u":
            value = self.let(f"load <{self.lanes} x i16>, ptr {at}, align 1")
            self.push(self.whole, f"zext <{self.lanes} x i16> {value} to {self.whole}")
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
        name = f"@llvm.masked.store.{suffix(self.whole)}.p0"
        self.declared.add(f"declare void {name}({self.whole}, ptr, i32, {truths})")
        at = self._address(offset)
        self.line(f"call void {name}({self.whole} {value}, ptr {at}, i32 4, {truths} {mask})")

    def _store_saturated(self, how: str, offset: int) -> None:
        """LLVM writes the extremes and the cut as the processor's own instructions."""
        type, count = self.whole, self.lanes
        if "two" in how:
            a, b = self.pops(type, 2)
            count *= 2
            both = f"<{count} x i32>"
            picks = ", ".join([f"i32 {n}" for n in range(count)])
            self.push(both, f"shufflevector {type} {a}, {type} {b}, {both} <{picks}>")
            type = both
        low, high = (-128, 127) if how[-2:] == "i8" else (0, 255)
        for name, bound in (("smin", high), ("smax", low)):
            bounds = "<" + ", ".join([f"i32 {bound}"] * count) + ">"
            self.intrinsic(name, type, type, (type, self.pop(type)), (type, bounds))
        value = self.let(f"trunc {type} {self.pop(type)} to <{count} x i8>")
        self.line(f"store <{count} x i8> {value}, ptr {self._address(offset)}, align 1")

    def _store(self, kind: str, how: str, offset: int, lane: int) -> None:
        if how == "store_masked":
            self._store_masked(offset)
            return
        if how[-2:] in ("i8", "u8"):
            self._store_saturated(how, offset)
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
