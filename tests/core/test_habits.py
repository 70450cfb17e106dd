"""Expressions that people who know NumPy and PyTorch write out of habit, on every backend, against NumPy's results."""

from __future__ import annotations

from typing import Any

import emberlet
import ml_dtypes
import numpy as np
import pytest
from emberlet.backend import get_backend
from emberlet.errors import BackendError, DTypeError
from PIL import Image
from support.backends import NAMES
from support.rows import every

ARRAY = np.arange(12, dtype=np.float32).reshape(3, 4)
# x: a tensor here, an array in NumPy
INDEXING = """
x[np.int64(1)]; x[np.array(1)]; x[np.uint8(1), np.int32(-1)]; x[np.True_]; x[np.False_]; x[True]; x[False]
x[np.array(True)]; x[:, np.array(False)]; x[..., True]; x[True, 1]; x[1, None, True]; x[np.array(1), np.array([0, 1])]
x[np.int64(1):np.int64(3)]; x[np.array([0, 2])]; x[np.array([True, False, True])]; x[range(2)]; x[[0, 1]]; x[()]
x[[True, False, True]]; x[np.newaxis]; x[x > 3]; x[[]]; x[..., np.array([1, 2])]
""".replace("\n", ";").split(";")
METHODS = """
x.reshape(4, 3); x.reshape(-1); x.reshape(2, -1); x.reshape([4, 3]); x.reshape(np.array([4, 3])); x.transpose(1, 0)
x.transpose((1, 0)); x.astype(np.float32); x.astype(np.dtype("int8")); x.astype("f4"); x.astype("i8"); x.astype("<u2")
x.astype("?"); x.astype("half"); x.astype("float16"); x.astype(int); x.astype(bool); x.sum(axis=np.int64(0)); x.T
x.sum(axis=(np.int64(0), 1)); N * x; x * N; np.float32(2) * x; x * np.float32(2); x + np.array(1, np.float32); x @ N.T
x == N
""".replace("\n", ";").split(";")
FUNCTIONS = """
np.sum(x); np.mean(x, axis=0); np.max(x); np.exp(x); np.add(x, x); np.concatenate([x, x]); np.stack((x, x))
np.argmax(x); np.where(x > 3, x, 0); np.std(x); np.clip(x, 1, 3); np.squeeze(x); np.transpose(x); np.reshape(x, (4, 3))
np.allclose(x, N); np.array_equal(x, N); np.cumsum(x); np.any(x); np.sort(x, axis=None); np.pad(x, 1); np.dot(x, x.T)
np.percentile(x, 30); np.array(x); np.asarray(x, dtype=np.float64); np.size(x); np.ndim(x); np.ravel(x); np.shape(x)
""".replace("\n", ";").split(";")
EXPRESSIONS = [e.strip() for e in (*INDEXING, *METHODS, *FUNCTIONS) if e.strip()]


@pytest.fixture(params=[*NAMES, "wgpu"])
def home(request: pytest.FixtureRequest) -> Any:
    if request.param == "wgpu":
        request.getfixturevalue("wgpu_adapter")
    return get_backend(request.param)


@every("text", EXPRESSIONS)
def test_an_expression_means_what_it_means_in_numpy(home: Any, text: str) -> None:
    scope = {"np": np, "N": ARRAY}
    expected = np.asarray(eval(text, {**scope, "x": ARRAY}))
    found = eval(text, {**scope, "x": emberlet.asarray(ARRAY, backend=home)})
    if isinstance(found, emberlet.Tensor):
        assert found.backend is home
    found = np.asarray(found)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-6)


def test_lists_of_arrays_are_stacked(home: Any) -> None:
    pairs: list[tuple[Any, Any]] = [
        ([ARRAY, ARRAY], np.stack([ARRAY, ARRAY])),
        ([[ARRAY[0], ARRAY[1]], [ARRAY[2], ARRAY[0]]], np.stack([ARRAY[[0, 1]], ARRAY[[2, 0]]])),
        ([np.arange(3), np.arange(3, dtype=np.float32)], np.stack([np.arange(3), np.arange(3)]).astype(np.float32)),
        ((np.float32(1.5), np.float32(2)), np.float32([1.5, 2])),
        ([np.array(1), np.array(2)], np.array([1, 2])),
        ([emberlet.asarray(ARRAY, backend=home), ARRAY], np.stack([ARRAY, ARRAY])),
        (range(5), np.arange(5)),
    ]
    for given, expected in pairs:
        found = emberlet.asarray(given, backend=home)
        assert found.dtype.name == expected.dtype.name
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_dtype_goes_by_everybodys_name(home: Any) -> None:
    class Foreign:  # as PyTorch's dtypes print
        def __str__(self) -> str:
            return "torch.float16"

    x = emberlet.zeros((2,), dtype="f4", backend=home)
    for name in ("float32", np.float32, np.dtype("float32"), "f4", "<f4", "single", float):
        assert x.dtype == name
        assert x.astype("int32").astype(name).dtype is emberlet.float32
        assert emberlet.ones((1,), dtype=name, backend=home).dtype is emberlet.float32
    for other in ("float16", np.int32, int, "f", "", None, 4, object, Foreign()):
        assert x.dtype != other
    assert emberlet.dtypes.dtype(Foreign()) is emberlet.float16
    assert emberlet.dtypes.dtype(ml_dtypes.bfloat16) is emberlet.bfloat16
    assert (emberlet.dtypes.dtype(int), emberlet.dtypes.dtype(bool)) == (emberlet.int64, emberlet.bool)
    assert x.to(np.float16).dtype is emberlet.float16
    assert hash(x.dtype) == hash("float32")
    assert x.dtype in ("int8", "float32")
    for wrong in ("f3", "floaty", object, 7):
        with pytest.raises(DTypeError, match="no dtype"):
            x.astype(wrong)
    with pytest.raises(BackendError):
        x.to("cuda")


@pytest.mark.parametrize("shape", [(4, 5, 3), (4, 5)])
def test_pillow_takes_a_tensor(home: Any, shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    x = emberlet.asarray(pixels, backend=home)
    np.testing.assert_array_equal(np.asarray(Image.fromarray(x)), pixels)
    np.testing.assert_array_equal(np.asarray(Image.fromarray(x[1:, ::2])), pixels[1:, ::2])
    assert x.tobytes() == pixels.tobytes()
    del x
    view = np.asarray(emberlet.asarray(pixels, backend=home) + 0)  # the tensor is gone, its memory is not
    np.testing.assert_array_equal(view, pixels)


class OnlyDLPack:
    """A tensor as PyTorch's of bfloat16: NumPy cannot read it, DLPack can."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("Got unsupported ScalarType BFloat16")

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


def test_bfloat16_comes_by_dlpack_where_numpy_has_none(home: Any) -> None:
    foreign = OnlyDLPack(emberlet.asarray([1.0, -2.5, 0.125], dtype="bfloat16", backend="numpy"))
    x = emberlet.asarray(foreign, backend=home)
    assert (x.dtype, x.tolist()) == (emberlet.bfloat16, [1.0, -2.5, 0.125])
