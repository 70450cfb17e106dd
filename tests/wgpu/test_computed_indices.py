"""Indices that a saved plan computes from its inputs are checked as eagerly, with the same words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.burnpack import Burnpack
from emberlet.errors import IndexingError
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.plan.data import KEY
from emberlet.wgpu_backend.plan.reading import read
from emberlet.wgpu_backend.wasm.file import load as load_module
from emberlet.wgpu_backend.wasm.sections import sections

ROWS = 5


def table(x: Any) -> Any:
    return emberlet.asarray(np.arange(ROWS * 3, dtype=np.float32).reshape(ROWS, 3), backend=x.backend)


MODELS: dict[str, Callable[[Any], Any]] = {
    "take": lambda i: F.take(table(i), i * 2 - 3, axis=0),
    "two axes": lambda i: F.gather_nd(table(i), F.stack([i, i - 2], axis=-1)),
    "getitem": lambda i: table(i)[F.abs(i), F.sign(i)],
    "nll_loss": lambda i: F.nll_loss(table(i)[:2], i, reduction="none"),
    "one_byte": lambda i: F.take(table(i), F.astype(i, "int8") + 1, axis=0),
    "unsigned": lambda i: F.take(table(i), F.astype(i, "uint32") + 1, axis=0),
}
WAYS = ["plan.bpk", "plan.wasm"]
CALLS = [[0, 1], [4, 1], [1, -1], [2, 4], [-6, 2], [0, 5], [3, 100], [-100, 0]]


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return np.asarray(call()).tolist()
    except IndexingError as error:
        return str(error)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("file", WAYS)
def test_a_computed_index_is_refused_in_the_words_of_numpy(gpu: Any, tmp_path: Path, file: str, name: str) -> None:
    path = str(tmp_path / file)
    plan_file.save(path, MODELS[name], emberlet.asarray(np.array([0, 1]), backend="numpy"))
    plan = plan_file.load(path, None if file == "plan.wasm" else gpu.device)
    seen = set()
    for values in CALLS:
        if name == "unsigned" and min(values) < 0:
            continue
        given = np.array(values)
        wanted = outcome(lambda given=given: MODELS[name](emberlet.asarray(given, backend="numpy")))
        found = outcome(lambda given=given: plan.run(given)[0].to_tensor("numpy"))
        if isinstance(wanted, str):
            assert found == wanted or "of input" in found, values
        else:
            assert found == wanted, values
        seen.add(type(wanted))
    assert seen == {str, list}


def test_the_length_of_the_axis_may_be_open(gpu: Any, tmp_path: Path) -> None:
    def model(x: Any, i: Any) -> Any:
        return F.take(x, i + 1, axis=0)

    path = str(tmp_path / "plan.bpk")
    x, i = np.arange(12, dtype=np.float32).reshape(6, 2), np.array([0, 1])
    plan_file.save(
        path, model, *(emberlet.asarray(a, backend="numpy") for a in (x, i)), dims={"x": {0: ("n", range(1, 10))}}
    )
    plan = plan_file.load(path, gpu.device)
    for rows in (2, 6, 9):
        given = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
        assert np.asarray(plan.run(given, np.array([0, rows - 2]))[0].to_tensor("numpy")).tolist() == [
            *given[[1, rows - 1]].tolist()
        ]
        with pytest.raises(IndexingError, match=f"index {rows} is outside axis 0 of length {rows}"):
            plan.run(given, np.array([0, rows - 1]))


ENTRY = ["int64", 1, 5, True, "index {index} is outside axis {axis} of length {end}", 0]
WRONG = [None, [], ENTRY[:5], [*ENTRY, 1], ["float32", *ENTRY[1:]], ["int8", *ENTRY[1:]], ["int64", -1, *ENTRY[2:]],
         ["int64", 1 << 40, *ENTRY[2:]], ["int64", 1, "5", *ENTRY[3:]], [*ENTRY[:3], 1, *ENTRY[4:]],
         [*ENTRY[:4], 7, 0], [*ENTRY[:5], "x"], [*ENTRY[:5], 1000]]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_damaged_entry_is_refused(tmp_path: Path, wrong: Any) -> None:
    path = str(tmp_path / "plan.bpk")
    plan_file.save(path, MODELS["take"], emberlet.asarray(np.array([0, 1]), backend="numpy"))
    content = json.loads(Burnpack.from_file(path).metadata[KEY])
    assert len(content["computed_indices"]) == 1
    with pytest.raises(ValueError):
        read({**content, "computed_indices": [wrong]}, "gpu")


def test_the_words_of_a_file_are_no_format(gpu: Any, tmp_path: Path) -> None:
    path = tmp_path / "plan.wasm"
    plan_file.save(str(path), MODELS["take"], emberlet.asarray(np.array([0, 1]), backend="numpy"))
    old = b"index {index} is outside axis {axis} of length {end}"
    new = b"{index.real} {index:>99999999} {low!r}".ljust(len(old))
    data = path.read_bytes()
    assert data.count(old) == 1
    data = data.replace(old, new)
    last = list(sections(data))[-1]
    with pytest.raises(IndexingError, match=r"\{index.real\}"):
        load_module(data[: last[4]].replace(b'"checksum": "crc32"', b'"checksum": null   ')).run(np.array([9, 9]))
