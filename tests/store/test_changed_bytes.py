"""A small file of each format with one byte changed, and every beginning of it, is read or refused by an error of
emberlet's, when it is opened or when a tensor of it is read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.small_files import FILES, outcome

SMALL = 600  # bytes: of a larger file fewer changes are tried


def changed(name: str) -> Iterator[tuple[str, bytes]]:
    """(what was changed, the file's content)."""
    _, data, rebuilt = FILES[name]()
    for at, byte in enumerate(data):
        for change in (1, -1, 128) if len(data) < SMALL else (1,):
            yield f"byte {at}: {byte} {change:+}", rebuilt(bytes([*data[:at], (byte + change) % 256, *data[at + 1 :]]))
        if len(data) < SMALL or at % 5 == 0:
            yield f"{at} bytes", rebuilt(data[:at])


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_a_byte_changed_is_read_or_refused(name: str) -> None:
    kind, data, rebuilt = FILES[name]()
    whole = outcome(rebuilt(data), kind)
    others = 0
    for label, made in changed(name):
        try:
            others += outcome(made, kind) != whole
        except Exception as error:
            pytest.fail(f"{label}: {type(error).__name__}: {error}")
    assert others > len(data) // 4
