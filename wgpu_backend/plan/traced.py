"""Traces a model to be saved: as a plan for the GPU (plan/writer.py) or as a WebAssembly module (wasm/writer.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberlet import dtypes
from emberlet.backend.axes import argument_names
from emberlet.backend.tracing import ValueNeeded, forked
from emberlet.errors import ModelError
from emberlet.sizes.questions import known_equal, smaller
from emberlet.tensor import Tensor

from ..record.index_checks import index_checks
from ..record.index_ranges import SAME_VALUES, index_ranges
from ..record.merging import merge_levels
from ..record.node import unpacked
from ..record.tracing import constants, trace
from .narrowing import compute, narrow


def traced_for(
    model: Any, examples: Sequence[Tensor], backend: Any, shapes: list[Any] | None = None
) -> tuple[Any, list[Any]]:
    """(the Trace of model(*examples) on a backend that only plans, with what depends on no input computed, of which
    `narrow` tells what is known of 8 bits; the nodes of its results). shapes: those of the examples, with Sizes for
    open axes. Raises ModelError if the model is not a single plan, SizeNeeded if a size cannot be left open."""
    try:
        traced = trace(forked(model, backend), examples, backend, shapes)
    except ValueNeeded as error:
        raise ModelError(f"this model cannot be saved as a plan: {error}") from error
    structure = traced.structure
    if structure[0] == "tensor":
        structure = (tuple, [structure])
    if structure[0] not in (tuple, list) or any(part[0] != "tensor" for part in structure[1]):
        raise ModelError("a model that is saved as a plan must return a tensor, or a tuple of tensors, on the GPU")
    merge_levels(traced.roots)
    # Results are written with one word per element, also a result that is an input.
    traced.roots = [unpacked(r) for r in traced.roots]
    once = constants(traced.roots, launched=False)
    traced.narrow = narrow(once, backend)
    compute(traced.narrow, once, backend.host)
    results = [traced.roots[part[1]] for part in structure[1]]
    if any(known_equal(r.count, 0) for r in results):
        raise ModelError("a model that is saved as a plan must not return empty tensors")
    return traced, results


def port_names(
    model: Any, arguments: int, results: int, inputs: Sequence[str] | None, outputs: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """The names of a file's inputs and outputs: those given, else those in the signature of `forward` and "output0" ….
    Raises ModelError if they are too few, too many, or not different."""
    named = list(inputs or argument_names(model, arguments)), list(outputs or [f"output{i}" for i in range(results)])
    for what, names, count in zip(("inputs", "outputs"), named, (arguments, results), strict=True):
        if len(names) != count or len(set(names)) != count:
            raise ModelError(f"the model has {count} {what}: name each once, found {names}")
    return named


def checked_indices(traced: Any, backend: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """The indices that follow from the inputs in a few steps (record/index_checks.py), other than inputs themselves,
    which the loader checks: (a new root of the trace, which is the lowest and the highest of them; the limits). The
    plan computes these, so that no runtime needs the functions of a host backend."""
    found = []
    direct = index_ranges(traced.roots)
    for check in index_checks(traced.roots):
        _, lowest, end, _, _ = check.limits
        source = check.node
        while source.op in SAME_VALUES:
            source = source.srcs[0]
        if source.op == "input" and not known_equal(lowest, 0) and source.arg in direct:
            length = direct[source.arg]
            if known_equal(length, end) or known_equal(smaller(length, end), length):
                continue
        if known_equal(check.node.count, 0):
            continue
        index = Tensor(check.node, check.node.dtype, check.node.shape, backend)
        if index.dtype.bits < 32:
            index = backend.cast(index, dtypes.int32)
        axes = tuple(range(index.ndim))
        ends = [backend.reshape(backend.reduce(op, index, axes, False), (1,)) for op in ("min", "max")]
        traced.roots.append(unpacked(backend.concat(ends, 0).data))
        found.append((traced.roots[-1], check.limits))
    return found
