"""The checks that need no test run: the list of packages, generated files, ruff's lint and format, the type checker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

from . import locking
from .layout import PYPROJECT, host_files, packages, pyproject, typing_tree
from .paths import ROOT
from .steps import say

# Type-checked in addition to the distribution's CPython-only files.
TYPED = ("dev.py", "tests/conftest.py", "tests/support/*.py", "tools/*.py")
# Modules that write a file of the tree with `--fix`, and otherwise compare it.
WRITERS = (
    ("kernels", "tools.generated.thumb_kernels"),
    ("pages", "tools.generated.contrib_page"),
    ("pages", "tools.generated.micro_operators"),
    ("schemas", "tools.generated.operator_schemas"),
    ("operators", "tools.generated.operator_places"),
    ("stubs", "emberlet.host.interface.module_stubs"),
)
UTF_8 = ("--select=PLW1514",)  # every file is opened with its encoding
PACKAGES = re.compile(r"^packages = \[[^\]]*\]$", re.MULTILINE)


def check(*, fix: bool = False) -> bool:
    """Run every check, even if earlier ones fail; with `fix`, first repair whatever can be repaired."""
    ruff_fix = ["--fix"] if fix else []
    ruff_format = [] if fix else ["--check"]
    results = [
        check_packages(fix=fix),
        check_locked(),
        check_written(fix=fix),
        tool("ruff check", ["ruff", "check", "--quiet", "--output-format=concise", *ruff_fix, "."]),
        # Run separately, because enabling preview rules would change ruff's other rules too.
        tool("ruff check", ["ruff", "check", "--quiet", "--output-format=concise", "--preview", *UTF_8, "."]),
        tool("ruff format", ["ruff", "format", "--quiet", *ruff_format, "."]),
        type_check(),
    ]
    if not all(results) and not fix:
        say("`python3 dev.py check --fix` formats, and repairs what it can.")
    return all(results)


def check_packages(*, fix: bool = False) -> bool:
    """Whether pyproject.toml names every package of the tree, and no other."""
    if (listed := sorted(pyproject()["tool"]["setuptools"]["packages"])) == (found := packages()):
        return True
    if fix:
        lines = "".join(f'    "{name}",\n' for name in found)
        PYPROJECT.write_text(
            PACKAGES.sub(f"packages = [\n{lines}]", PYPROJECT.read_text(encoding="utf-8"), count=1), encoding="utf-8"
        )
        pyproject.cache_clear()
        say("packages: pyproject.toml names them all now")
        return True
    unknown, gone = sorted(set(found) - set(listed)), sorted(set(listed) - set(found))
    say(f"packages: pyproject.toml lacks {unknown} and names {gone}, which are gone; run `python3 dev.py check --fix`")
    return False


def check_locked() -> bool:
    """Whether the lock files were made from what pyproject.toml asks for."""
    if outdated := locking.outdated():
        say(f"lock: the requirements of {', '.join(outdated)} changed since it was locked; run `python3 dev.py lock`")
    return not outdated


def check_written(*, fix: bool = False) -> bool:
    """Whether every file of the tree that is written from others matches them."""
    results = [check_generated(fix=fix)]
    for name, module in WRITERS:
        results.append(tool(name, [sys.executable, "-m", module, *(["--fix"] if fix else [])]))
    return all(results)


def check_generated(*, fix: bool = False) -> bool:
    """Whether the tables, stubs and documents match the declarations of the functional layer."""
    module = "emberlet.host.interface.stubs"
    done = subprocess.run(
        [sys.executable, "-m", module, *([] if fix else ["--check"])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if said := (done.stdout + done.stderr).strip():
        say(f"generated from the declarations in core/functional:\n{said}")
    return done.returncode == 0


def type_check() -> bool:
    """Type-check the CPython-only files; files that also run on MicroPython are only read for their names."""
    tree = typing_tree()
    typed = [str(file.relative_to(ROOT)) for pattern in TYPED for file in sorted(ROOT.glob(pattern))]
    files = [str((tree / target).relative_to(ROOT)) for target, _ in host_files()]
    shown = {str((tree / target).relative_to(ROOT)): str(file.relative_to(ROOT)) for target, file in host_files()}
    return tool("mypy", ["mypy", "--no-error-summary", *typed, *files], shown)


def tool(name: str, command: list[str], renamed: dict[str, str] | None = None) -> bool:
    """Run a tool of the environment; print its output, with file names relative to the tree."""
    tool = shutil.which(command[0], path=os.path.dirname(sys.executable)) or command[0]
    done = subprocess.run([tool, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False, encoding="utf-8")
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).splitlines()
        say("\n".join([f"{name}:", *(_rename(line, renamed or {}) for line in lines)]))
    return done.returncode == 0


def _rename(line: str, renamed: dict[str, str]) -> str:
    file, colon, rest = line.partition(":")
    return f"{renamed.get(file, file)}{colon}{rest}"
