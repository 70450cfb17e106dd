"""ONNX's own test runner drives the backend: every case except whole architectures (test_light_models.py)."""

from __future__ import annotations

import os
import unittest
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.backend import get_backend
from emberlet.codegen import onnx_backend
from emberlet.errors import BackendError, ModelError
from onnx import helper
from support.draws import draw, share
from support.onnx_models import parse

SHARE = 12  # a run has one of so many cases, another one each time: test_node_cases.py computes them too
# Random by definition, but the runner compares the numbers. test_node_cases.py checks dtype, shape and distribution.
DRAWN = r"^test_bernoulli|^test_training_dropout_(?!zero_ratio)|^test_training_dropout_cpu"
# Its expected output is None, which the runner cannot compare with anything.
NONE = r"^test_loop16_seq_none_"
# Results that only NumPy gives: the noise of its float32 transform (see cases.NOISE).
NUMPYS = r"^test_dft_inverse"


class Counted(unittest.TextTestResult):
    """Counts the tests that passed, since `testsRun` includes skipped tests in some versions of Python."""

    passed = 0

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self.passed += 1


class PlainPython(onnx_backend.EmberletBackend):
    """The runner asks only for "CPU", which is the python backend here."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> onnx_backend.Prepared:
        return super().prepare(model, "PYTHON", **kwargs)


@pytest.mark.parametrize("tested", [onnx_backend.EmberletBackend, PlainPython])
def test_every_case_of_the_runner_passes(tested: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNX_HOME", str(tmp_path))
    with warnings.catch_warnings(), open(os.devnull, "w", encoding="utf-8") as nowhere:
        warnings.simplefilter("ignore")
        from onnx.backend.test import BackendTest

        runner = BackendTest(tested, __name__)
        runner.include("_cpu$").exclude(DRAWN).exclude(NONE)
        if tested is PlainPython:
            runner.exclude(NUMPYS)
        cases = {name: case for name, case in runner.test_cases.items() if "Real" not in name}
        tests = [t for c in cases.values() for t in unittest.defaultTestLoader.loadTestsFromTestCase(c)]
        tests = [t for t in tests if t.id().endswith("_cpu")]
        step = share(SHARE)
        suite = unittest.TestSuite(tests[draw("runner", tested.__name__).randrange(step) :: step])
        result = unittest.TextTestRunner(stream=nowhere, resultclass=Counted).run(suite)
    failed = [f"{case}: {text.strip().splitlines()[-1]}" for case, text in (*result.failures, *result.errors)]
    assert not failed, "\n".join(failed[:50])
    assert isinstance(result, Counted) and result.passed > 1850 // step - 20  # ONNX 1.22 has 1892


@pytest.mark.parametrize("device", ["CPU", "CPU:0", "PYTHON"])
def test_a_model_runs_on_each_device(device: str) -> None:
    model = parse("g (float[N, 2] x) => (float[N, 2] y, float[N, 2] z) { y = Neg(x)  z = Exp(y) }")
    x = np.float32([[1, 2], [3, 4]])
    for y, z in (onnx_backend.prepare(model, device).run([x]), onnx_backend.run_model(model, [x], device)):
        assert (y.dtype, y.tolist()) == (np.float32, (-x).tolist())
        np.testing.assert_allclose(z, np.exp(-x), rtol=1e-6)


def test_a_gpu_is_a_device_where_there_is_one() -> None:
    try:
        get_backend("wgpu")
    except BackendError:
        assert not onnx_backend.supports_device("WGPU")
    else:
        assert onnx_backend.supports_device("WGPU:0")
        model = parse("g (float[4] x) => (float[4] y) { y = Sqrt(x) }")
        (y,) = onnx_backend.run_model(model, [np.float32([1, 4, 9, 16])], "WGPU")
        assert y.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("device", ["CPU", "PYTHON", "WASM"])
def test_overwriting_one_result_leaves_the_others_as_they_are(device: str) -> None:
    if not onnx_backend.supports_device(device):
        pytest.skip(f"there is no {device} here")
    model = parse("""g (float[2, 3] x) => (float[2, 3] a, float[6] b) {
      a = Mul(x, x)
      flat = Constant<value_ints = [-1]>()
      b = Reshape(a, flat)
    }""")
    a, b = onnx_backend.run_model(model, [np.ones((2, 3), np.float32)], device)
    a[...] = 113
    np.testing.assert_array_equal(b, np.ones(6, np.float32))


def test_other_devices_are_refused() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    assert not onnx_backend.supports_device("CUDA")
    with pytest.raises(BackendError, match=r"'CUDA'.*CPU, PYTHON, WGPU"):
        onnx_backend.prepare(model, "CUDA")


def test_what_is_not_supported_is_not_compatible() -> None:
    assert onnx_backend.is_compatible(parse("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
    assert not onnx_backend.is_compatible(parse("g (float[2] x) => (float[2] y) { y = NoSuch(x) }"))


def test_a_single_node_runs_on_the_types_of_its_inputs() -> None:
    node = helper.make_node("Concat", ["a", "b"], ["c"], axis=1)
    (c,) = onnx_backend.run_node(node, [np.ones((2, 1), np.int64), np.zeros((2, 2), np.int64)])
    assert c.tolist() == [[1, 0, 0], [1, 0, 0]]
    with pytest.raises(ModelError, match=r"2.*expected 1"):
        onnx_backend.run_node(helper.make_node("Neg", ["a", "b"], ["c"]), [np.ones(1), np.ones(1)])
    assert onnx.__version__
