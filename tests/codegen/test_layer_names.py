"""Names of layers that only their weights' origins say, and constants that count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet.codegen.generation import translate
from onnx import numpy_helper
from support.onnx_models import parse


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        (np.arange(17), "F.arange(17, backend=x.backend)"),
        (np.arange(3, 20), "F.arange(3, 20, backend=x.backend)"),
        (np.arange(-3, 17), "F.arange(-3, 17, backend=x.backend)"),
        (np.arange(24).reshape(4, 6), "F.arange(24, backend=x.backend).reshape((4, 6))"),
        (np.full(17, 5), "F.full((17,), 5, backend=x.backend)"),
        (np.arange(16), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15"),
        (np.arange(0, 34, 2), "self.idx.val()"),
        (np.arange(17)[::-1].copy(), "self.idx.val()"),
        (np.array([5] * 16 + [6]), "self.idx.val()"),
        (np.array([*range(16), 17]), "self.idx.val()"),
    ],
)
def test_a_constant_that_counts_is_no_parameter(numbers: Any, text: str) -> None:
    model = parse("g (float[40, 2] x) => (float[a, b] y) { z = Gather(x, idx)  y = Neg(z) }")
    model.graph.initializer.append(numpy_helper.from_array(numbers.astype(np.int64), "idx"))
    model.graph.output[0].type.Clear()
    model.graph.node[0].name, model.graph.node[1].name = "/a/Gather", "/b/Neg"  # in modules
    source = translate(model, "net")[1].source
    assert text in source.partition("def forward")[2], source
