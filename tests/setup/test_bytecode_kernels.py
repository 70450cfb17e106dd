"""Micro's bytecode kernels are generated from the viper ones, and those in assembly by the assembler."""

from __future__ import annotations

import pytest

from tools.generated import bytecode_kernels, thumb_kernels
from tools.paths import ROOT


def test_the_kernels_of_the_tree_are_the_generated_ones() -> None:
    assert any((ROOT / "micro").glob("*" + bytecode_kernels.VIPER))
    assert bytecode_kernels.drifted(fix=False) == []


def test_types_and_machine_code_go_and_the_rest_stays() -> None:
    viper = (
        '"""Kernels, in machine code. x_kernels_bytecode.py is the same for every port."""\n\n# mypy: ignore-errors\n\n'
        "import micropython\n\nE = 4\n\n\n@micropython.viper\n"
        "def f(a: ptr16, n: int) -> int:\n    return a[n] << int(E)\n"
    )
    text = bytecode_kernels.bytecode_of(viper, "x")
    assert text.endswith("\n\nE = 4\n\n\ndef f(a, n):\n    return a[n] << int(E)\n")
    assert "viper" not in text.split("\n", 1)[1]


def test_a_pointer_with_an_offset_in_bytes_is_a_slice() -> None:
    for viper, bytecode in (
        ("q = ptr8(int(p) + n)", "q = p[n :]"),
        ("p = ptr16(int(p) + 6)", "p = p[3:]"),
        ("q = ptr32(int(z) + i + m)", "q = z[i + m >> 2 :]"),
        ("q = ptr32(int(z) + (n << 3))", "q = z[(n << 3) >> 2 :]"),
    ):
        assert bytecode_kernels.bytecode_of(f'"""."""\n\n\ndef f(p):\n    {viper}\n', "x").endswith(f"    {bytecode}\n")


def test_drift_is_found_and_mended(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "micro").mkdir()
    for file in (ROOT / "micro").glob("*_kernels_*.py"):
        (tmp_path / "micro" / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(bytecode_kernels, "ROOT", tmp_path)
    changed = tmp_path / "micro" / "image_kernels_bytecode.py"
    bytecode_kernels.drifted(fix=True)
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert bytecode_kernels.drifted(fix=False) == [changed.name]
    assert bytecode_kernels.drifted(fix=True) == [changed.name]
    assert bytecode_kernels.drifted(fix=False) == []


def test_the_kernels_in_assembly_are_those_of_the_assembler() -> None:
    assert thumb_kernels.FILE.read_text(encoding="utf-8") == thumb_kernels.text()
