"""Coverage-guided fuzzing of the burnpack reader: python tests/fuzz/fuzz_burnpack.py [-max_total_time=60] [CORPUS].

Needs atheris. Whatever the bytes are, the reader either opens them or raises FormatError, and an entry that it lists
lies inside the file. Starts from the hand-made files of tests/support/burnpacks.py.
"""

import pathlib
import sys
import tempfile

import atheris

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

with atheris.instrument_imports(include=["emberlet"]):
    from emberlet import dtypes  # noqa: F401
    from emberlet.burnpack import Burnpack
    from emberlet.errors import FormatError


def read(data: bytes) -> None:
    try:
        found = Burnpack.from_bytes(data)
    except FormatError:
        return
    for name, entry in found.tensors.items():
        assert len(found.raw(name)) == entry.nbytes


def main() -> None:
    from support import burnpacks

    with tempfile.TemporaryDirectory() as corpus:
        for name, data in {**burnpacks.allowed(), **burnpacks.malformed()}.items():
            if len(data) < 4096:
                pathlib.Path(corpus, name).write_bytes(data)
        atheris.Setup([*sys.argv, corpus], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
