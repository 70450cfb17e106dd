"""Indices and targets outside their axis, given by the host, are refused with a message on every backend."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import asarray, dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import IndexingError
from support.every_backend import EVERY

CALLS = {
    "nll_loss": lambda x, i: F.nll_loss(x, i),
    "cross_entropy": lambda x, i: F.cross_entropy(x, i, ignore_index=-100),
    "embedding": lambda x, i: F.embedding(i, x),
    "take": lambda x, i: F.take(x, i, axis=1),
    "gather": lambda x, i: F.gather(x, 0, F.expand_dims(i, 1)),
    "take_along_axis": lambda x, i: F.take_along_axis(x, F.expand_dims(i, 1), 1),
    "x[i]": lambda x, i: x[i],
    "scatter": lambda x, i: F.scatter(x, 1, F.expand_dims(i, 1), F.expand_dims(F.cast(i, dtypes.float32), 1)),
}


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("outside", [4, 99, -9])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_what_the_host_gives_is_checked(backend, name, outside, dtype):
    k = get_backend(backend)
    x = asarray(np.arange(16.0, dtype="float32").reshape(4, 4), backend=k)
    fits = asarray(np.array([0, 3, 1, 2], dtype), backend=k)
    np.asarray(CALLS[name](x, fits))
    with pytest.raises(IndexingError, match=str(outside)):
        np.asarray(CALLS[name](x, asarray(np.array([0, outside, 1, 2], dtype), backend=k)))


@pytest.mark.needs("gpu-driver")
def test_targets_that_a_gpu_computes_give_nan():
    k = get_backend("wgpu")
    x = asarray(np.zeros((2, 3), "float32"), backend=k)
    target = asarray(np.array([0, 2], "int64"), backend=k)
    np.asarray(target + 1)
    computed = target * 2
    k.realize(computed)
    assert np.isnan(np.asarray(F.cross_entropy(x, computed)))
