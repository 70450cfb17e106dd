"""Environments beside `.venv`: for another interpreter, for the oldest packages that pyproject.toml allows, and for
the newest pre-releases of those whose private structures are relied on.

    python3 dev.py test --python 3.13
    python3 dev.py test --oldest
    python3 dev.py test --pre

Each lies in `.cache/environments` and is kept. `dev.py` starts itself again with EMBERLET_VENV naming it, and with
EMBERLET_OLDEST or EMBERLET_PRE where it holds those packages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .layout import pyproject
from .paths import CACHE
from .steps import StepError

# Whose private structures are relied on: tried in their newest pre-release by `dev.py test --pre`.
PRIVATE = ("numpy", "wgpu")
PRE = "EMBERLET_PRE"
FOLDER = CACHE / "environments"
_VERSION = """\
import sys
free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
print("{}.{}.{}".format(*sys.version_info) + "t" * free_threaded)
"""


def split(args: list[str]) -> tuple[str | None, str, list[str]]:
    """Split off dev.py's own options: (the value of --python, "oldest" or "pre" if that is given or "", the other
    arguments).

    Raises:
        StepError: --python without an interpreter.
    """
    rest = list(args)
    chosen = next((name for name in ("oldest", "pre") if f"--{name}" in rest), "")
    if chosen:
        rest.remove(f"--{chosen}")
    named = None
    for i, word in enumerate(rest):
        if word == "--python" or word.startswith("--python="):
            taken = rest[i + 1 : i + 2] if word == "--python" else [word.partition("=")[2]]
            if not taken or not taken[0]:
                raise StepError("--python needs an interpreter: a version such as 3.13, or a path")
            named = taken[0]
            del rest[i : i + (2 if word == "--python" else 1)]
            break
    return named, chosen, rest


def interpreter(named: str | None) -> Path:
    """The interpreter that `--python` names: a path, or a version such as 3.13. A version is looked up on PATH, with
    Windows' launcher, and among pyenv's interpreters.

    Raises:
        StepError: There is none, or it is older than 3.11.
    """
    if named is None:
        return Path(sys.executable)
    is_path = os.path.dirname(named) != ""
    found = named if is_path else _of_pyenv(named) or shutil.which(named) or shutil.which(f"python{named}")
    if found is None and (launcher := shutil.which("py")):
        code = "import sys; print(sys.executable)"
        asked = subprocess.run([launcher, f"-{named}", "-X", "utf8", "-c", code], capture_output=True)
        found = asked.stdout.decode().strip() or None
    if found is None or not Path(found).exists():
        raise StepError(f"Python {named!r} was not found: install it, or pass its path")
    if tuple(int(n) for n in re.findall(r"\d+", version(Path(found)))[:2]) < (3, 11):
        raise StepError(f"{found} is Python {version(Path(found))}; emberlet needs 3.11 or newer")
    return Path(found)


def _of_pyenv(version: str) -> str | None:
    root = Path(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"))
    found = {}
    for python in [*root.glob("versions/*/bin/python"), *root.glob("versions/*/python.exe")]:
        name = python.relative_to(root).parts[1]  # 3.13.0, and 3.13.0t of a free-threaded build
        if name.endswith("t") == version.endswith("t") and f"{name}.".startswith(f"{version.removesuffix('t')}."):
            found[tuple(int(n) for n in re.findall(r"\d+", name))] = str(python)
    return found[max(found)] if found else None


def version(python: Path) -> str:
    """The version of an interpreter, such as 3.13.0; free-threaded builds end in t."""
    asked = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, encoding="utf-8", check=False)
    if asked.returncode:
        raise StepError(f"{python} does not run: {asked.stderr.strip()}")
    return asked.stdout.strip()


def variables(python: Path, chosen: str) -> dict[str, str]:
    """The environment variables that make dev.py work with this interpreter and set of packages: "oldest", "pre" for
    pre-releases of PRIVATE, "" for the locked ones."""
    return {
        "EMBERLET_VENV": str(FOLDER / f"{version(python)}-{chosen or 'newest'}"),
        "EMBERLET_OLDEST": "1" if chosen == "oldest" else "",
        PRE: "1" if chosen == "pre" else "",
    }


def of_pre_releases() -> bool:
    """Whether the environment has the newest pre-releases of PRIVATE, beyond their upper bounds."""
    return bool(os.environ.get(PRE))


def bounds() -> dict[str, str]:
    """The versions of PRIVATE that pyproject.toml allows: {"numpy": ">=2.1.3,<3"}."""
    extras = pyproject()["project"]["optional-dependencies"]
    return {name: requirement.removeprefix(name) for name in PRIVATE for requirement in extras[name][:1]}


def constraints() -> list[str]:
    """pip's constraints with --oldest: the lower bound of every requirement of the extras, as `numpy==1.26.0`."""
    extras = pyproject()["project"]["optional-dependencies"]
    found = set()
    for requirement in (line for lines in extras.values() for line in lines):
        if bound := re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)(?:,<[\d.]+)?", requirement):
            found.add(f"{bound[1]}=={bound[2]}")
    return sorted(found)
