"""The documents: every block runs and prints what the page shows, or says why not; links to files lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from emberlet.codegen import generate
from support.rows import every

from tools.components import require
from tools.document_blocks import PAGES, Block, Program, blocks_of, programs_of
from tools.paths import ROOT

BETWEEN = "----- end of a block -----"
# Why a block of the documents may not run: a beginning of the reason, and whether the rest names a file of the project.
REASONS = {
    "installs packages": False,
    "serves until it is stopped": False,
    "takes minutes": False,
    "needs the environment of a checkout": False,
    "needs a board": False,
    "needs a Unix port of MicroPython": False,
    "needs MicroPython's source": False,
    "needs PyTorch": False,
    "needs a cluster": False,
    "deletes what is installed": False,
    "runs in a browser; tested by ": True,
    "tested by ": True,
    "part of ": True,
}
ALL = [block for page in PAGES for block in blocks_of(page)]
PROGRAMS = [program for page in PAGES for program in programs_of(page)]


def _where(value: Block | Program) -> str:
    return value.where


@every("block", ALL)
def test_every_block_runs_or_says_why_not(block: Block) -> None:
    """A block is run, is an output or text to read, or carries one of the reasons above."""
    if block.runs:
        assert block.language in ("python", "sh"), "only Python and shell blocks run"
        assert not block.reason
    elif block.language == "text":
        assert not block.reason
    else:
        assert block.reason, f"{block.where}: mark the block `run`, or say `<!-- not run: WHY -->` before it"
        (begun,) = [begin for begin in REASONS if block.reason.startswith(begin)][:1] or [""]
        assert begun, f"{block.where}: {block.reason!r} is none of {list(REASONS)}"
        if REASONS[begun]:
            named = block.reason.removeprefix(begun).split()[0]
            assert (ROOT / named).exists(), f"{block.where} names {named}, which does not exist"
            if begun == "part of ":
                lines = (ROOT / named).read_text(encoding="utf-8").splitlines()
                for line in block.code.splitlines():
                    known = line.partition("  #")[0] in lines or line.strip() == "..."
                    assert known, f"{block.where} shows {line!r}; not in {named}"


@every("page", PAGES)
def test_every_block_has_a_fence(page: Path) -> None:
    """A block that is only indented could not say whether it runs."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    assert not re.findall(r"\n\n {4}[^\n]*", text)


def _folder(page: str, tmp_path: Path) -> Path:
    """A fresh folder with copies of the examples; for the page of an example, its folder in there."""
    copy = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", copy, ignore=shutil.ignore_patterns("__pycache__", "out"))
    if page == "docs/sessions.md":
        for name in ("llama", "lstm_step"):
            shutil.copytree(ROOT / "tests" / "models" / name, tmp_path / "tests" / "models" / name)
    if page.startswith("examples/"):
        return tmp_path / Path(page).parent
    return tmp_path


def _matches(shown: str, printed: str) -> bool:
    """Whether `printed` is what the page shows: except for blanks at the ends of lines, `…` for any text."""
    lines = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    pattern = re.escape("\n".join(line.rstrip() for line in shown.strip().splitlines())).replace("…", "(?:.|\n)*?")
    return re.fullmatch(pattern, lines) is not None


@pytest.mark.parametrize("program", PROGRAMS, ids=_where)
def test_a_block_runs_and_prints_what_the_page_shows(program: Program, tmp_path: Path) -> None:
    first = program.blocks[0]
    text = "".join(block.setup + block.code for block in program.blocks)
    if "wgpu" in text:
        require("gpu-driver")
    if first.language == "python":
        parts = [block.setup + block.code + f"\nprint({BETWEEN!r})\n" for block in program.blocks]
        command = [sys.executable, "-c", "".join(parts)]
    else:
        parts = [block.setup + block.code + f"\necho '{BETWEEN}'\n" for block in program.blocks]
        command = ["sh", "-e", "-c", "".join(parts)]
    path = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    environment = {**os.environ, "PATH": path, "EMBERLET_CACHE": str(tmp_path / "cache"), "COLUMNS": "80"}
    result = subprocess.run(
        command,
        cwd=_folder(first.page, tmp_path),
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stderr
    printed_by = result.stdout.split(BETWEEN + "\n")
    for block, shown, printed in zip(program.blocks, program.outputs, printed_by, strict=False):
        if shown is not None:
            assert _matches(shown, printed), f"{block.where} shows\n{shown}\nand the block prints\n{printed}"


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_the_generated_model_is_shown_as_it_is(page: str, tmp_path: Path) -> None:
    generated = (
        generate(ROOT / "examples" / "digits" / "digits.onnx", tmp_path).module.read_text(encoding="utf-8").splitlines()
    )
    (shown,) = re.findall(r"^```python\n(class Digits.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.S | re.M)
    for line in shown.splitlines():
        assert line in generated or line.strip() in ("...", ""), f"{page} shows {line!r}"


@every("page", PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"`[^`\n]+`", "", page.read_text(encoding="utf-8"))  # code may index a list and call what it finds
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


@every("page", PAGES)
def test_only_the_page_on_installing_says_how_to_install(page: Path) -> None:
    """Other pages only name the extra, so that a change of how to install it concerns docs/install.md alone."""
    if page.name != "install.md":
        assert not re.findall(r"pip install [\"']?(?:\.|emberlet)", page.read_text(encoding="utf-8"))


def test_the_page_on_development_names_every_command_of_dev() -> None:
    source = (ROOT / "dev.py").read_text(encoding="utf-8")
    commands = re.findall(r"^    python3 dev\.py (\w+)", source, re.MULTILINE)
    page = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
    assert commands
    for command in commands:
        assert f"| `python3 dev.py {command}" in page, command


def test_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:core|codegen|micro|wgpu_backend|web|tools|tests)/[\w/.]*[\w/])`", text):
        assert (ROOT / name).exists(), name
