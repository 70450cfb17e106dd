"""Kernels in viper that are compiled as bytecode, also from a zip. That those of the tree compute what they should is
tested beside their front ends, which run them here."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from tools.paths import ROOT

VIPER = '''\
"""Kernels, in machine code."""

import micropython


@micropython.viper
def shifted(a: ptr16, n: int) -> int:
    return a[n] << int(4)


@micropython.viper
def moved(
    p: ptr32, i: int
):
    q = ptr32(int(p) + i + 4)
    p = ptr16(int(p) + 6)
    r = ptr8(int(q) + (i << 1))
    return r, q, p
'''


def test_functions_lose_types_and_pointers_become_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "kernels.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(ROOT / "micro" / "bytecode.py", "zipped_bytecode.py")
        file.writestr("zipped_kernels_viper.py", VIPER)
    monkeypatch.syspath_prepend(str(archive))
    import zipped_bytecode  # type: ignore[import-not-found]

    kernels = zipped_bytecode.in_bytecode("kernels_viper")
    assert kernels.shifted([1, 2], 1) == 32
    numbers = memoryview(bytes(range(20)))
    assert [v[0] for v in kernels.moved(numbers, 4)] == [10, 2, 3]
    del sys.modules["zipped_bytecode"]
