"""Chains that a plan computes block by block meet values that have no axes, which a plan computes as well: results
compared with NumPy, and a view of every array that has no memory yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import blocks, compile, memory
from emberlet.tensor import Tensor


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of 32 bytes are cut, and what is read before a plan has run is NaN."""
    monkeypatch.setattr(blocks, "LONG", 32)
    monkeypatch.setattr(blocks, "BLOCK", 16)
    reserved = memory._reserved

    def poisoned(nbytes: int) -> Any:
        out = np.array(reserved(nbytes))
        out[...] = 255
        return out

    monkeypatch.setattr(memory, "_reserved", poisoned)


def _moved(name: str, *arguments: Any) -> Callable[[Tensor], Tensor]:
    """A primitive of movement on a tensor without axes."""
    return lambda x: getattr(x.backend, name)(x, *arguments)


VALUES: dict[str, Callable[[Tensor], Tensor]] = {
    "itself": lambda peak: peak,
    "sliced": _moved("slice", (), (), ()),
    "padded": _moved("pad", (), 0),
    "reshaped": lambda peak: F.reshape(F.reshape(peak, (1,)), ()),
    "permuted": _moved("permute", ()),
    "indexed": lambda peak: F.stack([peak, peak])[1],
    "all of it": lambda peak: peak[...],
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("shape", [(64,), (5, 7), (3, 1, 9)])
def test_a_value_of_the_inputs_is_the_same_in_every_block(name: str, shape: tuple[int, ...]) -> None:
    compiled = compile(lambda x: (x / VALUES[name](x.max()) + 1.0) * VALUES[name](x.min() + 3.0))
    for seed in range(3):
        x = np.random.default_rng(seed).random(shape, np.float32) + 1
        want = (x / x.max() + np.float32(1)) * (x.min() + np.float32(3))
        np.testing.assert_array_equal(np.asarray(compiled(emberlet.asarray(x, backend="numpy"))), want)


@pytest.mark.usefixtures("small_blocks")
def test_a_dynamic_quantization_takes_the_scale_of_its_inputs() -> None:
    compiled = compile(F.dynamic_quantize_linear)
    for factor in (1, 50):
        x = np.random.default_rng(factor).standard_normal((8, 16), np.float32) * factor
        found, scale, zero = map(np.asarray, compiled(emberlet.asarray(x, backend="numpy")))
        want = (max(x.max(), 0) - min(x.min(), 0)) / np.float32(255)
        np.testing.assert_allclose(scale, want, rtol=1e-6)
        np.testing.assert_allclose((found.astype(np.float32) - zero) * scale, x, atol=want * 0.51)


def test_the_largest_element_divides_an_image_of_ordinary_size() -> None:
    compiled = compile(lambda x: x / x.max() + 1.0)
    for factor in (1, 2):
        x = np.random.default_rng(factor).random((512, 512), np.float32) * factor
        found = compiled(emberlet.asarray(x, backend="numpy"))
        np.testing.assert_array_equal(np.asarray(found), x / x.max() + np.float32(1))


def test_a_constant_result_belongs_to_the_caller() -> None:
    fixed = emberlet.asarray(np.arange(3, dtype="float32"), backend="numpy")

    def decided(x: Tensor) -> Tensor:
        return fixed * 2 if x.sum() > 0 else fixed

    functions: dict[str, Callable[[Tensor], Any]] = {
        "computed": lambda x: fixed * 2,
        "in a list": lambda x: [fixed * 2, x],
        "in a mapping": lambda x: {"a": fixed * 2},
        "for a value of the input": decided,
        "for a length": lambda x: (fixed + 1)[: x.shape[0]] - 1 + fixed,
    }
    for name, function in functions.items():
        for dims in (None, {"x": {0: "n"}}):
            compiled = compile(function, dims=dims)
            for _ in range(3):
                out = compiled(emberlet.asarray(np.ones(3, np.float32), backend="numpy"))
                array = np.asarray(out["a"] if isinstance(out, dict) else out[0] if isinstance(out, list) else out)
                np.testing.assert_array_equal(array, [0, 2, 4], err_msg=name)
                array[...] = 99
    np.testing.assert_array_equal(np.asarray(fixed), [0, 1, 2])


@pytest.mark.usefixtures("small_blocks")
def test_a_chain_takes_the_same_bits_for_numbers_of_another_kind() -> None:
    def model(x: Tensor) -> Tensor:
        return F.where(x * 2 > 1.0, F.bitcast(F.bitcast(x * 2, "int32") + 1, "float32") * 3.0, -x) + 1.0

    x = np.random.default_rng(2).random((5, 16), np.float32)
    double = x * np.float32(2)
    want = np.where(double > 1, np.nextafter(double, np.float32(9)) * np.float32(3), -x) + np.float32(1)
    np.testing.assert_array_equal(np.asarray(compile(model)(emberlet.asarray(x, backend="numpy"))), want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float32", "int64", "float64"])
@pytest.mark.parametrize("shapes", [((64, 50), (64, 50), (64, 50)), ((64, 1), (50,), ()), ((), (64, 50), (50,))])
def test_a_choice_between_many_elements_is_numpys(dtype: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    draw = np.random.default_rng(3)
    condition = draw.random(shapes[0]) > 0.5
    a, b = (np.asarray(draw.random(shape) * 200 - 100).astype(dtype) for shape in shapes[1:])
    if dtype.startswith("float"):
        a.flat[:1], b.flat[-1:] = np.nan, np.copysign(0, -1)
    given = [emberlet.asarray(x, backend="numpy") for x in (condition, a, b)]
    want = np.where(condition, a, b)
    for run in (F.where, compile(F.where)):
        for _ in range(2):
            found = np.asarray(run(*given))
            np.testing.assert_array_equal(found.view(np.uint8), want.view(np.uint8))
