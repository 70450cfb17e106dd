"""Generated reductions, pools and norms of 16-bit floats, compared with the same model in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.contrib_node import generated, one_node
from support.rows import every

IMAGE = np.array([2, 3], dtype=np.int64)
CHANNELS = ["InstanceNormalization", "GroupNormalization"]
CASES: list[tuple[str, dict[str, Any]]] = [
    ("ReduceMean", {}), ("ReduceL1", {}), ("ReduceL2", {}), ("ReduceLogSum", {}), ("ReduceLogSumExp", {}),
    ("ReduceSumSquare", {}), ("ReduceSum", {}), ("GlobalAveragePool", {}), ("AveragePool", {"kernel_shape": [3, 3]}),
    ("LpPool", {"kernel_shape": [3, 3]}), ("GlobalLpPool", {}), ("LpNormalization", {"axis": 1, "p": 2}),
    ("LayerNormalization", {"epsilon": 0.0}), ("RMSNormalization", {"epsilon": 0.0}),
    ("InstanceNormalization", {"epsilon": 0.0}), ("GroupNormalization", {"num_groups": 2, "epsilon": 0.0}),
    ("MeanVarianceNormalization", {}), ("LRN", {"size": 3}), ("Softmax", {}), ("LogSoftmax", {}),
]  # fmt: skip


def answer(op: str, attributes: dict[str, Any], x: Any, backend: str) -> Any:
    inputs, constants = [x], ()
    if op.startswith("Reduce"):
        inputs, constants = [x, IMAGE], (1,)
    elif op in ("LayerNormalization", "RMSNormalization"):
        inputs = [x, np.ones(x.shape[-1], x.dtype)]
    elif op in CHANNELS:
        inputs = [x, np.ones(x.shape[1], x.dtype), np.zeros(x.shape[1], x.dtype)]
    model = one_node(op, inputs, (x.dtype,), constants, domain="", **attributes)
    model.opset_import[0].version = 23
    feeds = {f"i{i}": v for i, v in enumerate(inputs) if i not in constants}
    return generated(model, feeds, backend)[0]


@pytest.mark.parametrize("backend", ["numpy", "python"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("scale", [300, 6e4, 1e-6])
@every(("op", "attributes"), CASES)
def test_operators_accumulate_in_float32(op: str, attributes: Any, scale: float, dtype: Any, backend: str) -> None:
    x = (np.random.default_rng(1).uniform(0.5, 1, (2, 4, 8, 8)) * scale).astype(dtype)
    found = answer(op, attributes, x, backend)
    with np.errstate(over="ignore"):
        expected = answer(op, attributes, x.astype(np.float64), "numpy").astype(dtype).astype(np.float64)
    precision = 4e-3 if dtype is np.float16 else 3e-2
    near_zero = precision if op.endswith(("Normalization", "max")) else 6e-8
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=precision, atol=near_zero)


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization", "GroupNormalization"])
def test_a_stash_type_of_double_is_computed_in_it(op: str) -> None:
    x = np.float32([[[1e4, 1e4 + 0.01], [1e4 + 0.03, 1e4 + 0.02]]]) + np.zeros((1, 2, 2), np.float32)
    given = {"epsilon": 0.0, **({"num_groups": 1} if op == "GroupNormalization" else {})}
    found = answer(op, {**given, "stash_type": 11}, x, "numpy")
    expected = answer(op, given, x.astype(np.float64), "numpy").astype(np.float32)
    np.testing.assert_array_equal(found, expected)
