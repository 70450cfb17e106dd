"""Coverage-guided fuzzing of a burnpack's metadata: python tests/fuzz/fuzz_metadata.py [-max_total_time=60].

Needs atheris. The input is the CBOR alone; a fitting header is put before it, so that no input is wasted on a wrong
header. Whatever the bytes are, they are read or FormatError is raised.
"""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness

harness.instrument("emberlet.burnpack")

from emberlet.burnpack import Burnpack  # noqa: E402
from emberlet.errors import FormatError  # noqa: E402
from support import burnpacks  # noqa: E402


def read(data: bytes) -> None:
    try:
        found = Burnpack.from_bytes(struct.pack("<IHI", 0x4255524E, 1, len(data)) + data + bytes(512))
    except FormatError:
        return
    repr(list(found.tensors.values()) + list(found.metadata.items()) + list(found.scalars.items()))


def contents(file: bytes) -> bytes:
    return file[10 : 10 + int.from_bytes(file[6:10], "little")]


if __name__ == "__main__":
    files = {**burnpacks.allowed(), **burnpacks.malformed()}
    harness.run(read, {name: contents(data) for name, data in files.items()}, 512)
