"""Which assignments write into the array that a tensor holds, and which make a new one."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.host import assignment as on_host
from emberlet.host.counts import COUNTS
from emberlet.host.numpy_backend import assignment
from emberlet.tensor import Tensor

pytestmark = pytest.mark.skipif(not COUNTS, reason="this interpreter's reference counts say nothing")
NUMPY, PYTHON = get_backend("numpy"), get_backend("python")


def made() -> Tensor:
    """A tensor that nothing else shares."""
    return Tensor(np.zeros((3, 4), np.float32), dtypes.float32, (3, 4), NUMPY)


def quick(x: Tensor, key: Any, value: Any) -> bool:
    return assignment.assign_in_place(x, key, value)


@pytest.mark.parametrize(
    "key",
    [
        0, 2, -3, (1, -4), (2, 3), slice(None), slice(0, 3), slice(-3, 3, 1), slice(None, None, -1), (slice(1, 2), 3),
        (slice(None), slice(0, 4, 2)), (),
    ],
)  # fmt: skip
def test_integers_and_slices_within_the_axes_are_written_in_place(key: Any) -> None:
    x = made()
    array = np.asarray(x.data).copy()
    where = x.data.ctypes.data
    assert quick(x, key, 5.0)
    array[key] = 5.0
    assert x.data.ctypes.data == where
    assert x.tolist() == array.tolist()


def outcome(backend: Any, dtype: str, key: Any, value: Any) -> str:
    """The elements after an assignment, or its error."""
    x = emberlet.asarray(np.zeros((3, 4), dtype), backend=backend, copy=True)
    try:
        x[key] = value if not isinstance(value, Tensor) else emberlet.move(value, backend)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return repr(x.tolist())


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bool", "int8", "uint8", "int64"])
def test_values_are_written_as_plain_python_writes_them(dtype: str) -> None:
    for value in (1.5, 1, True, np.float32(1.25), -1, 127, 128, -128, -129, 255, 256, -(1 << 63), 1 << 63, 1e300,
                  emberlet.asarray([1.75, -3.0, 300.0, 0.1]), emberlet.asarray(7, dtype="int64")):  # fmt: skip
        assert outcome(NUMPY, dtype, 1, value) == outcome(PYTHON, dtype, 1, value), value


def test_keys_choose_what_they_choose_in_plain_python() -> None:
    cut = (slice(None, None, 0), slice(0, 4), slice(-4, None), slice(-9, 9), slice(None, None, 4), slice(True, None))
    for key in (3, -4, (0, 4), (0, -5), (0, 0, 0), True, False, np.int64(1), None, ..., (0, None), [0], [True] * 3,
                *cut, slice(0, np.int64(2)), (0, slice(0, 5)), (slice(None, 4), 0)):  # fmt: skip
        assert outcome(NUMPY, "float32", key, 5.0) == outcome(PYTHON, "float32", key, 5.0), key


def test_tensors_of_the_same_dtype_and_backend_are_written_in_place() -> None:
    x = made()
    assert not quick(x, 1, made())  # of three rows
    row = Tensor(np.arange(4, dtype=np.float32), dtypes.float32, (4,), NUMPY)
    assert quick(x, 1, row)
    assert x.tolist() == [[0] * 4, [0, 1, 2, 3], [0] * 4]
    assert not quick(x, 1, Tensor(np.arange(3, dtype=np.float32), dtypes.float32, (3,), NUMPY))
    assert not quick(x, 1, Tensor(np.arange(4), dtypes.int64, (4,), NUMPY))
    assert not quick(x, 1, emberlet.asarray([9.0] * 4, device=PYTHON))
    assert x.tolist()[1] == [0, 1, 2, 3]
    turned = Tensor(np.arange(4, dtype=np.float32), dtypes.float32, (4,), NUMPY)
    turned[::-1] = turned
    assert turned.tolist() == [3, 2, 1, 0]


def test_arrays_that_something_shares_are_left_alone() -> None:
    x = made()
    other = Tensor(x.data, x.dtype, x.shape, NUMPY)
    assert not quick(x, 0, 5.0)
    del other
    assert quick(x, 0, 5.0)
    base = np.zeros((4, 4), np.float32)
    part = Tensor(base[:3], dtypes.float32, (3, 4), NUMPY)
    assert not quick(part, 0, 5.0)
    fixed = made()
    fixed.data.flags.writeable = False
    assert not quick(fixed, 0, 5.0)
    turned = Tensor(np.zeros(3, ">f4"), dtypes.float32, (3,), NUMPY)
    assert not quick(turned, 0, 5.0)
    assert not base.any()


def test_without_reference_counts_nothing_is_written_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment, "COUNTS", False)
    assert not quick(made(), 0, 5.0)


# -- plain Python


def listed(*values: float) -> Tensor:
    return Tensor((list(values), 0, None), dtypes.float32, (len(values),), PYTHON)


def test_a_list_of_its_own_is_written_in_place() -> None:
    x = listed(1.0, 2.0, 3.0)
    where = id(x.data[0])
    x[1] = 9.0
    assert (id(x.data[0]), x.tolist()) == (where, [1.0, 9.0, 3.0])


@pytest.mark.parametrize("how", ["buffer", "data", "offset", "strides", "longer", "memory"])
def test_a_shared_or_partial_list_is_copied(how: str) -> None:
    buffer: Any = [1.0, 2.0, 3.0]
    if how == "offset":
        x = Tensor(([0.0, *buffer], 1, None), dtypes.float32, (3,), PYTHON)
    elif how == "strides":
        x = Tensor((buffer, 0, (1,)), dtypes.float32, (3,), PYTHON)
    elif how == "longer":
        x = Tensor(([*buffer, 4.0], 0, None), dtypes.float32, (3,), PYTHON)
    elif how == "memory":
        x = Tensor((memoryview(np.float32(buffer)), 0, None), dtypes.float32, (3,), PYTHON)
    elif how == "data":
        held = (list(buffer), 0, None)
        x = Tensor(held, dtypes.float32, (3,), PYTHON)
    else:
        x = Tensor((buffer, 0, None), dtypes.float32, (3,), PYTHON)
    before = x.data[0]
    was = list(before)
    x[1] = 9.0
    assert x.data[0] is not before
    assert list(before) == was
    assert x.tolist() == [1.0, 9.0, 3.0]


def test_without_reference_counts_lists_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_host, "COUNTS", False)
    x = listed(1.0, 2.0)
    where = x.data[0]
    x[0] = 9.0
    assert where == [1.0, 2.0] and x.tolist() == [9.0, 2.0]
