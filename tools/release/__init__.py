"""`python3 dev.py release --check`: tries the archives that would be published, and lists changes of the public API.

It builds the source archive and the wheel from what is committed, has twine check both, lists what the wheel installs
(a CycloneDX SBOM), installs each archive into an environment of its own and runs README's examples there, far from the
checkout. Nothing is published.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import partial
from pathlib import Path

from ..document_blocks import programs_of
from ..paths import CACHE, ROOT, python_of
from ..steps import StepError, run, say, step
from . import bill_of_materials

OUT = CACHE / "release"
# What README's examples need beside the wheel.
EXTRAS = "numpy,onnx"


def check() -> None:
    """Build, check, install and try both archives; print the API's changes.

    Raises:
        StepError: A step failed; the message has the end of what it printed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        step("exporting the committed files", lambda: _export(tree))
        shutil.rmtree(OUT, ignore_errors=True)
        step("building the source archive and the wheel", lambda: run([sys.executable, "-m", "build", "-o", OUT, tree]))
        archives = sorted(OUT.iterdir())
        command = [sys.executable, "-m", "twine", "check", "--strict"]
        step("twine checks both", lambda: run([*command, *map(str, archives)]))
        (wheel,) = OUT.glob("*.whl")
        bill = OUT / f"{wheel.name.split('-py3')[0]}.cdx.json"
        step("listing what the wheel installs (SBOM)", partial(bill_of_materials.write, wheel, bill, Path(scratch)))
        for archive in archives:
            step(f"README's examples from {archive.name}", lambda a=archive: _try(a, Path(scratch)))  # type: ignore[misc]
    for archive in [*archives, bill]:
        say(f"  {archive.name}: {archive.stat().st_size / 1e6:.2f} MB")
    say(changes())


def _export(tree: Path) -> None:
    tree.mkdir()
    packed = tree.with_suffix(".tar")
    run(["git", "-C", ROOT, "archive", "--output", packed, "HEAD"])
    with tarfile.open(packed) as archive:
        archive.extractall(tree, filter="data")


def _try(archive: Path, scratch: Path) -> None:
    """Install an archive and run README's blocks, each in a fresh folder that holds the examples and nothing else."""
    folder = scratch / archive.suffix.strip(".")
    run([sys.executable, "-m", "venv", folder / "venv"])
    python = python_of(folder / "venv")
    run([python, "-m", "pip", "install", "--quiet", f"{archive}[{EXTRAS}]"], tries=3)
    environment = {"PATH": str(python.parent) + os.pathsep + os.environ["PATH"]}
    for number, program in enumerate(programs_of(ROOT / "README.md")):
        text = "".join(block.setup + block.code for block in program.blocks)
        place = folder / str(number)
        shutil.copytree(ROOT / "examples", place / "examples", ignore=shutil.ignore_patterns("__pycache__", "out"))
        if program.blocks[0].language == "python":
            run([python, "-X", "utf8", "-c", text], cwd=place, env=environment)
        else:
            run(["sh", "-e", "-c", text], cwd=place, env=environment)


def changes() -> str:
    """The public API's additions and removals since the last tag, read from the type stubs."""
    described = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0"], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    if described.returncode:
        return "  public API: no tag yet, so nothing to compare with"
    tag = described.stdout.strip()
    before, now = _stubs(tag), _stubs("HEAD")
    lines = [
        line
        for line in difflib.unified_diff(before, now, lineterm="", n=0)
        if line[:1] in "+-" and not line.startswith(("+++", "---"))
    ]
    return "\n".join([f"  public API since {tag}:", *(f"    {line}" for line in lines or ["unchanged"])])


def _stubs(revision: str) -> list[str]:
    """Every declaration of the type stubs at a revision, as `stub: def name(...)`, sorted."""

    def git(*args: str) -> str:
        done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
        if done.returncode:
            raise StepError(f"git {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    found = []
    for name in git("ls-tree", "-r", "--name-only", revision).splitlines():
        if name.endswith(".pyi"):
            text = git("show", f"{revision}:{name}")
            found += [f"{name}: {line.strip()}" for line in text.splitlines() if re.match(r"\s*(def|class|\w+:)", line)]
    return sorted(found)
