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
from emberlet.python_backend.views import merged, offsets
from support.backends import LoopsBackend
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


def test_row_major_views_have_no_strides():
    x = emberlet.asarray(NUMBERS, backend="python")
    assert x.data[1:] == (0, None)
    assert x.T.T.data[1:] == (0, None)
    assert x[1:3].data[1:] == (6, None)
    assert x.T.data[1:] == (0, (1, 6))
    assert x[::2].data[1:] == (0, (12, 1))
    assert x[::-1].data[1:] == (18, (-6, 1))
    assert F.broadcast_to(x[:1], (3, 6)).data[1:] == (0, (0, 1))
    assert F.full((), 2.0, backend="python").data[1:] == (0, None)
    assert F.full((2, 1), 2.0, backend="python").data[1:] == (0, (0, 0))


def test_elements_that_are_in_order_already_are_not_copied():
    x = emberlet.asarray(NUMBERS, backend="python")
    assert buffers.flat(x) is x.data[0]
    part = buffers.flat(x[1:3])
    assert part is not x.data[0] and list(part) == NUMBERS[1:3].ravel().tolist()
    assert list(buffers.flat(x[:3])) == NUMBERS[:3].ravel().tolist()
    assert buffers.listed(F.asarray(["a", "b"], backend="python")) == ["a", "b"]


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


JOINS = {"none": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("op", JOINS)
@pytest.mark.parametrize("axis", [0, 1])
def test_elements_are_scattered_as_numpy_joins_them(op, axis, kernels):
    a = IMAGES[0, :, 0]
    index = np.array([[0, 2, 1], [2, 2, -1]])
    updates = np.array([[5.0, 0.5, 3.0], [0.25, 7.0, 2.0]], np.float32)
    expected = a.copy()
    for i, j in np.ndindex(index.shape):
        at = (index[i, j], j) if axis == 0 else (i, index[i, j])
        expected[at] = updates[i, j] if JOINS[op] is None else JOINS[op](expected[at], updates[i, j])
    x, where, values = (emberlet.asarray(n, backend=kernels) for n in (a, index, updates))
    assert F.scatter(x, axis, where, values, op).tolist() == expected.tolist()
    assert F.gather(x, axis, where).tolist() == np.take_along_axis(a if axis == 0 else a[:2], index, axis).tolist()
    assert x.tolist() == a.tolist()


def test_adjacent_axes_merge_where_every_stride_allows_it():
    assert merged((2, 3, 4), (12, 4, 1)) == [(24, 1)]
    assert merged((2, 3, 4), (24, 4, 1)) == [(2, 24), (12, 1)]
    assert merged((2, 3, 4), (12, 4, 2)) == [(6, 4), (4, 2)]
    assert merged((2, 1, 4), (4, 99, 1)) == [(8, 1)]
    assert merged((2, 3), (3, 1), (0, 1)) == [(2, 3, 0), (3, 1, 1)]
    assert merged((2, 3), (3, 1), (0, 0)) == [(6, 1, 0)]
    assert merged((2, 3), (0, 0), (0, 0)) == [(6, 0, 0)]
    assert merged((1, 1), (5, 1)) == []
    assert merged((), ()) == []


def test_offsets_are_in_row_major_order():
    assert offsets((2, 3), (10, 1), 5) == [5, 6, 7, 15, 16, 17]
    assert offsets((), (), 5) == [5]
    assert offsets((0, 3), (3, 1), 0) == []
    assert offsets((3,), (-2,), 4) == [4, 2, 0]


def test_a_list_of_offsets_that_no_machine_holds_is_refused():
    with pytest.raises(MemoryError, match="do not fit"):
        offsets((1 << 25, 1 << 24), (1, 1), 0)
    with pytest.raises(MemoryError):
        offsets((1 << 30, 1 << 18), (1, 1), 0)


DTYPES = "float64 float32 float16 bfloat16 float8_e4m3fn int64 int32 int16 int8 int4 uint64 uint32 uint8 uint4 bool"


@every("name", DTYPES.split())
def test_bytes_come_back_from_every_dtype_and_layout(name, kernels):
    values = [0, 1, 1, 0, 1, 0]
    x = F.asarray(values, dtype=name, backend=kernels)
    for shaped, expected in ((x, values), (x[1:5], values[1:5]), (x[::-1], values[::-1]), (x[::2], values[::2])):
        data = bytes(shaped.backend.to_bytes(shaped))
        assert len(data) == x.dtype.nbytes(len(expected))
        back = x.backend.from_bytes(data, x.dtype, (len(expected),))
        assert [int(v) for v in back.tolist()] == expected


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("int8", -128, 127), ("uint8", 0, 255), ("int4", -8, 7), ("uint4", 0, 15), ("int2", -2, 1), ("uint2", 0, 3),
     ("int16", -32768, 32767), ("uint16", 0, 65535), ("int32", -(1 << 31), (1 << 31) - 1), ("uint32", 0, (1 << 32) - 1),
     ("int64", -(1 << 63), (1 << 63) - 1), ("uint64", 0, (1 << 64) - 1)],
)  # fmt: skip
def test_integers_wrap_beyond_the_ends_of_their_dtype(name, low, high):
    backend = emberlet.backend.get_backend("python")
    dtype = emberlet.dtypes.dtype(name)
    assert list(buffers.build(dtype, [low, high], 2)) == [low, high]
    assert list(buffers.build(dtype, [low - 1, high + 1], 2)) == [high, low]
    x = F.asarray([low, high], dtype=name, backend=backend)
    assert (x - 1).tolist() == [high, high - 1]
    assert (x + 1).tolist() == [low + 1, low]
    # Floats saturate instead, and NaN gives 0.
    floats = F.asarray([float("nan"), float("inf"), float("-inf"), -1e30, 1e30, 1.9], dtype="float64", backend=backend)
    assert F.astype(floats, name).tolist() == [0, high, low, low, high, min(1, high)]
    signed = F.asarray([-1.9], dtype="float64", backend=backend)
    assert F.astype(signed, name).tolist() == [max(low, -1)]


def test_the_python_backend_chooses_its_kernels_by_the_interpreter(monkeypatch):
    from emberlet import python_backend
    from emberlet.python_backend import PythonBackend

    kept = dict(vars(PythonBackend))
    chosen = {}
    for micro in (False, True):
        monkeypatch.setattr(python_backend, "MICRO", micro)
        for name in ("matmul", "conv", "pool", "relu", "linear", "unary", "sort"):
            if name in vars(PythonBackend):
                monkeypatch.delattr(PythonBackend, name)
            chosen[name, micro] = getattr(PythonBackend(), name).__func__.__module__.rpartition(".")[2]
            delattr(PythonBackend, name)
            if name in kept:
                setattr(PythonBackend, name, kept[name])
    assert [chosen[name, False] for name in ("matmul", "conv", "pool", "relu", "linear")] == [
        "products", "convolution", "windows", "rectifier", "dense"]  # fmt: skip
    assert [chosen[name, True] for name in ("matmul", "conv", "pool", "relu", "linear")] == [
        "products_loops", "convolution_loops", "windows_loops", "rectifier_loops", "dense_loops"]  # fmt: skip
    assert chosen["unary", True] == chosen["unary", False] == "unary"
    assert chosen["sort", True] == "sorting"
    with pytest.raises(AttributeError, match="no_such_kernel"):
        LoopsBackend().no_such_kernel  # noqa: B018
