"""Coverage-guided fuzzing of the readers of weight files: python tests/fuzz/fuzz_stores.py [-max_total_time=60].

Needs atheris. Whatever the bytes are, a reader opens them and reads its tensors, or raises an EmberletError. Starts
from the files of tests/support/weight_files.py. The first byte of an input says which reader gets the rest.
"""

import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness, multiplied

harness.instrument("emberlet.store", "emberlet.burnpack", "emberlet.host.npy")

from emberlet.errors import EmberletError  # noqa: E402
from support import weight_files  # noqa: E402

FORMATS = ["burnpack", "safetensors", "pytorch", "gguf", "npz", "onnx", "record"]


def read(data: bytes) -> None:
    if not data:
        return
    try:
        weight_files.read_whole(data[1:], FORMATS[data[0] % len(FORMATS)])
    except EmberletError:
        return


def seeds() -> dict[str, bytes]:
    """The files of every format, each after the number of its reader."""
    return {
        f"{kind} {i}": bytes([FORMATS.index(kind)]) + data
        for kind, files in weight_files.seeds().items()
        for i, (_, data) in enumerate(files)
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    harness.run(read, seeds(), 4096, build=multiplied.weights(FORMATS))
