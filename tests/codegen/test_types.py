"""Types of values: the common type of two, and types that a file adds to the inferred ones."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet import dtypes
from emberlet.codegen import load
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import (
    AbsentType,
    MapType,
    OptionalType,
    ScalarType,
    SequenceType,
    ShapeType,
    TensorType,
    UnknownType,
    as_tensor,
    broadcast,
    describe,
    join,
    refine,
)
from emberlet.errors import ModelError
from support.onnx_models import parse
from support.rows import every

F, I64, TEXT = dtypes.float32, dtypes.int64, dtypes.string
T, N = TensorType, None


@every(
    ("a", "b", "both"),
    [
        (T(F, (2, 3)), T(F, (2, 3)), T(F, (2, 3))),
        (T(F, (2, 3)), T(F, (2, 4)), T(F, (2, N))),
        (T(F, ("a", 3)), T(F, ("b", 3)), T(F, (N, 3))),
        (T(F, ("a",)), T(F, (4,)), T(F, (N,))),
        (T(F, (2, 3)), T(F, (2,)), T(F)),
        (T(F, (2, 3)), T(F), T(F)),
        (T(F, (2,)), T(I64, (2,)), "one value has two types, float32 (2,) and int64 (2,)"),
        (ScalarType(I64, 3, True), ScalarType(I64, 4, True), ScalarType(I64, N, True)),
        (ScalarType(I64, 3, True), ScalarType(I64, 4), ScalarType(I64)),
        (ScalarType(I64, 3), T(I64, ()), T(I64, ())),
        (ScalarType(I64, 3), T(I64, (1,)), T(I64)),
        (ScalarType(I64, 3), ScalarType(F), "two types"),
        (ShapeType((2, "a")), ShapeType((2, "b")), ShapeType((2, N))),
        (ShapeType((2, 3)), ShapeType((2,)), T(I64, (N,))),
        (ShapeType((2, 3)), T(I64, (2,)), T(I64, (2,))),
        (SequenceType(T(F, (2,))), SequenceType(T(F, (3,))), SequenceType(T(F, (N,)))),
        (SequenceType(T(F)), T(F), "expected a tensor, found list of float32 (...)"),
        (OptionalType(T(F, (2,))), OptionalType(T(F, (3,))), OptionalType(T(F, (N,)))),
        (OptionalType(T(F, (2,))), T(F, (2,)), OptionalType(T(F, (2,)))),
        (AbsentType(), T(F), OptionalType(T(F))),
        (AbsentType(), OptionalType(T(F)), OptionalType(T(F))),
        (AbsentType(), AbsentType(), AbsentType()),
        (MapType(I64, F), MapType(I64, F), MapType(I64, F)),
        (MapType(I64, F), MapType(TEXT, F), "one value has two types, dict of "),
        (MapType(I64, F), T(F), "one value has two types, "),
        (UnknownType(), T(F), UnknownType()),
        (UnknownType(), MapType(I64, F), UnknownType()),
    ],
)
def test_joining_two_types_gives_the_type_that_fits_both(a: Any, b: Any, both: Any) -> None:
    for x, y in ((a, b), (b, a)):
        if isinstance(both, str):
            with pytest.raises(Problem) as found:
                join(x, y)
            assert both[:12] in str(found.value)
        else:
            assert join(x, y) == both
            assert join(both, x) == both


@pytest.mark.parametrize(
    ("inferred", "declared", "known"),
    [
        (T(F), T(F, (2, "a")), T(F, (2, "a"))),
        (T(F, (2, N)), T(F), T(F, (2, N))),
        (T(F, (2, N)), T(F, (3, "a")), T(F, (2, "a"))),
        (T(F, (2, N)), T(F, ("b", 4)), T(F, (2, 4))),
        (T(F, ("a", "?1")), T(F, ("b", "c")), T(F, ("a", "c"))),
        (T(F, ("?1",)), T(F, (N,)), T(F, ("?1",))),
        (T(F, ("?1",)), T(F, (7,)), T(F, (7,))),
        (T(F, (2, N)), T(F, (2,)), T(F, (2, N))),
        (T(F, (N,)), T(I64, (2,)), T(F, (N,))),
        (SequenceType(T(F)), SequenceType(T(F, (2,))), SequenceType(T(F, (2,)))),
        (OptionalType(T(F)), OptionalType(T(F, (2,))), OptionalType(T(F, (2,)))),
        (SequenceType(T(F)), T(F, (2,)), SequenceType(T(F))),
        (UnknownType(), T(F, (2,)), T(F, (2,))),
        (ShapeType((2,)), T(I64, (1,)), ShapeType((2,))),
    ],
)
def test_a_file_adds_what_is_not_inferred(inferred: Any, declared: Any, known: Any) -> None:
    assert refine(inferred, declared) == known


@pytest.mark.parametrize(
    ("shapes", "out"),
    [
        ([(2, 3), (3,)], (2, 3)),
        ([(2, 1), (1, 3)], (2, 3)),
        ([(2, 1), ("a",)], (2, "a")),
        ([("a",), (1,)], ("a",)),
        ([("a",), (4,)], (4,)),
        ([("a",), ("b",)], (None,)),
        ([("a",), ("a",)], ("a",)),
        ([(None,), ("a",)], (None,)),
        ([(1,), (1,)], (1,)),
        ([(0,), (1,)], (0,)),
        ([(), (2,)], (2,)),
        ([(), ()], ()),
        ([("s",), ("min(7, s)",)], ("s",)),
        ([("s",), ("min(1, s)",)], (None,)),
        ([("t",), ("min(7, s)",)], (None,)),
        ([None, (2,)], None),
        ([(2,), (3,)], "shapes (2,) and (3,) do not broadcast together"),
        ([(0,), (2,)], "do not broadcast together"),
        ([(2, 3), (2,)], "do not broadcast together"),
    ],
)
def test_the_shape_of_a_broadcast(shapes: list[Any], out: Any) -> None:
    for given in (shapes, shapes[::-1]):
        if isinstance(out, str):
            with pytest.raises(Problem, match="do not broadcast together"):
                broadcast(*given)
        else:
            assert broadcast(*given) == out


@pytest.mark.parametrize(
    ("t", "words", "tensor"),
    [
        (T(F, ("a", N, 3)), "float32 (a, ?, 3)", T(F, ("a", N, 3))),
        (T(F, ("?1",)), "float32 (?,)", T(F, ("?1",))),
        (T(F), "float32 (...)", T(F)),
        (T(F, ()), "float32 ()", T(F, ())),
        (ScalarType(I64), "int64", T(I64, ())),
        (ScalarType(I64, "a"), "int64 a", T(I64, ())),
        (ShapeType((2, "a")), "shape (2, a)", T(I64, (2,))),
        (OptionalType(T(F, (2,))), "float32 (2,) or None", T(F, (2,))),
        (SequenceType(T(F)), "list of float32 (...)", None),
        (MapType(I64, F), "dict of int64 to float32", None),
        (AbsentType(), "nothing", None),
        (UnknownType(), "an unknown type", None),
    ],
)
def test_a_type_in_words_and_as_a_tensor(t: Any, words: str, tensor: Any) -> None:
    assert describe(t) == words
    if tensor is None:
        with pytest.raises(Problem, match=f"expected a tensor, found {words[:9]}"):
            as_tensor(t)
    else:
        assert as_tensor(t) == tensor


BODY = "body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) { d = Identity(c)  t = Neg(s) }"
LESS = BODY.replace("int64 i, bool c, float[2] s", "int64 i, bool c").replace("Neg(s)", "Neg(x)")
SCAN = "body = b (float[2] s, float[3] t) => (float[2] n, float[3] o) { n = Neg(s)  o = Neg(t) }"


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (f"y = Loop<{LESS}>(, , x)", "the body has 2 inputs, expected 3"),
        (
            "y, z = If(b) <then_branch = p () => (float[2] a) { a = Neg(x) }, else_branch = q () => (float[2] e) "
            "{ e = Exp(x) }>",
            "a branch has 1 outputs, the node 2",
        ),
        (f"y, z = Scan<num_scan_inputs = 3, {SCAN}>(x, m)", "has 2 inputs, of which 3 are scanned"),
        (f"y, z = Scan<num_scan_inputs = 0, {SCAN}>(x, m)", "has 2 inputs, of which 0 are scanned"),
        (f"y, z = Scan<num_scan_inputs = 1, scan_input_axes = [0, 1], {SCAN}>(x, m)", "do not match the number"),
        (f"y, z = Scan<num_scan_inputs = 1, scan_output_axes = [0, 1], {SCAN}>(x, m)", "do not match the number"),
        (f"y, z = Scan<num_scan_inputs = 1, scan_input_directions = [0, 1], {SCAN}>(x, m)", "do not match the number"),
        (f"y, z = Scan<num_scan_inputs = 1, scan_input_axes = [2], {SCAN}>(x, m)", "axis 2"),
        ("y = SequenceMap<body = b (float[2] s) => (float[2] t) { t = Neg(s) }>(x)", "the first input is not a seq"),
        (
            "q = SequenceConstruct(x)  y = SequenceMap<body = b (float[2] s, float[2] r) => (float[2] t) "
            "{ t = Add(s, r) }>(q)",
            "the body has 2 inputs and 1 outputs",
        ),
        ("q = SequenceConstruct(x)  y = Neg(q)", "expected a tensor, found list of float32 (2,)"),
    ],
)
def test_a_body_that_does_not_fit_its_node_is_refused(nodes: str, words: str) -> None:
    model = parse(f"g (float[2] x, float[4, 3] m, bool b) => (float[2] y) {{ {nodes} }}")
    with pytest.raises(ModelError) as refused:
        load(model, "numpy")
    assert words in str(refused.value)
