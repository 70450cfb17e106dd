"""Models of `codegen.load`: they move, compile and pickle as models of a file do."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import codegen, nn, store
from emberlet import functional as F
from emberlet.backend import get_backend

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
IMAGE = np.random.default_rng(3).random((1, 1, 8, 8), np.float32)


def test_a_loaded_model_pickles_into_another_process(tmp_path: Path) -> None:
    model = codegen.load(DIGITS, "numpy")
    wanted = np.asarray(model(emberlet.asarray(IMAGE)))
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    np.save(tmp_path / "image.npy", IMAGE)
    code = (
        "import pickle, sys, numpy as np, emberlet; from pathlib import Path; here = Path(sys.argv[1])\n"
        "model = pickle.loads((here / 'model.pickle').read_bytes())\n"
        "np.save(here / 'y.npy', np.asarray(model(emberlet.asarray(np.load(here / 'image.npy')))))\n"
        "assert type(model).SOURCES"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=ROOT)
    assert np.array_equal(np.load(tmp_path / "y.npy"), wanted)


def test_a_copy_is_of_the_same_class_and_has_values_of_its_own() -> None:
    model = codegen.load(DIGITS, "numpy")
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert type(other) is type(model)
        assert store.from_module(other).names == store.from_module(model).names
        param = other.params()[0]
        param.set(param.val() * 0)
        assert np.asarray(model.params()[0].val()).any()


class Places(nn.Module):
    """Makes a tensor from no tensor, so that it keeps its backend itself."""

    def __init__(self, backend: Any = None) -> None:
        self.backend = get_backend(backend)

    def forward(self, n: int) -> Any:
        return F.arange(n, backend=self.backend)


class Net(nn.Module):
    def __init__(self, backend: Any = None) -> None:
        self.fc = nn.Linear(3, 3, backend=backend)
        self.places = [Places(backend)]
        self.by_name = {"more": Places(backend)}

    def forward(self, x: Any) -> Any:
        y = self.fc(x) + self.places[0](3)
        return y + self.by_name["more"](3)


@pytest.mark.parametrize("name", ["python", "wgpu", "wasm"])
def test_a_submodule_that_makes_tensors_moves_with_the_model(name: str, request: pytest.FixtureRequest) -> None:
    if name == "wgpu":
        request.getfixturevalue("wgpu_adapter")
    net, x = Net("numpy"), emberlet.asarray(IMAGE[0, 0, :2, :3], backend="numpy")
    wanted = np.asarray(net(x))
    moved = net.fork(name)
    assert moved.places[0].backend is moved.by_name["more"].backend is get_backend(name)
    assert net.places[0].backend is get_backend("numpy")
    np.testing.assert_allclose(np.asarray(moved(x.to(name))), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(net.to(name)(x.to(name))), wanted, rtol=1e-5, atol=1e-6)


def test_compile_without_a_backend_stays_on_the_models() -> None:
    x = emberlet.asarray(IMAGE[0, 0, :2, :3])
    for name, kept in (("numpy", "numpy"), ("python", "numpy"), ("wasm", "wasm")):
        net = Net(name)
        fast = net.compile(x.to(name))
        assert fast.backend.name == kept
        np.testing.assert_allclose(np.asarray(fast(x.to(kept))), np.asarray(net(x.to(name))), rtol=1e-5, atol=1e-6)
    assert Places("numpy").compile().backend.name == "numpy"
