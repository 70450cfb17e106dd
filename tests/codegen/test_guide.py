"""Follows docs/add-an-operator.md literally in a copy of the tree: three edits, the generated files, a test."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tools.components import require
from tools.paths import ROOT

GUIDE = (ROOT / "docs" / "add-an-operator.md").read_text(encoding="utf-8")
# Both run with the packages of the copy: what `python3 dev.py check --fix` generates, then the test of the guide.
RUN = """
import sys
tree = {tree!r}
sys.path[:0] = [tree, tree + "/tests"]
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in repr(f).lower()]
import emberlet
assert emberlet.__file__.startswith(tree), emberlet.__file__
"""
GENERATE = """
from emberlet.host.interface import stubs
assert stubs.main() == 0
from tools.generated import contrib_page
from tools.generated import keep
assert keep(contrib_page.PAGE, contrib_page.page(), ["--fix"]) == 0
"""
TEST = """
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", tree, tree + "/tests/codegen/ops/test_microsoft.py",
                      "-k", "logit or page_about"]))
"""


def edits() -> list[tuple[str, str]]:
    """(file, code) of each numbered edit."""
    text = GUIDE[GUIDE.index("## The three edits") :]
    found = re.findall(
        r"^\d\. .*?`((?:core|codegen|tests)/[\w/.]+)`.*?```python\n(.*?)```", text, re.DOTALL | re.MULTILINE
    )
    return [(file, textwrap.dedent(code)) for file, code in found]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what an operator needs, with the edits of the guide."""
    require("symlinks")
    tree = tmp_path_factory.mktemp("guide")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("core", "codegen", "tools", "docs", "tests/support"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    (tree / "tests/codegen/ops").mkdir(parents=True)
    for name in ("pyproject.toml", "tests/codegen/ops/test_microsoft.py"):
        shutil.copy(ROOT / name, tree / name)
    (tree / "emberlet").symlink_to(tree / "core")
    (tree / "core" / "codegen").symlink_to(tree / "codegen")
    for file, code in edits():
        path = tree / file
        text = path.read_text(encoding="utf-8").rstrip()
        path.write_text(f"{text}\n\n\n{code}", encoding="utf-8")
    return tree


def test_an_operator_takes_three_edits() -> None:
    assert [file.split("/")[0] for file, _ in edits()] == ["core", "codegen", "tests"]


def test_the_edits_of_the_guide_make_an_operator(tree: Path) -> None:
    for step in (GENERATE, TEST):
        command = [sys.executable, "-c", RUN.format(tree=str(tree)) + step.format(tree=str(tree))]
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False, encoding="utf-8")
        assert done.returncode == 0, done.stdout + done.stderr
    assert ".." in done.stdout
    written = {
        "core/names.py": " logit",
        "core/tensor.pyi": "def logit(self, epsilon: builtins.float = 0.0) -> Tensor: ...",
        "core/functional/__init__.pyi": "def logit(x: _TensorLike, epsilon: builtins.float = 0.0) -> Tensor: ...",
        "core/__init__.pyi": "from .functional import logit as logit",
        "docs/functions.md": "| `logit` | ✓ | PyTorch logit | ✓ | log(x / (1 - x)), with x held",
        "docs/contrib-operators.md": "| Logit | log(x / (1 - x)), x first held",
    }
    for file, text in written.items():
        assert text in (tree / file).read_text(encoding="utf-8"), file


def test_files_that_the_guide_names_exist() -> None:
    for file in re.findall(r"`((?:core|codegen|tests|ops)/[\w/]+\.py)`", GUIDE):
        assert (ROOT / file).exists() or (ROOT / "codegen" / file).exists(), file


def test_every_place_of_an_elementwise_primitive_is_in_the_guide() -> None:
    rows = re.findall(r"^\| `([\w/.]+)` \|.*\| `(.*?)` \|$", GUIDE, re.MULTILINE)
    assert len(rows) == 7
    for file, text in rows:
        assert text in (ROOT / file).read_text(encoding="utf-8"), file
    # ONNX's, of complex numbers, and the slow ones that are worth a table where they are of 8 bits
    others = {"codegen/ops/elementwise.py", "core/host/complex_tensors/python_kernels.py"}
    others |= {"wgpu_backend/record/eight_bits.py"}
    written = re.compile(r'"cosh"|\bcosh_f32\(|def cosh\(|^cosh:', re.MULTILINE)
    named = {
        file.relative_to(ROOT).as_posix()
        for folder in ("core", "codegen", "wgpu_backend")
        for kind in ("*.py", "*.wgsl")
        for file in (ROOT / folder).rglob(kind)
        if written.search(file.read_text(encoding="utf-8"))
    }
    assert named == {file for file, _ in rows} | others
