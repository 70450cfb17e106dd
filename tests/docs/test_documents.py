"""The documents: fenced blocks marked `python run` run, and links to files lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from emberlet.codegen import generate

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*/README.md"))]


def blocks() -> list[tuple[str, int, str]]:
    found = []
    for page in PAGES:
        for i, code in enumerate(
            re.findall(r"^```python run\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
        ):
            found.append((str(page.relative_to(ROOT)), i, code))
    return found


@pytest.mark.parametrize(("page", "number", "code"), blocks(), ids=lambda v: str(v)[:40].split("\n")[0])
def test_an_example_runs(page: str, number: int, code: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, encoding="utf-8"
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_the_generated_model_is_shown_as_it_is(page: str, tmp_path: Path) -> None:
    generated = (
        generate(ROOT / "examples" / "digits" / "digits.onnx", tmp_path).module.read_text(encoding="utf-8").splitlines()
    )
    (shown,) = re.findall(r"^```python\n(class Digits.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.S | re.M)
    for line in shown.splitlines():
        assert line in generated or line.strip() in ("...", ""), f"{page} shows {line!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
