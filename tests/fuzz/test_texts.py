"""Property tests of the readers that fuzz_*.py do not reach: Config's JSON, .npy and .npz files, saved plans.

Any input is read or refused by a FormatError (a DTypeError for an array of another kind), and by no other error.
Neither a GPU nor a backend is used, which would only reserve memory.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile

import emberlet as el
import numpy as np
import pytest
from emberlet.config import Config
from emberlet.errors import DTypeError, FormatError
from emberlet.host import npy
from emberlet.host.burnpack_writer import dumps
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.plan import data as plan_data
from emberlet.wgpu_backend.run import runtime
from hypothesis import given, settings
from hypothesis import strategies as st

SETTINGS = {"max_examples": 150}
DEEP = "[" * 100_000

numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([-1, 0, 1, 1 << 40, 1 << 70, 10**400, True]))
words = st.one_of(st.text(max_size=4), st.sampled_from(["float32", "gpu", "software", "size", "name", "\ud800"]))
documents = st.recursive(
    st.one_of(st.none(), numbers, words),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(words, inner, max_size=4)),
    max_leaves=12,
)


@st.composite
def changed(draw, value):
    """A JSON value with one part of it, at any depth, replaced, removed or repeated."""
    if isinstance(value, (dict, list)) and value and draw(st.integers(0, 4)):
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        key = draw(st.sampled_from(list(keys)))
        out = dict(value) if isinstance(value, dict) else list(value)
        out[key] = draw(changed(value[key]))
        return out
    if isinstance(value, list) and draw(st.booleans()):
        return value[:-1] if draw(st.booleans()) else value * 2
    return draw(documents)


@st.composite
def damaged(draw, data):
    """Bytes with some of them changed, and an end cut off or put on."""
    out = bytearray(data)
    for at, byte in draw(st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=6)):
        out[at] = byte
    return bytes(out[: draw(st.integers(0, len(out)))] if draw(st.booleans()) else out + draw(st.binary(max_size=3)))


# -- Config


class Part(Config):
    size: int = 3
    rate: float = 0.5


class Whole(Config):
    name: str
    part: Part
    parts: list[Part] = []  # noqa: RUF012
    named: dict[str, Part] = {}  # noqa: RUF012
    pair: tuple[int, float] = (1, 2.0)
    either: int | str | None = None
    flag: bool = False
    anything: object = None


WHOLE = Whole("x", Part(1), [Part(2), Part(3, 0.25)], {"a": Part()}, (3, 0.5), "y", True, [1, {"k": None}])


def read_config(text: str) -> None:
    try:
        found = Whole.from_json(text)
    except FormatError:
        return
    assert Whole.from_json(found.to_json()).to_json() == found.to_json()


@settings(**SETTINGS)
@given(value=st.one_of(documents, changed(WHOLE.to_dict())))
def test_a_config_from_any_json(value):
    read_config(json.dumps(value))


@settings(**SETTINGS)
@given(data=damaged(WHOLE.to_json().encode()))
def test_a_config_from_damaged_text(data, tmp_path):
    (tmp_path / "c.json").write_bytes(data)
    try:
        Whole.load(tmp_path / "c.json")
    except FormatError as error:
        assert "c.json" in str(error)


def test_a_config_nested_beyond_all_measure_is_refused():
    for text in (DEEP, '{"name":' * 100_000, '{"name": "x", "part": {"size": ' + DEEP):
        with pytest.raises(FormatError, match="not JSON"):
            Whole.from_json(text)


# -- arrays


def array_file(array: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array))
    return file.getvalue()


def archive_file(compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("x.npy", array_file(np.arange(6, dtype=np.float32)))
        archive.writestr("y.npy", array_file(["a", "bc"]))
    return file.getvalue()


FILES = [array_file(np.arange(6, dtype=np.float32).reshape(2, 3)), array_file(["a", "longer"]), array_file(True)]


def read_array(path, backend):
    try:
        found = npy.load(path, backend)
    except (FormatError, DTypeError) as error:
        assert path.name in str(error)
    else:
        if found.size:  # else there may be billions of empty lists
            assert np.asarray(found.tolist(), dtype=object).size == found.size


@pytest.mark.parametrize("backend", ["python", "numpy"])
@settings(**SETTINGS)
@given(data=st.sampled_from(FILES).flatmap(damaged))
def test_an_array_from_damaged_bytes(data, backend, tmp_path):
    (tmp_path / "x.npy").write_bytes(data)
    read_array(tmp_path / "x.npy", backend)


@pytest.mark.parametrize("backend", ["python", "numpy"])
@settings(**SETTINGS)
@given(
    descr=st.one_of(st.sampled_from(["<f4", "|b1", "<U2", "<U0", "<U99999999999", "|O", ">f8"]), documents),
    shape=st.one_of(
        st.lists(st.sampled_from([0, 1, 2, -1, 1 << 31, 1 << 62, 1 << 70]), max_size=70).map(tuple), documents
    ),
    order=st.one_of(st.booleans(), documents),
    data=st.binary(max_size=16),
)
def test_an_array_whose_header_says_anything(descr, shape, order, data, backend, tmp_path):
    text = repr({"descr": descr, "fortran_order": order, "shape": shape}).encode("utf-8", "replace")
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\3\0" + len(text).to_bytes(4, "little") + text + data)
    read_array(tmp_path / "x.npy", backend)


@pytest.mark.parametrize("backend", ["python", "numpy"])
@pytest.mark.parametrize("shape", [(0, 1 << 70), (1 << 31, 0, 1 << 40), (1,) * 70, (0,) * 70])
def test_an_array_beyond_numpys_limits(shape, backend, tmp_path):
    text = repr({"descr": "|u1", "fortran_order": False, "shape": shape}).encode()
    data = bytes(0 not in shape)
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\3\0" + len(text).to_bytes(4, "little") + text + data)
    read_array(tmp_path / "x.npy", backend)


@settings(**SETTINGS)
@given(data=st.sampled_from([archive_file(), archive_file(zipfile.ZIP_DEFLATED)]).flatmap(damaged))
def test_an_archive_from_damaged_bytes(data, tmp_path):
    (tmp_path / "x.npz").write_bytes(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile's, of two members with one name
            npy.load_archive(tmp_path / "x.npz")
    except (FormatError, DTypeError) as error:
        assert "x.npz" in str(error)


# -- plans


class Memory:
    """A device that only counts."""

    device_class = "software"

    def allocate(self, nbytes, page_bytes):
        assert 0 <= nbytes <= 1 << 31
        return self

    def write(self, allocation, data, at):
        pass

    def clear(self, allocations):
        pass

    def free(self):
        pass


PLAN = {
    "version": plan_data.VERSION,
    "inputs": [["x", "float32", [2, 3], 0]],
    "outputs": [["y", "float32", [2, 3], 2], ["z", "uint8", [1], 1]],
    "buffers": [["storage", 24], ["storage", 64], ["storage", 24]],
    "constants": [[1, "weight"]],
    "kernels": [["add", "@compute fn main() {}"], ["mul", ""]],
    "steps": {"gpu": [[0, [1, 1, 1], [0, 1, 2]]], "software": [[1, [4, 1, 1], [0, 2]], [0, [1, 2, 1], [1]]]},
}


@pytest.fixture
def read_plan(monkeypatch):
    """Reads the plan in a burnpack with this metadata."""
    monkeypatch.setattr(runtime, "Program", lambda *arguments, **named: None)
    weight = el.ones((16,), backend="python")

    def read(text):
        data = dumps({"weight": weight}, {plan_data.KEY: text})
        return plan_file.load(data, Memory())

    return read


def test_a_plan_is_read(read_plan):
    found = read_plan(json.dumps(PLAN))
    assert [len(found.plan.steps), len(found.plan.kernels), len(found.plan.buffers)] == [2, 2, 3]


@settings(**SETTINGS)
@given(value=st.one_of(documents, changed(PLAN)))
def test_a_plan_of_any_json(read_plan, value):
    try:
        found = read_plan(json.dumps(value))
    except FormatError:
        return
    for step in found.plan.steps:
        assert 0 <= step.kernel < len(found.plan.kernels)
        assert all(0 <= b < len(found.plan.buffers) for b in step.buffers)
        assert all(0 <= n < 1 << 32 for n in step.groups)
    for port in found.inputs + found.outputs:
        assert all(n >= 0 for n in port.shape)
    for port in found.outputs:
        assert port.count * 4 <= found.plan.buffers[port.buffer].nbytes


def test_a_plan_nested_beyond_all_measure_is_refused(read_plan):
    with pytest.raises(FormatError, match="not JSON"):
        read_plan(DEEP)
