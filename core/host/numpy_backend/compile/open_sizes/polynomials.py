"""Polynomials of second degree in the open lengths, found from their values at points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from .....backend.tracing import ValueNeeded

CAPACITY = "room"  # the symbol for the capacity, in positions, of the states' arrays


class Polynomials:
    """Polynomials of second degree in some symbols, given by their values at points."""

    def __init__(self, symbols: list[str], points: list[dict[str, int]]) -> None:
        self.symbols = symbols
        self._monomials = [m for degree in range(3) for m in combinations_with_replacement(symbols, degree)]
        self._at = np.array([self._row(p) for p in points], np.int64)
        try:
            self._inverse = np.linalg.inv(self._at[: len(self._monomials)].astype(np.float64))
        except np.linalg.LinAlgError:
            raise ValueNeeded("the lengths that were tried do not tell polynomials apart") from None
        self._numbers: dict[tuple[int, ...], int] = {}
        self._known: list[tuple[int, ...]] = []
        self.coefficients = np.zeros((0, len(self._monomials)), np.int64)

    @staticmethod
    def points_needed(symbols: int) -> int:
        """The number of points: one more than a polynomial has coefficients."""
        return 2 + symbols + symbols * (symbols + 1) // 2

    def _row(self, numbers: dict[str, int]) -> list[int]:
        return [math.prod(numbers[s] for s in m) for m in self._monomials]

    def number(self, found: Sequence[int]) -> int:
        """The index of the polynomial with these values at the points."""
        key = tuple(found)
        if key not in self._numbers:
            self._numbers[key] = len(self._known)
            self._known.append(key)
        return self._numbers[key]

    def solve(self) -> None:
        """Find the coefficients. Raises ValueNeeded if no polynomial with integer coefficients has the values."""
        wanted = np.array(self._known, np.int64).reshape(len(self._known), len(self._at)).T
        found = np.rint(self._inverse @ wanted[: len(self._inverse)].astype(np.float64)).astype(np.int64)
        if not np.array_equal(self._at @ found, wanted):
            raise ValueNeeded("an array's place does not follow from the open lengths by a polynomial")
        self.coefficients = np.ascontiguousarray(found.T)

    def evaluate(self, numbers: dict[str, int]) -> list[int]:
        """The values of all of them."""
        out: list[int] = (self.coefficients @ np.array(self._row(numbers), np.int64)).tolist()
        return out

    def grows(self, number: int) -> bool:
        """Whether a polynomial never decreases as lengths grow."""
        return bool((self.coefficients[number][1:] >= 0).all())

    def may_be_negative(self, number: int) -> bool:
        """Whether a polynomial that does not depend on a capacity may be less than 0 for lengths of 1 or more."""
        row = self.coefficients[number]
        if any(c and CAPACITY in m for c, m in zip(row, self._monomials, strict=True)):
            return False
        return not self.grows(number) or int(row.sum()) < 0
