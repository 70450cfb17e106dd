"""TensorData, and how tensors print and compare."""

from __future__ import annotations

import asyncio

import emberlet
import numpy as np
import pytest
from emberlet import TensorData
from emberlet.errors import DTypeError, FormatError, ShapeError
from support.rows import every


def test_data_has_bytes_shape_and_dtype(backend):
    data = emberlet.asarray([[1.0, 2.0]]).to_data()
    assert (data.shape, data.dtype, bytes(data.bytes)) == ((1, 2), emberlet.float32, np.float32([1, 2]).tobytes())
    assert data.to_vec() == [1.0, 2.0]
    assert data.to_list() == [[1.0, 2.0]]
    assert list(data) == [1.0, 2.0]
    assert len(data) == 2


def test_data_converts_and_becomes_a_tensor_anywhere(backend):
    data = TensorData.from_list([[1, 2], [3, 4]])
    assert data.dtype is emberlet.int64
    assert data.convert("float16").to_list() == [[1.0, 2.0], [3.0, 4.0]]
    assert data.convert("int64") is data
    x = emberlet.Tensor.from_data(data)
    assert x.backend is backend
    assert x.tolist() == [[1, 2], [3, 4]]
    assert emberlet.asarray(data, dtype="float32").dtype is emberlet.float32
    assert TensorData.from_list([1, 2, 3, 4], (2, 2), "int4").convert("int8").to_list() == [[1, 2], [3, 4]]
    assert TensorData.from_list(["a", "b"], dtype="string").to_vec() == ["a", "b"]
    assert emberlet.asarray(["a", "b"]).to_data().to_tensor(backend).tolist() == ["a", "b"]


def test_data_compares_by_content(backend):
    assert TensorData.from_list([1, 2]) == emberlet.asarray([1, 2]).to_data()
    assert TensorData.from_list([1, 2]) != TensorData.from_list([1, 3])
    assert TensorData.from_list([1, 2]) != TensorData.from_list([1.0, 2.0])


def test_data_that_does_not_fill_its_shape_is_refused():
    with pytest.raises(FormatError, match=r"float32.*\(3,\) takes 12.*found 8"):
        TensorData(bytes(8), (3,), "float32")


def test_data_can_be_awaited(backend):
    x = emberlet.asarray([3])
    assert asyncio.run(x.to_data_async()).to_vec() == [3]
    assert asyncio.run(x.item_async()) == 3


def test_print_shows_elements_and_facts(backend):
    text = str(emberlet.full((2, 3), 0.123456789))
    assert text == (
        "Tensor {\n  data:\n[[0.12345679, 0.12345679, 0.12345679],\n [0.12345679, 0.12345679, 0.12345679]],\n"
        f"  shape:  [2, 3],\n  device:  '{backend!r}',\n"
        '  kind:  "Float",\n  dtype:  "float32",\n}'
    )


def test_repr_is_short(backend):
    assert repr(emberlet.asarray([1, 2])) == f"Tensor([1, 2], dtype=int64, backend='{backend!r}')"
    assert repr(emberlet.asarray(True)).startswith("Tensor(True, dtype=bool")
    assert "float16" in repr(emberlet.asarray([0.1], dtype="float16"))
    assert repr(emberlet.asarray([0.1], dtype="float16")).startswith("Tensor([0.1],")


def test_format_specs_set_the_precision(backend):
    x = emberlet.asarray([[1.23456, -2.0]])
    assert "[[1.23, -2.00]]" in f"{x:.2f}"
    assert "[[1.2, -2.0]]" in f"{x:.1}"
    assert f"{emberlet.asarray(2.5):6.2f}" == "  2.50"
    assert f"{x}" == str(x)
    with pytest.raises(ValueError, match="precision"):
        f"{x:>8}"


def test_print_options(backend):
    x = emberlet.arange(2000)
    assert "[0, 1, 2, ..., 1997, 1998, 1999]" in str(x)
    with emberlet.print_options(threshold=5, edge_items=1, precision=1):
        assert "[[0.0, ..., 4.0],\n ...\n [20.0, ..., 24.0]]" in str(emberlet.arange(25.0).reshape((5, 5)))
    emberlet.set_print_options(edge_items=2)
    assert "[0, 1, ..., 1998, 1999]" in str(x)
    emberlet.set_print_options()
    assert "[0, 1, 2, ..., 1997, 1998, 1999]" in str(x)
    with pytest.raises(ValueError, match="width"):
        emberlet.set_print_options(width=3)


def test_empty_tensors_print(backend):
    assert repr(emberlet.zeros((0, 3))).startswith("Tensor([], dtype=float32")
    assert "shape:  [2, 0]" in str(emberlet.zeros((2, 0)))


def test_closeness_reports_each_tolerance(backend, capsys):
    a = emberlet.asarray([1.0, 2.0, 3.0, 4.0, 5.0, 6.001, 7.002, 8.003, 9.004, 10.1])
    b = emberlet.asarray([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.001, 8.002, 9.003, 10.004])
    text = emberlet.check_closeness(a, b, color=False)
    assert capsys.readouterr().out == text + "\n"
    lines = text.splitlines()
    assert "within 1e-01: 100.00% [PASS]" in lines[1]
    assert "within 1e-02:  90.00% [WARN]" in lines[2]
    assert "within 1e-04:  50.00% [FAIL]" in lines[4]
    colored = emberlet.check_closeness(a, b).splitlines()
    assert colored[1].endswith(" \x1b[32m[PASS]\x1b[0m")
    assert colored[2].endswith(" \x1b[33m[WARN]\x1b[0m")
    assert colored[4].endswith(" \x1b[31m[FAIL]\x1b[0m")
    with pytest.raises(ShapeError, match=r"\(10,\) and \(2,\)"):
        emberlet.check_closeness(a, emberlet.ones((2,)))


def test_closeness_takes_nan_and_infinity_for_close_to_themselves_alone(backend):
    nan, inf = float("nan"), float("inf")
    a = emberlet.asarray([nan, nan, inf, -inf, nan, 1.0, inf, 2.0, 0.0, 3.0])
    b = emberlet.asarray([nan, nan, inf, -inf, 1.0, nan, -inf, 2.0, inf, 3.0])
    assert "within 1e-01:  60.00%" in emberlet.check_closeness(a, b, color=False)
    assert "within 1e-01:  60.00%" in emberlet.check_closeness(b, a, color=False)


def test_gradients_are_nowhere(backend):
    x = emberlet.ones((2,))
    assert x.require_grad().detach().is_require_grad() is False


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float16"])
def test_special_values_reach_numpy_as_they_are(backend, dtype):
    x = emberlet.asarray([float("inf"), float("-inf"), float("nan"), 0.0, 1e9]).cast(dtype, saturate=False)
    np.testing.assert_array_equal(np.asarray(x).astype(np.float64), np.array(x.tolist()))
    np.testing.assert_array_equal(x.to_data().to_vec(), x.tolist())


@every(
    ("values", "dtype"),
    [
        ([2**70], None), ([1e20], "int64"), ([float("nan")], "int32"), ([float("-inf")], "uint8"),
        ([[1], [300]], "uint8"), ([-1], "uint64"), ([2**63], None), ([8], "int4"), ([0, -(2**31) - 1], "int32"),
    ],
)  # fmt: skip
def test_a_number_that_an_integer_dtype_does_not_hold_is_refused(backend, values, dtype):
    with pytest.raises(DTypeError, match="does not fit"):
        emberlet.asarray(values, dtype=dtype)
