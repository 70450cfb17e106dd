"""Traces a model to be saved: as a plan for the GPU (plan/writer.py) or as a WebAssembly module (wasm/writer.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberlet.backend import get_backend
from emberlet.backend.sizes import known_equal
from emberlet.errors import ModelError
from emberlet.tensor import Tensor

from ..record.host_evaluation import evaluate
from ..record.node import ValueNeeded, unpacked
from ..record.tracing import constants, trace


def traced_for(
    model: Any, examples: Sequence[Tensor], backend: Any, shapes: list[Any] | None = None
) -> tuple[Any, list[Any]]:
    """(the Trace of model(*examples) on a backend that only plans, with what depends on no input computed; the nodes of
    its results). shapes: those of the examples, with Sizes for open axes. Raises ModelError if the model is not a
    single plan, SizeNeeded if a size cannot be left open."""
    if hasattr(model, "fork"):
        for param in model.params():
            param.val()  # a lazy parameter would be initialized differently here and in the copy
        model = model.fork(backend)
    try:
        traced = trace(model, examples, backend, shapes)
    except ValueNeeded as error:
        raise ModelError(f"this model cannot be saved as a plan: {error}") from error
    structure = traced.structure
    if structure[0] == "tensor":
        structure = (tuple, [structure])
    if structure[0] not in (tuple, list) or any(part[0] != "tensor" for part in structure[1]):
        raise ModelError("a model that is saved as a plan must return a tensor, or a tuple of tensors, on the GPU")
    # Results are written with one word per element, also a result that is an input.
    traced.roots = [unpacked(r) for r in traced.roots]
    evaluate(constants(traced.roots, launched=False), get_backend("numpy"))
    results = [traced.roots[part[1]] for part in structure[1]]
    if any(known_equal(r.count, 0) for r in results):
        raise ModelError("a model that is saved as a plan must not return empty tensors")
    return traced, results
