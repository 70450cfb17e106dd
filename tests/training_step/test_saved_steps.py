"""Training steps from files: losses and weights are PyTorch's, and those of the compiled step; what is refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.burnpack import Burnpack
from emberlet.errors import ArgumentError, BackendError, EmberletError, FormatError, LoadError, ModelError
from emberlet.host import burnpack_writer
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.plan.data import KEY, KEY_STEP

from ..optim.settings import RATE, RATES, SETTINGS, STEPS, dtype_of
from ..optim.test_optimizers import ANSWERS, loss_of, weights
from ..optim.test_optimizers import network as two_layers
from . import networks
from .networks import batch, dense, squares

GPU = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))
ADAM = optim.AdamConfig(epsilon=1e-3, weight_decay=0.01)


def saved(tmp_path: Path, step: Any, *examples: Any, **options: Any) -> Any:
    path = str(tmp_path / "step.plan")
    plan_file.save(path, step, *examples, **options)
    return plan_file.load(path)


def number(found: Any) -> float:
    return float(np.asarray(found))


def as_arrays(record: Any) -> dict[str, Any]:
    return {name: np.asarray(record[name]) for name in record}


def same(found: Any, wanted: Any, rtol: float = 0) -> None:
    found, wanted = as_arrays(found), as_arrays(wanted)
    assert found.keys() == wanted.keys()
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.needs("gpu-driver")
@pytest.mark.parametrize("name", [n for n in SETTINGS if dtype_of(n) is np.float32])
def test_ten_steps_end_where_pytorch_ends(name: str, tmp_path: Path) -> None:
    _, _, kind, fields = SETTINGS[name]
    model, x, y = two_layers("numpy", np.float32)
    step = model.compile_step(loss_of, getattr(optim, kind).from_dict(fields).init())
    file = saved(tmp_path, step, x, y)
    losses = [number(file.run(RATES.get(name, RATE), x, y)) for _ in range(STEPS)]
    np.testing.assert_allclose(losses, ANSWERS[name + "/losses"], rtol=1e-6, atol=1e-6)
    model.load_record(file.to_record())
    np.testing.assert_allclose(weights(model), ANSWERS[name + "/weights"], rtol=1e-6, atol=2e-6)


@pytest.mark.needs("gpu-driver")
@pytest.mark.parametrize("name", ["digits", "encoder", "lstm", "unet"])
def test_networks_train_as_in_pytorch(name: str, tmp_path: Path) -> None:
    model, loss, optimizer, items = networks.digits("numpy") if name == "digits" else networks.network(name, "numpy")
    rate, answers = networks.curve(name)
    file = saved(tmp_path, model.compile_step(loss, optimizer), *items(0))
    found = [number(file.run(rate, *items(i))) for i in range(20)]
    np.testing.assert_allclose(found, answers[:20], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", ["numpy", "wasm", GPU])
@pytest.mark.needs("gpu-driver")
def test_a_file_goes_on_as_the_step_does(backend: str, tmp_path: Path) -> None:
    """Random layers, running statistics, groups, clipping, a frozen parameter, and steps before the file is written."""
    model = dense(nn.Sequential(nn.BatchNorm(6, backend=backend), nn.Dropout(0.3)), backend)
    optim.freeze_group(model, "^last.bias")
    config = optim.AdamWConfig(grad_clipping=optim.GradientClippingConfig.global_norm(0.5))
    optimizer = config.init([optim.Group("^first", rate=0.5, weight_decay=0.1)])
    step = model.compile_step(squares, optimizer)
    for i in range(3):
        step(0.01, *batch(8, i))
    file = saved(tmp_path, step, *batch())
    found = []
    for train in (step, file.run):
        emberlet.manual_seed(6)
        found.append([number(train(0.01 / (i + 1), *batch(8, i))) for i in range(6)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
    same(file.to_record(), model.to_record(), 1e-5)
    same(file.optimizer_record(), optimizer.to_record(), 1e-5)
    assert file.to_record().param_ids == model.to_record().param_ids


@pytest.mark.needs("gpu-driver")
def test_training_goes_on_from_records(tmp_path: Path) -> None:
    model = dense()
    optimizer = ADAM.init()
    step = model.compile_step(squares, optimizer)
    step(0.01, *batch())
    file = saved(tmp_path, step, *batch())
    for i in range(4):
        file.run(0.01, *batch(8, i))
    file.to_record().save(tmp_path / "model.bpk")
    file.optimizer_record().save(tmp_path / "optim.bpk")
    wanted = [number(file.run(0.01, *batch(8, i))) for i in range(3)]
    other = plan_file.load(str(tmp_path / "step.plan"))
    other.run(0.01, *batch())  # so that its other buffers are in use
    other.load_record(Burnpack.from_file(tmp_path / "model.bpk"))
    other.load_record(Burnpack.from_file(tmp_path / "optim.bpk"))
    assert [number(other.run(0.01, *batch(8, i))) for i in range(3)] == wanted
    model.load_file(tmp_path / "model.bpk")
    optimizer.load_record(Burnpack.from_file(tmp_path / "optim.bpk"))
    np.testing.assert_allclose([float(step(0.01, *batch(8, i))) for i in range(3)], wanted, rtol=1e-5)


@pytest.mark.needs("gpu-driver")
def test_records_that_do_not_fit_change_nothing(tmp_path: Path) -> None:
    step = dense().compile_step(squares, ADAM.init())
    step(0.01, *batch())
    file = saved(tmp_path, step, *batch())
    before, states = as_arrays(file.to_record()), file.optimizer_record()
    one = next(name for name in states if name.endswith("time"))
    bias = emberlet.zeros((6,), backend="numpy")
    wrong: list[dict[str, Any]] = [
        {"first.bias": bias, "nothing": bias}, {"first.bias": emberlet.zeros((5,), backend="numpy")},
        {"first.bias": bias.astype("float64")}, {**dict(states.items()), one: emberlet.asarray(7, backend="numpy")},
        {one: emberlet.asarray(-1, backend="numpy")}, {one: emberlet.asarray(float("nan"), backend="numpy")},
        {one: emberlet.asarray([1, 2], backend="numpy")},
    ]  # fmt: skip
    for record in wrong:
        with pytest.raises(LoadError):
            file.load_record(record)
    same(file.to_record(), before)


@pytest.mark.needs("gpu-driver")
def test_batches_of_every_length(tmp_path: Path) -> None:
    def made(backend: str) -> Any:
        model = dense(nn.Sequential(nn.BatchNorm(6, backend=backend), nn.Dropout(0.3)), backend)
        return model.compile_step(squares, ADAM.init())

    file = saved(tmp_path, made("numpy"), *batch(), dims={"batch": (2, 16)})
    step = made("numpy")
    found = []
    for train in (step, file.run):
        emberlet.manual_seed(3)
        found.append([number(train(0.01, *batch(n, n))) for n in (8, 16, 5, 16, 2, 8)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
    with pytest.raises(FormatError, match="batch between 2 and 16"):
        file.run(0.01, *batch(17))
    x, y = batch(8)
    with pytest.raises(FormatError):
        file.run(0.01, x, y[:7])
    with pytest.raises(ArgumentError, match="batch"):
        saved(tmp_path, step, *batch(), dims={"length": 4})
    with pytest.raises(ModelError, match="other sizes than batch 1"):
        saved(tmp_path, step, *batch(), dims={"batch": 16})  # BatchNorm depends on whether there is one row
    with pytest.raises(ModelError, match="give 'batch' a limit"):
        saved(tmp_path, step, *batch(), dims={"batch": None})


@pytest.mark.needs("gpu-driver")
def test_what_the_loss_function_returns(tmp_path: Path) -> None:
    class Item:
        def __init__(self, loss: Any, output: Any) -> None:
            self.loss, self.output = loss, output

    def output(m: Any, x: Any, y: Any) -> Any:
        return ((out := m(x)) - y).abs().mean(), out

    wanted = np.asarray(dense()(emberlet.asarray(batch()[0], backend="numpy")))
    loss = abs(wanted - batch()[1]).mean()
    kinds: dict[Any, Any] = {tuple: lambda m, x, y: output(m, x, y), dict: lambda m, x, y: Item(*output(m, x, y))}
    for kind, function in kinds.items():
        for dims in (None, {"batch": 12}):
            file = saved(tmp_path, dense().compile_step(function, ADAM.init()), *batch(), dims=dims)
            found = file.run(0.0, *batch())
            first, second = found if kind is tuple else (found["loss"], found["output"])
            np.testing.assert_allclose(number(first), loss, rtol=1e-5)
            np.testing.assert_allclose(np.asarray(second), wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(ModelError, match="'output1' is something else"):
        saved(tmp_path, dense().compile_step(lambda m, x, y: (squares(m, x, y), 3), ADAM.init()), *batch())


class Exchanging(nn.Tanh):
    """Two buffers that change places in each step, one that stays, and one that becomes a copy of another."""

    def __init__(self, backend: str) -> None:
        for i, name in enumerate(("a", "b", "stays", "copy")):
            value = emberlet.full((2,), float(i + 1), backend=backend)
            setattr(self, name, emberlet.Param(value, require_grad=False))

    def forward(self, x: Any) -> Any:
        a, b = self.a.val(), self.b.val()
        self.a.set(b)
        self.b.set(a)
        self.copy.set(self.stays.val() * 1.0)
        return super().forward(x) * (1 + self.copy.val().sum() * 0.0)


@pytest.mark.needs("gpu-driver")
def test_values_that_change_places(tmp_path: Path) -> None:
    file = saved(tmp_path, dense(Exchanging("numpy")).compile_step(squares, ADAM.init()), *batch())
    for a in (2.0, 1.0, 2.0):
        file.run(0.01, *batch())
        found = as_arrays(file.to_record())
        assert found["between.a"].tolist() == [a] * 2 and found["between.b"].tolist() == [3 - a] * 2
        assert found["between.stays"].tolist() == found["between.copy"].tolist() == [3.0] * 2


@pytest.mark.needs("gpu-driver")
def test_a_parameter_of_two_layers_keeps_both_names(tmp_path: Path) -> None:
    model = dense()
    model.again = model.first
    step = model.compile_step(lambda m, x, y: squares(m, x, y) + m.again(x).mean(), ADAM.init())
    file = saved(tmp_path, step, *batch())
    step(0.01, *batch())
    file.run(0.01, *batch())
    same(file.to_record(), model.to_record(), 1e-5)


class Adding(nn.Tanh):
    """Adds a constant of the plan to a parameter that is named like one."""

    def __init__(self) -> None:
        self.constant0 = emberlet.Param(emberlet.full((64,), 7.0, backend="numpy"))

    def forward(self, x: Any) -> Any:
        added = emberlet.asarray(np.arange(64, dtype=np.float32) ** 2, backend=x.backend)
        return x * self.constant0.val() + added


@pytest.mark.needs("gpu-driver")
def test_a_parameter_may_have_the_name_of_a_constant(tmp_path: Path) -> None:
    model, x = Adding(), np.ones((2, 64), np.float32)
    file = saved(tmp_path, model.compile_step(lambda m, x: m(x).mean(), ADAM.init()), x)
    assert np.asarray(file.to_record()["constant0"]).tolist() == [7.0] * 64
    np.testing.assert_allclose(number(file.run(0.01, x)), 7 + (np.arange(64) ** 2).mean(), rtol=1e-6)


@pytest.mark.needs("gpu-driver")
def test_calls_that_overlap_run_in_order(tmp_path: Path) -> None:
    step = dense().compile_step(squares, ADAM.init())
    file, other = saved(tmp_path, step, *batch()), plan_file.load(str(tmp_path / "step.plan"))
    wanted = [number(other.run(0.01, *batch(8, i))) for i in range(6)]

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*[file.run_async(0.01, *batch(8, i)) for i in range(6)])

    assert [number(x) for x in asyncio.run(all_at_once())] == wanted
    same(asyncio.run(file.to_record_async()), other.to_record())
    same(asyncio.run(file.optimizer_record_async()), other.optimizer_record())


@pytest.mark.needs("gpu-driver")
def test_a_call_that_fails_changes_nothing(tmp_path: Path) -> None:
    def classes(m: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(m(x), F.take(y, y, axis=0))

    x, y = batch()[0], np.arange(8) % 2
    file = saved(tmp_path, dense().compile_step(classes, ADAM.init()), x, y)
    file.run(0.01, x, y)
    before, states = file.to_record(), file.optimizer_record()
    wrong = [
        (x, y.astype(np.float32)),
        (x[:4], y[:4]),
        (x.astype(np.float64), y),
        (x, y + 7),
        (x,),
        (x, y, y),
        (x, [0]),
    ]
    for items in wrong:
        with pytest.raises(EmberletError):
            file.run(0.01, *items)
    for rate in (-0.01, float("nan")):
        with pytest.raises(EmberletError, match="finite number of at least 0"):
            file.run(rate, x, y)
    same(file.to_record(), before)
    same(file.optimizer_record(), states)
    file.release()
    with pytest.raises(BackendError):
        file.run(0.01, x, y)
    with pytest.raises(BackendError):
        file.to_record()


def test_steps_that_cannot_be_saved(tmp_path: Path) -> None:
    path = str(tmp_path / "step.plan")
    step = dense().compile_step(squares, ADAM.init())
    with pytest.raises(ArgumentError, match="with a batch"):
        plan_file.save(path, step)
    with pytest.raises(ModelError, match="WebGPU"):
        plan_file.save(str(tmp_path / "step.wasm"), step, *batch())
    with pytest.raises(ModelError, match="operation by operation, as all steps on the backend 'python'"):
        plan_file.save(path, dense(None, "python").compile_step(squares, ADAM.init()), *batch())
    with pytest.raises(ModelError, match="takes tensors only"):
        plan_file.save(path, dense().compile_step(lambda m, x, y, n: squares(m, x, y) * n, ADAM.init()), *batch(), 2.0)
    model = dense()
    model.first.weight = model.first.weight.save_mapper(lambda x: x * 2)
    with pytest.raises(ModelError, match=r"'first.weight' has a mapper"):
        plan_file.save(path, model.compile_step(squares, ADAM.init()), *batch())
    for names in ({"inputs": ["a"]}, {"inputs": ["a", "b", "c"]}, {"outputs": ["a"]}, {"outputs": ["a", "b", "c"]}):
        with pytest.raises(ArgumentError, match="names 2 tensors"):
            two = dense().compile_step(lambda m, x, y: (squares(m, x, y), m(x)), ADAM.init())
            plan_file.save(path, two, *batch(), **names)
    assert not Path(path).exists()


@pytest.mark.needs("gpu-driver")
def test_damaged_steps_are_refused(tmp_path: Path) -> None:
    step = dense().compile_step(squares, ADAM.init())
    path = tmp_path / "step.plan"
    plan_file.save(str(path), step, *batch())
    pack = Burnpack.from_file(path)
    good = json.loads(pack.metadata[KEY_STEP])
    huge: Any = 2.0
    for _ in range(40):
        huge = ["*", huge, 1.0]
    changes: list[dict[str, Any]] = [
        {"version": 2}, {"draws": 99}, {"draws": -1}, {"draws": 1}, {"parameters": [["first.weight"]] * 99},
        {"parameters": [[], *good["parameters"][1:]]}, {"parameters": [["nothing"], *good["parameters"][1:]]},
        {"states": good["states"] * 9}, {"carried": [[0, 99]]}, {"carried": [[99, 1]]}, {"carried": [[0, 0]]},
        {"carried": [[0, 1], [0, 1]]}, {"carried": [[0]]}, {"carried": 3}, {"result": "list"}, {"result": None},
        {"counts": []}, {"counts": [["time 0", -1, None, []]]}, {"counts": [["time 0", 0, ["+", "other", 1], []]]},
        {"numbers": [["%", "lr", 1]]}, {"numbers": [["+", "lr"]]}, {"numbers": ["nothing"]}, {"numbers": [True]},
        {"numbers": [huge]}, {"numbers": ["lr"] * 99}, {"numbers": "lr"},
    ]  # fmt: skip
    wrong = [json.dumps({**good, **change}) for change in changes]
    wrong += [json.dumps({k: v for k, v in good.items() if k != key}) for key in good]
    wrong += ["", "[]", "{" * 2000, json.dumps(good)[:-9]]
    tensors = {
        name: burnpack_writer.Source(e.dtype, e.shape, lambda e=e: pack.data[e.start : e.end])
        for name, e in pack.tensors.items()
    }
    device = plan_file.load(str(path))._programs[0].device
    for text in wrong:
        content = burnpack_writer.dumps(tensors, {KEY: pack.metadata[KEY], KEY_STEP: text})
        with pytest.raises(FormatError):
            plan_file.load(content, device)
    powers: list[Any] = [["**", 10.0, ["**", 10.0, 10.0]], ["**", -8.0, 0.5], ["/", "lr", 0]]
    impossible: list[dict[str, Any]] = [{"numbers": [number]} for number in powers]
    infinite = ["*", 1e200, 1e200]
    for following in (infinite, ["-", infinite, infinite]):
        impossible.append({"counts": [[name, value, following, known] for name, value, _, known in good["counts"]]})
    for change in impossible:
        content = burnpack_writer.dumps(tensors, {KEY: pack.metadata[KEY], KEY_STEP: json.dumps({**good, **change})})
        with pytest.raises(EmberletError):
            plan_file.load(content, device).run(0.01, *batch())
    plan_file.save(str(tmp_path / "open.plan"), step, *batch(), dims={"batch": 16})
    opened = json.loads(Burnpack.from_file(tmp_path / "open.plan").metadata[KEY])
    opened["inputs"][1][2] = opened["inputs"][-1][2]
    metadata = {KEY: json.dumps(opened), KEY_STEP: json.dumps({**good, "carried": []})}
    with pytest.raises(FormatError, match="has an open size"):
        plan_file.load(burnpack_writer.dumps(tensors, metadata), device)
    data = bytearray(path.read_bytes())
    at = pack.tensors["first.weight"].start
    data[at] ^= 1
    with pytest.raises(FormatError, match=r"'first\.weight' have changed"):
        plan_file.load(bytes(data), device, verify=True)
