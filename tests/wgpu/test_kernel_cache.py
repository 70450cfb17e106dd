"""Building a plan's equal kernels once, or reading them from disk, gives the same plan as building each."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.wgpu_backend import kernel_cache
from emberlet.wgpu_backend.backend import WgpuBackend
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.kernels import alike as alike_file
from emberlet.wgpu_backend.kernels.table import Options
from emberlet.wgpu_backend.plan.make import make_plan
from emberlet.wgpu_backend.wasm.kernels.table import Options as VectorOptions
from support.draws import some


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path))
    return tmp_path


def _told(roots: list[Any], options: Any, apart: bool) -> Any:
    """A plan as nested values that can be compared."""
    plan, externals = make_plan(roots, options, bind_numbers=apart)
    steps = [(s.kernel, s.buffers, s.groups, s.pages, s.flops, s.nbytes) for s in plan.steps]
    given = [[(k, i) for k, i in n.arg] if n.op == "numbers" else id(n) for n in externals]
    return plan.kernels, steps, plan.outputs, [(b.kind, b.nbytes) for b in plan.buffers], given


def _layer(draw: random.Random, k: Any, x: Any, old: Any) -> Any:
    """A layer on x (2, 6, 8), of few kinds with few parameters, so that equal and nearly equal ones occur."""
    weight = lambda *shape: k.from_bytes(bytes(4 * int(np.prod(shape))), dtypes.float32, shape)  # noqa: E731
    number = lambda: k.full((), draw.choice([0.0, -0.0, 1.0, 1.0000001, float("nan")]), dtypes.float32)  # noqa: E731
    kind = draw.randrange(12)
    if kind == 0:
        return k.binary(draw.choice(["add", "mul"]), k.matmul(x, weight(8, 8)), number())
    if kind == 1:
        y = k.conv(x, weight(6, 6 // (g := draw.choice([1, 2])), 3), weight(6), (1,), ((1, 1),), (1,), g)
        return k.binary("maximum", y, number())
    if kind == 2:
        return F.softmax(x, axis=draw.choice([1, 2]))
    if kind == 3:
        return k.binary(draw.choice(["add", "sub"]), x, old)
    if kind == 4:
        fill = draw.choice([0.0, -0.0, 1.0])
        return k.slice(k.pad(x, ((0, 0), (0, 0), (1, 1)), fill), (0, 0, draw.choice([0, 1])), (2, 6, 8), (1, 1, 1))
    if kind == 5:
        return k.permute(k.reshape(x, (2, 8, 6)), (0, 2, 1))
    if kind == 6:
        return k.concat([k.slice(x, (0, s, 0), (2, 3, 8), (1, 1, 1)) for s in draw.choice([(0, 3), (3, 0), (0, 0)])], 1)
    if kind == 7:
        y = k.reduce(draw.choice(["sum", "max"]), k.binary("mul", x, draw.choice([x, old])), (2,), True)
        return k.binary("add", x, k.expand(y, (2, 6, 8)))
    if kind == 8:
        return k.cumulative(draw.choice(["sum", "max"]), x, draw.choice([1, 2]))
    if kind == 9:
        picks = k.from_bytes(np.arange(6, dtype=np.int32)[:: draw.choice([1, -1])].tobytes(), dtypes.int32, (6,))
        return k.take(x, picks, 1)
    if kind == 10:
        return k.cast(k.cast(x, draw.choice([dtypes.int32, dtypes.float16, dtypes.uint8])), dtypes.float32)
    return k.pool(draw.choice(["sum", "max"]), x, (3,), (1,), ((1, 1),), (1,))


@pytest.mark.parametrize("seed", some(range(40), 4, __name__))
def test_random_plans_are_those_whose_kernels_are_each_built(seed: int, monkeypatch: Any) -> None:
    monkeypatch.setenv("EMBERLET_CACHE", "off")
    draw = random.Random(seed)
    k = WgpuBackend(planning=True)
    x = k.from_bytes(bytes(4 * 96), dtypes.float32, (2, 6, 8))
    tensors = [x, x]
    for _ in range(14):
        tensors.append(_layer(draw, k, tensors[-1], draw.choice(tensors)))
    roots = [tensors[-1].data] + [t.data for t in draw.sample(tensors[2:], 2) if t is not tensors[-1]]
    kinds = [(options, apart) for options in (Options(), VectorOptions(), VectorOptions(lanes=16, rows=14))
             for apart in (False, True)]  # fmt: skip
    once = [_told(roots, *kind) for kind in kinds]
    monkeypatch.setattr(alike_file, "_keyed", _without_key)
    assert once == [_told(roots, *kind) for kind in kinds]


def _without_key(*_: Any) -> Any:
    raise alike_file._NoKey


def _network(k: Any, layers: int = 10) -> list[Any]:
    """The root of a network with a layer of `layers` widths, twice each."""
    x = k.from_bytes(bytes(4 * 64), dtypes.float32, (1, 64))
    for width in [width for w in range(layers) for width in (16 + w, 16 + w)]:
        x = k.matmul(x, k.from_bytes(bytes(4 * x.shape[1] * width), dtypes.float32, (x.shape[1], width)))
    return [x.data]


def test_layers_that_repeat_are_built_once(monkeypatch: Any) -> None:
    monkeypatch.setenv("EMBERLET_CACHE", "off")
    built: list[str] = []
    build = Options.build

    def spy(self: Options, item: Any, stored: Any) -> Any:
        kernel = build(self, item, stored)
        built.append(kernel.source)
        return kernel

    monkeypatch.setattr(Options, "build", spy)
    k = WgpuBackend(planning=True)
    x = k.from_bytes(bytes(256), dtypes.float32, (8, 8))
    y = x
    for _ in range(6):
        y = k.binary("add", k.matmul(y, k.from_bytes(bytes(256), dtypes.float32, (8, 8))), x)
    plan, _ = make_plan([y.data], Options())
    assert len(plan.steps) == 6
    assert len(built) == 2  # the first layer reads x twice


def _refuse(*_: Any) -> Any:
    raise AssertionError("a kernel was built")


def test_a_later_plan_finds_its_kernels_on_disk(cache: Path, monkeypatch: Any) -> None:
    k = WgpuBackend(planning=True)
    roots = _network(k)
    want = _told(roots, Options(), True)
    assert len(list(cache.glob("kernels-*"))) == 1
    monkeypatch.setattr(Options, "build", _refuse)
    assert _told(roots, Options(), True) == want
    with pytest.raises(AssertionError, match="was built"):
        _told(roots, Options("cpu"), True)  # kernels for another device
    with pytest.raises(AssertionError, match="was built"):
        _told(roots, Options(), False)


def test_other_code_does_not_use_these_kernels(cache: Path, monkeypatch: Any) -> None:
    roots = _network(WgpuBackend(planning=True))
    make_plan(roots, Options())
    monkeypatch.setattr(kernel_cache, "_code", [b"other"])
    make_plan(roots, Options())
    assert len(list(cache.glob("kernels-*"))) == 2


def test_small_plans_are_not_kept(cache: Path) -> None:
    make_plan(_network(WgpuBackend(planning=True), alike_file.FEWEST // 2 - 1), Options())
    assert not list(cache.glob("kernels-*"))


def test_nothing_is_kept_if_the_cache_is_off(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EMBERLET_CACHE", "off")
    make_plan(_network(WgpuBackend(planning=True)), Options())
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_costs_only_the_cache(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path / "file"))
    assert make_plan(_network(WgpuBackend(planning=True)), Options())[0].steps


def test_damaged_files_are_ignored_and_replaced(cache: Path) -> None:
    roots = _network(WgpuBackend(planning=True))
    want = _told(roots, Options(), False)
    (path,) = cache.glob("kernels-*")
    whole = path.read_bytes()
    draw = random.Random(7)
    for _ in range(60):
        bad = bytearray(whole)
        if draw.random() < 0.3:
            del bad[draw.randrange(len(bad)) :]
        else:
            bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        path.write_bytes(bad)
        assert _told(roots, Options(), False) == want
        assert path.read_bytes() == whole


def test_the_folder_stays_within_its_limit(cache: Path, monkeypatch: Any) -> None:
    k = WgpuBackend(planning=True)
    make_plan(_network(k, 10), Options())
    (first,) = cache.glob("kernels-*")
    monkeypatch.setattr(kernel_cache, "LIMIT", 3 * first.stat().st_size)
    for layers in (11, 12, 13, 14, 15):
        make_plan(_network(k, layers), Options())
    kept = list(cache.glob("kernels-*"))
    assert first not in kept
    assert sum(path.stat().st_size for path in kept) <= kernel_cache.LIMIT


def test_a_plan_with_open_sizes_builds_equal_layers_once(gpu: Any, make: Any, monkeypatch: Any) -> None:
    w = make((8, 8)).to(gpu)

    def model(x: Any) -> Any:
        for _ in range(5):
            x = F.tanh(x @ w)
        return x

    built: list[int] = []
    build = Options.build
    monkeypatch.setattr(Options, "build", lambda self, item, stored: built.append(1) or build(self, item, stored))
    compiled = compile(model, make((3, 8)), backend=gpu, dims={"x": {0: ("n", 64)}})
    assert len(built) < 5
    for n in (1, 5, 64):
        x = make((n, 8))
        np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(model(x.to(gpu))), rtol=1e-5)


def test_an_eager_model_larger_than_the_cache_of_pipelines_compiles_each_kernel_once(gpu: Any, make: Any) -> None:
    device = gpu.device
    x, ws = make((3, 8)), [make((8 + i, 9 + i)) for i in range(12)]
    limit, compiled, done = device.pipelines._loose.limit, device.compiled, []

    def spy(name: str, source: str) -> Any:
        done.append(source)
        return compiled(name, source)

    device.pipelines.clear()
    device.pipelines._loose.limit = 4000
    device.compiled = spy
    try:
        for _ in range(3):
            y = x.to(gpu)
            for w in ws:
                y = y @ w.to(gpu)
            np.asarray(y)
        assert len(done) == len(set(done)) == 12
    finally:
        device.pipelines._loose.limit = limit
        del device.compiled
