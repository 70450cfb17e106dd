"""Module.map over quantized weights: a mapper sees the floats that they stand for."""

from __future__ import annotations

from typing import Any, ClassVar

import emberlet
import numpy as np
import pytest
from emberlet import nn
from emberlet.errors import DTypeError, EmberletError, ShapeError
from numpy.typing import NDArray

SCHEMES: list[dict[str, Any]] = [
    {}, {"bits": 4, "level": 16, "mode": "affine"}, {"bits": 2, "level": "tensor"}, {"input_scales": True},
    {"bits": 4, "level": 16, "scale_dtype": "float8_e4m3fn", "value_dtype": "float4_e2m1fn"},
    {"bits": 4, "level": 16, "value_dtype": "nf4"}, {"level": (16, 16)},
]  # fmt: skip


def layer(**scheme: Any) -> Any:
    made = nn.Linear(32, 16, backend="numpy")
    values = np.random.default_rng(0).normal(size=(32, 16)).astype(np.float32)
    made.weight.set(emberlet.asarray(values, backend="numpy"))
    made.quantize_weights(**scheme)
    return made


def numbers(x: Any) -> NDArray[Any]:
    return np.asarray(x.astype("float64"))


def parts(module: Any) -> dict[str, bytes]:
    return {name: np.asarray(p.val().astype("float32")).tobytes() for name, p in module.named_params()}


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_a_multiple_of_a_quantized_weight_is_that_multiple(scheme: dict[str, Any]) -> None:
    packed = layer(**scheme)
    before, weight = parts(packed), numbers(packed.weight.val())
    seen = {}

    def doubled(name: str, x: Any) -> Any:
        seen[name] = numbers(x)
        return x * 2

    mapped = packed.map(doubled)
    assert list(seen) == ["weight", "bias"] and (seen["weight"] == weight).all()
    assert type(mapped) is type(packed) and mapped.weight.values.dtype is packed.weight.values.dtype
    np.testing.assert_allclose(numbers(mapped.weight.val()), 2 * weight, rtol=1e-5)
    assert [p.id for p in mapped.params()] == [p.id for p in packed.params()]
    assert parts(packed) == before


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_another_dtype_is_that_of_the_dequantized_weight(scheme: dict[str, Any], dtype: str) -> None:
    packed = layer(**scheme)
    mapped = packed.map(lambda name, x: x.astype(dtype))
    assert (mapped.weight.val().dtype.name, mapped.bias.dtype.name) == (dtype, dtype)
    assert mapped.weight.values.dtype is packed.weight.values.dtype
    weight = numbers(packed.weight.val())
    step = abs(weight).max() * {"float16": 2e-3, "bfloat16": 2e-2}[dtype]
    np.testing.assert_allclose(numbers(mapped.weight.val()), weight, atol=step)
    x = emberlet.asarray(np.random.default_rng(1).normal(size=(3, 32)).astype(np.float32), backend="numpy")
    found = mapped(x.astype(dtype))
    assert found.dtype.name == dtype
    np.testing.assert_allclose(numbers(found), numbers(packed(x)), atol=32 * step)


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_a_weight_that_comes_back_keeps_its_bits(scheme: dict[str, Any]) -> None:
    packed = layer(**scheme)
    mapped = packed.map(lambda name, x: x)
    assert parts(mapped) == parts(packed)
    assert not {id(p) for p in mapped.params()} & {id(p) for p in packed.params()}


def test_an_assignment_to_the_floats_is_quantized() -> None:
    packed = layer()

    def cleared(name: str, x: Any) -> Any:
        x[0] = 0
        return x

    mapped = packed.map(cleared)
    assert not numbers(mapped.weight.val())[0].any() and numbers(packed.weight.val())[0].any()


def test_burns_mappers_get_a_quantized_weight_as_a_float_parameter() -> None:
    class Mapper:
        ids: ClassVar[list[Any]] = []

        def map_float(self, id: Any, x: Any) -> Any:
            self.ids.append(id)
            return x * 3

    packed = layer()
    mapped = packed.map(Mapper())
    assert Mapper.ids == [packed.weight.values.id, packed.bias.id]
    np.testing.assert_allclose(numbers(mapped.weight.val()), 3 * numbers(packed.weight.val()), rtol=1e-5)

    class Integers:
        def map_int(self, id: Any, x: Any) -> Any:
            raise AssertionError("a quantized weight is no integer parameter")

    assert parts(packed.map(Integers())) == parts(packed)


def test_layers_that_share_a_weight_share_the_new_one() -> None:
    packed = layer()
    both = nn.Sequential(packed, packed)
    calls = []
    mapped = both.map(lambda name, x: calls.append(name) or x + 1)
    assert mapped[0].weight is mapped[1].weight and calls == ["0.weight", "0.bias"]


def test_a_quantized_weight_alone_is_mapped() -> None:
    weight = layer().weight
    np.testing.assert_allclose(numbers(weight.map(lambda name, x: x * 2).val()), 2 * numbers(weight.val()), rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        (lambda x: x.astype("int32"), DTypeError, "int32"),
        (lambda x: x[:4], ShapeError, r"\(4, 16\)"),
        (lambda x: None, EmberletError, "found None"),
    ],
    ids=["integers", "another shape", "nothing"],
)
def test_what_is_no_such_weight_is_refused(change: Any, error: type[Exception], named: str) -> None:
    packed = layer()
    before = parts(packed)
    with pytest.raises(error, match=f"weight.*{named}"):
        packed.map(lambda name, x: change(x))
    assert parts(packed) == before
