"""Model: generated classes find their weights, in a file beside them or in the module itself."""

import importlib
import sys

import pytest
from emberlet import nn
from emberlet.burnpack import Burnpack
from emberlet.errors import FormatError, LoadError

SOURCE = """
from emberlet import nn


class Tiny(nn.Model):
    WEIGHTS = "tiny.bpk"

    def __init__(self, backend=None):
        self.dense = nn.Linear(2, 1, backend=backend)

    def forward(self, x):
        return self.dense(x)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on the path with tiny.py, its weights, and other.py that subclasses it from elsewhere."""
    (tmp_path / "tiny_model.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    tiny = importlib.import_module("tiny_model")
    model = tiny.Tiny()
    model = model.map(lambda name, tensor: tensor * 0 + (3.0 if name == "dense.weight" else 1.0))
    model.save_file(tmp_path / "tiny.bpk")
    yield tmp_path
    sys.modules.pop("tiny_model")


def run(model):
    from emberlet import asarray

    return model(asarray([[1.0, 2.0]], backend=model.backends()[0])).tolist()


def test_default_loads_the_file_beside_the_module(folder, monkeypatch):
    monkeypatch.chdir("/")
    assert run(sys.modules["tiny_model"].Tiny.default()) == [[10.0]]


def test_a_subclass_from_elsewhere_finds_it_too(folder):
    class Own(sys.modules["tiny_model"].Tiny):
        pass

    assert run(Own.default()) == [[10.0]]


def test_weights_come_from_a_file_from_bytes_and_from_the_module(folder):
    tiny = sys.modules["tiny_model"].Tiny
    data = (folder / "tiny.bpk").read_bytes()
    assert run(tiny.from_file(folder / "tiny")) == [[10.0]]
    assert run(tiny.from_bytes(data)) == [[10.0]]
    tiny.EMBEDDED = data
    tiny.WEIGHTS = None
    assert run(tiny.from_embedded()) == [[10.0]]
    assert run(tiny.default()) == [[10.0]]


@pytest.mark.parametrize("backend", ["python", "numpy"])
def test_a_model_is_made_on_the_backend_asked_for(folder, backend):
    model = sys.modules["tiny_model"].Tiny.default(backend)
    assert [repr(b) for b in model.backends()] == [backend]
    assert run(model) == [[10.0]]


def test_loading_uses_the_bytes_in_place(folder):
    import numpy as np

    data = bytearray((folder / "tiny.bpk").read_bytes())
    model = sys.modules["tiny_model"].Tiny.from_bytes(data, "numpy")
    start = Burnpack.from_bytes(data).tensors["dense.weight"].start
    data[start : start + 8] = np.zeros(2, "<f4").tobytes()
    assert run(model) == [[1.0]]


def test_other_weights_are_refused(folder):
    class Wide(nn.Model):
        def __init__(self, backend=None):
            self.dense = nn.Linear(3, 1, backend=backend)

    with pytest.raises(LoadError, match=r"dense.weight.*\(2, 1\).*\(3, 1\)"):
        Wide.from_file(folder / "tiny.bpk")


def test_what_is_no_burnpack_is_refused(folder):
    with pytest.raises(FormatError, match="1 bytes are fewer"):
        sys.modules["tiny_model"].Tiny.from_bytes(b"x")


def test_a_model_without_weights_says_so():
    class Bare(nn.Model):
        pass

    with pytest.raises(LoadError, match="from_file"):
        Bare.from_embedded()
    with pytest.raises(LoadError, match="Bare does not say where its weights are"):
        Bare.default()


def test_the_same_class_runs_on_micropython(folder, micropython_port):
    script = (
        f"import sys\nsys.path.insert(0, {str(folder)!r})\nfrom tiny_model import Tiny\nimport emberlet\n"
        "print(Tiny.default()(emberlet.asarray([[1.0, 2.0]])).tolist())"
    )
    assert micropython_port.run(script, files=[folder]).check().stdout == "[[10.0]]\n"
