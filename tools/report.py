"""A table of what the tests found on this machine."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from .components import COMPONENTS, Component
from .micropython_builds import mpy_cross
from .paths import ROOT
from .steps import say


def print_components(names: Iterable[str]) -> None:
    """One line for each component: what it is, and what was found or what to do."""
    rows = {"Python": f"{platform.python_version()}, {_short(sys.executable)}"}
    for component in (COMPONENTS[name] for name in names):
        where = component.find()
        rows[component.what] = _version(component, where) if where else f"missing: {component.remedy}"
    width = max(len(what) for what in rows)
    for what, found in rows.items():
        say(f"  {what:<{width}}  {found}")


def _version(component: Component, where: str) -> str:
    if component.name in ("chromium", "node"):
        return f"{_first_line([where, '--version'])}, {where}"
    if component.name.startswith("micropython-") and component.source == "debian":
        script = "import sys; print('.'.join(str(n) for n in sys.implementation[1][:3]))"
        return f"{_first_line([where, '-c', script])}, {_short(where)}"
    if component.name == "mpy-cross":
        return f"{mpy_cross.RELEASES[0]} to {mpy_cross.RELEASES[-1]}, {_short(where)}"
    if component.source == "npm":
        package = json.loads(Path(where).with_name("package.json").read_text(encoding="utf-8"))
        return f"{package['version']}, {_short(where)}"
    return where


def _short(where: str) -> str:
    path = Path(where)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else where


def _first_line(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")
    return (done.stdout.strip() or "version unknown").splitlines()[0]
