"""The fenced blocks of the documents, and how a page marks their treatment.

The words after the language of a fence are:

    ```python run            runs as a program in a fresh folder
    ```python run continued  runs after the block before it, in the same program
    ```sh run                runs in a shell with `emberlet` on its path, in a fresh folder
    ```text output           the output of the running block before it; `…` matches any text ```text
    only to read: a diagram, or output from elsewhere

A comment before a fence is not shown to the reader:

    <!-- setup ... -->       lines to run before a running block, in its language
    <!-- not run: WHY -->    why a block does not run; `REASONS` in tests/docs/test_documents.py lists the reasons
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from .paths import ROOT

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
    ROOT / "web" / "package" / "README.md",
]
_BLOCK = re.compile(
    r"(?:^[ ]*<!-- (?P<kind>setup|not run:)(?P<note>.*?)-->\n)?"
    r"^(?P<indent>[ ]*)```(?P<info>[^\n]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.DOTALL | re.MULTILINE,
)


@dataclass
class Block:
    """A fenced block: `language` and the `words` after it; `setup` and `reason` come from the comment before it."""

    page: str
    line: int
    language: str
    words: list[str]
    code: str
    setup: str = ""
    reason: str = ""

    @property
    def runs(self) -> bool:
        return "run" in self.words

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass
class Program:
    """Running blocks that share one session, each with the output that the page shows for it, or None."""

    blocks: list[Block] = field(default_factory=list)
    outputs: list[str | None] = field(default_factory=list)

    @property
    def where(self) -> str:
        return self.blocks[0].where


def blocks_of(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        language, *words = match["info"].split() or [""]
        note = match["note"] or ""
        found.append(
            Block(
                str(page.relative_to(ROOT)),
                text.count("\n", 0, match.start("info")) + 1,
                language,
                words,
                textwrap.dedent(match["code"]),
                textwrap.dedent(note.strip("\n")) + "\n" if match["kind"] == "setup" else "",
                note.strip() if match["kind"] == "not run:" else "",
            )
        )
    return found


def programs_of(page: Path) -> list[Program]:
    """The running blocks of a page: a program for each, or for those that continue one another."""
    found: list[Program] = []
    for block in blocks_of(page):
        if block.runs and "continued" not in block.words:
            found.append(Program())
        if block.runs:
            found[-1].blocks.append(block)
            found[-1].outputs.append(None)
        elif "output" in block.words:
            found[-1].outputs[-1] = block.code
    return found
