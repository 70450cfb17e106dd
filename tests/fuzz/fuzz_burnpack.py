"""Coverage-guided fuzzing of the burnpack reader: python tests/fuzz/fuzz_burnpack.py [-max_total_time=60].

Needs atheris. Whatever the bytes are, the reader either opens them or raises FormatError, and an entry that it lists
lies inside the file. Starts from the hand-made files of tests/support/burnpacks.py.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness

harness.instrument("emberlet.burnpack")

from emberlet.burnpack import Burnpack  # noqa: E402
from emberlet.errors import FormatError  # noqa: E402
from support import burnpacks  # noqa: E402


def read(data: bytes) -> None:
    try:
        found = Burnpack.from_bytes(data)
    except FormatError:
        return
    for name, entry in found.tensors.items():
        assert len(found.raw(name)) == entry.nbytes


if __name__ == "__main__":
    harness.run(read, {**burnpacks.allowed(), **burnpacks.malformed()}, 2048)
