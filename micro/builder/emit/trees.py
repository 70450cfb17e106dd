"""The parts of a module for an ensemble of trees: they convert features to ranks, and words to scores."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from ..kernels.trees import MIDDLE
from ..program import Program
from .ranks import starts_kind

_PUT = '''
def put(numbers, which=0):
    """Write the features, as numbers."""
BEGINNING    if type(numbers) in (bytes, bytearray):
        numbers = memoryview(numbers)  # of which an array takes the numbers, not the bits
    numbers = array("f", numbers)
    if len(numbers) != FEATURES:
        raise ValueError("the model takes FEATURES features, found {}".format(len(numbers)))
COPIES    _kernels.rank(numbers, input, len(numbers), _cuts, _starts, _nan)
'''

_COPIES = """\
    for k in _copies:
        numbers.append(numbers[k])
"""

_GET = '''
def get(which=0):
    """The scores, as a list."""
    found = [{step!r} * (s - {middle}) for s in array("I", bytes(output))]
{transform}    return found


def best(which=0):
    """The index of the greatest score."""
    found = list(array("I", bytes(output)))
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
        f"_cuts = array('f', {numbers!r})",
        f"_starts = array({starts_kind(program.inputs[0])!r}, {starts!r})",
        f"_nan = array('H', {list(nan)!r})",
        *([f"_copies = {copies!r}"] if copies else []),
    ]


def trees_functions(program: Program) -> str:
    """`put`, `get` and `best`."""
    port, sums = program.inputs[0], program.outputs[0].sums
    assert sums is not None and port.cuts is not None
    get = _GET.format(middle=MIDDLE, step=sums.step, transform=_TRANSFORMS[sums.transform])
    put = _PUT.replace("COPIES", _COPIES if port.nan[1] else "")
    return put.replace("FEATURES", str(len(port.cuts) - len(port.nan[1]))) + "\n" + get
