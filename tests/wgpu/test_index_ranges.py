"""Indices out of range are refused if they come from the host and clamped if the GPU computed them."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.errors import IndexingError
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.compiled import compile

OUTSIDE = [[3, 10], [-11, 0], [1_000_000, -1]]


@pytest.fixture
def table(make):
    return make((10, 4))


def ids(values, backend):
    return backend.from_list(values, dtypes.int64, (len(values),))


LOOKING = {
    "take": lambda x, at: F.take(x, at, axis=0),
    "gather": lambda x, at: F.gather(x, 0, F.reshape(at, (2, 1))),
    "gather_nd": lambda x, at: F.gather_nd(x, F.reshape(at, (2, 1))),
    "getitem": lambda x, at: x[at],
    "scatter": lambda x, at: F.scatter(x, 0, F.reshape(at, (2, 1)), F.reshape(F.astype(at, "float32"), (2, 1))),
    "scatter_nd": lambda x, at: F.scatter_nd(x, F.reshape(at, (2, 1)), x[:2]),
}


@pytest.mark.parametrize("how", LOOKING)
def test_a_backend_that_checks_indices_refuses_those_that_the_gpu_computed(gpu, make, table, how):
    checking = WgpuBackend(device=gpu.device, check_indices=True)
    moved = table.to_device(checking)

    def model(x):
        return LOOKING[how](moved, F.add(F.astype(x, dtypes.int64), 1))

    def ran(values, run):
        return np.array(run(make.cpu.from_list(values, dtypes.float32, (2,)).to_device(checking)).tolist())

    compiled = compile(model, make((2,)), backend=checking)
    for run in (model, compiled):
        for values in OUTSIDE:
            with pytest.raises(IndexingError, match="outside"):
                ran(np.subtract(values, 1).tolist(), run)
        want = LOOKING[how](table, make.cpu.from_list([9, -10], dtypes.int64, (2,)))
        np.testing.assert_array_equal(ran([8.0, -11.0], run), np.array(want.tolist()))


TABLES = {
    "gather_nd": lambda x, at: F.gather_nd(x, at),
    "getitem": lambda x, at: x[at[:, 0], at[:, 1]],
}


@pytest.mark.parametrize("outside", [[0, 4], [10, 0], [0, -5], [-11, 0], [3, 1_000]])
@pytest.mark.parametrize("how", TABLES)
def test_a_tuple_of_indices_never_reaches_into_another_row(gpu, make, table, how, outside):
    rows = [[1, 2], outside, [-1, -1]]
    with pytest.raises(IndexingError, match="outside axis"):
        TABLES[how](table, make.cpu.from_list(list(chain(*rows)), dtypes.int64, (3, 2)))
    at = F.add(gpu.from_list(list(chain(*rows)), dtypes.int64, (3, 2)), 0)
    gpu.realize(at)
    lengths = np.array(table.shape)
    turned = np.clip(np.where(np.array(rows) < 0, np.array(rows) + lengths, rows), 0, lengths - 1)
    want = np.array(table.tolist())[tuple(turned.T)]
    np.testing.assert_array_equal(np.array(TABLES[how](table.to_device(gpu), at).tolist()), want)


@pytest.mark.parametrize("shape", [(10, 4), (300, 5), (3, 700)])
@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_leaves_out_what_the_gpu_computed_outside(gpu, make, shape, axis):
    x = make(shape)
    values = make.random.integers(-3 * shape[axis], 3 * shape[axis], shape)
    inside = (values >= -shape[axis]) & (values < shape[axis])
    want = np.array(x.tolist(), np.float32)
    for place in zip(*np.nonzero(inside), strict=True):
        to = list(place)
        to[axis] = values[place]
        want[tuple(to)] += values[place]
    at = F.add(gpu.from_list(values.ravel().tolist(), dtypes.int64, shape), 0)
    gpu.realize(at)
    got = F.scatter(x.to_device(gpu), axis, at, F.astype(at, "float32"))
    np.testing.assert_allclose(np.array(got.tolist()), want, rtol=1e-5, atol=1e-4)


def test_scatter_nd_leaves_out_what_the_gpu_computed_outside(gpu, make, table):
    rows = [[1, 2], [0, 4], [10, 0], [0, -5], [-1, -1]]
    at = F.add(gpu.from_list(list(chain(*rows)), dtypes.int64, (5, 2)), 0)
    gpu.realize(at)
    want = np.array(table.tolist())
    want[1, 2], want[-1, -1] = 100, 104
    updates = gpu.from_list([100.0, 101.0, 102.0, 103.0, 104.0], dtypes.float32, (5,))
    np.testing.assert_array_equal(np.array(F.scatter_nd(table.to_device(gpu), at, updates).tolist()), want)


@pytest.mark.parametrize("axis", [0, 1])
def test_an_index_that_the_gpu_computed_is_clamped(gpu, make, axis):
    length = (10, 4)[axis]
    table = make((10, 4))
    values = make.random.integers(-3 * length, 3 * length, 40)
    at = F.add(ids(values.tolist(), gpu), 0)
    gpu.realize(at)
    got = np.array(F.take(table.to_device(gpu), at, axis=axis).tolist())
    turned = np.clip(np.where(values < 0, values + length, values), 0, length - 1)
    np.testing.assert_array_equal(got, np.array(table.tolist(), np.float32).take(turned, axis))
