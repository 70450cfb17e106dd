"""Code for devices compiles with every MicroPython cross-compiler since 1.20: all files with the oldest and the newest,
a sixth of them, another one in each run, with those between."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.draws import draw

from tools.layout import device_files
from tools.micropython_builds import mpy_cross
from tools.paths import ROOT

# Native code is compiled for each family of boards: RP2040, RP2350 and STM32, ESP32, and the 64-bit Unix port.
ARCHITECTURES = ("armv6m", "armv7emsp", "xtensawin", "x64")
NATIVE = re.compile(r"@(micropython\.)?(viper|native|asm_thumb)\b")


def _jobs() -> list[tuple[Path, str | None]]:
    files = [file for _, file in device_files()]
    return [(file, arch) for file in files for arch in _architectures(file.read_text(encoding="utf-8"))]


def _architectures(text: str) -> tuple[str | None, ...]:
    """Those that a file is compiled for."""
    kinds = {found[2] for found in NATIVE.finditer(text)}
    if "asm_thumb" in kinds:
        return tuple(arch for arch in ARCHITECTURES if arch.startswith("arm"))
    return ARCHITECTURES if kinds else (None,)


@pytest.mark.needs("mpy-cross")
@pytest.mark.parametrize("release", mpy_cross.RELEASES)
def test_device_files_compile(release: str) -> None:
    jobs = _jobs()
    if release not in (mpy_cross.RELEASES[0], mpy_cross.RELEASES[-1]):
        jobs = jobs[draw(release).randrange(6) :: 6]
    with ThreadPoolExecutor(2) as pool:
        said = pool.map(lambda job: mpy_cross.compile_file(release, *job), jobs)
    failed = [
        f"{file.relative_to(ROOT)} ({arch or 'bytecode'}): {text}"
        for (file, arch), text in zip(jobs, said, strict=True)
        if text
    ]
    assert not failed, "\n".join(failed)


@pytest.mark.needs("mpy-cross")
def test_what_micropython_lacks_is_refused(tmp_path: Path) -> None:
    modern = tmp_path / "modern.py"
    modern.write_text("def f(a, b):\n    match a:\n        case 1:\n            return b\n", encoding="utf-8")
    assert "SyntaxError" in mpy_cross.compile_file(mpy_cross.RELEASES[0], modern)
