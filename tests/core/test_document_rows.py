"""What Burn's documents show (its book, the guides to codegen, IR, parameters and stores) computes here, or there is a
reason why not; docs/documents.md shows the table and counts.

`EMBERLET_WRITE_DOCS=1 pytest tests/core/test_document_rows.py` writes the table anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import emberlet
from support.rows import every
from support.tables_in_docs import shows

from tools.paths import ROOT

from .document_setting import setting

DOCS = ROOT / "docs" / "documents.md"
BEGIN, END = "<!-- rows: begin (written by tests/core/test_document_rows.py) -->", "<!-- rows: end -->"
KINDS = {"=": "as written", "~": "another name", "!": "not here"}


class Row(NamedTuple):
    document: str
    section: str
    shown: str
    kind: str  # one of KINDS
    expression: str  # "" if there is none
    note: str


def rows() -> list[Row]:
    found: list[Row] = []
    document = section = ""
    for line in (Path(__file__).parent / "document_rows.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            document, _, section = line.strip("[]").partition(": ")
        elif line and not line.startswith("# "):
            parts = re.match("(.+?) ([=~!]) (.+)", line)
            assert parts, line
            shown, kind, rest = parts.groups()
            expression, _, note = ("", "", rest) if kind == "!" else rest.partition(" # ")
            found.append(Row(document, section, shown, kind, expression, note))
    return found


ROWS = rows()
IDS = [f"{row.section}: {row.shown}" for row in ROWS]


def test_no_row_stands_twice() -> None:
    assert len(set(IDS)) == len(IDS), sorted(i for i in IDS if IDS.count(i) > 1)


# What only Rust's syntax makes another word in Python: macros, attributes, words of Python.
RUST = {
    "println!": "print",
    "include_bytes!": "open",
    "include!": "imported",
    "not()": "not_",
    "#[derive(Module)]": "Module",
    "#[config(default)]": "Config",
}
# Rows that show words, or a type of the reader's own, and the name of emberlet's that they need.
IN_WORDS = {
    "Default::default() device": "Device",
    "the shape, device, kind and dtype of a printed tensor": "dtype",
    "Renderer": "renderer",
    "Devices": "devices",
    "Checkpoint": "checkpoint",
    "Learner<B, O> with generics": "Learner",
    "non-contiguous indices": "contiguous",
    "partial models": "Partial",
    "enum modules": "BaseNorm",
    "impl Backend for Autodiff": "backward",
    "NdArray backend": "NdArray",
    "BackendDevice::default()": "Device",
    "Node::ArgMax, ArgMaxConfig": "ArgMax",
    "Node::Conv, ConvConfig": "Conv",
}


def needed(shown: str) -> set[str]:
    """The last name that is shown, of a method, function, class or field, in the forms that Python gives it."""
    if shown in IN_WORDS:
        return {IN_WORDS[shown]}
    for rust, python in RUST.items():
        shown = shown.replace(rust, python)
    shown = re.sub(r" (before|in a|of a|when|with a) .*", "", shown.partition(" or ")[0])
    while shown != (bare := re.sub(r"\([^()]*\)|<[^<>]*>|\{[^{}]*\}", "", shown)):
        shown = bare
    *_, before, last = ["", *re.findall(r"\w+", shown)]
    if last == "new":
        return {before}
    return {last, last + "_", last.removeprefix("with_"), before if last == "default" else last}


@every("row", [row for row in ROWS if row.kind == "=" and row.section != "examples"])
def test_what_counts_as_written_has_the_last_name_that_is_shown(row: Row) -> None:
    operator = re.search(r"tensor ([-+*/%]) other$", row.shown)
    written = set(re.findall(r"\w+", row.expression))
    assert needed(row.shown) & written or (operator and f" {operator[1]} " in row.expression)


def test_a_row_that_does_not_work_as_written_says_why() -> None:
    assert not [row for row in ROWS if row.kind != "=" and not row.note]


def test_at_least_500_rows_of_the_book_work_as_written_or_by_an_alias_and_few_have_no_counterpart() -> None:
    kinds = [row.kind for row in ROWS if row.document == "The Burn Book"]
    assert kinds.count("=") >= 500 and kinds.count("!") <= 15


@every("row", [row for row in ROWS if row.expression])
def test_what_to_write_computes(row: Row, tmp_path: Path) -> None:
    emberlet.set_default_backend("numpy")
    try:
        found = eval(row.expression, setting(tmp_path))
        assert found is not False
        if isinstance(found, emberlet.Tensor):
            found.tolist()
    finally:
        emberlet.set_default_backend(None)


def table() -> str:
    documents = list(dict.fromkeys(row.document for row in ROWS))
    lines = ["", "| document | rows | " + " | ".join(KINDS.values()) + " |", "|---|" + "---|" * (1 + len(KINDS))]
    for document in [*documents, "all"]:
        of = [row for row in ROWS if document in (row.document, "all")]
        counts = [str(sum(row.kind == kind for row in of)) for kind in KINDS]
        lines.append(f"| {document} | {len(of)} | " + " | ".join(counts) + " |")
    for document, section in dict.fromkeys((row.document, row.section) for row in ROWS):
        lines += ["", f"## {document}: {section}", "", "| shown | emberlet | works | |", "|---|---|---|---|"]
        for row in ROWS:
            if (row.document, row.section) == (document, section):
                shown, code = (text.replace("|", "\\|") for text in (f"`{row.shown}`", f"`{row.expression}`"))
                lines.append(f"| {shown} | {code if row.expression else '—'} | {KINDS[row.kind]} | {row.note} |")
    return "\n".join(lines) + "\n"


def test_the_table_in_the_docs_shows_these_rows() -> None:
    shows(DOCS, BEGIN, table(), END)
