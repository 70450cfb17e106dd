"""Whether the plan of a model is quicker than the model itself."""

from __future__ import annotations

import os

from ....backend.tracing import Trace
from ....tensor import Tensor
from ..storage import Array
from .blocks import LONG
from .lowering import is_view, is_whole
from .steps import Writer

CALL_OF_PLAN = 2.6e-6  # seconds that a call of a plan takes besides its steps and copies
PRIMITIVE, STEP = 1.5e-6, 0.7e-6  # seconds that a plan saves for each primitive of the model, and for each NumPy call
SPEED = 1.5e10  # bytes that are copied in a second


def converted(trace: Trace) -> int:
    """The bytes of constant integers that the model converts in each call, where a plan keeps them as floats."""
    products = [call for call in trace.calls if call.op in ("conv_8bit", "matmul_8bit")]
    return sum(x.data.nbytes for call in products for x in call.args[:2] if isinstance(x, Tensor))


def pays(writer: Writer, inputs: list[Array], roots: list[Array], converted: int = 0) -> bool:
    """Whether the plan of a Writer is quicker than the model itself, which otherwise runs. inputs, roots: the arrays
    that arguments are copied to, and results from; converted: bytes that the model converts in each call.

    A plan copies what it is given and what it returns. It saves what Python does around every call, memory for what
    lies in between.
    With EMBERLET_PLANS=always in the environment every model is run by its plan: for tests.
    """
    if os.environ.get("EMBERLET_PLANS") == "always":
        return True
    roots = [a for a in roots if a.size]  # nothing is shared or copied of an empty result
    if not _owns(writer, inputs, roots):
        return True
    copied = sum(a.nbytes for a in (*inputs, *roots))
    if not writer.steps:  # arguments are put together: the model copies each once, with more of Python than PRIMITIVE
        return copied < LONG
    buffers = writer.buffers
    ends = {id(buffers.of(a)) for a in (*inputs, *roots)}
    between = sum(b.nbytes for b in buffers.all if id(b) not in ends)
    # A primitive that is called as the model calls it saves nothing, and its results are copied.
    whole = [step for step in writer.steps if is_whole(step)]
    twice = 2 * sum(a.nbytes for step in whole for a in step.writes)
    saved = PRIMITIVE * (len(writer.calls) - len(whole)) + STEP * (len(writer.steps) - len(whole))
    return saved + (between - twice + converted) / SPEED >= CALL_OF_PLAN + 2 * copied / SPEED


def _owns(writer: Writer, inputs: list[Array], roots: list[Array]) -> bool:
    """Whether the model gives each result memory of its own, as a plan does: it returns what it has written or put
    together, and no part of an argument or of another result."""
    buffers = writer.buffers
    written = {id(buffers.of(a)) for step in writer.steps if not is_view(step) for a in step.writes}
    longest: dict[int, int] = {}  # id of a buffer -> bytes of the longest argument in it
    for a in inputs:
        key = id(buffers.of(a))
        longest[key] = max(longest.get(key, 0), a.nbytes)
    found = [buffers.of(a) for a in roots]
    return len({id(b) for b in found}) == len(roots) and all(
        b is not None
        and (id(b) in written or b.fill is not None or 0 < longest.get(id(b), 0) < a.nbytes)
        and a.flags.c_contiguous
        and a.nbytes == b.nbytes
        for a, b in zip(roots, found, strict=True)
    )
