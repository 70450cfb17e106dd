"""The numpy backend's overrides equal the composites, in dtypes and at sizes that the contract does not draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet as el
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from support.backends import EPSILON, numpy_dtype, same

NUMPY = get_backend("numpy")


def composed(name: str) -> Any:
    """The numpy backend without its own version of `name`."""
    plain = type(NUMPY)(0)
    setattr(plain, name, None)
    return plain


def normal(seed: int, *shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(numpy_dtype(dtype))


def agree(name: str, function: Callable[..., Any], arrays: list[Any], tolerance: float = 2e-6) -> None:
    """Both backends give the same results for tensors of the arrays (None stays None)."""

    def on(backend: Any) -> list[Any]:
        out = function(*[None if a is None else el.asarray(a, backend=backend) for a in arrays])
        return list(out) if isinstance(out, tuple) else [out]

    for own, plain in zip(on(NUMPY), on(composed(name)), strict=True):
        same(own, np.asarray(plain), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_attention_in_every_float_with_cap_and_sink(dtype: str) -> None:
    from emberlet.functional.transformer.dot_product_attention import dot_product_attention

    arrays = [normal(i, 2, 4, 6, 8, dtype=dtype) for i in range(3)]
    agree(
        "dot_product_attention",
        lambda q, k, v, sink: dot_product_attention(q, k, v, None, 0.3, 2.0, False, sink),
        [*arrays, normal(4, 4, dtype=dtype)],
        10 * EPSILON[dtype],
    )


@pytest.mark.parametrize("inner", [3, 300, 40000])
def test_products_of_small_integers_are_exact(inner: int) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 256, (2, 3, inner), np.uint8), rng.integers(-128, 128, (inner, 4), np.int8)
    a[0, 0], b[:, 0] = 255, -128  # the largest sum there is
    agree("matmul_8bit", lambda a, b, z: F.matmul_integer(a, b, z), [a, b, np.array(0, np.uint8)])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2"])
def test_quantization(dtype: str) -> None:
    x = np.concatenate([normal(1, 4, 30) * 40, [[np.nan, np.inf, -np.inf, 0.5, 1.5, -0.5] * 5]]).astype(np.float32)
    scale = np.array([0.5, 1, 3, 0.1, 1], np.float32)
    zero = np.array([0, 1, 1, 0, 1]).astype(numpy_dtype(dtype))
    for s, z in ((scale, zero), (scale[:1], zero[1:2]), (scale, None)):
        agree("to_levels", lambda x, s, z: F.quantize_linear(x, s, z, axis=0, dtype=dtype), [x, s, z])
        levels = np.asarray(F.quantize_linear(el.asarray(x), el.asarray(scale), el.asarray(zero), axis=0))
        agree("from_levels", lambda x, s, z: F.dequantize_linear(x, s, z, axis=0), [levels, s, z])
        half = s.astype(np.float16)
        agree("from_levels", lambda x, s, z: F.dequantize_linear(x, s, z, axis=0), [levels, half, z])
