"""Coverage-guided fuzzing of .npy and .npz files: python tests/fuzz/fuzz_arrays.py [-max_total_time=60].

Needs atheris. Whatever the bytes are, the reader gives complete tensors, or raises FormatError or DTypeError. The first
byte chooses between the two kinds of file; archives come deflated and stored.
"""

import io
import pathlib
import sys
import warnings
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness

harness.instrument("emberlet.host.npy")

from emberlet.backend import get_backend  # noqa: E402
from emberlet.errors import DTypeError, FormatError  # noqa: E402
from emberlet.host import npy  # noqa: E402

warnings.simplefilter("ignore")  # zipfile's, of two members with one name
NUMPY = get_backend("numpy")


def read(data: bytes) -> None:
    file, size = io.BytesIO(data[1:]), len(data) - 1
    try:
        if data[:1] == b"z":
            found = npy.read_archive(file, size, "x", NUMPY)
        else:
            found = {"x": npy.read(file, size, "x", NUMPY)}
    except (FormatError, DTypeError):
        return
    for x in found.values():
        assert x.size == 0 or len(x.backend.to_list(x)) == x.size


def header(descr: str, shape: str, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version == b"\1\0" else 4, "little") + text + data


def archive(members: dict[str, bytes], kind: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return file.getvalue()


def seeds() -> dict[str, bytes]:
    """Arrays of each kind, and files that broke the reader before."""
    arrays = {
        "float": header("<f4", "(2, 3)", bytes(24)), "text": header("<U2", "(2,)", "abcd".encode("utf-32-le")),
        "flag": header("|b1", "()", b"\1"), "double": header("<f8", "(1,)", bytes(8), b"\3\0"),
        "empty texts": header("<U0", f"({10**12},)"), "hexadecimal": header("<f4", f"(0x{'f' * 300},)", bytes(4)),
        "axes": header("|u1", "(" + "1, " * 64 + ")", b"\1"), "nothing": header("<f4", f"(0, {1 << 62})"),
    }  # fmt: skip
    found = {name: b"n" + data for name, data in arrays.items()}
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        found[f"archive {kind}"] = b"z" + archive({f"{n}.npy": d for n, d in arrays.items()}, kind)
        found[f"zeros {kind}"] = b"z" + archive({"x.npy": header("|u1", "(50000,)", bytes(50000)), "y.txt": b""}, kind)
    return found


if __name__ == "__main__":
    harness.run(read, seeds(), 2048)
