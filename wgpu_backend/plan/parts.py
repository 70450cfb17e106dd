"""Reads a file in parts, so that loading a plan of any size takes the memory of one part."""

PART = 1 << 20  # bytes of a tensor read at once

try:
    from binascii import crc32
except ImportError:  # a small port
    crc32 = None


def upload(device, allocation, data, start, end, expected):
    """Write data[start:end] into an allocation, a part at a time. expected: eight hexadecimal digits of the CRC-32 of
    these bytes, or None; returns whether it matches."""
    check = 0
    for at in range(start, end, PART):
        part = data[at : min(end, at + PART)]
        if expected and crc32:
            check = crc32(part, check)
        device.write(allocation, part, at - start)
    return not expected or not crc32 or "{:08x}".format(check & 0xFFFFFFFF) == expected


def checksums(pack):
    """name of a tensor -> CRC-32 as eight hexadecimal digits, from a Burnpack's metadata ("emberlet.crc32": the digits
    concatenated in the order of the names). Empty without that entry."""
    text = getattr(pack, "checksums", None) or pack.metadata.get("emberlet.crc32") or ""
    names = sorted(pack.tensors)
    if len(text) != 8 * len(names):
        return {}
    return {names[i]: text[8 * i : 8 * i + 8] for i in range(len(names))}
