"""A new tensor lies on the backend that `backend` or `device` names, else on that of the tensor it is like, else on the
default."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.backend import get_backend, set_default_backend
from support.rows import every

X = emberlet.asarray([[1, 0, 2], [3, 1, 2]], dtype="int16", backend="loops")

# A call, and whether it follows the tensor it gets.
CREATED: dict[str, tuple[tuple[Any, ...], bool]] = {
    "arange": ((4,), False), "asarray": (([1, 2],), False), "bernoulli": ((0.5, (3,)), False),
    "blackman_window": ((4,), False), "cartesian_grid": (((2, 3),), False), "diag_mask": (((2, 3),), False),
    "dict_vectorize": (({"a": 1}, ["a"], "float32"), False), "empty": (((2,),), False), "empty_like": ((X,), True),
    "eye": ((3,), False), "from_dlpack": ((np.ones(3),), False), "full": (((2,), 7), False),
    "full_like": ((X, 7), True), "geomspace": ((1.0, 8.0, 4), False), "hamming_window": ((4,), False),
    "hann_window": ((4,), False), "indices": (((2, 3),), False), "linspace": ((0.0, 1.0, 5), False),
    "logspace": ((0.0, 1.0, 3), False), "map_to_tensor": (({1: 2.0}, "float32"), False),
    "mel_weight_matrix": ((3, 8, 8000, 0, 4000), False), "normal": (((3,),), False), "ones": (((2,),), False),
    "ones_like": ((X,), True), "permutation": ((5,), False), "randint": ((9, None, (3,)), False),
    "random": (((3,),), False), "random_bits": (((3,),), False), "tri": ((3,), False), "tril_indices": ((3,), False),
    "tril_mask": (((2, 3),), False), "triu_indices": ((3,), False), "triu_mask": (((2, 3),), False),
    "uniform": (((3,),), False), "zeros": (((2,),), False), "zeros_like": ((X,), True),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _default() -> Iterator[None]:
    set_default_backend("python")
    yield
    set_default_backend(None)


def _backends(found: Any) -> set[str]:
    return {x.backend.name for x in (found if isinstance(found, tuple) else (found,))}


@every("name", CREATED)
def test_a_new_tensor_lies_where_it_is_told(name: str) -> None:
    call, (args, follows) = getattr(F, name), CREATED[name]
    words = [word for word in ("backend", "device") if word in inspect.signature(call).parameters]
    assert "backend" in words
    assert _backends(call(*args)) == {"loops" if follows else "python"}
    for word in words:
        for value in ("numpy", get_backend("numpy")):
            assert _backends(call(*args, **{word: value})) == {"numpy"}
    if len(words) == 2:
        assert _backends(call(*args, backend="numpy", device="loops")) == {"numpy"}


def test_every_function_with_a_backend_has_a_call() -> None:
    named = {name for name in dir(F) if "backend" in getattr(inspect.signature(getattr(F, name)), "parameters", {})}
    assert named - set(CREATED) <= {"causal_mask", "move", "operation"}


def test_dtypes_of_new_tensors() -> None:
    for call, dtype in (
        (lambda **o: F.zeros((2,), **o), "float32"), (lambda **o: F.ones((2,), **o), "float32"),
        (lambda **o: F.empty((2,), **o), "float32"), (lambda **o: F.full((2,), 1, **o), "int64"),
        (lambda **o: F.full((2,), 1.0, **o), "float32"), (lambda **o: F.full((2,), True, **o), "bool"),
        (lambda **o: F.arange(3, **o), "int64"), (lambda **o: F.arange(3.0, **o), "float32"),
        (lambda **o: F.arange(0, 3, 0.5, **o), "float32"), (lambda **o: F.linspace(0, 1, 3, **o), "float32"),
        (lambda **o: F.eye(2, **o), "float32"), (lambda **o: F.hann_window(3, **o), "float32"),
        (lambda **o: F.uniform((2,), **o), "float32"), (lambda **o: F.normal((2,), **o), "float32"),
    ):  # fmt: skip
        assert call().dtype.name == dtype
        assert call(dtype="float64").dtype.name == "float64"
    assert (
        F.randint(5, shape=(2,)).dtype.name == "int64" and F.randint(5, shape=(2,), dtype="int8").dtype.name == "int8"
    )
    assert F.eye_like(X).dtype.name == "int16" and F.eye_like(X, dtype="bool").dtype.name == "bool"
    assert F.random((2,), "bernoulli").dtype.name == "float32" and F.bernoulli(0.5, (2,)).dtype.name == "bool"


def test_layers_lie_where_they_are_told() -> None:
    for layer in (
        nn.Linear(2, 3, backend="numpy"),
        nn.Conv2d(1, 2, 3, backend="numpy"),
        nn.Lstm(2, 3, backend="numpy"),
    ):
        assert [b.name for b in layer.backends()] == ["numpy"]
    assert [b.name for b in nn.Linear(2, 3).backends()] == ["python"]
