"""The search for repeated blocks: which nodes and runs of nodes are alike."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emberlet.codegen.hierarchy.repetition.sequence import LONGEST, Item, NodeSequence, _is_power, _plan, _repeated
from emberlet.codegen.ir.graph import Graph
from emberlet.codegen.reader import read_model
from onnx import numpy_helper
from support.onnx_models import parse

# -- runs that repeat -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_power_is_a_shorter_run_again_and_again(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(50):
        tokens = tuple(draw.choices((1, 2), k=draw.randint(1, 3))) * draw.randint(1, 3)
        n = len(tokens)
        wanted = any(tokens == tokens[:k] * (n // k) for k in range(1, n))
        assert _is_power(tokens) is wanted


@pytest.mark.parametrize("seed", range(10))
def test_every_run_that_occurs_twice_is_found_where_it_occurs(seed: int) -> None:
    draw = random.Random(seed)
    lists = [[Item(i, i + 1, draw.randint(0, 2)) for i in range(draw.randint(0, 9))] for _ in range(3)]
    wanted: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for n, held in enumerate(lists):
        for start in range(len(held)):
            for end in range(start + 1, len(held) + 1):
                wanted.setdefault(tuple(i.token for i in held[start:end]), []).append((n, start))
    found = {tokens: [(next(n for n, h in enumerate(lists) if h is held), i) for held, i in at]
             for tokens, at in _repeated(lists)}  # fmt: skip
    assert found == {tokens: at for tokens, at in wanted.items() if len(at) > 1}


def test_runs_are_at_most_so_long() -> None:
    same = [Item(i, i + 1, 0) for i in range(2 * LONGEST + 2)]
    assert max(len(tokens) for tokens, _ in _repeated([same])) == LONGEST


# -- what blocks are alike --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reads", "alike"),
    [("a b", True), ("b a", True), ("c p", True), ("r p", True), ("a a", False), ("r r", False)],
)
def test_blocks_are_alike_if_they_read_two_values_or_one_twice(reads: str, alike: bool) -> None:
    """a, b and c are inputs of the model; p and r are computed from weights."""

    one, other = reads.split()
    model = parse(f"""g (float[2, 4] a, float[2, 4] b, float[2, 4] c) => (float[2, 4] y, float[2, 4] z) {{
        p = MatMul(a, w0)  q = MatMul(b, w1)  r = Add(p, q)  s = MatMul({one}, w2)  t = MatMul({other}, w3)
        u = Add(s, t)  y = MatMul(u, w4)  z = MatMul(c, w5) }}""")
    for n in range(6):
        model.graph.initializer.append(numpy_helper.from_array(np.full((4, 4), n + 0.5, np.float32), f"w{n}"))
    sequence = NodeSequence(read_model(model, "g").graph.nodes)
    assert (sequence.wiring(0, 3) == sequence.wiring(3, 6)) is alike


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Relu(p)", "Relu(q)", True), ("Relu(p)", "Neg(p)", False), ("Relu(p)", "Relu(a)", True),
        ("Add(p, v4)", "Add(q, u4)", True), ("Add(p, v4)", "Add(p, s1)", False), ("Add(p, v4)", "Add(p, q)", False),
        ("Add(p, q)", "Add(q, p)", True), ("Add(p, b)", "Add(p, q)", False), ("Add(p, a)", "Add(p, q)", True),
        ("Add(p, m44)", "Add(p, v4)", False), ("Add(p, s1)", "Add(p, t1)", True), ("Mul(p, n)", "Mul(p, s1)", False),
        ("Clip(p, n)", "Clip(p, , n)", False), ("Clip(p, n, n)", "Clip(p, n)", False),
        ("Clip(p, , n)", "Clip(q, , o)", True),
        ("Softmax<axis = 0>(p)", "Softmax<axis = 1>(p)", False),
        ("LeakyRelu<alpha = 0.1>(p)", "LeakyRelu<alpha = 0.2>(p)", True),
        ("Transpose<perm = [1, 0]>(p)", "Transpose<perm = [0, 1]>(p)", False),
        ("MatMul(p, m44)", "MatMul(q, k44)", True), ("MatMul(p, l44)", "MatMul(q, l44)", False),  # a shared matrix
        ("MatMul(p, m44)", "MatMul(q, l44)", False), ("MatMul(p, m44)", "MatMul(q, j43)", True),
        ("Gelu(p)", 'Gelu<approximate = "tanh">(p)', False),
        ("Gemm<transB = 1>(p, m44)", "Gemm(p, m44)", False),
    ],
)  # fmt: skip
def test_nodes_are_alike_but_for_numbers_and_weights(one: str, other: str, alike: bool) -> None:
    """p and q are computed from weights; a is what the first layer reads, b another input."""

    model = parse(
        f"""g (float[4, 4] a, float[4, 4] b) => (float[x, y] y, float[z, w] z) {{
        p = MatMul(a, e44)  q = MatMul(p, f44)  r = MatMul(q, l44)  y = {one}  z = {other} }}""",
        21,
    )
    for name, shape in {"s1": (1,), "t1": (1,), "v4": (4,), "u4": (4,), "j43": (4, 3), "n": (), "o": ()}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.full(shape, len(name) + 0.5, np.float32), name))
    for n, name in enumerate(("e44", "f44", "l44", "m44", "k44")):
        held = np.arange(16, dtype=np.float32).reshape(4, 4) + n
        model.graph.initializer.append(numpy_helper.from_array(held, name))
    for o in model.graph.output:
        o.type.Clear()
    tokens = NodeSequence(read_model(model, "g").graph.nodes).tokens
    assert (tokens[3] == tokens[4]) is alike


def test_subgraphs_are_never_alike() -> None:

    one, other = Graph("body", (), (), ()), Graph("body", (), (), ())
    assert one == other and _plan(one) == _plan(one) and _plan(one) != _plan(other)
    assert _plan((one,)) != _plan((other,))
