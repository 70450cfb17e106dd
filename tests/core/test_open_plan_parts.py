"""The parts of a NumPy plan with open lengths, one by one: polynomials, points, lengths of results, what changes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from emberlet.backend import get_backend
from emberlet.backend.axes import Axes
from emberlet.backend.tracing import ValueNeeded
from emberlet.functional.arrays import asarray
from emberlet.host.numpy_backend.compile.memory import Buffers
from emberlet.host.numpy_backend.compile.open_sizes.plan import (
    CAPACITY,
    Number,
    Polynomials,
    View,
    Whole,
    _changes,
    _Finder,
    _of_any_step,
    _primes,
    points_for,
)
from emberlet.host.numpy_backend.compile.open_sizes.tracing import Points, _lengths
from emberlet.sizes.polynomial import atom_values, broken
from emberlet.sizes.scope import Scope
from emberlet.tensor import Tensor

SYMBOLS = ["a", "b"]
AT = [{"a": a, "b": b} for a, b in ((2, 3), (5, 7), (11, 13), (17, 4), (6, 29), (31, 9), (8, 10))]
REFUSED = "the NumPy calls depend on the lengths"


def polynomials(*rows: Any) -> tuple[Polynomials, list[int]]:
    """Polynomials that have these values at the points, solved, and their indices."""
    made = Polynomials(SYMBOLS, AT)
    numbers = [made.number([row(**p) for p in AT]) for row in rows]
    made.solve()
    return made, numbers


# -- polynomials


@pytest.mark.parametrize(("symbols", "points"), [(0, 2), (1, 4), (2, 7), (3, 11)])
def test_a_polynomial_is_checked_at_one_point_more_than_it_has_coefficients(symbols: int, points: int) -> None:
    assert Polynomials.points_needed(symbols) == points
    names = [f"s{i}" for i in range(symbols)]
    rng = np.random.default_rng(symbols)
    at = [{n: int(rng.integers(1, 99)) for n in names} for _ in range(points)]
    assert len(Polynomials(names, at)._monomials) == points - 1


def test_numbers_are_polynomials_of_second_degree_in_the_lengths() -> None:
    made, numbers = polynomials(
        lambda a, b: 7,
        lambda a, b: 3 * a + 4 * b - 5,
        lambda a, b: 2 * a * b + b * b,
        lambda a, b: 7,
        lambda a, b: a - b,
        lambda a, b: a * a - 900,
    )
    assert numbers == [0, 1, 2, 0, 3, 4]
    for a, b in product((1, 10, 1000), (2, 50)):
        assert made.evaluate({"a": a, "b": b}) == [7, 3 * a + 4 * b - 5, 2 * a * b + b * b, a - b, a * a - 900]
    assert [made.grows(n) for n in range(5)] == [True, True, True, False, True]
    find = _Finder([], [], made)
    assert [find.varies(n) for n in range(5)] == [False, True, True, True, True]


def test_what_is_no_polynomial_is_refused() -> None:
    made = Polynomials(SYMBOLS, AT)
    made.number([p["a"] // 2 for p in AT])
    with pytest.raises(ValueNeeded, match="does not follow from the open lengths by a polynomial"):
        made.solve()
    with pytest.raises(ValueNeeded, match="do not tell polynomials apart"):
        Polynomials(SYMBOLS, [{"a": n, "b": n} for n in range(7)])


# -- lengths to trace at


def test_lengths_to_trace_at_are_primes_that_nothing_else_has() -> None:
    assert _primes(2, 30, {7}) == [2, 3, 5, 11, 13, 17, 19, 23, 29]
    scope = Scope()
    n = scope.symbol("n", 1, 1 << 20, 37)
    found = points_for(["n"], {"fixed": 41}, scope, [])
    assert found == [{"fixed": 41, "n": p} for p in (37, 43, 47, 53)]
    found = points_for(["n"], {}, scope, [(n - 43, "<", False, "")])
    assert [p["n"] for p in found] == [43, 47, 53, 59]
    found = points_for(["n"], {}, scope, [(n - 31, "<", True, "")])  # below the typical length
    assert [p["n"] for p in found] == [29, 23, 19, 17]
    with pytest.raises(ValueNeeded, match="depend on its lengths in too many cases"):
        points_for(["n"], {}, scope, [(n - 41, "==", True, "")])
    small = Scope()
    small.symbol("n", 1, 99, 5)
    assert [p["n"] for p in points_for(["n"], {}, small, [])] == [23, 29, 31, 37]


def test_rooms_hold_more_than_the_lengths_at_each_point() -> None:
    scope = Scope()
    for name in ("past", "new"):
        scope.symbol(name, 1, 1 << 20, 37)
    found = points_for(["past", "new", CAPACITY], {}, scope, [])
    assert len(found) == Polynomials.points_needed(3)
    assert all(p[CAPACITY] >= p["past"] + p["new"] for p in found)
    assert len({p[CAPACITY] - max(p["past"], p["new"]) for p in found}) == len(found)
    assert len({n for p in found for n in (p["past"], p["new"])}) == 2 * len(found)


@pytest.mark.parametrize(
    ("relation", "answer", "held"),
    [("<", True, [True, False, False]), ("<", False, [False, True, True]),
     ("==", True, [False, True, False]), ("==", False, [True, False, True])],
)  # fmt: skip
def test_a_guard_holds_where_a_comparison_gives_what_it_gave(relation: str, answer: bool, held: list[bool]) -> None:
    scope = Scope()
    n = scope.symbol("n", 1, 99, 37)
    assert [not broken([(n - 5, relation, answer, "")], atom_values(scope.atoms, {"n": i})) for i in (4, 5, 6)] == held
    assert [not broken([(n, "==", False, ""), (n - 5, relation, answer, "")], [i]) for i in (4, 5, 6)] == held


def test_quotients_and_maxima_of_lengths_are_computed_from_them() -> None:
    scope = Scope()
    a, b = scope.symbol("a", 1, 99, 37), scope.symbol("b", 0, 99, 5)
    for dividend, divisor in ((a, 4), (a + 1, b), (10, b)):
        dividend // divisor
    scope.atom(("max", a, b), 0, 99, 37)
    for na, nb in ((9, 4), (3, 8), (7, 0), (5, 5)):
        named = [w[0] + str(i) for i, w in enumerate(scope.atoms)]
        found = dict(zip(named, atom_values(scope.atoms, {"a": na, "b": nb}), strict=True))
        want = {"a0": na, "b1": nb, "//2": na // 4, "//3": (na + 1) // nb if nb else 0,
                "//4": 10 // nb if nb else 0, "max5": max(na, nb)}  # fmt: skip
        assert found == want


def test_lengths_need_be_no_multiples_of_a_step_in_a_plan() -> None:
    axes = Axes([("n", "m")], {"n": (64, 512, 128, 64)})
    loose = _of_any_step(axes)
    assert loose.limits == {"n": (64, 512, 128, 1)}
    assert axes.limits == {"n": (64, 512, 128, 64)}
    assert loose.within("n", 65) and not axes.within("n", 65)


def test_a_result_has_a_length_that_is_known_or_the_same_everywhere() -> None:
    scope = Scope()
    n = scope.symbol("n", 1, 999, 37)
    m = scope.symbol("m", 1, 999, 41)
    points = Points(scope, [{"n": 3, "m": 5}, {"n": 7, "m": 11}, {"n": 13, "m": 17}])
    assert len(points) == 3
    assert points.size([4, 4, 4], [n]) == 4
    assert points.size([5, 11, 17], [n, m, n + 2]) is m
    assert points.size([6, 14, 26], [n, 2 * n]) == 2 * n
    with pytest.raises(ValueNeeded, match="a length depends on the open lengths in an unknown way"):
        points.size([3, 7, 14], [n, m])
    assert points.at((n, m, 2), 1) == (7, 11, 2)
    half = n // 2  # an atom that is added after the first use
    assert [points.at(half, i) for i in range(3)] == [1, 3, 6]


def sample(*shape: int) -> Any:
    return asarray(np.zeros(shape, np.float32))


@pytest.mark.parametrize("seed", range(6))
def test_lengths_of_windows_are_those_that_numpys_backend_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    backend = get_backend("numpy")
    for _ in range(20):
        n, k, s, d = (int(rng.integers(*r)) for r in ((9, 30), (1, 4), (1, 4), (1, 3)))
        pad = (int(rng.integers(0, 3)), int(rng.integers(0, 3)))
        x, kernel = sample(2, 4, n), sample(3, 4, k)
        conv = (x, kernel, None, (s,), (pad,), (d,), 1)
        assert _lengths("conv", conv) == list(backend.conv(*conv).shape[2:])
        pool = ("max", x, (k,), (s,), (pad,), (d,))
        assert _lengths("pool", pool) == list(backend.pool(*pool).shape[2:])
    assert _lengths("pad", (sample(2, 3), [(1, 2), (0, 4)], 0.0)) == [5, 7]
    assert _lengths("concat", ([sample(2, 3), sample(2, 4)], 1)) == [7]
    assert _lengths("concat", ([sample(2, 3), sample(5, 3)], 0)) == [7]
    assert _lengths("unary", ("exp", sample(2, 3))) == []


# -- what becomes of an argument


def finder(*arrays: Any) -> tuple[_Finder, list[Buffers]]:
    """A finder for buffers of these shapes: (shapes of the buffer at each point)."""
    buffers = [Buffers() for _ in AT]
    for shapes in arrays:
        for b, shape in zip(buffers, shapes, strict=True):
            b.new(shape, np.dtype(np.float32))
    index = [{id(buffer): i for i, buffer in enumerate(b.all)} for b in buffers]
    return _Finder(buffers, index, Polynomials(SYMBOLS, AT)), buffers


def test_arguments_that_are_alike_everywhere_stay() -> None:
    find, _ = finder()
    constant = np.arange(6.0)
    for x in (3, "same", None, 2.5, True, (1, (2, "x")), [constant, 4], constant):
        assert find([x] * len(AT)) is x
    tensor = sample(3)
    assert find([tensor] * len(AT)) is tensor
    equal = [np.arange(6.0) for _ in AT]
    assert find(equal) is equal[0]


def test_numbers_that_differ_are_polynomials() -> None:
    find, _ = finder()
    found = find([p["a"] + 1 for p in AT])
    assert type(found) is Number and found.number == find.numbers.number([p["a"] + 1 for p in AT])
    nested = find([(1, [p["b"], "x"]) for p in AT])
    assert type(nested) is Whole and nested.parts[0] == 1 and nested.parts[1].parts[1] == "x"
    assert type(nested.parts[1].parts[0]) is Number
    assert nested.make([1, 2]) == (1, 2) and nested.parts[1].make((5,)) == [5]


ODD = len(AT) - 1  # points that agree with the first, before one that does not


@pytest.mark.parametrize(
    "arguments",
    [
        [1] * ODD + [1.0], [1] * ODD + [True], ["a"] * ODD + ["b"], [1.5] * ODD + [2.5],
        [(1, 2)] * ODD + [(1, 2, 3)], [[1]] * ODD + [(1,)],
        [np.zeros(3)] * ODD + [np.zeros((3, 1))], [np.zeros(3)] * ODD + [np.zeros(3, np.int64)],
    ],
)  # fmt: skip
def test_arguments_of_another_kind_at_some_length_are_refused(arguments: list[Any]) -> None:
    with pytest.raises(ValueNeeded, match=REFUSED):
        finder()[0](arguments)


def test_parts_of_a_buffer_are_views_of_it() -> None:
    find, buffers = finder([(p["a"], 4) for p in AT], [(p["b"],) for p in AT])
    whole = find([b.all[0].array for b in buffers])
    rest = find([b.all[0].array[1:, 2:] for b in buffers])
    other = find([b.all[1].array for b in buffers])
    again = find([b.all[0].array for b in buffers])
    assert again is whole and whole is not rest
    assert [v.memory for v in (whole, rest, other)] == [0, 0, 1]
    assert [v.place for v in (whole, rest, other)] == [0, 1, 2]
    find.numbers.solve()
    n = find.numbers.evaluate({"a": 9, "b": 6})
    assert [n[i] for i in whole.numbers] == [0, 9, 4, 16, 4]
    assert [n[i] for i in rest.numbers] == [24, 8, 2, 16, 4]
    assert [n[i] for i in other.numbers] == [0, 6, 4]
    assert (whole.rank, other.rank) == (2, 1)
    assert whole.pick(n)[:-1] == (0, 9, 4, 16, 4)


def test_a_buffer_at_some_lengths_only_is_refused() -> None:
    find, buffers = finder([(4,) for _ in AT], [(4,) for _ in AT])
    for given in (
        [b.all[0].array for b in buffers[:-1]] + [np.zeros(4, np.float32)],
        [np.zeros(4, np.float32)] + [b.all[0].array for b in buffers[1:]],
        [b.all[0].array for b in buffers[:-1]] + [buffers[-1].all[1].array],
    ):
        with pytest.raises(ValueNeeded, match=REFUSED):
            find(given)


def test_parts_of_a_constant_are_views_of_it() -> None:
    find, _ = finder()
    table = np.arange(400, dtype=np.float32).reshape(100, 4)
    found = find([table[p["a"] :, 1:] for p in AT])
    assert type(found) is View and found.memory.dtype == np.uint8 and found.memory.size == 1600
    find.numbers.solve()
    n = find.numbers.evaluate({"a": 12, "b": 1})
    assert [n[i] for i in found.numbers] == [12 * 16 + 4, 88, 3, 16, 4]
    with pytest.raises(ValueNeeded, match="the elements of a constant depend on the lengths"):
        find([np.full(3, float(p["a"])) for p in AT])
    gaps = np.asfortranarray(table)
    with pytest.raises(ValueNeeded, match="a constant lies in memory with gaps"):
        find([gaps[: p["a"]] for p in AT])


def test_constants_of_other_strides_are_told_apart() -> None:
    find, _ = finder()
    table = np.arange(16.0).reshape(4, 4)
    assert type(find([table] * ODD + [table.T])) is View  # one memory
    with pytest.raises(ValueNeeded, match="the elements of a constant depend on the lengths"):
        find([table] * ODD + [table[::-1].copy()])


def test_a_tensor_whose_elements_change_is_made_for_each_length() -> None:
    find, buffers = finder([(p["a"], 2) for p in AT])
    backend = get_backend("numpy")
    tensors = [Tensor(b.all[0].array, sample(1).dtype, b.all[0].array.shape, backend) for b in buffers]
    found = find(tensors)
    assert type(found) is Whole and type(found.parts[0]) is View
    made = found.make([np.ones((3, 2), np.float32)])
    assert made.shape == (3, 2) and made.dtype is tensors[0].dtype and made.backend is backend


def test_an_argument_changes_with_its_parts() -> None:
    kind = np.dtype(np.float32)
    still, moves = View(0, kind, [0], 0), View(0, kind, [1], 1)

    def varies(number: int) -> bool:
        return number == 1

    for x, wanted in (
        (still, False), (moves, True), (Number(0), False), (Number(1), True), (3, False), ("x", False),
        (Whole(tuple, [still, 2]), False), (Whole(tuple, [still, moves]), True),
        (Whole(tuple, [1, Whole(list, [Number(1)])]), True),
    ):  # fmt: skip
        assert _changes(x, {1}, varies) is wanted
