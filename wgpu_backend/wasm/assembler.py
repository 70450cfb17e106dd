"""Assembles expressions, functions and modules of WebAssembly to bytes."""

import struct

from emberlet.sizes.size import is_open, typical

from .addresses import SIZES
from .opcodes import OPCODES, TYPES, WIDER, signed, unsigned


class E:
    """An expression: code that leaves one value of `type` on the stack. It is repeated at every use; `Function.let`
    keeps the value in a local instead. code: a list of bytes, ("call", name) and ("size", its place among the open
    sizes)."""

    __slots__ = ("code", "type")

    def __init__(self, type, code):
        self.type = type
        self.code = code

    def _with(self, name, other):
        prefix = "f32x4" if self.type == "v128" else self.type
        if not isinstance(other, E):
            other = number(other, prefix)
        return op(prefix + "." + name, self, other)

    def __add__(self, other):
        return self._with("add", other)

    def __sub__(self, other):
        return self._with("sub", other)

    def __mul__(self, other):
        return self._with("mul", other)

    def __truediv__(self, other):
        return self._with("div", other)


def op(name, *args, imm=b""):
    """The expression of an instruction over expressions; imm: bytes of its immediates."""
    code, type, _ = OPCODES.get(name) or WIDER[name]
    out = []
    for a in args:
        out += a.code
    out.append(code + imm)
    return E(type, out)


def lane(name, number, *args):
    """An instruction with a lane index."""
    return op(name, *args, imm=bytes((number,)))


def memory(name, address, *args, offset=0, lane=None):
    """A load or store at `address` + offset."""
    imm = unsigned((OPCODES.get(name) or WIDER[name])[2]) + unsigned(offset)
    if lane is not None:
        imm += bytes((lane,))
    return op(name, address, *args, imm=imm)


def call(name, type, *args):
    """A call of another function of the module."""
    out = []
    for a in args:
        out += a.code
    out.append(("call", name))
    return E(type, out)


def unsigned_min(a, b):
    """The smaller of two unsigned numbers of i32, both of which are repeated."""
    return select(op("i32.lt_u", a, b), a, b)


def i32(n):
    """A number, or an open size, which the function reads once when it starts."""
    if is_open(n):
        return E("i32", [("size", n.scope.place(n.number))])
    n &= 0xFFFFFFFF
    return E("i32", [b"\x41" + signed(n - (1 << 32) if n >> 31 else n)])


def i64(n):
    n &= (1 << 64) - 1
    return E("i64", [b"\x42" + signed(n - (1 << 64) if n >> 63 else n)])


def f32_bytes(x):
    """A Python float as the bytes of a float32, rounded to infinity beyond its range."""
    if x >= 3.4028235677973366e38:  # halfway to the next power of two, which is out of range
        x = float("inf")
    elif x <= -3.4028235677973366e38:
        x = -float("inf")
    return struct.pack("<f", x)


def f32(x):
    return E("f32", [b"\x43" + f32_bytes(x)])


def f64(x):
    return E("f64", [b"\x44" + struct.pack("<d", x)])


def f32x4(x):
    """A vector with x in all four lanes."""
    return E("v128", [b"\xfd\x0c" + f32_bytes(x) * 4])


def i32x4(*n):
    """A vector with n in all four lanes, or of four integers."""
    words = n * 4 if len(n) == 1 else n
    return E("v128", [b"\xfd\x0c" + struct.pack("<4I", *[w & 0xFFFFFFFF for w in words])])


def number(x, type):
    """A Python number as a constant of an instruction set's type: "i32", "i64", "f32", "f64", "f32x4", "i32x4"."""
    return {"i32": i32, "i64": i64, "f32": f32, "f64": f64, "f32x4": f32x4, "i32x4": i32x4}[type](x)


def select(condition, a, b):
    """a if condition is not 0, else b. Both are evaluated and have one type."""
    return E(a.type, a.code + b.code + condition.code + [b"\x1b"])


def bits(mask, a, b):
    """A vector with the bits of a where the mask is set, and of b elsewhere."""
    return op("v128.bitselect", a, b, mask)


def alternating(parts):
    """The code of several parts, a step of each in turn, where each is a sequence of steps that set a local; else one
    behind the other."""
    split = []
    for part in parts:
        steps = [[]]
        for chunk in part:
            if chunk[0] in (0x02, 0x03, 0x04):  # a block, a loop, a branch
                return [c for whole in parts for c in whole]
            steps[-1].append(chunk)
            if chunk[0] == 0x21:  # local.set
                steps.append([])
        split.append(steps)
    out = []
    for n in range(max([len(steps) for steps in split])):
        for steps in split:
            out += steps[n] if n < len(steps) else []
    return out


MOST_LOCALS = 49000  # locals of a function: V8 and wasmtime accept 50,000, including parameters


class TooManyLocals(Exception):
    """A function has more locals than WebAssembly engines accept."""


class Function:
    """A function under construction. params, results: lists of types; scratch: bytes of scratch memory that it needs;
    steps: of the loop that threads share, 1 without one; work: about how many elements it reads (kernels/split.py).
    scratch and steps may be open sizes. lanes: numbers in a vector, 4 but for functions that ../llvm renders, on
    processors with wider ones. streams: the number of the parameter with the address of a matrix, where reading that
    once takes most of the time; else None. repeats: whether each part of the shared loop does some of the same work.

    Code goes to the innermost buffer of `buffers`. Functions are equal if their code is.
    """

    def __init__(self, name, params, results=()):
        self.name = name
        self.params = list(params)
        self.results = list(results)
        self.locals = []
        self.buffers = [[]]
        self.scratch = 0
        self.steps = 1
        self.work = 0
        self.lanes = 4
        self.streams = None
        self.repeats = False
        self._key = None

    # -- writing --------------------------------------------------------------------------------------------------

    @property
    def code(self):
        return self.buffers[-1]

    def param(self, n):
        return E(self.params[n], [b"\x20" + unsigned(n)])

    def local(self, type):
        """The index of a new local. Raises TooManyLocals."""
        if len(self.locals) >= MOST_LOCALS:
            raise TooManyLocals(self.name)
        self.locals.append(type)
        return len(self.params) + len(self.locals) - 1

    def get(self, n):
        """The expression of a local."""
        many = len(self.params)
        return E(self.params[n] if n < many else self.locals[n - many], [b"\x20" + unsigned(n)])

    def set(self, n, e):
        self.code.extend(e.code)
        self.code.append(b"\x21" + unsigned(n))

    def let(self, e):
        """The value of e, kept in a new local."""
        n = self.local(e.type)
        self.set(n, e)
        return self.get(n)

    def do(self, e):
        """Append an instruction that leaves nothing on the stack."""
        self.code.extend(e.code)

    def give(self, e):
        """Append the function's result."""
        self.code.extend(e.code)

    def push(self):
        """Direct code to a new buffer from here on."""
        self.buffers.append([])

    def pop(self):
        return self.buffers.pop()

    def begin_if(self, condition, type=None):
        self.code.extend(condition.code)
        self.code.append(b"\x04" + (b"\x40" if type is None else bytes((TYPES[type],))))

    def otherwise(self):
        self.code.append(b"\x05")

    def begin_loop(self):
        self.code.append(b"\x03\x40")

    def begin_block(self):
        self.code.append(b"\x02\x40")

    def end(self):
        self.code.append(b"\x0b")

    def branch(self, depth):
        self.code.append(b"\x0c" + unsigned(depth))

    def branch_if(self, condition, depth):
        self.code.extend(condition.code)
        self.code.append(b"\x0d" + unsigned(depth))

    def exit(self, e=None):
        """Return, with a result."""
        if e is not None:
            self.code.extend(e.code)
        self.code.append(b"\x0f")

    # -- written --------------------------------------------------------------------------------------------------

    def finish(self):
        """Read the open sizes and join neighboring bytes; nothing may be added afterwards."""
        out = []
        part = []
        known = {}  # place of an open size -> the code that gets it
        for chunk in self.buffers[0]:
            if isinstance(chunk, bytes):
                part.append(chunk)
            elif chunk[0] == "size":
                if chunk[1] not in known:
                    known[chunk[1]] = self.get(self.local("i32")).code[0]
                part.append(known[chunk[1]])
            else:
                out.append(b"".join(part))
                out.append(chunk)
                part = []
        out.append(b"".join(part))
        first = []
        for place in known:
            first += memory("i32.load", i32(SIZES + 4 * place)).code + [b"\x21" + known[place][1:]]
        out[0] = b"".join(first) + out[0]
        self.buffers = [out]
        self.work = typical(self.work)
        i32(self.steps)  # so that an open size has its place before the sizes of the plan are counted
        kind = (tuple(self.params), tuple(self.results), tuple(self.locals))
        # Open sizes by their names: to compare them might note a guard.
        self._key = kind + (tuple(out), str(self.scratch), str(self.steps), self.work, self.lanes)
        return self

    def called(self):
        """The names of the functions that are called."""
        return [chunk[1] for chunk in self.buffers[0] if isinstance(chunk, tuple)]

    def body(self, numbers):
        """The bytes of the function in a code section, given the indices of the functions it calls."""
        groups = []
        for type in self.locals:
            if groups and groups[-1][0] == type:
                groups[-1][1] += 1
            else:
                groups.append([type, 1])
        out = [unsigned(len(groups))]
        for type, count in groups:
            out.append(unsigned(count) + bytes((TYPES[type],)))
        for chunk in self.buffers[0]:
            out.append(chunk if isinstance(chunk, bytes) else b"\x10" + unsigned(numbers[chunk[1]]))
        out.append(b"\x0b")
        whole = b"".join(out)
        return unsigned(len(whole)) + whole

    def __eq__(self, other):
        return isinstance(other, Function) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __len__(self):
        return sum([len(c) for c in self.buffers[0]])


def _vector(parts):
    return unsigned(len(parts)) + b"".join(parts)


def _section(number, content):
    return bytes((number,)) + unsigned(len(content)) + content


def _name(text):
    data = text.encode()
    return unsigned(len(data)) + data


def code_section(functions):
    """The code section of a module of these (name, Function)."""
    numbers = {}
    for i, (name, _) in enumerate(functions):
        numbers[name] = i
    return _section(10, _vector([function.body(numbers) for _, function in functions]))


def shared_import(pages):
    """The content of an import section with one shared memory."""
    return b"\x01" + _name("emberlet") + _name("memory") + b"\x02\x03" + unsigned(pages) + unsigned(pages)


def module(functions, exports, pages, custom=(), data=(), shared=False):
    """The bytes of a module with one memory of `pages` pages (64 KiB each), exported as "memory".

    functions: list of (name, Function); exports: names of exported functions; custom: (name, bytes) of custom sections;
    data: (address, bytes) of the memory's initial content; shared: whether the memory is shared and imported as
    "memory" of "emberlet".
    """
    types = []
    numbers = {}
    of = []
    for i, (name, function) in enumerate(functions):
        numbers[name] = i
        signature = b"\x60" + _vector([bytes((TYPES[t],)) for t in function.params])
        signature += _vector([bytes((TYPES[t],)) for t in function.results])
        if signature not in types:
            types.append(signature)
        of.append(unsigned(types.index(signature)))
    out = [b"\0asm\1\0\0\0"]
    for name, content in custom:
        out.append(_section(0, _name(name) + content))
    out.append(_section(1, _vector(types)))
    if shared:
        out.append(_section(2, shared_import(pages)))
    out.append(_section(3, _vector(of)))
    if not shared:
        out.append(_section(5, b"\x01\x00" + unsigned(pages)))
    named = [_name(name) + b"\x00" + unsigned(numbers[name]) for name in exports]
    out.append(_section(7, _vector([_name("memory") + b"\x02\x00"] + named)))
    if data:
        out.append(_section(12, unsigned(len(data))))
    out.append(code_section(functions))
    if data:
        parts = []
        for at, content in data:
            parts.append(b"\x00" + i32(at).code[0] + b"\x0b" + unsigned(len(content)))
        size = len(unsigned(len(parts))) + sum([len(p) + len(d[1]) for p, d in zip(parts, data)])
        out.append(b"\x0b" + unsigned(size) + unsigned(len(parts)))
        for head, (_, content) in zip(parts, data):
            out += [head, content]
    return b"".join(out)
