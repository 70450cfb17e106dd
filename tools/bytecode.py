"""Compiles the tree once, before the many processes of a test run do so each, and lists the tests once before that.

Where PYTHONDONTWRITEBYTECODE is set, Python reads bytecode but writes none, and starting emberlet takes twice as long.
"""

from __future__ import annotations

import compileall
import os
import re
import subprocess
import sys

from .layout import package_folders
from .paths import ROOT

TESTS = re.compile(r"[/\\]test_\w+\.py$|[/\\]snapshots[/\\]")  # pytest compiles them, in its own way


def write() -> None:
    """Compile the packages, the tools and what tests share; what is compiled already stays."""
    folders = {ROOT / folder.relative_to(ROOT).parts[0] for folder in package_folders().values()}
    for folder in sorted({*folders, ROOT / "tools", ROOT / "tests"}):
        compileall.compile_dir(folder, quiet=2, rx=TESTS)


def begin_listing() -> subprocess.Popen[bytes]:
    """Start a process that lists all tests and keeps what pytest compiles for it. What it finds is of no use."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=nowhere, stderr=nowhere)
