"""Writes a model as a WebAssembly module (file.py)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from emberlet.backend.axes import argument_names
from emberlet.errors import ModelError
from emberlet.sizes.questions import known_equal

from ..plan.data import Buffer
from ..plan.make import make_plan
from ..plan.storing import encoded
from ..plan.traced import checked_indices, traced_for
from ..record.index_ranges import index_ranges
from .file import NAME, SIMD, VERSION
from .image import Image
from .kernels.table import Options
from .prepare import materialize, prepare
from .sections import checksum

MOST = 1 << 30  # the most bytes of a module that browsers accept


def save(
    path: str,
    model: Any,
    *examples: Any,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    weights: str | None = None,
) -> Any:
    """Trace model(*examples) for their dtypes and shapes and write its module to `path`; returns the Plan.

    inputs, outputs, weights: as in plan/writer.py. Raises ModelError if the model is not a single plan or is too large.
    """
    from emberlet.host.files import atomic_write

    from .backend import WasmBackend

    backend = WasmBackend(planning=True)
    traced, results = traced_for(model, examples, backend)
    checks = checked_indices(traced, backend)
    materialize(traced.roots, backend.host)
    prepare(traced.roots)
    simple, _ = make_plan(traced.roots, Options(relaxed=False), False)
    plan, externals = make_plan(traced.roots, Options(), False)
    given: dict[int, int] = {}
    data: dict[int, Any] = {}
    stored: dict[int, str] = {}
    for number, node in zip(plan.externals, externals):
        if node.op == "input":
            given[node.arg] = number
        else:
            parts = encoded(weights, node.arg) if node.word == "f32" else []
            data[number] = [part.tobytes() for part in parts] or node.arg
            if parts and weights:
                stored[number] = weights
    for node in traced.inputs:
        if node.arg not in given:  # no result uses it, but callers still pass it
            given[node.arg] = len(plan.buffers)
            for one in (plan, simple):
                one.buffers.append(Buffer("external", node.nbytes))
    image = Image(plan, stored)
    names = list(inputs or argument_names(model, len(examples)))
    labels = list(outputs or ["output{}".format(i) for i in range(len(results))])
    places = {}
    for i, r in enumerate(traced.roots):
        places[id(r)] = image.addresses[plan.outputs[i]]
    lengths = index_ranges(traced.roots)
    content = {
        "version": VERSION,
        "threads": image.threads,
        "checksum": "crc32",
        "inputs": [
            [names[n.arg], n.dtype.name, list(n.shape), image.addresses[given[n.arg]], n.nbytes] for n in traced.inputs
        ],
        "outputs": [
            [labels[i], r.dtype.name, list(r.shape), places[id(r)], r.count * 4] for i, r in enumerate(results)
        ],
        "indices": [[at, lengths[n.arg]] for at, n in enumerate(traced.inputs) if n.arg in lengths],
    }
    if checks:
        content["computed_indices"] = [
            [r.dtype.name, places[id(r)], end, not known_equal(lowest, 0), message, axis]
            for r, (_, lowest, end, message, axis) in checks
        ]
    custom = [(NAME, json.dumps(content).encode()), (SIMD, Image(simple, stored).code())]
    whole = image.file(custom, data)
    whole += checksum(whole)
    if len(whole) > MOST:
        raise ModelError("the module would have {} bytes; browsers accept {}".format(len(whole), MOST))
    with atomic_write(path) as file:
        file.write(whole)
    return plan
