"""Counts what the plan of a model does, on each backend, for the inputs of the model's first case."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import emberlet
import numpy as np
from emberlet.backend import get_backend
from emberlet.codegen import load
from emberlet.errors import EmberletError, UnsupportedError
from emberlet.host.numpy_backend.compile import compile, few_rows
from emberlet.host.numpy_backend.compile.steps import copy_elements
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.kernels.table import Options as WgpuOptions
from emberlet.wgpu_backend.plan.make import make_plan
from emberlet.wgpu_backend.plan.traced import traced_for
from emberlet.wgpu_backend.plan.weight_order import reorder_weights
from emberlet.wgpu_backend.record.host_evaluation import evaluate
from emberlet.wgpu_backend.wasm.backend import WasmBackend
from emberlet.wgpu_backend.wasm.kernels.table import Options as WasmOptions
from emberlet.wgpu_backend.wasm.prepare import materialize, prepare
from models.index import Case

Row = dict[str, int]


def on_numpy(case: Case) -> Row:
    """Without what only some BLAS are faster with."""
    model = load(case.model, "numpy")
    given = [emberlet.asarray(x, device="numpy") for x in case.inputs().values()]
    with patch.object(few_rows, "are_faster_in_parts", lambda: False):
        plans = list(compile(model, *given)._plans.values())
    if not plans:
        raise UnsupportedError("a model that decides by what it computes has no plan")
    plan = plans[0]
    called = [step.function for step in plan.steps]
    return {
        "steps": len(called),
        "ufuncs": sum(isinstance(getattr(f, "__self__", f), np.ufunc) for f in called),
        "copies": sum(f is copy_elements for f in called),
        "products": sum(f is np.matmul for f in called),
        "in place": sum(step.over is not None for step in plan.steps),
        "bytes": plan.nbytes,
    }


def on_gpu(case: Case) -> Row:
    plan = _recorded(case, WgpuBackend(planning=True), WgpuOptions("gpu"))
    groups = [step.groups for step in plan.steps]
    return {**_of_dispatches(plan), "workgroups": sum(x * y * z for x, y, z in groups)}


def in_wasm(case: Case) -> Row:
    plan = _recorded(case, WasmBackend(planning=True), WasmOptions(True))
    functions = [function for _, function in plan.kernels]
    return {**_of_dispatches(plan), "code": sum(map(len, functions)), "scratch": sum(f.scratch for f in functions)}


def _recorded(case: Case, backend: Any, options: Any) -> Any:
    given = [emberlet.asarray(x, device="python") for x in case.inputs().values()]
    traced, _ = traced_for(load(case.model, backend), given, backend)
    if isinstance(backend, WasmBackend):
        materialize(traced.roots, backend.host)
        prepare(traced.roots)
    else:
        reorder_weights(traced.roots, lambda nodes: evaluate(nodes, get_backend("numpy")), {})
    return make_plan(traced.roots, options)[0]


def _of_dispatches(plan: Any) -> Row:
    return {
        "kernels": len(plan.kernels),
        "dispatches": len(plan.steps),
        "bindings": sum(len(step.buffers) for step in plan.steps),
        "temporaries": sum(b.nbytes for b in plan.buffers if b.kind == "temporary"),  # bytes
        "moved": sum(step.nbytes for step in plan.steps),  # bytes read and written, as estimated
        "operations": sum(step.flops for step in plan.steps),  # as estimated
    }


def on_board(case: Case) -> Row:
    """In float32, as no calibration has a part in it."""
    program = build(read_graph(case.model.read_bytes(), "m"), Options("m", floats=True)).program
    kinds = [step.layer.kind for step in program.steps]
    return {
        "steps": len(kinds),
        "kinds": len(set(kinds)),
        "arena": program.arena,  # bytes
        "weights": program.weights.nbytes,
        "states": len(program.states),
    }


BACKENDS: dict[str, Callable[[Case], Row]] = {"numpy": on_numpy, "wgpu": on_gpu, "wasm": in_wasm, "micro": on_board}


def row(backend: str, case: Case) -> Row | None:
    """The counters of a model; None if the backend has no plan of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return BACKENDS[backend](case)
        except EmberletError:
            return None
