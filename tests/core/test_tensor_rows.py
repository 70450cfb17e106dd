"""Every row of the Burn Book's tensor tables, on every backend and on MicroPython; docs/tensors.md shows the outcome.

`EMBERLET_WRITE_DOCS=1 pytest tests/core/test_tensor_rows.py` writes the table anew.
"""

from __future__ import annotations

import json
import math
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from support.every_backend import WGPU, watch
from support.rows import every
from support.tables_in_docs import shows

from tools.micropython import Port
from tools.paths import ROOT

from .tensor_rows import OPERANDS, SECTIONS, Row

DOCS = ROOT / "docs" / "tensors.md"
BEGIN, END = "<!-- rows: begin (written by tests/core/test_tensor_rows.py) -->", "<!-- rows: end -->"
COLUMNS = ("python", "numpy", "wgpu", "MicroPython")
ROWS = [(section, n, row) for section, rows in SECTIONS.items() for n, row in enumerate(rows)]
outcomes: dict[tuple[str, int, str], str] = {}  # what the table shows


def expected_of(row: Row) -> Any:
    """NumPy's result as nested lists; True if the row checks itself."""
    if row.numpy is None:
        return True
    names = {k: np.array(v, np.float64 if isinstance(v[0], float) else None) for k, v in OPERANDS.items()}
    value = np.asarray(eval(row.numpy, {"np": np, "math": math}, names))
    return value.tolist()


def close(found: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float):
        return abs(found - expected) <= 1e-5 * max(1.0, abs(expected))
    return bool(found == expected)


@every(("section", "n", "row"), ROWS)
@pytest.mark.parametrize("name", ["python", "numpy", WGPU])
def test_row_of_the_book(name, section, n, row):
    outcomes[section, n, name] = "✗"
    emberlet.set_default_backend(name)
    mark = watch(emberlet.get_backend(name))
    try:
        operands = {k: emberlet.asarray(v) for k, v in OPERANDS.items()}
        found = eval(row.emberlet, {"emberlet": emberlet, "F": F, **operands})
    finally:
        emberlet.set_default_backend(None)
    found = found.tolist() if isinstance(found, emberlet.Tensor) else found
    assert close(found, expected_of(row)), f"{row.emberlet} gave {found}, expected {expected_of(row)}"
    outcomes[section, n, name] = mark()


SCRIPT = """
import gc
import json
import emberlet
from emberlet import functional as F
def close(found, expected):
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float):
        return abs(found - expected) <= 1e-5 * max(1.0, abs(expected))
    return found == expected
operands, rows = json.load(open({path!r}))
names = {{"emberlet": emberlet, "F": F}}
for k in operands:
    names[k] = emberlet.asarray(operands[k])
for n in range(len(rows)):
    code, expected = rows[n]
    try:
        found = eval(code, names)
        if isinstance(found, emberlet.Tensor):
            found = found.tolist()
        print("\\nrow", n, "right" if close(found, expected) else "wrong: " + str(found))
    except Exception as error:
        print("\\nrow", n, "failed:", repr(error))
    gc.collect()
"""


@pytest.fixture(scope="module")
def on_micropython(unix_port: Port, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """MicroPython's result of each row."""
    data = tmp_path_factory.mktemp("rows") / "rows.json"
    data.write_text(json.dumps([OPERANDS, [(row.emberlet, expected_of(row)) for _, _, row in ROWS]]), encoding="utf-8")
    result = unix_port.run(SCRIPT.format(path=str(data)), heap="2M").check()
    said = [line.split(" ", 2) for line in result.stdout.splitlines() if line.startswith("row ")]
    return [what for _, _, what in said]


@every("index", range(len(ROWS)))
def test_row_of_the_book_on_micropython(on_micropython, index):
    section, n, row = ROWS[index]
    outcomes[section, n, "MicroPython"] = "✓" if on_micropython[index] == "right" else "✗"
    assert on_micropython[index] == "right", row.emberlet


def table() -> str:
    lines = []
    for section, rows in SECTIONS.items():
        lines += ["", f"### {section}", "", "| Burn | emberlet | " + " | ".join(COLUMNS) + " | |"]
        lines.append("|---|---|" + "---|" * len(COLUMNS) + "---|")
        for n, row in enumerate(rows):
            marks = [outcomes[section, n, column] for column in COLUMNS]
            code = row.emberlet.replace("|", "\\|")
            burn = row.burn.replace("|", "\\|")
            lines.append(f"| `{burn}` | `{code}` | " + " | ".join(marks) + f" | {row.note} |")
    return "\n".join(lines) + "\n"


def test_the_table_in_the_docs_shows_these_outcomes():
    if len(outcomes) < len(ROWS) * len(COLUMNS):
        pytest.skip("needs all rows in one run")
    shows(DOCS, BEGIN, table(), END)
