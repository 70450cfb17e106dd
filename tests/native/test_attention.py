"""Attention in one pass: the matrix of scores is never stored, and lengths may stay open."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.llvm import set_threads
from emberlet.wgpu_backend.llvm.backend import NativeBackend
from emberlet.wgpu_backend.wasm.kernels import attention as kernel
from support.drawn_attention import EPSILON, expected


def drawn(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is taken where it is not faster, too."""
    for name in ("LEAST_ROWS", "LEAST_KEYS", "LEAST_WIDE_KEYS", "LEAST_SCORES"):
        monkeypatch.setattr(kernel, name, 1)


@pytest.mark.parametrize("masked", [False, True])
def test_one_plan_serves_every_length(masked: bool, backend: NativeBackend, always: None) -> None:
    def attend(q: Any, k: Any, v: Any) -> Any:
        return F.attention(q, k, v, is_causal=masked)

    compiled = compile(attend, backend=backend, dims={"q": {2: "rows"}, "k": {2: "keys"}, "v": {2: "keys"}})
    one = [] if masked else [(1, 1)]  # a single key needs no mask, and another plan
    for rows, keys in ((40, 70), *one, (6, 128), (7, 129), (5, 3), (300, 257), (128, 300)):
        q, k, v = drawn(1, 4, rows, 16), drawn(1, 2, keys, 16), drawn(1, 2, keys, 20)
        bias = np.where(np.tri(rows, keys) > 0, 0, -np.inf) if masked else None
        want = expected(q, k, v, bias, 0.25, 0.0, None)
        np.testing.assert_allclose(np.asarray(compiled(q, k, v)), want, rtol=0, atol=20 * EPSILON)
    assert (len(compiled._open), len(compiled._plans)) == (1, 0), compiled.fixed


def test_heads_are_split_and_merged_in_the_kernel_and_no_scores_are_stored(backend: NativeBackend) -> None:
    def attend(x: Any) -> Any:
        return F.relu(F.attention(x, x, x, num_heads=2, kv_num_heads=2))

    x = drawn(1, 512, 64)  # 2 * 512 * 512 scores
    compiled = compile(attend, x, backend=backend)
    plan = compiled.plan()
    assert len(plan.steps) == 1
    assert sum(b.nbytes for b in plan.buffers) == 2 * x.nbytes
    heads = x.reshape(1, 512, 2, 32).swapaxes(1, 2)
    want = expected(heads, heads, heads, None, 32**-0.5, 0.0, None).swapaxes(1, 2).reshape(1, 512, 64)
    np.testing.assert_allclose(np.asarray(compiled(x)), np.maximum(want, 0), rtol=0, atol=60 * EPSILON)


@pytest.mark.parametrize("heads", [3, 20])
def test_threads_that_share_heads_or_rows_give_the_bytes_of_one(heads: int, always: None) -> None:
    q, k, v = drawn(1, heads, 300, 16), drawn(1, heads, 257, 16), drawn(1, heads, 257, 20)
    found = []
    for count in (1, 3):
        before = set_threads(count)
        try:
            compiled = compile(lambda q, k, v: F.attention(q, k, v), q, k, v, backend=NativeBackend())
        finally:
            set_threads(before)
        found += [np.asarray(compiled(q, k, v)) for _ in range(3)]
    assert all(np.array_equal(x, found[0]) for x in found)
    np.testing.assert_allclose(found[0], expected(q, k, v, None, 0.25, 0.0, None), rtol=0, atol=20 * EPSILON)


@pytest.mark.parametrize("dims", [{}, {"dims": {"q": {2: "rows"}}}])
def test_scratch_memory_holds_a_part_of_the_rows_of_many_heads(dims: Any, backend: NativeBackend, always: None) -> None:
    k = drawn(1, 20, 130, 16)
    compiled = compile(lambda q, k: F.attention(q, k, k, softcap=5.0), backend=backend, **dims)
    for rows in (1000, 769):
        q = drawn(1, 20, rows, 16)
        want = expected(q, k, k, None, 0.25, 5.0, None)
        np.testing.assert_allclose(np.asarray(compiled(q, k)), want, rtol=0, atol=20 * EPSILON)
    ((_, function),) = (
        compile(lambda q, k: F.attention(q, k, k), drawn(1, 20, 1000, 16), k, backend=backend).plan().kernels
    )
    assert function.scratch < 4 * 1000 * (16 + 16)


def test_few_keys_rows_or_scores_and_other_dtypes_are_computed_from_products(backend: NativeBackend) -> None:
    cases = ((3000, 200, "float32"), (40, 3000, "float32"), (300, 300, "float32"), (1000, 1000, "float16"))
    for rows, keys, dtype in cases:
        q, k = (emberlet.asarray(drawn(1, 1, n, 16), backend=backend).astype(dtype) for n in (rows, keys))
        plan = compile(lambda q, k: F.attention(q, k, k), q, k, backend=backend).plan()
        assert len(plan.steps) > 1


def test_scores_that_are_all_minus_infinity_without_a_mask_give_nan(backend: NativeBackend, always: None) -> None:
    q, k = drawn(1, 1, 20, 16), drawn(1, 1, 30, 16)
    q[0, 0, 3] = -np.inf
    k[:] = np.abs(k)
    found = np.asarray(F.attention(*[emberlet.asarray(a, backend=backend) for a in (q, k, k)]))
    assert np.isnan(found[0, 0, 3]).all() and np.isfinite(np.delete(found[0, 0], 3, 0)).all()
