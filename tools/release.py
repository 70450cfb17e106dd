"""`python3 dev.py release --check`: whether what would be published works, and what changed in the public API.

It builds the source archive and the wheel from what is committed, has twine check both, installs each into an
environment of its own and runs README's examples there, far from the checkout. Nothing is published.
"""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from .paths import CACHE, ROOT, python_of
from .steps import StepError, run, say, step

OUT = CACHE / "release"
# What README's examples need beside the wheel.
EXAMPLE_FILES = ("examples/digits/digits.onnx",)
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
        for archive in archives:
            step(f"README's examples from {archive.name}", lambda a=archive: _try(a, Path(scratch)))  # type: ignore[misc]
    for archive in archives:
        say(f"  {archive.name}: {archive.stat().st_size / 1e6:.2f} MB")
    say(changes())


def _export(tree: Path) -> None:
    tree.mkdir()
    packed = tree.with_suffix(".tar")
    run(["git", "-C", ROOT, "archive", "--output", packed, "HEAD"])
    with tarfile.open(packed) as archive:
        archive.extractall(tree, filter="data")


def _try(archive: Path, scratch: Path) -> None:
    folder = scratch / archive.suffix.strip(".")
    run([sys.executable, "-m", "venv", folder / "venv"])
    python = python_of(folder / "venv")
    run([python, "-m", "pip", "install", "--quiet", f"{archive}[{EXTRAS}]"], tries=3)
    for name in EXAMPLE_FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for block in examples((ROOT / "README.md").read_text(encoding="utf-8")):
        run([python, "-I", "-X", "utf8", "-c", "import sys; sys.path.insert(0, '')\n" + block], cwd=folder)


def examples(text: str) -> list[str]:
    """The Python blocks of a document that are marked to be run."""
    return re.findall(r"^```python run[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def changes() -> str:
    """What the public API gained and lost since the last tag, from the type stubs, which are generated from it."""
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
