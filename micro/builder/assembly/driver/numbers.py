"""Numbers of MicroPython's lists and arrays to the bytes of an input: `put`, as emit/inputs.py says it.

The driver gets the object itself as its last argument. Its layout in memory is that of MicroPython's py/objlist.h,
py/objarray.h and py/objfloat.c where a float has 32 bits; a module tries it once, on numbers that it knows, before it
relies on it.
"""

from __future__ import annotations

from abc import abstractmethod

from ...emit.inputs import BIAS, RECIPROCAL, SLACK
from ..frame import Frame
from ..rv32 import T5
from ..scalar import H0, H1, V0, V1, V2, V3, V4, V5, V6, V7, Scalar
from ..scalar_rv32 import REGISTERS, ScalarRv32
from ..scalar_thumb import ScalarThumb
from . import STATE

WAYS = ADDRESS, LIST, ARRAY = range(3)
"""What the last argument of the driver is: the address of floats, in words, where the second one is their number; or
an object, half of which W then is a float to compare types with."""

DONE, NOT_FINITE, REFUSED = range(3)
"""What the driver returns. REFUSED: not what it should be, or of another length; some may have been written."""

FIELDS = Frame(("x", "y", "count", "way", "zero", "each"), ("float", "at", "state"))
"""x: "i", the last argument; y: where the bytes go, in A; way: one of the above; zero: the zero point; each: bytes from
one number's step to the next one's, or 0. T is where the steps are (inputs.grid_table)."""


class Numbers(Scalar):
    """The scalar machine with what else this needs."""

    @abstractmethod
    def right_plain(self, d: int, bits: int) -> None:
        """d >>= bits, without a sign."""

    @abstractmethod
    def left_by(self, d: int, m: int) -> None:
        """d <<= m."""

    @abstractmethod
    def bitwise_or(self, d: int, m: int) -> None:
        """d |= m."""

    @abstractmethod
    def right_plain_from(self, d: int, m: int, bits: int) -> None:
        """d = m >> bits, without a sign."""

    @abstractmethod
    def begin(self) -> None:
        """Keep the address of the driver's state."""

    @abstractmethod
    def from_state(self, d: int, name: str) -> None:
        """d = a word of the driver's state; d is a low register other than V3."""

    @abstractmethod
    def to_state(self, d: int, name: str) -> None:
        """A word of the driver's state = d. Clobbers V3."""


class NumbersThumb(ScalarThumb, Numbers):
    def right_plain(self, d: int, bits: int) -> None:
        self.lsrs(d, d, bits)

    def left_by(self, d: int, m: int) -> None:
        self.lsls_reg(d, m)

    def bitwise_or(self, d: int, m: int) -> None:
        self.orrs(d, m)

    def right_plain_from(self, d: int, m: int, bits: int) -> None:
        self.lsrs(d, m, bits)

    def begin(self) -> None:
        self.put(V7, FIELDS["state"])  # as the driver leaves it: behind the first four words

    def from_state(self, d: int, name: str) -> None:
        self.get(d, FIELDS["state"])
        self.word(d, d, 4 * STATE.index(name) - 16)

    def to_state(self, d: int, name: str) -> None:
        self.get(V3, FIELDS["state"])
        self.store_word(d, V3, 4 * STATE.index(name) - 16)


class NumbersRv32(ScalarRv32, Numbers):
    def right_plain(self, d: int, bits: int) -> None:
        self.srli(REGISTERS[d], REGISTERS[d], bits)

    def left_by(self, d: int, m: int) -> None:
        self.sll(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def bitwise_or(self, d: int, m: int) -> None:
        self.or_(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def right_plain_from(self, d: int, m: int, bits: int) -> None:
        self.srli(REGISTERS[d], REGISTERS[m], bits)

    def begin(self) -> None:
        """It stays in t5."""

    def from_state(self, d: int, name: str) -> None:
        self.lw(REGISTERS[d], T5, 4 * STATE.index(name))

    def to_state(self, d: int, name: str) -> None:
        self.sw(REGISTERS[d], T5, 4 * STATE.index(name))


def negate(a: Numbers, d: int, spare: int) -> None:
    """d = -d."""
    a.number(spare, 0)
    a.minus(spare, d)
    a.copy(d, spare)


def _large(a: Numbers, d: int, value: int, bits: int) -> None:
    a.number(d, value)
    a.left(d, bits)


def numbers(a: Numbers) -> Numbers:
    """The kernel. V0: where the numbers are; V1: where the bytes go; V2: a number's sign; V3: its exponent; V4: its
    mantissa."""
    f = FIELDS
    a.begin()
    a.enter(f, {"y": "A"})
    source(a)
    a.put(V2, f["at"])
    a.get(V1, f["y"])

    a.label("next")
    next_float(a, V2)
    a.copy(V3, V2)
    a.left(V3, 1)
    a.right_plain(V3, 24)
    a.number(V4, 255)
    a.go_if("eq", V3, V4, "not finite", far=True)
    a.number(V4, 0)
    a.go_if_zero("eq", V3, "read")
    _mantissa(a, V4, V2, V5)
    a.label("read")
    a.get(V7, f["at"])
    a.word(V5, V7)
    a.go_if_zero("eq", V5, "divide", far=True)
    _subtract(a)
    a.label("divide")
    _divide(a)

    a.label("sign")
    a.go_if_zero("ge", V2, "positive")
    negate(a, V7, V3)
    a.label("positive")
    a.get(V3, f["zero"])
    a.plus(V7, V3)
    a.go_if_zero("ge", V7, "not below")
    a.number(V7, 0)
    a.label("not below")
    a.number(V3, 255)
    a.go_if("ge", V3, V7, "not above")
    a.copy(V7, V3)
    a.label("not above")
    a.store_byte(V7, V1)
    a.step(V1, 1)
    a.get(V3, f["each"])
    a.get(V4, f["at"])
    a.plus(V4, V3)
    a.put(V4, f["at"])
    next_number(a)
    a.go("answer")
    a.label("not finite")
    a.number(V7, NOT_FINITE)
    a.go("answer")
    return end(a)


def next_number(a: Numbers) -> None:
    """Go on with the next number. V7: what to answer if there is none."""
    a.count_down(FIELDS["count"], "next", far=True)
    a.number(V7, DONE)


def end(a: Numbers) -> Numbers:
    """Answer with V7, or at "refused" that the numbers are, and return to the driver."""
    a.label("refused")
    a.number(V7, REFUSED)
    a.label("answer")
    a.to_state(V7, "answer")
    a.from_state(V4, "then")
    a.go_if_zero("eq", V7, "go on")
    a.from_state(V4, "end")
    a.label("go on")
    a.go_if_zero("eq", V4, "ended")
    a.to_state(V4, "position")
    a.label("ended")
    a.leave(FIELDS)
    return a


def next_float(a: Numbers, d: int) -> None:
    """d, which is V2 or V3: the bits of the next number at V0, which moves on. Clobbers V4 and V5."""
    a.word(d, V0)
    a.step(V0, 4)
    a.get(V4, FIELDS["way"])
    a.go_if_zero("eq", V4, "float")
    a.number(V4, 3)
    a.bitwise_and(V4, d)
    a.go_if_zero("ne", V4, "refused", far=True)
    a.word(V4, d)
    a.get(V5, FIELDS["float"])
    a.go_if("ne", V4, V5, "refused", far=True)
    a.word(d, d, 4)
    a.label("float")


def source(a: Numbers) -> None:
    """V0: the first float or object; V2: the table, of the steps or of what else `drive` was given for it. "way" stays
    other than zero for objects."""
    f = FIELDS
    a.from_state(V4, "then")
    a.go_if_zero("eq", V4, "given")
    a.from_state(V1, "o")
    a.from_state(V2, "count")
    a.label("given")
    a.get(V0, f["x"])
    a.left(V0, 1)
    a.get(V3, f["way"])
    a.go_if_zero("ne", V3, "object")
    a.left(V0, 1)
    a.right_plain(V1, 2)
    a.put(V1, f["count"])
    a.go("found")
    a.label("object")
    a.left(V1, 1)
    a.number(V4, 3)  # where floats are no objects of their own, this one is no address
    a.bitwise_and(V4, V1)
    a.go_if_zero("ne", V4, "refused", far=True)
    a.word(V4, V1)
    a.put(V4, f["float"])
    a.word(V4, V0, 8)
    a.get(V5, f["count"])
    a.go_if("ne", V4, V5, "refused", far=True)
    a.step(V3, -LIST)
    a.go_if_zero("eq", V3, "items")
    a.number(V3, 0)
    a.put(V3, f["way"])
    a.byte(V4, V0, 4)
    a.number(V5, ord("f"))
    a.go_if("ne", V4, V5, "refused", far=True)
    a.label("items")
    a.word(V0, V0, 12)
    a.label("found")


def _mantissa(a: Numbers, d: int, bits: int, spare: int) -> None:
    """The 24 bits of a float."""
    a.copy(d, bits)
    a.left(d, 9)
    a.right_plain(d, 9)
    _large(a, spare, 128, 16)
    a.plus(d, spare)


def _subtract(a: Numbers) -> None:
    """Subtract the float in V5, which is neither zero nor smaller than a normal one."""
    a.left(V4, 3)
    a.go_if_zero("ge", V2, "first")
    negate(a, V4, V6)
    a.label("first")
    _mantissa(a, V6, V5, V7)
    a.left(V6, 3)
    a.go_if_zero("lt", V5, "second")
    negate(a, V6, V7)
    a.label("second")
    a.left(V5, 1)
    a.right_plain(V5, 24)
    a.go_if("ge", V3, V5, "ordered")
    for x, y in ((V4, V6), (V3, V5)):
        a.copy(V7, x)
        a.copy(x, y)
        a.copy(y, V7)
    a.label("ordered")
    a.copy(V7, V3)
    a.minus(V7, V5)
    a.copy(V5, V7)
    a.number(V7, 28)
    a.go_if("ge", V7, V5, "near")
    a.copy(V5, V7)
    a.label("near")
    a.copy(V7, V6)
    a.right(V7, V5)
    a.copy(V2, V7)
    a.left_by(V2, V5)
    a.go_if("eq", V2, V6, "whole")
    a.number(V2, 1)
    a.bitwise_or(V7, V2)
    a.label("whole")
    a.plus(V4, V7)
    a.number(V2, 0)
    a.go_if_zero("ge", V4, "difference")
    negate(a, V4, V7)
    _large(a, V2, 1, 31)
    a.label("difference")
    a.go_if_zero("ne", V4, "not zero")
    a.number(V3, 0)
    a.go("divide")
    a.label("not zero")
    _large(a, V7, 8, 24)
    a.go_if("lt", V4, V7, "not carried")
    a.number(V5, 1)
    a.bitwise_and(V5, V4)
    a.right_plain(V4, 1)
    a.bitwise_or(V4, V5)
    a.step(V3, 1)
    a.label("not carried")
    _large(a, V7, 4, 24)
    a.label("normal?")
    a.go_if("ge", V4, V7, "normal")
    a.left(V4, 1)
    a.step(V3, -1)
    a.go("normal?")
    a.label("normal")
    a.copy(V5, V4)
    a.right_plain(V5, 3)
    a.number(V6, 1)
    a.bitwise_and(V5, V6)
    a.plus(V4, V5)
    a.step(V4, 3)
    a.right_plain(V4, 3)


def _divide(a: Numbers) -> None:
    """V7: the number in steps. Clobbers V3 to V6."""
    f = FIELDS
    a.get(V7, f["at"])
    a.word(V6, V7, 8)
    a.copy(V5, V6)
    a.right_plain(V5, RECIPROCAL)
    a.minus(V3, V5)
    a.step(V3, BIAS)
    a.left(V6, 32 - RECIPROCAL)
    a.right_plain(V6, 32 - RECIPROCAL)
    a.number(V5, 8)
    a.go_if("ge", V5, V3, "not far")
    _large(a, V7, 2, 8)
    a.go("sign")
    a.label("not far")
    a.number(V7, 0)
    a.step(V3, 1)
    a.go_if_zero("lt", V3, "sign", far=True)
    a.number(V5, 29)
    a.minus(V5, V3)
    a.copy(V7, V4)
    a.right_plain(V7, 12)
    a.times(V7, V6)
    a.copy(V3, V4)
    a.left(V3, 20)
    a.right_plain(V3, 20)
    a.times(V3, V6)
    a.right_plain(V3, 12)
    a.plus(V7, V3)
    a.number(V3, 1)
    a.left_by(V3, V5)
    a.right_plain(V3, 1)
    a.plus(V7, V3)
    _large(a, V6, SLACK >> 8, 8)
    a.plus(V6, V7)
    a.right(V7, V5)
    a.copy(V3, V6)
    a.right(V3, V5)
    a.copy(H0, V3)
    a.left_by(V3, V5)
    a.minus(V6, V3)
    _large(a, V3, 2 * SLACK >> 8, 8)
    a.go_if("ge", V6, V3, "sign", far=True)
    a.copy(V7, H0)
    a.number(V6, 34)
    a.minus(V6, V5)
    a.copy(V3, V4)
    a.left_by(V3, V6)
    a.get(V6, f["at"])
    a.word(V6, V6, 4)
    a.copy(H1, V2)
    a.copy(V2, V7)
    a.left(V2, 1)
    a.step(V2, -1)
    a.times(V2, V6)
    a.minus(V3, V2)
    a.copy(V2, H1)
    a.step(V5, -5)
    a.left(V4, 5)
    a.go_if("ge", V4, V6, "as long")
    a.step(V5, 1)
    a.label("as long")
    a.right(V6, V5)
    a.copy(V4, V3)
    a.plus(V4, V6)
    a.go_if_zero("ge", V4, "not less")
    a.step(V7, -1)
    a.go("sign")
    a.label("not less")
    a.go_if("lt", V6, V3, "sign")
    a.number(V3, 1)
    a.bitwise_and(V3, V7)
    a.minus(V7, V3)
