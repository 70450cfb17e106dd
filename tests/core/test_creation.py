"""Creation functions on the backend and in the dtype that is asked for, and conversions: compared with NumPy."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import DTypeError, ShapeError
from emberlet.functional.creation import transfer
from support.rows import every

# As NumPy has them: the same words for both.
SAME = """
arange(7); arange(2, 7); arange(2, 7, 2); arange(7, 2, -2); arange(7, 2); arange(2, 7, -1); arange(0); arange(-3)
arange(1.5); arange(0.0, 1.0, 0.25); arange(0.0, 1.1, 0.25); arange(3.0, -1.0, -1.5); arange(1.0, 0.0); arange(0, 1.0)
arange(0, 6, 3); arange(0, 7, 3); arange(0, 8, 3); arange(0, 1, 0.5); arange(5, 5); arange(5.0, 5.0)
linspace(0, 1, 5); linspace(0, 1, 1); linspace(0, 1, 0); linspace(2, -3, 6); linspace(0, 1, 2); linspace(3, 3, 4)
linspace(0, 1, 5, endpoint=False); linspace(0, 1, 1, endpoint=False); linspace(2, -3, 2, endpoint=False)
linspace(0, 10, 4, dtype="int64"); linspace(0, 10, 5, endpoint=False, dtype="int32")
linspace(0.0, 1.0, 7, dtype="float64")
eye(3); eye(2, 4); eye(4, 2); eye(3, k=1); eye(3, k=-2); eye(3, 5, k=2); eye(3, k=3); eye(0); eye(3, dtype="int32")
full((2, 3), 4); full((), 4.5); full(3, 2); full((2, 0), 1); full((2,), True); zeros((2, 1)); ones(4); ones(())
""".replace("\n", ";").split(";")


@every("text", [text.strip() for text in SAME if text.strip()])
@pytest.mark.parametrize("backend", ["python", "numpy"])
def test_a_creation_function_gives_what_numpy_gives(text, backend):
    name = text.partition("(")[0]
    found = eval(text[:-1] + ", backend=backend)", {name: getattr(F, name), "backend": backend})
    expected = eval(text, {name: getattr(np, name)})
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found.tolist()).reshape(expected.shape), expected, rtol=1e-6)
    if "linspace" in text and "dtype" not in text and "endpoint" not in text and found.size > 1:
        assert found.tolist()[-1] == expected[-1]


@every("k", [-3, -2, -1, 0, 1, 2, 3])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 3)])
def test_triangles_and_masks_are_numpys(k, shape):
    a = np.arange(1.0, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    x = emberlet.asarray(a, backend="python")
    assert F.tril(x, k=k).tolist() == np.tril(a, k).tolist()
    assert F.triu(x, k=k).tolist() == np.triu(a, k).tolist()
    ones = np.ones(shape, bool)
    for name, filled in (("tril_mask", ~np.tril(ones, k)), ("triu_mask", ~np.triu(ones, k)),
                         ("diag_mask", ~(np.tril(ones, k) & np.triu(ones, k)))):  # fmt: skip
        found = getattr(F, name)(shape, k, backend="python")
        assert (found.tolist(), found.dtype.name, found.device) == (filled.tolist(), "bool", "python")


def test_a_grid_of_positions_is_numpys():
    for shape in ((3,), (2, 3), (2, 1, 2)):
        expected = np.moveaxis(np.indices(shape), 0, -1)
        found = F.cartesian_grid(shape, backend="python")
        assert (found.tolist(), found.device, found.dtype.name) == (expected.tolist(), "python", "int64")


@pytest.mark.parametrize("shape", [2.5, (2, "3"), (None,), (-1, 2), -3])
def test_what_is_no_shape_is_refused(shape):
    with pytest.raises((ShapeError, DTypeError)):
        F.zeros(shape)
    assert F.zeros((np.int64(3), 2)).shape == (3, 2)


def test_asarray_shares_or_copies_as_asked():
    x = emberlet.asarray([1.0, 2.0], backend="python")
    assert F.asarray(x) is x
    assert F.asarray(x, dtype="float32", backend="python", copy=False) is x
    copied = F.asarray(x, copy=True)
    assert copied.data[0] is not x.data[0] and copied.tolist() == [1.0, 2.0]
    assert F.asarray(x, dtype="int8").dtype.name == "int8"
    assert F.asarray(x, backend="numpy").device == "numpy"
    for options in ({"dtype": "int8"}, {"backend": "numpy"}, {"backend": "numpy", "dtype": "int8"}):
        with pytest.raises(ValueError, match="copy"):
            F.asarray(x, copy=False, **options)
    for value in (1, 2.0, True, "text", [1.0], (1, 2), []):
        with pytest.raises(ValueError, match="copy"):
            F.asarray(value, copy=False)
        assert F.asarray(value, copy=True).tolist() == F.asarray(value).tolist()
    words = F.asarray(["a", "b"], backend="python")
    assert F.asarray(words, copy=True).tolist() == ["a", "b"]
    assert F.asarray(words, copy=True).data[0] is not words.data[0]


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([], None, "float32"), ([[], []], None, "float32"), ([1, 2], None, "int64"), ([1, 2.5], None, "float32"),
        ([True, False], None, "bool"), ([True, 2], None, "int64"), ([True, 2.5], None, "float32"),
        (["a"], None, "string"), ([1, 2], "bool", "bool"), ([0.5, 0.0], "bool", "bool"), ([True], "int8", "int8"),
        (range(3), None, "int64"), (range(3), "float16", "float16"), ("word", None, "string"), (3, "uint8", "uint8"),
        ([1.9, -1.9], "int8", "int8"), ((1, (2)), None, "int64"), (((1,), (2,)), None, "int64"),
    ],
)  # fmt: skip
def test_the_dtype_of_numbers_follows_from_the_widest(values, dtype, expected):
    found = F.asarray(values, dtype=dtype, backend="python")
    assert (found.dtype.name, found.device) == (expected, "python")
    if expected == "string":
        assert found.tolist() == values
    else:
        wanted = np.asarray(list(values) if isinstance(values, range) else values)
        wanted = wanted.astype({"bool": bool, "int8": np.int8}.get(expected, wanted.dtype))
        assert found.shape == wanted.shape
        np.testing.assert_allclose(np.asarray(found.tolist()).reshape(wanted.shape), wanted)


def test_tensors_move_between_backends_and_dtypes():
    x = emberlet.asarray([1.5, 2.5], backend="python")
    assert transfer.move(x, "python").data is x.data
    assert transfer.move(x, "numpy").device == "numpy"
    both = x.to("numpy", emberlet.int32)
    assert (both.device, both.dtype.name, both.tolist()) == ("numpy", "int32", [1, 2])
    assert x.to(emberlet.float16).dtype.name == "float16"
    assert x.to("float32").data is x.data
    assert x.to("loops").device == "loops" and x.to("loops:0").device == "loops"
    assert x.to(emberlet.get_backend("numpy")).device == "numpy"
    assert x.to_device("numpy").device == "numpy"
    with pytest.raises((ValueError, DTypeError), match="None"):
        x.to_device("numpy", stream=3)
    words = F.asarray(["a", "b"], backend="python")
    assert (words.to("numpy").tolist(), words.to("numpy").device) == (["a", "b"], "numpy")
    assert transfer.duplicate(words).tolist() == ["a", "b"]
    moved = x.astype("int32", device="numpy")
    assert (moved.device, moved.dtype.name) == ("numpy", "int32")
    assert x.astype("float32", copy=False) is x
    assert x.astype("float32") is not x and x.astype("float32").data is x.data
    assert x.cast("float32").data is x.data
    assert F.bitcast(x, "float32").data is x.data
    assert F.bitcast(x, "int32").tolist() == np.array([1.5, 2.5], np.float32).view(np.int32).tolist()


KINDS = {
    "bool": ("bool",), "int8": ("signed integer", "integral", "numeric"),
    "uint16": ("unsigned integer", "integral", "numeric"), "float16": ("real floating", "numeric"),
    "float64": ("real floating", "numeric"), "string": (),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_the_kinds_of_a_dtype(name):
    every = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")
    assert tuple(kind for kind in every if F.isdtype(name, kind)) == KINDS[name]
    dtype = emberlet.dtypes.dtype(name)
    assert F.isdtype(dtype, dtype) and not F.isdtype(dtype, emberlet.int32)
    assert F.isdtype(dtype, (emberlet.int32, dtype)) and not F.isdtype(dtype, (emberlet.int32, emberlet.uint8))
    assert not F.isdtype(dtype, ())
    with pytest.raises(ValueError, match="unknown kind"):
        F.isdtype(dtype, "number")


def test_conversions_by_burns_names():
    x = emberlet.asarray([[0.0, 2.5]], backend="python")
    assert [t.dtype.name for t in (x.int(), x.bool(), x.float(), x.to_full_precision())] == [
        "int64", "bool", "float32", "float32"]  # fmt: skip
    assert x.bool().tolist() == [[False, True]] and x.int().tolist() == [[0, 2]]
    assert x.from_full_precision("float16").dtype.name == "float16"
    assert x.is_require_grad() is False and x[0, 1].into_scalar() == 2.5
