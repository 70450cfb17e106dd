"""Matrix products against NumPy; what windows refuse, and their ends. test_torch_configurations.py has convolution and
pooling."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import ShapeError
from hypothesis import given, settings
from hypothesis import strategies as st
from support.backends import same, tensor
from support.rows import every

SETTINGS = {"max_examples": 60}


def test_max_pool_keeps_nan_and_integers(backend):
    a = np.array([[[1, np.nan, 3, -np.inf, np.inf, 0]]], np.float32)
    same(F.max_pool1d(tensor(a), 2, 1), np.array([[[np.nan, np.nan, 3, np.inf, np.inf]]], np.float32))
    b = np.array([[[-5, -100, 3, 4]]], np.int8)
    same(F.max_pool1d(tensor(b), 2, padding=1), np.array([[[-5, 3, 4]]], np.int8))


@settings(**SETTINGS)
@given(data=st.data(), seed=st.integers(0, 99))
def test_matmul_follows_numpy(backend, data, seed):
    m, k, n = (data.draw(st.integers(0, 4)) for _ in range(3))
    lead = data.draw(st.sampled_from([((), ()), ((2,), ()), ((), (3,)), ((2, 1), (3,)), ((2,), (2,)), ((0,), (1,))]))
    rng = np.random.default_rng(seed)
    dtype = data.draw(st.sampled_from(["float32", "float64", "int32", "int8", "float16"]))
    a, b = rng.integers(-4, 4, (*lead[0], m, k)).astype(dtype), rng.integers(-4, 4, (*lead[1], k, n)).astype(dtype)
    same(tensor(a) @ tensor(b), np.matmul(a, b))
    turned = np.ascontiguousarray(b.swapaxes(-1, -2))
    same(tensor(a) @ tensor(turned).mT if turned.ndim > 1 else tensor(a) @ tensor(b), np.matmul(a, b))
    if k:
        same(tensor(a) @ tensor(b[..., 0].reshape(-1)[:k]), np.matmul(a, b[..., 0].reshape(-1)[:k])) if n else None
        same(emberlet.vecdot(tensor(a), tensor(a)), np.vecdot(a, a))


def test_int8_products_wrap_at_the_end_only(backend):
    a = np.full((1, 300), 100, np.int8)
    expected = np.array([[300 * 100 * 100]]).astype(np.int8)
    same(tensor(a) @ tensor(a).mT, expected)


WINDOWS = {
    "max_pool": lambda x, kernel, stride, dilation: F.max_pool(x, kernel, stride, 0, dilation),
    "with indices": lambda x, kernel, stride, dilation: F.max_pool_with_indices(x, kernel, stride, 0, dilation),
    "avg_pool": lambda x, kernel, stride, dilation: F.avg_pool(x, kernel, stride, 1, dilation, True),
    "lp_pool": lambda x, kernel, stride, dilation: F.lp_pool(x, kernel, stride, 0, dilation),
    "conv": lambda x, kernel, stride, dilation: F.conv(x, F.ones((1, 2, kernel)), None, stride, 1, dilation),
    "same": lambda x, kernel, stride, dilation: F.conv(x, F.ones((1, 2, kernel)), None, stride, "same", dilation),
}


@every("name", WINDOWS)
@every("steps", [(0, 1, 1), (2, 0, 1), (2, -1, 1), (2, 1, 0), (2, 1, -2)])
def test_kernel_stride_and_dilation_are_at_least_1(backend, name, steps):
    with pytest.raises(ShapeError, match="at least 1"):
        WINDOWS[name](tensor(np.ones((1, 2, 8), np.float32)), *steps)


def test_a_pool_refuses_negative_padding(backend):
    with pytest.raises(ShapeError, match="padding must be at least 0"):
        F.avg_pool(tensor(np.ones((1, 1, 5, 4), np.float32)), (2, 3), None, [(1, 0), (0, -1)])


@pytest.mark.parametrize("layer", [emberlet.nn.MaxPool1d, emberlet.nn.AvgPool1d, lambda k: emberlet.nn.Conv1d(1, 1, k)])
def test_a_layer_refuses_a_kernel_of_no_elements(layer):
    with pytest.raises(ShapeError, match="at least 1"):
        layer(0)


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sliding_windows_are_numpys(backend, axis, step):
    a = np.arange(120.0).reshape(4, 5, 6)
    place = axis % 3
    wanted = np.lib.stride_tricks.sliding_window_view(a, 3, place)
    wanted = np.take(wanted, range(0, wanted.shape[place], step), place)
    same(F.sliding_windows(tensor(a), axis, 3, step), wanted)
    same(tensor(a).unfold(axis, 3, step), wanted)
