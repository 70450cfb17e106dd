"""Micro's kernels in assembly that are committed are those of the assembler."""

from __future__ import annotations

from tools.generated import thumb_kernels


def test_the_kernels_in_assembly_are_those_of_the_assembler() -> None:
    assert thumb_kernels.FILE.read_text(encoding="utf-8") == thumb_kernels.text()
