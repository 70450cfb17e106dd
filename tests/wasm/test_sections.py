"""The sections of WebAssembly modules: those that wasmtime writes, and bytes that are none."""

from __future__ import annotations

import pytest
import wasmtime
from emberlet.wgpu_backend.wasm.sections import CHECKSUM, checksum, sections, verify

HEAD = b"\0asm\1\0\0\0"


def test_sections_of_a_module_are_found() -> None:
    data = "a" * 300
    module = bytes(wasmtime.wat2wasm(f'(module (memory (export "memory") 1) (func) (data (i32.const 0) "{data}"))'))
    found = sections(module)
    assert [number for number, *_ in found] == [1, 3, 5, 7, 10, 11]
    assert found[0][4] == 8 and found[-1][3] == len(module)
    for (_, name, start, end, begin), after in zip(found, [*found[1:], None], strict=True):
        assert name == "" and begin < start <= end
        assert after is None or end == after[4]
    assert module[found[-1][2] : found[-1][3]].endswith(b"a" * 300)


@pytest.mark.parametrize("size", [0, 1, 100, 120, 200, 20_000])
def test_custom_sections_have_names(size: int) -> None:
    content = b"\x04text" + bytes(size)
    length = []
    rest = len(content)
    while True:
        length.append(rest & 127 | (128 if rest > 127 else 0))
        rest >>= 7
        if not rest:
            break
    (found,) = sections(HEAD + b"\0" + bytes(length) + content)
    assert found == (0, "text", 8 + 1 + len(length) + 5, 8 + 1 + len(length) + len(content), 8)


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


def test_numbers_of_five_bytes_are_the_longest() -> None:
    assert sections(HEAD + b"\1\x82\x80\x80\x80\x00ab") == [(1, "", 14, 16, 8)]


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
