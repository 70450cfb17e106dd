"""NumPy's array files read without NumPy: the same bytes give the same arrays."""

import io
import tracemalloc
import zipfile

import emberlet as el
import numpy as np
import pytest
from emberlet import store
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
def test_dtypes_that_numpy_lacks_are_stored_wider(dtype, stored):
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
    with pytest.raises(FormatError, match=r"x\.npz.*\.npz"):
        npy.load_archive(tmp_path / "x.npz")


# -- files that ask for very much -------------------------------------------------------------------------------------


def header(text: str) -> bytes:
    return b"\x93NUMPY\3\0" + len(text).to_bytes(4, "little") + text.encode()


@pytest.mark.parametrize(
    ("descr", "shape"),
    [
        ("<U0", f"({10**12},)"), ("<U0", f"({1 << 40}, 0, 4)"), ("<U00", "(70000,)"), ("<f4", f"(0x{'f' * 9000},)"),
        ("<f4", f"({'9' * 4000},)"), ("<U99999999999", "(1,)"), ("|u1", f"({1 << 60},)"),
        ("<f4", "(0, 1" + ", 1" * 70 + ")"),
        ("<f4", "(" * 3000), ("x" * 9000, "()"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("archive", [False, True])
def test_a_header_that_asks_for_much_is_refused_before_anything_is_read(tmp_path, descr, shape, archive):
    data = header(f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}}}")
    if archive:
        with zipfile.ZipFile(tmp_path / "x", "w") as file:
            file.writestr("x.npy", data)
    else:
        (tmp_path / "x").write_bytes(data)
    tracemalloc.start()
    try:
        found = npy.load_archive(tmp_path / "x")["x"] if archive else npy.load(tmp_path / "x")
        assert found.size == 0
    except (FormatError, DTypeError) as error:
        assert len(str(error)) < 1000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def bomb(path, megabytes, name="x"):
    """An archive of one array of zeros, much smaller when compressed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open(name + ".npy", "w", force_zip64=True) as f:
        f.write(header(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({megabytes << 20},)}}"))
        for _ in range(megabytes):
            f.write(bytes(1 << 20))


def test_an_archive_that_expands_beyond_measure_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "EXPANDED", 1 << 20)
    bomb(tmp_path / "x.npz", 4)
    assert (tmp_path / "x.npz").stat().st_size < 1 << 16
    with pytest.raises(FormatError, match="would become"):
        npy.load_archive(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", x=np.zeros(4 << 20, np.uint8))  # the same, stored
    assert npy.load_archive(tmp_path / "y.npz")["x"].size == 4 << 20


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_is_compressed_as_numpy_compresses(method, tmp_path):
    """zipfile expands all of another one's bytes at once, whatever size the archive gives."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w", method) as file:
        file.writestr("x.npy", npy.dumps(el.zeros((3,), backend="numpy")))
    for read in (npy.load_archive, store.open):
        with pytest.raises(FormatError, match=rf"x\.npy is compressed by zip's method {method}, not by deflate"):
            read(tmp_path / "x.npz")


def test_a_member_that_nobody_asked_for_is_not_read(tmp_path, emberlet, digits):
    bomb(tmp_path / "x.npz", 64, "other")
    tracemalloc.start()
    said = emberlet("run", digits, "--input", tmp_path / "x.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert said.status == 2 and "there is no input 'other'" in said.err
    bomb(tmp_path / "y.npz", 64, "image")
    assert (
        "holds uint8 (67108864,), the model takes image" in emberlet("run", digits, "--input", tmp_path / "y.npz").err
    )
    assert peak < 48 << 20


def test_strings_keep_their_zeros_or_are_refused(tmp_path):
    for backend in ("numpy", "python"):
        for value in ("\0", "a\0b\0", "", "é\0"):
            assert el.asarray(value, backend=backend).item() == value
            assert el.full((2,), value, dtype="string", backend=backend).tolist() == [value] * 2
            assert el.asarray([value], backend=backend).tolist() == [value]
    with pytest.raises(DTypeError, match="ends in a zero character"):
        npy.save_archive(tmp_path / "x.npz", {"x": el.asarray(["a\0"])})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rank", range(0, 40, 3))
def test_data_begin_at_a_multiple_of_64_bytes(rank):
    data = npy.dumps(el.ones((1,) * rank, dtype="int16"))
    assert (len(data) - 2) % 64 == 0
    assert data[len(data) - 3 : len(data) - 2] == b"\n"
    assert np.load(io.BytesIO(data)).shape == (1,) * rank
