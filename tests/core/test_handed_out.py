"""What other libraries were given of a tensor's memory outlives an assignment to the tensor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from emberlet import nn


def test_an_assignment_changes_no_memory_that_was_handed_out(tmp_path: Path) -> None:
    """In a process of its own, which reading freed memory may end."""
    path = tmp_path / "weights.bpk"
    nn.Linear(150, 150, backend="numpy").save_file(path)
    command = [sys.executable, "-c", _HANDED_OUT, path]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Every way out, of memory of every origin, with and without others that share it. Prints what differs afterward.
_HANDED_OUT = """
import array, sys
import emberlet, numpy as np
from emberlet import nn

COUNT = 22_500
NUMBERS = np.arange(COUNT, dtype=np.float32) + 1

def weight(backend):
    layer = nn.Linear(150, 150, backend=backend)
    layer.load_file(sys.argv[1])
    return layer.weight.val()

MADE = {
    "array of NumPy": lambda b: emberlet.asarray(NUMBERS.copy(), backend=b),
    "array of Python": lambda b: emberlet.asarray(array.array("f", NUMBERS), backend=b),
    "list": lambda b: emberlet.asarray(NUMBERS.tolist(), backend=b),
    "result": lambda b: emberlet.asarray(NUMBERS, backend=b) + 0,
    "turned": lambda b: (emberlet.asarray(NUMBERS, backend=b) + 0).reshape((150, 150)).T,
    "backward": lambda b: (emberlet.asarray(NUMBERS, backend=b) + 0)[::-1],
    "part": lambda b: (emberlet.asarray(NUMBERS, backend=b) + 0)[7:],
    "bytes": lambda b: emberlet.get_backend(b).from_bytes(NUMBERS.tobytes(), emberlet.float32, (COUNT,)),
    "file": weight,
}
HANDED = {
    "asarray": np.asarray,
    "part of asarray": lambda x: np.asarray(x)[3:],
    "array": lambda x: np.array(x, copy=None),
    "__array__": lambda x: x.__array__(),
    "interface": lambda x: x.__array_interface__,
    "from_dlpack": np.from_dlpack,
    "buffer": lambda x: x.__buffer__(0),
    "memoryview": lambda x: memoryview(x) if sys.version_info >= (3, 12) else x.__buffer__(0),
    "to_data": lambda x: x.to_data(),
    "python": lambda x: emberlet.asarray(x, backend="python"),
    "numpy": lambda x: emberlet.asarray(x, backend="numpy"),
    "other": lambda x: emberlet.from_dlpack(x, backend="numpy" if x.backend.name == "python" else "python"),
}

def values(handed):
    if isinstance(handed, dict):
        handed = type("Interface", (), {"__array_interface__": handed})()
    return np.array(handed, copy=True)

for backend in ("numpy", "python"):
    for made, make in MADE.items():
        for name, hand in HANDED.items():
            for shared in (False, True):
                for key in (0, ...):
                    x = make(backend)
                    view = x[..., 1:] if shared else None
                    try:
                        handed = hand(x)
                    except BufferError:  # a view has no memoryview on python
                        continue
                    before, itself = values(handed), handed is x
                    x[key] = -1.0
                    del view
                    others = [np.full(COUNT, 7, np.float32) for _ in range(3)]
                    if not itself and not np.array_equal(values(handed), before):
                        print(backend, made, name, shared, key)
                    assert np.asarray(x)[key].max() == -1.0
"""
