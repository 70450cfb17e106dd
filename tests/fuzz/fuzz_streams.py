"""Coverage-guided fuzzing of sessions and of sound: python tests/fuzz/fuzz_streams.py [-max_total_time=60].

Needs atheris. The input is a list of calls. A session takes arrays of any dtype and shape, and is rewound, forked,
pickled and reset; it either steps or raises an EmberletError, and its length is then what it was. `LogMel` and `Rows`
take any samples or raise ValueError, and give numbers of their ranges.
"""

import array
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness, multiplied

harness.instrument("emberlet.session", "emberlet.micro")

import numpy as np  # noqa: E402
from emberlet.errors import EmberletError  # noqa: E402
from emberlet.micro.audio import LogMel  # noqa: E402
from emberlet.micro.stream import Rows  # noqa: E402
from support import session_models  # noqa: E402

CALLS = 12  # maximum calls of an input
DTYPES = (np.float32, np.float32, np.float32, np.float64, np.int64, np.bool_, np.uint8)


def read(data: bytes) -> None:
    n = multiplied.Numbers(data)
    (session if n.below(2) else sound)(n, min(len(data), CALLS))


def given(n: multiplied.Numbers):  # type: ignore[no-untyped-def]
    """Something that may be an input."""
    kind = n.below(12)
    if kind < 7:
        shape = (1 + n.below(3), 2) if n.below(3) else tuple(n.below(4) for _ in range(n.below(4)))
        return np.full(shape, n.below(9), DTYPES[kind])
    return ([[1.0, 2.0]], [[float("nan"), 1]], [[]], "x", None)[kind - 7]


def session(n: multiplied.Numbers, calls: int) -> None:
    made = session_models.session(capacity=1 + n.below(9))
    for _ in range(calls):
        before, step = made.length, False
        try:
            what = n.below(8)
            if what < 4:
                step = True
                made.step(given(n), given(n) if n.below(8) == 0 else session_models.ROW)
            elif what == 4:
                made.rewind(n.below(5))
            elif what == 5:
                made = made.fork()
            elif what == 6:
                made = pickle.loads(pickle.dumps(made))
            else:
                made.snapshot() if n.below(4) else made.reset()
        except EmberletError:
            assert made.length == before
        assert not step or made.length >= before


def sound(n: multiplied.Numbers, calls: int) -> None:
    try:
        front = LogMel(8000, 1 << n.below(9), 1 + n.below(200), 1 + n.below(16), 60, 100 + 16 * n.below(256))
        rows = Rows(
            memoryview(bytearray(4 * (1 + n.below(16)))), 0.5, n.below(256), 1 + n.below(8), 1 + n.below(3), 1 / 256
        )
    except ValueError:
        return
    for _ in range(calls):
        samples = array.array(
            "h", [256 * n.below(256) - 32768 + n.below(2) for _ in range(n.below(64))] * (1 + n.below(4))
        )
        try:
            if front.push(samples):
                found = front.features()
                assert all(0 <= v < 1 << 16 for v in found), list(found)
                rows.append(found)
        except ValueError:
            pass


def seeds() -> dict[str, bytes]:
    return {str(i): np.random.default_rng(i).bytes(20 + 3 * i) for i in range(40)}


if __name__ == "__main__":
    harness.run(read, seeds(), 512)
