"""TensorFlow Lite's operators with one thing of the file changed are refused with a reason, or become the layers that
are recorded.

Changed are an operator's options, inputs and outputs, and a tensor's shape, dtype, scales, zero points and numbers. So
the ends of what is converted, its defaults and its messages do not move unseen. Other tests compare results.
`UPDATE_SNAPSHOTS=1 pytest` on this file records them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.errors import EmberletError
from emberlet.micro.builder.tflite import importing
from emberlet.micro.builder.tflite.reading import FileGraph, FileOperator, FileTensor, read_file
from support.microcontrollers.outcomes import lines_of, of_its_own, outcome
from support.recorded import assert_recorded

from tools.microcontrollers.tflite_files import drawn

from . import test_tflite_floats, test_tflite_operators, test_tflite_refusals

RECORDED = Path(__file__).with_name("recorded_tflite_changes.txt")
Graphs = tuple[FileGraph, ...]
DTYPES = ("INT8", "UINT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT16", "BOOL", "STRING")


def files() -> Iterator[tuple[str, bytes | Callable[[], Any]]]:
    """Files, or functions that read one."""
    rng = np.random.default_rng(78)
    for kind, op in (test_tflite_operators.OPERATORS | test_tflite_operators.NEAR).items():
        for dtype in op.dtypes:
            yield f"{kind} of {dtype}", test_tflite_operators.written(kind, op, dtype, rng)
    elsewhere = {name: op for name, (op, _) in test_tflite_floats.ELSEWHERE.items()}
    for name, op in (test_tflite_floats.OPERATORS | elsewhere).items():
        yield name, test_tflite_floats.written(op, len(op.outs) - 1)
    yield from (test_tflite_refusals.ACCEPTED | test_tflite_refusals.REFUSED).items()
    for dtype in ("int8", "uint8", "int16"):
        for seed in range(4):
            yield f"layers of {dtype} {seed}", drawn(seed, dtype)


def graphs_of(given: bytes | Callable[[], Any]) -> Graphs:
    """The content of a file, or of the one that a function reads."""
    if isinstance(given, bytes):
        return read_file(given, "m")
    found: list[Graphs] = []

    def kept(data: bytes, origin: str) -> Graphs:
        found.append(read_file(data, origin))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importing, "read_file", kept)
        try:
            given()
        except EmberletError:
            pass
    return found[0]


def all_changes(graphs: Graphs) -> Iterator[tuple[str, Graphs]]:
    """(what is changed, the file's content)."""
    first, *others = graphs
    yield "as it is", graphs
    for k, op in enumerate(first.operators):
        for label, made in operators(op):
            changed = (*first.operators[:k], made, *first.operators[k + 1 :])
            yield f"{op.kind} {k}: {label}", (replace(first, operators=changed), *others)
    for n, t in enumerate(first.tensors):
        for label, other in tensors(t):
            given = (*first.tensors[:n], other, *first.tensors[n + 1 :])
            yield f"{n}: {label}", (replace(first, tensors=given), *others)
    yield "no inputs", (replace(first, inputs=()), *others)
    yield "no outputs", (replace(first, outputs=()), *others)
    yield "an output twice", (replace(first, outputs=first.outputs * 2), *others)
    yield "an input as output", (replace(first, outputs=(*first.outputs, *first.inputs)), *others)
    yield "no operators", (replace(first, operators=()), *others)
    yield "all twice", (replace(first, operators=first.operators * 2), *others)


def operators(op: FileOperator) -> Iterator[tuple[str, FileOperator]]:
    for name, value in op.options.items():
        yield f"no {name}", replace(op, options={k: v for k, v in op.options.items() if k != name})
        if isinstance(value, bool):
            others: list[Any] = [not value]
        elif isinstance(value, int):
            others = [v for v in (value + 1, value - 1, 0, 2, 3, -1) if v != value]
        else:
            others = [value * 2, 0.0] if isinstance(value, float) else [type(value)()]
        for other in others:
            yield f"{name}={other}", replace(op, options={**op.options, name: other})
    for k in range(len(op.inputs)):
        yield f"input {k} absent", replace(op, inputs=(*op.inputs[:k], -1, *op.inputs[k + 1 :]))
    if op.inputs:
        yield "an input less", replace(op, inputs=op.inputs[:-1])
        yield "an input more", replace(op, inputs=(*op.inputs, op.inputs[0]))
        yield "inputs reversed", replace(op, inputs=op.inputs[::-1])
    yield "an output less", replace(op, outputs=op.outputs[:-1])
    yield "outputs twice", replace(op, outputs=op.outputs * 2)


def tensors(t: FileTensor) -> Iterator[tuple[str, FileTensor]]:
    yield "no name", replace(t, name="")
    yield "another's name", replace(t, name="t0")
    for axis, size in enumerate(t.shape):
        for other in (size + 1, size - 1, -1, 2 * size):
            yield f"{axis}={other}", replace(t, shape=(*t.shape[:axis], other, *t.shape[axis + 1 :]))
    yield "one more axis", replace(t, shape=(1, *t.shape))
    yield "an axis less", replace(t, shape=t.shape[1:])
    for dtype in DTYPES:
        yield dtype.lower(), replace(t, dtype=dtype)
    yield "a scale", replace(t, scales=(0.25,), zeros=(3,))
    yield "no scale", replace(t, scales=(), zeros=())
    for factor in (2.0, 1e3, 1e-3, 0.0, -1.0, float("inf")):
        yield f"scales times {factor}", replace(t, scales=tuple(s * factor for s in t.scales))
    for k in (1, -1, 3, 128, -128, 256):
        yield f"zeros {k:+}", replace(t, zeros=tuple(z + k for z in t.zeros))
    yield "scales twice", replace(t, scales=t.scales * 2, zeros=t.zeros * 2, axis=0)
    yield "zeros twice", replace(t, zeros=t.zeros * 2)
    yield "another axis", replace(t, axis=t.axis + 1)
    if t.data is None:
        yield "a constant", replace(t, data=bytes(int(np.prod([max(n, 0) for n in t.shape]))))
        return
    yield "not constant", replace(t, data=None)
    yield "a byte more", replace(t, data=t.data + b"\0")
    yield "zeros alone", replace(t, data=bytes(len(t.data)))
    if t.data:
        yield "first byte +1", replace(t, data=bytes([t.data[0] + 1 & 255]) + t.data[1:])


def outcome_of(graphs: Graphs) -> str:
    def read() -> Any:
        converting = importing.Converting(graphs, "m")
        converting.run()
        return converting.graph()

    return outcome(read)


FILES = dict(files())


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_one_thing_changed_becomes_what_is_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "translate", of_its_own(importing.translate))
    lines = lines_of(RECORDED, name, dict(all_changes(graphs_of(FILES[name]))), outcome_of)
    assert lines
    assert_recorded(RECORDED, name, lines)
