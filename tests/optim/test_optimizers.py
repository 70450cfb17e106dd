"""Optimizers and schedules against PyTorch 2.13 (fixtures/torch_optimizers.py), and what surrounds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import nn, optim
from emberlet.errors import ArgumentError, EmberletError, LoadError
from emberlet.module import Module
from emberlet.optim import GradientsAccumulator, GradientsParams, Group
from support.rows import every

from .settings import RATE, RATES, SETTINGS, STEPS, dtype_of, start

ANSWERS = np.load(Path(__file__).parent / "fixtures" / "torch_optimizers.npz")


class Net(Module):
    def __init__(self, backend: Any = None, dtype: Any = "float32") -> None:
        self.layers = [nn.Linear(3, 5, dtype=dtype, backend=backend), nn.Linear(5, 2, dtype=dtype, backend=backend)]

    def forward(self, x: Any) -> Any:
        return self.layers[1](emberlet.tanh(self.layers[0](x)))


def network(backend: str, dtype: Any = np.float32) -> tuple[Net, Any, Any]:
    """(a model in training, x, y), as PyTorch began."""
    arrays = start(dtype)
    x, y = (emberlet.asarray(arrays.pop(k), backend="autodiff:" + backend) for k in "xy")
    model = Net(backend, np.dtype(dtype).name)
    model.load_record(
        {"layers." + k: emberlet.asarray(np.ascontiguousarray(v), backend=backend) for k, v in arrays.items()},
        layout="pytorch",
    )
    return model.train(), x, y


def loss_of(model: Net, x: Any, y: Any) -> Any:
    difference = model(x) - y
    return (difference * difference).mean()


def weights(model: Net) -> Any:
    parts = [np.asarray(layer.weight.val().inner()).T for layer in model.layers]
    biases = [np.asarray(layer.bias.val().inner()) for layer in model.layers]
    return np.concatenate([v.ravel() for pair in zip(parts, biases, strict=True) for v in pair])


def config(kind: str, fields: dict[str, Any]) -> Any:
    return getattr(optim, kind).from_dict(fields)


def train(name: str, backend: str) -> tuple[list[float], Any]:
    _, _, kind, fields = SETTINGS[name]
    model, x, y = network(backend, dtype_of(name))
    rate = RATES.get(name, RATE)
    optimizer = config(kind, fields).init()
    losses = []
    for _ in range(STEPS):
        loss = loss_of(model, x, y)
        losses.append(float(loss))
        if kind == "LBFGSConfig":
            model = optimizer.step(rate, model, lambda m: loss_of(m, x, y))
        else:
            model = optimizer.step(rate, model, GradientsParams.from_grads(loss.backward(), model))
    return losses, weights(model)


@pytest.mark.parametrize("backend", ["numpy", "python"])
@every("name", SETTINGS)
def test_ten_steps_end_where_pytorch_ends(name: str, backend: str) -> None:
    losses, found = train(name, backend)
    np.testing.assert_allclose(losses, ANSWERS[name + "/losses"], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found, ANSWERS[name + "/weights"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in SETTINGS if dtype_of(name) is np.float64])
def test_settings_compared_in_float64_are_close_to_the_last_digit(name: str) -> None:
    losses, found = train(name, "numpy")
    np.testing.assert_allclose(losses, ANSWERS[name + "/losses"], rtol=1e-9)
    np.testing.assert_allclose(found, ANSWERS[name + "/weights"], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_resumes_to_the_bit_from_records(search: Any, tmp_path: Path) -> None:
    from emberlet.burnpack import Burnpack

    settings = optim.LBFGSConfig(max_iter=3, history_size=4, line_search_fn=search)

    def steps(model: Net, optimizer: Any, count: int) -> None:
        for _ in range(count):
            optimizer.step(0.5, model, lambda m: loss_of(m, x, y))

    model, x, y = network("numpy")
    optimizer = settings.init()
    steps(model, optimizer, 3)
    model.save_file(tmp_path / "model.bpk")
    optimizer.to_record().save(tmp_path / "optim.bpk")
    steps(model, optimizer, 3)

    again = Net("autodiff:numpy")
    again.load_file(tmp_path / "model.bpk")
    resumed = settings.init().load_record(Burnpack.from_file(tmp_path / "optim.bpk"))
    steps(again, resumed, 3)
    assert (weights(again) == weights(model)).all()


@pytest.mark.parametrize("backend", ["numpy", "wasm", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))])
def test_lbfgs_in_float32_reaches_pytorchs_loss(backend: str) -> None:
    # PyTorch 2.13 after 20 iterations with line_search_fn="strong_wolfe": 0.15540737.
    model, x, y = network(backend)
    optim.LBFGSConfig(line_search_fn="strong_wolfe").init().step(1.0, model, lambda m: loss_of(m, x, y))
    assert float(loss_of(model, x, y)) == pytest.approx(0.15540737, abs=1e-6)


def test_the_line_search_backs_off_from_losses_that_are_not_finite() -> None:
    layer = Module()
    layer.p = emberlet.Param(emberlet.asarray(np.array([2.0]), backend="autodiff:numpy"))

    def loss(m: Any) -> Any:
        p = m.p.val()
        return (p - p.log()).sum()  # NaN below 0, least at 1

    optim.LBFGSConfig(line_search_fn="strong_wolfe").init().step(40.0, layer, loss)
    np.testing.assert_allclose(layer.p.val().tolist(), [1.0], rtol=1e-5)


@pytest.mark.parametrize("fatal", [2, 3, 4, 5])
def test_an_interrupted_step_of_lbfgs_changes_nothing(fatal: int) -> None:
    model, x, y = network("numpy", np.float64)
    optimizer = optim.LBFGSConfig(max_iter=4, line_search_fn="strong_wolfe").init()
    optimizer.step(1.0, model, lambda m: loss_of(m, x, y))
    before, state = weights(model), optimizer.to_record()
    calls: list[int] = []

    def loss(m: Net) -> Any:
        calls.append(1)
        if len(calls) == fatal:
            raise KeyboardInterrupt
        return loss_of(m, x, y)

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(1.0, model, loss)
    assert (weights(model) == before).all()
    after = optimizer.to_record()
    assert {k: v.tolist() for k, v in after.items()} == {k: v.tolist() for k, v in state.items()}


def test_an_unknown_line_search_is_refused() -> None:
    with pytest.raises(ArgumentError, match="strong_wolfe"):
        optim.LBFGSConfig(line_search_fn="armijo")


def test_another_optimizers_record_is_refused_by_lbfgs() -> None:
    with pytest.raises(LoadError, match=r"lbfgs\.numbers"):
        optim.LBFGSConfig().init().load_record({"0.moment_1": emberlet.zeros((2,))})


@pytest.mark.parametrize("name", ["adam all", "rmsprop centered", "clipped by the norm of all", "nesterov"])
def test_ten_steps_in_webassembly_end_where_pytorch_ends(name: str) -> None:
    np.testing.assert_allclose(train(name, "wasm")[1], ANSWERS[name + "/weights"], rtol=1e-5, atol=2e-6)


@pytest.mark.usefixtures("wgpu_adapter")
@pytest.mark.needs("gpu-driver")
@pytest.mark.parametrize("name", ["adam all", "rmsprop centered", "clipped by the norm of all", "nesterov"])
def test_ten_steps_on_the_gpu_end_where_pytorch_ends(name: str) -> None:
    np.testing.assert_allclose(train(name, "wgpu")[1], ANSWERS[name + "/weights"], rtol=1e-5, atol=2e-6)


def test_lion_follows_its_paper() -> None:
    # Algorithm 2 of https://arxiv.org/abs/2302.06675, in float64.
    weight, momentum = np.array([1.0, -2.0, 0.5]), np.zeros(3)
    layer = Module()
    layer.p = emberlet.Param(emberlet.asarray(weight, backend="autodiff:numpy"))
    optimizer = optim.LionConfig(weight_decay=0.1).init()
    for i in range(5):
        g = np.sin(np.arange(3) + i) + weight
        update = np.sign(0.9 * momentum + 0.1 * g)
        weight = weight - 0.01 * (update + 0.1 * weight)
        momentum = 0.99 * momentum + 0.01 * g
        grads = GradientsParams()
        grads.register(layer.p.id, emberlet.asarray(g, backend="numpy"))
        optimizer.step(0.01, layer, grads)
    np.testing.assert_allclose(np.asarray(layer.p.val().inner()), weight, rtol=1e-12)


def test_the_norm_of_each_gradient_is_clipped_alone() -> None:
    clipping = optim.GradientClippingConfig.norm(1.0)
    large, small = emberlet.asarray([3.0, 4.0]), emberlet.asarray([0.3, 0.4])
    found = [g.tolist() for g in clipping.clipped([large, small])]
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-5)


def test_an_unknown_way_of_clipping_is_refused() -> None:
    with pytest.raises(ArgumentError, match="global_norm"):
        optim.GradientClippingConfig("size", 1.0)


def gradients(model: Net, x: Any, y: Any) -> Any:
    return loss_of(model, x, y).backward()


def test_a_step_keeps_the_identities_and_consumes_the_gradients() -> None:
    model, x, y = network("numpy")
    before = [p.id for p in model.params()]
    grads = GradientsParams.from_grads(gradients(model, x, y), model)
    assert len(grads) == 4
    assert optim.SgdConfig().init().step(0.1, model, grads) is model
    assert [p.id for p in model.params()] == before
    assert len(grads) == 0


def test_gradients_are_taken_by_part_and_by_parameter_and_the_rest_afterwards() -> None:
    model, x, y = network("numpy")
    grads = gradients(model, x, y)
    part = GradientsParams.from_module(grads, model.layers[0])
    bias = GradientsParams.from_params(grads, model, [model.layers[1].bias.id])
    rest = GradientsParams.from_grads(grads, model)
    assert (len(part), len(bias), len(rest), len(grads)) == (2, 1, 1, 0)
    assert rest.get(model.layers[1].weight.id).shape == (5, 2)


def test_frozen_parameters_stay() -> None:
    model, x, y = network("numpy")
    optim.freeze_group(model, r"^layers\.0\.")
    before = weights(model)
    optim.SgdConfig().init().step(0.1, model, GradientsParams.from_grads(gradients(model, x, y), model))
    after = weights(model)
    assert (before[:20] == after[:20]).all()
    assert (before[20:] != after[20:]).any()
    optim.unfreeze_group(model, model.layers[0])
    assert len(GradientsParams.from_grads(gradients(model, x, y), model)) == 4
    with pytest.raises(ArgumentError, match="no parameter"):
        optim.freeze_group(model, "nothing")


@pytest.mark.parametrize("match", ["bias$", ["layers.0.bias", "layers.1.bias"], lambda name, p: len(p.shape) == 1])
def test_groups_have_a_rate_and_settings_of_their_own(match: Any) -> None:
    model, x, y = network("numpy")
    before = weights(model)
    optimizer = optim.SgdConfig(weight_decay=0.5).init([Group(match, rate=0.1, weight_decay=None)])
    grads = gradients(model, x, y)
    wanted = {k: np.asarray(p.val().grad(grads)) for k, p in model.named_params()}
    optimizer.step(0.2, model, GradientsParams.from_grads(grads, model))
    after = weights(model)
    np.testing.assert_allclose(after[15:20], before[15:20] - 0.02 * wanted["layers.0.bias"], rtol=1e-6)
    decayed = wanted["layers.0.weight"].T.ravel() + 0.5 * before[:15]
    np.testing.assert_allclose(after[:15], before[:15] - 0.2 * decayed, rtol=1e-5)


def test_accumulated_gradients_are_those_of_the_batches_together() -> None:
    model, x, y = network("numpy")
    whole = GradientsParams.from_grads((loss_of(model, x, y) * 12).backward(), model)
    accumulator = GradientsAccumulator()
    for rows in (slice(0, 5), slice(5, 12)):
        count = rows.stop - rows.start
        loss = loss_of(model, x[rows], y[rows]) * count
        accumulator.accumulate(model, GradientsParams.from_grads(loss.backward(), model))
    summed = accumulator.grads()
    for p in model.params():
        np.testing.assert_allclose(np.asarray(summed.get(p.id)), np.asarray(whole.get(p.id)), rtol=1e-5, atol=1e-6)
    assert len(accumulator.grads()) == 0


@pytest.mark.parametrize("name", ["adam all", "rmsprop centered", "nesterov", "adagrad all"])
def test_training_resumes_to_the_bit_from_records(name: str, tmp_path: Path) -> None:
    _, _, kind, fields = SETTINGS[name]
    schedule = optim.CosineAnnealingLrSchedulerConfig(0.05, 8).init()
    model, x, y = network("numpy")
    optimizer = config(kind, fields).init()

    def steps(model: Net, optimizer: Any, schedule: Any, count: int) -> None:
        for _ in range(count):
            optimizer.step(schedule.step(), model, GradientsParams.from_grads(gradients(model, x, y), model))

    steps(model, optimizer, schedule, 4)
    model.save_file(tmp_path / "model.bpk")
    optimizer.to_record().save(tmp_path / "optim.bpk")
    kept = schedule.to_record()
    steps(model, optimizer, schedule, 4)

    from emberlet.burnpack import Burnpack

    again = Net("autodiff:numpy")
    again.load_file(tmp_path / "model.bpk")
    resumed = config(kind, fields).init().load_record(Burnpack.from_file(tmp_path / "optim.bpk"))
    steps(again, resumed, optim.CosineAnnealingLrSchedulerConfig(0.05, 8).init().load_record(kept), 4)
    assert (weights(again) == weights(model)).all()


def test_a_record_of_something_else_is_refused() -> None:
    with pytest.raises(LoadError, match="optimizer"):
        optim.AdamConfig().init().load_record({"conv.weight": emberlet.zeros((2,))})


def test_an_interrupted_step_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, y = network("numpy")
    before = weights(model)
    optimizer = optim.AdamConfig().init()
    params = model.params()
    plain = type(params[0]).set
    calls: list[Any] = []

    def interrupted(self: Any, value: Any, id: Any = None) -> Any:
        calls.append(self)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(self, value, id)

    monkeypatch.setattr(type(params[0]), "set", interrupted)
    with pytest.raises(KeyboardInterrupt):
        optimizer.step(0.1, model, GradientsParams.from_grads(gradients(model, x, y), model))
    assert (weights(model) == before).all()
    assert not optimizer.to_record().tensors


def test_a_model_that_is_not_in_training_is_refused_with_advice() -> None:
    model, x, y = network("numpy")
    grads = gradients(model, x, y)
    with pytest.raises(EmberletError, match="train"):
        GradientsParams.from_grads(grads, model.valid())


def rates(schedule: Any, count: int = 30) -> list[float]:
    made = schedule.init()
    return [made.step() for _ in range(count)]


SCHEDULES = {
    "exponential": lambda: optim.ExponentialLrSchedulerConfig(0.1, 0.9),
    "step": lambda: optim.StepLrSchedulerConfig(0.1, 7, 0.5),
    "linear": lambda: optim.LinearLrSchedulerConfig(0.1, 0.025, 20),
    "polynomial": lambda: optim.PolynomialLrSchedulerConfig(0.1, 20, 2.0),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_gives_pytorchs_rates(name: str) -> None:
    np.testing.assert_allclose(rates(SCHEDULES[name]()), ANSWERS["schedule/" + name], rtol=1e-6, atol=1e-12)


def test_cosine_annealing_restarts_after_a_cycle_that_ends_at_the_least_rate() -> None:
    found = rates(optim.CosineAnnealingLrSchedulerConfig(0.1, 10, 0.01), 23)
    assert (found[0], found[11], found[22]) == (0.1, 0.1, 0.1)
    assert found[10] == found[21] == pytest.approx(0.01)
    assert found[5] == pytest.approx(0.055)


def test_noam_rises_until_the_end_of_the_warm_up_and_falls_after_it() -> None:
    found = rates(optim.NoamLrSchedulerConfig(2.0, warmup_steps=4, model_size=16), 9)
    wanted = [2.0 * 16**-0.5 * min(n**-0.5, n * 4**-1.5) for n in range(1, 10)]
    np.testing.assert_allclose(found, wanted)
    assert max(found) == found[3]


def test_schedules_compose() -> None:
    parts = [optim.WarmupLrSchedulerConfig(4), optim.ExponentialLrSchedulerConfig(0.1, 0.5)]
    assert rates(optim.ComposedLrSchedulerConfig(parts), 5) == pytest.approx([0, 0.0125, 0.0125, 0.009375, 0.00625])
    assert rates(optim.ComposedLrSchedulerConfig(parts, "sum"), 2) == pytest.approx([0.1, 0.3])
    assert optim.ConstantLr(0.3).step() == 0.3


WRONG_RATES = [-0.1, float("nan"), float("inf"), "fast", np.array([0.1, 0.2])]


@pytest.mark.parametrize("rate", WRONG_RATES)
def test_a_rate_that_would_spoil_the_weights_is_refused(rate: Any) -> None:
    refused = pytest.raises(ArgumentError, match="finite number of at least 0")
    model, x, y = network("numpy")
    before = weights(model)
    with refused:
        optim.ConstantLr(rate)
    with refused:
        Group("bias", rate=rate)
    for optimizer in (optim.SgdConfig().init(), optim.AdamConfig().init()):
        with refused:
            optimizer.step(rate, model, GradientsParams.from_grads(loss_of(model, x, y).backward(), model))
    with refused:
        optim.LBFGSConfig().init().step(rate, model, lambda model: loss_of(model, x, y))
    step = model.compile_step(loss_of, optim.SgdConfig().init())
    with refused:
        step(rate, x, y)
    assert np.array_equal(weights(model), before)


@pytest.mark.parametrize(
    "config",
    [
        optim.LinearLrSchedulerConfig(0.1, -0.1, 5),
        optim.CosineAnnealingLrSchedulerConfig(0.1, 0),
        optim.CosineAnnealingLrSchedulerConfig(0.1, 5, float("nan")),
        optim.ExponentialLrSchedulerConfig(-0.1, 0.9),
        optim.StepLrSchedulerConfig(0.1, 2, -0.5),
        optim.NoamLrSchedulerConfig(-1.0),
        optim.PolynomialLrSchedulerConfig(0.1, 5, -1.0),
        optim.WarmupLrSchedulerConfig(-3),
        optim.ComposedLrSchedulerConfig([optim.WarmupLrSchedulerConfig(4, -1.0)]),
        optim.ComposedLrSchedulerConfig([optim.WarmupLrSchedulerConfig(4)], "max"),
        optim.ComposedLrSchedulerConfig([], "avg"),
    ],
    ids=str,
)
def test_a_schedule_of_wrong_rates_is_refused_before_its_first_step(config: Any) -> None:
    for call in (config.init, lambda: config.rate(1)):
        with pytest.raises(ArgumentError, match=r"at least|reduction is"):
            call()


def test_a_part_of_a_composed_schedule_needs_only_rates() -> None:
    class Halved:
        def rate(self, i: int) -> float:
            return 0.5**i

    config = optim.ComposedLrSchedulerConfig([Halved(), optim.WarmupLrSchedulerConfig(2)])
    assert rates(config, 3) == [config.rate(i) for i in range(3)] == [0, 0.25, 0.25]


def test_a_rate_that_a_schedule_of_ones_own_makes_negative_is_refused() -> None:
    schedule = optim.schedules.Schedule(lambda i: 1 - i)
    assert [schedule.step(), schedule.step()] == [1, 0]
    with pytest.raises(ArgumentError, match="the learning rate is a finite number of at least 0, found -1"):
        schedule.step()


def test_a_step_says_how_to_make_gradients_by_parameter() -> None:
    model = nn.Linear(2, 1, backend="numpy").train()
    loss = model(emberlet.asarray([[1.0, 2.0]], backend="autodiff:numpy")).sum()
    with pytest.raises(ArgumentError, match=r"GradientsParams\.from_grads"):
        optim.SgdConfig().init().step(0.1, model, loss.backward())  # type: ignore[arg-type]
