"""The parts of a module for an ensemble of trees: they convert features to ranks, and words to scores."""

from __future__ import annotations

from itertools import accumulate
from math import frexp

import numpy as np

from ..kernels.trees import MIDDLE
from ..program import Port, Program
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

_WORDS = """\
try:
    from uctypes import ARRAY, LITTLE_ENDIAN, UINT32, addressof, struct

    _words = struct(addressof(outputs[0]), (ARRAY, UINT32 | {count}), LITTLE_ENDIAN)
except ImportError:
    _words = None  # `get` copies them
"""

_GET = '''
def get(which=0):
    """The scores, as a list."""
SOURCE    found = SCORES
TRANSFORM    return found


def best(which=0):
    """The index of the greatest score."""
SOURCE    found = WORDS
    return found.index(max(found))
'''

_SOURCE = """\
    words = _words or array("I", bytes(output))
"""

MOST_NAMED = 10
"""Of more sums, a copy and a loop take fewer instructions."""

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
        'if hasattr(_kernels, "order"):',
        "    _kernels.order(_cuts, len(_cuts))",
        f"_starts = array({starts_kind(program.inputs[0])!r}, {starts!r})",
        f"_nan = array('H', {list(nan)!r})",
        *([f"_copies = {copies!r}"] if copies else []),
        *(_step(program.outputs[0].sums.step) if program.outputs[0].sums else []),
        *([_WORDS.format(count=program.outputs[0].size // 4)] if is_named(program.outputs[0]) else []),
    ]


def _step(step: float) -> list[str]:
    """Lines that set `_step`: exactly if it is a power of two, which MicroPython does not read so from decimal digits
    where floats have 32 bits."""
    mantissa, exponent = frexp(step)
    if mantissa != 0.5:
        return [f"_step = {step!r}"]
    return ["from math import ldexp", f"_step = ldexp(1.0, {exponent - 1})", "del ldexp"]


def trees_functions(program: Program) -> str:
    """`put`, `get` and `best`."""
    port, sums = program.inputs[0], program.outputs[0].sums
    assert sums is not None and port.cuts is not None
    named = [f"words[{k}]" for k in range(program.outputs[0].size // 4)]
    if is_named(program.outputs[0]):
        scores = f"[{', '.join(f'_step * ({word} - {MIDDLE})' for word in named)}]"
        source, words = _SOURCE, f"[{', '.join(named)}]"
    else:
        scores = f'[_step * (s - {MIDDLE}) for s in array("I", bytes(output))]'
        source, words = "", 'list(array("I", bytes(output)))'
    get = _GET.replace("SOURCE", source).replace("SCORES", scores).replace("WORDS", words)
    get = get.replace("TRANSFORM", _TRANSFORMS[sums.transform])
    put = _PUT.replace("COPIES", _COPIES if port.nan[1] else "")
    return put.replace("FEATURES", str(len(port.cuts) - len(port.nan[1]))) + "\n" + get


def is_named(port: Port) -> bool:
    """Whether `get` names each of an output's sums."""
    return bool(port.sums) and port.size <= 4 * MOST_NAMED
