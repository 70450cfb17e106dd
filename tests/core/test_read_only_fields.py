"""The fields of a tensor are read-only, and no shape reads memory beyond the elements."""

from __future__ import annotations

import copy
import pickle
import re

import emberlet
import numpy as np
import pytest
from emberlet.errors import EmberletError
from emberlet.tensor import Tensor
from support.every_backend import ALL

FIELDS = {"shape": (1000, 1000), "dtype": emberlet.float64, "backend": emberlet.get_backend("python"), "data": None}


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize(("field", "says"), [
    ("shape", "x.reshape(shape)"), ("dtype", "x.astype(dtype)"), ("backend", "x.to("), ("data", "x[...]"),
])  # fmt: skip
def test_assigning_to_a_field_says_what_to_write_instead(backend: str, field: str, says: str) -> None:
    x = emberlet.asarray([1.0, 2.0, 3.0, 4.0], device=backend)
    for change in (lambda: setattr(x, field, FIELDS[field]), lambda: delattr(x, field)):
        with pytest.raises(AttributeError) as raised:
            change()
        assert isinstance(raised.value, EmberletError)
    with pytest.raises(EmberletError, match=re.escape(says)):
        setattr(x, field, FIELDS[field])
    np.testing.assert_array_equal(np.asarray(x), [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("backend", ALL)
def test_what_changes_a_tensor_still_does(backend: str) -> None:
    x = emberlet.asarray([[1.0, 2.0], [3.0, 4.0]], device=backend)
    view = x.reshape((4,))
    x[0, ::-1] = 9.0
    x[x > 3.0] = 0.0
    emberlet.functional.setitem(x, (1, 0), 7.0)
    assert x.tolist() == [[0.0, 0.0], [7.0, 0.0]]
    assert view.tolist() == [1.0, 2.0, 3.0, 4.0]
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.tolist() == x.tolist()
    x.note = "attributes of your own are kept"  # type: ignore[attr-defined]
    assert x.note  # type: ignore[attr-defined]


@pytest.mark.parametrize("backend", ALL)
def test_a_tensor_constructed_with_a_wrong_shape_is_not_read_beyond_its_elements(backend: str) -> None:
    x = emberlet.asarray([1.0, 2.0, 3.0, 4.0], device=backend)
    wrong = Tensor(x.data, x.dtype, (1000, 1000), x.backend)
    for read in (np.asarray, np.from_dlpack, lambda x: x.__array_interface__):
        with pytest.raises((EmberletError, ValueError, BufferError)):
            read(wrong)  # type: ignore[operator]
