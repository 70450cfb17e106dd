"""Whole GRU and LSTM layers for ARMv7E-M, where rows of weights are short: all steps in one call.

A step first computes the gates' sums of the input, then, unit by unit, those of the state and the unit's new values,
as `update` in kernels/recurrent.py. Pairs of 16-bit numbers of the input, then of the state, stay in registers, or on
the stack if there are more than eight. Products are unrolled. Over many steps, the rows of the input are unpacked once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

from ..kernels.recurrence import HIDDEN, MIDDLE, UNIT, RecurrentLayer, Rows
from ..kernels.recurrent import Gru, Lstm
from ..quantization.reference import Requant
from .driver import Call, Kernel
from .dsp import enter, leave, requant_fields
from .frame import Frame
from .thumb import LR, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, SP
from .thumb_dsp import ThumbDsp

MOST_WORDS = 8
"""Words of an input and of a state together, in a layer whose rows are short."""

MANY_STEPS, MOST_ROOM = 4, 1024
"""The rows of the input are unpacked once in a layer of so many steps, and if they then take no more bytes."""

FIELDS = ("x", "xstep", "y", "ystep", "steps", "st", "zo", "table", "w", "q", "lift x", "lift h", "rows")
"""x, y: the first step's input and output, and how far it is to the next one's; st: the state; zo: room for the sums;
table: the middle of that of the logistic function; w, q: the weights, and the pairs of bias and multiplier; lift: what
every bias lies above itself, of the input and of the state; rows: room for those of the input, unpacked."""

OWN = ("c", "h", "out", "end", "g0", "g1", "g2", "last", "w h", "q h")
"""Where the units' values, bytes and outputs are; where the pairs end; gates; where the unpacked rows end; the
weights and the pairs of the state."""

PAIRS = (R4, R5, R6, R7)

W, Q, S, M, WORD, PAIR, START, SUMS, TABLE = R0, R1, R2, R3, R8, R9, R10, R11, R12
"""Weights, pairs of bias and multiplier, a sum, its multiplier, a word of weights, halves of one, what is added to
every bias, the sums of the input, the middle of the table."""


@dataclass(frozen=True)
class Shape:
    """k, hidden: bytes of the input and of the state; shifts: of their sums' products."""

    k: int
    hidden: int
    shifts: tuple[int, int]
    sequence: bool
    gates: int
    unpacked: bool

    @property
    def rows(self) -> int:
        """Of the input, and of the state."""
        return self.gates * self.hidden

    @property
    def frame(self) -> Frame:
        most = max(-(-self.k // 4), -(-self.hidden // 4))
        pairs = range(2 * most if 2 * most > len(PAIRS) else 0)
        return Frame(FIELDS, (*OWN, *(f"pair {n}" for n in pairs)))


def fits(layer: RecurrentLayer) -> TypeGuard[Gru | Lstm]:
    """Whether this runs a layer: its rows are short, and its sums are rescaled as here."""
    if not isinstance(layer, Gru | Lstm):
        return False
    words = sum(-(-rows.weights.shape[1] // 4) for rows in layer.rows)
    return words <= MOST_WORDS and all(map(_rescales, layer.rows))


def _rescales(rows: Rows) -> bool:
    """Whether a multiplier that is shifted to the left suffices, and sums saturate as 16-bit numbers do."""
    r = rows.requant
    fields = requant_fields(r) if type(r) is Requant else None
    return fields is not None and not fields["up"] and (r.low, r.high, r.zero) == (0, 2 * MIDDLE - 1, MIDDLE)


def room(layer: Gru | Lstm) -> int:
    """The bytes of the input's rows, unpacked, or 0 if they stay packed."""
    rows, k = layer.from_input.weights.shape
    size = rows * (8 + 8 * -(-k // 4))
    return size if layer.steps >= MANY_STEPS and size <= MOST_ROOM else 0


def call(layer: Gru | Lstm, places: Mapping[str, int]) -> Call:
    """The call that runs all steps."""
    (x, y), (xstep, ystep) = layer.walk(places)
    table = sum(part.size for part in layer.table)
    numbers = {"x": x, "y": y, "xstep": xstep, "ystep": ystep, "steps": layer.steps}
    numbers |= {"st": places["st"], "zo": places["zo"], "table": places["wo"] + table // 4, "w": places["wo"] + table}
    numbers |= {"q": 4 * (places["to"] + 2), "lift x": layer.from_input.lift, "lift h": layer.from_state.lift}
    return Call(_kernel(layer), {**numbers, "rows": places["zs"] + 3 & ~3})


def _kernel(layer: Gru | Lstm) -> Kernel:
    """Named after what it depends on."""
    k = layer.from_input.weights.shape[1]
    first, second = (rows.requant.shift for rows in layer.rows)
    unpacked = room(layer) > 0
    gates = len(layer.from_input.weights) // layer.hidden
    shape = Shape(k, layer.hidden, (first, second), layer.sequence, gates, unpacked)
    name = f"{layer.kind}_{k}x{layer.hidden}_by_{first}_{second}" + "_unpacked" * unpacked
    name += "_sequence" * layer.sequence
    return Kernel(name, partial(_assembled, layer.kind, shape), shape.frame)


def _assembled(kind: str, shape: Shape) -> ThumbDsp:
    a, f = ThumbDsp(), shape.frame
    bases = {"x": R0, "y": R0, "st": R0, "zo": R0, "table": R1, "w": R1, "q": R2}
    enter(a, f, {**bases, **({"rows": R0} if shape.unpacked else {})})
    a.ldrd(R2, R3, SP, f.pair("w", "q"))
    a.addw(R2, R2, shape.rows * shape.k)
    a.addw(R3, R3, 8 * shape.rows + 8)  # with the words before the pairs
    a.strd(R2, R3, SP, f.pair("w h", "q h"))
    a.addw(R3, R3, 8 * shape.rows)
    a.str_(R3, SP, f["end"])
    if shape.unpacked:
        _unpack(a, f, shape)

    a.label("step")
    a.ldr(R0, SP, f["x"])
    _expand(a, f, shape.k, "" if shape.unpacked else "lift x")
    a.ldr_w(SUMS, SP, f["zo"])
    _sums(a, f, shape)
    a.ldr(R0, SP, f["st"])
    a.addw(R3, R0, shape.hidden)
    a.strd(R3, R0, SP, f.pair("c", "h"))
    if shape.sequence:
        a.ldr(R3, SP, f["y"])
        a.str_(R3, SP, f["out"])
    _expand(a, f, shape.hidden, "lift h")
    a.ldrd(W, Q, SP, f.pair("w h", "q h"))
    a.ldr_w(SUMS, SP, f["zo"])
    a.ldr_w(TABLE, SP, f["table"])
    a.label("unit")
    unit = _gru_unit if kind == "gru" else _lstm_unit
    unit(a, f, lambda: _row(a, f, shape.hidden, shape.shifts[1]))
    if shape.sequence:
        a.ldr(R2, SP, f["out"])
        a.strb_after(R3, R2, 1)
        a.str_(R2, SP, f["out"])
    a.ldr(R3, SP, f["end"])
    a.cmp(Q, R3)
    a.b_if_w("ne", "unit")

    for name, step in (("x", "xstep"), ("y", "ystep")) if shape.sequence else (("x", "xstep"),):
        a.ldrd(R2, R3, SP, f.pair(name, step))
        a.add(R2, R3)
        a.str_(R2, SP, f[name])
    a.ldr(R2, SP, f["steps"])
    a.subs_imm(R2, 1)
    a.str_(R2, SP, f["steps"])
    a.b_if_w("ne", "step")
    leave(a)
    return a


def _unpack(a: ThumbDsp, f: Frame, shape: Shape) -> None:
    """Write each row of the input as its bias, its multiplier, shifted, and its weights as pairs."""
    a.ldrd(W, Q, SP, f.pair("w", "q"))
    a.ldr_w(R10, SP, f["lift x"])
    a.ldr_w(R11, SP, f["rows"])
    a.mov_w(LR, shape.rows)
    a.label("unpack")
    a.ldrd_after(R2, R3, Q, 8)
    a.sub_w(R2, R2, R10)
    if shape.shifts[0] < 32:
        a.lsls(R3, R3, 32 - shape.shifts[0])
    a.strd_after(R2, R3, R11, 8)
    for at in range(0, shape.k, 4):
        a.ldr_after(R8, W, min(4, shape.k - at))
        a.uxtb16(R2, R8)
        a.uxtb16(R3, R8, 8)
        a.strd_after(R2, R3, R11, 8)
    a.subs_w(LR, LR, 1)
    a.b_if_w("ne", "unpack")
    a.str_w(R11, SP, f["last"])


def _sums(a: ThumbDsp, f: Frame, shape: Shape) -> None:
    """The gates' sums of the input."""
    if shape.unpacked:
        a.ldr(W, SP, f["rows"])
    else:
        a.ldrd(W, Q, SP, f.pair("w", "q"))
        a.mov_w(LR, shape.hidden)
    a.label("sums")
    for _ in range(shape.gates):
        if shape.unpacked:
            _unpacked_row(a, f, shape.k)
        else:
            _row(a, f, shape.k, shape.shifts[0])
        a.strh_after(S, SUMS, 2)
    if shape.unpacked:
        a.ldr(R3, SP, f["last"])
        a.cmp(W, R3)
    else:
        a.subs_w(LR, LR, 1)
    a.b_if_w("ne", "sums")


def _unpacked_row(a: ThumbDsp, f: Frame, k: int) -> None:
    """As `_row`, of the input where its rows are unpacked at W. Clobbers r12 and lr, too."""
    words = -(-k // 4)
    weights = (R8, R9, R12, LR)[: 2 * words]
    a.ldm(W, S, M, *weights, writeback=True)
    a.add(S, START)
    for n in range(words):
        own = weights[2 * n : 2 * n + 2]
        if n > 1:
            own = (R8, R9)
            a.ldrd_after(*own, W, 8)
        for pair, weight in zip(_pairs(a, f, n, words), own, strict=True):
            a.smlad(S, pair, weight, S)
    a.smmulr(S, S, M)
    a.ssat(S, 16, S)


def _pairs(a: ThumbDsp, f: Frame, n: int, words: int) -> tuple[int, int]:
    """The registers with word n, unpacked, of an input or a state of so many words."""
    if 2 * words <= len(PAIRS):
        return PAIRS[2 * n], PAIRS[2 * n + 1]
    a.ldrd(PAIRS[0], PAIRS[1], SP, f[f"pair {2 * n}"])
    return PAIRS[0], PAIRS[1]


def _expand(a: ThumbDsp, f: Frame, k: int, lift: str) -> None:
    """Unpack k bytes at r0 to pairs, and set START. Clobbers r0, r2, r3, r8 and r9."""
    a.mov_w(R2, 0)
    a.mov_w(R9, 0)
    stored = 2 * -(-k // 4) > len(PAIRS)
    for n in range(-(-k // 4)):
        a.ldr_after(R8, R0, 4)
        if rest := max(0, 4 * n + 4 - k):
            a.lsl_w(R8, R8, 8 * rest)
            a.lsr_w(R8, R8, 8 * rest)
        a.usada8(R2, R8, R9, R2)
        first, second = (PAIRS[0], PAIRS[1]) if stored else PAIRS[2 * n : 2 * n + 2]
        a.uxtb16(first, R8)
        a.uxtb16(second, R8, 8)
        if stored:
            a.strd(first, second, SP, f[f"pair {2 * n}"])
    if lift:
        a.ldr(R3, SP, f[lift])
        a.add_w(R2, R3, R2, 7)
    else:
        a.lsls(R2, R2, 7)
    a.rsbs(R2, R2)
    a.mov(START, R2)


def _row(a: ThumbDsp, f: Frame, k: int, shift: int) -> None:
    """S: the next row's sum in 16 bits. Clobbers M, WORD, PAIR and some of PAIRS."""
    words = -(-k // 4)
    a.ldrd_after(S, M, Q, 8)
    a.add(S, START)
    for n in range(words):
        first, second = _pairs(a, f, n, words)
        a.ldr_after(WORD, W, min(4, k - 4 * n))
        a.uxtb16(PAIR, WORD)
        a.smlad(S, first, PAIR, S)
        a.uxtb16(PAIR, WORD, 8)
        a.smlad(S, second, PAIR, S)
    if shift < 32:
        a.lsls(M, M, 32 - shift)
    a.smmulr(S, S, M)
    a.ssat(S, 16, S)


def _sum(a: ThumbDsp) -> None:
    """Add the input's sum to S. Clobbers M."""
    a.ldrsh_after(M, SUMS, 2)
    a.add(S, M)


def _lookup(a: ThumbDsp, bits: int) -> None:
    """The table's number for S, rounded by `bits`: its upper byte in S, its lower one in M."""
    a.adds_imm(S, 1 << bits - 1)
    a.ssat(S, 10, S, bits)
    a.add_w(M, TABLE, S)
    a.ldrb(S, M)
    a.ldrb_w(M, M, 1024)


def _logistic(a: ThumbDsp, d: int) -> None:
    """d = the gate for S."""
    _lookup(a, 3)
    a.orr_w(d, M, S, 8)


def _half_tanh(a: ThumbDsp, bits: int) -> None:
    """S = half of tanh of S, rounded by `bits`."""
    _lookup(a, bits)
    a.sub_const(M, M, UNIT >> 1)
    a.add_w(S, M, S, 8)


def _gru_unit(a: ThumbDsp, f: Frame, row: Callable[[], None]) -> None:
    """Gates: update, reset, candidate. Leaves the unit's byte in r3."""
    row()
    _sum(a)
    _logistic(a, S)
    a.str_(S, SP, f["g0"])
    row()
    _sum(a)
    _logistic(a, LR)
    row()
    a.mov_const(M, UNIT >> 1)
    a.mla(S, S, LR, M)
    a.ldrsh_after(M, SUMS, 2)
    a.add_asr(S, M, S, 14)
    _half_tanh(a, 2)
    # update * (before - candidate) + one * candidate
    a.ldr(M, SP, f["g0"])
    a.ldrd(R8, R9, SP, f.pair("c", "h"))
    a.ldrh_w(LR, R8)
    a.sub_const(LR, LR, MIDDLE)
    a.sub_w(LR, LR, S, 1)
    a.lsls(S, S, 15)
    a.add_const(S, S, UNIT >> 1)
    a.mla(S, M, LR, S)
    a.asrs(S, S, 14)
    a.add_const(R3, S, MIDDLE)
    a.strh_after(R3, R8, 2)
    a.sub_const(R3, R3, MIDDLE - (HIDDEN << 7) - 64)
    a.usat(R3, 8, R3, 7)
    a.strb_after(R3, R9, 1)
    a.strd(R8, R9, SP, f.pair("c", "h"))


def _lstm_unit(a: ThumbDsp, f: Frame, row: Callable[[], None]) -> None:
    """Gates: input, forget, cell, output. Leaves the unit's byte in r3."""
    for gate in ("g0", "g1"):
        row()
        _sum(a)
        _logistic(a, S)
        a.str_(S, SP, f[gate])
    row()
    _sum(a)
    _half_tanh(a, 2)
    a.ldr(M, SP, f["g0"])
    a.mov_const(LR, 1 << 15)
    a.mla(S, S, M, LR)
    a.ldr_w(R8, SP, f["c"])
    a.ldrh_w(LR, R8)
    a.sub_const(LR, LR, MIDDLE)
    a.ldr(M, SP, f["g1"])
    a.mul(LR, LR, M)
    a.add_const(LR, LR, UNIT >> 1)
    a.asr_w(LR, LR, 14)
    a.add_asr(S, LR, S, 16)
    a.ssat(S, 16, S)
    a.add_const(R3, S, MIDDLE)
    a.strh_after(R3, R8, 2)
    a.str_w(R8, SP, f["c"])
    _half_tanh(a, 4)
    a.str_(S, SP, f["g2"])
    row()
    _sum(a)
    _logistic(a, S)
    a.ldr(M, SP, f["g2"])
    a.mov_const(LR, 1 << 19)
    a.mla(R3, S, M, LR)
    a.add_const(R3, R3, HIDDEN << 20)
    a.usat(R3, 8, R3, 20)
    a.ldr(R2, SP, f["h"])
    a.strb_after(R3, R2, 1)
    a.str_(R2, SP, f["h"])
