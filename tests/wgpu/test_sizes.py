"""Open sizes of a plan: derived facts about them hold for every value."""

import random

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.sizes.polynomial import Polynomial, at
from emberlet.sizes.questions import common_divisor, divides, greater, known_equal, smaller
from emberlet.sizes.scope import Scope
from emberlet.sizes.size import is_open, least, most, surely_less
from emberlet.wgpu_backend.plan.counts import Counts, count, counts_of
from emberlet.wgpu_backend.plan.data import Plan
from emberlet.wgpu_backend.plan.open_ports import OpenPort, OtherSizes, sizes_of
from support.rows import every

RANGES = {"past": (0, 40), "new": (1, 9), "batch": (1, 6)}


def drawn(rng, sizes, depth):
    """A number computed from `sizes` by a random expression: (as Sizes, as a function of their numbers)."""
    if depth == 0:
        name = rng.choice([*sizes, None])
        number = rng.randint(0, 9)
        return (number, lambda env: number) if name is None else (sizes[name], lambda env: env[name])
    a, fa = drawn(rng, sizes, depth - 1)
    b, fb = drawn(rng, sizes, depth - 1)
    n = rng.randint(1, 7)
    kind = rng.randrange(9)
    if kind == 0:
        return a + b, lambda env: fa(env) + fb(env)
    if kind == 1:
        return a - b, lambda env: fa(env) - fb(env)
    if kind == 2:
        return a * b, lambda env: fa(env) * fb(env)
    if kind == 3:
        return a // n, lambda env: fa(env) // n
    if kind == 4:
        return a % n, lambda env: fa(env) % n
    if kind == 5:
        return greater(a, b), lambda env: max(fa(env), fb(env))
    if kind == 6:
        return a >> 2, lambda env: fa(env) >> 2
    if kind == 7:
        return a & 7, lambda env: fa(env) & 7
    return smaller(a, b), lambda env: min(fa(env), fb(env))


def scope_and_sizes(rng):
    scope = Scope()
    return scope, {n: scope.symbol(n, low, high, rng.randint(low, high)) for n, (low, high) in RANGES.items()}


def environments(rng, count=12):
    corners = [{n: r[0] for n, r in RANGES.items()}, {n: r[1] for n, r in RANGES.items()}]
    return corners + [{n: rng.randint(*r) for n, r in RANGES.items()} for _ in range(count)]


@every("seed", range(60), share=4)
def test_bounds_of_a_size_hold_for_every_number(seed):
    rng = random.Random(seed)
    scope, sizes = scope_and_sizes(rng)
    a, fa = drawn(rng, sizes, 3)
    b, fb = drawn(rng, sizes, 2)
    quotient = a // b if least(b) > 0 else None
    remainder = a % b if least(b) > 0 else None
    divisor = common_divisor(a, b)
    plan = Plan()
    counts_of(plan, scope)
    said = {
        n: count(v) for n, v in (("a", a), ("b", b), ("quotient", quotient), ("remainder", remainder)) if v is not None
    }
    for env in environments(rng):
        values = plan.counts.values(tuple(env[s[0]] for s in plan.counts.symbols))
        assert at(said["a"], values) == fa(env)
        assert at(said["b"], values) == fb(env)
        assert least(a) <= fa(env) <= most(a)
        if quotient is not None:
            assert at(said["quotient"], values) == fa(env) // fb(env)
            assert at(said["remainder"], values) == fa(env) % fb(env)
        if surely_less(a, b):
            assert fa(env) < fb(env)
        if known_equal(a, b):
            assert fa(env) == fb(env)
        if is_open(divisor) and divisor.at(values):
            assert fa(env) % divisor.at(values) == 0
            assert fb(env) % divisor.at(values) == 0
        if divides(4, a):
            assert fa(env) % 4 == 0


@every("seed", range(40), share=4)
def test_a_comparison_answers_alike_wherever_its_guards_hold(seed):
    rng = random.Random(1000 + seed)
    scope, sizes = scope_and_sizes(rng)
    a, fa = drawn(rng, sizes, 2)
    b, fb = drawn(rng, sizes, 2)
    answers = [a < b, a <= b, a > b, a >= b, a == b, a != b]
    plan = Plan()
    counts_of(plan, scope)
    for env in environments(rng):
        numbers = tuple(env[s[0]] for s in plan.counts.symbols)
        if plan.counts.refusal(numbers, plan.counts.values(numbers)) is None:
            x, y = fa(env), fb(env)
            assert answers == [x < y, x <= y, x > y, x >= y, x == y, x != y]


def test_counts_say_why_sizes_are_refused():
    counts = Counts([("past", 1, 64)], [0], [], [])
    assert "past is 65; the plan takes 1 to 64" in counts.refusal((65,), counts.values((65,)))


def test_only_sizes_that_an_assumption_is_about_are_named():
    half = ("//", Polynomial({(1,): 1}), 2)
    counts = Counts([("b", 0, 3), ("n", 0, 8)], [0, 1, half], [], [(Polynomial({(2,): 1}), "=", False, "")])
    assert counts.refusal((2, 1), counts.values((2, 1))) == "the plan is for other sizes than n 1"


def test_inputs_of_sizes_that_a_plan_does_not_serve_are_refused():
    other_than_three = (Polynomial({(0,): 1, (): -3}), "=", False, "")
    counts = Counts([("past", 1, 64)], [0], [], [other_than_three])
    port = OpenPort("cache", dtypes.float32, (Polynomial({(0,): 1}), 2), 0, counts)
    assert sizes_of(counts, [port], [np.zeros((64, 2), np.float32)]) == (64,)
    with pytest.raises(ValueError, match="past between 1 and 64, but got another size"):
        sizes_of(counts, [port], [np.zeros((65, 2), np.float32)])
    with pytest.raises(OtherSizes, match="made for other sizes: the plan is for other sizes than past 3"):
        sizes_of(counts, [port], [np.zeros((3, 2), np.float32)])
