"""Indices and targets outside their axis, given by the host, are refused with a message on every backend."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import asarray, dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import IndexingError
from emberlet.nn import CrossEntropyLoss
from support.every_backend import EVERY, WGPU
from support.rows import every

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
@every("name", CALLS)
@every("outside", [4, 99, -9])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_what_the_host_gives_is_checked(backend, name, outside, dtype):
    k = get_backend(backend)
    x = asarray(np.arange(16.0, dtype="float32").reshape(4, 4), backend=k)
    fits = asarray(np.array([0, 3, 1, 2], dtype), backend=k)
    np.asarray(CALLS[name](x, fits))
    with pytest.raises(IndexingError, match=str(outside)):
        np.asarray(CALLS[name](x, asarray(np.array([0, outside, 1, 2], dtype), backend=k)))


def _gives(function, *arguments):
    """The result as a list, or the class and words of the error."""
    try:
        return np.asarray(function(*arguments)).tolist()
    except IndexingError as error:
        return type(error), str(error)


def _put(x, key):
    y = x * 1.0
    y[key] = 9.0
    return y


PLANNED = {
    **{name: call for name, call in CALLS.items() if name != "cross_entropy"},
    "x[i, i]": lambda x, i: x[i, i],
    "x[i + 1, i]": lambda x, i: x[i % 4 + i // 4 * 4, i],
    "x[i, i] = 9": lambda x, i: _put(x, (i, i)),
    "x[i] = 9": _put,
    "gather_nd": lambda x, i: F.gather_nd(x, F.reshape(i, (2, 2))),
    "scatter_nd": lambda x, i: F.scatter_nd(x, F.reshape(i, (2, 2)), x[0, :2]),
    "select_assign": lambda x, i: F.select_assign(x, 0, i, x),
    "computed": lambda x, i: F.take(x, i * 2 - i, axis=0),
    "weighted": lambda x, i: F.nll_loss(x, i, x[0], ignore_index=3),
    "reverse_sequence": lambda x, i: F.reverse_sequence(x, i),
    "tensor_scatter": lambda x, i: F.tensor_scatter(F.reshape(x, (4, 4, 1)), F.reshape(x[:, :1], (4, 1, 1)), i),
    "rotary": lambda x, i: F.rotary_embedding(F.reshape(x, (1, 4, 4)), x[:, 2:], x[:, :2], F.reshape(i, (1, 4))),
    "matmul_nbits": lambda x, i: F.matmul_nbits(
        x, asarray([[18, 52]], dtype="uint8", backend=x.backend), x[1], None, i, rows=4, columns=1, block_size=1
    ),
    "CrossEntropyLoss": lambda x, i: CrossEntropyLoss()(x, i),
    "targets to ignore": lambda x, i: CrossEntropyLoss(pad_tokens=[0])(x, i),
}


@pytest.mark.parametrize("backend", ["numpy", "wasm", WGPU])
@every("name", PLANNED)
def test_a_plan_refuses_what_the_function_refuses_in_the_same_words(backend, name):
    k = get_backend(backend)
    x = asarray(np.arange(16.0, dtype="float32").reshape(4, 4), backend=k)
    fits = asarray(np.array([0, 3, 1, 2]), backend=k)

    def function(x, i):
        return PLANNED[name](x, i)

    compiled = compile_for(k)(function, x, fits)
    for row in ([0, 3, 1, 2], [0, 7, 1, 2], [0, 3, -9, 2], [99, 0, 0, 0], [3, 2, 1, 0]):
        index = asarray(np.array(row), backend=k)
        want = _gives(lambda a, b: np.asarray(function(a, b)), x, index)
        assert _gives(compiled, x, index) == want, row


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
