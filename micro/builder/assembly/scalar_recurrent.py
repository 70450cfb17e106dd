"""The units of LSTM and GRU layers on the scalar machine: their new states from the gates' sums.

As `update` in kernels/recurrent.py, which says what the numbers mean. Cortex-M4 and M7 run the code of Cortex-M0.
"""

from __future__ import annotations

from ..kernels.recurrence import HIDDEN, MIDDLE, UNIT
from .frame import Frame
from .scalar import H0, H1, V0, V1, V2, V3, V4, V5, V6, V7, Scalar
from .scalar_dot import clamp_to

CONSTANTS = {
    "gate": 2 * MIDDLE - 4 - (512 << 3),
    "tanh": 2 * MIDDLE - 2 - (512 << 2),
    "candidate": MIDDLE - 2 - (512 << 2),
    "cell": MIDDLE - 8 - (512 << 4),
    "table": 1024,
    "unit": UNIT,
    "half": UNIT >> 1,
    "middle": MIDDLE,
    "product": 1 << 16,
    "output": 1 << 20,
}
"""Words on the stack. The first four are what to subtract before a sum, shifted, is a place in the table."""

FRAME = Frame(("st", "zo", "wo", "hidden"), (*CONSTANTS, "g0", "g1", "g2", "g3"))
"""The places of the state, the sums and the table, and the number of units."""


def _begin(a: Scalar, gates: int) -> None:
    """V5: the sums of the input; V6: those of the state; V7: the table; H0: the state in bytes; H1: in 16 bits."""
    f = FRAME
    a.enter(f, {"st": "A", "zo": "A", "wo": "W"})
    for name, value in CONSTANTS.items():
        a.number(V0, value >> 16)
        for byte in (value >> 8 & 255, value & 255):
            a.left(V0, 8)
            a.number(V1, byte)
            a.plus(V0, V1)
        a.put(V0, f[name])
    a.get(V0, f["st"])
    a.copy(H0, V0)
    a.get(V1, f["hidden"])
    a.plus(V0, V1)
    a.copy(H1, V0)
    a.get(V5, f["zo"])
    a.number(V6, 2 * gates)
    a.times(V6, V1)
    a.plus(V6, V5)
    a.get(V7, f["wo"])
    a.label("unit")


def _end(a: Scalar, gates: int) -> None:
    f = FRAME
    a.step(V5, 2 * gates)
    a.step(V6, 2 * gates)
    a.get(V0, f["hidden"])
    a.step(V0, -1)
    a.put(V0, f["hidden"])
    a.go_if_zero("ne", V0, "unit", far=True)
    a.leave(f)


def _add(a: Scalar, d: int, name: str, spare: int = V1) -> None:
    a.get(spare, FRAME[name])
    a.plus(d, spare)


def _word(a: Scalar, d: int, spare: int, base: int, k: int = 0) -> None:
    """A number of 16 bits, which may be unaligned, MIDDLE above itself."""
    a.byte(d, base, k + 1)
    a.left(d, 8)
    a.byte(spare, base, k)
    a.plus(d, spare)


def _sum(a: Scalar, k: int) -> None:
    """V0: the sums of the input and of the state for gate k, 2 * MIDDLE above themselves. Clobbers V1."""
    a.byte(V0, V5, 2 * k + 1)
    a.byte(V1, V6, 2 * k + 1)
    a.plus(V0, V1)
    a.left(V0, 8)
    for sums in (V5, V6):
        a.byte(V1, sums, 2 * k)
        a.plus(V0, V1)


def _lookup(a: Scalar, name: str, bits: int, mark: str, tanh: bool = False) -> None:
    """V0: the table's number for V0. Clobbers V1 and V2."""
    f = FRAME
    a.get(V1, f[name])
    a.minus(V0, V1)
    a.right_by(V0, V0, bits)
    clamp_to(a, V0, V1, 10, mark)
    a.byte_at(V1, V7, V0)
    a.left(V1, 8)
    _add(a, V0, "table", V2)
    a.byte_at(V0, V7, V0)
    a.plus(V0, V1)
    if tanh:
        a.left(V0, 1)
        a.get(V1, f["unit"])
        a.minus(V0, V1)


def _keep_word(a: Scalar) -> None:
    """Store V1 in 16 bits at V4, and move it and H1 on. Clobbers V1."""
    a.store_byte(V1, V4)
    a.right_by(V1, V1, 8)
    a.store_byte(V1, V4, 1)
    a.step(V4, 2)
    a.copy(H1, V4)


def _keep_byte(a: Scalar) -> None:
    """Store V0, from which HIDDEN is missing, as a byte of the state. Clobbers V1."""
    a.number(V1, HIDDEN)
    a.plus(V0, V1)
    clamp_to(a, V0, V1, 8, "byte")
    a.copy(V1, H0)
    a.store_byte(V0, V1)
    a.step(V1, 1)
    a.copy(H0, V1)


def gru(a: Scalar) -> Scalar:
    """Gates: update, reset, candidate."""
    f = FRAME
    _begin(a, 3)
    _sum(a, 0)
    _lookup(a, "gate", 3, "update")
    a.put(V0, f["g0"])
    _sum(a, 1)
    _lookup(a, "gate", 3, "reset")
    a.copy(V3, V0)
    _word(a, V0, V1, V6, 4)
    a.get(V1, f["middle"])
    a.minus(V0, V1)
    a.times(V0, V3)
    _add(a, V0, "half")
    a.right_by(V0, V0, 14)
    _word(a, V2, V1, V5, 4)
    a.plus(V0, V2)
    _lookup(a, "candidate", 2, "candidate", tanh=True)
    a.get(V3, f["g0"])
    a.get(V1, f["unit"])
    a.minus(V1, V3)
    a.times(V0, V1)
    a.copy(V4, H1)
    _word(a, V1, V2, V4)
    a.get(V2, f["middle"])
    a.minus(V1, V2)
    a.times(V1, V3)
    a.plus(V0, V1)
    _add(a, V0, "half")
    a.right_by(V0, V0, 14)
    a.copy(V1, V0)
    _add(a, V1, "middle", V2)
    _keep_word(a)
    a.number(V1, 64)
    a.plus(V0, V1)
    a.right_by(V0, V0, 7)
    _keep_byte(a)
    _end(a, 3)
    return a


def lstm(a: Scalar) -> Scalar:
    """Gates: input, forget, cell, output."""
    f = FRAME
    _begin(a, 4)
    for k in range(4):
        _sum(a, k)
        if k == 2:
            _lookup(a, "tanh", 2, "2", tanh=True)
        else:
            _lookup(a, "gate", 3, str(k))
        a.put(V0, f[f"g{k}"])
    a.copy(V4, H1)
    _word(a, V0, V1, V4)
    a.get(V1, f["middle"])
    a.minus(V0, V1)
    a.get(V1, f["g1"])
    a.times(V0, V1)
    _add(a, V0, "half")
    a.right_by(V0, V0, 14)
    a.get(V1, f["g0"])
    a.get(V2, f["g2"])
    a.times(V1, V2)
    _add(a, V1, "product", V2)
    a.right_by(V1, V1, 17)
    a.plus(V0, V1)
    _add(a, V0, "middle")
    clamp_to(a, V0, V1, 16, "word")
    a.copy(V1, V0)
    _keep_word(a)
    _lookup(a, "cell", 4, "cell", tanh=True)
    a.get(V1, f["g3"])
    a.times(V0, V1)
    _add(a, V0, "output")
    a.right_by(V0, V0, 21)
    _keep_byte(a)
    _end(a, 4)
    return a
