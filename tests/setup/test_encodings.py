"""No file and no process is read or written in the encoding that a machine happens to have.

ruff's PLW1514 finds `open()`; what it cannot tell the type of is found here.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.paths import ROOT

CALLED = re.compile(r"\b(read_text|write_text|subprocess)\b")
STARTS = ("run", "Popen", "check_output", "check_call", "call")


def python_files() -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):  # a source archive
        return [file for file in ROOT.rglob("*.py") if not {".venv", ".cache", "node_modules"} & set(file.parts)]
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists()]


def without_encoding(source: str) -> Iterator[int]:
    """The lines of calls that take the machine's encoding."""
    if not CALLED.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if "encoding" in given or None in given:
            continue
        wanted = {"read_text": 0, "write_text": 1}.get(node.func.attr)
        starts = ast.unparse(node.func) in [f"subprocess.{name}" for name in STARTS]
        if wanted == len(node.args) or (starts and {"text", "universal_newlines"} & set(given)):
            yield node.lineno


def test_every_text_has_an_encoding() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in python_files()
        for line in without_encoding(file.read_text(encoding="utf-8"))
    ]
    assert not found, "say encoding= in " + ", ".join(found)


@pytest.mark.parametrize("text", ["p.read_text()", "p.write_text('x')", "subprocess.run(c, text=True)"])
def test_a_text_without_encoding_is_found(text: str) -> None:
    assert list(without_encoding(text)) == [1]
    assert not list(without_encoding(text[:-1] + ", encoding='utf-8')" if text[-2] != "(" else "p.read_text('utf-8')"))
