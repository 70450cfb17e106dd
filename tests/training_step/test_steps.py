"""What a compiled step shares with steps without a plan: optimizers, groups, random layers, records, looks between."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.burnpack import Burnpack
from emberlet.errors import ArgumentError, EmberletError, IndexingError
from emberlet.module import Module
from emberlet.optim import Group
from support.every_backend import NATIVE

from ..optim.settings import RATE, RATES, SETTINGS, STEPS, dtype_of
from ..optim.test_optimizers import ANSWERS, loss_of, weights
from ..optim.test_optimizers import network as two_layers
from . import networks
from .networks import batch, dense, eager_step, squares, values

GPU = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))
ADAM = optim.AdamConfig(epsilon=1e-3)


def same(found: dict[str, Any], wanted: dict[str, Any], rtol: float = 0) -> None:
    assert list(found) == list(wanted)
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=rtol, atol=rtol, err_msg=name)


def both(make: Callable[[], Any], config: Any, steps: int = 6, groups: Any = ()) -> None:
    """Compiled steps give what steps without a plan give."""
    found = []
    for compiled in (False, True):
        model, optimizer = make().train(), config.init(groups)
        emberlet.manual_seed(9)
        step = model.compile_step(squares, optimizer) if compiled else None
        losses = []
        for i in range(steps):
            x, y = batch(8, i)
            rate = 0.01 / (i + 1)
            losses.append(float(step(rate, x, y)) if step else eager_step(model, optimizer, rate, x, y))
        assert step is None or step.cut is None
        found.append({**values(model), "losses": np.array(losses)})
    same(found[1], found[0], 1e-6)


@pytest.mark.parametrize("backend", ["numpy", "wasm", NATIVE, GPU])
@pytest.mark.parametrize("name", [n for n in SETTINGS if "lbfgs" not in n])
def test_ten_steps_end_where_pytorch_ends(name: str, backend: str) -> None:
    if dtype_of(name) is np.float64 and backend != "numpy":
        pytest.skip("the backend computes float64 in float32")
    _, _, kind, fields = SETTINGS[name]
    model, x, y = two_layers(backend, dtype_of(name))
    step = model.compile_step(loss_of, getattr(optim, kind).from_dict(fields).init())
    losses = [float(step(RATES.get(name, RATE), x, y)) for _ in range(STEPS)]
    np.testing.assert_allclose(losses, ANSWERS[name + "/losses"], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(weights(model), ANSWERS[name + "/weights"], rtol=1e-6, atol=2e-6)


def test_lbfgs_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"step\(lr, model, closure\)"):
        dense().compile_step(squares, optim.LBFGSConfig().init())


def test_lion_and_groups() -> None:
    groups = [Group("bias$", weight_decay=0.5), Group("^last", rate=0.1)]
    both(dense, optim.LionConfig(weight_decay=0.1), groups=groups)


@pytest.mark.parametrize("kind", ["value", "norm", "global_norm"])
def test_clipping(kind: str) -> None:
    both(dense, optim.SgdConfig(grad_clipping=optim.GradientClippingConfig(kind, 0.05)))


def test_noise_draws_the_numbers_of_steps_without_a_plan() -> None:
    both(lambda: dense(nn.GaussianNoise(0.3)), ADAM)


def test_a_checkpointed_block_draws_the_same_numbers_twice() -> None:
    class Block(nn.Dropout):
        def forward(self, x: Any) -> Any:
            return emberlet.autodiff.checkpoint(super().forward)(x.exp())

    both(lambda: dense(Block(0.4)), ADAM)


@pytest.mark.parametrize("backend", ["numpy", "wasm", NATIVE, GPU])
def test_another_rate_makes_no_plan(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step = dense(None, backend).compile_step(squares, ADAM.init(), *batch())
    monkeypatch.setattr(step, "_plan", None)
    losses = [float(step(0.1 / (i + 1), *batch())) for i in range(20)]
    assert losses[-1] < losses[0]


def test_the_loss_function_may_return_more() -> None:
    model = dense()
    x, y = batch()
    wanted = np.asarray(model(emberlet.asarray(x, backend="numpy")))
    step = model.compile_step(lambda m, x, y: (m(x) - y).abs().mean(), ADAM.init())
    loss = float(step(0.0, x, y))
    step = model.compile_step(lambda m, x, y: (((out := m(x)) - y).abs().mean(), {"out": [out]}), ADAM.init())
    found = step(0.0, x, y)
    assert float(found[0]) == loss
    assert found[1]["out"][0].backend is emberlet.get_backend("numpy")
    np.testing.assert_allclose(found[1]["out"][0], wanted, rtol=1e-6)


class Both(NamedTuple):
    loss: Any
    output: Any


class Item:
    def __init__(self, loss: Any, output: Any) -> None:
        self.loss, self.output = loss, output


@pytest.mark.parametrize("backend", ["numpy", "wasm", NATIVE, GPU])
@pytest.mark.parametrize("kind", [Both, Item])
def test_the_loss_function_may_return_more_for_many_steps(kind: Any, backend: str) -> None:
    model = dense(None, backend)
    step = model.compile_step(lambda m, x, y: kind(((out := m(x)) - y).abs().mean(), out), ADAM.init())
    for _ in range(20):
        found = step(0.0, *batch())
    assert step.cut is None and type(found) is kind
    output = np.asarray(model.valid()(emberlet.asarray(batch()[0], backend=backend)))
    np.testing.assert_allclose(found.output, output, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(float(found.loss), abs(output - batch()[1]).mean(), rtol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "wasm", NATIVE, GPU])
@pytest.mark.parametrize("change", [lambda x: x.astype("float16"), lambda x: emberlet.functional.concat([x, x])])
def test_a_buffer_that_becomes_of_another_dtype_or_shape(change: Callable[[Any], Any], backend: str) -> None:
    class Changing(nn.Tanh):
        def __init__(self) -> None:
            self.seen = emberlet.Param(emberlet.asarray(np.ones(2, np.float32), backend=backend), require_grad=False)

        def forward(self, x: Any) -> Any:
            self.seen.set(change(self.seen.val().detach()))
            return super().forward(x)

    model = dense(Changing(), backend)
    step = model.compile_step(squares, ADAM.init())
    with pytest.warns(UserWarning, match="another dtype or shape"):
        step(0.01, *batch())
    wanted = change(emberlet.asarray(np.ones(2, np.float32), backend=backend))
    found = model.between.seen.val()
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)


def test_another_thread_never_draws_the_same_numbers_while_a_plan_is_made() -> None:
    drawn = []

    def loss(model: Any, x: Any, y: Any) -> Any:
        thread = threading.Thread(target=lambda: drawn.append(emberlet.functional.random_bits((4,)).tolist()))
        thread.start()
        thread.join()
        return squares(model, x, y)

    step = dense(nn.Dropout(0.4)).compile_step(loss, ADAM.init())
    step(0.01, *batch())
    drawn.append(emberlet.functional.random_bits((4,)).tolist())
    assert len(drawn) > 1 and all(a != b for a, b in itertools.combinations(drawn, 2))


@pytest.mark.parametrize("whole", [list, lambda b: {"x": b[0], "y": [b[1]]}, lambda b: Item(*b)])
def test_a_batch_in_one_argument_is_refused(whole: Callable[[Any], Any]) -> None:
    step = dense().compile_step(lambda m, b: squares(m, b[0], b[1]), ADAM.init())
    with pytest.raises(ArgumentError, match="one by one"):
        step(0.01, whole(batch()))


def test_a_result_stays_when_other_steps_follow() -> None:
    step = dense().compile_step(lambda m, x, y: (squares(m, x, y), m.first.weight.val()), ADAM.init())
    first, weight = step(0.1, *batch())
    kept = float(first), np.array(weight)
    for _ in range(3):
        step(0.1, *batch())
    assert float(first) == kept[0]
    np.testing.assert_array_equal(weight, kept[1])


@pytest.mark.parametrize("backend", ["numpy", "wasm", NATIVE, GPU])
def test_parameters_show_current_values_and_those_looked_at_stay(backend: str) -> None:
    model, other = dense(None, backend), dense().train()
    step, optimizer = model.compile_step(squares, ADAM.init()), ADAM.init()
    kept = []
    for i in range(5):
        step(0.01, *batch())
        eager_step(other, optimizer, 0.01, *batch())
        if i % 2:
            kept.append((model.first.weight.val(), values(other)["first.weight"]))
            same(values(model.valid().train()), values(other), 1e-5)
    for value, wanted in kept:
        np.testing.assert_allclose(value.inner(), wanted, rtol=1e-5, atol=1e-5)


def test_copies_of_a_model_between_steps() -> None:
    model = dense()
    step = model.compile_step(squares, ADAM.init())
    step(0.01, *batch())
    assert "lazy" not in repr(model.first.weight) and model.num_params() == 38
    copies = [model.clone(), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.valid().train()]
    wanted = values(copies[0])
    for _ in range(2):
        step(0.01, *batch())
    for found in copies:
        same(values(found), wanted)
    assert not np.array_equal(values(model)["first.weight"], wanted["first.weight"])
    model.train()
    step(0.01, *batch())
    assert model.first.weight.is_initialized


def test_what_is_set_between_steps_counts() -> None:
    model, other = dense(), dense().train()
    step, optimizer = model.compile_step(squares, ADAM.init()), ADAM.init()
    for i in range(4):
        step(0.01, *batch())
        eager_step(other, optimizer, 0.01, *batch())
        for m in (model, other):
            if i == 1:
                m.first.weight.set(m.first.weight.val() * 0.5)
            if i == 2:
                m.load_record(dense().to_record())
    same(values(model), values(other), 1e-6)


def test_steps_without_a_plan_in_between() -> None:
    model, other = dense(), dense().train()
    mixed, optimizer = ADAM.init(), ADAM.init()
    step = model.compile_step(squares, mixed)
    for i in range(6):
        if i % 3 == 2:
            eager_step(model, mixed, 0.01, *batch())
        else:
            step(0.01, *batch())
        eager_step(other, optimizer, 0.01, *batch())
    same(values(model), values(other), 1e-6)


def test_two_steps_of_one_model() -> None:
    model, other = dense(), dense().train()
    first, second = (model.compile_step(squares, ADAM.init()) for _ in range(2))
    optimizers = [ADAM.init(), ADAM.init()]
    for i in range(6):
        (first, second)[i % 2](0.01, *batch())
        eager_step(other, optimizers[i % 2], 0.01, *batch())
    same(values(model), values(other), 1e-6)


def test_freezing_between_steps() -> None:
    model, other = dense(), dense().train()
    step, optimizer = model.compile_step(squares, ADAM.init()), ADAM.init()
    for i in range(9):
        for m in (model, other):
            if i % 3 == 1:
                optim.freeze_group(m, "^first" if i < 3 else "bias$")
            if i % 3 == 2:
                optim.unfreeze_group(m, "")
        step(0.01, *batch())
        eager_step(other, optimizer, 0.01, *batch())
    same(values(model), values(other), 1e-6)


@pytest.mark.parametrize("backend", ["numpy", "wasm", NATIVE, GPU])
def test_training_resumes_to_the_bit(backend: str, tmp_path: Path) -> None:
    config = optim.AdamWConfig(weight_decay=0.1)
    model, optimizer = dense(None, backend), config.init()
    step = model.compile_step(squares, optimizer)
    for i in range(3):
        step(0.01, *batch(8, i))
    model.save_file(str(tmp_path / "model.bpk"))
    optimizer.to_record().save(str(tmp_path / "optim.bpk"))
    for i in range(3, 6):
        step(0.01, *batch(8, i))
    again = networks.Dense(None, backend)
    again.load_file(str(tmp_path / "model.bpk"))
    restored = config.init().load_record(Burnpack.from_file(str(tmp_path / "optim.bpk")))
    step = again.compile_step(squares, restored)
    for i in range(3, 6):
        step(0.01, *batch(8, i))
    same(values(again), values(model))


def test_a_shared_parameter_is_trained_once() -> None:
    class Twice(Module):
        def __init__(self) -> None:
            self.one, self.two = (nn.Linear(6, 6, backend="numpy") for _ in range(2))
            self.two.weight = self.one.weight

        def forward(self, x: Any) -> Any:
            return self.two(self.one(x).tanh())

    def tied() -> Any:
        model = dense(Twice())
        assert len(model.params()) == 7
        return model

    both(tied, ADAM, 2)


def test_a_model_that_asks_for_values_runs_operation_by_operation() -> None:
    def loss(model: Any, x: Any, y: Any) -> Any:
        out = squares(model, x, y)
        return out * 2.0 if float(out) > 1 else out

    model, other = dense(), dense().train()
    step, optimizer = model.compile_step(loss, ADAM.init()), ADAM.init()
    with pytest.warns(UserWarning, match="has no plan and runs operation by operation: the model asks for"):
        first = step(0.01, *batch())
    assert float(first) == eager_step(other, optimizer, 0.01, *batch(), loss=loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(0.01, *batch())
    assert step.cut is not None
    eager_step(other, optimizer, 0.01, *batch(), loss=loss)
    same(values(model), values(other))


def test_a_loss_of_another_model_is_refused() -> None:
    model, other = dense(), dense().train()
    step = model.compile_step(lambda m, x, y: ((x - y.mean()) ** 2).mean(), ADAM.init())
    with pytest.raises(EmberletError, match="depends on no tensor that requires a gradient"):
        step(0.1, *batch())
    step = model.compile_step(lambda m, x, y: m(x), ADAM.init())
    with pytest.raises(EmberletError, match="a tensor without axes"):
        step(0.1, *batch())
    same(values(model), values(other))


@pytest.mark.parametrize("backend", ["numpy", "wasm", NATIVE, GPU])
@pytest.mark.parametrize("loss", [F.cross_entropy, nn.CrossEntropyLoss()])
def test_a_target_that_is_no_class_is_an_error_in_each_step(backend: str, loss: Any) -> None:
    model = nn.Linear(4, 3, backend=backend)
    step = model.compile_step(lambda model, x, y: loss(model(x), y), optim.SgdConfig().init())
    x = np.ones((2, 4), np.float32)
    step(0.1, x, np.array([0, 2]))
    before = values(model)
    for wrong in (3, -1):
        with pytest.raises(IndexingError, match="classes"):
            step(0.1, x, np.array([0, wrong]))
    for name, value in before.items():
        np.testing.assert_array_equal(values(model)[name], value)


def test_batches_of_many_shapes_are_warned_of_once() -> None:
    model = nn.Embedding(4, 3, backend="numpy")
    step = model.compile_step(lambda model, x: (model(x) ** 2).mean(), optim.SgdConfig().init())
    for width in range(1, 9):
        step(0.1, np.zeros((2, width), np.int64))
    with pytest.warns(UserWarning, match="more than 8 shapes") as found:
        for width in range(9, 12):
            step(0.1, np.zeros((2, width), np.int64))
    assert len(found) == 1 and len(step._plans) == 8
