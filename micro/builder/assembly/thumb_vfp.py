"""Thumb with a floating-point unit of single precision, as Cortex-M4F, M7 and M33 have.

Encodings: ARMv7-M Architecture Reference Manual (ARM DDI 0403), chapter A7.7.
"""

from __future__ import annotations

from collections.abc import Callable

from .assembler import check
from .thumb import name
from .thumb_dsp import ThumbDsp


def _two(text: str, first: int, second: int) -> Callable[[ThumbVfp, int, int], None]:
    """An instruction of two registers of floats."""

    def append(self: ThumbVfp, sd: int, sm: int) -> None:
        self._two(f"{text} s{sd}, s{sm}", first | _d(sd), second | sd >> 1 << 12 | _m(sm))

    return append


def _three(text: str, first: int, second: int) -> Callable[[ThumbVfp, int, int, int], None]:
    """An instruction of three registers of floats."""

    def append(self: ThumbVfp, sd: int, sn: int, sm: int) -> None:
        self._two(
            f"{text} s{sd}, s{sn}, s{sm}", first | _d(sd) | sn >> 1, second | sd >> 1 << 12 | (sn & 1) << 7 | _m(sm)
        )

    return append


def _d(register: int) -> int:
    return (register & 1) << 6


def _m(register: int) -> int:
    return (register & 1) << 5 | register >> 1


class ThumbVfp(ThumbDsp):
    """ARMv7E-M with VFP: float32 numbers in registers s0 to s31, of which a function may change the first sixteen."""

    vmul = _three("vmul.f32", 0xEE20, 0x0A00)
    vadd = _three("vadd.f32", 0xEE30, 0x0A00)
    vsub = _three("vsub.f32", 0xEE30, 0x0A40)
    vabs = _two("vabs.f32", 0xEEB0, 0x0AC0)
    vcmp = _two("vcmp.f32", 0xEEB4, 0x0A40)
    vcvt_from_int = _two("vcvt.f32.s32", 0xEEB8, 0x0AC0)
    vcvtr_to_int = _two("vcvtr.s32.f32", 0xEEBD, 0x0A40)  # rounds as the processor's mode says: half to even

    def vmrs(self) -> None:
        """The flags = those of a comparison; "mi": less, "pl": not less, or not ordered."""
        self._two("vmrs APSR_nzcv, fpscr", 0xEEF1, 0xFA10)

    def vmov_to(self, sn: int, t: int) -> None:
        """A register's bits to one of floats."""
        self._two(f"vmov s{sn}, {name(t)}", 0xEE00 | sn >> 1, t << 12 | 0xA10 | (sn & 1) << 7)

    def vmov_from(self, t: int, sn: int) -> None:
        self._two(f"vmov {name(t)}, s{sn}", 0xEE10 | sn >> 1, t << 12 | 0xA10 | (sn & 1) << 7)

    def vldr(self, sd: int, n: int, offset: int = 0) -> None:
        check("an offset", offset, range(0, 1024, 4))
        self._two(f"vldr s{sd}, [{name(n)}, #{offset}]", 0xED90 | _d(sd) | n, sd >> 1 << 12 | 0xA00 | offset // 4)
