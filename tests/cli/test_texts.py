"""What commands write: progress, results as tables, advice on installing, encodings."""

from __future__ import annotations

import codecs
import io
import sys
import types
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.errors import EmberletError
from emberlet.host import extras, schemes, streams
from emberlet.host.cli import progress
from emberlet.host.cli.results import first_elements, parts


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    shown = Terminal()
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=shown))
    return shown


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that time.monotonic says, one call after the other."""
    seconds: list[float] = []
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: seconds.pop(0)))
    return seconds


@pytest.mark.parametrize("ends, after", [([0.0, 1.0], ""), ([0.0, 1.5, 1.5], "loading: 1.5 s\n")])
def test_a_step_of_over_a_second_says_its_time(
    terminal: Terminal, clock: list[float], ends: list[float], after: str
) -> None:
    clock += ends
    with progress.step("loading"):
        assert terminal.getvalue() == "loading …"
    assert terminal.getvalue() == "loading …\r\x1b[K" + after


def test_a_step_is_silent_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with progress.step("loading"), progress.Rows("scoring") as rows:
        rows.at(3, 4, 0)
    assert file.getvalue() == ""


@pytest.mark.parametrize(
    "count, text",
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (12_345_678, "12.3 MB"), (999_900, "999.9 kB"),
     (1e9, "1.0 GB"), (5e12, "5000.0 GB")],
)  # fmt: skip
def test_sizes_in_words(count: float, text: str) -> None:
    assert progress.size_text(count) == text


# -- results ----------------------------------------------------------------------------------------------------------


def shown(value: Any) -> dict[str, Any]:
    return {name: np.asarray(x).tolist() for name, x in parts("y", value).items()}


def test_outputs_become_named_arrays() -> None:
    x = emberlet.asarray([1.0, 2.0])
    assert shown(x) == {"y": [1.0, 2.0]}
    assert shown([x, [x, 3]]) == {"y[0]": [1.0, 2.0], "y[1][0]": [1.0, 2.0], "y[1][1]": 3}
    assert shown(True) == {"y": True}
    assert shown(2.5) == {"y": 2.5}
    assert shown("a") == {"y": "a"}
    assert shown([]) == {}


def test_rows_of_probabilities_become_a_table_with_sorted_keys() -> None:
    rows = [{2: emberlet.asarray(0.25), 1: 0.75}, {1: 1.0, 2: 0.0}]
    assert shown(rows) == {"y": [[0.75, 0.25], [1.0, 0.0]], "y.keys": [1, 2]}
    assert shown(rows[1]) == {"y": [[1.0, 0.0]], "y.keys": [1, 2]}
    with pytest.raises(EmberletError, match="different keys"):
        parts("y", [{1: 0.5}, {2: 0.5}])


@pytest.mark.parametrize("value", [None, object(), [None]])
def test_what_is_no_tensor_is_refused(value: object) -> None:
    with pytest.raises(EmberletError, match="only tensors can be shown"):
        parts("y", value)


def test_first_elements_of_a_tensor() -> None:
    count = lambda n: first_elements(emberlet.arange(n))  # noqa: E731
    assert count(8) == "[0, 1, 2, 3, 4, 5, 6, 7]"
    assert count(9) == "[0, 1, 2, 3, 4, 5, 6, 7, …]"
    assert first_elements(emberlet.asarray([[1 / 3, 2e9]]), 1) == "[0.333333, …]"


# -- what is missing --------------------------------------------------------------------------------------------------


def test_advice_names_the_smallest_set_of_extras() -> None:
    assert extras.advice(["onnx", "numpy"]) == 'install the extra "emberlet[onnx]" (docs/install.md)'
    assert extras.advice(["wasmtime", "onnx"]) == 'install the extra "emberlet[onnx,wasm]" (docs/install.md)'
    assert extras.advice(["numpy", "wgpu"]) == 'install the extra "emberlet[numpy,wgpu]" (docs/install.md)'
    assert extras.advice(["torch", "scipy"]) == 'pip install "torch scipy"'
    for library, extra in extras.EXTRAS.items():
        assert f'"emberlet[{extra}]"' in extras.advice([library])
    assert extras.sentence("this", ["a"]).startswith("this needs a: ")
    assert extras.sentence("this", ["a", "b", "c"]).startswith("this needs a, b and c: ")


def test_advice_in_a_tab_is_what_pyodide_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "emscripten")
    assert extras.advice(["numpy", "ray"]) == 'await pyodide.loadPackage("numpy"); ray has no build for Pyodide'


def test_missing_libraries_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    stand_in = types.ModuleType("stand_in")
    stand_in.__spec__ = None
    monkeypatch.setitem(sys.modules, "stand_in", stand_in)
    assert extras.missing(["numpy", "onnx", "no_such_library", "stand_in"]) == ["onnx", "no_such_library"]
    with pytest.raises(extras.MissingLibraryError, match="no_such_library"):
        extras.require("verify", "numpy", "onnx", "no_such_library")
    extras.require("verify", "numpy")


# -- quantization schemes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "found, text",
    [
        ({"value": "Q8S", "level": "Tensor", "param": "F32"}, "Q8S, scales F32"),
        ({"value": "Q4F", "store": "U32", "level": {"Block": [32]}, "param": "F16"},
         "Q4F in u32, blocks of 32, scales F16"),
        ({"value": "Q4F", "store": {"PackedU32": 0}, "level": {"Block": [4, 0]}, "param": "F16"},
         "Q4F in u32, blocks of 4×all, scales F16"),
        ({"value": "Q4F", "store": {"PackedU32": 1}, "block": {"size": [8], "dtype": "F16"}, "tensor": "F32"},
         "Q4F in u32, packed along axis -2, blocks of 8, scales F16 times one F32"),
        ({"value": "Q4F", "store": {"PackedNative": "first"}, "block": None, "tensor": "F32"},
         "Q4F packed, packed along 'first', scales F32"),
        ({"value": "Q2S", "level": {"Block": {"storage": [2, 16, 0, 0], "len": 2}}, "param": "F32",
          "mode": "Affine"}, "Q2S, blocks of 2×16, scales F32, mode Affine"),
        ({"value": "Q2S", "level": {"Block": {"storage": [2]}}, "param": "F32"},
         "Q2S, blocks of {'storage': [2]}, scales F32"),
        ({"value": "Q2S", "level": {"Block": {"storage": 2, "len": 1}}, "mode": "Symmetric"},
         "Q2S, blocks of {'storage': 2, 'len': 1}, scales None"),
        ({"value": 3}, "unknown scheme {'value': 3}"),
        (["Q8S"], "unknown scheme ['Q8S']"),
    ],
)  # fmt: skip
def test_schemes_in_words(found: Any, text: str) -> None:
    assert schemes.in_words(found) == text


# -- encodings --------------------------------------------------------------------------------------------------------


def test_characters_that_an_encoding_lacks_have_substitutes(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {}
    for errors in ("strict", "surrogateescape", "backslashreplace", "ignore"):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding="ascii", errors=errors)
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        streams.substitute_unencodable()
        stream.write("2 × 3 → … 日" + ("\udc41\udc80\udcff\ud800" if errors == "surrogateescape" else ""))
        stream.flush()
        said[errors] = raw.getvalue()
    assert said["strict"] == said["backslashreplace"] == b"2 x 3 -> ... ?"
    assert said["surrogateescape"] == b"2 x 3 -> ... ??\x80\xff?"
    assert said["ignore"] == b"2  3   "
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", errors="emberlet.ascii")
    assert codecs.lookup_error("emberlet.ascii.escaping")


# -- weight files -----------------------------------------------------------------------------------------------------
