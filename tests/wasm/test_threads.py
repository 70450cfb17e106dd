"""WebAssembly threads: any partition of the kernels' loops gives the same bytes as one thread.

Here the parts of each step run one after the other, in any order (support/divided.py), and tests/plans/test_programs.py
divides many more programs; tests/browser/test_threads.py runs them at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import codegen
from emberlet import functional as F
from emberlet.errors import BackendError
from emberlet.wgpu_backend import plan_file, wasm
from emberlet.wgpu_backend.compiled import compile as compiled
from emberlet.wgpu_backend.wasm import threads
from emberlet.wgpu_backend.wasm.image import Image
from emberlet.wgpu_backend.wasm.kernels import split
from emberlet.wgpu_backend.wasm.step_groups import grouped
from support.divided import Divided, in_parts

from tools.paths import ROOT


@pytest.fixture
def divided() -> Iterator[type[Divided]]:
    with in_parts() as found:
        yield found


@pytest.mark.parametrize("op", ["max", "min", "any"])
def test_long_reductions_to_one_number_are_shared(divided: type[Divided], op: str) -> None:
    x = np.random.default_rng(0).standard_normal((300, 301), np.float32)
    x[7, 9] = -5e6 if op == "min" else 5e6
    tensor = emberlet.asarray(x > 6 if op == "any" else x, backend="wasm")
    found = compiled(lambda a: getattr(F, op)(a), tensor, backend="wasm")(tensor)
    np.testing.assert_allclose(np.asarray(found), getattr(np, op)(x > 6 if op == "any" else x.astype(np.float64)), 1e-6)
    assert divided.shared


@pytest.mark.parametrize("name", ["digits/digits", "micro_accelerometer/accelerometer", "sine/sine"])
def test_models_in_parts_give_the_bytes_of_one_thread(divided: type[Divided], name: str) -> None:
    model = codegen.load(str(ROOT / "examples" / f"{name}.onnx"), backend="numpy")
    shape = [d if isinstance(d, int) else 3 for d in model.INPUTS[0][2]]
    x = np.random.default_rng(0).random(shape, np.float32)
    np.testing.assert_allclose(np.asarray(model.compile(x, backend="wasm")(x)), np.asarray(model(x)), atol=1e-5)
    assert divided.shared


WEIGHTS = np.random.default_rng(1).integers(-127, 128, (48, 64)).astype(np.int8)


@pytest.mark.parametrize("kind", ["floats", "bytes", "offset bytes", "pixels"])
@pytest.mark.parametrize("rows", [1, 7, 130, 400])
def test_files_in_parts_have_weights_in_the_order_of_their_kernels(
    divided: type[Divided], tmp_path: Path, kind: str, rows: int
) -> None:
    x = np.random.default_rng(0).integers(-9, 10, (1, 16, 3, rows + 2) if kind == "pixels" else (rows, 48))
    scale, zero = np.float32(0.5), np.uint8(128 if kind == "offset bytes" else 0)
    real = WEIGHTS.ravel()[:2304].reshape(16, 16, 3, 3) if kind == "pixels" else WEIGHTS
    q = emberlet.asarray((real.astype(np.int32) + 128).astype(np.uint8) if zero else real)

    def model(x: Any) -> Any:
        w = q.to_device(x.backend)
        if kind == "floats":
            return x @ w.astype("float32")
        levels = F.dequantize_linear(F.quantize_linear(x, scale, dtype="int8"), scale)
        w = F.dequantize_linear(w, scale, zero if zero else None)
        return F.conv(levels, w) if kind == "pixels" else levels @ w

    path = tmp_path / "model.wasm"
    dims = {"x": {0: ("rows", 200)}} if rows == 7 and kind != "pixels" else None
    plan_file.save(str(path), model, emberlet.asarray(x.astype(np.float32) / 2), inputs=["x"], dims=dims)
    (found,) = plan_file.load(str(path)).run(x.astype(np.float32) / 2)
    wide = [emberlet.asarray(a, backend="numpy") for a in (x / 2, real * (1.0 if kind == "floats" else 0.5))]
    want = np.asarray(F.conv(*wide) if kind == "pixels" else wide[0] @ wide[1])
    np.testing.assert_array_equal(np.asarray(found), want)  # all sums are exact
    assert divided.shared
    (_, image, _), *_ = divided.files
    assert kind != "floats" or not image.scratch_room, "no run copies a matrix of floats"


def test_threads_share_a_product_of_bytes_and_what_it_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread takes several ranges, and none does a part of another one's work."""
    images: list[Image] = []
    file = Image.file
    monkeypatch.setattr(Image, "file", lambda self, *given: images.append(self) or file(self, *given))
    rng = np.random.default_rng(0)
    weights = emberlet.asarray(rng.integers(-127, 128, (256, 256)).astype(np.int8))

    def model(x: Any) -> Any:
        levels = F.dequantize_linear(F.quantize_linear(x, np.float32(0.5), dtype="int8"), np.float32(0.5))
        return levels @ F.dequantize_linear(weights.to_device(x.backend), np.float32(0.5))

    example = emberlet.zeros((512, 256), dtype="float32", backend="numpy")
    plan_file.save(str(tmp_path / "model.wasm"), model, example, inputs=["x"], relaxed=True)
    (image,) = images
    (product,) = [f for name, f in image.plan.kernels if "matmul" in name]
    assert image.threads == threads.MOST
    assert split.shares(product)
    assert split.fine(product)


def test_small_models_have_one_thread() -> None:
    model = codegen.load(str(ROOT / "examples" / "digits" / "digits.onnx"), backend="numpy")
    plan = model.compile(np.zeros((1, 1, 8, 8), np.float32), backend="wasm").plan()
    image = Image(plan)
    assert image.threads == 1
    assert image.exported == ["run"]


def groups(*steps: tuple[int, list[int]]) -> list[list[int]]:
    """Those of steps of so much work, which read these buffers and write the last one."""
    found = []
    for work, buffers in steps:
        f = threads.Function("k", ("i32",) * 4)
        f.steps, f.work = 100, work
        found.append((f.finish(), buffers))
    return [list(group) for group in grouped(found)]


WIDE, SMALL = 1 << 20, 10


def test_threads_wait_once_for_steps_that_do_not_need_each_other() -> None:
    query, key, value = [(WIDE, [0, number]) for number in (1, 2, 3)]
    assert groups(query, key, value, (WIDE, [1, 2, 3, 4])) == [[0, 1, 2], [3]]
    assert groups((WIDE, [0, 1]), (WIDE, [1, 2])) == [[0], [1]], "one reads what the other writes"
    assert groups((WIDE, [0, 1]), (WIDE, [2, 0])) == [[0], [1]], "one writes what the other reads"
    assert groups((WIDE, [0, 1]), (WIDE, [2, 1])) == [[0], [1]], "both write"


def test_small_steps_beside_each_other_are_taken_by_one_thread() -> None:
    assert groups((SMALL, [0, 1]), (SMALL, [1, 2])) == [[0, 1]]
    assert groups((SMALL, [0, 1]), (SMALL, [1, 2]), (WIDE, [2, 3]), (SMALL, [3, 4]), (SMALL, [4, 5])) == [
        [0, 1],
        [2],
        [3, 4],
    ]
    assert groups((WIDE, [0, 1]), (SMALL, [1, 2]), (WIDE, [2, 3])) == [[0], [1], [2]]


def test_small_steps_do_not_wait_for_what_they_do_not_need() -> None:
    assert groups((SMALL, [0, 1]), (WIDE, [1, 2]), (SMALL, [0, 3]), (WIDE, [3, 4])) == [[0, 2], [1, 3]]


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
