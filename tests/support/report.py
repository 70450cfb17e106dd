"""A table of what the tests found on this machine."""

from __future__ import annotations

import platform
import subprocess
import sys

from . import mpy_cross
from .components import COMPONENTS, Component
from .steps import say


def print_components() -> None:
    """One line for each component: what it is, and what was found or what to do."""
    width = max(len(component.what) for component in COMPONENTS.values())
    say(f"  {'Python':<{width}}  {platform.python_version()}, {sys.executable}")
    for component in COMPONENTS.values():
        where = component.find()
        found = _version(component, where) if where else f"missing: {component.remedy}"
        say(f"  {component.what:<{width}}  {found}")


def _version(component: Component, where: str) -> str:
    if component.name in ("chromium", "node"):
        return f"{_first_line([where, '--version'])}, {where}"
    if component.name.startswith("micropython-") and component.source == "debian":
        script = "import sys; print('.'.join(str(n) for n in sys.implementation[1][:3]))"
        return f"{_first_line([where, '-c', script])}, {where}"
    if component.name == "mpy-cross":
        return f"{mpy_cross.RELEASES[0]} to {mpy_cross.RELEASES[-1]}, {where}"
    return where


def _first_line(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout.strip() or "version unknown").splitlines()[0]
