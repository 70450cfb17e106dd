"""matmul_nbits on NumPy, which dequantizes a few columns at a time, against its definition and onnxruntime."""

from __future__ import annotations

import random
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import asarray
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import DTypeError, IndexingError, ShapeError
from support.every_backend import ALL
from support.rows import every


def _drawn(seed: int) -> tuple[dict[str, Any], dict[str, int]]:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    bits = choose.choice([2, 4, 4, 4, 8])
    block_size = choose.choice([16, 32, 64])
    rows, columns = choose.randint(1, 200), choose.choice([1, 7, 64, 3000])
    blocks = -(-rows // block_size)
    given = {
        "x": rng.standard_normal((*choose.choice([(), (1,), (3,), (2, 5)]), rows)).astype(np.float32),
        "weight": rng.integers(0, 256, (columns, blocks, block_size * bits // 8), dtype=np.uint8),
        "scales": rng.standard_normal(columns * blocks).astype(np.float32),
    }
    kind = choose.randrange(3)
    if kind == 1:
        given["zero_points"] = rng.integers(0, 256, columns * -(-blocks * bits // 8), dtype=np.uint8)
    elif kind == 2:
        given["zero_points"] = rng.standard_normal(columns * blocks).astype(np.float32)
    if choose.random() < 0.3:
        given["bias"] = rng.standard_normal(columns).astype(np.float32)
    return given, {"rows": rows, "columns": columns, "bits": bits, "block_size": block_size}


@every("seed", range(30), share=3)
def test_a_product_with_few_bits_is_that_with_the_real_weights(seed: int) -> None:
    given, sizes = _drawn(seed)
    tensors = {k: emberlet.asarray(v, backend="numpy") for k, v in given.items()}
    got = np.asarray(F.matmul_nbits(**tensors, **sizes))
    of_weights = {k: tensors.get(k) for k in ("weight", "scales", "zero_points")}
    real = np.asarray(F.dequantize_nbits(**of_weights, **sizes))
    want = given["x"].astype(np.float64) @ real.T.astype(np.float64) + given.get("bias", 0.0)
    assert got.dtype == np.float32
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(real).sum(1).max())


@every("seed", range(6), share=2)
def test_a_product_with_few_bits_is_onnxruntimes(seed: int) -> None:
    from support.onnxruntime_node import run_node

    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, 96)).astype(np.float32)
    weight = rng.integers(0, 256, (40, 3, 16), dtype=np.uint8)
    scales = rng.random(120).astype(np.float32)
    zero = rng.integers(0, 256, 80, dtype=np.uint8) if seed % 2 else None
    (want,) = run_node(
        "MatMulNBits", [x, weight, scales, zero], domain="com.microsoft", K=96, N=40, bits=4, block_size=32
    )
    given = [emberlet.asarray(a, backend="numpy") for a in (x, weight, scales)]
    points = None if zero is None else emberlet.asarray(zero, backend="numpy")
    np.testing.assert_allclose(F.matmul_nbits(*given, points, rows=96, columns=40), want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("backend", ALL)
def test_gathering_refuses_what_does_not_fit(backend):
    k = get_backend(backend)
    table = asarray(np.arange(48, dtype=np.uint8).reshape(3, 16), backend=k)
    at, scales = asarray([2, 0], backend=k), np.ones((3, 2), np.float32)
    fits = asarray(scales, backend=k)
    assert F.gather_block_quantized(table, at, fits, block_size=16).shape == (2, 32)
    for other in (scales[:2], scales[0]):
        with pytest.raises(ShapeError, match="do not fit a table"):
            F.gather_block_quantized(table, at, asarray(other, backend=k), block_size=16)
    with pytest.raises(IndexingError, match=r"index 7.*axis 0.*length 3"):
        F.gather_block_quantized(table, at + asarray([5, 0], backend=k), fits, block_size=16)
    with pytest.raises(DTypeError, match="a table holds integers, found bool"):
        F.gather_block_quantized(table.astype("bool"), at, fits, block_size=16)


@pytest.mark.parametrize("folded", [True, False])
def test_a_plan_keeps_constant_weights_as_floats_up_to_a_limit(folded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet import nn
    from emberlet.host.numpy_backend.compile import tracing

    layer = nn.Linear(40, 24)
    layer.bias.val()
    layer.weight.val()
    layer.quantize_weights(4, "affine", 8)
    monkeypatch.setattr(tracing, "FOLDED", 4 * 40 * 24 if folded else 4 * 40 * 24 - 1)
    x = emberlet.asarray(np.random.default_rng(0).normal(size=(3, 40)).astype(np.float32), backend="numpy")
    recording = tracing.Tracing(get_backend("numpy"))
    ops = [call.op for call in tracing.trace(layer.fork(recording), [x], recording, frozenset()).calls]
    assert ops == (["linear"] if folded else ["matmul_nbits"])  # as the float layer's, or as eager calls
    wanted = np.asarray(x) @ np.asarray(layer.weight.val()) + np.asarray(layer.bias.val())
    np.testing.assert_allclose(np.asarray(layer.compile(backend="numpy")(x)), wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.asarray(layer(x)), wanted, rtol=1e-5, atol=1e-5)
