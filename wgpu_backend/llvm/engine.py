"""Compiles LLVM IR in the process, and runs the steps of a plan in one call.

Each kernel is compiled once, whatever the number of plans that use it, as long as one of them lives.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from functools import cache
from typing import Any

from emberlet.errors import BackendError

from ..device import lock
from ..wasm.assembler import Function
from . import render

# Calls the function of each of `count` steps, a pair of addresses: the function's and that of its arguments.
_RUN = """
define void @run(ptr %memory, ptr %steps, i64 %count) {
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %step
step:
  %n = phi i64 [ 0, %0 ], [ %next, %step ]
  %at = getelementptr { ptr, ptr }, ptr %steps, i64 %n
  %function = load ptr, ptr %at
  %behind = getelementptr ptr, ptr %at, i64 1
  %arguments = load ptr, ptr %behind
  call void %function(ptr %memory, ptr %arguments)
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %step, label %done
done:
  ret void
}
"""

QUICK = 1 << 14  # elements that a kernel reads, at most, whose code may be slow
_compiling = lock()  # LLVM's objects are made and used by one thread at a time
_known: weakref.WeakValueDictionary[tuple[Function, int | None, bool], Code] = weakref.WeakValueDictionary()


def _after_fork() -> None:
    global _compiling
    _compiling = lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Code:
    """A compiled function. address: where it begins, as long as this object lives."""

    def __init__(self, text: str, name: str, quick: bool = False) -> None:
        llvm, machine = _llvm()
        module = llvm.parse_assembly(text)
        made = machine(0 if quick else 2)
        _optimize(llvm, made, module)
        self.engine = llvm.create_mcjit_compiler(module, made)
        self.engine.finalize_object()
        self.address: int = self.engine.get_function_address(name)


def _optimize(llvm: Any, machine: Any, module: Any) -> None:
    """SROA turns locals into registers. What kernels need besides is little: their loops are written as they are to
    run."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


@cache
def _llvm() -> tuple[Any, Any]:
    """llvmlite's binding, and a function that makes a TargetMachine for this processor."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    name, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()

    def machine(level: int) -> Any:
        if _processor:
            return target.create_target_machine(cpu=_processor[0], opt=level, jit=True)
        return target.create_target_machine(cpu=name, features=features, opt=level, jit=True)

    return llvm, machine


_processor: list[str] = []  # the one that was set, if one was


def set_processor(name: str | None) -> None:
    """Make code for a processor, by LLVM's name for it, such as "x86-64-v3": AVX2 without AVX-512; None for this one.
    Plans that exist keep their code. It is for tests: code for another processor than this one may end the process."""
    with _compiling:
        _processor[:] = [] if name is None else [name]
        _known.clear()


def processor() -> str:
    """The processor that code is made for, by LLVM's name."""
    name: str = _processor[0] if _processor else _llvm()[0].get_host_cpu_name()
    return name


def lanes() -> int:
    """The float32 numbers in the longest vector of the processor."""
    llvm, _ = _llvm()
    if _processor:
        return {"x86-64-v4": 16, "x86-64-v3": 8}.get(_processor[0], 4)
    features = llvm.get_host_cpu_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx2") and features.get("fma") else 4


def fused() -> bool:
    """Whether the processor multiplies and adds in one instruction."""
    llvm, _ = _llvm()
    if _processor:
        return lanes() > 4
    return bool(llvm.get_host_cpu_features().get("fma", not llvm.get_process_triple().startswith("x86")))


def code(function: Function, quick: bool = False) -> Code:
    """The compiled form of a kernel's function. quick: as in backend.py's Compiled."""
    quick = quick and function.lanes == 4 and function.work <= QUICK
    with _compiling:
        key = (function, render.place_of_steps(function), quick)
        found = _known.get(key)
        if found is None:
            found = _known[key] = Code(render.kernel(function), "kernel", quick)
        return found


@cache
def _run() -> tuple[Code, Any]:
    """The function that runs steps, and its Code."""
    with _compiling:
        made = Code(_RUN, "run")
    return made, ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(made.address)


class Steps:
    """The steps of a plan. each: (kernel's function, the addresses that it takes)."""

    def __init__(self, each: list[tuple[Function, list[int]]], quick: bool = False) -> None:
        self.codes = [code(function, quick) for function, _ in each]
        self.arguments = [(ctypes.c_uint32 * len(given))(*given) for _, given in each]
        words = []
        for compiled, given in zip(self.codes, self.arguments, strict=True):
            words += [compiled.address, ctypes.addressof(given)]
        self.table = (ctypes.c_size_t * len(words))(*words)
        self.count = len(each)
        self.run = _run()[1]


class Instance:
    """A memory, and the steps that run on it."""

    def __init__(self, steps: Steps, nbytes: int) -> None:
        self.steps = steps
        try:
            self.memory = mmap.mmap(-1, nbytes)
        except OSError as error:
            raise BackendError(f"this plan takes {nbytes} bytes of memory, which the system refuses: {error}") from None
        self.view = memoryview(self.memory)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def write(self, at: int, data: Any) -> None:
        given = memoryview(data).cast("B")
        self.view[at : at + len(given)] = given

    def read(self, at: int, nbytes: int) -> bytes:
        return bytes(self.view[at : at + nbytes])

    def run(self) -> None:
        self.steps.run(self.address, self.steps.table, self.steps.count)

    def release(self) -> None:
        """Does nothing: the memory is freed with the instance."""


def available() -> None:
    """Raise BackendError without the package llvmlite."""
    try:
        _llvm()
    except (ImportError, OSError) as error:
        from emberlet.host.extras import not_loaded

        missing = error if isinstance(error, ImportError) else ImportError(str(error))
        raise BackendError(not_loaded("backend 'native'", "llvmlite", missing)) from None
