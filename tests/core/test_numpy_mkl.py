"""Products of compiled NumPy plans by MKL: the results are NumPy's, whatever the shapes, and where MKL is not usable
plans use NumPy's own products."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import BackendError
from emberlet.host import blas_kernels, mkl
from emberlet.host.numpy_backend.compile import Compiled, compile, mkl_products
from emberlet.host.numpy_backend.compile.threads import schedule, workers
from emberlet.module import Module
from emberlet.param import Param
from emberlet.tensor import Tensor
from support.rows import every

from tools.components import require

INTEL = ("GenuineIntel", 6, True)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> None:
    """MKL for plans of any size; skips where the processor is not one that it is used on."""
    require("mkl")
    monkeypatch.setenv(mkl.VARIABLE, mkl.MKL)
    monkeypatch.setattr(mkl_products, "LEAST", 0)
    assert mkl.library() is not None, mkl.advice()


class Held(Module):
    """A function of inputs and of tensors that the module holds."""

    def __init__(self, function: Any, *tensors: Tensor) -> None:
        self.function = function
        self.held = [Param(tensor) for tensor in tensors]

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs, *(param.val() for param in self.held))


def drawn(random: np.random.Generator, *shape: int) -> Tensor:
    return emberlet.asarray(random.standard_normal(shape).astype(np.float32), backend="numpy")


def calls(compiled: Compiled) -> str:
    return repr(compiled.plan())


@pytest.mark.usefixtures("used")
@every("seed", range(40))
def test_products_of_random_operands_are_numpys(seed: int) -> None:
    random = np.random.default_rng(seed)
    m, k, n = (int(x) for x in random.choice([0, 1, 2, 3, 7, 16, 33, 64, 130], 3))
    lead = [int(x) for x in random.integers(1, 4, random.integers(0, 3))]
    shapes = [[*lead, m, k], [*lead, k, n]]
    for shape in shapes:  # an operand may broadcast
        for axis in range(len(lead)):
            if random.integers(3) == 0:
                shape[axis] = 1
        del shape[: int(random.integers(0, len(shape) - 1))]
    orders = [list(random.permutation(len(s))) if random.integers(2) else list(range(len(s))) for s in shapes]
    steps = [int(random.choice([1, 1, 2, -1])) for _ in shapes]

    def seen(x: Tensor, which: int) -> Tensor:
        """The operand as a view with other strides."""
        y = F.permute(x, [orders[which].index(i) for i in range(len(orders[which]))])
        return y if steps[which] == 1 else y[..., :: steps[which]]

    def function(a: Tensor, b: Tensor) -> Tensor:
        return F.matmul(seen(a, 0), seen(b, 1))

    given = []
    for shape, order, step in zip(shapes, orders, steps, strict=True):
        full = [*shape[:-1], shape[-1] * abs(step)]
        given.append(drawn(random, *(full[i] for i in order)))
    constant = bool(random.integers(2))
    model = Held(function, given[1]) if constant else function
    compiled = compile(model, *(given[:1] if constant else given))
    arrays = [np.asarray(seen(x, i)) for i, x in enumerate(given)]
    expected = np.matmul(*(x.astype(np.float64) for x in arrays))
    for _ in range(2):
        np.testing.assert_allclose(compiled(*(given[:1] if constant else given)), expected, **CLOSE)
    if m and k and n and steps == [1, 1] and not any(o != sorted(o) for o in orders):
        assert "mkl.product" in calls(compiled)


@pytest.mark.usefixtures("used")
def test_what_an_earlier_call_left_is_not_read() -> None:
    random = np.random.default_rng(1)
    model = compile(Held(F.matmul, drawn(random, 32, 48)), drawn(random, 20, 32))
    x = drawn(random, 20, 32)
    before = np.asarray(model(x))
    odd = np.asarray(x).copy()
    odd[3, 5], odd[7, 1], odd[8, 2] = np.nan, np.inf, -np.inf
    found = np.asarray(model(odd))
    assert np.isnan(found[3]).all() and np.isinf(found[7:9]).all() and np.isfinite(found[9:]).all()
    np.testing.assert_array_equal(np.asarray(model(x)), before)


@pytest.mark.usefixtures("used")
@pytest.mark.parametrize("count", [1, 2])
def test_activations_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(workers, "available", lambda mkl=False: count)
    monkeypatch.setattr(workers, "_blas", lambda: (lambda: 4, lambda n: None))
    monkeypatch.setattr(schedule, "LARGE", 0)
    monkeypatch.setattr(schedule, "LARGE_LOCKED_WITH_MKL", 0)
    monkeypatch.setattr(schedule, "LEAST", 0.0)
    random = np.random.default_rng(3)

    def function(x: Tensor, weight: Tensor) -> Any:
        y = x @ weight
        return F.gelu(y), F.gelu(F.permute(y, (1, 0))), F.softmax(x[:, ::2], axis=0), F.exp(x[:, 1:2]), F.exp(x)

    model = Held(function, drawn(random, 90, 600))
    x = np.asarray(drawn(random, 300, 90)).copy() * 5
    x[0, 0], x[1, 1], x[2, 2], x[3, 3] = np.nan, np.inf, -np.inf, 200
    compiled = compile(model, x)
    if count == 1:
        assert "mkl.vmsCdfNorm" in calls(compiled) and "mkl.vmsExp" in calls(compiled)
    for found, expected in zip(compiled(x), model(x), strict=True):
        np.testing.assert_allclose(found, np.asarray(expected), rtol=2e-6, atol=2e-6)


@pytest.mark.usefixtures("used")
def test_weights_of_convolutions_are_packed_once_and_those_of_layers_used_in_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "available", lambda mkl=False: 1)
    random = np.random.default_rng(4)

    def function(x: Tensor, weight: Tensor, matrix: Tensor) -> Tensor:
        return F.reshape(F.permute(F.conv2d(x, weight, padding=1), (0, 2, 3, 1)), (196, 512)) @ matrix

    held = drawn(random, 512, 256, 3, 3), drawn(random, 512, 512)
    model = Held(function, *held)
    x = drawn(random, 1, 256, 14, 14)
    compiled = compile(model, x)
    assert "packed float32[2304, 512]" in calls(compiled)
    assert "packed float32[512, 512]" not in calls(compiled)
    np.testing.assert_allclose(compiled(x), np.asarray(model(x)), rtol=1e-3, atol=1e-2)


def _network(random: np.random.Generator, groups: int) -> Any:
    """(1, 16, 20, 20) -> (1, 30), with convolutions of either layout and a product."""
    held = [
        drawn(random, 32, 16 // groups, 3, 3),
        drawn(random, 32),
        drawn(random, 24, 32, 1, 1),
        drawn(random, 24, 30),
    ]

    def function(x: Tensor, first: Tensor, bias: Tensor, second: Tensor, last: Tensor) -> Tensor:
        y = F.relu(F.conv2d(x, first, bias, padding=1, groups=groups))
        y = F.max_pool2d(F.conv2d(y, second, stride=2), 2)
        return F.softmax(F.mean(y, axis=(2, 3)) @ last, axis=-1)

    return Held(function, *held)


@pytest.mark.usefixtures("used")
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("least", [0, 1 << 40])
def test_networks_give_what_the_model_gives(
    monkeypatch: pytest.MonkeyPatch, groups: int, count: int, least: int
) -> None:
    from emberlet.host.numpy_backend.compile import layout

    monkeypatch.setattr(layout, "LARGE", least)
    monkeypatch.setattr(workers, "available", lambda mkl=False: count)
    monkeypatch.setattr(workers, "_blas", lambda: (lambda: 4, lambda n: None))
    monkeypatch.setattr(schedule, "LARGE", 0)
    monkeypatch.setattr(schedule, "LARGE_LOCKED_WITH_MKL", 0)
    monkeypatch.setattr(schedule, "LEAST", 0.0)
    random = np.random.default_rng(groups)
    model = _network(random, groups)
    compiled = compile(model, drawn(random, 1, 16, 20, 20))
    assert "mkl.product" in calls(compiled)
    for _ in range(3):
        x = drawn(random, 1, 16, 20, 20)
        np.testing.assert_allclose(compiled(x), np.asarray(model(x)), rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("used")
def test_threads_share_a_model() -> None:
    random = np.random.default_rng(2)
    model = compile(_network(random, 1), drawn(random, 1, 16, 20, 20))
    xs = [drawn(random, 1, 16, 20, 20) for _ in range(4)]
    expected = [np.asarray(model(x)) for x in xs]
    wrong: list[int] = []

    def work(i: int) -> None:
        wrong.extend(i for _ in range(20) if not np.array_equal(np.asarray(model(xs[i])), expected[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.usefixtures("used")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
def test_a_forked_process_multiplies_too() -> None:
    code = """if True:
        import os, sys
        import numpy as np
        from emberlet import functional as F
        from emberlet.host.numpy_backend.compile import compile, mkl_products
        mkl_products.LEAST = 0
        x = np.ones((40, 50), np.float32)
        model = compile(lambda a: F.matmul(a, a.T), x)
        assert "mkl.product" in repr(model.plan())
        first = np.asarray(model(x))
        child = os.fork()
        if not child:
            os._exit(0 if np.array_equal(np.asarray(model(x)), first) else 1)
        sys.exit(os.waitpid(child, 0)[1])
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


@pytest.mark.usefixtures("used")
def test_a_compiled_model_pickles() -> None:
    import pickle

    model = compile(emberlet.functional.softmax, np.zeros((3, 4), np.float32))
    assert isinstance(pickle.loads(pickle.dumps(model)), Compiled)


def test_other_processors_keep_numpys_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert mkl.suits(INTEL)
    assert not mkl.suits(("GenuineIntel", 6, False))
    assert not mkl.suits(("AuthenticAMD", 26, True))
    monkeypatch.setattr(sys, "platform", "win32")
    assert not mkl.suits(INTEL)


def test_the_variable_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mkl_products, "LEAST", 0)
    monkeypatch.setattr(mkl, "suits", lambda: True)
    monkeypatch.setattr(mkl, "_loaded", lambda: "the library")
    monkeypatch.setattr(blas_kernels, "threads", lambda: 1)
    for value, found in (("numpy", None), ("mkl", "the library"), ("", "the library")):
        monkeypatch.setenv(mkl.VARIABLE, value)
        assert mkl_products.library(1) == found
    monkeypatch.setattr(mkl, "suits", lambda: False)
    assert mkl_products.library(1) is None
    monkeypatch.setenv(mkl.VARIABLE, "mkl")
    assert mkl_products.library(1) == "the library"


def test_more_threads_than_a_plan_has_are_left_to_numpys_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(mkl.VARIABLE, raising=False)
    monkeypatch.setattr(mkl, "library", lambda: "the library")
    for locked, threads, size, found in (
        (False, 1, 1 << 23, "the library"),
        (False, 1, (1 << 23) - 1, None),
        (False, 2, (1 << 26) - 1, None),
        (False, 2, 1 << 26, "the library"),
        (False, 4, 1 << 26, "the library"),
        (False, 5, 1 << 40, None),
        (True, 2, (1 << 29) - 1, None),
        (True, 2, 1 << 29, "the library"),
    ):
        monkeypatch.setattr(schedule, "machine", lambda locked=locked: None if locked else "a machine")
        monkeypatch.setattr(blas_kernels, "threads", lambda n=threads: n)
        assert mkl_products.library(size) == found


@pytest.mark.parametrize(
    ("locked", "with_mkl", "least"), [(False, False, 26), (False, True, 26), (True, False, 31), (True, True, 29)]
)
def test_large_plans_have_threads(monkeypatch: pytest.MonkeyPatch, locked: bool, with_mkl: bool, least: int) -> None:
    monkeypatch.setattr(schedule, "machine", lambda: None if locked else "a machine")
    assert [schedule.large(n, with_mkl) for n in ((1 << least) - 1, 1 << least)] == [False, True]


def test_a_plan_with_mkl_uses_some_of_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_blas", lambda: (lambda: 16, lambda n: None))
    assert (workers.available(), workers.available(mkl=True)) == (1, workers.MOST)


def test_a_wrong_value_of_the_variable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(mkl.VARIABLE, "atlas")
    with pytest.raises(BackendError, match="EMBERLET_BLAS=atlas"):
        mkl.library()
    assert "is neither numpy nor mkl" in str(mkl.advice())
    assert mkl.summary() is None


def _package(folder: Path, **sizes: int) -> Any:
    """A package mkl whose files say these sizes, and are 3 bytes long where they exist."""
    files = []
    for name, size in sizes.items():
        path = folder / f"libmkl_{name}.so.3"
        if size >= 0:
            path.write_bytes(b"abc")
        files.append(SimpleNamespace(name=path.name, size=size, locate=lambda path=path: path))
    return SimpleNamespace(files=files, version="1")


@pytest.mark.skipif(sys.platform != "linux", reason="MKL is used on Linux only")
@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"rt": 3, "core": -1}, "is missing or damaged"),
        ({"rt": 3, "core": 4}, "is missing or damaged"),
        ({"core": 3}, "has no libmkl_rt"),
        ({"rt": 3, "core": 3, "scalapack_lp64": -1}, "does not load"),  # what products do not need may be missing
    ],
)
def test_a_broken_package_leaves_numpys_products(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sizes: dict[str, int], said: str
) -> None:
    monkeypatch.setattr(mkl, "_distribution", lambda: _package(tmp_path, **sizes))
    monkeypatch.setattr(mkl, "_in_use", lambda: False)
    monkeypatch.setattr(mkl, "_loaded", mkl._loaded.__wrapped__)
    monkeypatch.setattr(mkl, "suits", lambda: True)
    monkeypatch.delenv(mkl.VARIABLE, raising=False)
    assert mkl.library() is None and mkl.summary() is None
    assert said in str(mkl.advice())
    monkeypatch.setenv(mkl.VARIABLE, mkl.MKL)
    with pytest.raises(BackendError, match=said):
        mkl.library()


@pytest.mark.skipif(sys.platform != "linux", reason="MKL is used on Linux only")
def test_without_the_package_devices_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from importlib import metadata

    from emberlet.host.cli import devices

    def absent(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    monkeypatch.setattr(mkl, "_loaded", mkl._loaded.__wrapped__)
    monkeypatch.setattr(mkl, "suits", lambda: True)
    monkeypatch.delenv(mkl.VARIABLE, raising=False)
    found = devices._numpy()
    assert "products" not in found
    assert 'install the extra "emberlet[mkl]"' in found["faster"]


@pytest.mark.usefixtures("used")
def test_devices_says_that_plans_use_it() -> None:
    from emberlet.host.cli import devices

    assert devices._numpy()["products"].startswith("MKL ")


@pytest.mark.usefixtures("used")
def test_mkl_of_another_library_is_left_alone() -> None:
    code = """if True:
        import ctypes
        from emberlet.host import mkl
        path = mkl._checked(mkl._distribution())
        held = ctypes.CDLL(path)
        print(mkl._loaded())
    """
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=120, capture_output=True, text=True, encoding="utf-8"
    )
    assert "another library of this process uses MKL" in done.stdout
