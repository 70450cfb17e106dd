"""Writes the plan of a model to a file, on the host and without a GPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.tensor import Tensor

from ..kernels.table import Options
from ..record.host_evaluation import evaluate
from ..record.index_ranges import index_ranges
from .data import KEY, VERSION, VERSION_STORED, Plan
from .make import make_plan
from .reading import PAGE_BYTES
from .traced import argument_names, traced_for
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
        from ..wasm.writer import save as save_module

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


def _unused(node: Any) -> Any:
    from .data import Buffer

    return Buffer("external", node.nbytes)
