"""The bill of materials of a release (SBOM), in CycloneDX's JSON: what the wheel with the extra `all` installs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..layout import PYPROJECT, pyproject
from ..paths import ROOT, python_of
from ..steps import StepError, run

EXTRA = "all"


def write(wheel: Path, out: Path, scratch: Path) -> None:
    """Install a wheel into a new environment and list what that holds.

    Raises:
        StepError: Something cannot be installed, is not in the list, or the list names a path of this machine.
    """
    folder = scratch / "materials"
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    python = python_of(folder)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "--quiet"]
    run([*pip, f"{wheel}[{EXTRA}]"], tries=3)
    options = ["--pyproject", str(PYPROJECT), "--mc-type", "library", "--short-PURLs", "--output-reproducible"]
    found = scratch / "found.cdx.json"
    run([sys.executable, "-m", "cyclonedx_py", "environment", *options, "--output-file", found, python])
    text = found.read_text(encoding="utf-8")
    out.write_text(cleaned(text, set(packages(EXTRA)), [scratch, ROOT, Path.home()]), encoding="utf-8")


def cleaned(listed: str, wanted: set[str], places: Iterable[Path]) -> str:
    """cyclonedx-py's list without emberlet's own wheel, which is the main component, and without this machine's files.

    Raises:
        StepError: It lacks one of the wanted packages, or still names one of the places.
    """
    bill = json.loads(listed, object_hook=_without_files)
    bill["components"] = [c for c in bill["components"] if c["name"] != "emberlet"]
    if missing := wanted - {_normalized(c["name"]) for c in bill["components"]}:
        raise StepError(f"the bill of materials lacks {', '.join(sorted(missing))}")
    text = json.dumps(bill, indent=2) + "\n"
    for place in places:
        if json.dumps(str(place))[1:-1] in text or place.as_uri() in text:
            raise StepError(f"the bill of materials names {place}, a path of this machine")
    return text


def packages(extra: str) -> Iterator[str]:
    """The names that an extra asks for on every system, without what those need themselves."""
    for requirement in pyproject()["project"]["optional-dependencies"][extra]:
        name, _, others = re.match(r"([\w.-]+)(\[([\w,-]+)\])?", requirement).groups()  # type: ignore[union-attr]
        if name == "emberlet":
            for other in others.split(","):
                yield from packages(other)
        elif ";" not in requirement:
            yield _normalized(name)


def _normalized(name: str) -> str:
    """A distribution's name as indexes compare it: https://packaging.python.org/en/latest/specifications/name-normalization"""
    return re.sub(r"[-_.]+", "-", name).lower()


def _without_files(part: dict[str, Any]) -> dict[str, Any]:
    """An object without references to files of this machine."""
    if isinstance(found := part.get("externalReferences"), list):
        part["externalReferences"] = [r for r in found if not str(r.get("url", "")).startswith("file:")]
    return part
