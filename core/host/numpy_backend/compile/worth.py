"""Whether a plan is quicker than the model itself.

A plan copies what it is given and what it returns, and saves what Python does around every call, and memory for what
lies in between. For a few calls on large arrays the copies take longer. The model itself then runs, in each call.
With EMBERLET_PLANS=always in the environment every model is run by its plan: for tests.
"""

from __future__ import annotations

import os

from ..storage import Array
from .steps import Writer
from .threads.splitting import SPEED

CALL = 2.6e-6  # seconds that a call of a plan takes besides its steps and copies
PRIMITIVE, STEP = 1.5e-6, 0.7e-6  # seconds that a plan saves for each primitive of the model, and for each NumPy call


def pays(writer: Writer, inputs: list[Array], roots: list[Array]) -> bool:
    """Whether the plan of a Writer is quicker. inputs, roots: the arrays that arguments are copied to, and results
    from."""
    if os.environ.get("EMBERLET_PLANS") == "always":
        return True
    buffers = writer.buffers
    written = {id(buffers.of(a)) for step in writer.steps for a in step.writes}
    found = [buffers.of(a) for a in roots]
    # A plan gives each result memory of its own, so that the model must do so too: it returns no part of an argument.
    if len({id(b) for b in found}) < len(roots) or not all(
        b is not None and id(b) in written and a.flags.c_contiguous and a.nbytes == b.nbytes
        for a, b in zip(roots, found, strict=True)
    ):
        return True
    copied = sum(a.nbytes for a in (*inputs, *roots))
    ends = {id(buffers.of(a)) for a in (*inputs, *roots)}
    between = sum(b.nbytes for b in buffers.all if id(b) not in ends)
    saved = PRIMITIVE * len(writer.calls) + STEP * len(writer.steps) + between / SPEED
    return saved >= CALL + 2 * copied / SPEED
