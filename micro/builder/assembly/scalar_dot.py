"""Dense and convolution layers on the scalar machine: one position and four channels at a time.

A byte of the window is loaded once for four channels, so a product costs a load, a multiplication, an addition and a
quarter of a load. If the number of channels is not a multiple of four, some are computed twice. A window of several
runs is first copied to contiguous memory.
"""

from __future__ import annotations

from itertools import pairwise

from ..quantization.doubled import DoubledRequant
from ..quantization.reference import LIMIT, Requant
from . import scalar_doubled
from .frame import Frame
from .scalar import H0, H1, H2, H3, V0, V1, V2, V3, V4, V5, V6, V7, Scalar

SUMS = (H0, H1, H2, H3)

REQUANT = ("offset", "rest", "split", "mask", "low", "high")

UNROLL = 8

BYTE = 8

FRAME = Frame(
    (
        *("x", "y", "w", "q", "g", "K", "K8", "rest8", "lift", "N", "rows", "cols"),
        *("xstep", "xrow", "ystep", "ygap", "wz", "n0", "n1", "run4", "rest4", "after0", "after1"),
        *REQUANT,
    ),
    ("row", "col", "W", "Q", "Y", "t0", "xs", "rem"),
)
"""As dsp_dot.CONV. K8, rest8: a window's bytes divided by eight, and the remainder; run4, rest4: a run's bytes divided
by four."""


def halves(r: Requant) -> str:
    """How a sum's product with its multiplier is computed: "" in one, "bytes": that of its low byte apart, "split":
    that of `split` low bits."""
    if isinstance(r, DoubledRequant) or not r.split:
        return ""
    fits = _offset(r, BYTE) < LIMIT  # calls on Xtensa pass it as a small integer
    return "bytes" if r.split in (BYTE, BYTE + 1) and fits else "split"


def _offset(r: Requant, split: int) -> int:
    """As Requant.offset, with another split."""
    rest = r.shift - split
    return (r.zero << rest) + (1 << rest >> 1)


def requant_fields(r: Requant) -> dict[str, int]:
    """Values of REQUANT.

    Where 9 bits would be multiplied apart, 8 may be: the result is the same, and no number more than doubles, which a
    word of 32 bits has room for beside LIMIT.
    """
    if isinstance(r, DoubledRequant):
        return scalar_doubled.fields(r)
    split = BYTE if halves(r) == "bytes" else r.split
    return {
        "offset": _offset(r, split),
        "rest": r.shift - split,
        "split": split,
        "mask": (1 << split) - 1,
        "low": r.low,
        "high": r.high,
    }


def is_full(r: Requant, bits: int = 8) -> bool:
    """Whether outputs range over whole bytes, or other numbers of so many bits."""
    return (r.low, r.high) == (0, (1 << bits) - 1)


def requantize(
    a: Scalar, f: Frame, s: int, m: int, apart: str, spare: tuple[int, int], constants: tuple[int, int]
) -> None:
    """Requantize register s with the multiplier in m.

    apart: as `halves`; spare: registers that may be clobbered, the second one only if that is "split"; constants:
    registers with `offset` and `rest`.
    """
    first, second = spare
    offset, rest = constants
    if apart == "bytes":
        a.right_by(first, s, 8)
        a.times(first, m)
        a.low_byte(s)
        a.times(s, m)
        a.right_by(s, s, 8)
        a.plus(s, first)
    elif apart:
        a.get(second, f["split"])
        a.copy(first, s)
        a.right(first, second)
        a.times(first, m)
        a.get(second, f["mask"])
        a.bitwise_and(s, second)
        a.times(s, m)
        a.get(second, f["split"])
        a.right(s, second)
        a.plus(s, first)
    else:
        a.times(s, m)
    a.plus(s, offset)
    a.right(s, rest)


def clamp_to(a: Scalar, s: int, spare: int, bits: int, mark: str) -> None:
    """Clamp register s to 0 … 2**bits - 1."""
    a.right_by(spare, s, bits)
    a.go_if_zero_now(spare, f"clamped {mark}")
    a.number(s, 0)
    a.go_if_zero("lt", spare, f"clamped {mark}")
    a.number(s, 1)
    a.left(s, bits)
    a.step(s, -1)
    a.label(f"clamped {mark}")


def clamp(a: Scalar, f: Frame, s: int, first: int, mark: str, full: bool, bits: int = 8) -> None:
    """Clamp register s. Changes register `first`. full: to `bits` bits."""
    if full and bits > 8:
        clamp_to(a, s, first, bits, mark)
        return
    if full:
        a.right_by(first, s, 8)
        a.go_if_zero_now(first, f"byte {mark}")
        a.saturate(s)
        a.label(f"byte {mark}")
        return
    a.get(first, f["low"])
    a.go_if("ge", s, first, f"above {mark}")
    a.copy(s, first)
    a.label(f"above {mark}")
    a.get(first, f["high"])
    a.go_if("ge", first, s, f"below {mark}")
    a.copy(s, first)
    a.label(f"below {mark}")


def conv(
    a: Scalar, gather: bool, few: bool, apart: str, wide: bool, full: bool, how: str, adds: bool = False
) -> Scalar:
    """gather: the window has several runs; few: there are fewer than four channels, computed one by one; apart: as
    `halves`; wide: the outputs are 16-bit numbers; full: as `is_full`; how: as in
    scalar_doubled.rescaled, "" for other arithmetic; adds: to the numbers of 16 bits that are there, whose number is a
    multiple of four."""
    f = FRAME
    a.enter(f, {"x": "A", "y": "A", "w": "W", "q": "T", **({"g": "A"} if gather else {})})
    a.get(V0, f["x"])
    a.put(V0, f["row"])
    a.get(V0, f["cols"])
    a.put(V0, f["col"])
    a.label("position")
    _sum(a, f, gather)
    _channels(a, f, 1 if few else 4, apart, 2 if wide else 1, full, how, adds)
    a.get(V0, f["y"])
    a.get(V1, f["ystep"])
    a.plus(V0, V1)
    a.get(V2, f["x"])
    a.get(V1, f["xstep"])
    a.plus(V2, V1)
    a.get(V3, f["col"])
    a.step(V3, -1)
    a.go_if_not_zero_now(V3, "same row")
    a.get(V1, f["ygap"])
    a.plus(V0, V1)
    a.get(V2, f["row"])
    a.get(V1, f["xrow"])
    a.plus(V2, V1)
    a.put(V2, f["row"])
    a.get(V3, f["cols"])
    a.get(V4, f["rows"])
    a.step(V4, -1)
    a.put(V4, f["rows"])
    a.go_if_zero("eq", V4, "done")
    a.label("same row")
    a.put(V0, f["y"])
    a.put(V2, f["x"])
    a.put(V3, f["col"])
    a.go("position")
    a.label("done")
    a.leave(f)
    return a


def _sum(a: Scalar, f: Frame, gather: bool) -> None:
    """Sum the window's bytes, copying them to `g` if requested; stores the term that channels add to their biases in
    t0."""
    a.get(V0, f["x"])
    a.number(V2, 0)
    if gather:
        a.get(V1, f["g"])
        a.put(V1, f["xs"])
        a.get(V6, f["n0"])
        a.label("window rows")
        a.get(V5, f["n1"])
        a.label("runs")
    else:
        a.put(V0, f["xs"])
    for name, count in (("run4", 4), ("rest4", 1)):
        a.get(V4, f[name])
        a.go_if_zero("eq", V4, f"no {name}")
        a.label(name)
        for i in range(count):
            a.byte(V3, V0, i)
            if gather:
                a.store_byte(V3, V1, i)
            a.plus(V2, V3)
        a.step(V0, count)
        if gather:
            a.step(V1, count)
        a.step(V4, -1)
        a.go_if_not_zero_now(V4, name)
        a.label(f"no {name}")
    if gather:
        for name, counter, again in (("after1", V5, "runs"), ("after0", V6, "window rows")):
            a.get(V4, f[name])
            a.plus(V0, V4)
            a.step(counter, -1)
            a.go_if_not_zero_now(counter, again)
    a.get(V3, f["wz"])
    a.times(V2, V3)
    a.get(V3, f["lift"])
    a.plus(V2, V3)
    a.number(V3, 0)
    a.minus(V3, V2)
    a.put(V3, f["t0"])


def _requantize_sum(
    a: Scalar, f: Frame, k: int, apart: str, each: int, full: bool, how: str, bits: int, adds: bool
) -> None:
    """V0, the sum of channel `k` of a group, becomes a byte (or 16 bits)."""
    if not how:
        a.word(V1, V4, each * k + 4)
        requantize(a, f, V0, V1, apart, (V2, V3), (V6, V7))
        clamp(a, f, V0, V2, str(k), full, bits)
        return

    def upper(d: int) -> None:
        a.word(d, V4, each * k + 4)

    def lower(d: int) -> None:
        a.word(d, V4, each * k + 8)

    scalar_doubled.rescaled(a, f, V0, upper, lower, (V1, V2, V3, V6), str(k), how)
    if adds:
        a.byte(V1, V5, 2 * k + 1)
        a.left(V1, 8)
        a.plus(V0, V1)
        a.byte(V1, V5, 2 * k)
        a.plus(V0, V1)
    clamp(a, f, V0, V2, str(k), full, bits)


def _step_back(a: Scalar, size: int, each: int) -> None:
    """Where fewer than four channels are left, begin the next group of four so that it ends with them."""
    a.number(V3, 4)
    a.go_if("ge", V2, V3, "four are left")
    a.minus(V3, V2)  # step back by that many
    a.times(V0, V3)
    a.minus(V1, V0)
    if size == 2:
        a.minus(V5, V3)
    a.minus(V5, V3)
    a.number(V0, each)
    a.times(V3, V0)
    a.minus(V4, V3)
    a.number(V2, 4)
    a.label("four are left")


def _channels(a: Scalar, f: Frame, rows: int, apart: str, size: int, full: bool, how: str, adds: bool) -> None:
    """All channels of one position, `rows` at a time. If their number is not a multiple of `rows`, the last groups
    overlap."""
    each = 12 if how else 8
    for name, source in (("W", "w"), ("Q", "q"), ("Y", "y"), ("rem", "N")):
        a.get(V0, f[source])
        a.put(V0, f[name])
    a.label("channels")
    sums, weights = SUMS[:rows], (V3, V4, V5, V6)[:rows]
    a.get(V0, f["Q"])
    a.get(V2, f["t0"])
    for k, s in enumerate(sums):
        a.word(V1, V0, each * k)
        a.plus(V1, V2)
        a.copy(s, V1)
    a.get(V3, f["W"])
    a.get(V1, f["K"])
    for before, w in pairwise(weights):
        a.copy(w, before)
        a.plus(w, V1)
    a.get(V2, f["xs"])
    for name, count in (("K8", UNROLL), ("rest8", 1)):
        a.get(V7, f[name])
        a.go_if_zero("eq", V7, f"no {name}", far=count > 1)
        a.label(name)
        for i in range(count):
            a.byte(V0, V2, i)
            for w, s in zip(weights, sums, strict=True):
                a.byte(V1, w, i)
                a.times(V1, V0)
                a.plus(s, V1)
        for p in (V2, *weights):
            a.step(p, count)
        a.step(V7, -1)
        a.go_if_not_zero_now(V7, name)
        a.label(f"no {name}")
    a.get(V4, f["Q"])
    a.get(V5, f["Y"])
    a.get(V6, f["offset"])
    a.get(V7, f["rest"])
    for k, s in enumerate(sums):
        a.copy(V0, s)
        _requantize_sum(a, f, k, apart, each, full, how, 8 * size, adds)
        a.store_byte(V0, V5, size * k)
        if size == 2:  # byte by byte, because such numbers may be unaligned
            a.right_by(V0, V0, 8)
            a.store_byte(V0, V5, 2 * k + 1)
    a.get(V0, f["K"])
    a.get(V1, f["W"])
    a.get(V2, f["rem"])
    if rows == 4:
        a.copy(V3, V0)
        a.left(V3, 2)
        a.plus(V1, V3)
    else:
        a.plus(V1, V0)
    a.step(V4, each * rows)
    a.step(V5, size * rows)
    a.step(V2, -rows)
    a.go_if_zero("eq", V2, "all channels")
    if rows == 4:
        _step_back(a, size, each)
    a.put(V1, f["W"])
    a.put(V4, f["Q"])
    a.put(V5, f["Y"])
    a.put(V2, f["rem"])
    a.go("channels")
    a.label("all channels")
