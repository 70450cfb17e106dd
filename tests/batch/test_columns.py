"""Columns of every kind become the array for an input of the model, or are refused with one sentence."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from emberlet import dtypes
from emberlet.batch.columns import (
    arrow,
    channels_of,
    fit,
    names_of,
    of_batch,
)
from emberlet.batch.pictures import decode, imagenet
from emberlet.errors import DTypeError, EmberletError, FormatError, ShapeError
from emberlet.host.cli.model import Input
from PIL import Image
from support.rows import every

RNG = np.random.default_rng(0)


def taking(shape: Any, dtype: Any = dtypes.float32, name: str = "x", parameter: str = "x") -> Input:
    return Input(name, parameter, dtype, shape)


# -- columns of a batch


def _same(found: Any, wanted: list[Any]) -> None:
    assert [np.asarray(x).tolist() for x in found] == wanted


@pytest.mark.parametrize(
    ("column", "wanted", "shape"),
    [
        (pa.array([1.5, 2.5]), [1.5, 2.5], (2,)),
        (pa.array([[1, 2], [3, 4], [5, 6]]), [[1, 2], [3, 4], [5, 6]], (3, 2)),
        (pa.array([[1, 2], [3, 4]], pa.large_list(pa.int64())), [[1, 2], [3, 4]], (2, 2)),
        (pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int8(), 2)), [[1, 2], [3, 4], [5, 6]], (3, 2)),
        (pa.array([[[1], [2]], [[3], [4]]], pa.list_(pa.list_(pa.int8(), 1), 2)), [[[1], [2]], [[3], [4]]], (2, 2, 1)),
        (pa.array([[[1], [2]], [[3], [4]]]), [[[1], [2]], [[3], [4]]], (2, 2, 1)),
        (pa.array([[1], [2, 3], []]), [[1], [2, 3], []], None),
        (pa.array([[0], [1], [2, 3], [4]])[1:], [[1], [2, 3], [4]], None),
        (pa.chunked_array([[1, 2], [3]]), [1, 2, 3], (3,)),
        (pa.chunked_array([[1, 2]]), [1, 2], (2,)),
        (pa.chunked_array([], pa.int64()), [], (0,)),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"], (3,)),
        (pa.array([[1], None]), [[1], None], (2,)),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None], (2,)),
        (pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(8.0).reshape(2, 2, 2)), None, (2, 2, 2)),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, tuple) else None,
)
def test_arrow_columns_become_arrays(column: Any, wanted: Any, shape: Any) -> None:
    for batch in ({"c": column}, pa.table({"c": column})):
        found = of_batch(batch)["c"]
        if shape is None:
            assert isinstance(found, list)
        else:
            assert isinstance(found, np.ndarray)
            assert found.shape == shape
        _same(found, column.to_pylist() if wanted is None and shape[1:] == () else wanted or found.tolist())
    if isinstance(column, pa.FixedShapeTensorArray):
        np.testing.assert_array_equal(found, np.arange(8.0).reshape(2, 2, 2))


@every("shape", [(3,), (3, 2), (3, 2, 4), (0, 2), (2, 0), (2, 3, 0), (1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.float16, ml_dtypes.bfloat16])
def test_arrays_come_back_from_arrow(shape: tuple[int, ...], dtype: Any) -> None:
    x = RNG.integers(0, 2, shape).astype(dtype)
    found = arrow(x)
    assert len(found) == shape[0]
    assert np.array(found.to_pylist(), np.float32).reshape(shape).tolist() == x.astype(np.float32).tolist()
    if 0 not in shape[1:]:
        assert pa.types.is_fixed_size_list(found.type) is (len(shape) > 1)
    assert arrow(x.T).to_pylist() == x.T.astype(np.float32).tolist() or 0 in shape


# -- which columns an input takes


@pytest.mark.parametrize(
    ("given", "columns", "only", "wanted"),
    [
        (None, ["in.x", "b"], False, ["in.x"]),
        (None, ["in_x", "b"], False, ["in_x"]),
        (None, ["in_x", "in.x"], False, ["in.x"]),  # the file's name goes first
        ({"in.x": "b"}, ["in.x", "b"], False, ["b"]),
        ({"in_x": "b"}, ["in.x", "b"], False, ["b"]),
        ({"in.x": "b", "in_x": "c"}, ["b", "c"], False, ["b"]),
        ({"in.x": ["b", "c"]}, ["b", "c", "d"], False, ["b", "c"]),
        ({"other": "b"}, ["in.x", "b"], False, ["in.x"]),
        (None, ["b"], True, ["b"]),
        (None, ["b"], False, "no column is named 'in.x', an input of the model; name its column: inputs={'in.x'"),
        (None, ["b", "c"], True, "The columns are b, c"),
        (None, [], True, "The columns are none"),
        ({"in.x": ["b", "e"]}, ["b", "c"], False, "there is no column 'e'; the columns are b, c"),
        ({"in.x": "b"}, [], False, "there is no column 'b'; the columns are none"),
        ({"in.x": "b"}, [""], True, "there is no column 'b': the data is one array; name no column of 'in.x'"),
    ],
)
def test_an_input_takes_the_columns_said_or_those_of_its_name(
    given: Any, columns: list[str], only: bool, wanted: Any
) -> None:
    i = taking(("n", 2), name="in.x", parameter="in_x")
    if isinstance(wanted, list):
        assert names_of(i, given, columns, only) == wanted
        return
    with pytest.raises(EmberletError) as caught:
        names_of(i, given, columns, only)
    assert wanted in str(caught.value)


# -- pictures


@pytest.mark.parametrize(
    ("shape", "channels"),
    [
        (("n", 1, 8, 8), 1), (("n", 3, 8, 8), 3), (("n", 4, 8, 8), 4), (("n", 8, 8, 1), 1), (("n", 8, 8, 4), 4),
        (("n", None, 8, 8), 3), (("n", 5, 8, 8), 3), (("n", 1, 8, 3), 1), ((1, 8, 8), 1), ((8, 8, 4), 4),
        ((3, 8, 8), 3), (("n", 8, 8), 1), (("n", 64), 1), (("n",), 3), ((), 3), (None, 3),
    ],
)  # fmt: skip
def test_channels_are_those_of_the_input(shape: Any, channels: int) -> None:
    assert channels_of(taking(shape)) == channels


def test_a_picture_is_decoded_from_its_path_its_bytes_or_a_row_of_a_data_set(tmp_path: Any) -> None:
    pixels = RNG.integers(0, 256, (3, 2, 3), np.uint8)
    path = tmp_path / "a.png"
    Image.fromarray(pixels).save(path)
    data = path.read_bytes()
    for source in (path, str(path), data, {"bytes": data, "path": "gone"}, {"bytes": None, "path": str(path)}):
        np.testing.assert_array_equal(decode(source), pixels)
    gray = np.asarray(Image.fromarray(pixels).convert("L"))[..., None]
    np.testing.assert_array_equal(decode(path, 1), gray)
    assert decode(path, 4)[..., 3].tolist() == [[255, 255]] * 3
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    cut = data[: len(data) // 2]
    for source, where, says in (
        (b"x", "", r"^a picture cannot be decoded: it is of no kind that Pillow knows$"),
        (bad, "", f"^{bad} cannot be decoded: it is of no kind"),
        (bad, "row 3", r"^row 3 cannot be decoded: it is of no kind"),
        (cut, "cut.png", r"^cut\.png cannot be decoded: (?!it is of no kind)."),
    ):
        with pytest.raises(FormatError, match=says):
            decode(source, where=where)
    with pytest.raises(OSError, match="gone"):
        decode(tmp_path / "gone.png")


@pytest.mark.parametrize("size", [(256, 256), (512, 300), (100, 180), (224, 224), (301, 257)])
def test_imagenets_preprocessing_is_resize_crop_and_normalize(size: tuple[int, int]) -> None:
    """As torchvision's, with Pillow's own resize and crop."""
    width, height = size
    pixels = RNG.integers(0, 256, (height, width, 3), np.uint8)
    scale = 256 / min(size)
    wide, high = round(width * scale), round(height * scale)
    left, top = (wide - 224) // 2, (high - 224) // 2
    cut = Image.fromarray(pixels).resize((wide, high), Image.Resampling.BILINEAR)
    cut = cut.crop((left, top, left + 224, top + 224))
    x = np.asarray(cut, np.float32) / 255
    wanted = ((x - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])).transpose(2, 0, 1)
    labels = np.array([7])
    for column in ([pixels], np.stack([pixels])):
        found = imagenet({"p": column, "label": labels, "none": []})
        np.testing.assert_allclose(found["p"], wanted[None], rtol=1e-6)
        assert found["label"] is labels
        assert found["none"] == []
    for other in (pixels, pixels[None].astype(np.float32), [pixels[0]], [pixels.astype(np.float32)], [pixels, None]):
        assert imagenet({"p": other})["p"] is other


# -- an input's dtype and axes

IMAGE = RNG.integers(0, 256, (2, 4, 5, 3), np.uint8)


@pytest.mark.parametrize(
    ("column", "i", "wanted"),
    [
        (np.arange(6.0).reshape(2, 3), taking(("n", 3)), np.arange(6.0).reshape(2, 3)),
        (np.arange(6).reshape(2, 3), taking((None, None)), np.arange(6).reshape(2, 3)),
        ([[1, 2], [3, 4]], taking(("n", 2)), np.array([[1, 2], [3, 4]])),
        (pd.Series([np.zeros(2), np.ones(2)]).to_numpy(), taking(("n", 2)), np.array([[0, 0], [1, 1]])),
        (pd.Series([[1, 2], [3, 4]]).to_numpy(), taking(("n", 2)), np.array([[1, 2], [3, 4]])),
        (np.array([1, 2.5], object), taking(("n",)), np.array([1, 2.5])),
        ([], taking(("n",)), np.empty(0)),
        (np.arange(12).reshape(2, 6), taking(("n", 2, 3)), np.arange(12).reshape(2, 2, 3)),
        (np.arange(2), taking(("n", 1)), np.arange(2).reshape(2, 1)),
        (np.arange(12).reshape(2, 2, 3), taking(("n", 6)), np.arange(12).reshape(2, 6)),
        (IMAGE, taking(("n", 3, 4, 5)), IMAGE.transpose(0, 3, 1, 2)),
        (IMAGE, taking(("n", 3, "h", "w")), IMAGE.transpose(0, 3, 1, 2)),
        (IMAGE, taking(("n", 4, 5, 3)), IMAGE),
        (IMAGE[..., :1], taking(("n", 1, 4, 5)), IMAGE[..., :1].transpose(0, 3, 1, 2)),
        (np.arange(4), taking(None), np.arange(4)),
        (np.array(["a", "b"]), taking(("n",), dtypes.string), np.array(["a", "b"], object)),
        (["a", None], taking(("n",), dtypes.string), np.array(["a", None], object)),
        (np.array([1, 0]), taking(("n",), None), np.array([1, 0])),
    ],
)
def test_rows_get_the_axes_of_the_input(column: Any, i: Input, wanted: Any) -> None:
    found = fit(column, i)
    assert (found.shared, found.whole) == (False, False)
    assert found.array.shape == wanted.shape
    assert found.array.tolist() == wanted.tolist()
    if i.dtype is dtypes.float32:
        assert found.array.dtype == np.float32


def test_a_row_may_be_a_whole_input_and_a_number_that_of_all_rows() -> None:
    whole = fit(np.arange(24).reshape(2, 3, 4), taking((3, 4)))
    assert (whole.whole, whole.shared, whole.array.shape) == (True, False, (2, 3, 4))
    for column in (np.array([2, 2, 2]), np.array([2])):
        shared = fit(column, taking(()))
        assert (shared.whole, shared.shared, shared.array.shape, shared.array.item()) == (False, True, (), 2.0)
    with pytest.raises(ShapeError, match="one value for all rows; the column holds several"):
        fit(np.array([2, 2, 3]), taking(()))


HINT = r"; preprocess= \(--preprocess module:function\) may resize it"


@pytest.mark.parametrize(
    ("column", "i", "says"),
    [
        (np.zeros((2, 3)), taking(("n", 4)), r"found rows of shape \(3,\)$"),
        (np.zeros((2, 3)), taking(("n", "m", 2)), r"found rows of shape \(3,\)$"),
        (np.zeros((2, 3, 3)), taking((3, 4)), r"found rows of shape \(3, 3\)$"),
        (np.zeros((2, 2, 3, 3)), taking(("n", 3, 4, 4)), r"found rows of shape \(2, 3, 3\)" + HINT),
        (np.zeros((2, 7), np.uint8), taking(("n", 4), dtypes.uint8), r"found rows of shape \(7,\)" + HINT),
        ([[1, 2], [3]], taking(("n", 2)), r"rows of different shapes, \(2,\) and \(1,\); preprocess="),
    ],
)
def test_rows_of_another_shape_are_refused(column: Any, i: Input, says: str) -> None:
    with pytest.raises(ShapeError, match=says):
        fit(column, i)


@every("want", [d for d in dtypes.ALL if d.kind in ("float", "int", "uint", "bool")])
@pytest.mark.parametrize("have", ["float64", "float16", "int64", "uint8", "bool", "bfloat16"])
def test_numbers_change_only_where_every_one_is_kept(have: str, want: Any) -> None:
    """Numbers become floats of any width, and integers become integers that hold the values; nothing else changes."""
    name = "bool" if have == "bool" else have
    x = np.array([0, 1, 1]).astype(getattr(ml_dtypes, name, None) or np.dtype(name))
    i = taking(("n",), want)
    fits = want.name == have or want.is_float or (have in ("int64", "uint8") and want.kind in ("int", "uint"))
    if not fits:
        with pytest.raises(DTypeError, match=f"found {have}; preprocess="):
            fit(x, i)
        return
    found = fit(x, i).array
    assert dtypes.BY_NAME[found.dtype.name] is want
    kept = slice(1, None) if want is dtypes.float8_e8m0fnu else slice(None)  # which has no zero
    np.testing.assert_array_equal(found.astype(np.float32)[kept], x.astype(np.float32)[kept])


@pytest.mark.parametrize("want", [dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32])
def test_integers_are_refused_beyond_the_ends_of_the_range(want: Any) -> None:
    low, high = (np.iinfo(want.name).min, np.iinfo(want.name).max)
    i = taking(("n",), want)
    assert fit(np.array([low, high], np.int64), i).array.tolist() == [low, high]
    for value in (low - 1, high + 1):
        with pytest.raises(DTypeError, match=f"found int64 values that {want} does not hold"):
            fit(np.array([0, value], np.int64), i)
    assert fit(np.array([], np.int64), i).array.shape == (0,)


@pytest.mark.parametrize(
    ("column", "dtype", "says"),
    [
        (np.array([1.0, np.nan]), dtypes.int32, "a row of the column has no value"),
        (np.array([1.0, 2.0]), dtypes.int32, "found float64; preprocess="),
        (np.array([np.nan]), dtypes.bool, "found float64; preprocess="),
        (np.array([1, 2]), dtypes.bool, "found int64; preprocess="),
        (np.array(["a"]), dtypes.float32, "found texts"),
        (np.array([b"a"]), dtypes.float32, "found texts"),
        (["a"], dtypes.float32, "found texts"),
        (np.array(["2020-01-01"], "M8[D]"), dtypes.float32, "found datetime64"),
        ([[1.0], None], dtypes.float32, "row 1 of the batch has no value"),
    ],
)
def test_values_of_another_kind_are_refused(column: Any, dtype: Any, says: str) -> None:
    with pytest.raises(DTypeError) as caught:
        fit(column, taking(("n", 1), dtype))
    assert says in str(caught.value)


# -- pieces of a batch
