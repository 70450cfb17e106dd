"""Writes a compiled training step to a file: its plan, and the weights and the optimizer's state with which it begins.

The metadata entry "emberlet.step" is JSON: {"version": 1, "draws": how many inputs are random words, "parameters": [[a
name, …]], "states": [name], "carried": [[number of a parameter, or behind these of a state, output]], "numbers":
[number], "counts": [[name, value, number or null, [name in the optimizer's record, …]]], "result": "tensor", "tuple" or
"dict"}. The inputs are the numbers, the random words, the parameters, the states and the batch. A number is a name
("lr", or of a count), a literal, or [operator, number, number]. Tensors of parameters have their first name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from emberlet import dtypes
from emberlet.backend.axes import argument_names, of_model
from emberlet.errors import ArgumentError, ModelError
from emberlet.tensor import Tensor
from emberlet.training_step import FIRST_NUMBERS
from emberlet.training_step.batch_size import NAME
from emberlet.training_step.saving import Contents, plain

from ..record.tracing import trace
from ..run import storage
from .data import KEY_STEP, Plan

VERSION = 1


def save(
    path: str,
    step: Any,
    *examples: Any,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    weights: str | None = None,
    dims: dict[str, Any] | None = None,
) -> Plan:
    """`writer.save` of a CompiledStep. examples: a batch; inputs, outputs: names of the batch's tensors, and of what
    the loss function returns; dims: None, or the limit of the batch's length, {"batch": 64} or {"batch": (2, 64)}.

    Raises ArgumentError for too few or too many names, ModelError where the step has no single plan, or the loss
    function returns something other than tensors.
    """
    from ..backend import WgpuBackend
    from . import writer
    from .opened import planned_for

    if path.endswith(".wasm"):
        raise ModelError("a training step is saved as a plan for WebGPU; give the file another name than .wasm")
    if dims is not None and list(dims) != [NAME]:
        raise ArgumentError(f'the open size of a step is its batch: dims={{"{NAME}": 64}}, found {dims!r}')
    backend = WgpuBackend(planning=True)
    contents = Contents(step, examples, backend)
    if any(not isinstance(x, Tensor) for x in contents.batch):
        raise ModelError("a step that is saved takes tensors only; use the other arguments inside the loss function")
    function, batch = contents.function, contents.batch
    kept = [x for _, x, _ in contents.parameters] + [x for _, x in contents.states]
    labels: list[str] = []
    result = "tensor"

    def flat(*given: Any) -> tuple[Any, ...]:
        nonlocal result
        out, new, states = function(*given)
        labels[:], parts, result = _named(out)
        return (*parts, *new, *states)

    def arguments(opening: Any) -> list[Any]:
        """Those of a trace with as many numbers and random words as the one before took."""
        numbers = backend.full((len(function.numbers) or FIRST_NUMBERS,), 0, dtypes.float32)
        shapes = [numbers.shape, *function.draws, *(x.shape for x in kept)]
        if opening is not None:
            opening.shapes = shapes + opening.axes.shapes(opening.symbols, [x.shape for x in batch])
        words = [backend.full((1,), 0, dtypes.uint32) if opening else backend.full(s, 0, dtypes.uint32)
                 for s in function.draws]  # fmt: skip
        return [numbers, *words, *kept, *batch]

    def planned(_: Any, __: Any, backend: Any, opening: Any = None) -> Any:
        function.draws, function.numbers = [], []
        trace(flat, arguments(opening), backend, None if opening is None else opening.shapes)
        return writer.planned(flat, arguments(opening), backend, opening)

    found = planned_for(flat, batch, backend, dims, planned, _axes(batch, dims[NAME]) if dims else None)
    first = 1 + len(function.draws)
    initial = {}
    for i, (names, x, id) in enumerate(contents.parameters):
        initial[first + i] = (names[0], _source(names[0], x, id))
    for i, (name, x) in enumerate(contents.states):
        initial[first + len(contents.parameters) + i] = (name, _source(name, x))
    for what, chosen, count in (("inputs", inputs, len(batch)), ("outputs", outputs, len(labels))):
        if chosen and len(chosen) != count:
            raise ArgumentError(f"{what} names {count} tensors, but has {len(chosen)} names: {list(chosen)}")
    given = inputs or argument_names(function.loss, 1 + len(batch))[1:]
    names = ["numbers", *(f"random{i}" for i in range(len(function.draws)))]
    names += [initial[i][0] for i in range(first, first + len(kept))]
    results = len(labels)
    carried = [[i, results + k] for k, i in enumerate(function.places())]
    _check_carried(carried, found[1], kept, names[first:])
    entry = {
        "version": VERSION,
        "draws": len(function.draws),
        "parameters": [names for names, _, _ in contents.parameters],
        "states": [name for name, _ in contents.states],
        "carried": carried,
        "numbers": [plain(n) for n in function.numbers],
        "counts": [
            [name, value, plain(function.counts[name]) if name in function.counts else None, known]
            for name, value, known in contents.counts
        ],
        "result": result,
    }
    labels = list(outputs or labels) + [names[first + i] for i, _ in carried]
    return writer.write(
        path, found, backend, names + list(given), labels, weights, initial, {KEY_STEP: json.dumps(entry)}
    )


def _axes(batch: Sequence[Any], limit: Any) -> Any:
    """The open axes of a batch: the first of each tensor that has as many items as the first one."""
    items = batch[0].shape[0] if batch[0].shape else 0
    shapes = {f"x{i}": x.shape for i, x in enumerate(batch)}
    opened = {name: {0: (NAME, limit)} for name, shape in shapes.items() if shape and shape[0] == items}
    return of_model(None, list(shapes), list(shapes.values()), opened)


def _check_carried(
    carried: Sequence[Sequence[int]], results: Sequence[Any], kept: Sequence[Any], names: Sequence[str]
) -> None:
    for i, k in carried:
        if results[k].dtype is not kept[i].dtype or tuple(results[k].shape) != tuple(kept[i].shape):
            raise ModelError(f"{names[i]!r} becomes of another dtype or shape in a step")


def _named(out: Any) -> tuple[list[str], list[Any], str]:
    """(names, tensors, "tensor" or "tuple" or "dict") of what a loss function returned. Raises ModelError."""
    if isinstance(out, Tensor):
        return ["loss"], [out], "tensor"
    if isinstance(out, tuple | list):
        found = {"loss" if i == 0 else f"output{i}": x for i, x in enumerate(out)}
        kind = "tuple"
    else:
        found = out if isinstance(out, dict) else getattr(out, "__dict__", {})
        kind = "dict"
    wrong = [name for name in found if not isinstance(found[name], Tensor)]
    if wrong or not found:
        raise ModelError(
            "the loss function of a step that is saved returns a tensor, or a tuple, a dict or an object of tensors"
            + (f"; {wrong[0]!r} is something else" if wrong else "")
        )
    return list(found), list(found.values()), kind


def _source(name: str, x: Any, id: int | None = None) -> Any:
    """The words of a tensor as the GPU takes them, as a tensor of a burnpack."""
    from emberlet.host import burnpack_writer

    from .writer import WORDS

    word = storage.packed(x.dtype) or storage.word(x.dtype)
    data = None if word is None else storage.widen(x.backend.to_bytes(x), x.dtype, x.size, storage.packed(x.dtype))
    if data is None:
        raise ModelError(f"{name!r} holds {x.dtype} that a GPU cannot")
    dtype = WORDS[word]
    count = memoryview(data).nbytes * 8 // dtype.bits
    return burnpack_writer.Source(dtype, x.shape if count == x.size else (count,), lambda: data, id)
