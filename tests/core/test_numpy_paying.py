"""What a compiled function of NumPy returns is the caller's own, whether its plan runs or, where that is quicker, the
function itself; and functions that have a plan although they hardly compute: views, constants, parts of complex
numbers."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import compile
from emberlet.module import Module
from emberlet.param import Param
from support.rows import every


def test_a_model_that_does_little_runs_uncompiled_and_keeps_nothing_of_its_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "")
    x = emberlet.asarray(np.ones((512, 512), np.float32), backend="numpy")
    small = emberlet.asarray(np.ones(4, np.float32), backend="numpy")
    sums = compile(lambda a: a + a)
    many = compile(lambda a: F.exp(F.sin(a * 2 + 1) * F.cos(a)) / 3 - a)
    for fast, quicker in ((sums, True), (many, False)):
        for _ in range(3):
            np.asarray(fast(small))[...] = 7
        np.testing.assert_array_equal(np.asarray(fast(small)), np.asarray(fast.model(small)))
        assert ("quicker uncompiled" in repr(fast)) is quicker
    np.testing.assert_array_equal(np.asarray(sums(x)), np.full((512, 512), 2))
    # Arguments beside each other, and a product, which NumPy's BLAS multiplies in threads itself.
    for model in (lambda a: F.concat([a, a]), lambda a: F.pad(a, 1), lambda a: a @ a):
        fast = compile(model)
        np.testing.assert_array_equal(np.asarray(fast(x)), np.asarray(model(x)))
        assert "quicker uncompiled" in repr(fast)
    for view in (lambda a: a, lambda a: a.T, lambda a: (a + 1, a[0]), lambda a: F.broadcast_to(a + 1, (2, 512, 512))):
        fast = compile(view)
        for _ in range(2):
            out = fast(x)
            for part in out if isinstance(out, tuple) else (out,):
                np.asarray(part)[...] = 9
        np.testing.assert_array_equal(np.asarray(x), 1)


def test_a_layer_of_integers_whose_weights_the_model_converts_in_each_call_has_a_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "")
    random = np.random.default_rng(2)
    weight = emberlet.asarray(random.integers(-128, 128, (288, 4000)).astype(np.int8), backend="numpy")

    class Layer(Module):
        def __init__(self) -> None:
            self.weight = Param(weight)

        def forward(self, x: emberlet.Tensor) -> emberlet.Tensor:
            return F.astype(F.matmul_integer(x, self.weight.val()), "float32")

    levels = random.integers(0, 256, (64, 288)).astype(np.uint8)
    fast = compile(Layer(), emberlet.asarray(levels, backend="numpy"))
    found = np.asarray(fast(emberlet.asarray(levels, backend="numpy")))
    np.testing.assert_array_equal(found, levels.astype(np.int64) @ np.asarray(weight).astype(np.int64))
    assert "quicker uncompiled" not in repr(fast)


@pytest.mark.parametrize("twice", [lambda y: (F.reshape(y, y.shape), y), lambda y: (F.permute_dims(y, (0, 1)), y)])
def test_a_value_that_a_model_returns_as_two_tensors_is_two_tensors(twice: Any) -> None:
    x = emberlet.asarray(np.ones((2, 3), np.float32), backend="numpy")
    one, other = compile(lambda a: twice(F.exp(a) + 1))(x)
    one[...] = 0
    np.testing.assert_allclose(np.asarray(other), np.full((2, 3), np.e + 1), rtol=1e-6)


@every("second", [lambda y: F.permute_dims(y, (0, 1)), lambda y: y[1:], lambda y: F.reshape(y, (-1,))])
def test_results_of_a_model_that_does_little_do_not_share_memory(second: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "")
    fast = compile(lambda a: (lambda y: (y, second(y)))(F.min(a, 1)))
    for _ in range(3):
        one, other = fast(emberlet.asarray(np.ones((3, 2, 4), np.float32), backend="numpy"))
        np.asarray(one)[...] = 9
        assert other is one or (np.asarray(other) == 1).all()


def test_parts_of_arguments_are_copied_wherever_they_lie() -> None:
    square = np.random.default_rng(4).random((6, 6)).astype(np.float32)
    model = lambda a: (a.T, a[1:, ::-2], F.broadcast_to(a[0], (2, 6)), F.bitcast(a, "int32"), a[2, 3], a[6:])  # noqa: E731
    fast = compile(model)
    for array in (square, square.T, np.repeat(square, 2, 1)[:, ::2], square[::-1]):
        x = emberlet.asarray(array, backend="numpy", copy=False)
        want = (
            array.T,
            array[1:, ::-2],
            np.tile(array[0], (2, 1)),
            array.copy().view(np.int32),
            array[2, 3],
            array[6:],
        )
        for found, expected in zip(fast(x), want, strict=True):
            np.testing.assert_array_equal(np.asarray(found), expected)
            assert not np.may_share_memory(np.asarray(found), array)


@pytest.mark.parametrize("value", [0.0, -0.0, 2.5, np.nan])
def test_a_result_of_one_value_is_written_anew_by_each_call(value: float) -> None:
    fast = compile(lambda a: (F.full_like(a, value), F.zeros((0, 2), backend="numpy")))
    x = emberlet.asarray(np.ones((3, 4), np.float32), backend="numpy")
    for _ in range(2):
        full, empty = map(np.asarray, fast(x))
        want = np.full((3, 4), value, np.float32)
        np.testing.assert_array_equal(full.view(np.int32), want.view(np.int32))
        assert full.flags.c_contiguous and empty.shape == (0, 2)
        full[...] = 7


COMPLEX = {
    "real": (F.real, np.real),
    "imag": (F.imag, np.imag),
    "conj": (lambda z: F.conj(z) * 2, lambda z: z.conj() * 2),
    "pairs": (F.view_as_real, lambda z: np.stack([z.real, z.imag], -1)),
    "transposed pairs": (lambda z: F.view_as_real(z.T), lambda z: np.stack([z.T.real, z.T.imag], -1)),
    "joined": (lambda z: F.view_as_complex(F.view_as_real(z) * 2)[0], lambda z: z[0] * 2),
    "magnitudes": (lambda z: F.real(z * F.conj(z)) + F.imag(z), lambda z: np.abs(z) ** 2 + z.imag),
    "spectrum": (lambda z: emberlet.fft.fft(z), np.fft.fft),
    "spectrum of reals": (lambda z: emberlet.fft.rfft(F.real(z)), lambda z: np.fft.rfft(z.real)),
}


@every("name", list(COMPLEX))
def test_complex_numbers_and_their_parts_have_plans(name: str) -> None:
    draw = np.random.default_rng(5)
    array = (draw.random((3, 4)) + 1j * draw.random((3, 4))).astype(np.complex64)
    z = emberlet.asarray(array, backend="numpy")
    model, want = COMPLEX[name]
    fast = compile(model)
    for _ in range(2):
        found = np.asarray(fast(z))
        np.testing.assert_allclose(found, want(array), rtol=1e-5, atol=1e-6)
        assert fast.cut is None and not np.may_share_memory(found, np.asarray(z))
        found[...] = 9
    np.testing.assert_array_equal(np.asarray(z), array)


def test_a_view_of_complex_numbers_belongs_to_the_caller_where_the_model_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "")
    array = np.ones((512, 512, 2), np.float32)
    x = emberlet.asarray(array, backend="numpy", copy=False)
    for model in (F.view_as_complex, lambda a: F.real(F.view_as_complex(a)), lambda a: F.set_require_grad(a, False)):
        np.asarray(compile(model)(x))[...] = 9
    np.testing.assert_array_equal(array, 1)


@every("move", [lambda a: a.to("numpy"), lambda a: F.asarray(a, device="numpy"), lambda a: a.to_device("numpy")])
def test_a_model_that_moves_to_its_own_backend_has_a_plan(move: Any) -> None:
    fast = compile(lambda a: move(a * 2) + move(a))
    np.testing.assert_array_equal(np.asarray(fast(emberlet.asarray([1.0, 2.0], backend="numpy"))), [3, 6])
    assert fast.cut is None
