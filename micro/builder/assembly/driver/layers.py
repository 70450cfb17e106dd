"""What the driver runs beside kernels: loops, copies, borders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import prod

from ...emit.ranks import is_forest
from ...kernels.layer import Layer, View
from ...kernels.move import Border, Copy, Move, Part
from ...kernels.nest import Axis, merged
from ...program import Port, Program
from ..frame import Frame
from ..scalar import Scalar
from ..scalar_rv32 import ScalarRv32
from ..scalar_thumb import ScalarThumb
from . import Begin, Call, Kernel, forest, listed, moves, numbers, ranks, rv32, thumb
from .loops import REPEAT

BEGIN: dict[str, Begin] = {"dsp": thumb.begin, "thumb": thumb.begin, "rv32": rv32.begin}
"""The families of instruction sets that have a driver."""

_LOOPS = {"dsp": (thumb.repeat, thumb.again), "thumb": (thumb.repeat, thumb.again), "rv32": (rv32.repeat, rv32.again)}
_SCALAR: dict[str, type[Scalar]] = {"dsp": ScalarThumb, "thumb": ScalarThumb, "rv32": ScalarRv32}


@cache
def _moving(make: Callable[[Scalar, str], Scalar], family: str, how: str) -> Callable[[], Scalar]:
    return lambda: make(_SCALAR[family](), how)


MOST_BLOCKS = 8
"""A part of a Move with more blocks of rows runs in viper."""


def _move(name: str, make: Callable[[Scalar, str], Scalar], frame: Frame, family: str, *numbers: int | str) -> Kernel:
    """The kernel that moves bytes, as moves.py says. numbers: what must be whole words to be aligned. ARMv7E-M loads
    and stores words at any address."""
    if all(isinstance(n, int) and n % 4 == 0 for n in numbers):
        return Kernel(f"{name}_words", _moving(make, family, "aligned"), frame)
    return Kernel(name, _moving(make, family, "words" if family == "dsp" else "bytes"), frame)


_NUMBERS: dict[str, type[numbers.Numbers]] = {
    "dsp": numbers.NumbersThumb,
    "thumb": numbers.NumbersThumb,
    "rv32": numbers.NumbersRv32,
}


_FORESTS: dict[str, type[forest.Forest]] = {
    "dsp": forest.ForestDsp,
    "thumb": forest.ForestThumb,
    "rv32": forest.ForestRv32,
}


def _numbers(family: str) -> Scalar:
    return numbers.numbers(_NUMBERS[family]())


def _ranks(family: str, wide: bool) -> Scalar:
    return ranks.ranks(_NUMBERS[family](), wide)


def _forest(family: str) -> Scalar:
    return forest.forest(_FORESTS[family]())


def _listed(family: str) -> Scalar:
    return listed.listed(_NUMBERS[family]())


def numbers_put(family: str, y: int, count: int, zero: int, each: int) -> list[Call]:
    """The calls that write numbers into an input: one for each of numbers.WAYS. each: words from one number's step to
    the next one's."""
    kernel = Kernel("put", partial(_numbers, family), numbers.FIELDS)
    own: dict[str, int | str] = {"x": "i", "y": y, "count": count, "zero": zero, "each": 4 * each}
    return [Call(kernel, {**own, "way": way}) for way in numbers.WAYS]


def numbers_ranked(family: str, program: Program) -> list[Call]:
    """As numbers_put, for an input of ranks; the calls of a model that `is_forest` also run it."""
    (port,) = program.inputs
    if is_forest(program):
        own = forest.fields(program)
        kernel = Kernel("forest", partial(_forest, family), forest.FRAME)
        return [Call(kernel, {**own, "way": way}) for way in numbers.WAYS]
    wide = port.size > len(port.cuts or ())
    kernel = Kernel("rank", partial(_ranks, family, wide), numbers.FIELDS)
    own = {"x": "i", "y": port.place, "count": len(port.cuts or ()), "zero": 0, "each": 0}
    return [Call(kernel, {**own, "way": way}) for way in numbers.WAYS]


def numbers_listed(family: str, port: Port) -> Call:
    """The call that writes an output's numbers to where the driver's last argument says."""
    return Call(Kernel("listed", partial(_listed, family), listed.FIELDS), listed.fields(port))


def repeated(
    family: str, times: int, first: tuple[int, int], step: tuple[int, int], calls: Sequence[Call]
) -> list[Call]:
    """A loop. first: the initial offsets "i" and "o"; step: by how much they grow in a turn."""
    repeat, again = _LOOPS[family]
    numbers = {"times": times, "istep": step[0], "ostep": step[1], "first": first[0], "to": first[1]}
    begin = Call(Kernel("repeat", repeat, Frame(tuple(REPEAT))), numbers)
    return [begin, *calls, Call(Kernel("again", again, Frame(())), {})]


def copied(family: str, x: int | str, y: int | str, size: int, rows: int = 1, gaps: tuple[int, int] = (0, 0)) -> Call:
    """A copy of rows of `size` bytes, with gaps behind each."""
    n8, rest = divmod(size, moves.EIGHT)
    numbers = {"x": x, "y": y, "rows": rows, "n8": n8, "rest": rest, "xgap": gaps[0], "ygap": gaps[1]}
    return Call(_move("copy", moves.copy, moves.COPY, family, x, y, size + gaps[0], size + gaps[1]), numbers)


def filled(family: str, y: int, size: int, value: int, rows: int = 1, gap: int = 0) -> Call:
    """Rows of `size` equal bytes."""
    n8, rest = divmod(size, moves.EIGHT)
    numbers: dict[str, int | str] = {"y": y, "value": value, "rows": rows, "n8": n8, "rest": rest, "ygap": gap}
    return Call(_move("fill", moves.fill, moves.FILL, family, y, size + gap), numbers)


def moved(
    layer: Layer, family: str, inputs: Sequence[View], output: View, places: Mapping[str, int]
) -> list[Call] | None:
    """The calls of a layer that copies bytes or fills borders, else None."""
    if family not in BEGIN:
        return None
    if isinstance(layer, Move):
        return _parts(layer, family, places)
    if isinstance(layer, Border) and layer.width == 1:
        return [
            filled(family, places["o"] + start, length, int(layer.fill), rows, layer.view.pitch - length)
            for start, rows, length in layer.parts
        ]
    if isinstance(layer, Copy):
        x, y = inputs[0], output
        rows, row = x.shape[0], x.row
        if x.pitch == y.pitch == row:
            rows, row = 1, rows * row
        gaps = (x.pitch - row, y.pitch - row) if rows > 1 else (0, 0)
        return [copied(family, places["i0"] + x.origin, places["o"] + y.origin, row, rows, gaps)]
    return None


def _parts(layer: Move, family: str, places: Mapping[str, int]) -> list[Call] | None:
    """The calls of a layer whose parts are rows of bytes, or None if some are not, or are looked up in a table."""
    made: list[Call] = []
    if layer.fill is not None:
        if layer.width != 1:
            return None
        made.append(filled(family, places["o"], prod(layer.shape), int(layer.fill)))
    for k, part in enumerate(layer.parts):
        rows = _rows(part, family, places[f"i{k}"] + part.start, places["o"] + part.to)
        if rows is None:
            return None
        made += rows
    return made


def _rows(part: Part, family: str, x: int, y: int) -> list[Call] | None:
    axes = merged(part.axes)
    if not axes or axes[-1].steps != (1, 1):
        axes.append(Axis(1, (1, 1)))
    *blocks, row, run = [*[Axis(1, (0, 0))] * (3 - len(axes)), *axes]
    if part.table is not None or len(blocks) > 1 or blocks[0].turns > MOST_BLOCKS or run.turns < 4:
        return None
    size, block = run.turns, blocks[0]
    gaps = (row.steps[0] - size, row.steps[1] - size) if row.turns > 1 else (0, 0)
    return [
        copied(family, x + n * block.steps[0], y + n * block.steps[1], size, row.turns, gaps)
        for n in range(block.turns)
    ]
