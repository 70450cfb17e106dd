"""GPTQ, AWQ and bias correction: what each promises, on drawn layers and on the transformers of tests/models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from emberlet import Module, Param, asarray, codegen, nn
from emberlet import functional as F
from emberlet.errors import UnsupportedError
from emberlet.functional.quantized.weights import WeightScheme, as_rows
from emberlet.module.narrowing import PrecisionWarning
from emberlet.store.weight_methods.gptq import gptq, nearest
from emberlet.store.weight_methods.recording import groups, rows, watched

MODELS = Path(__file__).resolve().parents[1] / "models"
SCHEMES = [
    WeightScheme(8), WeightScheme(4), WeightScheme(2), WeightScheme(4, "affine", 8), WeightScheme(2, "affine"),
    WeightScheme(4, level="tensor"), WeightScheme(4, calibration="absolute-mean"),
]  # fmt: skip


def drawn(seed: int, n: int = 24, count: int = 300) -> tuple[Any, Any]:
    """Weights (10, n), and inputs (count, n) that depend on each other."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, n)) @ draw.normal(size=(n, n)) * draw.exponential(size=n)
    return draw.normal(size=(10, n)).astype(np.float32).astype(np.float64), x


def off(w: Any, found: Any, x: Any) -> float:
    return float(np.mean((x @ (found - w).T) ** 2))


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_gptqs_outputs_are_nearer_than_those_of_rounding_to_the_nearest(scheme: WeightScheme) -> None:
    w, x = drawn(1)
    found, plain = gptq(w, x.T @ x, scheme), nearest(w, scheme)
    assert off(w, found.real(24), x) < 0.9 * off(w, plain.real(24), x)
    np.testing.assert_array_equal(found.scale, plain.scale)
    last = (1 << scheme.bits) - 1
    assert found.levels.min() >= (scheme.mode == "symmetric")
    assert found.levels.max() <= last


def test_gptq_is_least_squares_over_the_weights_that_are_left() -> None:
    """What the recurrences of Frantar et al. stand for: after each weight, the others minimize the outputs' error."""
    w, x = drawn(2, 9)
    scheme = WeightScheme(4)
    found, plain = gptq(w, x.T @ x, scheme, damping=1e-12), nearest(w, scheme)
    for row in range(len(w)):
        left, scale = w[row].copy(), plain.scale[row, 0]
        rounded = np.zeros(9)
        done: list[int] = []
        for j in np.argsort(-np.diag(x.T @ x)):
            rounded[j] = np.clip(np.rint(left[j] / scale), -7, 7) * scale
            done.append(int(j))
            rest = [i for i in range(9) if i not in done]
            if rest:
                wanted = x @ w[row] - x[:, done] @ rounded[done]
                left[rest] = np.linalg.lstsq(x[:, rest], wanted, rcond=None)[0]
        better = off(w[row : row + 1], rounded[None], x) <= off(w[row : row + 1], plain.real(9)[row : row + 1], x)
        np.testing.assert_allclose(found.real(9)[row], rounded if better else plain.real(9)[row], atol=1e-9)


def test_inputs_that_are_always_zero_or_equal_are_no_obstacle() -> None:
    w, x = drawn(3)
    x[:, 3] = 0
    x[:, 5] = x[:, 6]
    found = gptq(w, x.T @ x, WeightScheme(4))
    assert np.isfinite(found.real(24)).all()
    assert off(w, found.real(24), x) < off(w, nearest(w, WeightScheme(4)).real(24), x)
    none = gptq(w, np.zeros((24, 24)), WeightScheme(4))
    np.testing.assert_array_equal(none.levels, nearest(w, WeightScheme(4)).levels)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(6, 5, bias=False), (3, 4, 6)),
        (nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2, bias=False), (2, 4, 9)),
        (nn.Conv2d(3, 4, (3, 2), stride=(1, 2), padding=((0, 1), (2, 0)), dilation=(2, 1), bias=False), (2, 3, 8, 7)),
        (nn.Conv2d(4, 4, 3, padding="same", groups=4, bias=False), (2, 4, 5, 5)),
        (nn.Conv3d(2, 3, 2, bias=False), (1, 2, 4, 3, 5)),
    ],
    ids=["linear", "grouped", "dilated", "depthwise", "3d"],
)
def test_the_rows_of_a_layer_times_its_weights_are_its_outputs(layer: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    y = np.asarray(layer(asarray(x)))
    parts = rows(layer, x, np.random.default_rng(0))
    assert parts is not None
    axis = 1 if isinstance(layer, nn.Linear) else 0
    weights = np.split(np.asarray(as_rows(layer.weight.val(), axis)), len(parts))
    found = np.concatenate([part @ w.T for part, w in zip(parts, weights, strict=True)], axis=1)
    wanted = y.reshape(-1, y.shape[-1]) if axis else np.moveaxis(y, 1, -1).reshape(-1, y.shape[1])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def transformer(name: str) -> tuple[Any, list[Any]]:
    model = codegen.load(str(MODELS / name / "model.onnx"), "numpy")
    with np.load(next((MODELS / name).glob("case*.npz"))) as held:
        tokens = next(held[key] for key in held.files if key.startswith("in_"))
    draw = np.random.default_rng(0)
    return model, [(draw.integers(0, tokens.max() + 1, (4, 8)),) for _ in range(8)]


def error(model: Any, wanted: list[Any], samples: list[Any]) -> float:
    return float(np.mean([(np.asarray(model(*x)) - y) ** 2 for x, y in zip(samples, wanted, strict=True)]))


OPTIONS = [
    {"bits": 4},
    {"bits": 4, "mode": "affine", "level": 16},
    {"bits": 2, "mode": "affine", "level": 8, "keep": ["lm_head", "wpe"]},
]


def losses(model: Any, samples: list[Any], method: str, options: dict[str, Any]) -> tuple[float, float]:
    """The error of weights rounded to the nearest, and of those that a method chose."""
    wanted = [np.asarray(model(*x)) for x in samples]
    plain, better = model.clone(), model.clone()
    said: list[str] = []
    names = plain.quantize_weights(**options)
    assert better.quantize_weights(**options, method=method, samples=samples, tell=said.append) == names
    assert len(said) >= 4
    assert all(line.startswith(method) for line in said)
    return error(plain, wanted, samples), error(better, wanted, samples)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_transformer_loses_less_by_gptq(options: dict[str, Any]) -> None:
    plain, better = losses(*transformer("gpt"), "gptq", options)
    assert better < plain


@pytest.mark.parametrize("options", OPTIONS[1:], ids=str)
def test_a_transformer_with_large_channels_loses_less_by_awq(options: dict[str, Any]) -> None:
    """Such channels, which trained language models have, are what AWQ is for."""
    model, samples = transformer("gpt")
    for name, param in model.named_params():
        if name.endswith("weight") and len(param.shape) == 1:  # of a norm
            weight = np.asarray(param.val()).copy()
            weight[[3, 17]] *= 40
            param.set(asarray(weight))
    plain, better = losses(model, samples, "awq", options)
    assert better < 0.8 * plain


def initialized(model: Any) -> Any:
    """The model, whose copies have the same values."""
    for param in model.params():
        param.val()
    return model


def network() -> tuple[Any, list[Any]]:
    F.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.Relu(), nn.Conv2d(8, 8, 3, groups=8), nn.Relu(), nn.Flatten(),
        nn.Linear(8 * 36, 12), nn.Relu(), nn.Linear(12, 5, bias=False),
    )  # fmt: skip
    initialized(model)
    draw = np.random.default_rng(1)
    return model, [asarray(np.abs(draw.normal(size=(6, 3, 8, 8))).astype(np.float32)) for _ in range(4)]


def test_a_convolutional_network_loses_less_by_gptq() -> None:
    model, samples = network()
    wanted = [np.asarray(model(x)) for x in samples]
    plain, better = model.clone(), model.clone()
    plain.quantize_weights(2)
    better.quantize_weights(2, method="gptq", samples=samples)
    pairs = [(x,) for x in samples]
    assert error(better, wanted, pairs) < 0.8 * error(plain, wanted, pairs)


@pytest.mark.parametrize("method", ["rtn", "gptq"])
def test_corrected_biases_give_the_float_means(method: str) -> None:
    model, samples = network()
    plain, better = model.clone(), model.clone()
    plain.quantize_weights(2, method=method, samples=samples)
    better.quantize_weights(2, method=method, samples=samples, correct_bias=True)

    def means(net: Any, stop: int) -> Any:
        parts = [list(net)[:stop] for _ in samples]
        outs = []
        for x, layers in zip(samples, parts, strict=True):
            y = x
            for layer in layers:
                y = layer(y)
            outs.append(np.asarray(y))
        whole = np.concatenate(outs)
        return whole.mean(tuple(i for i in range(whole.ndim) if i != 1))

    for stop in (1, 3, 6):  # the convolutions and the dense layer with biases
        np.testing.assert_allclose(means(better, stop), means(model, stop), atol=1e-4)
        assert np.abs(means(plain, stop) - means(model, stop)).max() > 1e-3


def test_awq_keeps_inputs_that_are_large() -> None:
    draw = np.random.default_rng(4)
    x = draw.normal(size=(64, 32)).astype(np.float32)
    x[:, 3] *= 100
    layer = initialized(nn.Linear(32, 16))
    wanted = np.asarray(layer(asarray(x)))
    plain, better = layer.clone(), layer.clone()
    for each in (plain, better):
        each.quantize_weights(4, method="awq" if each is better else "rtn", samples=[asarray(x)])
    lost, kept = (np.abs(np.asarray(each(asarray(x))) - wanted).mean() for each in (plain, better))
    assert kept < 0.5 * lost
    # The packed weight is that of the products.
    product = x @ np.asarray(better.weight.val()) + np.asarray(better.bias.val())
    np.testing.assert_allclose(np.asarray(better(asarray(x))), product, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("ending", ["bpk", "safetensors", "npz"])
def test_input_scales_are_saved_and_fit_every_form(ending: str, tmp_path: Path) -> None:
    F.manual_seed(5)
    draw = np.random.default_rng(5)
    x = asarray(draw.normal(size=(9, 12)).astype(np.float32) * draw.exponential(size=12).astype(np.float32))
    made = initialized(nn.Sequential(nn.Linear(12, 7)))
    real = made.clone()
    made.quantize_weights(4, method="awq", samples=[x])
    assert not np.allclose(np.asarray(next(iter(made)).weight.input_scale.val()), 1)
    path = tmp_path / f"w.{ending}"
    made.save_into(path)
    same, wide, other = (nn.Sequential(nn.Linear(12, 7)) for _ in range(3))
    same.quantize_weights(4, input_scales=True)
    other.quantize_weights(8)
    for net, tolerance in ((same, 0), (wide, 1e-6), (other, 2e-2)):
        net.load_from(path, layout="burn")
        wanted = np.asarray(made(x))
        np.testing.assert_allclose(np.asarray(net(x)), wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())
    same.load_from(real, layout="burn")  # float weights are divided by the scales that the module has
    np.testing.assert_allclose(np.asarray(same(x)), np.asarray(real(x)), atol=0.2)
    np.testing.assert_array_equal(np.asarray(same(x)), np.asarray(made(x)))


def test_a_shared_weight_stays_shared_and_lazy_ones_are_initialized() -> None:
    drawn_now = asarray(np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32))
    first, second = nn.Linear(6, 6), nn.Linear(6, 6)
    first.weight = second.weight = Param.uninitialized(lambda *_: drawn_now, (6, 6))
    model = nn.Sequential(first, nn.Relu(), second)
    model.quantize_weights(4, method="gptq", samples=[asarray(np.ones((2, 6), np.float32))])
    assert first.weight is second.weight
    reach = np.abs(np.asarray(drawn_now)).max(0)
    assert (np.abs(np.asarray(first.weight.val()) - np.asarray(drawn_now)) <= reach / 7).all()


class Branching(Module):
    """One of two layers, by an argument, and one after both."""

    def __init__(self) -> None:
        self.a, self.b, self.last = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: Any, first: bool) -> Any:
        return self.last(self.a(x) if first else self.b(x))


def test_layers_that_only_later_samples_reach_are_chosen_too_before_those_after_them() -> None:
    draw = np.random.default_rng(7)
    net = initialized(Branching())
    base = draw.normal(size=(2, 16))
    samples = [(asarray((draw.normal(size=(64, 2)) @ base).astype(np.float32)), k == 0) for k in range(4)]
    order = [group.names for group in groups(net, {n: getattr(net, n) for n in ("a", "b", "last")}, samples)]
    assert sorted(order) == [("a",), ("b",), ("last",)]
    assert order[-1] == ("last",)
    plain, better = net.clone(), net.clone()
    plain.quantize_weights(4)
    better.quantize_weights(4, method="gptq", samples=samples)
    for name in ("a", "b", "last"):
        values = [np.asarray(getattr(each, name).weight.values.val()) for each in (plain, better)]
        assert (values[0] != values[1]).any(), name


def test_a_layer_that_a_later_sample_calls_more_often_is_seen_each_time() -> None:
    class Net(Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Any, times: int) -> Any:
            for _ in range(times):
                x = self.layer(x)
            return x

    net = initialized(Net())
    x = asarray(np.ones((2, 4), np.float32))
    [group] = groups(net, {"layer": net.layer}, [(x, 1), (x, 3), (x, 2)])
    assert group == (("layer",), 3)


@pytest.mark.parametrize("method", ["gptq", "awq"])
def test_half_precision_overflows_in_no_sum(method: str) -> None:
    """Inputs of float16 whose squares are not numbers of float16: as good as those of float32."""
    draw = np.random.default_rng(8)
    x = (draw.normal(size=(64, 4)) @ draw.normal(size=(4, 64)) * draw.exponential(size=64) * 60).astype(np.float16)
    lost = []
    for dtype in ("float16", "float32"):
        F.manual_seed(1)
        net = initialized(nn.Linear(64, 16)).cast(dtype)
        given = asarray(x).astype(dtype)
        wanted = np.asarray(net(given)).astype(np.float64)
        net.quantize_weights(4, method=method, samples=[given])
        lost.append(np.sqrt(np.mean((np.asarray(net(given)).astype(np.float64) - wanted) ** 2)))
    assert lost[0] < 1.5 * lost[1]


@pytest.mark.parametrize("size", [1e-170, 1e-30, 1e150, 3e153])
def test_gptq_ends_whatever_the_size_of_the_inputs(size: float) -> None:
    draw = np.random.default_rng(9)
    net = initialized(nn.Linear(8, 4)).cast("float64")
    net.quantize_weights(4, method="gptq", samples=[asarray(draw.normal(size=(3, 8)) * size)])
    assert np.isfinite(np.asarray(net.weight.val())).all()


def test_a_bias_of_several_layers_stays_as_it_is() -> None:
    net = nn.Sequential(*(nn.Linear(8, 8) for _ in range(3)))
    first, second, _ = net
    second.bias = first.bias
    initialized(net)
    x = asarray((np.random.default_rng(1).normal(size=(64, 8)) + 2).astype(np.float32))
    before = [np.asarray(layer.bias.val()) for layer in net]
    net.quantize_weights(2, correct_bias=True, samples=[x])
    same = [np.array_equal(old, np.asarray(layer.bias.val())) for old, layer in zip(before, net, strict=True)]
    assert same == [True, True, False]


def test_calls_of_other_threads_are_not_recorded_and_own_forwards_return() -> None:
    layer = initialized(nn.Linear(4, 4))
    own = layer.__dict__["forward"] = lambda x: type(layer).forward(layer, x * 2)
    x = asarray(np.ones((1, 4), np.float32))
    wanted = np.asarray(layer(x))
    seen: list[Any] = []
    with watched({"": layer}, lambda name, _, x, y: seen.append(np.asarray(y))):
        thread = Thread(target=layer, args=(x,))
        thread.start()
        thread.join()
        assert seen == []
        layer(x)
    [found] = seen
    np.testing.assert_array_equal(found, wanted)
    assert layer.__dict__["forward"] is own


@pytest.mark.parametrize(
    "samples", [5, None, [], "x", {"x": 1}, np.ones((2, 2, 8), np.float32), asarray(np.ones((2, 8)))], ids=repr
)
def test_what_is_no_list_of_samples_is_refused(samples: Any) -> None:
    with pytest.raises(UnsupportedError, match="a list of the arguments of calls"):
        nn.Linear(8, 4).quantize_weights(method="gptq", samples=samples)


def test_integers_of_numpy_are_integers_and_floats_are_not() -> None:
    layer = nn.Linear(8, 4)
    assert layer.quantize_weights(np.int64(4), level=np.int64(4)) == [""]
    assert layer.weight.block_size == 4
    with pytest.raises(UnsupportedError, match=r"not to 8\.0"):
        nn.Linear(8, 4).quantize_weights(8.0)  # type: ignore[arg-type]


def test_samples_without_numpy_say_what_is_missing() -> None:
    code = """import sys
sys.modules["numpy"] = None
from emberlet import asarray, nn
from emberlet.errors import EmberletError
for words in ({"method": "gptq"}, {"correct_bias": True}):
    try:
        nn.Linear(4, 4).quantize_weights(samples=[asarray([[1.0] * 4])], **words)
    except EmberletError as error:
        assert "needs numpy" in str(error), error
    else:
        raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_layers_that_are_called_often_or_never_are_quantized_too() -> None:
    class Net(Module):
        def __init__(self) -> None:
            self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            for _ in range(3):
                x = self.used(x)
            return x

    net = initialized(Net())
    x = asarray(np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32))
    plain = net.clone()
    plain.quantize_weights(4)
    assert net.quantize_weights(4, method="gptq", samples=[x], correct_bias=True) == ["used", "unused"]
    np.testing.assert_array_equal(np.asarray(net.unused.weight.val()), np.asarray(plain.unused.weight.val()))


def test_what_does_not_fit_is_refused_and_nothing_changes() -> None:
    model, samples = network()
    for words in ({"method": "gptq"}, {"method": "best", "samples": samples}, {"correct_bias": True},
                  {"method": "gptq", "samples": samples, "fake": True}):  # fmt: skip
        with pytest.raises(UnsupportedError):
            model.quantize_weights(4, **words)
        assert type(next(iter(model)).weight).__name__ == "Param"


@pytest.mark.parametrize("method", ["gptq", "awq"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_weights_and_biases_stay_where_inputs_are_not_finite(method: str, value: float) -> None:
    x = np.ones((6, 8), np.float32)
    x[2, 3] = value  # 1e30 has an infinite square
    layer = initialized(nn.Linear(8, 4))
    plain, chosen = layer.clone(), layer.clone()
    plain.quantize_weights(4)
    with pytest.warns(PrecisionWarning, match="to the nearest: the samples' inputs") as told:
        chosen.quantize_weights(4, method=method, samples=[asarray(x)], correct_bias=True)
    assert [each.filename for each in told] == [__file__]
    assert np.isfinite(np.asarray(chosen.weight.val())).all() and np.isfinite(np.asarray(chosen.bias.val())).all()
    np.testing.assert_allclose(np.asarray(chosen.weight.val()), np.asarray(plain.weight.val()), rtol=1e-6)


def test_layers_of_many_inputs_and_few_outputs_take_no_memory_of_their_square() -> None:
    layer = initialized(nn.Linear(100_000, 1))  # whose second moments would take 80 GB
    plain, chosen = layer.clone(), layer.clone()
    plain.quantize_weights(8)
    chosen.quantize_weights(8, method="gptq", samples=[asarray(np.ones((2, 100_000), np.float32))])
    np.testing.assert_array_equal(np.asarray(chosen.weight.val()), np.asarray(plain.weight.val()))
