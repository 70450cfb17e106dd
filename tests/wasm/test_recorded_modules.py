"""The bytes of WebAssembly modules: each function of the library, each operation, whole modules and files of models.

A longer polynomial, another address or one more thread may compute the same, so no other test would notice.
`UPDATE_SNAPSHOTS=1 pytest` on this file records what is written now.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend.protocol import BINARY, UNARY
from emberlet.errors import ModelError, UnsupportedError
from emberlet.tensor import Tensor
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.plan.make import make_plan
from emberlet.wgpu_backend.plan.traced import traced_for
from emberlet.wgpu_backend.wasm import assembler, library, stored, threads, writer
from emberlet.wgpu_backend.wasm.backend import WasmBackend
from emberlet.wgpu_backend.wasm.image import Image
from emberlet.wgpu_backend.wasm.kernels import operations, split
from emberlet.wgpu_backend.wasm.kernels.table import Options
from emberlet.wgpu_backend.wasm.prepare import materialize, prepare
from emberlet.wgpu_backend.wasm.sections import sections
from support.recorded import assert_recorded
from support.work.counting import digest, written
from support.work.programs import weight

RECORDED = Path(__file__).with_name("recorded_modules.txt")


@pytest.mark.parametrize("name", list(library._FUNCTIONS))
def test_a_function_of_the_library_has_the_recorded_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_made", {})
    f = library.function(name)
    said = f"{' '.join(f.params)} -> {library.result_type(name)}, {len(f.locals)} locals, {len(f)} bytes"
    calls = " ".join(sorted(set(f.called()))) or "nothing"
    assert_recorded(RECORDED, f"function {name}", f"{said}, calls {calls}: {digest([f.locals, f.buffers[0]])}")


MODELS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "a sum": (lambda x: x + 1, [(3,)]),
    "several kernels": (lambda x: F.softmax(F.tanh(x) @ weight(x, (24, 40)), -1), [(12, 24)]),
    "shared by threads": (lambda x, y: F.relu(x @ y) @ y, [(128, 256), (256, 256)]),
    "some steps shared": (lambda x, y: F.sum(F.exp(x @ y), 0) + 1, [(128, 256), (256, 256)]),
    "alone between shared steps": (
        lambda x, y: (x @ y) * F.reshape(F.sum(F.sin(y[:1]), 1), (1, 1)) @ y,
        [(128, 256), (256, 256)],
    ),
    "alone after a shared step": (lambda x, y: F.softmax((x @ y)[:1], -1), [(128, 256), (256, 256)]),
    "a grid that is shared": (lambda x, y: x @ y, [(40, 16, 64), (40, 64, 64)]),
    "too small to share": (lambda x, y: x @ y, [(64, 64), (64, 64)]),
    "an input that nothing uses": (lambda x, y: y * 2, [(5,), (7,)]),
    "two results, one of them an input": (lambda x: (x, F.exp(x)), [(33,)]),
    "large weights": (lambda x: x @ weight(x, (70, 90)) + weight(x, (90,)), [(2, 70)]),
}


def examples(shapes: list[tuple[int, ...]]) -> list[Tensor]:
    return [emberlet.asarray(np.zeros(shape, np.float32), backend="python") for shape in shapes]


def image(name: str, relaxed: bool = True) -> Image:
    function, shapes = MODELS[name]
    backend = WasmBackend(planning=True)
    traced, _ = traced_for(function, examples(shapes), backend)
    materialize(traced.roots, backend.host)
    prepare(traced.roots)
    return Image(make_plan(traced.roots, Options(relaxed))[0])


@pytest.mark.parametrize("name", list(MODELS))
def test_a_module_has_the_recorded_bytes(name: str) -> None:
    found = image(name)
    shared = [n for n, step in enumerate(found.plan.steps) if split.shares(found.plan.kernels[step.kernel][1])]
    lines = [
        f"{found.threads} threads, steps that they share: {shared} of {len(found.plan.steps)}",
        f"{found.nbytes} bytes in {found.pages} pages, scratch at {found.scratch}, buffers at {found.addresses}",
        f"exports {found.exported}",
    ]
    for what in ("module", "shared_module", "open_module"):
        module = found.module if what == "module" else getattr(found, what)()
        parts = [f"{number}{name and f' {name}'}: {end - start}" for number, name, start, end, _ in sections(module)]
        lines.append(f"{what}: sections {', '.join(parts)}: {digest(module)}")
    assert_recorded(RECORDED, f"module of {name}", "\n".join([*lines, f"code: {digest(found.code())}"]))


FILES = [(name, None) for name in MODELS] + [
    (name, weights) for name in ("several kernels", "large weights") for weights in ("float16", "q8")
]


@pytest.mark.parametrize(("name", "weights"), FILES)
def test_a_file_has_the_recorded_bytes(name: str, weights: str | None, tmp_path: Path) -> None:
    function, shapes = MODELS[name]
    path = tmp_path / "model.wasm"
    plan_file.save(str(path), function, *examples(shapes), weights=weights)
    whole = path.read_bytes()
    lines = []
    for number, label, start, end, _ in sections(whole):
        said = json.dumps(json.loads(whole[start:end])) if label == "emberlet" else digest(whole[start:end])
        lines.append(f"{number}{label and f' {label}'}, {end - start} bytes: {said}")
    assert_recorded(RECORDED, f"file of {name}, weights as {weights}", "\n".join(lines))


def test_a_file_larger_than_browsers_accept_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function, shapes = MODELS["a sum"]
    path = tmp_path / "model.wasm"
    plan_file.save(str(path), function, *examples(shapes))
    size = path.stat().st_size
    monkeypatch.setattr(writer, "MOST", size)
    plan_file.save(str(path), function, *examples(shapes))
    monkeypatch.setattr(writer, "MOST", size - 1)
    with pytest.raises(ModelError, match=f"the module would have {size} bytes; browsers accept {size - 1}"):
        plan_file.save(str(path), function, *examples(shapes))


def test_the_barrier_and_the_expansion_of_weights_have_the_recorded_code() -> None:
    made = {
        "barrier": threads.barrier(),
        "run": threads.alone(),
        **{
            f"expand {how} of {count}": stored.expansion([(how, 4096, count, 8192, 12288 if how == "q8" else None)])
            for how in ("float16", "q8")
            for count in (32, 33, 96)
        },
    }
    sizes = [
        f"{how} of {count}: {stored.nbytes(how, count)}" for how in ("float16", "q8") for count in (31, 32, 33, 96)
    ]
    lines = [f"{name}: {len(f.locals)} locals, {len(f)} bytes: {digest(f.buffers[0])}" for name, f in made.items()]
    assert_recorded(RECORDED, "barrier and expansion", "\n".join([*lines, *sizes]))


def test_numbers_have_the_recorded_bytes() -> None:
    """At the limits of each type, where an encoding takes one more byte, and beyond the range of float32."""
    edges = [0, 1, 63, 64, 127, 128, 8191, 8192, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63]
    floats = [0.0, -0.0, 1.5, 3.4028235677973366e38, 3.4028235677973362e38, 3.5e38, 1e300, float("inf")]
    lines = []
    for kind in ("i32", "i64", "i32x4"):
        for n in (m for edge in edges for m in dict.fromkeys((edge, -edge))):
            lines.append(f"{kind} {n}: {assembler.number(n, kind).code[0].hex()}")
    for kind in ("f32", "f64", "f32x4"):
        for x in (y for number in floats for y in (number, -number)):
            lines.append(f"{kind} {x!r}: {assembler.number(x, kind).code[0].hex()}")
    lines.append(f"i32x4 1 2 3 -4: {assembler.i32x4(1, 2, 3, -4).code[0].hex()}")
    assert_recorded(RECORDED, "numbers", "\n".join(lines))


def test_the_loop_that_threads_share_is_the_first_with_enough_steps() -> None:
    tried = [[1], [15, 16], [16, 90], [15, 15], [3, 15, 9], [1, 1], [2, 1, 2], [17, 400], [0, 1]]
    assert_recorded(
        RECORDED, "loops that threads share", "\n".join(f"{steps}: {split.chosen(steps)}" for steps in tried)
    )


def kernel(steps: int, work: int) -> assembler.Function:
    f = assembler.Function("kernel", ())
    f.steps, f.work = steps, work
    return f


def test_threads_share_what_saves_enough_time() -> None:
    least, saved = split.LEAST_WORK, 2 * (split.LEAST_SAVED + 2 * split.MEETING)
    assert [split.shares(kernel(steps, work)) for steps, work in [(1, least), (2, least), (2, least - 1)]] == [
        False,
        True,
        False,
    ]
    assert [split.pays([kernel(2, work)]) for work in (saved - 2, saved)] == [False, True]
    several = [kernel(2, saved // 2), kernel(1, saved), kernel(2, saved // 2 + 4 * split.MEETING)]
    assert split.pays(several)
    assert not split.pays(several[:2])
    assert [split.ENOUGH, split.LEAST_WORK, split.MEETING, split.LEAST_SAVED] == [16, 32768, 4096, 65536]


def test_locals_are_declared_in_runs_of_one_type() -> None:
    f = assembler.Function("f", ("i32",), ("i32",))
    for kind in ("i32", "i32", "f32", "v128", "v128", "i32", "i64", "f64"):
        f.local(kind)
    f.begin_if(f.param(0), "i32")
    f.do(assembler.i32(1))
    f.otherwise()
    f.do(assembler.call("g", "i32", f.get(1), f.get(0)))
    f.end()
    f.finish()
    assert_recorded(RECORDED, "locals", f"{f.body({'g': 300}).hex()}\n{f.called()} {written(f.buffers[0])}")


def test_what_differs_makes_functions_unequal() -> None:
    def made(**changes: Any) -> assembler.Function:
        f = assembler.Function("f", changes.get("params", ("i32",)), changes.get("results", ()))
        for kind in changes.get("locals", ("i32", "f32")):
            f.local(kind)
        f.scratch, f.steps, f.work = changes.get("scratch", 4), changes.get("steps", 2), changes.get("work", 8)
        f.do(assembler.i32(changes.get("code", 5)))
        return f.finish()

    assert made() == made() and hash(made()) == hash(made()) and made() != 3
    changed = {
        "params": ("f32",),
        "results": ("i32",),
        "locals": ("i32",),
        "scratch": 8,
        "steps": 3,
        "work": 9,
        "code": 6,
    }
    for name, value in changed.items():
        assert made() != made(**{name: value}), name


def operation_codes(name: str) -> list[str]:
    """The code of an operation on each type, on one number and on four."""
    lines = []
    for kind in ("f32", "i32", "u32", "bool"):
        for write, register in ((operations.scalar, kind), (operations.vector, "v128")):
            f = assembler.Function("f", [{"u32": "i32", "bool": "i32"}.get(register, register)] * 2)
            for plain in (None, 2.0, float("nan")) if write is operations.vector else (None,):
                try:
                    given = (f.param(0), f.param(1))
                    found = write(name, kind, given, plain) if plain else write(name, kind, given)
                    said = "none" if found is None else f"{found.type} {code(found)}"
                except UnsupportedError as error:
                    said = str(error)
                lines.append(
                    f"{register if register == 'v128' else 'one'} {kind}{(plain and f' by {plain}') or ''}: {said}"
                )
    return lines


def code(e: assembler.E) -> str:
    return "".join(chunk.hex() if isinstance(chunk, bytes) else f"({chunk[1]})" for chunk in e.code)


@pytest.mark.parametrize("name", [*dict.fromkeys((*UNARY, *BINARY, "max", "min", "unknown"))])
def test_an_operation_has_the_recorded_code(name: str) -> None:
    assert_recorded(RECORDED, f"operation {name}", "\n".join(operation_codes(name)))


def test_casts_have_the_recorded_code() -> None:
    kinds = ("f32", "i32", "u32", "bool")
    lines = []
    for source, target in itertools.product(kinds, kinds):
        one = assembler.Function("f", ["f32" if source == "f32" else "i32"]).param(0)
        four = assembler.Function("f", ["v128"]).param(0)
        found = operations.cast(one, source, target), operations.cast_four(four, source, target)
        lines.append(f"{source} to {target}: " + ", ".join(f"{e.type} {code(e)}" for e in found))
    assert_recorded(RECORDED, "casts", "\n".join(lines))


ASKED = [
    *[("to_i32", low, high) for low, high in [("-128.0", "127.0"), ("-2147483648.0", "2147483520.0"), ("-9.0", "2e9")]],
    *[("to_u32", high) for high in ("255.0", "4294967040.0", "4e9", "4000000256.0")],
    *[(wrap, f"{n}u") for wrap in ("wrap_u", "wrap_i") for n in (1, 8, 16, 31)],
    *[(name,) for name in ("round_f16", "round_bf16", "bits_of_bfloat16", "bfloat16_of_bits", "sort_key_i32",
        "sort_key_u32", "sort_key_f32", "bits_of_float16", "float16_of_bits", "philox_at", "times_zero", "over_zero",
        "over_itself", "unknown")],
]  # fmt: skip


@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
def test_a_function_that_lowering_asks_for_has_the_recorded_code(asked: tuple[str, ...]) -> None:
    lines = []
    for kind in ("f32",) if asked[0].startswith("over") else ("f32", "i32", "u32"):
        f = assembler.Function("f", ["f32" if kind == "f32" else "i32"] * 2)
        try:
            e = operations.function(asked, kind, [f.param(0), f.param(1)])
            lines.append(f"{kind}: {e.type} {code(e)}")
        except UnsupportedError as error:
            lines.append(f"{kind}: {error}")
    f = assembler.Function("f", ["v128"] * 2)
    four = operations.function_of_four(asked, [f.param(0), f.param(1)])
    lines.append("four: none" if four is None else f"four: {four.type} {code(four)}")
    assert_recorded(RECORDED, f"asked for {' '.join(asked)}", "\n".join(lines))
