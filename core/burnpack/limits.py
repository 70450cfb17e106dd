"""Higher limits for a trusted burnpack; the defaults are in the package's `__init__`."""

from . import MAX_FILE, MAX_METADATA, MAX_TENSOR, MAX_TENSORS, Burnpack


class Limits:
    """The maximum sizes of a file and its parts. None keeps the default, and values below the default have no effect.

    file: bytes (500 GiB by default); metadata: bytes (100 MiB); tensor: bytes of one tensor (10 GiB; 2 GiB on 32-bit
    machines); tensors: how many (100,000).
    """

    def __init__(self, file=None, metadata=None, tensor=None, tensors=None):
        self.file = MAX_FILE if file is None else file
        self.metadata = MAX_METADATA if metadata is None else metadata
        self.tensor = MAX_TENSOR if tensor is None else tensor
        self.tensors = MAX_TENSORS if tensors is None else tensors

    def __repr__(self):
        return "Limits(file={}, metadata={}, tensor={}, tensors={})".format(
            self.file, self.metadata, self.tensor, self.tensors
        )


def from_file(path, limits, zero_copy=False):
    """Burnpack.from_file with other Limits."""
    from .file import contents

    return from_bytes(*contents(path, zero_copy), limits=limits)


def from_bytes(data, origin="burnpack", limits=None):
    """Burnpack.from_bytes with other Limits."""
    limits = limits or Limits()

    class Trusted(Burnpack):
        def bad(self, what, *found):
            allowed = 0
            if what == "limit":
                n, unit, _ = found
                allowed = {"bytes": limits.file, "bytes of metadata": limits.metadata}.get(unit, limits.tensors)
                found = (n, unit, allowed)
            elif what == "tensor_limit" and found[2] == "bytes":
                allowed = limits.tensor
                n = found[1]
                found = (found[0], n, "bytes", allowed)
            if allowed and n <= allowed:
                return
            Burnpack.bad(self, what, *found)

    return Trusted(data, origin)
