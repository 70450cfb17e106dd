"""Module.cast: every float in another dtype, except what that dtype does not hold."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import Module, nn
from emberlet import functional as F
from emberlet.errors import DTypeError
from emberlet.module.narrowing import PrecisionWarning
from emberlet.param import Param

RNG = np.random.default_rng(0)


class Net(Module):
    def __init__(self, backend: Any = None) -> None:
        self.conv = nn.Conv2d(3, 4, 3, backend=backend)
        self.norm = nn.BatchNorm(4, backend=backend)
        self.head = nn.Linear(4, 5, backend=backend)
        self.offset = emberlet.asarray([0.5, 1.5, 2.5, 3.5, 4.5], backend=backend)
        self.order = emberlet.asarray([4, 3, 2, 1, 0], backend=backend)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.norm(self.conv(x))).mean((2, 3))
        return (self.head(x) + self.offset)[:, self.order]


def dtypes(module: Any) -> dict[str, str]:
    return {name: p.dtype.name for name, p in module.named_params()}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_all_but_a_batch_norm_and_integers_is_cast(backend: str, dtype: str) -> None:
    F.manual_seed(1)
    net = Net(backend)
    x = emberlet.asarray(RNG.normal(size=(2, 3, 6, 6)).astype(np.float32), backend=backend)
    wanted = np.asarray(net(x))
    weights = {name: np.asarray(p.val()) for name, p in net.named_params()}
    assert net.cast(dtype) is net
    found = dtypes(net)
    wide = "float64" if dtype == "float64" else "float32"
    assert {name: d for name, d in found.items() if d != dtype} == {
        name: wide for name in found if name.startswith("norm.") and wide != dtype
    }
    assert (net.offset.dtype.name, net.order.dtype.name) == (dtype, "int64")
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-5}[dtype]
    for name, p in net.named_params():
        np.testing.assert_allclose(np.asarray(p.val().astype("float32")), weights[name], rtol=tolerance)
    y = net(x.astype(dtype))
    assert y.dtype.name == dtype
    np.testing.assert_allclose(np.asarray(y.astype("float32")), wanted, atol=5 * tolerance, rtol=5 * tolerance)


def test_numpy_rounds_the_same() -> None:
    layer = nn.Linear(7, 9)
    weight = np.asarray(layer.weight.val())
    np.testing.assert_array_equal(np.asarray(layer.cast("float16").weight.val()), weight.astype(np.float16))


def test_what_the_dtype_does_not_hold_stays_with_a_warning() -> None:
    layer = nn.Linear(2, 2)
    layer.weight.set(emberlet.asarray([[1e6, 1.0], [2.0, 3.0]]))
    mask = nn.Sequential(layer)
    mask.far = emberlet.asarray([-3e38, 0.0])
    with pytest.warns(PrecisionWarning, match=r"0\.weight.* stays float32") as told:
        mask.cast("float16")
    assert [each.filename for each in told] == [__file__]
    assert layer.weight.dtype.name == "float32"
    assert layer.bias.dtype.name == "float16"
    assert mask.far.dtype.name == "float32"
    mask.cast(emberlet.bfloat16)  # which reaches as far as float32
    assert {*dtypes(mask).values(), mask.far.dtype.name} == {"bfloat16"}


def test_lazy_parameters_stay_lazy_and_identities_stay() -> None:
    net = Net()
    ids = [p.id for p in net.params()]
    net.cast("float16")
    assert not any(p.is_initialized for p in net.params())
    assert [p.id for p in net.params()] == ids
    assert net.head.weight.dtype.name == "float16"
    assert net.head.weight.val().dtype.name == "float16"
    assert net.norm.running_var.val().dtype.name == "float32"


def test_shared_parameters_stay_shared() -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    pair = nn.Sequential(first, second)
    pair.cast("float16")
    assert first.weight is second.weight
    assert first.weight.dtype.name == "float16"


def test_packed_weights_stay_packed_and_are_read_in_the_dtype() -> None:
    layer = nn.Linear(8, 4)
    layer.quantize_weights(4)
    before = np.asarray(layer.weight.val())
    values = np.asarray(layer.weight.values.val())
    layer.cast("float16")
    np.testing.assert_array_equal(np.asarray(layer.weight.values.val()), values)
    assert layer.weight.scale.dtype.name == "float32"
    assert layer.weight.val().dtype.name == "float16"
    np.testing.assert_array_equal(np.asarray(layer.weight.val()), before.astype(np.float16))
    assert layer(emberlet.zeros((1, 8), dtype="float16")).dtype.name == "float16"


def test_a_cast_module_trains() -> None:
    layer = nn.Linear(3, 1).train().cast("float64")
    x = emberlet.asarray([[1.0, 2.0, 3.0]], dtype="float64", backend=layer.weight.backend)
    found = layer(x).sum().backward()
    np.testing.assert_allclose(np.asarray(layer.weight.val().grad(found)).reshape(-1), [1, 2, 3])


@pytest.mark.parametrize("dtype", ["int8", "bool", "float8_e4m3fn", "complex64"])
def test_other_dtypes_are_refused(dtype: str) -> None:
    with pytest.raises(DTypeError, match="float16, bfloat16, float32 or float64"):
        nn.Linear(2, 2).cast(dtype)


def test_a_saved_model_keeps_the_dtypes(tmp_path: Any) -> None:
    net = Net().cast("float16")
    net.save_file(tmp_path / "net.bpk")
    again = Net().cast("float16").load_file(tmp_path / "net.bpk")
    assert dtypes(again) == dtypes(net)
    x = emberlet.asarray(RNG.normal(size=(1, 3, 6, 6)).astype(np.float16))
    np.testing.assert_array_equal(np.asarray(again(x)), np.asarray(net(x)))


def test_param_cast() -> None:
    p = Param(emberlet.asarray([1.5]))
    assert p.cast("float16") is p
    assert p.val().dtype.name == "float16"


def test_a_cast_that_is_interrupted_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net("numpy")
    net(emberlet.ones((1, 3, 6, 6), backend="numpy"))
    before, done = dtypes(net), []
    cast = type(net.offset.backend).cast

    def interrupted(*args: Any, **options: Any) -> Any:
        if args[2].name == "float64":
            done.append(1)
            if len(done) == 3:
                raise KeyboardInterrupt
        return cast(*args, **options)

    monkeypatch.setattr(type(net.offset.backend), "cast", interrupted)
    with pytest.raises(KeyboardInterrupt):
        net.cast("float64")
    assert dtypes(net) == before and len(done) == 3
    net.cast("float64")
    assert dtypes(net)["head.weight"] == "float64"
