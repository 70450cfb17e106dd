"""What commands write: progress, results as tables, advice on installing, weight files and their differences."""

from __future__ import annotations

import codecs
import io
import math
import sys
import types
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.errors import EmberletError
from emberlet.host import extras, schemes, streams
from emberlet.host.cli import diff, inspect, progress
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


def test_rows_show_their_share_and_rate(terminal: Terminal, clock: list[float]) -> None:
    clock += [10.0, 12.0, 13.0, 14.0]
    with progress.Rows("scoring") as rows:
        assert terminal.getvalue() == "scoring: starting the workers …"
        rows.at(0, 100, 0)
        assert terminal.getvalue() == "scoring: starting the workers …"
        for done, total, skipped in ((10, 100, 0), (30, 100, 1500), (2030, None, 0), (150, 100, 0)):
            rows.at(done, total, skipped)
    lines = terminal.getvalue().split("\r\x1b[K")[1:]
    assert lines == [
        "scoring [##......................] 10 of 100 rows, 0 rows/s",
        "scoring [#######.................] 30 of 100 rows, 10 rows/s, 1,500 skipped",
        "scoring 2,030 rows, 673 rows/s",
        "scoring [########################] 150 of 100 rows, 35 rows/s",
        "",
    ]


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


def saved(path: Path, **arrays: Any) -> Any:
    np.savez(path, **arrays)
    return emberlet.store.open(str(path))


def test_differences_of_two_files(tmp_path: Path) -> None:
    nan, inf = math.nan, math.inf
    a = saved(tmp_path / "a.npz", same=[1.0, nan], near=[1.0, 2.0], far=[0.0, 3.0, 4.0], turned=[[1.0, 2.0]],
              cast=np.float32([1.5]), left=[1], infinite=[inf, 1.0], empty=np.zeros((0, 2), np.float32),
              off=np.float32([1, 2]))  # fmt: skip
    b = saved(tmp_path / "b.npz", same=[1.0, nan], near=[1.0, 2.25], far=[3.0, 3.0, 8.0], turned=[[1.0], [2.0]],
              cast=np.float64([1.5]), right=[1], infinite=[1.0, 1.0], empty=np.zeros((0, 2), np.float64),
              off=np.float64([1, 4]))  # fmt: skip
    found = diff.compare(a, b)
    assert found["only_a"] == ["left"]
    assert found["only_b"] == ["right"]
    assert found["same"] == 1
    assert found["different"]["near"] == pytest.approx({"max": 0.25, "rms": 0.25 / 2**0.5})
    assert found["different"]["far"] == pytest.approx({"max": 4.0, "rms": (25 / 3) ** 0.5})
    assert found["different"]["turned"] == {"shapes": [[1, 2], [2, 1]]}
    assert found["different"]["infinite"] == {"max": "infinite", "rms": "infinite"}
    assert found["different"]["cast"] == {"dtypes": ["float32", "float64"], "max": 0.0, "rms": 0.0}
    assert found["different"]["empty"] == {"dtypes": ["float32", "float64"], "max": 0.0, "rms": 0.0}
    lines = diff.describe(found).splitlines()
    assert lines[:2] == ["only in A: left", "only in B: right"]
    assert "near: largest difference 0.25, root mean square 0.177" in lines
    assert "turned: (1, 2) and (2, 1)" in lines
    assert "off: float32 and float64; largest difference 2, root mean square 1.41" in lines
    assert "infinite: largest difference infinite, root mean square infinite" in lines
    assert lines[-1] == "1 tensors are the same, 7 differ, 1 only in A, 1 only in B"
    within = diff.compare(a, b, 0.25)
    assert sorted(within["different"]) == ["far", "infinite", "off", "turned"]
    assert within["same"] == 4


def test_what_a_weight_file_holds_is_shortened() -> None:
    assert inspect._short("a" * 60) == "a" * 60
    assert inspect._short("a" * 61) == "a" * 59 + "…"
    assert inspect._short([1, "b", 2.5, None]) == "[1, b, 2.5, NoneType]"
    assert inspect._short((1, 2, 3, 4, 5)) == "[1, 2, 3, 4, …] (5)"
    assert inspect._short(None) == "None"
    assert inspect._short(True) == "True"
    assert inspect._short({"a": 1}) == "{'a': 1}"
    assert inspect._line("a" * 400) == "a" * 400
    assert inspect._line("a" * 401) == "a" * 400 + "… (401 characters)"
    assert inspect._word("a\nb") == "a\\nb"


@pytest.mark.parametrize("encoding, lines", [("utf-8", True), ("ascii", False), ("no-such", False), (None, False)])
def test_trees_are_drawn_with_lines_where_the_terminal_has_them(
    monkeypatch: pytest.MonkeyPatch, encoding: str | None, lines: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", types.SimpleNamespace(encoding=encoding))
    assert inspect._shows_lines() is lines


@pytest.mark.parametrize("done, shown_as", [
    (0, "[........................] 0 bytes of 4.0 kB, 0 bytes/s"),
    (1000, "[######..................] 1.0 kB of 4.0 kB, 500 bytes/s"),
    (9000, "[########################] 9.0 kB of 4.0 kB, 4.5 kB/s"),
])  # fmt: skip
def test_bytes_show_their_share_and_rate(terminal: Terminal, clock: list[float], done: int, shown_as: str) -> None:
    clock += [10.0, 12.0]
    bar = progress.Bytes("writing", 4000)
    bar.add(done)
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) > 1

    bar._redraw(types.SimpleNamespace(wait=wait))  # type: ignore[arg-type]
    assert terminal.getvalue() == f"\r\x1b[Kwriting {shown_as}"
    assert waits == [1.0, 0.2]
    bar.__exit__()
    assert terminal.getvalue().endswith("\r\x1b[K")
