"""Writes the plan of a model to a file, on the host and without a GPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from emberlet import dtypes
from emberlet.functional.arrays import asarray
from emberlet.sizes.questions import known_equal
from emberlet.tensor import Tensor

from ..kernels.table import Options
from ..record.host_evaluation import words_of
from ..record.index_ranges import index_ranges
from . import narrowing
from .counts import count, counts_of
from .data import KEY, VERSION, VERSION_OPEN, VERSION_STORED, Plan
from .make import make_plan
from .opened import number_of, planned_for, sizes_of
from .reading import PAGE_BYTES
from .traced import checked_indices, port_names, traced_for
from .weight_order import reorder_weights

# SwiftShader stands for all software devices: it is the one that browsers ship.
CLASSES = {
    "gpu": ("gpu", False),
    "software": ("swiftshader", False),
    "subgroups": ("swiftshader", True),
}
WORDS = {
    "f32": dtypes.float32,
    "i32": dtypes.int32,
    "u32": dtypes.uint32,
    "i8": dtypes.int8,
    "u8": dtypes.uint8,
}


def save(
    path: str,
    model: Any,
    *examples: Any,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    weights: str | None = None,
    dims: dict[str, Any] | None = None,
    relaxed: bool | None = None,
    classes: Sequence[str] | None = None,
) -> Plan:
    """Trace model(*examples) for their dtypes and shapes and write its plan to `path`; returns the plan for GPUs,
    or for the first of `classes`.

    A `path` that ends in ".wasm" gets a WebAssembly module instead (wasm/file.py). model: a Module (left unchanged) or
    a function of Tensors. examples: Tensors or arrays. inputs, outputs: names; by default those in the signature of
    `forward`, and "output0" …. The plan is made for WebGPU's baseline limits. weights: how the file stores large
    weights, "float16" or "q8" (storing.py); they are float32 again once loaded. dims: axes that the plan leaves open,
    as `compile` takes them, each with its limit: {"length": 512}. The file's plan runs every length up to it. relaxed:
    of a ".wasm" file, whether all engines that run it have relaxed SIMD (True) or none uses it (False); None writes the
    code for both. classes: those of CLASSES that a plan is for, by default all; devices of others use what there is.
    Raises ValueError for another encoding or class, ModelError if Python code of the model depends on values of
    its inputs, a result is not on the GPU, or the names are not one for each input and result.
    """
    from ..backend import WgpuBackend

    examples = tuple([x if isinstance(x, Tensor) or not hasattr(x, "shape") else asarray(x) for x in examples])
    if path.endswith(".wasm"):
        from ..wasm.writer import save as save_module

        named = {"inputs": inputs, "outputs": outputs}
        return save_module(path, model, *examples, **named, weights=weights, dims=dims, relaxed=relaxed)
    if classes is not None and not (set(classes) <= set(CLASSES) and {"gpu", "software"} & set(classes)):
        raise ValueError(f"classes are {', '.join(CLASSES)}, with one of the first two; found {list(classes)}")
    backend = WgpuBackend(planning=True)
    found = planned_for(model, examples, backend, dims, partial(planned, classes=classes))
    names, labels = port_names(model, len(examples), len(found[1]), inputs, outputs)
    return write(path, found, backend, names, labels, weights)


def write(
    path: str,
    planned: tuple[Any, list[Any], list[Any], dict[str, Any]],
    backend: Any,
    names: Sequence[str],
    labels: Sequence[str],
    weights: str | None = None,
    initial: dict[int, tuple[str, Any]] | None = None,
    metadata: dict[str, str] | None = None,
) -> Plan:
    """Write the file of what `planned` gives. names, labels: those of the inputs and the outputs; initial: for inputs
    that begin with a value in the file, the tensor's name and its Source."""
    from emberlet.host import burnpack_writer

    traced, results, checks, plans = planned
    plan, externals = next(iter(plans.values()))
    given = {n.arg: number for number, n in zip(plan.externals, externals, strict=True) if n.op == "input"}
    constants = [(number, n) for number, n in zip(plan.externals, externals, strict=True) if n.op != "input"]
    begin = "constant"
    while any(name.startswith(begin) for name, _ in (initial or {}).values()):
        begin = "_" + begin
    tensors, fixed = _constants(constants, begin, weights, traced.narrow, backend.host)
    ports = []
    for node in traced.inputs:
        number = given.get(node.arg)
        if number is None:  # unused by the results, but callers still pass it
            plan.buffers.append(_unused(node))
            for other, _ in plans.values():
                if other is not plan:
                    other.buffers.append(_unused(node))
            number = len(plan.buffers) - 1
        ports.append([names[node.arg], node.dtype.name, [number_of(d) for d in node.shape], number])
        if initial and node.arg in initial:
            name, tensors[name] = initial[node.arg]
            fixed.append([number, name])
    roots = {id(r): plan.outputs[i] for i, r in enumerate(traced.roots)}
    lengths = index_ranges(traced.roots)
    content: dict[str, Any] = {
        "version": VERSION_STORED if any(len(constant) > 2 for constant in fixed) else VERSION,
        "indices": [[at, number_of(lengths[node.arg])] for at, node in enumerate(traced.inputs) if node.arg in lengths],
        "page_bytes": PAGE_BYTES,
        "inputs": ports,
        "outputs": [
            [labels[i], r.dtype.name, [number_of(d) for d in r.shape], roots[id(r)]] for i, r in enumerate(results)
        ],
        "buffers": [[b.kind, number_of(b.nbytes)] for b in plan.buffers],
        "constants": fixed,
        "kernels": [],
        "steps": {},
    }
    if checks:
        content["computed_indices"] = [
            [r.dtype.name, roots[id(r)], number_of(end), not known_equal(lowest, 0), message, axis]
            for r, (_, lowest, end, message, axis) in checks
        ]
    numbers: dict[tuple[str, str], int] = {}  # a kernel that serves both classes is written once
    for name, (other, _) in plans.items():
        for kernel in other.kernels:
            numbers.setdefault(kernel, len(numbers))
        content["steps"][name] = [
            [
                numbers[other.kernels[s.kernel]],
                [number_of(n) for n in s.groups],
                s.buffers,
                *([s.pages] if max(s.pages) > 1 else []),
            ]
            for s in other.steps
        ]
    content["kernels"] = [list(kernel) for kernel in numbers]
    if plan.counts is not None:
        content["version"] = VERSION_OPEN
        content["sizes"] = sizes_of(plan.counts)
    burnpack_writer.save(path, tensors, {KEY: json.dumps(content), **(metadata or {})})
    return plan


def _constants(
    constants: Sequence[tuple[int, Any]], begin: str, weights: str | None, narrow: dict[int, Any], host: Any
) -> tuple[dict[str, Any], list[list[Any]]]:
    """The Sources of constants, (number of the buffer, node), by names that begin with `begin`, and what the file says
    of each: [number, name], or [number, name, how it is stored, the name of its scales or None]."""
    from emberlet.host.burnpack_writer import Source

    from .storing import parts_of

    tensors: dict[str, Any] = {}
    fixed: list[list[Any]] = []
    for number, node in constants:
        name = f"{begin}{len(fixed)}"
        how, stored = weights, []
        if node.nbytes <= PAGE_BYTES:
            stored = narrowing.parts_of(narrow.get(id(node)), host)
            if stored:
                how = "levels" if node.word == "f32" else "integers"
            elif node.word == "f32":
                stored = parts_of(weights, words_of(node))
        if stored:
            parts = [name, f"{name}.scales"][: len(stored)]
            tensors |= zip(parts, stored, strict=True)
            fixed.append([number, name, how, parts[1] if len(parts) > 1 else None])
            continue
        fixed.append([number, name])
        dtype = WORDS[node.word]
        tensors[name] = Source(dtype, (node.nbytes // (dtype.bits // 8),), lambda node=node: words_of(node))
    return tensors, fixed


def planned(
    model: Any,
    examples: Sequence[Tensor],
    backend: Any,
    opening: Any = None,
    classes: Sequence[str] | None = None,
) -> tuple[Any, list[Any], list[Any], dict[str, Any]]:
    """The Trace, the nodes of its results, its `checked_indices` and, per class name, (Plan, externals). opening: an
    Opening; classes: as `save` takes them. Raises SizeNeeded if a size cannot be left open."""
    scope = opening.scope if opening else None
    traced, results = traced_for(model, examples, backend, opening.shapes if opening else None)
    checks = checked_indices(traced, backend)

    def compute(nodes: list[Any]) -> None:
        narrowing.permute(traced.narrow, nodes, backend.host)
        narrowing.compute(traced.narrow, nodes, backend.host)

    reorder_weights(traced.roots, compute, {})
    plans = {}
    for name in classes or CLASSES:
        device_class, subgroups = CLASSES[name]
        plans[name] = make_plan(traced.roots, Options(device_class, subgroups=subgroups), False, sizes=scope)
    if scope is not None:
        for plan, _ in plans.values():
            counts_of(plan, scope)
    return traced, results, checks, plans


def _unused(node: Any) -> Any:
    from .data import Buffer

    return Buffer("external", count(node.nbytes))
