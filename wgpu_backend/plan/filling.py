"""Loads a plan's weights: which bytes of the file go where on the GPU. The file is read in parts, so that a plan of any
size takes the memory of one."""

PART = 1 << 20  # bytes of a tensor read at once

try:
    from binascii import crc32
except ImportError:  # a small port
    crc32 = None


class Filling:
    """Transfers the constants of a SavedPlan from a Burnpack to the GPU's memory.

    uploads: list of (Allocation, first and last byte + 1 in the file, checksum or None, name of the tensor).
    """

    def __init__(self, pack, device, verify):
        self.uploads = []
        self._pack = pack
        self._device = device
        self._sums = checksums(pack) if verify else {}
        self._constants = []
        self._expanding = []

    def add(self, number, how, names, room):
        """Add the constant for buffer `number`, of `room` bytes. Raises ValueError if its tensors do not fit."""
        entries = []
        sizes = None
        if how:
            from .stored import stored_bytes

            sizes = stored_bytes(how, room)
        for i in range(len(names)):
            entry = self._pack.tensors.get(names[i])
            if entry is None:
                raise ValueError("uses a tensor {!r} that is missing".format(names[i]))
            if entry.nbytes % 4 or (entry.nbytes > room if sizes is None else sizes[i] not in (None, entry.nbytes)):
                raise ValueError(
                    "has a tensor {!r} of {} bytes, which does not fit buffer {}".format(names[i], entry.nbytes, number)
                )
            entries.append((names[i], entry))
        self._constants.append((number, how, entries))

    def aim(self, allocations):
        """Set the target Allocations, given by buffer number. Allocates staging for tensors to be expanded. Raises
        BackendError."""
        for number, how, entries in self._constants:
            parts = []
            if how:
                self._expanding.append((how, parts, allocations[number]))
            for name, entry in entries:
                target = allocations[number]
                if how:
                    target = self._device.allocate(entry.nbytes)
                    parts.append(target)
                self.uploads.append((target, entry.start, entry.end, self._sums.get(name), name))

    def read(self):
        """Upload everything from the Burnpack. Raises FormatError if a checksum does not match."""
        for target, start, end, expected, name in self.uploads:
            if not upload(self._device, target, self._pack.data, start, end, expected):
                from emberlet.errors import FormatError

                raise FormatError("{}: damaged, the bytes of tensor {!r} have changed".format(self._pack.origin, name))

    def finish(self):
        """Expand compressed weights, once everything is uploaded. Raises BackendError."""
        if self._expanding:
            from .stored import expand

            for how, parts, target in self._expanding:
                expand(self._device, how, parts, target)
        self.free()

    def free(self):
        """Free the memory that only loading needed."""
        for _, parts, _ in self._expanding:
            for part in parts:
                part.free()
        self._expanding = []
        self.uploads = []
        self._constants = []
        self._pack = None


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
