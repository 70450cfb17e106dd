"""Every random function gives the same numbers on every backend, eagerly and compiled, whatever was drawn before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import EmberletError
from support.every_backend import ALL
from support.rows import every

ODDS = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]], np.float32)

# name: (the draw, on a backend; the largest difference: of the library's own logarithms and cosines, and of float64
# where it is computed in float32)
DRAWS: dict[str, tuple[Callable[..., Any], float]] = {
    "random_bits": (lambda b, **k: F.random_bits((2, 5), backend=b, **k), 0),
    "uniform": (lambda b, **k: F.uniform((7,), backend=b, **k), 0),
    "uniform of a range": (lambda b, **k: F.uniform((7,), -3, 5, backend=b, **k), 1e-6),
    "uniform float64": (lambda b, **k: F.uniform((3, 3), dtype="float64", backend=b, **k), 1e-7),
    "uniform float16": (lambda b, **k: F.uniform((9,), dtype="float16", backend=b, **k), 0),
    "uniform bfloat16": (lambda b, **k: F.uniform((9,), 1, 2, dtype="bfloat16", backend=b, **k), 0),
    "normal": (lambda b, **k: F.normal((6,), 1.0, 2.0, backend=b, **k), 2e-5),
    "normal float64": (lambda b, **k: F.normal((5,), dtype="float64", backend=b, **k), 2e-5),
    "normal float16": (lambda b, **k: F.normal((5,), dtype="float16", backend=b, **k), 4e-3),
    "bernoulli": (lambda b, **k: F.bernoulli(0.3, (20,), backend=b, **k), 0),
    "bernoulli of a tensor": (lambda b, **k: F.bernoulli(emberlet.full((20,), 0.6, device=b), **k), 0),
    "bernoulli float64": (lambda b, **k: F.bernoulli(emberlet.full((20,), 0.6, dtype="float64", device=b), **k), 0),
    "randint": (lambda b, **k: F.randint(-5, 1000, (9,), backend=b, **k), 0),
    "randint int8": (lambda b, **k: F.randint(7, shape=(9,), dtype="int8", backend=b, **k), 0),
    "permutation": (lambda b, **k: F.permutation(50, backend=b, **k), 0),
    "random": (lambda b, **k: F.random((4,), "normal", backend=b, **k), 2e-5),
    "random_like": (lambda b, **k: F.random_like(emberlet.zeros((5,), dtype="float64", device=b), **k), 1e-7),
    "dropout_with_mask": (lambda b, **k: F.dropout_with_mask(emberlet.ones((30,), device=b), 0.4, **k)[1], 0),
    "multinomial": (lambda b, **k: F.multinomial(emberlet.asarray(ODDS, device=b), 9, True, **k), 0),
    "multinomial without replacement": (lambda b, **k: F.multinomial(emberlet.asarray(ODDS, device=b), 3, **k), 0),
}
SEEDS = [0, 1, 2**31, 2**32, 2**32 + 1, 2**63, 2**64 - 1, 2**64 + 3, 3**80, -1, -(2**70)]


def values(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


@pytest.mark.parametrize("backend", ALL)
def test_draws_one_after_the_other_are_those_of_the_python_backend(backend: str) -> None:
    F.manual_seed(5)
    expected = [values(draw("python")) for draw, _ in DRAWS.values()]
    F.manual_seed(5)
    for (name, (draw, tolerance)), want in zip(DRAWS.items(), expected, strict=True):
        np.testing.assert_allclose(values(draw(backend)), want, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("backend", ALL)
@every("name", DRAWS)
def test_a_seed_is_any_integer_modulo_2_to_the_64(backend: str, name: str) -> None:
    draw, tolerance = DRAWS[name]
    for seed in SEEDS:
        want = values(draw("python", seed=seed % 2**64))
        np.testing.assert_allclose(values(draw(backend, seed=seed)), want, rtol=0, atol=tolerance, err_msg=str(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sequence_is_restarted_by_any_integer(seed: int) -> None:
    F.manual_seed(seed)
    first = F.random_bits((4,)).tolist()
    F.manual_seed(seed % 2**64)
    assert F.random_bits((4,)).tolist() == first == F.random_bits((4,), seed=seed).tolist()


@pytest.mark.parametrize("backend", ALL)
@every("name", DRAWS)
def test_compiled_draws_continue_the_sequence_in_every_call(backend: str, name: str) -> None:
    draw, tolerance = DRAWS[name]

    def model(x: Any) -> Any:
        return draw(x.backend), x + 1.0

    zero = emberlet.zeros((1,), device=backend)
    F.manual_seed(6)
    expected = [values(draw("python")) for _ in range(3)]
    F.manual_seed(6)
    compiled = _compiled(model, zero, backend)
    for want in expected:
        np.testing.assert_allclose(values(compiled(zero)[0]), want, rtol=0, atol=tolerance)


@pytest.mark.parametrize("backend", ALL)
@every("name", DRAWS)
def test_compiled_draws_with_a_seed_are_the_same_in_every_call(backend: str, name: str) -> None:
    draw, tolerance = DRAWS[name]
    zero = emberlet.zeros((1,), device=backend)
    want = values(draw("python", seed=-3))
    compiled = _compiled(lambda x: (draw(x.backend, seed=-3), x + 1.0), zero, backend)
    for _ in range(2):
        np.testing.assert_allclose(values(compiled(zero)[0]), want, rtol=0, atol=tolerance)


def test_a_draw_on_another_backend_ends_a_trace_too() -> None:
    def model(x: Any) -> Any:
        return x + float(F.uniform((), backend="python"))

    zero = emberlet.zeros((2,), device="numpy")
    F.manual_seed(8)
    want = [float(F.uniform((), backend="python")) for _ in range(3)]
    F.manual_seed(8)
    compiled = _compiled(model, zero, "numpy")
    assert [float(compiled(zero)[0]) for _ in range(3)] == pytest.approx(want)


def test_a_model_that_draws_is_not_saved_as_a_plan(tmp_path: Any) -> None:
    from emberlet.wgpu_backend import plan_file

    x = emberlet.zeros((2,), device="numpy")
    with pytest.raises(EmberletError, match="draws random numbers"):
        plan_file.save(str(tmp_path / "noise.bpk"), lambda x: x + F.uniform((2,), backend=x.backend), x)


def _compiled(model: Any, example: Any, backend: str) -> Any:
    """The model compiled for a backend; on plain Python, the model itself."""
    if backend == "python":
        return model
    if backend == "numpy":
        from emberlet.host.numpy_backend.compile.compiled import compile

        return compile(model, example, backend=backend)
    from emberlet.wgpu_backend.compiled import compile as planned

    return planned(model, example, backend=backend)
