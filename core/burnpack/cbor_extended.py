"""The parts of CBOR that a burnpack's metadata rarely uses: floats, strings of indefinite length, text beyond
ASCII, and the error messages."""

from ..errors import FormatError

_SAYS = {
    "cut": "ends in the middle of a value",
    "cut_string": "ends in the middle of a string of indefinite length",
    "reserved": "reserved initial byte 0x{:02x}",
    "string": "a string of {} bytes where {} are left",
    "container": "a container of {} items where {} bytes are left",
    "piece": "a string of indefinite length holds something else than plain strings",
    "utf8": "a text that is not valid UTF-8",
    "memory": "the values so far would take more than 40 times their bytes in memory",
    "deep": "nested deeper than {}",
    "break": "a break outside a container of indefinite length",
    "simple": "simple value {} has no meaning",
    "key": "a map key that is not a text",
    "twice": "the key {!r} stands twice in one map",
    "behind": "{} bytes follow the value",
}


def refuse(what, at, problem, found):
    """Raise FormatError: the file, the byte, and what was found there."""
    raise FormatError("{}, byte {}: {}".format(what, at, _SAYS[problem].format(*found)))


def floating(raw):
    """The float of 2, 4 or 8 big-endian bytes."""
    import struct

    if len(raw) > 2:
        return struct.unpack(">f" if len(raw) == 4 else ">d", raw)[0]
    # By hand: not every port's struct has the half-precision code.
    bits = (raw[0] << 8) | raw[1]
    exponent = (bits >> 10) & 31
    mantissa = bits & 1023
    if exponent == 31:
        value = float("nan") if mantissa else float("inf")
    elif exponent:
        value = (1024 + mantissa) * 2.0 ** (exponent - 25)
    else:
        value = mantissa * 2.0**-24
    return -value if bits & 0x8000 else value


def is_utf8(raw, text):
    """Whether the bytes `raw`, decoded to `text`, are valid UTF-8: MicroPython accepts surrogates, overlong forms and
    code points out of range."""
    n = 0
    for c in text:
        c = ord(c)
        if 0xD800 <= c < 0xE000 or c > 0x10FFFF:
            return False
        n += 1 if c < 0x80 else 2 if c < 0x800 else 3 if c < 0x10000 else 4
    return n == len(raw)


def chunks(data, at, end, major, what, text):
    """(bytes, position after it) of a string of indefinite length whose chunks begin at `at`; text(chunk, what, at)
    refuses a chunk that is not UTF-8."""
    begin = at
    parts = []
    while True:
        if at >= end:
            refuse(what, begin, "cut_string", ())
        if data[at] == 0xFF:
            return b"".join(parts), at + 1
        info = data[at] & 31
        if data[at] >> 5 != major or info > 27:
            refuse(what, at, "piece", ())
        start = at
        at += 1
        n = info
        if info > 23:
            width = 1 << (info - 24)
            n = int.from_bytes(data[at : at + width], "big") if width <= end - at else end
            at += width
        if n > end - at:
            refuse(what, start, "string", (n, max(0, end - at)))
        piece = bytes(data[at : at + n])
        if major == 3:
            text(piece, what, start)  # each chunk must be valid text by itself
        parts.append(piece)
        at += n
