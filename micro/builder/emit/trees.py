"""The parts of a module for an ensemble of trees: they convert features to ranks, and words to scores."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from ..kernels.trees import MIDDLE
from ..program import Program

_PUT = '''
def put(numbers, which=0):
    """Write the features, as numbers."""
    i = 0
    for v in numbers:
        if i < FEATURES:
            _one[0] = v  # rounded to 32 bits, as the trees' own numbers are
            _rank(_one[0], i)
COPIES        i += 1
    if i != FEATURES:
        raise ValueError("the model takes FEATURES features, found {}".format(i))


def _rank(v, i):
    low, high = _starts[i], _starts[i + 1]
    while low < high:
        middle = (low + high) >> 1
        if v > _cuts[middle]:
            low = middle + 1
        else:
            high = middle
    rank = low - _starts[i] if v == v else _nan[i]
STORE
'''

_COPIES = """\
            for k in range(len(_copies)):
                if _copies[k] == i:
                    _rank(_one[0], FEATURES + k)
"""

_STORE = (
    "    input[i] = rank",
    "    input[2 * i] = rank & 255\n    input[2 * i + 1] = rank >> 8",
)

_GET = '''
def _sums():
    return [
        (output[i] | output[i + 1] << 8 | output[i + 2] << 16 | output[i + 3] << 24) - {middle}
        for i in range(0, len(output), 4)
    ]


def get(which=0):
    """The scores, as a list."""
    found = [{step!r} * s for s in _sums()]
{transform}    return found


def best(which=0):
    """The index of the greatest score."""
    found = _sums()
    return found.index(max(found))
'''

_TRANSFORMS = {
    None: "",
    "softmax": """\
    from math import exp

    most = max(found)
    found = [exp(v - most) for v in found]
    total = sum(found)
    found = [v / total for v in found]
""",
    "logistic": """\
    from math import exp

    found = [1 / (1 + exp(-v)) if v > -80 else 0.0 for v in found]
""",
}


def trees_state(program: Program) -> list[str]:
    """The thresholds by which features are ranked, feature by feature, the offset of each
    feature's, and the rank of NaN."""
    cuts, (nan, copies) = program.inputs[0].cuts or (), program.inputs[0].nan
    starts = [0, *accumulate(map(len, cuts))]
    numbers = np.asarray([n for row in cuts for n in row], "<f4").tobytes()
    return [
        "from array import array\n",
        f"_cuts = array('f', {numbers!r})",
        f"_starts = array({'H' if starts[-1] < 65536 else 'I'!r}, {starts!r})",
        "_one = array('f', [0.0])",
        f"_nan = array('H', {list(nan)!r})",
        *([f"_copies = {copies!r}"] if copies else []),
    ]


def trees_functions(program: Program) -> str:
    """`put`, `get` and `best`."""
    port, sums = program.inputs[0], program.outputs[0].sums
    assert sums is not None and port.cuts is not None
    get = _GET.format(middle=MIDDLE, step=sums.step, transform=_TRANSFORMS[sums.transform])
    put = _PUT.replace("STORE", _STORE[port.size > len(port.cuts)])
    put = put.replace("COPIES", _COPIES if port.nan[1] else "")
    return put.replace("FEATURES", str(len(port.cuts) - len(port.nan[1]))) + "\n" + get
