"""The attention kernel of the GPU: when it is taken, what joins it, and its lanes. The contract holds values."""

from __future__ import annotations

import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.kernels.table import Options
from emberlet.wgpu_backend.plan.make import make_plan


def test_heads_are_split_and_merged_within_the_kernel(gpu, twin, make):
    x = make((2, 32, 24))
    twin.check(lambda _, x: F.attention(x, x, x, num_heads=3), x, rtol=1e-4, atol=1e-5)
    y = gpu.from_bytes(make.cpu.to_bytes(x), x.dtype, x.shape)
    plan, _ = make_plan([F.attention(y, y, y, num_heads=3).data], gpu.options)
    assert len(plan.steps) == 1


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16])
def test_a_query_that_sees_no_key_takes_no_kernel_of_its_own(gpu, twin, make, dtype):
    """Heads of 130 channels are too wide for the kernel, so two products and a softmax compute them."""
    q, k, v = make((1, 2, 5, 130), dtype), make((1, 2, 6, 130), dtype), make((1, 2, 6, 130), dtype)
    seen = make.of([[r % 3 != 0] * 6 for r in range(5)], dtypes.bool)
    rtol = 1e-4 if dtype is dtypes.float32 else 2e-2
    twin.check(lambda _, q, k, v, m: F.attention(q, k, v, m), q, k, v, seen, rtol=rtol, atol=rtol)
    there = [gpu.from_bytes(make.cpu.to_bytes(x), x.dtype, x.shape) for x in (q, k, v, seen)]
    plan, _ = make_plan([F.attention(*there).data], gpu.options)
    assert len(plan.steps) == 3


def test_few_queries_take_one_kernel_on_a_software_device(gpu, make):
    from emberlet.wgpu_backend.kernels.attention import LANES, serves

    q, k, v = [gpu.from_bytes(make.cpu.to_bytes(x), x.dtype, x.shape) for x in (
        make((1, 8, 1, 16)), make((1, 2, 300, 16)), make((1, 2, 300, 16)))]  # fmt: skip
    assert q.shape[1] == LANES
    assert serves(q, k, v, True)
    assert not serves(q[:, :7], k, v, True)


@pytest.mark.parametrize(
    "heads, shared, length, keys, size, depth",
    [(4, 2, 1, 300, 16, 16), (1, 1, 1, 5, 3, 7), (8, 8, 17, 33, 64, 64), (2, 1, 3, 70, 128, 128),
     (6, 3, 130, 65, 8, 12)],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["plain", "mask", "causal", "sink"])
def test_lanes_of_a_gpu_share_the_keys(twin, gpu, make, heads, shared, length, keys, size, depth, kind):
    from emberlet.functional.transformer.dot_product_attention import dot_product_attention

    twin.gpu = WgpuBackend(device=gpu.device)
    twin.gpu._options = Options("gpu")
    q, k, v = make((2, heads, length, size)), make((2, shared, keys, size)), make((2, shared, keys, depth))
    if kind == "sink":
        twin.check(
            lambda _, *x: dot_product_attention(*x[:3], sink=x[3]), q, k, v, make((heads,)), rtol=1e-4, atol=1e-5
        )
    elif kind == "mask":
        seen = make.of(
            [[(r + c) % 3 != 0 for c in range(keys)] if r else [False] * keys for r in range(length)], dtypes.bool
        )
        twin.check(lambda _, q, k, v, m: F.attention(q, k, v, m), q, k, v, seen, rtol=1e-4, atol=1e-5)
    else:
        twin.check(lambda _, q, k, v: F.attention(q, k, v, is_causal=kind == "causal"), q, k, v, rtol=1e-4, atol=1e-5)
    there = [twin.gpu.from_bytes(make.cpu.to_bytes(x), x.dtype, x.shape) for x in (q, k, v)]
    plan, _ = make_plan([F.attention(*there).data], Options("gpu"))
    assert len(plan.steps) == 1 and ("each to a part of the keys" in plan.kernels[0][1]) == (keys >= 4)
