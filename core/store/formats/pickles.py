"""An interpreter of pickles that builds plain values and cannot run code: names of classes and functions are looked up
in a short table, and any other becomes an inert Unknown. https://docs.python.org/3/library/pickletools.html

Memory is bounded by the length of the pickle, and keys must be simple values, so that time is bounded too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ...errors import FormatError

Find = Callable[[str, str], Any]
Persistent = Callable[[Any], Any]
_SIMPLE = (str, int, float, bool, bytes, type(None))
_FREE = 8 << 20  # allowance for objects in bytes, on top of a multiple of the pickle's length
_EACH = 24


class Unknown:
    """An unknown class or function, or an object that it would have created. It is never called.

    name: "module.name"; args: the arguments it would have been called with, or None for the class itself; state: the
    object's attributes.
    """

    __slots__ = ("args", "name", "state")

    def __init__(self, name: str, args: Any = None) -> None:
        self.name = name
        self.args = args
        self.state: Any = None

    def __repr__(self) -> str:
        return f"Unknown({self.name!r})"


class Known:
    """A function in the table, and its replacement."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        self.call = call


class _Mark:
    pass


_MARK = _Mark()


def load(
    data: memoryview, find: Find, persistent: Persistent, where: str, start: int = 0
) -> tuple[Any, int]:  # fmt: skip
    """(the value of the pickle that begins at `start`, its end).

    find(module, name) returns a Known, a value, or None; persistent(id) resolves a persistent id. Raises FormatError if
    it is not a pickle, or takes more memory than its length allows.
    """
    machine = _Machine(data, find, persistent, where, start)
    try:
        return machine.run()
    except FormatError:
        raise
    except (
        ValueError, IndexError, KeyError, TypeError, struct.error, OverflowError, AttributeError, RecursionError,
    ) as error:  # fmt: skip
        said = f"{type(error).__name__} at byte {machine.at}"
        raise FormatError(f"{where}: its pickle is malformed ({said})") from None


class _Machine:
    def __init__(self, data: memoryview, find: Find, persistent: Persistent, where: str, start: int) -> None:
        self.data = data
        self.at = start
        self.find = find
        self.persistent = persistent
        self.where = where
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.left = _FREE + _EACH * (len(data) - start)

    # -- helpers

    def bad(self, text: str) -> FormatError:
        return FormatError(f"{self.where}: its pickle {text} at byte {self.at}")

    def take(self, n: int) -> memoryview:
        if n < 0 or n > len(self.data) - self.at:
            raise self.bad("is cut off")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, n: int) -> int:
        return int.from_bytes(self.take(n), "little")

    def line(self) -> str:
        """The text up to the end of the line."""
        pieces = []
        while True:
            piece = bytes(self.data[self.at : self.at + 256])
            end = piece.find(b"\n")
            if end >= 0:
                pieces.append(piece[:end])
                self.at += end + 1
                return b"".join(pieces).decode("utf-8")
            if not piece:
                raise self.bad("is cut off")
            pieces.append(piece)
            self.at += len(piece)

    def pay(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise self.bad("takes more memory than its length allows,")

    def push(self, value: Any, cost: int = 0) -> None:
        self.pay(cost + 8)
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise self.bad("takes a value from an empty stack")
        return self.stack.pop()

    def marked(self) -> list[Any]:
        """The values pushed since the last mark."""
        i = len(self.stack) - 1
        while i >= 0 and self.stack[i] is not _MARK:
            i -= 1
        if i < 0:
            raise self.bad("has no mark")
        found = self.stack[i + 1 :]
        del self.stack[i:]
        return found

    def key(self, value: Any) -> Any:
        """A value that may be a key; nested tuples may not, because hashing them can take exponential time."""
        if isinstance(value, tuple) and len(value) <= 16 and all(isinstance(v, _SIMPLE) for v in value):
            return value
        if not isinstance(value, _SIMPLE):
            raise self.bad(f"has a key of {type(value).__name__}")
        return value

    def fill(self, target: Any, pairs: list[Any]) -> None:
        if isinstance(target, Unknown):  # a dict's subclass
            target.state = target.state if isinstance(target.state, dict) else {}
            target = target.state
        if not isinstance(target, dict) or len(pairs) % 2:
            raise self.bad("sets items of something other than a dict")
        self.pay(60 * len(pairs))
        for i in range(0, len(pairs), 2):
            target[self.key(pairs[i])] = pairs[i + 1]

    def extend(self, target: Any, values: list[Any]) -> None:
        if isinstance(target, Unknown):  # a list's subclass
            target.state = values
        elif isinstance(target, list):
            self.pay(9 * len(values))
            target.extend(values)
        elif isinstance(target, set):
            self.pay(80 * len(values))
            target.update(self.key(v) for v in values)
        else:
            raise self.bad("appends to something other than a list")

    def remember(self, index: int) -> None:
        if not self.stack or self.stack[-1] is _MARK:
            raise self.bad("stores a value while its stack is empty")
        self.pay(100)
        self.memo[index] = self.stack[-1]

    def recall(self, index: int) -> None:
        if index not in self.memo:
            raise self.bad(f"recalls {index}, which it never stored,")
        self.push(self.memo[index])

    def found(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise self.bad("names a class with something other than text")
        value = self.find(module, name)
        self.push(Unknown(f"{module}.{name}") if value is None else value, 160)

    def call(self, function: Any, args: Any) -> None:
        if not isinstance(args, tuple):
            raise self.bad("calls a function with something other than a tuple")
        if isinstance(function, Known):
            try:
                made = function.call(*args)
            except TypeError:
                raise self.bad(f"calls {function.name} with arguments that do not fit") from None
            self.push(made, 400)
        else:
            name = function.name if isinstance(function, Unknown) else type(function).__name__
            self.push(Unknown(name, args), 80)

    def build(self, target: Any, state: Any) -> None:
        if isinstance(target, Unknown):
            if isinstance(target.state, dict) and isinstance(state, dict):
                self.pay(60 * len(state))
                target.state = {**state, **target.state}
            else:
                target.state = state
        # Attributes of a dict (a state dict's _metadata) or of a tensor do not affect values.

    # -- the opcodes

    def run(self) -> tuple[Any, int]:  # noqa: C901
        take, number, push, pop = self.take, self.number, self.push, self.pop
        while True:
            op = number(1)
            if op == 0x2E:  # STOP
                return pop(), self.at
            elif op == 0x80 or op == 0x95:  # PROTO, FRAME
                take(1 if op == 0x80 else 8)
            elif op == 0x28:  # MARK
                push(_MARK)
            elif op == 0x30:  # POP
                if not self.stack:
                    raise self.bad("takes a value from an empty stack")
                self.stack.pop()
            elif op == 0x31:  # POP_MARK
                self.marked()
            elif op == 0x32:  # DUP
                push(self.stack[-1])
            elif op == 0x4E:
                push(None)
            elif op == 0x88 or op == 0x89:
                push(op == 0x88)
            elif op == 0x4B:  # BININT1
                push(number(1))
            elif op == 0x4D:  # BININT2
                push(number(2), 32)
            elif op == 0x4A:  # BININT
                push(struct.unpack("<i", take(4))[0], 32)
            elif op == 0x8A or op == 0x8B:  # LONG1, LONG4
                n = number(1 if op == 0x8A else 4)
                push(int.from_bytes(take(n), "little", signed=True), 32 + n)
            elif op == 0x47:  # BINFLOAT
                push(struct.unpack(">d", take(8))[0], 24)
            elif op == 0x49:  # INT
                text = self.line()
                push({"00": False, "01": True}[text] if text in ("00", "01") else int(text), 32 + len(text))
            elif op == 0x4C:  # LONG
                text = self.line()
                push(int(text.removesuffix("L")), 32 + len(text))
            elif op == 0x46:  # FLOAT
                push(float(self.line()), 24)
            elif op in (0x58, 0x8C, 0x8D):  # BINUNICODE, SHORT_, 8
                raw = take(number({0x58: 4, 0x8C: 1, 0x8D: 8}[op]))
                push(str(raw, "utf-8", "surrogatepass"), 60 + 4 * len(raw))
            elif op == 0x56:  # UNICODE
                text = self.line()
                push(text, 60 + 4 * len(text))
            elif op == 0x53:  # STRING
                text = self.line()
                push(text[1:-1], 60 + 4 * len(text))
            elif op in (0x54, 0x55):  # BINSTRING, SHORT_
                raw = take(number(4 if op == 0x54 else 1))
                push(str(raw, "latin-1"), 60 + 2 * len(raw))
            elif op in (0x42, 0x43, 0x8E, 0x96):  # BINBYTES, SHORT_, 8, BYTEARRAY8
                raw = take(number({0x42: 4, 0x43: 1}.get(op, 8)))
                push(bytes(raw), 40 + len(raw))
            elif op == 0x7D:  # EMPTY_DICT
                push({}, 64)
            elif op == 0x5D:  # EMPTY_LIST
                push([], 56)
            elif op == 0x29:  # EMPTY_TUPLE
                push(())
            elif op == 0x8F:  # EMPTY_SET
                push(set(), 220)
            elif op == 0x91:  # FROZENSET
                values = self.marked()
                self.pay(220 + 80 * len(values))
                push(frozenset(self.key(v) for v in values))
            elif op == 0x74:  # TUPLE
                values = self.marked()
                push(tuple(values), 48 + 8 * len(values))
            elif op in (0x85, 0x86, 0x87):  # TUPLE1, 2, 3
                items = [pop() for _ in range(op - 0x84)]
                push(tuple(reversed(items)), 72)
            elif op == 0x6C:  # LIST
                values = self.marked()
                push(values, 64 + 8 * len(values))
            elif op == 0x64:  # DICT
                values = self.marked()
                made: dict[Any, Any] = {}
                self.pay(64)
                self.fill(made, values)
                push(made)
            elif op == 0x61 or op == 0x65:  # APPEND, APPENDS
                values = [pop()] if op == 0x61 else self.marked()
                self.extend(self.top(), values)
            elif op == 0x90:  # ADDITEMS
                values = self.marked()
                self.extend(self.top(), values)
            elif op == 0x73:  # SETITEM
                value, key = pop(), pop()
                self.fill(self.top(), [key, value])
            elif op == 0x75:  # SETITEMS
                values = self.marked()
                self.fill(self.top(), values)
            elif op in (0x71, 0x72):  # BINPUT, LONG_BINPUT
                self.remember(number(1 if op == 0x71 else 4))
            elif op == 0x94:  # MEMOIZE
                self.remember(len(self.memo))
            elif op == 0x70:  # PUT
                self.remember(int(self.line()))
            elif op in (0x68, 0x6A):  # BINGET, LONG_BINGET
                self.recall(number(1 if op == 0x68 else 4))
            elif op == 0x67:  # GET
                self.recall(int(self.line()))
            elif op == 0x63:  # GLOBAL
                module = self.line()
                self.found(module, self.line())
            elif op == 0x93:  # STACK_GLOBAL
                name, module = pop(), pop()
                self.found(module, name)
            elif op == 0x52 or op == 0x81:  # REDUCE, NEWOBJ
                args, function = pop(), pop()
                self.call(function, args)
            elif op == 0x92:  # NEWOBJ_EX
                pop()
                args, function = pop(), pop()
                self.call(function, args)
            elif op == 0x6F:  # OBJ
                function, *rest = self.marked()
                self.call(function, tuple(rest))
            elif op == 0x69:  # INST
                module, name, rest = self.line(), self.line(), self.marked()
                self.found(module, name)
                self.call(pop(), tuple(rest))
            elif op == 0x62:  # BUILD
                state = pop()
                self.build(self.top(), state)
            elif op == 0x51 or op == 0x50:  # BINPERSID, PERSID
                push(self.persistent(pop() if op == 0x51 else self.line()), 200)
            else:
                raise self.bad(f"has the opcode 0x{op:02x}, which is not read,")

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise self.bad("changes a value that is not there")
        return self.stack[-1]
