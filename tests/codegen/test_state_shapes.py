"""How states are told from other inputs: by their names, by their shapes, and by what the graph computes."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet import dtypes
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.types import SequenceType, TensorType
from emberlet.codegen.reader import read_model
from emberlet.codegen.states import (
    _alike,
    _equal,
    _growing_axis,
    _grows,
    find,
)
from support.onnx_models import parse

F, N = dtypes.float32, None


def of(*shape: Any, dtype: Any = F, name: str = "a") -> Argument:
    return Argument(name, TensorType(dtype, shape))


@pytest.mark.parametrize(
    ("x", "y", "equal", "alike", "growing"),
    [
        ((2, 3), (2, 3), True, True, N), ((2, 3), (2, 4), False, False, N), (("a", 3), ("a", 3), True, True, N),
        (("a", 3), ("b", 3), False, False, 0), ((3, "a"), (3, "b"), False, False, 1), (("a", "b"),
        ("c", "d"), False, False, N),
        (("a", 3), (2, 3), False, True, N), ((N, 3), (2, 3), True, True, N), ((2, 3), (N, 3), True, True, N),
        ((N, 3), ("b", 3), True, True, N), ((N, N), (2, 3), False, True, N), ((2, 3), (N, N), True, True, N),
        ((N, 3), (N, 3), True, True, N), ((2, 3), (2, 3, 1), False, False, N), ((), (), True, True, N),
        (("a", 3), ("a", 4), False, False, N), (("a", N), ("b", N), False, False, N),
    ],
)  # fmt: skip
def test_shapes_of_a_state_before_and_after(x: Any, y: Any, equal: bool, alike: bool, growing: int | None) -> None:
    assert _equal(of(*x), of(*y)) is equal
    assert _alike(of(*x), of(*y)) is alike
    assert _growing_axis(of(*x), of(*y)) == growing
    others = TensorType(dtypes.float16, y), TensorType(F), SequenceType(TensorType(F, y))
    for other in (Argument("b", t) for t in others):
        assert not _equal(of(*x), other) and not _equal(other, of(*x))
        assert not _alike(of(*x), other) and not _alike(other, of(*x))
        assert _growing_axis(of(*x), other) is None


@pytest.mark.parametrize(
    ("x", "y", "axis", "grows"),
    [
        (("b", "past", 4), ("b", "total", 4), 1, True), (("b", "past", 4), ("b", "total", 4), 0, False),
        (("b", 5, 4), ("b", "total", 4), 1, False), (("b", "past", 4), ("b", 7, 4), 1, False), (("b", N, 4),
        ("b", N, 4), 1, True),
        (("b", "past", 4), ("c", "total", 4), 1, False), (("b", "past", 4), (2, "total", 4), 1, True),
        (("b", "past", 4), ("b", "total", 5), 1, False), (("past", 4), ("b", "total", 4), 0, False),
    ],
)  # fmt: skip
def test_a_cache_grows_along_an_open_axis_alone(x: Any, y: Any, axis: int, grows: bool) -> None:
    assert _grows(of(*x), of(*y), axis) is grows


def test_a_size_that_pytorch_calls_after_its_output_is_unknown() -> None:
    assert _growing_axis(of("b", "past", 4), of("b", "Concaty_dim_1", 4, name="y")) is None
    assert _growing_axis(of("b", "past", 4), of("b", "Concatz_dim_1", 4, name="y")) == 1
    assert _equal(of("b", 3), of("b", "Addy_dim_1", name="y"))


# -- by what the graph computes


def pairs(text: str, opset: int = 21) -> dict[str, tuple[str, int | None]]:
    model = read_model(parse(text, opset), "g")
    return {model.inputs[s.input]: (model.outputs[s.output], s.axis) for s in find(model)}


ATTEND = "t = Transpose<perm = [0, 2, 1]>(q)  w = MatMul(x, t)  y = MatMul(w, q)"


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        (f"q = Concat<axis = 1>(p, x)  {ATTEND}", ("q", 1)),
        (f"q = Concat<axis = -2>(p, x)  {ATTEND}", ("q", 1)),
        (f"i = Identity(p)  q = Concat<axis = 1>(i, x)  {ATTEND}", ("q", 1)),
        (f"i = Concat<axis = 0>(p)  q = Concat<axis = 1>(i, x)  {ATTEND}", ("q", 1)),
        (f"h = Concat<axis = 1>(p, x)  q = Identity(h)  {ATTEND}", ("q", 1)),
        (f"e = Exp(x)  q = Concat<axis = 1>(p, e)  {ATTEND}", ("q", 1)),
        (f"e = Exp(p)  q = Concat<axis = 1>(e, x)  {ATTEND}", None),  # changed
        (f"q = Concat<axis = 1>(p, p)  {ATTEND}", None),  # of nothing new
        ("q = Concat<axis = 1>(p, x)  y = Neg(x)", None),  # which nothing reads
    ],
)
def test_a_cache_is_an_input_with_something_appended(nodes: str, found: Any) -> None:
    text = f"g (float[b, n, 4] x, float[b, m, 4] p) => (float[b, n, 4] y, float[b, k, 4] q) {{ {nodes} }}"
    assert pairs(text) == ({} if found is None else {"p": found})


def test_what_is_appended_to_a_matrix_or_a_fixed_size_is_no_cache() -> None:
    rows = "g (float[n, 4] x, float[m, 4] p) => (float[n, 4] y, float[k, 4] q) { q = Concat<axis = 0>(p, x)  " \
           "t = Transpose(q)  w = MatMul(x, t)  y = MatMul(w, q) }"  # fmt: skip
    assert pairs(rows) == {}
    head = "g (float[b, n, 4] x, float[b, 5, 4] p) => (float[b, n, 4] y, float[b, k, 4] q)"
    assert pairs(f"{head} {{ q = Concat<axis = 1>(p, x)  {ATTEND} }}") == {}


GRU = (
    "g (float[t, b, 4] x, float[1, b, 5] p, float[1, 15, 4] w, float[1, 15, 5] r) => "
    "(float[t, 1, b, 5] y, float[1, b, 5] q)"
)


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ('y, q = GRU<hidden_size = 5>(x, w, r, "", "", p)', True),
        ('i = Identity(p)  y, h = GRU<hidden_size = 5>(x, w, r, "", "", i)  q = Identity(h)', True),
        ('e = Exp(p)  y, q = GRU<hidden_size = 5>(x, w, r, "", "", e)', False),
        ("y, q = GRU<hidden_size = 5>(x, w, r)", False),
        ('y, h = GRU<hidden_size = 5>(x, w, r, "", "", p)  q = Exp(h)', False),
        ('y, h = GRU<hidden_size = 5>(x, w, r, "", "", p)  q = Add(h, p)', False),
    ],
)
def test_a_recurrent_state_is_the_initial_state_of_the_operator_that_returns_it(nodes: str, found: bool) -> None:
    assert pairs(f"{GRU} {{ {nodes} }}") == ({"p": ("q", None)} if found else {})


def test_an_input_that_two_outputs_claim_is_no_state() -> None:
    text = GRU.replace("float[1, b, 5] q)", "float[1, b, 5] q, float[1, b, 5] s)")
    nodes = 'y, q = GRU<hidden_size = 5>(x, w, r, "", "", p)  z, s = GRU<hidden_size = 5>(x, w, r, "", "", p)'
    assert pairs(f"{text} {{ {nodes} }}") == {}


def test_stacked_states_are_one() -> None:
    text = GRU.replace("float[1, b, 5] p", "float[2, b, 5] p").replace("float[1, b, 5] q", "float[2, b, 5] q")
    nodes = (
        "p0, p1 = Split<axis = 0, num_outputs = 2>(p)  "
        'y0, q0 = GRU<hidden_size = 5>(x, w, r, "", "", p0)  y, q1 = GRU<hidden_size = 5>(x, w, r, "", "", p1)  '
        "q = Concat<axis = 0>(q0, q1)"
    )
    assert pairs(f"{text} {{ {nodes} }}") == {"p": ("q", None)}


NAMED = (
    "g (float[b, 4] x, float[b, 4] {before}) => (float[b, 4] y, float[b, 4] {after}) "
    "{{ {after} = Add(x, {inner})  y = Neg({after}) }}"
)


@pytest.mark.parametrize(
    ("before", "after", "inner", "found"),
    [
        ("state", "state_out", "state", True), ("state", "state_out", "x", False),
        ("thing", "thing_out", "thing", False),
        ("memory", "memory_next", "memory", True), ("past_v", "present_v", "past_v", True),
    ],
)  # fmt: skip
def test_a_named_state_depends_on_its_input(before: str, after: str, inner: str, found: bool) -> None:
    text = NAMED.format(before=before, after=after, inner=inner)
    assert pairs(text) == ({before: (after, None)} if found else {})


def test_two_inputs_of_one_name_are_no_states() -> None:
    text = """g (float[b, 4] x, float[b, 4] state_in, float[b, 4] prev_state) => (float[b, 4] y, float[b, 4] state_out)
        { state_out = Sum(x, state_in, prev_state)  y = Neg(state_out) }"""
    assert pairs(text) == {}
    text = """g (float[b, 4] x, float[b, 4] state) => (float[b, 4] y, float[b, 4] state_out, float[b, 4] new_state)
        { state_out = Add(x, state)  new_state = Mul(x, state)  y = Neg(state_out) }"""
    assert pairs(text) == {}


def test_a_step_has_an_input_and_an_output_besides_its_states() -> None:
    both = "g (float[b, 4] h, float[b, 4] c) => (float[b, 4] h_out, float[b, 4] c_out) "
    both += "{ h_out = Add(h, c)  c_out = Mul(h, c) }"
    assert pairs(both) == {}
    more = both.replace("(float[b, 4] h,", "(float[b, 4] x, float[b, 4] h,")
    assert pairs(more) == {}
    more = more.replace("c_out) {", "c_out, float[b, 4] y) { y = Neg(x) ")
    assert pairs(more) == {"h": ("h_out", None), "c": ("c_out", None)}
