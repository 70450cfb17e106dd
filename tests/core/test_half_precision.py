"""Sums, means, norms, variances and pools of 16-bit floats: added up in float32, rounded once.

Values near 300 overflow float16 when they are squared, those near 60000 when two are added, and the squares of 1e-6
vanish. The expected results come from the same function in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import Tensor
from emberlet import functional as F
from support.backends import numpy_dtype
from support.every_backend import EVERY
from support.rows import every

IMAGE = (2, 3)
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda x: F.sum(x, IMAGE),
    "prod": lambda x: F.prod(x[:, :, :2, 0], 2),
    "mean": lambda x: F.mean(x, IMAGE),
    "var": lambda x: F.var(x, IMAGE),
    "sample var": lambda x: F.var_mean(x, 3, correction=1)[0],
    "std": lambda x: F.std(x, IMAGE),
    "norm": lambda x: F.norm(x, 2, IMAGE),
    "1-norm": lambda x: F.norm(x, 1, 3),
    "3-norm": lambda x: F.norm(x, 3, 3),
    "vector_norm": lambda x: F.vector_norm(x, axis=3),
    "logsumexp": lambda x: F.logsumexp(x, 3),
    "cumulative_sum": lambda x: F.cumulative_sum(x, axis=3),
    "avg_pool": lambda x: F.avg_pool(x, 3, padding=1),
    "avg_pool without padding": lambda x: F.avg_pool(x, 8, padding=2, count_include_pad=False),
    "global_avg_pool": F.global_avg_pool,
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool(x, 3),
    "lp_pool": lambda x: F.lp_pool(x, 3),
    "layer_norm": lambda x: F.layer_norm(x, epsilon=0),
    "rms_norm": lambda x: F.rms_norm(x, epsilon=0),
    "group_norm": lambda x: F.group_norm(x, 2, epsilon=0),
    "instance_norm": lambda x: F.instance_norm(x, epsilon=0),
    "lp_normalize": F.lp_normalize,
    "mean_variance_norm": F.mean_variance_norm,
    "local_response_norm": lambda x: F.local_response_norm(x, 3),
    "batch_norm": lambda x: F.batch_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3)), epsilon=0),
    "softmax": lambda x: F.softmax(x, 3),
    "softmin": lambda x: F.softmin(x, 3),
    "quiet_softmax": lambda x: F.quiet_softmax(x, 3),
    "log_softmax": lambda x: F.log_softmax(x, 3),
    "matmul": lambda x: x @ (x.mT * (1 / 1024)),
    "cross_entropy": lambda x: F.cross_entropy(x / F.max(x), F.zeros((2, 16, 16), dtype="int64", backend=x.backend)),
}
DTYPES = {"float16": 1e-3, "bfloat16": 8e-3}  # dtype -> its precision
SCALES = [300, 6e4, 1e-6]


def check(name: str, dtype: str, scale: float, backend: Any) -> None:
    drawn = np.random.default_rng(0).uniform(0.5, 1, (2, 4, 16, 16)) * scale
    x = emberlet.asarray(drawn.astype(np.float32).astype(numpy_dtype(dtype)), backend=backend)
    found = FUNCTIONS[name](x)
    assert found.dtype is x.dtype
    wide = emberlet.asarray(np.asarray(x).astype(np.float64), backend="numpy")
    if name == "batch_norm":  # the statistics are rounded on the way
        mean, var = (np.asarray(f(x, (0, 2, 3))).astype(np.float64) for f in (F.mean, F.var))
        exact = F.batch_norm(wide, mean, var, epsilon=0)
    else:
        exact = FUNCTIONS[name](wide)
    with np.errstate(over="ignore"):
        expected = np.asarray(exact).astype(numpy_dtype(dtype)).astype(np.float64)
    precision = DTYPES[dtype]
    # A result near 0 is only as precise as the numbers of order 1 whose difference it is.
    around_one = ("layer_norm", "group_norm", "instance_norm", "mean_variance_norm", "batch_norm", "log_softmax")
    near_zero = 4 * precision if name in around_one or "soft" in name else 6e-8
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), expected, rtol=4 * precision, atol=near_zero)


@every("scale", SCALES)
@pytest.mark.parametrize("dtype", DTYPES)
@every("name", FUNCTIONS)
def test_half_precision_is_accumulated_in_float32(backend: Any, name: str, dtype: str, scale: float) -> None:
    check(name, dtype, scale, backend)


@pytest.mark.parametrize("function", [F.softmax, F.mean, F.log_softmax])
def test_more_elements_than_float16_counts(backend: Any, function: Any) -> None:
    x = emberlet.ones((1, 70000), dtype="float16")
    found = function(x, 1)
    exact = np.asarray(function(emberlet.ones((1, 70000), dtype="float64", backend="numpy"), 1))
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), exact.astype(np.float16), rtol=1e-3, atol=6e-8)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    name: getattr(F, name)
    for name in ("sigmoid", "silu", "swish", "hard_sigmoid", "hard_swish", "gelu", "softplus", "softsign",
                 "log_sigmoid", "mish", "elu", "selu", "celu", "glu")
}  # fmt: skip
ACTIVATIONS["gelu by tanh"] = lambda x: F.gelu(x, approximate="tanh")
ACTIVATIONS["softplus, steep"] = lambda x: F.softplus(x, 8.0)
ACTIVATIONS["swiglu"] = lambda x: F.swiglu(x, x)


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize("dtype", DTYPES)
@every("name", ACTIVATIONS)
def test_activations_of_16_bits_round_once(name: str, dtype: str, backend: Any) -> None:
    """Each element is float64's, rounded, except for float32's last digits, even where one step in 16 bits would lose
    it entirely."""
    drawn = np.random.default_rng(1).uniform(-12, 12, 200).astype(np.float32).astype(numpy_dtype(dtype))
    found = np.asarray(ACTIVATIONS[name](emberlet.asarray(drawn, backend=backend)).astype("float32"))
    want = np.asarray(ACTIVATIONS[name](emberlet.asarray(drawn.astype(np.float64), backend="numpy")))
    np.testing.assert_allclose(found, want, rtol=DTYPES[dtype], atol=3e-6)
