"""Counts the dispatches of generated kernels and the operations in their code."""

from __future__ import annotations

import copy
import hashlib
import re
from typing import Any

from emberlet.backend import get_backend
from emberlet.errors import UnsupportedError
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.kernels.table import Options
from emberlet.wgpu_backend.plan.make import make_plan
from emberlet.wgpu_backend.plan.traced import traced_for
from emberlet.wgpu_backend.plan.weight_order import reorder_weights
from emberlet.wgpu_backend.plan.writer import _open
from emberlet.wgpu_backend.record.host_evaluation import evaluate
from emberlet.wgpu_backend.wasm.backend import WasmBackend
from emberlet.wgpu_backend.wasm.kernels.table import Options as WasmOptions
from emberlet.wgpu_backend.wasm.prepare import materialize, prepare

from .programs import Program

# Name -> the device's options, whether numbers are passed at run time, whether float16 is stored in 16 bits.
DEVICES: dict[str, tuple[Options, bool, bool]] = {
    "gpu": (Options("gpu"), False, False),
    "apart": (Options("gpu", workgroup_bytes=1 << 15), True, True),
    "cpu": (Options("cpu"), False, False),
    "swiftshader": (Options("swiftshader"), False, False),
    "subgroups": (Options("swiftshader", subgroups=True), False, False),
    "pages": (Options("cpu", 24, 1024), True, False),
}
OPEN = {"gpu": "gpu", "swiftshader": "software", "subgroups": "subgroups"}  # in plans of open sizes
# The operations that are counted in a kernel's WGSL, each with its pattern.
COUNTED = {
    "loops": r"\bfor \(|\bloop \{|\bwhile \(",
    "branches": r"\bif \(",
    "selects": r"\bselect\(",
    "barriers": r"[bB]arrier\(",
    "accesses": r"\w\[",
    "assignments": r" = ",
    "products": r" \* ",
    "quotients": r" [/%] ",
    "sums": r" [-+] ",
    "vectors": r"\bvec[234]<",
    "calls": r"\w\(",
}
DIGEST = "digest"  # of everything that a plan says

Row = dict[str, Any]


def on_gpu(program: Program) -> dict[str, Row]:
    """The counts of a program's plan for each of `DEVICES`, all kernels together; the error if it has no plan."""
    names = OPEN if program.dims else ["gpu"] if program.tile else DEVICES
    return {name: _of_plan(program, name) for name in names}


def plan_of(program: Program, device: str) -> Any:
    """A program's Plan for a device. Raises UnsupportedError if it has none."""
    backend = WgpuBackend(planning=True)
    if program.dims:
        return _open(program.function, program.examples(), backend, program.dims)[2][OPEN[device]][0]
    known, apart, backend._half = DEVICES[device]
    options = copy.copy(known)
    options.tile = program.tile
    traced, _ = traced_for(program.function, program.examples(), backend)
    if not apart:
        reorder_weights(traced.roots, lambda nodes: evaluate(nodes, get_backend("numpy")), {})
    return make_plan(traced.roots, options, apart=apart)[0]


def _of_plan(program: Program, device: str) -> Row:
    try:
        plan = plan_of(program, device)
    except UnsupportedError as error:
        return {"error": type(error).__name__}
    row = _of_any(plan)
    row[DIGEST] = digest(plan)
    texts = [plan.kernels[step.kernel][1] for step in plan.steps]
    row["groups"] = sum(most(g[0]) * most(g[1]) * most(g[2]) for g in (step.groups for step in plan.steps))
    row["invocations"] = sum(
        int(n) for text in texts for found in re.findall(r"@workgroup_size\(([^)]*)\)", text) for n in found.split(",")
    )
    row["lines"] = sum(len(text.splitlines()) for text in texts)
    for what, pattern in COUNTED.items():
        row[what] = sum(len(re.findall(pattern, text[text.index("fn main") :])) for text in texts)
    if plan.counts:
        row["sizes"] = len(plan.counts.atoms) + len(plan.counts.block)
        row["conditions"] = len(plan.counts.guards)
    return row


def _of_any(plan: Any) -> Row:
    return {
        "kernels": len(plan.kernels),
        "dispatches": len(plan.steps),
        "bindings": sum(len(step.buffers) for step in plan.steps),
        "temporary": sum(most(b.nbytes) for b in plan.buffers if b.kind == "temporary"),  # bytes
        "operations": sum(most(step.flops) for step in plan.steps),  # as estimated
        "moved": sum(most(step.nbytes) for step in plan.steps),  # bytes read and written, as estimated
    }


def digest(what: Any) -> str:
    return hashlib.sha256(written(what).encode()).hexdigest()[:12]


def written(what: Any) -> str:
    """Plain data, and objects by their public attributes, as a text: all of a plan with its kernels and buffers."""
    if isinstance(what, list | tuple):
        return f"[{', '.join(map(written, what))}]"
    if isinstance(what, dict):
        return f"{{{', '.join(f'{key}: {written(value)}' for key, value in what.items())}}}"
    if hasattr(what, "__dict__"):
        return type(what).__name__ + written({k: v for k, v in vars(what).items() if not k.startswith("_")})
    assert what is None or isinstance(what, str | bytes | int | float), what
    return repr(what)


def most(n: Any) -> Any:
    """A number, or the upper bound of one that depends on open sizes."""
    return n if isinstance(n, int | float) else n.scope.bounds(n)[1] if hasattr(n, "scope") else n.most


def in_wasm(program: Program) -> dict[str, Row]:
    """The counts of a program's WebAssembly kernels, with and without relaxed instructions. How many threads share them
    is measured on machines, and not recorded here."""
    return {name: _of_module(program, name == "relaxed") for name in ("relaxed", "simple")}


def _of_module(program: Program, relaxed: bool) -> Row:
    backend = WasmBackend(planning=True)
    try:
        traced, _ = traced_for(program.function, program.examples(), backend)
        materialize(traced.roots, backend.host)
        prepare(traced.roots)
        plan, _ = make_plan(traced.roots, WasmOptions(relaxed))
    except UnsupportedError as error:
        return {"error": type(error).__name__}
    functions = [plan.kernels[step.kernel][1] for step in plan.steps]
    return {
        **_of_any(plan),
        DIGEST: digest([plan, functions]),
        "code": sum(map(len, functions)),  # bytes
        "locals": sum(len(f.locals) for f in functions),
        "scratch": sum(f.scratch for f in functions),  # bytes
        "steps": sum(f.steps for f in functions),
        "work": sum(f.work for f in functions),
    }
