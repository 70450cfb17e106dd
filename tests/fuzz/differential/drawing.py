"""Draws straight-line programs: the operands of each operation, and its arguments.

A `Pool` grows line by line. Every line is evaluated at once on NumPy, in the dtypes it names and again in float64, so
that the next line can be drawn from known shapes, dtypes and sizes. A value is *exact* when both agree on every element
and no operation that rounds lies before it. Operations that jump (floor, comparisons, argmax, sort, casts to integers)
are drawn over exact values only: for other values a last digit decides the result, and different results are all right.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import emberlet
import numpy as np
from emberlet.errors import EmberletError

from .straight import Input, Line, Program

LARGEST = 400  # elements of a value
REACH = 2000.0  # magnitude up to which a value is used further
FLOATS = ("float32", "float32", "float32", "float16", "bfloat16")
INTEGERS = ("int32", "int32", "int64", "int8", "uint8", "int16", "uint16", "uint32")
SIDES = (1, 1, 2, 3, 4, 5, 7, 8)


class Value(NamedTuple):
    """A value of the pool: its name, the tensor on NumPy, the same in float64, and whether it is exact."""

    name: str
    tensor: Any
    wide: Any
    exact: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> str:
        return str(self.tensor.dtype.name)

    @property
    def is_float(self) -> bool:
        return bool(self.tensor.dtype.is_float)

    @property
    def is_bool(self) -> bool:
        return bool(self.tensor.dtype.is_bool)

    @property
    def numbers(self) -> np.ndarray[Any, Any]:
        return np.asarray(self.wide)

    def within(self, low: float, high: float) -> bool:
        """Whether every element lies in [low, high]; NaN does not."""
        return not self.numbers.size or bool(np.all((self.numbers >= low) & (self.numbers <= high)))


class Skip(Exception):
    """The drawn operation does not fit, so another one is drawn."""


class Pool:
    """A program under construction."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.inputs: list[Input] = []
        self.lines: list[Line] = []
        self.values: list[Value] = []

    # -- what there is --------------------------------------------------------------------------------------------

    def pick(self, fits: Callable[[Value], bool] = lambda v: True) -> Value:
        """A value that fits, later ones more often."""
        fitting = [v for v in self.values if fits(v)]
        if not fitting:
            raise Skip
        return fitting[max(self.choose.randrange(len(fitting)) for _ in range(2))]

    def floats(self, fits: Callable[[Value], bool] = lambda v: True) -> Value:
        return self.pick(lambda v: v.is_float and fits(v))

    def ranked(self, least: int = 1, fits: Callable[[Value], bool] = lambda v: True) -> Value:
        return self.pick(lambda v: len(v.shape) >= least and fits(v))

    def axis(self, v: Value) -> int:
        axis = self.choose.randrange(len(v.shape))
        return axis - len(v.shape) if self.choose.random() < 0.3 else axis

    def axes(self, v: Value) -> tuple[int, ...] | None:
        if self.choose.random() < 0.2:
            return None
        count = self.choose.randint(1, len(v.shape))
        return tuple(self.choose.sample(range(len(v.shape)), count))

    # -- growing --------------------------------------------------------------------------------------------------

    def input(self, array: np.ndarray[Any, Any]) -> Value:
        name = f"x{len(self.inputs)}"
        self.inputs.append(Input(name, array))
        wide = array.astype(np.float64) if array.dtype.kind == "f" else array
        value = Value(name, emberlet.asarray(array, backend="numpy"), emberlet.asarray(wide, backend="numpy"), True)
        self.values.append(value)
        return value

    def add(self, text: str, *uses: Value, rounds: bool = False) -> Value:
        """One more line. rounds: whether implementations may differ in its last digits."""
        line = Line(f"v{len(self.lines)}", text, tuple(dict.fromkeys(v.name for v in uses)))
        names = {v.name: v for v in uses}
        program = Program(tuple(Input(n, np.zeros(0)) for n in names), (line,), (line.name,))
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                (found,) = program.function()(*[v.tensor for v in names.values()])
                (wide,) = program.function(wide=True)(*[v.wide for v in names.values()])
        except (EmberletError, ValueError, TypeError) as error:
            raise Skip from error
        if found.size > LARGEST or wide.dtype.is_float != found.dtype.is_float:
            raise Skip
        exact = all(v.exact for v in uses) and not (rounds and found.dtype.is_float)
        if not comparable(found, wide):
            raise Skip
        if found.dtype.is_float:
            narrow = np.asarray(found).astype(np.float64)
            exact = exact and bool(np.array_equal(narrow, np.asarray(wide, dtype=np.float64), equal_nan=True))
        self.lines.append(line)
        value = Value(line.name, found, wide, exact)
        self.values.append(value)
        return value

    def program(self, variant: Any) -> Program:
        """The program, which returns the last value and up to two others."""
        drawn = [v.name for v in self.values if v.name[0] == "v"]
        if not drawn:
            raise Skip
        others = self.choose.sample(drawn, min(len(drawn), self.choose.randint(0, 2)))
        outputs = tuple(dict.fromkeys([drawn[-1], *others]))
        return Program(tuple(self.inputs), tuple(self.lines), outputs, variant)._pruned(outputs)


def comparable(found: Any, wide: Any) -> bool:
    """Whether all backends must agree on a value: not for very large floats, for an integer that a last digit decided,
    or for one beyond what a plan holds."""
    if found.dtype.is_float:
        numbers = np.asarray(wide, dtype=np.float64)
        finite = numbers[np.isfinite(numbers)]
        return not finite.size or bool(np.abs(finite).max() <= REACH)
    return bool(np.array_equal(np.asarray(found), np.asarray(wide))) and _held(found)


def _held(x: Any) -> bool:
    """Whether x fits the GPU's words: plans take 64-bit integers as 32-bit ones and check them."""
    if x.dtype.bits < 64 or not x.size:
        return True
    numbers = np.asarray(x)
    least, most = (-(1 << 31), (1 << 31) - 1) if x.dtype.kind == "int" else (0, (1 << 32) - 1)
    return bool(numbers.min() >= least and numbers.max() <= most)


def shape(choose: random.Random, least: int = 0, most: int = 4) -> tuple[int, ...]:
    """A shape of few elements: unit axes often, empty ones now and then."""
    sides = [choose.choice(SIDES) for _ in range(choose.randint(least, most))]
    if sides and choose.random() < 0.03:
        sides[choose.randrange(len(sides))] = 0
    while np.prod(sides, dtype=int) > LARGEST // 2:
        sides[sides.index(max(sides))] //= 2
    return tuple(sides)


def array(choose: random.Random, of: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Elements whose sums and products are exact (quarters, small integers), rarely -0, infinities and NaN."""
    count = int(np.prod(of, dtype=int))
    if dtype == "bool":
        return np.array([choose.random() < 0.5 for _ in range(count)], bool).reshape(of)
    if dtype.startswith("float"):
        odd = [0.0, -0.0, float("inf"), float("-inf"), float("nan")] if choose.random() < 0.05 else []
        drawn = [
            choose.choice(odd) if odd and choose.random() < 0.1 else choose.randint(-16, 16) / 4 for _ in range(count)
        ]
        return np.array(drawn, dtype).reshape(of)
    low, high = (0, 20) if dtype.startswith("uint") else (-10, 10)
    if choose.random() < 0.1:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        if dtype == "int64":
            low, high = -(1 << 31), (1 << 31) - 1
    return np.array([choose.randint(low, high) for _ in range(count)], dtype).reshape(of)


def number(choose: random.Random, v: Value) -> str:
    """A constant for an operation with v, as text; sometimes a difficult one."""
    if v.is_bool:
        return choose.choice(["True", "False"])
    if not v.is_float:
        return str(choose.choice([0, 1, 2, 3, 5, 7] + ([-1, -2, -3] if v.dtype[0] == "i" else [])))
    return choose.choice(["0.0", "1.0", "-1.0", "2.0", "0.5", "-0.25", "3.0", "-2.0", "-0.0", "1.5", "0.75", "10.0"])
