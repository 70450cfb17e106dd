"""Simplified index expressions have the same value."""

from __future__ import annotations

import math
import random

from emberlet.wgpu_backend.lower import index as ix
from support.rows import every


def _factors(n: int, choose: random.Random) -> list[int]:
    out = []
    while n > 1:
        d = choose.choice([k for k in range(2, n + 1) if n % k == 0])
        out.append(d)
        n //= d
    choose.shuffle(out)
    return out or [1]


def _unflatten(flat: int, shape: list[int]) -> list[int]:
    out = []
    for d in reversed(shape):
        out.append(flat % d)
        flat //= d
    return out[::-1]


def _flatten(at: list[int], shape: list[int]) -> int:
    flat = 0
    for i, d in zip(at, shape, strict=True):
        flat = flat * d + i
    return flat


@every("seed", range(150), share=4)
def test_moves_composed_symbolically_give_the_positions_of_moves_composed_in_numbers(seed: int) -> None:
    choose = random.Random(seed)
    shape = _factors(choose.choice([24, 30, 36, 60, 64]), choose)
    count = math.prod(shape)
    symbolic = ix.unflatten(ix.counter("g", count), shape)
    numbers = [_unflatten(g, shape) for g in range(count)]
    for _ in range(choose.randint(1, 5)):
        kind = choose.random()
        if kind < 0.5:
            new = _factors(math.prod(shape), choose)
            symbolic = ix.unflatten(ix.flatten(symbolic, shape), new)
            numbers = [_unflatten(_flatten(n, shape), new) for n in numbers]
            shape = new
        elif kind < 0.75:
            order = list(range(len(shape)))
            choose.shuffle(order)
            shape = [shape[i] for i in order]
            symbolic = [symbolic[i] for i in order]
            numbers = [[n[i] for i in order] for n in numbers]
        else:
            axis = choose.randrange(len(shape))
            low, step = choose.randint(0, 3), choose.choice([1, 2, 3, -1, -2, -3])
            reach = (shape[axis] - 1) * abs(step)
            first = low + (reach if step < 0 else 0)
            shape[axis] = low + reach + 1 + choose.randint(0, 2)
            moved = ix.add(ix.mul(symbolic[axis], step), ix.const(first))
            symbolic[axis] = moved.bounded(0, shape[axis] - 1)
            for n in numbers:
                n[axis] = n[axis] * step + first
    flat = ix.flatten(symbolic, shape)
    for g in range(count):
        value = ix.evaluate(flat, lambda _, g=g: g)
        assert value == _flatten(numbers[g], shape)
        assert flat.lo <= value <= flat.hi


def test_splitting_and_merging_an_axis_cancels_out() -> None:
    g = ix.counter("g", 96)
    assert ix.flatten(ix.unflatten(g, (4, 6, 4)), (4, 6, 4)).key == g.key
    assert ix.flatten(ix.unflatten(ix.flatten(ix.unflatten(g, (8, 12)), (8, 12)), (2, 48)), (2, 48)).key == g.key


def test_negative_positions_are_rendered_as_wrapping_unsigned_arithmetic() -> None:
    at = ix.add(ix.counter("g", 8), ix.const(-1))
    assert ix.render(at, lambda a: "g") == "(g - 1u)"
