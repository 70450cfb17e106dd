"""The loop: what it leaves in its folder, going on from a checkpoint, and steps over several batches."""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.data import ArrayDataset, DataLoader
from emberlet.errors import ArgumentError, EmberletError, IndexingError, LoadError
from emberlet.module import Module
from emberlet.optim import CosineAnnealingLrSchedulerConfig, GradientsParams
from emberlet.train import (
    ClassificationOutput,
    EarlyStopping,
    Events,
    Interrupter,
    KeepAll,
    KeepBest,
    Learner,
    LearnerBuilder,
    RegressionOutput,
    Step,
    TrainOutput,
)
from emberlet.train.learner.batches import as_tensors
from emberlet.train.metric import AccuracyMetric, LearningRateMetric, LossMetric
from support.small_training import Batches, Net, Plain, fit, learner, weights


def assert_same(a: Any, b: Any) -> None:
    mine, its = weights(a), weights(b)
    assert mine.keys() == its.keys()
    for name, value in mine.items():
        np.testing.assert_array_equal(value, its[name], err_msg=name)


def tree(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_network_learns_and_its_folder_has_the_books_layout(tmp_path: Path) -> None:
    made = learner(tmp_path, 3, checkpoints=KeepAll())
    model = made.fit(Batches(200, 32), Batches(50, 32, seed=1))
    assert made.history.of("valid", "Accuracy")[3] > made.history.of("valid", "Accuracy")[1] > 30
    assert made.reason is None
    assert model.backends() == [emberlet.get_backend("numpy")]
    logs = {f"{s}/epoch-{e}/{m}.log" for s in ("train", "valid") for e in (1, 2, 3) for m in ("Loss", "Accuracy")}
    kept = {f"checkpoint/{f}" for e in (1, 2, 3) for f in (f"model-{e}.bpk", f"optim-{e}.bpk", f"scheduler-{e}.json")}
    assert tree(tmp_path) == logs | kept | {"experiment.log", "events.jsonl"}


def test_logs_have_a_line_for_each_step_with_the_batchs_value_and_size(tmp_path: Path) -> None:
    made = learner(tmp_path, 1)
    made.fit(Batches(200, 32))
    lines = (tmp_path / "train/epoch-1/Loss.log").read_text(encoding="utf-8").split()
    values, sizes = np.array([[float(part) for part in line.split(",")] for line in lines]).T
    assert sizes.tolist() == [32] * 6 + [8]
    np.testing.assert_allclose(np.average(values, weights=sizes), made.history.of("train", "Loss")[1])


def test_events_are_json_lines(tmp_path: Path) -> None:
    fit(tmp_path, 2)
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["event"] for line in lines] == ["begin", *["epoch", "epoch_end"] * 2, "checkpoint",
                                                 *["epoch", "epoch_end"] * 2, "checkpoint", "end"]  # fmt: skip
    assert lines[0]["parameters"] == Net().num_params()
    assert lines[2]["items"] == 200


def test_the_log_takes_what_a_program_says(tmp_path: Path) -> None:
    class Talking(Events):
        def epoch(self, split: str, epoch: int) -> None:
            logging.getLogger("emberlet.train").warning("hello from %s", split)

    fit(tmp_path, 1, loggers=[Talking()])
    text = (tmp_path / "experiment.log").read_text(encoding="utf-8")
    assert "WARNING hello from valid" in text
    assert "epoch 1, valid: Loss" in text
    logging.getLogger("emberlet.train").warning("nobody writes this")
    assert "nobody" not in (tmp_path / "experiment.log").read_text(encoding="utf-8")


SCHEDULE = CosineAnnealingLrSchedulerConfig(initial_lr=0.02, num_iters=28)


@pytest.mark.parametrize("epoch", [1, 2, 3])
@pytest.mark.parametrize("compile", [False, True])
def test_going_on_from_any_epoch_gives_the_weights_of_a_run_without_a_break(
    tmp_path: Path, epoch: int, compile: bool
) -> None:
    whole = fit(tmp_path / "whole", 4, lr=SCHEDULE, compile=compile)
    fit(tmp_path / "broken", epoch, lr=SCHEDULE, compile=compile)
    again = learner(tmp_path / "broken", 4, lr=SCHEDULE, compile=compile, checkpoint=epoch, metrics=[LossMetric()])
    F.manual_seed(99)  # the checkpoint's random numbers count
    assert_same(whole, again.fit(Batches(200, 32), Batches(50, 32, seed=1)))
    assert list(again.history.of("train", "Loss")) == [1, 2, 3, 4]


def test_going_back_to_an_epoch_forgets_the_later_ones(tmp_path: Path) -> None:
    fit(tmp_path, 4, checkpoints=KeepAll())
    whole = fit(tmp_path, 3, checkpoint=2, checkpoints=KeepAll())
    assert {int(p.stem.split("-")[1]) for p in (tmp_path / "checkpoint").iterdir()} == {1, 2, 3}
    assert {p.name for p in (tmp_path / "train").iterdir()} == {"epoch-1", "epoch-2", "epoch-3"}
    assert_same(whole, fit(tmp_path, 3, resume=True))


def test_a_folder_with_a_training_is_not_overwritten(tmp_path: Path) -> None:
    fit(tmp_path, 1)
    with pytest.raises(ArgumentError, match="resume=True"):
        fit(tmp_path, 2)


def test_a_checkpoint_that_is_not_there_is_named(tmp_path: Path) -> None:
    fit(tmp_path, 2)
    with pytest.raises(LoadError, match=r"epoch 7.*1, 2"):
        fit(tmp_path, 8, checkpoint=7)


def test_accumulated_gradients_are_those_of_one_large_batch(tmp_path: Path) -> None:
    def options() -> dict[str, Any]:
        return {"model": Plain()}

    large = learner(tmp_path / "a", 2, **options()).fit(Batches(192, 64))
    small = learner(tmp_path / "b", 2, grads_accumulation=2, **options()).fit(Batches(192, 32))
    for name, value in weights(large).items():
        np.testing.assert_allclose(weights(small)[name], value, atol=1e-5)


@pytest.mark.parametrize("devices", [["numpy", "numpy"], ["numpy", "python", "numpy"], ["numpy", "wasm"]])
def test_several_devices_take_the_step_of_one_batch_of_their_size(tmp_path: Path, devices: list[str]) -> None:
    one = learner(tmp_path / "a", 1, model=Plain()).fit(Batches(200, 32 * len(devices)))
    several = learner(tmp_path / "b", 1, model=Plain(), devices=devices).fit(Batches(200, 32))
    for name, value in weights(one).items():
        np.testing.assert_allclose(weights(several)[name], value, atol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "python", "wasm"])
def test_it_trains_on_every_backend(tmp_path: Path, backend: str) -> None:
    made = learner(tmp_path, 2, model=Plain(backend))
    made.fit(Batches(100, 32), Batches(50, 32))
    losses = made.history.of("valid", "Loss")
    assert losses[2] < losses[1]


@pytest.mark.parametrize("backend", ["numpy", "wasm", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))])
def test_a_compiled_training_has_the_weights_of_an_eager_one(tmp_path: Path, backend: str) -> None:
    eager, compiled = (
        learner(tmp_path / str(compile), 2, model=Net(backend), compile=compile).fit(Batches(200, 32))
        for compile in (False, True)
    )
    for name, value in weights(eager).items():
        np.testing.assert_allclose(weights(compiled)[name], value, atol=1e-4)  # Adam makes roundings larger


def test_steps_are_compiled_unless_the_step_or_the_batch_forbids(tmp_path: Path) -> None:
    calls = []

    class Counted(Plain):
        def step(self, batch: Any) -> ClassificationOutput:
            calls.append(len(batch))
            return Plain.step(self, batch)

    def count(batches: Any, **options: Any) -> int:
        calls.clear()
        learner(tmp_path / str(len(list(tmp_path.iterdir()))), 3, model=Counted(), **options).fit(batches)
        return len(calls)

    batches = list(Batches(200, 50))
    assert count(batches, compile=False) == 12
    assert count(batches) < 6, "a plan calls the step only while it is made"
    named = [(*batch, f"batch {i}") for i, batch in enumerate(batches)]
    assert count(named) >= 9, "texts are not what a plan may keep"


def test_the_training_ends_where_a_metric_does_not_become_better(tmp_path: Path) -> None:
    stop = EarlyStopping("Loss", epochs=2, min_change=100.0)
    made = learner(tmp_path, 9, early_stopping=stop)
    made.fit(Batches(100, 32), Batches(50, 32))
    assert list(made.history.of("valid", "Loss")) == [1, 2, 3]
    assert made.reason is not None
    assert made.reason.startswith("Loss (valid) has not become better since epoch 1")
    again = learner(tmp_path, 9, early_stopping=stop, resume=True)
    again.fit(Batches(100, 32), Batches(50, 32))
    assert again.reason == made.reason, "a training that ended stays ended"


class Stopping(Events):
    def __init__(self, interrupter: Interrupter, after: int) -> None:
        self.interrupter, self.after, self.steps = interrupter, after, 0

    def step(self, step: Step) -> None:
        self.steps += 1
        if self.steps == self.after:
            self.interrupter.stop("enough")


def test_an_interrupter_ends_it_after_the_step_and_it_goes_on_from_the_last_epoch(tmp_path: Path) -> None:
    whole = fit(tmp_path / "whole", 3)
    interrupter = Interrupter()
    stopping = Stopping(interrupter, 12)  # in the second epoch
    made = learner(tmp_path / "broken", 3, interrupter=interrupter, renderer=stopping)
    made.fit(Batches(200, 32), Batches(50, 32, seed=1))
    assert made.reason == "enough"
    assert stopping.steps == 12
    assert made.checkpoints is not None
    assert made.checkpoints.epochs() == [1]
    assert_same(whole, fit(tmp_path / "broken", 3, resume=True))


class Own(Module):
    """A step that takes its gradients itself, and another one for validation."""

    def __init__(self) -> None:
        self.weight = nn.Linear(2, 1, backend="numpy")

    def step(self, batch: Any) -> TrainOutput:
        output = self.weight(batch["x"])
        item = RegressionOutput(((output - batch["y"]) ** 2).mean(), output, batch["y"])
        return TrainOutput(self, item.loss.backward(), item)

    def valid_step(self, batch: Any) -> RegressionOutput:
        output = self.weight(batch["x"])
        return RegressionOutput(abs(output - batch["y"]).mean(), output, batch["y"])


def test_a_step_may_give_its_gradients(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
    y = x @ np.float32([[2.0], [-1.0]])
    batches = [{"x": emberlet.asarray(x[i : i + 16]), "y": emberlet.asarray(y[i : i + 16])} for i in range(0, 64, 16)]
    F.manual_seed(0)
    made = Learner(
        tmp_path, Own(), optim.SgdConfig().init(), 0.1, num_epochs=12, metrics=[LossMetric()],
        renderer=None,
    )  # fmt: skip
    model = made.fit(batches, batches)
    np.testing.assert_allclose(weights(model)["weight.weight"].ravel(), [2, -1], atol=0.02)
    assert made.history.of("valid", "Loss")[12] < 0.02


def test_settings_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    whole = fit(tmp_path / "whole", 3)
    fit(tmp_path / "broken", np.int64(2))
    rate = np.float32(0.01)
    assert fit(tmp_path / "rate", 1, lr=rate, checkpoints=(KeepAll(),), early_stopping=None) is not None
    assert_same(whole, fit(tmp_path / "broken", np.int32(3), checkpoint=np.int64(2)))


def test_batches_that_are_used_up_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="epoch 2"):
        learner(tmp_path, 2).fit(iter(Batches(64, 32)))


class Slots:
    """A batch without __dict__."""

    __slots__ = ("targets", "x")

    def __init__(self, x: Any, targets: Any) -> None:
        self.x, self.targets = x, targets


class OfSlots(Plain):
    def step(self, batch: Any) -> ClassificationOutput:
        return Plain.step(self, (batch.x, batch.targets))


class OfArrays(Plain):
    def step(self, batch: Any) -> ClassificationOutput:
        scale = emberlet.asarray(batch[2][:, None], backend=batch[0].backend)
        return Plain.step(self, (batch[0] * scale, batch[1]))


@pytest.mark.parametrize("compile", [False, True])
def test_a_batch_may_be_an_object_with_slots(tmp_path: Path, compile: bool) -> None:
    batches = list(Batches(64, 32))
    plain = learner(tmp_path / "a", 2, model=Plain(), compile=compile).fit(batches)
    slots = learner(tmp_path / "b", 2, model=OfSlots(), compile=compile).fit([Slots(*batch) for batch in batches])
    assert_same(plain, slots)


def test_a_plan_does_not_keep_the_array_of_its_first_batch(tmp_path: Path) -> None:
    batches = []
    for i, (x, targets) in enumerate(Batches(4096, 2048)):
        scale = np.ones(2048, np.float32)
        scale[100:-100] = i  # the text of an array leaves out the middle of a long one
        batches.append((x, targets, scale))
    eager, compiled = (
        learner(tmp_path / str(compile), 2, model=OfArrays(), compile=compile).fit(batches) for compile in (False, True)
    )
    for name, value in weights(eager).items():
        np.testing.assert_allclose(weights(compiled)[name], value, atol=1e-4)


def test_an_output_without_a_loss_is_an_error_that_says_so(tmp_path: Path) -> None:
    class Wrong(Own):
        def step(self, batch: Any) -> Any:
            return self.weight(batch)

    made = Learner(tmp_path, Wrong(), optim.SgdConfig().init(), 0.1, renderer=None)
    with pytest.raises(EmberletError, match="has no loss: return an output with one"):
        made.fit([emberlet.ones((1, 2), backend="numpy")])


def test_a_batch_may_be_an_object_whose_tensors_are_on_another_backend(tmp_path: Path) -> None:
    class Batch:
        def __init__(self, x: Any, y: Any) -> None:
            self.images, self.targets = x, y

    class Model(Plain):
        def step(self, batch: Any) -> ClassificationOutput:
            return Plain.step(self, (batch.images, batch.targets))

    batches = [Batch(x.to("python"), y.to("python")) for x, y in Batches(64, 32)]
    made = learner(tmp_path, 1, model=Model())
    made.fit(batches, batches)
    assert made.history.of("valid", "Loss")


def test_the_metric_of_the_rate_sees_the_schedule(tmp_path: Path) -> None:
    made = learner(tmp_path, 1, lr=SCHEDULE, metrics=[LearningRateMetric()])
    made.fit(Batches(200, 32), Batches(50, 32))
    lines = (tmp_path / "train/epoch-1/Learning rate.log").read_text(encoding="utf-8").split()
    np.testing.assert_allclose([float(line.split(",")[0]) for line in lines], [SCHEDULE.rate(i) for i in range(7)])
    assert made.history.of("valid", "Learning rate") == {}


def test_metrics_know_how_many_items_of_a_loader_are_done(tmp_path: Path) -> None:
    seen = []

    class Watching(LossMetric):
        def update(self, item: Any, metadata: Any = None) -> Any:
            seen.append((metadata.iteration, metadata.iteration_total, metadata.progress.items_processed))
            return LossMetric.update(self, item, metadata)

    x = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    loader = DataLoader(ArrayDataset(x, x[:, :3].argmax(1)), batch_size=16, shuffle=1)
    learner(tmp_path, 1, metrics=[Watching()], model=Plain()).fit(loader)
    assert seen == [(1, 3, 16), (2, 3, 32), (3, 3, 40)]


def test_a_lowered_rate_is_kept_by_checkpoints(tmp_path: Path) -> None:
    made = learner(tmp_path, 1)
    made.lower_rate(0.25)
    made.fit(Batches(64, 32))
    again = learner(tmp_path, 2, resume=True, metrics=[LearningRateMetric()])
    again.fit(Batches(64, 32))
    assert again.history.of("train", "Learning rate") == {2: 0.0025}


def test_lbfgs_computes_the_loss_several_times_a_step(tmp_path: Path) -> None:
    F.manual_seed(1)
    made = Learner(
        tmp_path, Plain(), optim.LBFGSConfig().init(), 0.5, num_epochs=2, metrics=[LossMetric()], renderer=None
    )
    made.fit([next(iter(Batches(200, 200)))])
    losses = made.history.of("train", "Loss")
    assert losses[2] < 0.5 * losses[1]


def test_the_books_builder_makes_the_same_learner(tmp_path: Path) -> None:
    F.manual_seed(3)
    made = (
        LearnerBuilder(tmp_path / "built")
        .metric_train_numeric(LossMetric())
        .metric_valid_numeric(LossMetric())
        .metric_valid(AccuracyMetric())
        .with_file_checkpointer()
        .devices(["numpy"])
        .grads_accumulation(1)
        .renderer(None)
        .num_epochs(2)
        .summary()
        .build(Net(), optim.AdamConfig().init(), 0.01)
    )
    built = made.fit(Batches(200, 32), Batches(50, 32, seed=1))
    assert_same(built, fit(tmp_path / "plain", 2))
    assert set(made.history.values["train"]) == {"Loss"}
    assert set(made.history.values["valid"]) == {"Loss", "Accuracy"}


def test_wrong_settings_are_refused(tmp_path: Path) -> None:
    for name in ("num_epochs", "grads_accumulation", "checkpoint"):
        for value in (0, 1.5):
            with pytest.raises(ArgumentError, match=f"{name} is an integer"):
                Learner(tmp_path, Plain(), optim.SgdConfig().init(), 0.1, **{name: value})
    with pytest.raises(ArgumentError, match="lr is a number, a schedule or its config"):
        Learner(tmp_path, Plain(), optim.SgdConfig().init(), "fast")
    for rate in (-0.1, float("nan"), optim.ExponentialLrSchedulerConfig(-0.1, 0.9)):
        with pytest.raises(ArgumentError, match="finite number of at least 0"):
            Learner(tmp_path, Plain(), optim.SgdConfig().init(), rate)
    with pytest.raises(ArgumentError, match="factor is a finite number"):
        Learner(tmp_path, Plain(), optim.SgdConfig().init(), 0.1).lower_rate(-1)
    with pytest.raises(ArgumentError, match="Linear has no step"):
        Learner(tmp_path, nn.Linear(2, 1), optim.SgdConfig().init(), 0.1)
    with pytest.raises(ArgumentError, match="renderer is 'auto'"):
        fit(tmp_path, 1, renderer="pretty")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metrics": LossMetric()}, "metrics is a list of metrics"),
        ({"metrics": ["Loss"]}, "'Loss', which is no metric"),
        ({"metrics": [LossMetric]}, r"make a metric, LossMetric\(\)"),
        ({"metrics": [LossMetric(), LossMetric()]}, "two metrics named 'Loss'"),
        ({"optimizer": optim.AdamConfig()}, r"give AdamConfig\(…\)\.init\(\)"),
        ({"optimizer": "adam"}, "an optimizer has step"),
        ({"devices": "numpy"}, r"such as \['numpy'\]"),
        ({"loggers": ["log"]}, "derive from Events"),
        ({"interrupter": 4}, "derive from Interrupter"),
        ({"checkpoints": 3}, "derive from Keep"),
        (
            {"checkpoints": [KeepAll(), KeepBest("Lost")]},
            "metric 'Lost' of 'valid', which is not measured there; .*'Loss'",
        ),
        ({"early_stopping": "Loss"}, "derive from EarlyStopping"),
        ({"early_stopping": EarlyStopping("Accuracy"), "metrics_valid": [LossMetric()]}, "not measured there"),
    ],
)
def test_what_is_no_setting_is_refused_before_the_training(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    given = {"optimizer": optim.AdamConfig().init(), "metrics": [LossMetric()], **settings}
    with pytest.raises(ArgumentError, match=message):
        Learner(tmp_path, Net(), given.pop("optimizer"), 0.01, **given)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(ArgumentError, match="file is a file"):
            learner(path, 1)


def test_what_is_no_batches_is_refused(tmp_path: Path) -> None:
    data = ArrayDataset(np.ones((4, 4), np.float32), np.zeros(4, np.int64))
    with pytest.raises(ArgumentError, match="give DataLoader"):
        learner(tmp_path, 1).fit(data)
    with pytest.raises(ArgumentError, match="there are none"):
        learner(tmp_path, 1).fit(DataLoader([], batch_size=2))
    with pytest.raises(ArgumentError, match="looks at the validation"):
        learner(tmp_path, 1, early_stopping=EarlyStopping("Loss")).fit(DataLoader(data, batch_size=2))


@pytest.mark.parametrize("compile", [True, False])
def test_a_label_that_is_no_class_is_an_error(tmp_path: Path, compile: bool) -> None:
    for label in (3, -1):
        batches = [(np.ones((2, 4), np.float32), np.array(labels)) for labels in ([0, 1], [2, label])]
        with pytest.raises(IndexingError, match=f"target {label} is not one of 3 classes"):
            learner(tmp_path / str(label), 1, compile=compile).fit(batches)


def test_batches_may_be_arrays(tmp_path: Path) -> None:
    tensors = fit(tmp_path / "tensors", 1)
    arrays = [tuple(np.asarray(x) for x in batch) for batch in Batches(200, 32)]
    assert_same(learner(tmp_path / "arrays", 1).fit(arrays), tensors)


class Foreign:
    """An array of another library, such as torch, whose dtype is not NumPy's."""

    dtype = "float32"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros(2, np.float32)


def test_batches_may_hold_arrays_of_others_and_any_kind_of_dict(tmp_path: Path) -> None:
    class OfDicts(Plain):
        def step(self, batch: Any) -> Any:
            assert isinstance(batch, defaultdict) and batch.default_factory is list and batch["else"] == []
            assert type(batch["foreign"]) is Foreign and isinstance(batch["counts"], Counter)
            assert batch["counts"] == {"a": 2}
            return Plain.step(self, (batch["x"], batch["y"]))

    tensors = [tuple(batch) for batch in Batches(64, 32)]
    expected = learner(tmp_path / "plain", 1, model=Plain()).fit(tensors)
    for change in (lambda x: x, np.asarray):
        batches = [
            defaultdict(list, x=change(x), y=change(y), foreign=Foreign(), counts=Counter(a=2)) for x, y in tensors
        ]
        found = learner(tmp_path / change.__name__, 1, model=OfDicts(), compile=False).fit(batches)
        assert_same(found, expected)
    assert type(as_tensors({"x": Foreign()})["x"]) is Foreign and "else" not in batches[0]


@pytest.mark.parametrize("loss", [lambda x: 0.5, lambda x: x])
def test_a_loss_is_one_number_of_the_model(tmp_path: Path, loss: Any) -> None:
    class Wrong(Plain):
        def step(self, batch: Any) -> ClassificationOutput:
            output = self.first(batch[0])
            return ClassificationOutput(loss(output), output, batch[1])

    with pytest.raises(EmberletError, match="the loss of an output is one number"):
        Learner(tmp_path, Wrong(), optim.SgdConfig().init(), 0.1).fit(Batches(8, 4))


def test_the_gradients_may_be_taken_already(tmp_path: Path) -> None:
    model = Own().train()
    batch = {"x": emberlet.ones((4, 2), backend="autodiff:numpy"), "y": emberlet.ones((4, 1), backend="autodiff:numpy")}
    taken = model.step(batch).grads
    assert isinstance(taken, GradientsParams)
    assert len(taken) == 2
