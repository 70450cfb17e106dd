"""Indices outside their axis: refused where they come from the host, clamped where the GPU computed them."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.errors import IndexingError
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import compile

OUTSIDE = [[3, 10], [-11, 0], [1_000_000, -1]]


@pytest.fixture
def table(make):
    return make((10, 4))


def ids(values, backend):
    return backend.from_list(values, dtypes.int64, (len(values),))


def look_up(table):
    def model(at):
        weights = table if at.backend is table.backend else table.to_device(at.backend)
        return F.take(weights, F.reshape(at, (len(at.shape), -1)), axis=0)

    return model


@pytest.mark.parametrize("values", OUTSIDE)
@pytest.mark.parametrize("way", ["eager", "gather", "compiled", "plan"])
def test_an_index_from_the_host_outside_its_axis_is_refused(gpu, make, table, tmp_path, values, way):
    at = ids(values, make.cpu)
    moved = table.to_device(gpu)
    if way == "eager":
        with pytest.raises(IndexingError, match="outside axis 0 of length 10"):
            F.take(moved, ids(values, gpu), axis=0)
    elif way == "gather":
        rows = gpu.from_list(values * 2, dtypes.int64, (1, 4))
        with pytest.raises(IndexingError, match="outside axis 0 of length 10"):
            F.gather(moved, 0, rows)
    elif way == "compiled":
        compiled = compile(look_up(moved), ids([0, 1], make.cpu), backend=gpu)
        with pytest.raises(IndexingError, match="outside what input 0 picks from of length 10"):
            compiled(at)
    else:
        path = str(tmp_path / "look_up.plan")
        plan_file.save(path, look_up(table), ids([0, 1], make.cpu))
        plan = plan_file.load(path, gpu.device)
        with pytest.raises(IndexingError, match="outside an axis of length 10"):
            plan.run(at)
        want = np.array(look_up(table)(ids([9, -10], make.cpu)).tolist())
        np.testing.assert_array_equal(np.array(plan.run(ids([9, -10], make.cpu))[0].to_list()), want)


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
