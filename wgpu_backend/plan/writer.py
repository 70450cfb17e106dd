"""Writes the plan of a model to a file, on the host and without a GPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.errors import ModelError
from emberlet.tensor import Tensor

from ..kernels.table import Options
from ..record.host_evaluation import evaluate
from ..record.index_ranges import index_ranges
from ..record.node import ValueNeeded, unpacked
from ..record.tracing import constants, trace
from .data import KEY, VERSION, VERSION_STORED, Plan
from .make import make_plan
from .reading import PAGE_BYTES
from .weight_order import reorder_weights

# SwiftShader stands for devices in software: it is the one that browsers bring.
CLASSES = {
    "gpu": ("gpu", False),
    "software": ("swiftshader", False),
    "subgroups": ("swiftshader", True),
}
_WORDS = {
    "f32": dtypes.float32,
    "i32": dtypes.int32,
    "u32": dtypes.uint32,
    "i8": dtypes.int8,
    "u8": dtypes.uint8,
}


def save(
    path: str,
    model: Any,
    *examples: Tensor,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    weights: str | None = None,
) -> Plan:
    """Trace model(*examples) for their dtypes and shapes and write its plan to `path`; returns the plan for GPUs.

    Where `path` ends in ".wasm", it is a WebAssembly module instead (wasm/file.py).
    model: a Module (which stays where it is) or a function of Tensors. inputs, outputs: names; from the signature of
    the model's `forward`, and "output0" …, where none are given. The plan is made for WebGPU's baseline limits.
    weights: how the file stores large weights, "float16" or "q8" (storing.py); they are float32 again once loaded.
    Raises ValueError for another word, ModelError if Python code of the model depends on values of its inputs, or a
    result is not on the GPU.
    """
    from emberlet.host import burnpack_writer

    from ..backend import WgpuBackend
    from .storing import parts_of

    if path.endswith(".wasm"):
        from ..wasm.file import save as save_module

        if weights is not None:
            raise ValueError("a WebAssembly file stores weights as float32")
        return save_module(path, model, *examples, inputs=inputs, outputs=outputs)
    traced, results = traced_for(model, examples, WgpuBackend(planning=True))
    host = get_backend("numpy")
    reorder_weights(traced.roots, lambda nodes: evaluate(nodes, host), {})
    plans = {name: make_plan(traced.roots, Options(c, subgroups=s), False) for name, (c, s) in CLASSES.items()}
    plan, externals = plans["gpu"]
    tensors: dict[str, Any] = {}
    fixed: list[list[Any]] = []
    given = {}
    for number, node in zip(plan.externals, externals, strict=True):
        if node.op == "input":
            given[node.arg] = number
            continue
        name = f"constant{len(fixed)}"
        stored = parts_of(weights, node.arg) if node.word == "f32" and node.nbytes <= PAGE_BYTES else []
        if stored:
            names = [name, f"{name}.scales"][: len(stored)]
            tensors |= zip(names, stored, strict=True)
            fixed.append([number, name, weights, names[1] if len(names) > 1 else None])
            continue
        fixed.append([number, name])
        tensors[name] = burnpack_writer.Source(
            _WORDS[node.word], (node.nbytes // (_WORDS[node.word].bits // 8),), lambda node=node: node.arg
        )
    names = list(inputs or argument_names(model, len(examples)))
    ports = []
    for node in traced.inputs:
        number = given.get(node.arg)
        if number is None:  # the results do not depend on it; it is still to be given
            plan.buffers.append(_unused(node))
            for other, _ in plans.values():
                if other is not plan:
                    other.buffers.append(_unused(node))
            number = len(plan.buffers) - 1
        ports.append([names[node.arg], node.dtype.name, list(node.shape), number])
    labels = list(outputs or [f"output{i}" for i in range(len(results))])
    roots = {id(r): plan.outputs[i] for i, r in enumerate(traced.roots)}
    lengths = index_ranges(traced.roots)
    content: dict[str, Any] = {
        "version": VERSION_STORED if any(len(constant) > 2 for constant in fixed) else VERSION,
        "indices": [[at, lengths[node.arg]] for at, node in enumerate(traced.inputs) if node.arg in lengths],
        "page_bytes": PAGE_BYTES,
        "inputs": ports,
        "outputs": [[labels[i], r.dtype.name, list(r.shape), roots[id(r)]] for i, r in enumerate(results)],
        "buffers": [[b.kind, b.nbytes] for b in plan.buffers],
        "constants": fixed,
        "kernels": [],
        "steps": {},
    }
    numbers: dict[tuple[str, str], int] = {}  # a kernel that serves both classes is written once
    for name, (other, _) in plans.items():
        for kernel in other.kernels:
            numbers.setdefault(kernel, len(numbers))
        content["steps"][name] = [
            [numbers[other.kernels[s.kernel]], list(s.groups), s.buffers, *([s.pages] if max(s.pages) > 1 else [])]
            for s in other.steps
        ]
    content["kernels"] = [list(kernel) for kernel in numbers]
    metadata = {KEY: json.dumps(content)}
    burnpack_writer.save(path, tensors, metadata)
    return plan


def traced_for(model: Any, examples: Sequence[Tensor], backend: Any) -> tuple[Any, list[Any]]:
    """(the Trace of model(*examples) on a backend that only plans, with what depends on no input computed; the nodes of
    its results). Raises ModelError where it is not one plan."""
    if hasattr(model, "fork"):
        for param in model.params():
            param.val()  # a lazy parameter would get one value here and another in the copy
        model = model.fork(backend)
    try:
        traced = trace(model, examples, backend)
    except ValueNeeded as error:
        raise ModelError(f"this model cannot be saved as a plan: {error}") from error
    structure = traced.structure
    if structure[0] == "tensor":
        structure = (tuple, [structure])
    if structure[0] not in (tuple, list) or any(part[0] != "tensor" for part in structure[1]):
        raise ModelError("a model that is saved as a plan returns a tensor or a tuple of tensors that live on the GPU")
    # Results are written one word an element, also one that is an input.
    traced.roots = [unpacked(r) for r in traced.roots]
    evaluate(constants(traced.roots, launched=False), get_backend("numpy"))
    results = [traced.roots[part[1]] for part in structure[1]]
    if any(r.count == 0 for r in results):
        raise ModelError("a model that is saved as a plan has no empty results")
    return traced, results


def _unused(node: Any) -> Any:
    from .data import Buffer

    return Buffer("external", node.nbytes)


def argument_names(model: Any, count: int) -> list[str]:
    function = getattr(model, "forward", model)
    code = getattr(function, "__code__", None)
    names = list(code.co_varnames[: code.co_argcount]) if code else []
    if names and names[0] == "self":
        names = names[1:]
    return [names[i] if i < len(names) else f"input{i}" for i in range(count)]
