"""Thumb on Cortex-M4, M7 and M33: the instructions of ARMv7E-M that kernels need, beyond those of ARMv6-M.

Encodings: ARMv7-M Architecture Reference Manual (ARM DDI 0403), chapter A7.7.
"""

from __future__ import annotations

from collections.abc import Callable

from .assembler import check, instruction
from .thumb import CONDITIONS, SHIFTS, WORDS, Thumb, far_branch, halves, name, names

BYTES = range(0, 32, 8)


def _after(text: str, opcode: int) -> Callable[[ThumbDsp, int, int, int], None]:
    """A load or store, and n += step afterwards."""

    def append(self: ThumbDsp, t: int, n: int, step: int) -> None:
        check("a step", step, range(-255, 256))
        up = 0x200 if step >= 0 else 0
        self._two(f"{text} {name(t)}, [{name(n)}], #{step}", opcode | n, t << 12 | 0x900 | up | abs(step))

    return append


class ThumbDsp(Thumb):
    """ARMv7E-M: everything of ARMv6-M, wide encodings, and the DSP extension."""

    def _two(self, text: str, first: int, second: int) -> None:
        self.emit(text, halves(first, second))

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    add_w = instruction("add.w {d}, {n}, {m}?, lsl #{lsl}", "111010110000 nnnn 0 lll dddd ll 00 mmmm")
    sub_w = instruction("sub.w {d}, {n}, {m}?, lsl #{lsl}", "111010111010 nnnn 0 lll dddd ll 00 mmmm")
    orr_w = instruction("orr.w {d}, {n}, {m}?, lsl #{lsl}", "111010100100 nnnn 0 lll dddd ll 00 mmmm")
    # d = n + (m >> imm5)
    add_asr = instruction("add.w {d}, {n}, {m}, asr #{imm5}", "111010110000 nnnn 0 iii dddd ii 10 mmmm", SHIFTS)
    # d = n | m >> imm5
    orr_lsr = instruction("orr.w {d}, {n}, {m}, lsr #{imm5}", "111010100100 nnnn 0 iii dddd ii 01 mmmm", SHIFTS)
    # d = n - 1 if m is negative, else n
    add_sign = instruction("add.w {d}, {n}, {m}, asr #31", "111010110000 nnnn 0111 dddd 1110 mmmm")
    and_w = instruction("and.w {d}, {n}, {m}", "111010100000 nnnn 0000 dddd 0000 mmmm")
    addw = instruction("addw {d}, {n}, #{imm12}", "11110 i 100000 nnnn 0 iii dddd iiiiiiii")
    subw = instruction("subw {d}, {n}, #{imm12}", "11110 i 101010 nnnn 0 iii dddd iiiiiiii")
    subs_w = instruction("subs.w {d}, {n}, #{imm8}", "111100011011 nnnn 0000 dddd iiiiiiii")
    adc_w = instruction("adc.w {d}, {n}, #{imm8}", "111100010100 nnnn 0000 dddd iiiiiiii")
    mov_w = instruction("mov.w {d}, #{imm8}", "11110000010011110000 dddd iiiiiiii")

    def _const(self, text: str, first: int, d: int, const: int) -> None:
        shift = max(const.bit_length() - 8, 0)
        check("a constant's lower bits", const & (1 << shift) - 1, (0,))
        imm12 = (32 - shift & 31) << 7 | const >> shift & (127 if shift else 255)
        self._two(f"{text}, #{const}", first | (imm12 >> 11) << 10, (imm12 >> 8 & 7) << 12 | d << 8 | imm12 & 255)

    def mov_const(self, d: int, const: int) -> None:
        """Of eight bits, at any place."""
        self._const(f"mov.w {name(d)}", 0xF04F, d, const)

    def add_const(self, d: int, n: int, const: int) -> None:
        self._const(f"add.w {name(d)}, {name(n)}", 0xF100 | n, d, const)

    def sub_const(self, d: int, n: int, const: int) -> None:
        self._const(f"sub.w {name(d)}, {name(n)}", 0xF1A0 | n, d, const)

    lsl_w = instruction("lsl.w {d}, {m}, #{imm5}", "11101010010011110 iii dddd ii 00 mmmm", SHIFTS)
    lsr_w = instruction("lsr.w {d}, {m}, #{imm5}", "11101010010011110 iii dddd ii 01 mmmm", SHIFTS)
    asr_w = instruction("asr.w {d}, {m}, #{imm5}", "11101010010011110 iii dddd ii 10 mmmm", SHIFTS)
    # sets the carry to the last bit shifted out
    lsrs_w = instruction("lsrs.w {d}, {m}, #{imm5}", "11101010010111110 iii dddd ii 01 mmmm", SHIFTS)
    lsl_reg = instruction("lsl.w {d}, {n}, {m}", "111110100000 nnnn 1111 dddd 0000 mmmm")
    asr_reg = instruction("asr.w {d}, {n}, {m}", "111110100100 nnnn 1111 dddd 0000 mmmm")
    mul = instruction("mul {d}, {n}, {m}", "111110110000 nnnn 1111 dddd 0000 mmmm")
    mla = instruction("mla {d}, {n}, {m}, {a}", "111110110000 nnnn aaaa dddd 0000 mmmm")

    # -- the DSP extension ---------------------------------------------------------------------------------------------

    # d = a + both products of signed halves
    smlad = instruction("smlad {d}, {n}, {m}, {a}", "111110110010 nnnn aaaa dddd 0000 mmmm")
    smlabb = instruction("smlabb {d}, {n}, {m}, {a}", "111110110001 nnnn aaaa dddd 0000 mmmm")
    smlatt = instruction("smlatt {d}, {n}, {m}, {a}", "111110110001 nnnn aaaa dddd 0011 mmmm")
    # the lower half of n, the upper one of m
    smlabt = instruction("smlabt {d}, {n}, {m}, {a}", "111110110001 nnnn aaaa dddd 0001 mmmm")
    # the upper half of n, the lower one of m
    smlatb = instruction("smlatb {d}, {n}, {m}, {a}", "111110110001 nnnn aaaa dddd 0010 mmmm")
    # d = a + the upper word of n * m, rounded half up
    smmlar = instruction("smmlar {d}, {n}, {m}, {a}", "111110110101 nnnn aaaa dddd 0001 mmmm")
    # d = the upper word of n * m, rounded half up
    smmulr = instruction("smmulr {d}, {n}, {m}", "111110110101 nnnn 1111 dddd 0001 mmmm")
    # d = a + the sum of |n - m| over the bytes
    usada8 = instruction("usada8 {d}, {n}, {m}, {a}", "111110110111 nnnn aaaa dddd 0000 mmmm")
    # d = the lower half of n, and above it that of m
    pkhbt = instruction("pkhbt {d}, {n}, {m}, lsl #16", "111010101100 nnnn 0100 dddd 0000 mmmm")
    # d = the upper half of m, and above it that of n
    pkhtb = instruction("pkhtb {d}, {n}, {m}, asr #16", "111010101100 nnnn 0100 dddd 0010 mmmm")
    uadd8 = instruction("uadd8 {d}, {n}, {m}", "111110101000 nnnn 1111 dddd 0100 mmmm")
    # sets the flags that SEL chooses by
    usub8 = instruction("usub8 {d}, {n}, {m}", "111110101100 nnnn 1111 dddd 0100 mmmm")
    ssub16 = instruction("ssub16 {d}, {n}, {m}", "111110101101 nnnn 1111 dddd 0000 mmmm")
    uqadd8 = instruction("uqadd8 {d}, {n}, {m}", "111110101000 nnnn 1111 dddd 0101 mmmm")
    uqsub8 = instruction("uqsub8 {d}, {n}, {m}", "111110101100 nnnn 1111 dddd 0101 mmmm")
    sel = instruction("sel {d}, {n}, {m}", "111110101010 nnnn 1111 dddd 1000 mmmm")
    # l: the lower word, h: the upper one
    smull = instruction("smull {l}, {h}, {n}, {m}", "111110111000 nnnn llll hhhh 0000 mmmm")
    # bytes 0 and 2 (with ror 8: 1 and 3) as two halves
    uxtb16 = instruction("uxtb16 {d}, {m}?, ror #{ror}", "11111010001111111111 dddd 10 rr mmmm", BYTES)
    # the same, signed
    sxtb16 = instruction("sxtb16 {d}, {m}?, ror #{ror}", "11111010001011111111 dddd 10 rr mmmm", BYTES)
    # d = n + those halves
    uxtab16 = instruction("uxtab16 {d}, {n}, {m}?, ror #{ror}", "111110100011 nnnn 1111 dddd 10 rr mmmm", BYTES)

    def eor_bytes(self, d: int, n: int, imm8: int) -> None:
        """With the same byte four times."""
        byte = check("imm8", imm8, range(1, 256))
        self._two(f"eor.w {name(d)}, {name(n)}, #{byte * 0x01010101}", 0xF080 | n, 0x3000 | d << 8 | byte)

    def _saturate(self, text: str, opcode: int, d: int, bits: int, n: int, imm5: int) -> None:
        shift = f", asr #{imm5}" if imm5 else ""
        self._two(
            f"{text} {name(d)}, #{bits}, {name(n)}{shift}",
            opcode | (0x20 if imm5 else 0) | n,
            (check("a shift", imm5, range(32)) >> 2) << 12 | d << 8 | (imm5 & 3) << 6 | bits - (opcode == 0xF300),
        )

    def usat(self, d: int, bits: int, n: int, imm5: int = 0) -> None:
        """Shift to the right, then clamp to 0 … 2**bits - 1."""
        check("bits", bits, range(32))
        self._saturate("usat", 0xF380, d, bits, n, imm5)

    def ssat(self, d: int, bits: int, n: int, imm5: int = 0) -> None:
        """Shift to the right, then clamp to `bits` signed bits."""
        check("bits", bits, range(1, 33))
        self._saturate("ssat", 0xF300, d, bits, n, imm5)

    # -- loads and stores ----------------------------------------------------------------------------------------------

    ldr_w = instruction("ldr.w {t}, [{n}, #{offset}]", "111110001101 nnnn tttt oooooooooooo")
    str_w = instruction("str.w {t}, [{n}, #{offset}]", "111110001100 nnnn tttt oooooooooooo")
    strb_w = instruction("strb.w {t}, [{n}, #{offset}]", "111110001000 nnnn tttt oooooooooooo")
    strh_w = instruction("strh.w {t}, [{n}, #{offset}]", "111110001010 nnnn tttt oooooooooooo")
    ldrb_w = instruction("ldrb.w {t}, [{n}, #{offset}]", "111110001001 nnnn tttt oooooooooooo")
    ldrh_w = instruction("ldrh.w {t}, [{n}, #{offset}]", "111110001011 nnnn tttt oooooooooooo")
    ldr_index = instruction("ldr.w {t}, [{n}, {m}, lsl #{lsl}]", "111110000101 nnnn tttt 000000 ll mmmm")
    ldrb_index = instruction("ldrb.w {t}, [{n}, {m}, lsl #{lsl}]", "111110000001 nnnn tttt 000000 ll mmmm")
    ldrh_index = instruction("ldrh.w {t}, [{n}, {m}, lsl #{lsl}]", "111110000011 nnnn tttt 000000 ll mmmm")
    str_index = instruction("str.w {t}, [{n}, {m}, lsl #{lsl}]", "111110000100 nnnn tttt 000000 ll mmmm")
    strb_index = instruction("strb.w {t}, [{n}, {m}, lsl #{lsl}]", "111110000000 nnnn tttt 000000 ll mmmm")
    strh_index = instruction("strh.w {t}, [{n}, {m}, lsl #{lsl}]", "111110000010 nnnn tttt 000000 ll mmmm")
    ldr_after = _after("ldr", 0xF850)
    str_after = _after("str", 0xF840)
    ldrb_after = _after("ldrb", 0xF810)
    ldrsh_after = _after("ldrsh", 0xF930)  # a signed half
    strb_after = _after("strb", 0xF800)
    strh_after = _after("strh", 0xF820)

    ldrd = instruction("ldrd {t}, {u}, [{n}, #{offset}]", "111010011101 nnnn tttt uuuu oooooooo", WORDS)
    strd = instruction("strd {t}, {u}, [{n}, #{offset}]", "111010011100 nnnn tttt uuuu oooooooo", WORDS)
    ldrd_after = instruction("ldrd {t}, {u}, [{n}], #{step}", "111010001111 nnnn tttt uuuu ssssssss", WORDS)
    strd_after = instruction("strd {t}, {u}, [{n}], #{step}", "111010001110 nnnn tttt uuuu ssssssss", WORDS)

    def ldm(self, n: int, *registers: int, writeback: bool = False) -> None:
        mark = "!" if writeback else ""
        self._two(
            f"ldmia.w {name(n)}{mark}, {names(registers)}",
            0xE890 | (0x20 if writeback else 0) | n,
            sum(1 << r for r in registers),
        )

    # -- branches ------------------------------------------------------------------------------------------------------

    def b_if_w(self, condition: str, target: str) -> None:
        """Up to 1 MB away."""

        def encode(distance: int) -> bytes:
            to = check("a branch", distance - 4, range(-(1 << 20), 1 << 20, 2))
            sign, j2, j1 = to >> 20 & 1, to >> 19 & 1, to >> 18 & 1
            return halves(
                0xF000 | sign << 10 | CONDITIONS[condition] << 6 | to >> 12 & 0x3F,
                0x8000 | j1 << 13 | j2 << 11 | to >> 1 & 0x7FF,
            )

        self.branch(f"b{condition}.w", 4, target, encode)

    def b_w(self, target: str) -> None:
        """Up to 16 MB away."""
        self.branch("b.w", 4, target, far_branch(0x9000, 1 << 24))
