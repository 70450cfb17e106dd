"""WebAssembly threads: any partition of the kernels' loops gives the same bytes as one thread.

Here the parts of each step run one after the other, in any order (support/divided.py); tests/browser/test_threads.py
runs them at the same time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import codegen
from emberlet import functional as F
from emberlet.errors import BackendError
from emberlet.wgpu_backend import wasm
from emberlet.wgpu_backend.compiled import compile as compiled
from emberlet.wgpu_backend.wasm import threads
from emberlet.wgpu_backend.wasm.image import Image
from fuzz.differential import engine as fuzzing
from fuzz.differential.kinds import graphs
from support.divided import Divided, in_parts
from support.rows import every

from tools.paths import ROOT


@pytest.fixture
def divided() -> Iterator[type[Divided]]:
    with in_parts() as found:
        yield found


def test_random_graphs_in_parts_give_the_bytes_of_one_thread(
    divided: type[Divided], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {name: run for name, run in graphs.TARGETS.items() if name.startswith("wasm")}
    monkeypatch.setattr(graphs, "TARGETS", wanted)
    ran = fuzzing.run(graphs, 20261123, count=150)
    assert not ran.found
    assert divided.shared > 100


@every("seed", range(30))
def test_products_in_parts_give_the_bytes_of_one_thread(divided: type[Divided], seed: int) -> None:
    choose = random.Random(seed)
    m, k, n = (choose.choice([1, 2, 5, 6, 13, 30, 64, 100]) for _ in range(3))
    if seed % 5 == 0:
        m, k, n = 1, k * choose.choice([1, 70]), choose.choice([33, 300, 1500])
    lead = choose.choice([(), (), (3,), (5, 4)])
    rng = np.random.default_rng(seed)
    kind = choose.choice([np.float32, np.int8])
    a, b = (rng.integers(-90, 90, shape).astype(kind) for shape in ((*lead, m, k), (k, n)))
    if kind is np.int8:
        a, b = (x.astype(np.int32) for x in (a, b))

        def product(x: Any, y: Any) -> Any:
            return x.backend.matmul_8bit(x, y)
    else:

        def product(x: Any, y: Any) -> Any:
            return F.relu(x @ y + 0.5)

    tensors = [emberlet.asarray(x, backend="wasm") for x in (a, b)]
    found = np.asarray(compiled(product, *tensors, backend="wasm")(*tensors))
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found, want if kind is np.int8 else np.maximum(want + 0.5, 0), rtol=1e-5)
    assert divided.shared or m * n * k < 64


@pytest.mark.parametrize("op", ["max", "min", "any"])
def test_long_reductions_to_one_number_are_shared(divided: type[Divided], op: str) -> None:
    x = np.random.default_rng(0).standard_normal((300, 301), np.float32)
    x[7, 9] = -5e6 if op == "min" else 5e6
    tensor = emberlet.asarray(x > 6 if op == "any" else x, backend="wasm")
    found = compiled(lambda a: getattr(F, op)(a), tensor, backend="wasm")(tensor)
    np.testing.assert_allclose(np.asarray(found), getattr(np, op)(x > 6 if op == "any" else x.astype(np.float64)), 1e-6)
    assert divided.shared


@every("seed", range(30))
def test_convolutions_in_parts_give_the_bytes_of_one_thread(divided: type[Divided], seed: int) -> None:
    choose = random.Random(seed)
    groups = choose.choice([1, 1, 2, 8])
    channels = groups * choose.choice([1, 1, 2, 3])
    outs = groups * choose.choice([1, 2, 3])
    size, taps = choose.choice([(9, 3), (13, 1), (17, 5), (30, 3)])
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((choose.choice([1, 2]), channels, size, size), np.float32)
    weight = rng.standard_normal((outs, channels // groups, taps, taps), np.float32)
    stride, padding = choose.choice([1, 2]), choose.choice([0, 1])

    def layer(a: Any, w: Any) -> Any:
        return F.relu(F.conv2d(a, w, None, (stride, stride), (padding, padding), (1, 1), groups))

    results = []
    for backend in ("numpy", "wasm"):
        tensors = [emberlet.asarray(v, backend=backend) for v in (x, weight)]
        results.append(np.asarray(layer(*tensors)))
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)
    assert divided.shared


@pytest.mark.parametrize("name", ["digits/digits", "micro_accelerometer/accelerometer", "sine/sine"])
def test_models_in_parts_give_the_bytes_of_one_thread(divided: type[Divided], name: str) -> None:
    model = codegen.load(str(ROOT / "examples" / f"{name}.onnx"), backend="numpy")
    shape = [d if isinstance(d, int) else 3 for d in model.INPUTS[0][2]]
    x = np.random.default_rng(0).random(shape, np.float32)
    np.testing.assert_allclose(np.asarray(model.compile(x, backend="wasm")(x)), np.asarray(model(x)), atol=1e-5)
    assert divided.shared


def test_small_models_have_one_thread() -> None:
    model = codegen.load(str(ROOT / "examples" / "digits" / "digits.onnx"), backend="numpy")
    plan = model.compile(np.zeros((1, 1, 8, 8), np.float32), backend="wasm").plan()
    image = Image(plan)
    assert image.threads == 1
    assert image.exported == ["run"]


def test_steps_meet_only_where_results_of_another_thread_are_read() -> None:
    def kernel(steps: int, work: int) -> Any:
        f = threads.Function("k", ("i32",) * 4)
        f.steps, f.work = steps, work
        return f.finish()

    def meetings(*kernels: Any) -> int:
        steps = [("k", [0], f) for f in kernels]
        return threads.part(steps, 0, 0, True).called().count("barrier")

    wide, small = kernel(100, 1 << 20), kernel(100, 10)
    assert meetings(small, small) == 0
    assert meetings(wide) == 1
    assert meetings(wide, wide) == 2
    assert meetings(small, small, wide, small, small) == 2
    assert meetings(wide, small, wide) == 3


def test_on_a_desktop_there_is_one_thread() -> None:
    x = np.random.default_rng(0).random((256, 256), np.float32)
    fast = compiled(lambda a: a @ a @ a, x, backend="wasm")
    assert fast.planned().program.threads() == 1
    fast.planned().program.release()
    assert fast.planned().program.threads() == 0


@pytest.mark.parametrize("count", [0, 9, 2.0, "2", np.float32(2), np.int32(0)])
def test_a_number_of_threads_that_cannot_be_is_refused(count: Any) -> None:
    with pytest.raises(BackendError, match="1 to 8 threads"):
        wasm.set_threads(count)


def test_numbers_of_threads_of_any_integer_type_are_taken() -> None:
    assert wasm.set_threads(np.int64(2)) is None
    assert wasm.set_threads(np.uint8(3)) == 2
    assert wasm.set_threads(None) == 3
