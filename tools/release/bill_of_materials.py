"""The bill of materials of a release (SBOM), in CycloneDX's JSON: what the wheel with the extra `all` installs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ..layout import PYPROJECT
from ..paths import python_of
from ..steps import StepError, run

EXTRA = "all"


def write(wheel: Path, out: Path, scratch: Path) -> None:
    """Install a wheel into a new environment and list what that holds.

    Raises:
        StepError: Something cannot be installed, or the list names a path of this machine.
    """
    folder = scratch / "materials"
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    python = python_of(folder)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "--quiet"]
    run([*pip, f"{wheel}[{EXTRA}]"], tries=3)
    options = ["--pyproject", str(PYPROJECT), "--mc-type", "library", "--short-PURLs", "--output-reproducible"]
    run([sys.executable, "-m", "cyclonedx_py", "environment", *options, "--output-file", out, python])
    text = json.loads(out.read_text(encoding="utf-8"), object_hook=_without_files)
    # The wheel itself is the main component.
    text["components"] = [c for c in text["components"] if c["name"] != "emberlet"]
    written = json.dumps(text, indent=2) + "\n"
    out.write_text(written, encoding="utf-8")
    if str(scratch) in written:
        raise StepError(f"{out.name} names a path of this machine")


def _without_files(part: dict[str, Any]) -> dict[str, Any]:
    """An object without references to files of this machine."""
    if isinstance(found := part.get("externalReferences"), list):
        part["externalReferences"] = [r for r in found if not str(r.get("url", "")).startswith("file:")]
    return part
