"""A CRC-32 of each tensor's bytes, which detects a damaged file.

The metadata holds them under "emberlet.crc32": eight hexadecimal digits per tensor, in the order of the sorted names,
without separators. A writer writes zeros first and fills in the digits after all tensors. Files without checksums load
normally; Burn ignores the entry.
"""

from ..errors import FormatError

try:
    from binascii import crc32
except ImportError:  # a small port
    crc32 = None

DIGITS = 8
PIECE = 1 << 20


def placeholder(count):
    """The text for `count` tensors that are not written yet, or None if this port has no CRC-32."""
    return "0" * (DIGITS * count) if crc32 else None


def digits(value):
    return "{:08x}".format(value & 0xFFFFFFFF)


def verify(pack):
    """See Burnpack.verify."""
    text = pack.checksums
    if not text or crc32 is None:
        return False
    names = sorted(pack.tensors)
    if len(text) != DIGITS * len(names):
        raise FormatError("{}: {} digits of checksums for {} tensors".format(pack.origin, len(text), len(names)))
    damaged = []
    for i in range(len(names)):
        entry = pack.tensors[names[i]]
        found = 0
        for start in range(entry.start, entry.end, PIECE):
            found = crc32(pack.data[start : min(entry.end, start + PIECE)], found)
        if digits(found) != text[DIGITS * i : DIGITS * i + DIGITS]:
            damaged.append(names[i])
    if damaged:
        raise FormatError("{}: damaged, these tensors have changed: {}".format(pack.origin, ", ".join(damaged)))
    return True
