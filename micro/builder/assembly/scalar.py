"""An abstract machine for processors without SIMD instructions.

Kernels for them are written once, for a machine with eight working registers V, a few registers H that only moves and
additions can use, and variables on the stack. Cortex-M0 is such a machine; RISC-V and Xtensa offer more. A class for
each instruction set implements the operations below, with one instruction each unless noted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from .assembler import Assembler
from .frame import Frame

V0, V1, V2, V3, V4, V5, V6, V7 = range(8)
H0, H1, H2, H3 = range(8, 12)

BUFFERS = "AWT"


class Scalar(Assembler):
    """The operations. d: the register that changes; offsets are constants below 32 (bytes) and 128 (words)."""

    @abstractmethod
    def enter(self, f: Frame, bases: Mapping[str, str]) -> None:
        """Begin a kernel: add the buffers' addresses to the fields in `bases`. Without a driver (driver/), first save
        registers and copy the call's arguments to the stack."""

    @abstractmethod
    def leave(self, f: Frame) -> None:
        """End it: return to the driver, or MicroPython's small integer 0."""

    @abstractmethod
    def get(self, d: int, place: int) -> None:
        """d = the word on the stack."""

    @abstractmethod
    def put(self, d: int, place: int) -> None:
        """The word on the stack = d."""

    @abstractmethod
    def copy(self, d: int, m: int) -> None: ...

    @abstractmethod
    def number(self, d: int, value: int) -> None:
        """d = 0 … 255."""

    @abstractmethod
    def plus(self, d: int, m: int) -> None:
        """d += m."""

    @abstractmethod
    def minus(self, d: int, m: int) -> None:
        """d -= m."""

    @abstractmethod
    def step(self, d: int, value: int) -> None:
        """d += -255 … 255."""

    @abstractmethod
    def times(self, d: int, m: int) -> None:
        """d *= m."""

    @abstractmethod
    def bitwise_and(self, d: int, m: int) -> None:
        """d &= m."""

    @abstractmethod
    def left(self, d: int, bits: int) -> None:
        """d <<= bits."""

    def left_from(self, d: int, m: int, bits: int) -> None:
        """d = m << bits; not always one instruction."""
        self.copy(d, m)
        self.left(d, bits)

    @abstractmethod
    def right(self, d: int, m: int) -> None:
        """d >>= m, arithmetically."""

    @abstractmethod
    def right_by(self, d: int, m: int, bits: int) -> None:
        """d = m >> bits, arithmetically."""

    @abstractmethod
    def low_byte(self, d: int) -> None:
        """d &= 255; not always one instruction."""

    @abstractmethod
    def saturate(self, d: int) -> None:
        """d, which is no byte, becomes 0 if it is negative, else 255; several instructions."""

    @abstractmethod
    def byte(self, d: int, base: int, offset: int = 0) -> None:
        """d = the unsigned byte at that address."""

    @abstractmethod
    def byte_at(self, d: int, base: int, index: int) -> None:
        """d = the unsigned byte at base + index; not always one instruction."""

    @abstractmethod
    def word(self, d: int, base: int, offset: int = 0) -> None: ...

    @abstractmethod
    def store_byte(self, d: int, base: int, offset: int = 0) -> None: ...

    @abstractmethod
    def store_byte_at(self, d: int, base: int, index: int) -> None:
        """Store a byte at base + index; not always one instruction."""

    @abstractmethod
    def store_word(self, d: int, base: int, offset: int = 0) -> None: ...

    def move_words(self, source: int, to: int, between: Sequence[int]) -> None:
        """Copy a word through each register of `between`, which are V in ascending order, and move both pointers on."""
        for k, r in enumerate(between):
            self.word(r, source, 4 * k)
        self.put_words(to, between)
        self.step(source, 4 * len(between))

    def take_words(self, source: int, words: Sequence[int]) -> None:
        """Load words to registers V in ascending order, and move the pointer on."""
        for k, r in enumerate(words):
            self.word(r, source, 4 * k)
        self.step(source, 4 * len(words))

    def put_words(self, to: int, words: Sequence[int]) -> None:
        """Store words, in registers V in ascending order, and move the pointer on."""
        for k, r in enumerate(words):
            self.store_word(r, to, 4 * k)
        self.step(to, 4 * len(words))

    @abstractmethod
    def go(self, target: str) -> None: ...

    @abstractmethod
    def go_if(self, condition: str, n: int, m: int, target: str, far: bool = False) -> None:
        """Branch where n `condition` m, signed: "eq", "ne", "lt", "ge". far: more than 100 bytes away."""

    def go_if_not_zero_now(self, n: int, target: str, far: bool = False) -> None:
        """Branch if n is not zero, immediately after the `step` that changed it."""
        self.go_if_zero("ne", n, target, far)

    def go_if_positive_now(self, n: int, target: str, far: bool = False) -> None:
        """As go_if_not_zero_now, where n is greater than zero."""
        self.go_if_zero("gt", n, target, far)

    def go_if_zero_now(self, n: int, target: str) -> None:
        """Branch if n is zero, immediately after the `right_by` that set it."""
        self.go_if_zero("eq", n, target)

    @abstractmethod
    def go_if_zero(self, condition: str, n: int, target: str, far: bool = False) -> None:
        """Branch where n is "eq", "ne", "lt", "ge", "gt" or "le" zero."""

    def count_down(self, place: int, target: str, far: bool = False) -> None:
        """One less at a place of the frame; branch unless that is zero. Clobbers V3."""
        self.get(V3, place)
        self.step(V3, -1)
        self.put(V3, place)
        self.go_if_zero("ne", V3, target, far)
