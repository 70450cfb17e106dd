"""Names and sentences are spelled the American way, as in the array API standard: normalize, color, center."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tools.paths import ROOT

KINDS = ("*.py", "*.pyi", "*.md", "*.mjs", "*.js", "*.ts", "*.html")
# The aria attribute is spelled that way.
BRITISH = re.compile(
    r"(?i)centr(?:e[ds]?|ing)(?![a-z])|colour|behaviour|neighbour|favour|honour|grey(?![a-z])|labelled(?!by)|licence"
    r"|(?:normal|quant|optim|initial|serial|recogn|organ|minim|maxim|util|summar|vector|synchron|token|standard)is(?:e[drs]?|ing|ation)"
    r"(?![a-z])|analyse[drs]?(?![a-z])"
)


def files() -> list[Path]:
    """The text files that are kept."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *KINDS]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):  # a source archive
        found = [file for kind in KINDS for file in ROOT.rglob(kind)]
        return [file for file in found if not {".venv", ".cache", "node_modules"} & set(file.parts)]
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists()]


def test_words_are_spelled_the_american_way() -> None:
    found = []
    for file in files():
        if file.name != "test_spelling.py":
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                if match := BRITISH.search(line):
                    found.append(f"{file.relative_to(ROOT)}:{number}: {match[0]}")
    assert found == []
