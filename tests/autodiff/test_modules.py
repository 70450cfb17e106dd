"""Modules in training: what `train` and `valid` give, and layers that are active only there."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import codegen, nn
from emberlet.autodiff import checkpoint
from emberlet.backend import get_backend
from emberlet.module import Module
from emberlet.optim import GradientsParams, SgdConfig

from tools.paths import ROOT

ANSWERS = dict(np.load(Path(__file__).parent / "fixtures" / "torch_training.npz"))
SHAPES = {"rows": (6, 3), "one row": (1, 3, 4), "images": (2, 3, 4, 5)}


def tensor(values: Any, backend: str = "autodiff:numpy") -> Any:
    return emberlet.asarray(values, backend=backend)


@pytest.mark.parametrize("backend", ["python", "numpy", "wasm"])
@pytest.mark.parametrize("name", SHAPES)
def test_batch_norm_trains_as_in_pytorch(name: str, backend: str) -> None:
    shape, where = SHAPES[name], "autodiff:" + backend
    layer = nn.BatchNorm(3, momentum=0.2, backend=backend)
    layer.weight.set(tensor([0.5, 1.5, -1.0], backend))
    layer.bias.set(tensor([0.1, -0.2, 0.3], backend))
    layer.train()
    for step in range(3):
        x = tensor(np.random.RandomState(step).randn(*shape).astype(np.float32) * 2 + 1, where).require_grad()
        y = layer(x)
        grads = y.backward(tensor(np.cos(np.arange(y.size, dtype=np.float32)).reshape(shape), backend), retain=True)
    found = {
        "y": y, "x": x.grad(grads), "weight": layer.weight.val().grad(grads), "bias": layer.bias.val().grad(grads),
        "mean": layer.running_mean.val(), "var": layer.running_var.val(),
    }  # fmt: skip
    for key, value in found.items():
        np.testing.assert_allclose(np.asarray(value), ANSWERS[f"{name}/{key}"], rtol=1e-4, atol=1e-5, err_msg=key)


def test_batch_norm_of_one_value_per_channel_keeps_its_running_variance() -> None:
    layer = nn.BatchNorm(2, backend="numpy").train()
    y = layer(tensor([[3.0, -1.0]]))
    assert y.tolist() == [[0.0, 0.0]]
    assert layer.running_var.val().tolist() == [1.0, 1.0]
    np.testing.assert_allclose(layer.running_mean.val().tolist(), [0.3, -0.1], rtol=1e-6)


def test_running_statistics_require_no_gradient_and_are_those_that_valid_uses() -> None:
    layer = nn.BatchNorm(2, backend="numpy").train()
    layer(tensor(np.random.RandomState(0).randn(8, 2).astype(np.float32)))
    assert not layer.running_mean.val().is_require_grad()
    inside = layer.valid()
    assert inside.running_mean.val().tolist() == layer.running_mean.val().tolist() != [0.0, 0.0]
    before = inside.running_mean.val().tolist()
    inside(tensor([[1.0, 2.0]], "numpy"))
    assert inside.running_mean.val().tolist() == before


def test_a_checkpointed_batch_norm_follows_each_batch_once() -> None:
    values = np.random.RandomState(0).randn(8, 2).astype(np.float32)
    plain, saved = (nn.BatchNorm(2, backend="numpy").train() for _ in range(2))
    plain(tensor(values))
    x = tensor(values).require_grad()
    (checkpoint(saved)(x) ** 2).sum().backward()
    assert saved.running_mean.val().tolist() == plain.running_mean.val().tolist()


def test_dropout_acts_in_training_only() -> None:
    emberlet.manual_seed(0)
    layer = nn.Dropout(0.25)
    ones = np.ones(4000, np.float32)
    found = np.asarray(layer(tensor(ones)))
    assert set(found.tolist()) == {0.0, np.float32(1 / 0.75)}
    assert abs((found == 0).mean() - 0.25) < 0.03
    assert (np.asarray(layer(tensor(ones, "numpy"))) == 1).all()


def test_gaussian_noise_acts_in_training_only() -> None:
    emberlet.manual_seed(0)
    found = np.asarray(nn.GaussianNoise(0.5)(tensor(np.zeros(4000, np.float32))))
    assert abs(found.std() - 0.5) < 0.03
    assert (np.asarray(nn.GaussianNoise(0.5)(tensor(np.zeros(4, np.float32), "numpy"))) == 0).all()


class Net(Module):
    def __init__(self, backend: Any = None) -> None:
        self.first = nn.Linear(2, 3, backend=backend)
        self.second = nn.Linear(3, 1, backend=backend)
        self.second.weight.set_require_grad(False)
        self.scale = emberlet.asarray([2.0], backend=backend)

    def forward(self, x: Any) -> Any:
        return self.second(emberlet.tanh(self.first(x))) * self.scale


def test_a_model_made_on_an_autodiff_backend_is_in_training() -> None:
    model = Net("autodiff:numpy")
    assert model.first.weight.val().is_require_grad()
    assert not model.second.weight.val().is_require_grad()


def test_train_and_valid_keep_identities_and_which_parameters_train() -> None:
    model = Net("numpy")
    ids = [p.id for p in model.params()]
    assert model.train() is model
    inside = model.valid()
    again = inside.clone().train()
    for m in (model, inside, again):
        assert [p.id for p in m.params()] == ids
        assert [p.require_grad for p in m.params()] == [True, True, False, True]
    x = np.ones((1, 2), np.float32)
    assert inside(tensor(x, "numpy")).tolist() == model(tensor(x)).tolist()
    assert [repr(b) for b in inside.backends()] == ["numpy"]
    assert [repr(b) for b in model.backends()] == ["autodiff:numpy"]


def test_a_step_after_valid_leaves_the_copy_as_it_was() -> None:
    model = Net("numpy").train()
    inside = model.valid()
    before = inside.first.weight.val().tolist()
    grads = model(tensor([[1.0, 2.0]])).sum().backward()
    SgdConfig().init().step(0.5, model, GradientsParams.from_grads(grads, model))
    assert inside.first.weight.val().tolist() == before != model.first.weight.val().tolist()


@pytest.mark.parametrize("duplicate", [lambda m: m.clone(), copy.deepcopy])
def test_a_copy_trains_by_itself(duplicate: Any) -> None:
    model = Net("numpy").train()
    twin = duplicate(model)
    grads = twin(tensor([[1.0, 2.0]])).sum().backward()
    SgdConfig().init().step(0.5, twin, GradientsParams.from_grads(grads, twin))
    assert twin.first.bias.val().tolist() != model.first.bias.val().tolist()


def test_a_mapped_parameter_is_a_leaf_again() -> None:
    layer = nn.Linear(2, 1, backend="autodiff:numpy")
    layer.weight.map(lambda w: w * 2)
    grads = layer(tensor([[1.0, 2.0]])).sum().backward()
    assert layer.weight.val().grad(grads).tolist() == [[1.0], [2.0]]


def test_the_gradient_of_a_module_is_a_dict_by_names() -> None:
    model = nn.Linear(2, 1, backend="numpy")
    _, found = emberlet.value_and_grad(lambda m, x: m(x).sum())(model, tensor([[1.0, 2.0]], "numpy"))
    assert found["weight"].tolist() == [[1.0], [2.0]]
    assert model.weight.val().backend is get_backend("numpy")


def test_a_model_from_onnx_trains_further() -> None:
    model = codegen.load(ROOT / "examples" / "digits" / "digits.onnx", backend="numpy").train()
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as file:
        x = tensor((file["images"][:32].astype(np.float32) / 16)[:, None])
        y = tensor((file["labels"][:32].astype(np.int64) + 1) % 10)  # other digits than it knows
    optimizer = SgdConfig().init()
    losses = []
    for _ in range(5):
        loss = emberlet.functional.cross_entropy(model(x), y)
        losses.append(float(loss))
        model = optimizer.step(0.02, model, GradientsParams.from_grads(loss.backward(), model))
    assert losses[-1] < 0.8 * losses[0]
