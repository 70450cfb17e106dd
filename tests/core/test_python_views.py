"""The python backend's tensors: which operations share a buffer, and what kernels read of views.

Compared with NumPy for every kernel that reads another layout: rows, columns, steps, reversed and repeated elements.
"""

from __future__ import annotations

import itertools
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.python_backend import binary, buffers, convolution, movement, reductions, selection, views
from support.rows import every

NUMBERS = np.random.default_rng(5).integers(1, 50, (4, 6)).astype(np.float32)

# A view, in the same words for NumPy and for emberlet.
VIEWS = {
    "rows": lambda x: x,
    "columns": lambda x: x.T,
    "part": lambda x: x[1:3, 2:5],
    "one row": lambda x: x[2:3],
    "one column": lambda x: x[:, 3:4],
    "steps": lambda x: x[::2, 1::3],
    "reversed": lambda x: x[::-1, ::-1],
    "reversed columns": lambda x: x.T[::-1, ::-2],
    "to the first element": lambda x: x[3::-3, 5::-5],
    "nothing": lambda x: x[2:2],
}


def views_of(name: str, backend: str = "python") -> tuple[Any, np.ndarray[Any, Any]]:
    return VIEWS[name](emberlet.asarray(NUMBERS, backend=backend)), VIEWS[name](NUMBERS)


def shares(x: Any, y: Any) -> bool:
    return x.data[0] is y.data[0]


@pytest.fixture(params=["CPython's kernels", "MicroPython's kernels"])
def kernels(request, monkeypatch) -> str:
    """The backend's name; the branches for MicroPython run in CPython too."""
    if request.param == "CPython's kernels":
        return "python"
    for module in (binary, buffers, convolution, movement, reductions, selection, views):
        if hasattr(module, "MICRO"):
            monkeypatch.setattr(module, "MICRO", True)
    return "loops"


def test_views_share_the_buffer():
    x = emberlet.asarray(NUMBERS, backend="python")
    for view in (x.T, x[1:3, 2:5], x[::-1], F.broadcast_to(x[:1], (3, 6)), F.reshape(x, (24,)), F.reshape(x, (2, 12))):
        assert shares(x, view)
    assert not shares(x, F.reshape(x.T, (24,)))
    assert not shares(x, x + 0)
    assert F.full((3, 4), 2.0, backend="python").data[0].tolist() == [2.0]


@pytest.mark.parametrize("view", VIEWS)
def test_kernels_read_every_layout(view, kernels):
    x, a = views_of(view, kernels)
    assert x.tolist() == a.tolist()
    pairs = [
        (x + 1, a + 1),
        (x + x, a + a),
        (x * x[:, :1], a * a[:, :1]),
        (x[:, :1] - x[:1], a[:, :1] - a[:1]),
        (-x, -a),
        (F.where(x > 20, x, 0.0), np.where(a > 20, a, 0)),
        (F.relu(x - 20), np.maximum(a - 20, 0)),
        (F.reshape(x, (-1,)) if a.size else x, a.reshape(-1) if a.size else a),
        (F.concat([x, x + 1], axis=0), np.concatenate([a, a + 1], axis=0)),
        (F.concat([x, x[:, :1]], axis=1), np.concatenate([a, a[:, :1]], axis=1)),
        (F.pad(x, [(1, 2), (0, 1)], 7.0), np.pad(a, [(1, 2), (0, 1)], constant_values=7)),
        (F.cumulative_sum(x, axis=0), np.cumsum(a, 0)),
        (F.cumulative_sum(x, axis=1), np.cumsum(a, 1)),
        (F.sum(x, axis=0), a.sum(0)),
        (F.sum(x, axis=1), a.sum(1)),
        (F.prod(x > 3), np.prod(a > 3)),
        (F.sort(x, axis=0), np.sort(a, 0)),
        (F.argsort(x, axis=1, stable=True), np.argsort(a, 1, kind="stable")),
        (F.matmul(x, x.T), a @ a.T),
        (F.astype(x, "int32"), a.astype(np.int32)),
        (F.astype(x, "uint8"), a.astype(np.uint8)),
    ]
    if a.size:
        pairs += [
            (F.max(x, axis=0), a.max(0)),
            (F.min(x, axis=1), a.min(1)),
            (F.argmax(x, axis=0), a.argmax(0)),
            (F.argmin(x, axis=1), a.argmin(1)),
            (F.take(x, F.asarray([0, -1], backend=kernels), axis=0), a[[0, -1]]),
            (F.take(x, F.asarray([0, -1], backend=kernels), axis=1), a[:, [0, -1]]),
        ]
    for number, (found, expected) in enumerate(pairs):
        assert found.shape == expected.shape, number
        values = np.asarray(found.tolist()).reshape(expected.shape)  # which an empty list has not
        np.testing.assert_allclose(values, expected, rtol=1e-6, err_msg=str(number))


@pytest.mark.parametrize("view", [name for name in VIEWS if name != "nothing"])
def test_windows_read_every_layout(view, kernels):
    x, a = views_of(view, kernels)
    image = F.reshape(x, (1, 1, *x.shape))
    taps = F.asarray(NUMBERS[:1, :1].reshape(1, 1, 1, 1), backend=kernels)
    np.testing.assert_allclose(np.asarray(F.conv(image, taps, padding=1).tolist())[0, 0],
                               np.pad(a, 1) * NUMBERS[0, 0])  # fmt: skip
    found = F.max_pool(image, 1, padding=0)
    assert np.asarray(found.tolist())[0, 0].tolist() == a.tolist()


REGIONS = [
    ((0, 0), (4, 6), (1, 1)),
    ((1, 2), (2, 3), (1, 1)),
    ((0, 0), (2, 2), (2, 3)),
    ((3, 5), (4, 6), (-1, -1)),
    ((3, 4), (2, 3), (-3, -2)),
    ((2, 5), (1, 6), (1, -1)),
    ((2, 3), (1, 1), (1, 1)),
    ((1, 1), (0, 3), (1, 1)),
]


@pytest.mark.parametrize(("starts", "sizes", "steps"), REGIONS)
def test_a_region_is_written_as_numpy_writes_it(starts, sizes, steps, kernels, monkeypatch):
    from emberlet.python_backend import scattering

    if kernels == "loops":
        monkeypatch.setattr(scattering, "MICRO", True)
    x = emberlet.asarray(NUMBERS, backend=kernels)
    value = emberlet.asarray(-np.arange(24, dtype=np.float32)[: sizes[0] * sizes[1]].reshape(sizes), backend=kernels)
    expected = NUMBERS.copy()
    places = [start + np.arange(n) * step for start, n, step in zip(starts, sizes, steps, strict=True)]
    expected[np.ix_(*places)] = np.asarray(value.tolist(), np.float32).reshape(sizes)
    found = x.backend.assign_region(x, starts, sizes, steps, value)
    assert found.tolist() == expected.tolist()
    assert x.tolist() == NUMBERS.tolist()


IMAGES = np.random.default_rng(7).integers(1, 4, (2, 3, 2, 3)).astype(np.float32)
AXES = [axes for n in range(5) for axes in itertools.combinations(range(4), n)]


@every("axes", AXES)
def test_any_axes_are_reduced_as_numpy_reduces_them(axes, kernels):
    for a in (IMAGES, IMAGES[:, ::-1], IMAGES.transpose(3, 1, 0, 2)):
        x = emberlet.asarray(IMAGES, backend=kernels)
        x = x if a is IMAGES else x[:, ::-1] if a.shape == IMAGES.shape else F.permute_dims(x, (3, 1, 0, 2))
        for name in ("sum", "prod", "max", "min"):
            for keepdims in (False, True):
                expected = getattr(np, name)(a, axes, keepdims=keepdims)
                found = getattr(F, name)(x, axis=axes, keepdims=keepdims)
                assert found.shape == expected.shape and found.tolist() == expected.tolist(), name
        assert F.any(x > 2, axis=axes).tolist() == (a > 2).any(axes).tolist()
        assert F.all(x > 1, axis=axes).tolist() == (a > 1).all(axes).tolist()
