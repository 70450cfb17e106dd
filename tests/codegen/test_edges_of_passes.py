"""Graphs just beside what a pass rewrites: the result of each is that of no passes.

tests/codegen/test_near_misses.py changes patterns in one place; these graphs differ in ways that no such change makes:
other tables, more parts, an operand of another tensor, sizes at a limit.
"""

from __future__ import annotations

import warnings

import numpy as np
import onnx
from onnx import helper
from support.edge_patterns import EDGES as FIRST_EDGES
from support.more_edge_patterns import MORE_EDGES
from support.onnx_models import generated
from support.rows import every

EDGES = {**FIRST_EDGES, **MORE_EDGES}
SIZES = {"N": 2, "B": 2, "L": 3, "S": 3, "T": 3, "P": 2}


def drawn(model: onnx.ModelProto) -> list[np.ndarray]:
    """An array for each input of a model; integers are 0, 1 and 2."""
    random, arrays = np.random.default_rng(5), []
    for info in model.graph.input:
        t = info.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else SIZES[d.dim_param] for d in t.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(t.elem_type)
        made = random.standard_normal(shape) if dtype.kind == "f" else random.integers(0, 3, shape)
        arrays.append(made.astype(dtype))
    return arrays


@every("name", EDGES)
def test_a_graph_beside_a_pattern_gives_the_same_with_and_without_passes(name: str) -> None:
    model = EDGES[name].model()
    arrays = drawn(model)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = generated(model, arrays, passes=[])
        for passes in (None, [EDGES[name].alone]):
            for g, w in zip(generated(model, arrays, passes=passes), want, strict=True):
                assert (g.dtype, g.shape) == (w.dtype, w.shape)
                if w.dtype.kind == "f":  # a query that sees no key: NaN in parts, 0 in attention
                    g = np.where(np.isnan(w) & (g == 0), w, g)
                np.testing.assert_allclose(g, w, atol=2e-5, rtol=2e-4)
