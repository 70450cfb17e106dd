"""NumPy's array files without NumPy: the same bytes in, the same arrays out."""

import io

import emberlet as el
import numpy as np
import pytest
from emberlet.errors import DTypeError, FormatError
from emberlet.host import npy

ARRAYS = [
    np.arange(6, dtype=t).reshape(2, 3)
    for t in ("<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "i1", "<u8", "<u4", "<u2", "u1")
] + [
    np.array([True, False]),
    np.array(2.5, np.float32),
    np.zeros((0, 3), np.float32),
    np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4)),
    np.asfortranarray(np.arange(3, dtype=np.int32)),
    np.array([["a", "longer"], ["", "βέλος"]]),
]


@pytest.mark.parametrize("backend", ["python", "numpy"])
@pytest.mark.parametrize("array", ARRAYS, ids=str)
def test_arrays_are_read(tmp_path, array, backend):
    np.save(tmp_path / "x.npy", array)
    x = npy.load(tmp_path / "x.npy", backend)
    assert x.shape == array.shape
    assert x.tolist() == array.tolist()


@pytest.mark.parametrize("backend", ["python", "numpy"])
@pytest.mark.parametrize("array", ARRAYS, ids=str)
def test_tensors_are_written(tmp_path, array, backend):
    np.save(tmp_path / "x.npy", array)
    npy.save_archive(tmp_path / "o.npz", {"x": npy.load(tmp_path / "x.npy", backend)})
    with np.load(tmp_path / "o.npz") as written:
        assert written["x"].dtype == array.dtype
        np.testing.assert_array_equal(written["x"], array)
    assert npy.load_archive(tmp_path / "o.npz", backend)["x"].tolist() == array.tolist()


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [
        ("bfloat16", "float32"),
        ("float8_e4m3fn", "float32"),
        ("float6_e2m3fn", "float32"),
        ("int4", "int8"),
        ("uint2", "uint8"),
    ],
)
def test_what_numpy_has_no_type_for_is_stored_wider(dtype, stored):
    x = el.asarray([1, 0, 1], dtype=el.dtypes.dtype(dtype))
    written = np.load(io.BytesIO(npy.dumps(x)))
    assert written.dtype == stored
    assert written.tolist() == [1, 0, 1]


def damaged(change):
    file = io.BytesIO()
    np.save(file, np.arange(6, dtype=np.float32))
    return change(file.getvalue())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda b: b"", "not an .npy file"),
        (lambda b: b"x" + b[1:], "not an .npy file"),
        (lambda b: b[:6] + b"\x09\0" + b[8:], r"\.npy version 09\.00 is not known"),
        (lambda b: b[:-1], "23 bytes of data where its header says 24"),
        (lambda b: b + b"x", "25 bytes of data where its header says 24"),
        (lambda b: b[:30], "its .npy header is malformed"),
        (lambda b: b.replace(b"(6,)", b"(-6)"), "its .npy header is malformed"),
        (lambda b: b.replace(b"(6,)", b"[6,]"), "its .npy header is malformed"),
        (lambda b: b.replace(b"False", b"exit()"[:5]), "its .npy header is malformed"),
    ],
)
def test_damaged_files_are_refused(tmp_path, change, says):
    (tmp_path / "x.npy").write_bytes(damaged(change))
    with pytest.raises(FormatError, match=says):
        npy.load(tmp_path / "x.npy")


def test_pickles_and_other_byte_orders_are_refused(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{}], object), allow_pickle=True)
    np.save(tmp_path / "b.npy", np.array([1.0], ">f4"))
    for name in ("o.npy", "b.npy"):
        with pytest.raises(DTypeError, match="are not read"):
            npy.load(tmp_path / name)


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"no zip")
    with pytest.raises(FormatError, match=r"x\.npz: not an \.npz file"):
        npy.load_archive(tmp_path / "x.npz")
