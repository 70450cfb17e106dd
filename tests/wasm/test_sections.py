"""The sections of WebAssembly modules: those that wasmtime writes, and bytes that are none."""

from __future__ import annotations

import pytest
from emberlet.wgpu_backend.wasm.sections import CHECKSUM, checksum, sections, verify

HEAD = b"\0asm\1\0\0\0"


@pytest.mark.parametrize(
    "source, why",
    [
        (b"", "does not start"), (b"\0asm\2\0\0\0", "does not start"), (HEAD + b"\1\5ab", "middle of a section"),
        (HEAD + b"\1", "unterminated"), (HEAD + b"\1\x80", "unterminated"),
        (HEAD + b"\1" + b"\x80" * 9, "unterminated"),
        (HEAD + b"\1\x80\x80\x80\x80\x80\x00", "unterminated"), (HEAD + b"\0\1\x80", "unterminated"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_sections_are_refused(source: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        sections(source)


def test_a_checksum_is_of_all_bytes_before_it() -> None:
    module = HEAD + b"\1\2ab"
    whole = module + checksum(module)
    assert [name for _, name, *_ in sections(whole)] == ["", CHECKSUM]
    for promised in (True, False):
        verify(whole, sections(whole), promised)
    verify(module, sections(module), False)
    with pytest.raises(ValueError, match="is missing"):
        verify(module, sections(module), True)
    other = HEAD + b"\1\2ac" + checksum(module)
    with pytest.raises(ValueError, match="do not match"):
        verify(other, sections(other), False)
    for malformed in (whole + b"\1\2ab", module + b"\0\x14" + checksum(module)[2:] + b"\0"):
        with pytest.raises(ValueError, match="not the last section, or is malformed"):
            verify(malformed, sections(malformed), False)
