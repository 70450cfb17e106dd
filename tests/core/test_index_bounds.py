"""An index that no result needs, and targets that a GPU computes. The contract draws all other indices."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import asarray
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import IndexingError


def test_a_plan_refuses_an_index_that_no_result_needs():
    k = get_backend("numpy")
    x, fits = asarray(np.zeros((4, 4)), backend=k), asarray(np.array([0, 3]), backend=k)
    compiled = compile_for(k)(lambda x, i: (x[i, i], x)[1], x, fits)
    np.testing.assert_array_equal(np.asarray(compiled(x, fits)), np.zeros((4, 4)))
    with pytest.raises(IndexingError, match=r"index 3.*axis 0.*length 3"):
        compile_for(k)(lambda x, i: (x[i, i], x)[1])(x[:3], fits)
    with pytest.raises(IndexingError, match=r"index 9.*axis 0.*length 4"):
        compiled(x, fits * 3)


def compile_for(backend):
    """`compile` of functions for a backend."""
    if backend.name == "numpy":
        from emberlet.host.numpy_backend.compile import compile

        return lambda function, *examples: compile(function, *examples, backend=backend)
    from emberlet.wgpu_backend.compiled import compile

    return lambda function, *examples: compile(function, *examples, backend=backend)


@pytest.mark.needs("gpu-driver")
def test_targets_that_a_gpu_computes_give_nan():
    k = get_backend("wgpu")
    x = asarray(np.zeros((2, 3), "float32"), backend=k)
    target = asarray(np.array([0, 2], "int64"), backend=k)
    np.asarray(target + 1)
    computed = target * 2
    k.realize(computed)
    assert np.isnan(np.asarray(F.cross_entropy(x, computed)))
