"""`inspect` and `inspect --json` say of small graphs what is recorded.

`UPDATE_SNAPSHOTS=1 pytest FILE` records it again after a deliberate change.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from emberlet.codegen import inspect
from emberlet.codegen.graph_json import as_json
from support.more_pass_patterns import MORE_PATTERNS
from support.onnx_models import parse
from support.pass_patterns import PATTERNS as FIRST_PATTERNS
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "snapshots" / "graphs.txt"
PATTERNS = sorted({**FIRST_PATTERNS, **MORE_PATTERNS}.items())
GROUP = 17
TYPES = {  # values that are no tensors, numbers that JSON lacks, constants of 64 and more elements
    "sequence":
        "g (seq(float[N, 2]) s, int64 n)"
        " => (float[a, b] y, seq(float[c, d]) t) { y = SequenceAt(s, n) t = SequenceErase(s, n) }",
    "optional":
        "g (optional(float[2]) o)"
        " => (bool b, float[2] y) { b = OptionalHasElement(o) y = OptionalGetElement(o) }",
    "branch": """g (float[2] x, bool c) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] p) { p = Neg(x) },
        else_branch = f () => (float[2] q) { q = Abs(x) }> }""",
    "sizes":
        "g (float[N, 3, M] x)"
        " => (int64[3] s, int64 n, int64[a] t) { s = Shape(x) n = Size(x) t = Shape<start = 1>(x) }",
    "one size":
        "g (float[N, 3] x, int64 i)"
        " => (int64 n, float[b, c] y) { s = Shape(x) n = Gather(s, i) y = Expand(x, s) }",
    "no numbers":
        "g (float[2] x)"
        " => (float[2] y, float[2] z) <float[2] w = "
        "{1, 2}> { i = Constant<value_float = inf>() y = Add(x, i) z = Add(x, w) }",
    "nan": "g (float[2] x) => (float[2] y) { i = Constant<value_floats = [nan, -inf]>() y = Add(x, i) }",
    "unknown rank": "g (float x, int64[r] s) => (float y, float z) { y = Reshape(x, s) z = Neg(y) }",
    "two outputs":
        "g (float[4, 6] x)"
        " => (float[a, b] v, int64[c, d] i, float[e, f] w) "
        "{ v, i = TopK<axis = 1>(x, k) w, = Split<axis = 1, num_outputs = 1>(x) }",
    "texts":
        "g (string[N] x) => (string[N] y) {"
        " y = StringNormalizer<case_change_action = \"LOWER\", stopwords = [\"a\"]>(x) }",
    "cast": "g (float[2] x) => (float16[2] y) { y = Cast<to = 10>(x) }",
    "left out": "g (float[1, 2, 5] x, float lo) => (float[1, 2, 5] y) { y = Clip(x, , lo) }",
    "pool":
        "g (float[1, 2, 8] x)"
        " => (float[a, b, c] y) { y = MaxPool<kernel_shape = [3], auto_pad = \"SAME_UPPER\">(x) }",
}  # fmt: skip


def digests(model: object) -> str:
    text, data = inspect(model), json.dumps(as_json(model), allow_nan=False)  # type: ignore[arg-type]
    found = [hashlib.sha256(t.encode()).hexdigest()[:8] for t in (text, data)]
    return f"{text.splitlines()[-1]}, {' '.join(found)}"


@pytest.mark.parametrize("first", range(0, len(PATTERNS), GROUP))
def test_the_graphs_of_patterns_are_said_as_recorded(first: int) -> None:
    lines = [f"{name}: {digests(pattern.model())}" for name, pattern in PATTERNS[first : first + GROUP]]
    assert_recorded(RECORDED, f"patterns from {first:03} on", "\n".join(lines))


@pytest.mark.parametrize("name", TYPES)
def test_a_graph_with_other_values_is_said_as_recorded(name: str) -> None:
    import numpy as np
    from onnx import numpy_helper

    model = parse(TYPES[name])
    if name == "two outputs":
        model.graph.initializer.append(numpy_helper.from_array(np.array([2], np.int64), "k"))
    lines = [digests(model)]
    for count in (63, 64, 65):
        numbers = np.arange(count, dtype=np.float32) / 7
        model.graph.initializer.append(numpy_helper.from_array(numbers, f"held{count}"))
        model.graph.node.add(op_type="Neg", input=[f"held{count}"], output=[f"negated{count}"])
        lines.append(digests(model))
    assert_recorded(RECORDED, name, "\n".join(lines))
