"""Arguments become tensors of the dtype and on the backend of an operation, without copies where they fit."""

from __future__ import annotations

import emberlet
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.errors import BackendError, DTypeError
from emberlet.functional import operands, promotion
from support.backends import LoopsBackend


def test_a_tensor_stays_the_same_object_and_on_its_backend():
    x = emberlet.asarray([1.0, 2.0], backend="python")
    assert operands.tensor(x) is x
    assert operands.tensor(x, "numpy") is x
    assert operands.tensor([1.0], "python").device == "python"
    assert operands.like(x, x) is x
    assert operands.floating(x) is x
    assert operands.numeric(x, "test") is x
    assert operands.astype(x, x.dtype) is x


def test_a_number_takes_the_dtype_of_the_other_operand_exactly():
    wide = emberlet.zeros((1,), dtype="float64", backend="python")
    tenth = operands.like(0.1, wide)
    assert (tenth.item(), tenth.dtype.name, tenth.device) == (0.1, "float64", "python")
    small = emberlet.zeros((1,), dtype="uint8")
    with pytest.raises(DTypeError, match="300"):
        operands.like(300, small)
    assert operands.like([3], small).dtype.name == "uint8"


def test_operands_of_two_backends_are_refused():
    here, there = emberlet.zeros((2,), backend="python"), emberlet.zeros((2,), backend="numpy")
    for refused in (
        lambda: operands.like(here, there),
        lambda: operands.same_backend(here, here, there),
        lambda: promotion.together(here, there),
        lambda: promotion.all_together([here, there]),
        lambda: F.concat([here, there]),
        lambda: F.where(here > 0, here, there),
        lambda: F.layer_norm(here, weight=there),
        lambda: F.layer_norm(here, there),
        lambda: F.einsum("i,i->", here, there),
    ):
        with pytest.raises(BackendError, match="python"):
            refused()
    assert operands.same_backend(here, here) is here.backend


def test_lists_of_tensors_take_the_backend_of_the_first_tensor():
    x = emberlet.asarray([1, 2], backend="python")
    found = promotion.all_together([[0.5, 1.5], x])
    assert [t.device for t in found] == ["python", "python"]
    assert [t.dtype.name for t in found] == ["float32", "float32"]
    assert [t.device for t in promotion.all_together([[1], [2]])] == ["numpy", "numpy"]


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        ([1, 2], [3.0, 4.0], "float32 float32"),
        ([1, 2], "float16", "float16 float16"),
        (2, "uint8", "uint8 uint8"),
        (2, "bool", "int64 int64"),
        (True, "bool", "bool bool"),
        (True, "uint8", "uint8 uint8"),
        (True, "float16", "float16 float16"),
        (2, "float16", "float16 float16"),
        (2.5, "float16", "float16 float16"),
        (2.5, "uint8", "float32 float32"),
        (2.5, "bool", "float32 float32"),
        ("uint8", "int8", "int16 int16"),
    ],
)
def test_two_operands_take_one_dtype(a, b, names):
    def made(x):
        return emberlet.ones((2,), dtype=x, backend="python") if isinstance(x, str) else x

    for first, second in ((a, b), (b, a)):
        found = promotion.together(made(first), made(second))
        assert " ".join(t.dtype.name for t in found) == names
        assert found[0].backend is found[1].backend
        if isinstance(a, str) or isinstance(b, str):
            assert found[0].device == "python"


def test_operands_that_fit_are_not_copied():
    x, y = emberlet.ones((2,)), emberlet.ones((2,))
    first, second = promotion.together(x, y)
    assert first is x and second is y
    assert promotion.all_together([x, y])[0] is x


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 256, -1, 256.5, 1e30])
def test_numbers_outside_an_integer_dtype_are_refused(value):
    dtype = dtypes.dtype("uint8")
    with pytest.raises(DTypeError):
        promotion.whole_numbers((value,), dtype)
    with pytest.raises(DTypeError):
        emberlet.asarray(value, dtype="uint8")


def test_numbers_at_the_ends_of_an_integer_dtype_are_taken():
    assert promotion.whole_numbers((0, 255, True, 254.75), dtypes.dtype("uint8")) == [0, 255, 1, 254]
    assert promotion.whole_numbers((-128, 127), dtypes.dtype("int8")) == [-128, 127]
    promotion.check_range(1e30, dtypes.dtype("float16"))  # a float of any size: rounded, not refused


def test_a_number_becomes_a_tensor_without_axes():
    backend = emberlet.get_backend("python")
    for value, name, expected in ((3, "uint8", 3), (True, "int8", 1), (2.7, "int8", 2), (-2.7, "int8", -2),
                                  (2.5, "float32", 2.5), (True, "bool", True)):  # fmt: skip
        x = promotion.scalar(value, dtypes.dtype(name), backend)
        assert (x.item(), x.dtype.name, x.shape) == (expected, name, ())
    with pytest.raises(DTypeError, match="-1"):
        promotion.scalar(-1, dtypes.dtype("uint8"), backend)


def test_sums_of_narrow_floats_are_kept_in_32_bits():
    for name, within in (("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32"),
                         ("float64", "float64"), ("int8", "float32")):  # fmt: skip
        x = emberlet.ones((2,), dtype=name, backend="python")
        wide, dtype = promotion.widened(x)
        assert wide.dtype.name == within
        assert dtype.name == (name if name != "int8" else "float32")


class Own(LoopsBackend):
    """Each override notes its call and then gives None, which no composite would."""

    name = "own"
    calls: list[str] = []  # noqa: RUF012


CALLS = {
    "relu": lambda x: F.relu(x),
    "linear": lambda x: F.linear(x, x, layout="burn"),
    "clip": lambda x: F.clip(x, 0, 1),
    "signbit": lambda x: F.signbit(x),
    "sigmoid": lambda x: F.sigmoid(x),
    "gelu": lambda x: F.gelu(x),
    "softmax": lambda x: F.softmax(x),
    "log_softmax": lambda x: F.log_softmax(x),
    "layer_norm": lambda x: F.layer_norm(x),
    "rms_norm": lambda x: F.rms_norm(x),
    "batch_norm": lambda x: F.batch_norm(x, x[0], x[0]),
    "det": lambda x: F.det(x),
    "rotate": lambda x: F.roll(x, 1, 0),
    "mish": lambda x: F.mish(x),
    "conv_transpose": lambda x: F.conv_transpose(F.reshape(x, (1, 2, 2)), F.reshape(x, (2, 1, 2))),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_backends_own_method_is_called_for_a_function(name):
    backend = Own()
    x = emberlet.asarray([[1.0, 2.0], [3.0, 5.0]], backend=backend)
    marker = x * 0 + 77

    def own(*args, **kwargs):
        backend.calls.append(name)
        return marker

    backend.calls.clear()
    setattr(backend, name, own)
    found = CALLS[name](x)
    assert backend.calls == [name]
    assert F.max(found).item() == 77
