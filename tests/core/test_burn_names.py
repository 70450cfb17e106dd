"""Every public name of Burn has a counterpart here, which computes on every backend, or a reason why not; docs/burn.md
shows the table.

`EMBERLET_WRITE_DOCS=1 pytest tests/core/test_burn_names.py` writes the table anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import emberlet
import pytest
from emberlet import functional as F
from emberlet import linalg, nn
from support.every_backend import WGPU, watch
from support.rows import every
from support.tables_in_docs import shows

from tools.micropython import Port
from tools.paths import ROOT

from .tensor_rows import OPERANDS

HERE = Path(__file__).parent
DOCS = ROOT / "docs" / "burn.md"
BEGIN, END = "<!-- names: begin (written by tests/core/test_burn_names.py) -->", "<!-- names: end -->"
COLUMNS = ("python", "numpy", "wgpu", "MicroPython")
GIVEN = OPERANDS | {
    "s": [[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]],
    "x": [[[[((7 * i + 3 * r + 5 * k) % 11) / 4 for i in range(6)] for r in range(6)] for k in range(4)]],
    "y": [[[0.5, 1.0, -1.0, 2.0], [1.5, 0.0, 3.0, -2.0], [0.25, 1.0, 4.0, 0.5]]],
    "l": [1, 0, 1],
}


class Counterpart(NamedTuple):
    expression: str  # "" if there is none
    note: str


def names() -> dict[str, list[str]]:
    """Burn's names by category, as its published crates have them."""
    lines = (HERE / "fixtures" / "burn_names.txt").read_text(encoding="utf-8").splitlines()
    return {line.partition(": ")[0]: line.partition(": ")[2].split() for line in lines if not line.startswith("#")}


def counterparts() -> dict[tuple[str, str], Counterpart]:
    found: dict[tuple[str, str], Counterpart] = {}
    category = ""
    for line in (HERE / "burn_counterparts.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            category = line.strip("[]")
        elif line and not line.startswith("#"):
            left, equals, expression = line.partition(" = ")
            if " ! " in left or not equals:
                left, _, reason = line.partition(" ! ")
                row = Counterpart("", reason)
            else:
                expression, _, note = expression.partition(" # ")
                row = Counterpart(expression, note)
            for name in left.split():
                assert (category, name) not in found, f"{name} stands twice"
                found[category, name] = row
    return found


ROWS = counterparts()


def row_of(category: str, name: str) -> Counterpart:
    """The row of a name; a layer's Config is its constructor."""
    row = ROWS.get((category, name))
    if row is None and name.endswith("Config"):
        layer = ROWS[category, name.removesuffix("Config")]
        return Counterpart(layer.expression, "arguments of the constructor" if layer.expression else layer.note)
    assert row is not None, f"{category}: {name} has no row"
    return row


EXPRESSIONS = sorted({row.expression for row in ROWS.values() if row.expression})
outcomes: dict[tuple[str, str], str] = {}  # (expression, column) -> what the table shows


def test_every_name_has_a_row_and_every_row_a_name() -> None:
    for category, found in names().items():
        for name in found:
            assert row_of(category, name)
    assert set(ROWS) <= {(category, name) for category, found in names().items() for name in found}


def test_few_names_have_no_counterpart() -> None:
    without = [name for category, found in names().items() for name in found if not row_of(category, name).expression]
    assert len(without) <= 25, without
    assert all(row.note for row in ROWS.values() if not row.expression)


@pytest.mark.parametrize("name", ["python", "numpy", WGPU])
@every("expression", EXPRESSIONS)
def test_what_to_write_computes(expression: str, name: str) -> None:
    outcomes[expression, name] = "✗"
    emberlet.set_default_backend(name)
    mark = watch(emberlet.get_backend(name))
    try:
        operands = {k: emberlet.asarray(v) for k, v in GIVEN.items()}
        found = eval(expression, {"emberlet": emberlet, "F": F, "nn": nn, "linalg": linalg, **operands})
        for part in found if isinstance(found, (tuple, list)) else (found,):
            if isinstance(part, emberlet.Tensor):
                part.tolist()
    finally:
        emberlet.set_default_backend(None)
    outcomes[expression, name] = mark()


SCRIPT = """
import gc
import json
import emberlet
from emberlet import functional as F, linalg, nn
operands, rows = json.load(open({path!r}))
names = {{"emberlet": emberlet, "F": F, "nn": nn, "linalg": linalg}}
for k in operands:
    names[k] = emberlet.asarray(operands[k])
for n in range(len(rows)):
    try:
        eval(rows[n], names)
        print("\\nrow", n, "right")
    except Exception as error:
        print("\\nrow", n, "failed:", repr(error))
    gc.collect()
"""


@pytest.fixture(scope="module")
def on_micropython(unix_port: Port, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What MicroPython says of each expression."""
    data = tmp_path_factory.mktemp("names") / "rows.json"
    data.write_text(json.dumps([GIVEN, EXPRESSIONS]), encoding="utf-8")
    result = unix_port.run(SCRIPT.format(path=str(data)), heap="8M").check()
    said = [line.split(" ", 2) for line in result.stdout.splitlines() if line.startswith("row ")]
    return [what for _, _, what in said]


# Features of CPython.
NOT_ON_DEVICES = ("load_from", "_async")


@every("n", range(len(EXPRESSIONS)))
def test_what_to_write_computes_on_micropython(on_micropython: list[str], n: int) -> None:
    expression = EXPRESSIONS[n]
    if any(word in expression for word in NOT_ON_DEVICES):
        outcomes[expression, "MicroPython"] = ""
        return
    outcomes[expression, "MicroPython"] = "✓" if on_micropython[n] == "right" else "✗"
    assert on_micropython[n] == "right", expression


def table() -> str:
    lines = []
    for category, found in names().items():
        lines += ["", f"## {category}", "", "| Burn | emberlet | " + " | ".join(COLUMNS) + " | |"]
        lines.append("|---|---|" + "---|" * len(COLUMNS) + "---|")
        for name in found:
            row = row_of(category, name)
            code = f"`{row.expression}`".replace("|", "\\|") if row.expression else "—"
            marks: list[Any] = [outcomes.get((row.expression, column), "") for column in COLUMNS]
            lines.append(f"| `{name}` | {code} | " + " | ".join(marks) + f" | {row.note} |")
    return "\n".join(lines) + "\n"


def test_the_table_in_the_docs_shows_these_outcomes() -> None:
    if len(outcomes) < len(EXPRESSIONS) * len(COLUMNS):
        pytest.skip("needs all rows in one run")
    shows(DOCS, BEGIN, table(), END)
