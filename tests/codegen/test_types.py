"""Types of values: the common type of two, and types that a file adds to the inferred ones."""

from __future__ import annotations

import pytest
from emberlet.codegen import load
from emberlet.errors import ModelError
from support.onnx_models import parse

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
