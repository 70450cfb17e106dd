"""What a recorded graph tells without a device: intervals of integers, values of sizes, what only the host can do."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.errors import BackendError, UnsupportedError
from emberlet.sizes.scope import Scope
from emberlet.sizes.size import is_open
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.plan.counts import count, counts_of
from emberlet.wgpu_backend.plan.data import Plan
from emberlet.wgpu_backend.record import bounds
from emberlet.wgpu_backend.record.node import Node
from emberlet.wgpu_backend.record.primitives import LONGEST
from emberlet.wgpu_backend.record.size_values import LONGEST as LONGEST_HISTORY
from emberlet.wgpu_backend.record.size_values import MOST, size_values

# -- intervals --------------------------------------------------------------------------------------------------------

ENDS = [(-4, -1), (-3, 0), (-3, 2), (-2, 5), (0, 0), (0, 3), (1, 4), (2, 2), (-6, -6)]
EXACT = ("add", "sub", "mul", "maximum", "minimum")


def given(low: int, high: int, shape: tuple[int, ...] = (1,), dtype: Any = dtypes.int64) -> Node:
    """A node whose elements are known to be from low to high."""
    node = Node("buffer", (), None, dtype, shape)
    node.bounds = (low, high)
    return node


def extremes(op: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The least and the greatest result for all pairs of two intervals, as NumPy computes them."""
    k = get_backend("numpy")
    x, y = (k.from_list(list(range(e[0], e[1] + 1)), dtypes.int64, (e[1] + 1 - e[0],)) for e in (a, b))
    found = np.asarray(k.binary(op, k.reshape(x, (x.size, 1)), y))
    return int(found.min()), int(found.max())


def of_binary(op: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    found: tuple[int, int] = bounds.interval(Node("binary", (given(*a), given(*b)), op, dtypes.int64, (1,)))
    return found


@pytest.mark.parametrize("op", [*EXACT, "floor_divide", "shift_left", "shift_right"])
def test_intervals_end_where_results_do(op: str) -> None:
    for a, b in itertools.product(ENDS, ENDS):
        if op in EXACT or (b[0] > 0 if op == "floor_divide" else b[0] >= 0):
            assert of_binary(op, a, b) == extremes(op, a, b), (a, b)


# How much wider than the results the intervals of `ENDS` are, in sum.
@pytest.mark.parametrize(
    "op, wider",
    [("div", 171), ("floor_divide", 146), ("remainder", 54), ("fmod", 21), ("pow", 13289), ("bitwise_and", 153),
     ("bitwise_or", 484), ("bitwise_xor", 289)],
)  # fmt: skip
def test_intervals_of_other_operations_are_not_much_wider(op: str, wider: int) -> None:
    total = 0
    for a, b in itertools.product(ENDS, ENDS):
        (low, high), (least, most) = of_binary(op, a, b), extremes(op, a, b)
        assert low <= least and most <= high, (a, b)
        total += (high - low) - (most - least)
    assert total <= wider


def test_intervals_of_one_operand() -> None:
    for low, high in ENDS:
        values = np.arange(low, high + 1)
        for op, results in [("neg", -values), ("abs", abs(values)), ("sign", np.sign(values)), ("bitwise_not", ~values),
                            ("floor", values), ("ceil", values), ("round", values), ("trunc", values)]:  # fmt: skip
            found = bounds.interval(Node("unary", (given(low, high),), op, dtypes.int64, (1,)))
            assert found == (results.min(), results.max()), op
    found = bounds.interval(Node("unary", (given(3, 9, dtype=dtypes.uint8),), "bitwise_not", dtypes.uint8, (1,)))
    assert found == (246, 252)


def reduced(op: str, node: Node, arg: Any, shape: tuple[int, ...], kind: str = "reduce") -> Any:
    return bounds.interval(Node(kind, (node,), (op, *arg), dtypes.int64, shape))


def test_intervals_of_several_elements() -> None:
    x = given(-3, 2, (4, 5))
    assert reduced("sum", x, ((0, 1), False), ()) == (-60, 40)
    assert reduced("sum", x, ((1,), False), (4,)) == (-15, 10)
    assert reduced("max", x, ((1,), False), (4,)) == (-3, 2)
    assert reduced("prod", x, ((1,), False), (4,)) == (-243, 243)
    assert reduced("prod", given(2, 3, (2, 2)), ((0, 1), False), ()) == (0, 81)
    assert reduced("sum", x, (1,), (4, 5), "cumulative") == (-15, 10)
    assert reduced("sum", given(2, 3, (4,)), (0,), (4,), "cumulative") == (2, 12)
    assert reduced("sum", given(-3, -2, (4,)), (0,), (4,), "cumulative") == (-12, -2)
    assert reduced("prod", x, (0,), (4, 5), "cumulative") == (-81, 81)
    assert reduced("min", x, (0,), (4, 5), "cumulative") == (-3, 2)
    assert reduced("sum", x, ((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1)), (3, 3), "pool") == (-18, 12)
    assert reduced("max", x, ((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1)), (3, 3), "pool") == (-3, 2)


def test_intervals_of_products_and_scattered_elements() -> None:
    a, b = given(-3, 2, (2, 5)), given(-1, 4, (5, 3))
    assert bounds.interval(Node("matmul", (a, b), None, dtypes.int64, (2, 3))) == (-60, 40)
    x, w = given(0, 2, (1, 2, 6)), given(1, 4, (3, 2, 3))
    arg = ((1,), ((0, 0),), (1,), 1)
    assert bounds.interval(Node("conv", (x, w), arg, dtypes.int64, (1, 3, 4))) == (0, 48)
    picks = Node("buffer", (), None, dtypes.int64, (4,))
    for op, found in [("none", (-3, 7)), ("add", (-3, 30)), ("mul", (-7203, 4802)), ("max", (-3, 7)), ("min", (-3, 7))]:
        node = Node("scatter", (given(-3, 2, (9,)), picks, given(0, 7, (4,))), (0, op), dtypes.int64, (9,))
        assert bounds.interval(node) == found, op
    assert bounds.interval(Node("pad", (given(1, 2),), (((1, 0),), 5), dtypes.int64, (2,))) == (1, 5)
    assert bounds.interval(Node("concat", (given(1, 2), given(-4, 0)), 0, dtypes.int64, (2,))) == (-4, 2)
    one = Node("buffer", (), None, dtypes.bool, (1,))
    assert bounds.interval(Node("where", (one, given(1, 2), given(4, 5)), None, dtypes.int64, (1,))) == (1, 5)


@pytest.mark.parametrize(
    "dtype, low, high", [(dtypes.int64, -(1 << 31), (1 << 31) - 1), (dtypes.uint64, 0, (1 << 32) - 1)], ids=str
)
def test_what_a_word_of_32_bits_holds(dtype: Any, low: int, high: int) -> None:
    assert bounds.within((low, high), dtype)
    assert not bounds.within((low - 1, high), dtype)
    assert not bounds.within((low, high + 1), dtype)
    assert bounds.within(bounds.UNKNOWN, dtype)


# -- sizes ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def opened() -> Any:
    """A planning backend, two open sizes, and what evaluates an element for their numbers."""
    scope = Scope()
    sizes = scope.symbol("n", 1, 40, 7), scope.symbol("m", 0, 9, 3)
    k = WgpuBackend(planning=True)

    def at(values: Any, n: int, m: int) -> list[Any]:
        plan = Plan()
        counts_of(plan, scope)
        atoms = plan.counts.values((n, m))
        return [count(v).at(atoms) if is_open(v) else v for v in values]

    def tensor(*values: Any) -> Any:
        return k.from_list(list(values), dtypes.int64, (len(values),))

    return SimpleNamespace(k=k, n=sizes[0], m=sizes[1], at=at, tensor=tensor)


OPERATIONS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "maximum": max, "minimum": min,
    "floor_divide": lambda a, b: a // b, "div": lambda a, b: a // b, "remainder": lambda a, b: a % b,
}  # fmt: skip


@pytest.mark.parametrize("op", list(OPERATIONS))
def test_elements_computed_from_sizes_are_followed(opened: Any, op: str) -> None:
    x, y = opened.tensor(opened.n, opened.m, 6, 5), opened.tensor(3, 2, 4, 5)
    found = size_values(opened.k.binary(op, x, y).data)
    for n, m in [(1, 0), (7, 3), (40, 9)]:
        assert opened.at(found, n, m) == [OPERATIONS[op](a, b) for a, b in [(n, 3), (m, 2), (6, 4), (5, 5)]]


@pytest.mark.parametrize("op", ["div", "floor_divide", "remainder"])
def test_divisions_whose_results_are_unknown_are_not_followed(opened: Any, op: str) -> None:
    k, n, m = opened.k, opened.n, opened.m
    for a, b in [(n, m), (n, 0), (n, -1), (-5, 2), (m - 4, 2)]:
        node = k.binary(op, opened.tensor(a, n), opened.tensor(b, 1)).data
        assert size_values(node) is None, (a, b)
    if op == "div":
        assert size_values(k.binary(op, opened.tensor(n, n + m), opened.tensor(n, n + m)).data) == [1, 1]


def test_movement_and_choices_of_sizes_are_followed(opened: Any) -> None:
    k, n, m = opened.k, opened.n, opened.m
    x = opened.tensor(n, m, 8)
    condition = k.from_list([True, False, True], dtypes.bool, (3,))
    for y, values in [
        (k.slice(x, (1,), (2,), (1,)), [3, 8]),
        (k.slice(x, (2,), (2,), (-2,)), [8, 7]),
        (k.concat([x, opened.tensor(1)], 0), [7, 3, 8, 1]),
        (k.cast(x, dtypes.int32), [7, 3, 8]),
        (k.reshape(x, (3, 1)), [7, 3, 8]),
        (k.expand(opened.tensor(n + 1), (4,)), [8] * 4),
        (k.where(condition, x, opened.tensor(5)), [7, 5, 8]),
        (k.binary("add", x, opened.tensor(n)), [14, 10, 15]),
    ]:
        assert opened.at(size_values(y.data), 7, 3) == values
    equal = k.binary("eq", opened.tensor(n, n), opened.tensor(n, n + 1))
    assert size_values(equal.data) == [True, False]
    assert size_values(k.unary("logical_not", equal).data) == [False, True]
    assert size_values(k.binary("logical_or", equal, k.unary("logical_not", equal)).data) == [True, True]
    assert size_values(k.binary("logical_and", equal, k.unary("logical_not", equal)).data) == [False, False]
    for op, found in [("ne", [False, True]), ("lt", [False, True]), ("le", [True, True]), ("gt", [False, False]),
                      ("ge", [True, False])]:  # fmt: skip
        assert size_values(k.binary(op, opened.tensor(n, n), opened.tensor(n, n + 1)).data) == found, op


def test_elements_that_cannot_be_followed(opened: Any) -> None:
    k, n = opened.k, opened.n
    x = opened.tensor(n, 2)
    assert size_values(opened.tensor(1, 2).data) is None  # no open size
    assert size_values(k.cast(x, dtypes.float32).data) is None
    assert size_values(k.binary("pow", x, x).data) is None
    assert size_values(k.unary("neg", x).data) is None
    assert size_values(k.permute(k.reshape(x, (2, 1)), (1, 0)).data) is None
    assert size_values(k.full((n,), 1, dtypes.int64).data) is None
    assert size_values(k.expand(opened.tensor(n), (MOST,)).data) is not None
    assert size_values(k.expand(opened.tensor(n), (MOST + 1,)).data) is None
    assert size_values(k.expand(k.reshape(x, (2, 1)), (2, 3)).data) is None
    assert size_values(k.slice(k.reshape(x, (1, 2)), (0, 1), (1, 1), (1, 1)).data) is None
    steps = 0
    while size_values(x.data) is not None:
        x, steps = k.binary("add", x, opened.tensor(1, 1)), steps + 1
    assert LONGEST_HISTORY - 8 <= 2 * steps <= LONGEST_HISTORY


# -- what only the host computes --------------------------------------------------------------------------------------


@pytest.fixture
def strict() -> Any:
    return WgpuBackend(planning=True, strict=True)


def test_operations_on_axes_too_long_for_a_workgroup_are_the_hosts(strict: Any) -> None:
    for n in (LONGEST, LONGEST + 1):
        x = strict.expand(strict.arange(0, 1, n, dtypes.int32), (2, n))
        for name, call in [
            ("argreduce", lambda x=x: strict.argreduce("max", x, 1, False)),
            ("cumulative", lambda x=x: strict.cumulative("sum", x, 1)),
        ]:
            if n == LONGEST:
                assert call().data.op == name
            else:
                with pytest.raises(UnsupportedError, match=rf"{name} \(\w+, int32 \(2, {n}\)\) would be computed"):
                    call()
    assert strict.fallbacks == {"argreduce": 1, "cumulative": 1}


def test_elements_that_32_bits_do_not_hold_are_the_hosts(strict: Any) -> None:
    top = (1 << 31) - 1
    assert strict.arange(top - 4, 1, 5, dtypes.int64).data.op == "arange"
    assert strict.arange(-top - 1, top, 2, dtypes.int64).data.op == "arange"
    for start, step, n in [(top - 4, 1, 6), (-top - 2, 1, 2), (-top, -1, 3)]:
        with pytest.raises(UnsupportedError, match="arange"):
            strict.arange(start, step, n, dtypes.int64)
    x = strict.from_list([1, 2], dtypes.int64, (2,))
    for dtype, y in [(dtypes.float64, x), (dtypes.bool, strict.from_list([1], dtypes.uint8, (1,)))]:
        with pytest.raises(UnsupportedError, match="bitcast"):
            strict.bitcast(y, dtype)
    with pytest.raises(UnsupportedError, match="bitcast"):
        strict.bitcast(strict.from_list([True], dtypes.bool, (1,)), dtypes.uint8)
    with pytest.raises(UnsupportedError, match="nonzero"):
        strict.nonzero(x)


# -- kernels of one's own ---------------------------------------------------------------------------------------------


def test_kernels_refuse_what_they_cannot_bind(strict: Any) -> None:
    other = WgpuBackend(planning=True)
    x, y = (k.from_list([1.0, 2.0], dtypes.float32, (2,)) for k in (strict, other))
    source = "{{ bindings }}\n@compute @workgroup_size(1) fn main() { out[0] = in0[0]; }\n"

    def launch(inputs: list[Any], dtype: Any = dtypes.float32, groups: Any = (1, 1, 1), text: str = source) -> Any:
        return strict.launch("k", text, inputs, dtype, (2,), groups)

    assert launch([x], "float32").data.op == "kernel"
    assert launch([x] * 7, text=source.replace("in0[0];", "in0[0] + " + " + ".join(
        f"in{i}[0]" for i in range(1, 7)) + ";")).data.op == "kernel"  # fmt: skip
    for inputs, why in [
        ([x] * 8, "has 8 inputs; at most 7 fit"), ([3.0], "given float, expected Tensors"),
        ([x, y], "was given a tensor of"), ([strict.from_list([], dtypes.float32, (0,))], "which has no buffer"),
        ([strict.from_list(["a"], dtypes.string, (1,))], "which has no buffer"),
    ]:  # fmt: skip
        with pytest.raises(BackendError, match=why):
            launch(inputs)
    with pytest.raises(BackendError, match="cannot return string"):
        launch([x], dtypes.string)
    with pytest.raises(BackendError, match="at least one invocation, not 0"):
        launch([x], groups=(2, 0))
    with pytest.raises(BackendError, match="groups"):
        launch([x], groups=(1, 1, 1, 1))
    for groups, found in [((130, 64), (3, 1, 1)), ((128, 64), (2, 1, 1)), ((2, 3, 4), (2, 3, 4))]:
        node = launch([x], groups=groups, text=source.replace("out[0] = in0[0]", "out[0] = in0[0]")).data
        assert node.arg[2] == found
    with pytest.raises(BackendError, match="in1"):  # declared, but never used
        launch([x, x])


def test_graphs_share_a_plan_only_if_their_kernels_are_the_same(strict: Any) -> None:
    from emberlet.wgpu_backend.record.node import signature, topological

    x = strict.from_list([1.0] * 12, dtypes.float32, (3, 4))

    def key(y: Any) -> Any:
        return signature(topological([y.data]), [y.data])

    def full(value: float) -> Any:
        return strict.binary("add", x, strict.full((4,), value, x.dtype))

    def pad(value: float, low: int) -> Any:
        return strict.pad(x, ((low, 0), (0, 1)), value)

    def part(start: int, step: int, size: int = 2) -> Any:
        return strict.slice(x, (0, start), (3, size), (1, step))

    def ramp(start: int, step: int) -> Any:
        return strict.binary("add", x, strict.cast(strict.arange(start, step, 4, dtypes.int32), x.dtype))

    def drawn(key: int) -> Any:
        return strict.random_bits((4,), key, 1)

    for a, b in [(full(1.5), full(2.5)), (pad(3.0, 1), pad(7.0, 1)), (part(0, 1), part(2, 1)), (ramp(3, 2), ramp(5, 7)),
                 (drawn(1), drawn(2))]:  # fmt: skip
        assert key(a) == key(b)
    for a, b in [
        (pad(0.0, 1), pad(0.0, 2)), (pad(0.0, 1), pad(7.0, 1)), (part(0, 1), part(3, -1)), (ramp(0, 1), ramp(0, 2)),
        (full(1.0), pad(1.0, 1)),
        (strict.unary("exp", x), strict.unary("sin", x)), (part(0, 1, 4), part(3, -1, 4)),
        (strict.permute(x, (1, 0)), strict.permute(x, (0, 1))),
        (strict.cast(x, dtypes.int32), strict.cast(x, dtypes.uint32)),
        (strict.reduce("sum", x, (0,), False), strict.reduce("sum", x, (0,), True)),
    ]:  # fmt: skip
        assert key(a) != key(b)
