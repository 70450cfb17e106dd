"""What `emberlet verify --idioms` says of each recognized pattern, and what `inspect` prints, line by line."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.errors import EmberletError, FormatError, ModelError
from emberlet.host.cli import idioms, inspect, verify
from emberlet.param.identity import ParamId
from emberlet.store.opening import UNKNOWN


def compare(a: Any, b: Any) -> dict[str, Any]:
    return verify.compare(a, b, 0.5, 0.0)


def compared(name: str, ours: Any, plain: Any) -> dict[str, Any]:
    return idioms._compared(name, ours, plain, np.asarray, compare)


def test_sizes_are_drawn_from_two_to_six_and_by_the_seed() -> None:
    drawn = [idioms.drawn_sizes(["a", "b"], seed) for seed in range(200)]
    assert {n for d in drawn for n in d.values()} == {2, 3, 4, 5, 6}
    assert all(list(d) == ["a", "b"] for d in drawn)
    assert idioms.drawn_sizes(["a", "b"], 7) == drawn[7] != drawn[8]


def test_the_largest_difference_of_all_outputs_is_said() -> None:
    zero = np.zeros(3, np.float32)
    assert compared("norms", {"x": zero}, {"x": zero}) == {
        "within": True, "absolute": 0.0, "relative": 0.0, "note": "equal"
    }  # fmt: skip
    small, large = np.float32([0, 0.25, 0]), np.float32([0, 0.375, 0])
    found = compared("norms", {"x": small, "y": large, "z": zero}, {"x": zero, "y": zero, "z": zero})
    assert found["within"] and found["absolute"] == 0.375 and found["note"].startswith("y: float32 (3,) differs by")
    found = compared("norms", {"y": large, "x": small}, {"x": zero, "y": zero})
    assert found["note"].startswith("y: ")
    wrong = compared("norms", {"a": np.zeros(2), "y": large}, {"a": np.zeros(3), "y": zero})
    assert wrong == {"within": False, "absolute": 0.0, "relative": 0.0,
                     "note": "a: shape (2,) where (3,) is expected"}  # fmt: skip
    huge = compared("norms", {"a": np.zeros(2), "y": large * 9}, {"a": np.zeros(3), "y": zero})
    assert not huge["within"] and huge["note"].startswith("y: ")


def test_only_an_attention_may_be_a_number_where_its_parts_are_none() -> None:
    ours, plain = np.float32([0, 1]), np.float32([np.nan, 1])
    assert compared("attention", {"x": ours}, {"x": plain})["within"]
    assert not compared("norms", {"x": ours}, {"x": plain})["within"]
    assert not compared("attention", {"x": plain}, {"x": ours})["within"]
    assert not compared("attention", {"x": np.float32([0, 3])}, {"x": plain})["within"]
    assert "shape" in compared("attention", {"x": ours}, {"x": plain[:1]})["note"]
    assert compared("attention", {"x": np.int64([1])}, {"x": np.int64([1])})["within"]


@dataclass(frozen=True)
class Model:
    """A stand-in for a loaded model: x * factor."""

    factor: float

    def __call__(self, inputs: Any) -> Any:
        return {"y": inputs["x"] * self.factor}


def test_each_pass_is_left_out_in_turn_and_its_worst_draw_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def without(name: str, path: str, backend: Any, freeze: Any, loaded: Any) -> Any:
        asked.append((name, path, backend, freeze, loaded))
        if name == "masks":
            raise ModelError("no operator")
        return Model(1.0 if name == "norms" else 1.25)

    monkeypatch.setattr(idioms, "found", lambda path, freeze: {"norms": ["a"], "masks": ["b", "c"], "heads": ["d"]})
    monkeypatch.setattr(idioms, "_without", without)
    draws = [{"x": np.float32([n])} for n in (1, 4, 1.5)]
    loaded: Any = Model(1.0)
    made = idioms.rows("m.onnx", "numpy", ["k=1"], loaded, draws, np.asarray, compare)  # type: ignore[arg-type]
    assert [a[0] for a in asked] == ["norms", "masks", "heads"]
    assert asked[0][1:] == ("m.onnx", "numpy", ["k=1"], loaded)
    assert [(r["idiom"], r["found"], r["within"]) for r in made] == [
        ("norms", ["a"], True), ("masks", ["b", "c"], False), ("heads", ["d"], False)
    ]  # fmt: skip
    assert made[0]["note"] == "equal"
    assert made[1]["note"] == "cannot be generated without the pass: no operator"
    assert made[2]["absolute"] == 1.0  # of the second draw


def test_what_the_passes_report_is_listed_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.codegen import generation

    notes = ["heads: one: two", "norms: first", "constants: folded", "norms: second"]
    monkeypatch.setattr(generation, "translate", lambda path, freeze: (None, None, notes))
    assert list(idioms.found("m", []).items()) == [("norms", ["first", "second"]), ("heads", ["one: two"])]


# -- inspect


def stored(**changed: Any) -> Any:
    fields: dict[str, Any] = {
        "dtype": dtypes.float32, "shape": (2, 3), "nbytes": 24, "param_id": None, "stored": "float32", "original": "a"
    }  # fmt: skip
    return SimpleNamespace(**{**fields, **changed})


class Store(dict[str, Any]):
    format, layout, nbytes = "npz", "torch", 48
    metadata: dict[str, str] = {}  # noqa: RUF012
    scalars: dict[str, Any] = {}  # noqa: RUF012
    extras: dict[str, Any] = {}  # noqa: RUF012


def test_a_store_is_a_table_with_the_columns_that_hold_something() -> None:
    made: Any = Store(b=stored(shape=(1000,)), a=stored())
    assert inspect.describe(made).splitlines() == [
        "tensor  dtype    shape    bytes",
        "a       float32  (2, 3)   24",
        "b       float32  (1000,)  24",
        "2 tensors, 48 bytes",
    ]
    made["a"].param_id = 7
    made["b"].stored = "Q4_0"
    made.metadata, made.scalars = {"z": "1", "y": "a" * 500}, {"s": 2}
    made.extras = {"e": [1, 2]}
    lines = inspect.describe(made).splitlines()
    assert lines[0].split("  ")[-2:] == [" param id", "stored as"] or lines[0].endswith("stored as")
    assert lines[1].rstrip().endswith(str(ParamId(7)))
    assert lines[2].endswith("Q4_0")
    assert lines[4] == "metadata y: " + "a" * 400 + "… (500 characters)"
    assert lines[5:] == ["metadata z: 1", "scalar s: 2", "extra e: [1, 2]"]


@pytest.mark.parametrize(
    ("said", "plainly"),
    [
        ("float32", True), ("int8 with scales", False), ("some scheme", False), ("Q8_0", False), ("ggml type 3", False),
        ("bfloat16", True), ("my Q", True),
    ],
)  # fmt: skip
def test_only_what_is_stored_otherwise_is_said(said: str, plainly: bool) -> None:
    assert inspect._plainly_stored(stored(stored=said)) is plainly


def test_a_store_as_json_has_identities_and_names_that_changed() -> None:
    made: Any = Store(a=stored(), b=stored(param_id=7, original="b.old"))
    made.scalars = {"one": 1.5, "inf": math.inf, "low": -math.inf, "nan": math.nan}
    made.extras = {"e": [1] * 9}
    found = json.loads(json.dumps(inspect.as_json(made), allow_nan=False))
    plain = {"dtype": "float32", "shape": [2, 3], "bytes": 24, "stored": "float32"}
    assert found["tensors"] == {"a": plain, "b": {**plain, "param_id": str(ParamId(7)), "original": "b.old"}}
    assert found["scalars"] == {"one": 1.5, "inf": "inf", "low": "-inf", "nan": "nan"}
    assert (found["format"], found["layout"]) == ("npz", "torch")
    assert found["extras"] == {"e": "[1, 1, 1, 1, …] (9)"}


@pytest.mark.parametrize("name", ["m.onnx", "M.ONNX", "m.onnxtxt", "m.textproto"])
def test_models_are_no_weight_files(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect.store, "open", lambda *a, **k: (a, k))
    path = str(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        inspect._weights(path, None, False)
    (tmp_path / name).write_bytes(b"")
    assert inspect._weights(path, None, False) is None
    assert inspect._weights(path, None, True) == ((path,), {"format": "onnx"})


def test_a_file_that_is_no_weight_file_is_shown_as_a_model(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"\x08")
    answers: list[Any] = [
        FormatError(f"x: {UNKNOWN}; known are"), FormatError("x: damaged"),
        SimpleNamespace(format="onnx"), SimpleNamespace(format="npz"),
    ]  # fmt: skip

    def opened(where: str, key: Any) -> Any:
        assert key == "k"
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(inspect.store, "open", opened)
    assert inspect._weights(str(path), "k", False) is None
    with pytest.raises(FormatError, match="damaged"):
        inspect._weights(str(path), "k", False)
    assert inspect._weights(str(path), "k", False) is None
    found = inspect._weights(str(path), "k", False)
    assert found is not None and found.format == "npz"
    path.write_bytes(b"\x09")
    answers.append(FormatError(f"x: {UNKNOWN}; known are"))
    with pytest.raises(FormatError, match=UNKNOWN):
        inspect._weights(str(path), "k", False)
    answers.append(SimpleNamespace(format="torch"))
    assert inspect._weights(str(tmp_path), "k", False) is not None  # a folder


def test_a_tree_is_text_only() -> None:
    with pytest.raises(EmberletError, match=r"--tree.*--json.*--tree"):
        inspect.run(SimpleNamespace(tree=True, json=True))  # type: ignore[arg-type]
