"""Makes code that runs wherever it is copied to from an ELF object for x86-64, so that it can be kept in a file.

The sections that a process needs are laid out one after the other, and what refers from one to another is relative
(System V Application Binary Interface, AMD64 Architecture Processor Supplement, 4.4).
"""

from __future__ import annotations

import struct

ALIGNMENT = 64
_ALLOCATED, _SYMBOLS, _RELOCATIONS, _NO_BITS, _NOTE, _UNWIND = 2, 2, 4, 8, 7, 0x70000001
_RELATIVE = (2, 4)  # R_X86_64_PC32, and R_X86_64_PLT32 for functions: symbol + addend - place
_Section = tuple[int, int, int, int, int, int, int]  # type, flags, offset, size, link, info, alignment


def linked(data: bytes, name: str) -> tuple[bytes, int] | None:
    """(code, the offset of the function `name`) of an object; None if it refers to what is outside, or by an absolute
    address."""
    sections = _sections(data)
    code, places = _laid_out(data, sections)
    symbols = [_symbols(data, sections, s) for s in sections if s[0] == _SYMBOLS]
    if len(symbols) != 1:
        return None
    for type, _, offset, size, _, info, _ in sections:
        if type != _RELOCATIONS or info not in places:
            continue
        for at in range(offset, offset + size, 24):
            where, kind, number, addend = struct.unpack_from("<QIIq", data, at)
            _, section, value = symbols[0][number]
            if kind not in _RELATIVE or section not in places:
                return None
            place = places[info] + where
            struct.pack_into("<i", code, place, places[section] + value + addend - place)
    for found, section, value in symbols[0]:
        if found == name and section in places:
            return bytes(code), places[section] + value
    return None


def _sections(data: bytes) -> list[_Section]:
    (begin,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    out = []
    for at in range(begin, begin + size * count, size):
        _, type, flags, _, offset, length, link, info, alignment, _ = struct.unpack_from("<IIQQQQIIQQ", data, at)
        out.append((type, flags, offset, length, link, info, alignment))
    return out


def _laid_out(data: bytes, sections: list[_Section]) -> tuple[bytearray, dict[int, int]]:
    """The sections that a process needs, but for unwinding, and where each begins, by its number."""
    code = bytearray()
    places = {}
    for number, (type, flags, offset, size, _, _, alignment) in enumerate(sections):
        if not flags & _ALLOCATED or type in (_NO_BITS, _NOTE, _UNWIND):
            continue
        code.extend(bytes(-len(code) % max(1, alignment)))
        places[number] = len(code)
        code.extend(data[offset : offset + size])
    return code, places


def _symbols(data: bytes, sections: list[_Section], table: _Section) -> list[tuple[str, int, int]]:
    """(name, number of its section, its place there) of each symbol."""
    _, _, offset, size, link, _, _ = table
    names = sections[link][2]
    out = []
    for at in range(offset, offset + size, 24):
        name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
        begin = names + name
        out.append((data[begin : data.index(b"\0", begin)].decode(), section, value))
    return out
