"""Every row of the Burn Book's module tables, on every backend and on MicroPython; docs/modules.md shows the outcome.

`EMBERLET_WRITE_DOCS=1 pytest tests/core/test_module_rows.py` writes the table anew.
"""

from __future__ import annotations

import json
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import nn
from support.every_backend import WGPU, watch
from support.rows import every
from support.tables_in_docs import shows

from tools.micropython import Port
from tools.paths import ROOT

from .module_rows import HELPERS, SECTIONS, Row

DOCS = ROOT / "docs" / "modules.md"
BEGIN, END = "<!-- rows: begin (written by tests/core/test_module_rows.py) -->", "<!-- rows: end -->"
COLUMNS = ("python", "numpy", "wgpu", "MicroPython")
ROWS = [row for rows in SECTIONS.values() for row in rows]
outcomes: dict[tuple[str, str], str] = {}  # what the table shows


def largest_difference(row: Row, names: dict[str, Any]) -> float:
    """Between the layer's output and the row's."""
    case = row.case() if row.case else None
    if case is None:
        names["m"] = nn.Linear(2, 3)
        assert eval(row.emberlet, names) is not False
        assert eval(row.emberlet, names)
        return 0.0
    names["m"] = eval(row.emberlet, names)
    names["m"].load_record({k: emberlet.asarray(np.ascontiguousarray(v)) for k, v in case.state.items()}, layout="burn")
    for letter, array in zip("abcde", case.inputs, strict=False):
        names[letter] = emberlet.asarray(np.ascontiguousarray(array))
    found = eval(row.call, names)
    assert found.shape == case.outputs[0].shape
    return float(np.abs(np.asarray(found.tolist()) - case.outputs[0]).max())


@pytest.mark.parametrize("row", ROWS, ids=[r.burn for r in ROWS])
@pytest.mark.parametrize("name", ["python", "numpy", WGPU])
def test_row_of_the_book(name, row, tmp_path):
    outcomes[row.burn, name] = "✗"
    names = {"emberlet": emberlet, "nn": nn, "path": str(tmp_path / "m.bpk")}
    exec(HELPERS, names)
    emberlet.set_default_backend(name)
    mark = watch(emberlet.get_backend(name))
    try:
        assert largest_difference(row, names) < 1e-4
    finally:
        emberlet.set_default_backend(None)
    outcomes[row.burn, name] = mark()


SCRIPT = """
import gc
import json
import sys
import emberlet
from emberlet import nn
HELPERS
def flat(x):
    if not isinstance(x, list):
        return [x]
    out = []
    for one in x:
        out.extend(flat(one))
    return out
def tensor(array):
    return emberlet.asarray(array[1], dtype=emberlet.dtypes.dtype(array[0])).reshape(tuple(array[2]))
names = globals()
path = sys.argv[2]
with open(sys.argv[1]) as file:
    rows = json.load(file)
for n in range(len(rows)):
    code, call, state, inputs, expected = rows[n]
    try:
        if call is None:
            m = nn.Linear(2, 3)
            right = bool(eval(code))
        else:
            m = eval(code)
            m.load_record({k: tensor(state[k]) for k in state}, layout="burn")
            for i in range(len(inputs)):
                names["abcde"[i]] = tensor(inputs[i])
            found = eval(call)
            right = list(found.shape) == expected[2]
            for x, y in zip(flat(found.tolist()), expected[1]):
                right = right and abs(x - y) < 1e-4
        print("row", n, "right" if right else "wrong")
    except Exception as error:
        print("row", n, "failed:", repr(error))
    gc.collect()
""".replace("HELPERS", HELPERS)


def plain(array: np.ndarray) -> tuple[str, list[Any], list[int]]:
    return str(array.dtype), array.ravel().tolist(), list(array.shape)


@pytest.fixture(scope="module")
def on_micropython(unix_port: Port, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """MicroPython's result of each row."""
    folder = tmp_path_factory.mktemp("rows")
    rows = []
    for row in ROWS:
        case = row.case() if row.case else None
        if case is None:
            rows.append((row.emberlet, None, None, None, None))
        else:
            state = {k: plain(v) for k, v in case.state.items()}
            rows.append((row.emberlet, row.call, state, [plain(v) for v in case.inputs], plain(case.outputs[0])))
    (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    result = unix_port.run(SCRIPT, [folder / "rows.json", folder / "m.bpk"], heap="4M").check()
    said = [line.split(" ", 2) for line in result.stdout.splitlines() if line.startswith("row ")]
    return [what for _, _, what in said]


@every("index", range(len(ROWS)))
def test_row_of_the_book_on_micropython(on_micropython, index):
    row = ROWS[index]
    outcomes[row.burn, "MicroPython"] = "✓" if on_micropython[index] == "right" else "✗"
    assert on_micropython[index] == "right", row.emberlet


def table() -> str:
    lines = []
    for section, rows in SECTIONS.items():
        lines += ["", f"### {section}", "", "| Burn | emberlet | " + " | ".join(COLUMNS) + " | |"]
        lines.append("|---|---|" + "---|" * len(COLUMNS) + "---|")
        for row in rows:
            marks = [outcomes[row.burn, column] for column in COLUMNS]
            lines.append(f"| `{row.burn}` | `{row.emberlet}` | " + " | ".join(marks) + f" | {row.note} |")
    return "\n".join(lines) + "\n"


def test_the_table_in_the_docs_shows_these_outcomes():
    if len(outcomes) < len(ROWS) * len(COLUMNS):
        pytest.skip("needs all rows in one run")
    shows(DOCS, BEGIN, table(), END)
