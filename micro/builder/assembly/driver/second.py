"""The second core of an RP2040: half of a large layer runs there while the first core runs the other half.

A thread that is started with the model runs `drive` on the second core and never returns. It waits for the address of a
part of the table, runs it, and waits again. In the table such a layer is

    FORK, the second core's half, SERVE, the first core's half, JOIN

FORK hands its half over and goes on behind SERVE. JOIN waits until that half is done. If no thread waits at FORK, the
first core runs both halves. If JOIN has waited for too long, it goes back to the second core's half, and from then on
nothing is handed over.

The two words that the cores share lie in the kernel's own code, which MicroPython loads into memory: "job", the address
or 0, and "ready", whether a thread waits or has a job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..frame import Frame
from ..scalar_thumb import ScalarThumb
from ..thumb import PC, R4, R5, R6, R7, SP, Thumb
from . import DRIVER, Call, Kernel
from .thumb import state

FORK, JOIN, SERVE = range(3)

FRAME = Frame(("what", "size", "turns"))
"""what: one of the above; size: in bytes of the table, of what FORK skips and of what JOIN repeats; turns: how often
JOIN looks."""

WORKER = 1
"""The `i` of the thread's `drive`; in `run` it is 0 or the address of numbers."""

LEAST = 1000
"""Multiply-accumulates of a call that is shared. Handing over takes about as many instructions as 60 of them."""

LEAST_TURNS, TURNS = 1 << 24, 8
"""How many turns of 5 instructions JOIN waits at least, about a second, and for each multiply-accumulate."""


def second() -> Thumb:
    """The kernel. r5: the two words; r7: the address of the state's "position"."""
    a = ScalarThumb()
    a.mov(R5, PC)  # two instructions ahead, where the words are
    a.b("begin")
    for _ in ("job", "ready"):
        a.emit(".word 0", bytes(4))
    a.label("begin")
    a.ldr(R4, SP, FRAME["what"])
    a.cmp_imm(R4, JOIN)
    a.b_if("eq", "join")
    a.b_if("hi", "serve")

    a.ldr(R6, R5, 4)
    a.cmp_imm(R6, 0)
    a.b_if("eq", "leave")
    a.ldr(R6, R7)
    a.dmb()
    a.str_(R6, R5)
    a.dsb()
    a.sev()
    a.ldr(R4, SP, FRAME["size"])
    a.adds(R6, R6, R4)
    a.str_(R6, R7)
    a.bl(DRIVER)

    a.label("join")
    a.ldr(R6, SP, FRAME["turns"])
    a.label("wait")
    a.ldr(R4, R5)
    a.cmp_imm(R4, 0)
    a.b_if("eq", "joined")
    a.subs_imm(R6, 1)
    a.b_if("ne", "wait")
    a.movs(R4, 0)
    a.str_(R4, R5, 4)
    a.str_(R4, R5)
    a.ldr(R6, R7)
    a.ldr(R4, SP, FRAME["size"])
    a.subs(R6, R6, R4)
    a.str_(R6, R7)
    a.label("joined")
    a.dmb()
    a.bl(DRIVER)

    a.label("serve")
    a.ldr(R4, R7, state("i"))
    a.cmp_imm(R4, WORKER)
    a.b_if("ne", "leave")
    a.dmb()
    a.movs(R6, 0)
    a.str_(R6, R5)
    a.str_(R4, R5, 4)
    a.label("sleep")
    a.ldr(R4, R5)
    a.cmp_imm(R4, 0)
    a.b_if("ne", "job")
    a.wfe()
    a.b("sleep")
    a.label("job")
    a.dmb()
    a.str_(R4, R7)
    a.label("leave")
    a.bl(DRIVER)
    return a


KERNEL = Kernel("second", second, FRAME)


def _call(what: int, size: int = 0, turns: int = 0) -> Call:
    return Call(KERNEL, {"what": what, "size": size, "turns": turns})


SERVING = _call(SERVE)
"""All that the thread's part of the table has."""


def shared(calls: Sequence[Call], words: int) -> list[Call]:
    """The calls of a layer, the large ones in two halves. words: of the table for each of a convolution's channels."""
    out: list[Call] = []
    for call in calls:
        parts = halves(call, words) if _macs(call) >= LEAST else None
        if parts is None:
            out.append(call)
            continue
        one, other = parts
        behind, turns = _bytes([other, SERVING]), LEAST_TURNS + TURNS * _macs(other)
        again = behind + _bytes([one, _call(JOIN, 0, turns)])
        out += [_call(FORK, behind), other, SERVING, one, _call(JOIN, again, turns)]
    return out


def _bytes(calls: Sequence[Call]) -> int:
    """Their size in the table."""
    return sum(4 * len(call.entry(0)) for call in calls)


def _macs(call: Call) -> int:
    """The multiply-accumulates of a convolution, depthwise or not, or of a dense layer; of others 0."""
    name, n = call.kernel.name, _numbers(call)
    if name.startswith("depthwise"):
        kh, kw = map(int, name.split("_")[1].split("x"))
        return kh * kw * n["C"] * n["rows"] * n["cols"]
    return n["K"] * n["N"] * n["rows"] * n["cols"] if name.startswith("conv") else 0


def halves(call: Call, words: int) -> tuple[Call, Call] | None:
    """A call in two, by rows, or else by columns or channels; None if it has too few of them. The second one is not the
    larger one, and has scratch memory of its own behind the first one's. words: as in `shared`."""
    n, depthwise = _numbers(call), call.kernel.name.startswith("depthwise")
    rows, cols, step = n["rows"], n["cols"], n["ystep"]
    row = n["xrow"] + (cols * n["xstep"] if depthwise else 0)
    if rows > 1:
        own = -(-rows // 2)
        first, other = {"rows": own}, {"rows": rows - own}
        moves = {"x": own * row, "y": own * (cols * step + n["ygap"])}
    elif depthwise:
        return None
    elif cols > 1:
        own = -(-cols // 2)
        first, other = {"cols": own}, {"cols": cols - own}
        moves = {"x": own * n["xstep"], "y": own * step}
    elif n["N"] >= 8:  # the kernel computes four at a time
        own = -(-n["N"] // 8) * 4
        first, other = {"N": own}, {"N": n["N"] - own}
        moves = {"w": own * n["K"], "q": 4 * words * own, "y": own}
        if other["N"] < 4:
            return None
    else:
        return None
    if not depthwise:
        moves["g"] = -(-n["K"] // 4) * 4
    moved = {field: n[field] + by for field, by in moves.items()}
    return Call(call.kernel, {**call.numbers, **first}), Call(call.kernel, {**call.numbers, **moved, **other})


def _numbers(call: Call) -> Mapping[str, Any]:
    return call.numbers
