"""Reads the sections of a WebAssembly module, and verifies the checksum in the last one."""

try:
    from binascii import crc32
except ImportError:  # some builds of MicroPython
    crc32 = None

CHECKSUM = "emberlet.crc32"
# Functions of a module: so many, and one for so many bytes of the file. To compile one takes an engine some 6 KB of
# memory, but 4 bytes of the file.
FUNCTIONS, BYTES_EACH = 4096, 512


def sections(source):
    """(id, name of a custom section or "", start of its content, end, offset of the section) for each section of a
    module. Raises ValueError."""
    if source[:8] != b"\0asm\1\0\0\0":
        raise ValueError("it does not start like a WebAssembly module")
    out = []
    at = 8
    while at < len(source):
        begin = at
        number = source[at]
        size, start = _read(source, at + 1)
        at = start + size
        if at > len(source):
            raise ValueError("it ends in the middle of a section")
        name = ""
        if number == 0:
            length, start = _read(source, start)
            name = bytes(source[start : start + length]).decode()
            start += length
        out.append((number, name, start, at, begin))
    return out


def check_functions(source, found):
    """Raise ValueError if a module has more functions than a file of its size may have. found: its `sections`."""
    for number, _, start, _, _ in found:
        if number == 3 and _read(source, start)[0] > FUNCTIONS + len(source) // BYTES_EACH:
            raise ValueError(
                "it has {} functions in {} bytes, which take too much memory to compile".format(
                    _read(source, start)[0], len(source)
                )
            )


def checksum(source):
    """The custom section to append to these bytes of a module: their CRC-32, four little-endian bytes."""
    name = CHECKSUM.encode()
    content = bytes((len(name),)) + name + (crc32(source) & 0xFFFFFFFF).to_bytes(4, "little")
    return bytes((0, len(content))) + content


def verify(source, found, promised):
    """Raise ValueError if the bytes of a module do not match its checksum. found: its `sections`; promised: whether its
    JSON announces a checksum."""
    for _, name, start, end, begin in found:
        if name == CHECKSUM:
            if end != len(source) or end - start != 4:
                raise ValueError("its checksum is not the last section, or is malformed")
            if crc32 and crc32(memoryview(source)[:begin]) & 0xFFFFFFFF != int.from_bytes(source[start:end], "little"):
                raise ValueError("its bytes do not match its checksum: download or compile it again")
            return
    if promised:
        raise ValueError("its checksum is missing: download or compile it again")


def _read(source, at):
    """(value, offset behind it) of an unsigned LEB128 number."""
    out = shift = 0
    while True:
        if at >= len(source) or shift > 28:
            raise ValueError("it holds an unterminated number")
        byte = source[at]
        out |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return out, at
