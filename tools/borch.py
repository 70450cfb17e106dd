"""borch, a training library for WebGPU in browsers, for a benchmark. Its npm package, borch-ts, is not on every mirror;
its Python package, pyborch, holds the same JavaScript in one file, and is downloaded by its hash, not installed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from .paths import CACHE

VERSION = "1.14.1"
SHA256 = "80809bb34907f5d1a31e919c0affd228f16baa871592a24815d812298992c19c"
FILE = "_borch.js"


def fetched() -> Path:
    """The folder of the file.

    Raises:
        subprocess.CalledProcessError: pip did not get it; its output is attached.
    """
    folder = CACHE / "borch" / VERSION
    if not (folder / FILE).exists():
        with TemporaryDirectory() as temporary:
            wanted = Path(temporary) / "wanted.txt"
            wanted.write_text(f"pyborch=={VERSION} --hash=sha256:{SHA256}", encoding="utf-8")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
            subprocess.run(
                [*command, f"--dest={temporary}", f"--requirement={wanted}"],
                check=True,
                capture_output=True,
                text=True,
                encoding="utf-8",
            )
            (wheel,) = Path(temporary).glob("*.whl")
            folder.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(wheel) as archive:
                (folder / FILE).write_bytes(archive.read(f"borch_webgpu/{FILE}"))
    return folder
