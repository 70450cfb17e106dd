"""Products with weights of 2, 4 and 8 bits, unpacked in registers, compared with the dequantized product in float64."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import Compiled
from emberlet.wgpu_backend.llvm import set_processor
from support.every_backend import NATIVE, WASM, WGPU

BACKENDS = [WASM, NATIVE, WGPU]


def levels_of(packed: Any, bits: int) -> Any:
    """The numbers in bytes, the first in the lowest bits."""
    parts = np.unpackbits(packed, axis=-1, bitorder="little").reshape(*packed.shape[:-1], -1, bits)
    return (parts * (1 << np.arange(bits))).sum(-1)


def drawn(rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, int], Any]:
    """The arguments of matmul_nbits, and the weight that they stand for in float64."""
    bits, block = int(rng.choice([2, 4, 8])), int(rng.choice([16, 32, 64, 128]))
    rows = int(rng.choice([16, 30, 33, 64, 100, 129, 288]))
    columns = int(rng.choice([3, 4, 5, 8, 15, 16, 17, 31, 32, 65, 96]))
    count = -(-rows // block)
    weight = rng.integers(0, 256, (columns, count, block * bits // 8)).astype(np.uint8)
    scales = rng.uniform(0.5, 2.0, columns * count).astype(np.float32)
    zero_points: Any = None
    zeros = np.full((columns, count), 1 << (bits - 1), np.float64)
    how = rng.integers(3)
    if how == 1:
        zero_points = rng.integers(0, 256, (columns, -(-count * bits // 8))).astype(np.uint8)
        zeros = levels_of(zero_points, bits)[:, :count].astype(np.float64)
    elif how == 2:
        zero_points = rng.uniform(0, (1 << bits) - 1, columns * count).astype(np.float32)
        zeros = zero_points.reshape(columns, count).astype(np.float64)
    real = levels_of(weight, bits) - zeros[..., None]
    real = (real * scales.astype(np.float64).reshape(columns, count, 1)).reshape(columns, -1)[:, :rows].T
    given = {"weight": weight, "scales": scales, "zero_points": zero_points}
    return given, {"rows": rows, "columns": columns, "bits": bits, "block_size": block}, real


def check(backend: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given, sizes, real = drawn(rng)
    bias = rng.standard_normal(sizes["columns"]).astype(np.float32)
    tensors = {k: None if v is None else F.asarray(v, backend=backend) for k, v in {**given, "bias": bias}.items()}
    shape = [(1,), (2,), (4,), (5,), (29,), (2, 3), ()][rng.integers(7)]
    x = rng.standard_normal((*shape, sizes["rows"])).astype(np.float32)
    opened = {"x": {0: ("length", 64)}} if shape and rng.random() < 0.4 else None
    compiled = Compiled(lambda x: F.relu(F.matmul_nbits(x, **tensors, **sizes)), (), backend, dims=opened)
    for count in (x.shape[0], 1, 2) if opened else (x.shape[0],):
        part = np.resize(x, (count, *x.shape[1:]))
        want = np.maximum(part.astype(np.float64) @ real + bias, 0)
        near = 1e-6 * (np.abs(part) @ np.abs(real)) + 1e-5
        got = np.asarray(compiled(F.asarray(part, backend=backend)))
        assert got.shape == want.shape and (np.abs(got - want) <= near).all(), (seed, given, sizes, shape)
    names = [name for name, _ in compiled.plan().kernels]
    kernel = sizes["columns"] > 3 and (backend != "wgpu" or int(np.prod(x.shape[:-1])) <= 4)
    if not (opened and backend == "wgpu"):
        assert any("packed" in name for name in names) is kernel, (seed, names)


@pytest.mark.parametrize("backend", BACKENDS)
def test_drawn_products_equal_those_of_the_dequantized_weight(backend: str) -> None:
    for seed in range(12 if backend == "wgpu" else 30):
        check(backend, seed)


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64"], ids=["AVX2", "SSE2"])
@pytest.mark.skipif("NATIVE.marks[0].args[0]", reason="llvmlite is not installed")
def test_shorter_vectors_give_the_same(name: str) -> None:
    set_processor(name)
    try:
        for seed in range(100, 108):
            check("native", seed)
    finally:
        set_processor(None)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1, 20])
def test_weights_that_leave_the_cache_as_floats(backend: str, count: int) -> None:
    layer = nn.QuantizedLinear(288, 1040, bits=4, block_size=32, backend="numpy")
    layer.weight.fill(F.asarray(np.random.default_rng(4).standard_normal((288, 1040)).astype(np.float32)))
    x = np.random.default_rng(9).standard_normal((count, 288)).astype(np.float32)
    compiled = emberlet.wgpu_backend.compiled.compile(layer, F.asarray(x), backend=backend)
    want = x.astype(np.float64) @ np.asarray(layer.weight.val()).astype(np.float64) + np.asarray(layer.bias.val())
    np.testing.assert_allclose(compiled(x), want, rtol=1e-5, atol=2e-4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("bits", "block_size", "affine"), [(4, 32, False), (8, None, True), (2, 16, True)])
def test_weights_stay_packed_in_a_plan(backend: str, bits: int, block_size: int | None, affine: bool) -> None:
    layer = nn.QuantizedLinear(96, 208, bits=bits, block_size=block_size, affine=affine, backend="numpy")
    real = np.random.default_rng(bits).standard_normal((96, 208)).astype(np.float32)
    layer.weight.fill(F.asarray(real, backend="numpy"))
    x = np.random.default_rng(9).standard_normal((3, 96)).astype(np.float32)
    compiled = emberlet.wgpu_backend.compiled.compile(layer, F.asarray(x), backend=backend)
    exact = np.asarray(layer.weight.val()).astype(np.float64)
    want = x.astype(np.float64) @ exact + np.asarray(layer.bias.val())
    np.testing.assert_allclose(compiled(x), want, rtol=1e-5, atol=1e-4)
    largest = max(int(b.nbytes) for b in compiled.plan().buffers)
    assert largest <= 96 * 208 * bits // 8, "the packed weights"


@pytest.mark.parametrize("name", ["layer.wasm", pytest.param("layer.bpk", marks=WGPU.marks)])
def test_saved_plans_have_packed_weights(tmp_path: Any, name: str) -> None:
    layer = nn.QuantizedLinear(96, 208, bits=4, block_size=32, affine=True, backend="numpy")
    layer.weight.fill(F.asarray(np.random.default_rng(4).standard_normal((96, 208)).astype(np.float32)))
    x = F.asarray(np.random.default_rng(5).standard_normal((2, 96)).astype(np.float32))
    plan_file.save(str(tmp_path / name), layer, x)
    assert (tmp_path / name).stat().st_size < 96 * 208 * 4 // 2
    (found,) = plan_file.load(str(tmp_path / name)).run(x)
    np.testing.assert_allclose(found, layer(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_product_of_constants_is_computed_when_the_plan_is_made(backend: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(8):
        given, sizes, real = drawn(rng)
        tensors = {k: None if v is None else F.asarray(v, backend=backend) for k, v in given.items()}
        x = rng.standard_normal((2, sizes["rows"])).astype(np.float32)
        constant = F.asarray(x, backend=backend)
        compiled = Compiled(lambda y, c=constant, t=tensors, s=sizes: y + F.matmul_nbits(c, **t, **s), (), backend)
        got = np.asarray(compiled(F.zeros((2, sizes["columns"]), backend=backend)))
        near = 1e-6 * (np.abs(x) @ np.abs(real)) + 1e-5
        assert (np.abs(got - x.astype(np.float64) @ real) <= near).all(), sizes
