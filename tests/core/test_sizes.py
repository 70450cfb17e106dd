"""Symbolic sizes compute the same as Python's integers, and their facts are as exact as possible without a value."""

from __future__ import annotations

import itertools
import math
import random
import types
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

import pytest
from emberlet.shapes import broadcast
from emberlet.sizes import questions, size
from emberlet.sizes.questions import assume_equal, divides, known_equal, within_words
from emberlet.sizes.scope import HIGHEST, Scope
from emberlet.sizes.size import SizeNeeded, is_open, least, most, surely_less, typical
from emberlet.wgpu_backend.plan.counts import counts_of
from support.rows import every

RANGES = {"n": (1, 5), "m": (2, 4), "past": (0, 6)}
TYPICAL = {"n": 4, "m": 3, "past": 5}


def symbols() -> tuple[Scope, dict[str, Any]]:
    scope = Scope()
    return scope, {name: scope.symbol(name, *RANGES[name], TYPICAL[name]) for name in RANGES}


def numbers() -> Iterator[dict[str, int]]:
    for values in itertools.product(*[range(low, high + 1) for low, high in RANGES.values()]):
        yield dict(zip(RANGES, values, strict=True))


def atoms(scope: Scope, at: Mapping[str, int]) -> list[int]:
    """The values of a scope's atoms, computed by Python."""
    values: list[int] = []
    for atom in scope.atoms:
        if isinstance(atom, str):
            values.append(at[atom])
            continue
        a, b = (number(x, values) for x in atom[1:])
        values.append(max(a, b) if atom[0] == "max" else a // b)
    return values


def valid(scope: Scope, values: list[int]) -> bool:
    """Whether every guard gives the noted answer."""
    found = [(x.at(values), relation, answer) for x, relation, answer, _ in scope.guards]
    return all((x < 0 if relation == "<" else x == 0) == answer for x, relation, answer in found)


def number(x: Any, values: list[int]) -> Any:
    if isinstance(x, tuple):
        return tuple(number(v, values) for v in x)
    return x.at(values) if is_open(x) else x


OPERATIONS = """
n + m; n + 3; 3 + n; n - m; n - 7; 7 - n; n * past; n * 3; 3 * n; n + True; True - past; -n; +n; ~n; ~past + n
n // m; n // 3; 17 // n; 17 // m; past // n; (past + 5) // m; past // (n * m); (past * n + past) // n; n // -2; -n // m
-17 // m; n % m; n % 3; 17 % n; past % (n + 1); n % -4; divmod(past, m); divmod(23, m); divmod(past * n, 4)
n ** 0; n ** 1; past ** 3; n << 3; past << 0; past >> 1; n >> 0; past & 3; 7 & past; n & 1; abs(n); abs(-n)
abs(past - 9); round(n); math.floor(past); math.ceil(past); math.trunc(n * m); (n * m * 6 + 9) // 3
(n * m + 3 * m) // m; ((n + 1) * m + n + 1) // (n + 1); (n * m * 64 - 1) // (m * 64); (past + n * 4) // 4
(2 * n - 3) // (n + 1); (past + 10) // 20; (past + 20) // 20; (past - 6) // 7; (n * m - m) // m
""".replace("\n", ";").split(";")


@every("text", [text.strip() for text in OPERATIONS if text.strip()])
def test_an_operation_gives_what_it_gives_for_every_number(text: str) -> None:
    scope, sizes = symbols()
    found = eval(text, {"math": math, **sizes})
    tried = 0
    for at in numbers():
        values = atoms(scope, at)
        if valid(scope, values):
            assert number(found, values) == eval(text, {"math": math, **at}), at
            tried += 1
    assert tried


KNOWN = {
    "n + m - n": "m",
    "n - n": "0",
    "0 * n": "0",
    "3 - n": "- n + 3",
    "m * n * 4 - 1": "4 * n * m - 1",
    "n * n - 2 * n": "n * n - 2 * n",
    "(6 * n + 9) // 3": "2 * n + 3",
    "(n * m + 3 * m) // m": "n + 3",
    "((n + 1) * m + n + 1) // (n + 1)": "m + 1",
    "(n * m * 64 - 1) // (m * 64)": "n - 1",
    "(n * m + 1) // m": "n",
    "(n * m + m + 1) // m": "n + 1",
    "(n * m - m) // m": "n - 1",
    "(past + n * 4) // 4": "n + ((past) // (4))",
    "(past + 10) // 20": "0",
    "(past + 20) // 20": "1",
    "(past - 6) // 7": "((past + 1) // (7)) - 1",
    "(past - 7) // 7": "-1",
    "-n // -m": "((n) // (m))",
    "n // n": "1",
    "n % 1": "0",
    "4 * n % 2": "0",
    "(4 * n + 5) % 4": "1",
    "greater(n, m)": "((n) max (m))",
    "greater(n, n + 1)": "n + 1",
    "greater(n + 1, n)": "n + 1",
    "greater(n, 0)": "n",
    "greater(1, n)": "n",
    "greater(2, n)": "((2) max (n))",
    "greater(9, n)": "9",
    "greater(5, n)": "5",
    "greater(3, 8)": "8",
    "smaller(n, n - 2)": "n - 2",
    "smaller(8, 3)": "3",
    "smaller(5, n)": "n",
    "common_divisor(12, 18)": "6",
    "common_divisor(-4, 6)": "2",
    "common_divisor(0, n)": "n",
    "common_divisor(n, 0)": "n",
    "common_divisor(4 * n, 6 * n)": "2 * n",
    "common_divisor(4 * n, 6 * m)": "2",
    "common_divisor(12, 8 * m)": "4",
    "common_divisor(n * m, n * past)": "n",
    "common_divisor(6 * n * m + 6 * n, 4 * n)": "2 * n",
    "common_divisor(4 * n, 6 * n * m + 6 * n)": "2 * n",
    "common_divisor(n * n * m, n * n * past + n * n)": "n * n",
    "positive(0)": "1",
    "positive(7)": "7",
    "positive(past)": "past",
    "typical(n * m - past)": "7",
    "typical(past // m)": "1",
    "typical(greater(past, m))": "5",
    "typical(11)": "11",
}


@every("text", KNOWN)
def test_expressions_are_simplified_without_a_guard(text: str) -> None:
    scope, sizes = symbols()
    found = eval(text, {**vars(size), **vars(questions), **sizes})
    assert (repr(found), scope.guards) == (KNOWN[text], [])
    assert is_open(found) == (not KNOWN[text].lstrip("-").isdigit())


BOUNDS = {
    "n": (1, 5), "past // m": (0, 3), "(past + 5) // m": (1, 5), "(past - 4) // m": (-2, 1), "17 // n": (3, 17),
    "past // 4": (0, 1), "greater(n, m)": (2, 5), "smaller(n, m)": (1, 4), "(n - 1) * (m - 2)": (0, 8), "9": (9, 9),
    "n * m - past": (-4, 20),
}  # fmt: skip


@pytest.mark.parametrize("text", BOUNDS)
def test_the_bounds_of_an_expression(text: str) -> None:
    found = eval(text, {**vars(size), **vars(questions), **symbols()[1]})
    assert (least(found), most(found)) == BOUNDS[text]


@every("seed", range(20), share=3)
def test_the_bounds_of_a_polynomial_are_those_of_its_terms_above_the_lowest_values(seed: int) -> None:
    draw = random.Random(seed)
    _, sizes = symbols()
    constant = draw.randint(-9, 9)
    x, low, high = constant, constant, constant
    for _ in range(draw.randint(1, 4)):
        chosen, c = draw.sample(sorted(RANGES), draw.randint(1, 3)), draw.randint(1, 5)
        width = math.prod(RANGES[s][1] - RANGES[s][0] for s in chosen)
        x += c * math.prod(sizes[s] - RANGES[s][0] for s in chosen)
        high += c * width
    assert (least(x), most(x)) == (low, high)
    assert (least(-x), most(-x)) == (-high, -low)
    assert surely_less(x, high + 1) and surely_less(low - 1, x)
    assert not surely_less(x, high) and not surely_less(low, x)


def test_bounds_beyond_any_length_count_as_none() -> None:
    n = Scope().symbol("n", 0, HIGHEST, 5)
    assert HIGHEST == 1 << 20
    assert (least(-(n**3)), most(n**3)) == (-(1 << 60), 1 << 60)
    assert (least(-(n**4)), most(n**4)) == (-(1 << 62), 1 << 62)


# The answer for the typical values, and the guard: the size that is compared with 0, or None if every value gives the
# same answer.
COMPARISONS = {
    "past + 1 > past": (True, None),
    "n >= 1": (True, None),
    "n > 0": (True, None),
    "n <= 5": (True, None),
    "n < 1": (False, None),
    "n < 6": (True, None),
    "n > 5": (False, None),
    "n >= 6": (False, None),
    "n < 5": (True, "n - 5 < 0"),
    "n >= 5": (False, "n - 5 < 0"),
    "n > 4": (False, "n - 5 < 0"),
    "n <= 4": (True, "n - 5 < 0"),
    "n > 3": (True, "n - 4 < 0"),
    "n == 0": (False, None),
    "n != 6": (True, None),
    "n == 4": (True, "n - 4 == 0"),
    "n != 5": (True, "n - 5 == 0"),
    "n == 1": (False, "n - 1 == 0"),
    "bool(n)": (True, None),
    "bool(past)": (True, "past == 0"),
    "2 * n == 5": (False, None),
    "2 * n == 4 * m + 1": (False, None),
    "3 * n == 12": (True, "n - 4 == 0"),
    "n * past == n * 5": (True, "past - 5 == 0"),
    "past * past == past": (False, "past * past - past == 0"),
    "past * n == 0": (False, "past == 0"),
    "past - n == 1": (True, "- n + past - 1 == 0"),
    "n - past == -1": (True, "- n + past - 1 == 0"),
    "n == None": (False, None),
    "n != 'n'": (True, None),
    "n == 2.5": (False, None),
    "n != 2.5": (True, None),
    "n < 4.5": (True, "n - 5 < 0"),
    "n < 4.0": (False, "n - 4 < 0"),
    "n <= 4.5": (True, "n - 5 < 0"),
    "n > 2.5": (True, "n - 3 < 0"),
    "n >= 2.5": (True, "n - 3 < 0"),
    "past > -0.5": (True, None),
    "past < -0.5": (False, None),
    "n == 4.0": (True, "n - 4 == 0"),
    "n < float('inf')": (True, None),
    "n > float('-inf')": (True, None),
    "n == float('nan')": (False, None),
    "n < float('nan')": (False, None),
}


@every("text", COMPARISONS)
def test_a_comparison_notes_a_guard_only_where_values_differ(text: str) -> None:
    scope, sizes = symbols()
    for _ in range(2):  # the answer is remembered
        answer = eval(text, sizes)
        guards = [f"{x!r} {relation} 0" for x, relation, *_ in scope.guards]
        assert (answer, *guards) == tuple(part for part in COMPARISONS[text] if part is not None)
    for at in numbers():
        if valid(scope, atoms(scope, at)):
            assert eval(text, at) == answer


def test_a_size_is_not_ordered_with_what_is_no_number() -> None:
    n = symbols()[1]["n"]
    for text in ("n < 'a'", "n >= None", "n > []", "n <= 'a'", "n + 'a'", "None - n", "n // 'a'", "'a' // n",
                 "n * None", "n % None", "n / 'a'", "'a' / n", "() % n"):  # fmt: skip
        with pytest.raises(TypeError):
            eval(text, {"n": n})


@pytest.mark.parametrize("text", ["n // 0", "n % 0", "3 // (n - n)", "divmod(n, 0)"])
def test_a_size_divided_by_zero_is_an_error(text: str) -> None:
    with pytest.raises(ZeroDivisionError):
        eval(text, symbols()[1])


def test_what_is_asked_for_a_number_says_who_asked() -> None:
    scope, sizes = symbols()

    def asks(x: Any) -> Any:
        return x()

    n, m, past = sizes["n"], sizes["m"], sizes["past"]
    cases = [
        (lambda: range(n), "the number of the open size n is needed", ["n"]),
        (lambda: int(n * past), r"the number of the open size n \* past", ["n", "past"]),
        (lambda: float(past // m + n), "a float of the open size", ["n", "past", "m"]),
        (lambda: n / 2, "a float of the open size n is", ["n"]),
        (lambda: 2 / n, "a float of the open size n is", ["n"]),
        (lambda: n / 0.5, "a float of the open size n is", ["n"]),
        (lambda: n**-1, "a float of the open size n is", ["n"]),
        (lambda: n**0.5, "a float of the open size n is", ["n"]),
        (lambda: n & 6, "the number of the open size n is", ["n"]),
        (lambda: n & -1, "the number of the open size n is", ["n"]),
        (lambda: past // (n - m - 1), "the sign of the open size n - m - 1 is", ["n", "m"]),
    ]
    for call, words, names in cases:
        with pytest.raises(SizeNeeded, match=f"{words}.*, by <lambda> in {__name__}") as caught:
            asks(call)
        assert sorted(caught.value.symbols) == sorted(names)
    assert SizeNeeded.symbols == () and not [g for g in scope.guards if g[1] == "=="]


def test_a_number_divided_by_a_size_is_not_that_size_divided_by_a_number() -> None:
    scope, sizes = symbols()
    found = [(sizes["n"] + k, k) for k in range(2, 9)]
    for x, _ in found:
        for number in range(2, 20):
            x // number, number // x
    values = atoms(scope, {"n": 5, "m": 3, "past": 6})
    for x, k in found:
        for number in range(2, 20):
            assert (x // number).at(values) == (5 + k) // number if is_open(x // number) else True
            assert (number // x).at(values) == number // (5 + k) if is_open(number // x) else True


def test_only_a_comparison_that_is_named_so_is_assumed() -> None:
    scope, sizes = symbols()
    n, m = sizes["n"], sizes["m"]
    before = len(scope.guards)
    for a, b in ((n, 1), (1, n), (n, int(typical(n))), ((n, 3), (4, 3)), ((n, 3), (m, 3)), (n, m), (n, n + 1)):
        assert not assume_equal(a, b, "reshape")
    for a, b in ((n, n), ((n, 3), (n, 3)), (n + 1, 1 + n), (4, 4), ((), ())):
        assert assume_equal(a, b, "reshape")
    assert len(scope.guards) == before
    renamed = FunctionType(broadcast.__code__.replace(co_name="other"), broadcast.__globals__, "other")
    for call in (broadcast, renamed):
        assert call((n, 1), (1, 4)) == (n, 4)
        assert len(scope.guards) == before
    assert n != int(typical(n)) + 1 and len(scope.guards) == before + 1


def test_a_size_among_others_is_an_integer_with_a_name() -> None:
    scope, sizes = symbols()
    n, m = sizes["n"], sizes["m"]
    assert isinstance(n, int) and is_open(n) and not is_open(4)
    assert str(n) == f"sizes.n{n.number}" == f"{n}" == f"{n:>3}"
    assert hash(n + m) == hash(m + n) and (n + m).number == (m + n).number != (n - m).number
    assert scope.place((n + m).number) == scope.place((m + n).number) == 0
    assert scope.place(n.number) == 1 and scope.place((n + m).number) == 0
    assert [repr(x) for x in scope.block] == ["n + m", "n"]
    assert repr(scope.size((n + m).number)) == "n + m" and scope.size(99) is None
    assert repr(scope.symbol("n", 1, 5, 4)) == "n" and len(scope.atoms) == 3


def test_a_size_in_steps_knows_its_remainder() -> None:
    scope = Scope()
    n = scope.symbol("n", 5, 29, 13, 8)
    assert (least(n), most(n), typical(n)) == (5, 29, 13)
    assert known_equal(n % 8, 5) and known_equal(n % 4, 1) and divides(8, n + 3) and not divides(8, n)
    served = [v for v in range(5, 30) if valid(scope, atoms(scope, {"n": v}))]
    assert served == [5, 13, 21, 29]


def test_questions_about_numbers_and_sizes() -> None:
    _, sizes = symbols()
    n, m, past = sizes["n"], sizes["m"], sizes["past"]
    for yes in (known_equal(3, 3), known_equal(n + 0, n), known_equal((n, 4), (n, 4)), known_equal((), ()),
                known_equal((n + m, 1), (m + n, 1)),
                divides(4, 8), divides(n, 6 * n), divides(2, 4 * n + 6), divides(2 * n, 4 * n * m + 2 * n),
                surely_less(3, 4), surely_less(past, 7), surely_less(n, n + 1), known_equal("a", "a")):  # fmt: skip
        assert yes
    for no in (known_equal(3, 4), known_equal(n, m), known_equal(n, 4), known_equal(4, n),
               known_equal((n, 4), (n, 5)), known_equal((n,), (n, 1)),
               known_equal((m, 4), (n, 4)), divides(3, 8), divides(n, n * m + 1), divides(n, 6), divides(2, n),
               surely_less(4, 4), surely_less(past, 6), surely_less(n, n), known_equal("a", "b")):  # fmt: skip
        assert not no


@pytest.mark.parametrize(
    ("value", "fits"), [((1 << 31) - 1, True), (1 << 31, False), (-(1 << 31), True), (-(1 << 31) - 1, False)]
)
def test_numbers_of_plans_are_words_of_32_bits(value: int, fits: bool) -> None:
    scope = Scope()
    size = scope.symbol("size", 0, 1 << 33, abs(value))
    x = size if value > 0 else -size
    assert within_words(x) is fits
    served = [near for near in range(abs(value) - 2, abs(value) + 3) if valid(scope, atoms(scope, {"size": near}))]
    assert all((-(1 << 31) <= v * (1 if value > 0 else -1) < 1 << 31) is fits for v in served) and abs(value) in served
    assert within_words(7) and within_words(Scope().symbol("n", 1, HIGHEST, 3))


def test_shapes_that_broadcast_for_typical_values_must_be_equal_where_both_are_open() -> None:
    scope = Scope()
    a, b, c = scope.symbol("a", 1, 64, 7), scope.symbol("b", 1, 64, 7), scope.symbol("c", 1, 64, 9)
    assert known_equal(broadcast((a, 2), (a, 1)), (a, 2)) and not scope.guards
    assert len(broadcast((a, 1), (b, 3))) == 2
    assert [f"{x!r} {relation} 0 {answer}: {why}" for x, relation, answer, why in scope.guards] == [
        "- a + b == 0 True: broadcast"
    ]
    with pytest.raises(Exception, match="broadcast"):
        broadcast((a,), (c,))
    with pytest.raises(Exception, match="broadcast"):
        broadcast((a,), (7,))


def test_a_plan_that_assumed_equal_lengths_says_for_which_function() -> None:
    scope = Scope()
    a, b = scope.symbol("a", 1, 64, 7), scope.symbol("b", 1, 64, 7)
    broadcast((a, 1), (b, 1))
    plan = types.SimpleNamespace(buffers=[], steps=[])
    counts_of(plan, scope)
    assert plan.counts.refusal((5, 5), plan.counts.values((5, 5))) is None
    said = plan.counts.refusal((5, 6), plan.counts.values((5, 6)))
    assert said == "the plan is for other sizes than a 5, b 6: broadcast took two of its lengths as equal"
