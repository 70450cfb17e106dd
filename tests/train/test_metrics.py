"""Metrics over batches of different sizes, against scikit-learn, scikit-image and torchmetrics on all rows at once."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.errors import EmberletError
from emberlet.train import metric as M
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from support.backends import NAMES
from support.rows import every

from tools.micropython import Port

from . import drawn

DATA = drawn.data()
OTHERS = json.loads((Path(__file__).parent / "fixtures" / "torch_metrics.json").read_text(encoding="utf-8"))


def over(metric: Any, output: str, targets: str, backend: str = "numpy") -> Any:
    """`compute()` after the batches of DATA's columns of these names."""
    kind = metric.Input
    metric.clear()
    for start, stop in drawn.BATCHES:
        columns = [DATA[name][start:stop] for name in (output, targets)]
        tensors = [c if isinstance(c, list) else emberlet.asarray(c, backend=backend) for c in columns]
        entry = metric.update(kind(*tensors))
        assert isinstance(entry, M.MetricEntry)
        assert entry.name == metric.name
        assert entry.formatted in repr(entry)
    return metric.compute()


# name -> (a metric, its columns, what it is to give)
EXPECTED: dict[str, tuple[Callable[[], Any], str, str, Any]] = {
    "accuracy": (M.AccuracyMetric, "scores", "classes", 100 * OTHERS["accuracy"]),
    "top-3": (lambda: M.TopKAccuracyMetric(3), "scores", "classes", 100 * OTHERS["top-3"]),
    "confusion": (M.ConfusionMatrix, "scores", "classes", OTHERS["confusion"]),
    "hamming": (M.HammingScore, "chances", "labels", 100 * OTHERS["hamming"]),
    "perplexity": (M.PerplexityMetric, "logits", "tokens", OTHERS["perplexity"]),
    "perplexity padded": (lambda: M.PerplexityMetric(drawn.PAD), "logits", "tokens", OTHERS["perplexity padded"]),
    "cer": (M.CharErrorRate, "said", "written", 100 * OTHERS["cer"]),
    "wer": (M.WordErrorRate, "said", "written", 100 * OTHERS["wer"]),
    "mae": (M.MaeMetric, "guesses", "numbers", OTHERS["mae"]),
    "mse": (M.MseMetric, "guesses", "numbers", OTHERS["mse"]),
    "rmse": (M.RmseMetric, "guesses", "numbers", OTHERS["rmse"]),
    "r2": (M.R2Metric, "guesses", "numbers", OTHERS["r2"]),
    "psnr": (M.PsnrMetric, "noisy", "images", OTHERS["psnr"]),
    "ssim": (M.SsimMetric, "noisy", "images", OTHERS["ssim"]),
    "auroc": (M.AurocMetric, "chance", "truth", 100 * OTHERS["auroc"]),
    "auc-pr": (M.AucPrMetric, "chance", "truth", 100 * OTHERS["auc-pr"]),
    "binary precision": (lambda: M.PrecisionMetric("binary"), "chance", "truth", 100 * OTHERS["binary precision"]),
    "binary recall": (lambda: M.RecallMetric("binary"), "chance", "truth", 100 * OTHERS["binary recall"]),
}
for _average in ("macro", "micro"):
    EXPECTED.update({
        f"precision {_average}": (
            lambda a=_average: M.PrecisionMetric(average=a), "scores", "classes", 100 * OTHERS[f"precision {_average}"],
        ),
        f"recall {_average}": (
            lambda a=_average: M.RecallMetric(average=a), "scores", "classes", 100 * OTHERS[f"recall {_average}"],
        ),
        f"f2 {_average}": (
            lambda a=_average: M.FBetaScoreMetric(2.0, average=a), "scores", "classes", 100 * OTHERS[f"f2 {_average}"],
        ),
        f"labels precision {_average}": (
            lambda a=_average: M.PrecisionMetric("multilabel", a), "chances", "labels",
            100 * OTHERS[f"labels precision {_average}"],
        ),
        f"labels f1 {_average}": (
            lambda a=_average: M.FBetaScoreMetric(1.0, "multilabel", a), "chances", "labels",
            100 * OTHERS[f"labels f1 {_average}"],
        ),
    })  # fmt: skip


@pytest.mark.parametrize("backend", NAMES)
@every("name", EXPECTED)
def test_metric_over_batches_is_torchmetrics_of_all_rows(name: str, backend: str) -> None:
    make, output, targets, expected = EXPECTED[name]
    found = over(make(), output, targets, backend)
    assert np.allclose(found, expected, rtol=2e-5, atol=1e-6), (found, expected)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_f_scores_and_the_first_two_classes_are_scikit_learns(average: Any) -> None:
    truth, score = DATA["classes"], {"average": average, "zero_division": 0}
    expected = sk.fbeta_score(truth, DATA["scores"].argmax(1), beta=0.5, **score)
    assert over(M.FBetaScoreMetric(0.5, average=average), "scores", "classes") == pytest.approx(100 * expected)
    two = np.argsort(-DATA["scores"], axis=1)[:, :2]  # as labels; the last never occurs
    expected = sk.precision_score(np.eye(6)[truth], np.eye(6)[two].sum(1), labels=range(5), **score)
    assert over(M.PrecisionMetric(average=average, top_k=2), "scores", "classes") == pytest.approx(100 * expected)


def test_r2_of_two_columns_is_scikit_learns() -> None:
    metric = M.R2Metric()
    truth, guess = DATA["images"][:, 0, :, 0], DATA["noisy"][:, 0, :, 0]
    for start, stop in drawn.BATCHES:
        metric.update(M.RegressionInput(emberlet.asarray(guess[start:stop]), emberlet.asarray(truth[start:stop])))
    assert metric.value() == pytest.approx(sk.r2_score(truth, guess), rel=1e-5)


@pytest.mark.parametrize("backend", NAMES)
def test_bytes_and_narrow_floats_are_measured_as_wider_ones(backend: str) -> None:
    skimage = pytest.importorskip("skimage.metrics")
    guess, truth = np.random.default_rng(3).integers(0, 256, (2, 1, 1, 16, 16), np.uint8)
    pair = truth[0, 0], guess[0, 0]
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 255}
    for metric, expected in (
        (M.SsimMetric(data_range=255), skimage.structural_similarity(*pair, **options)),
        (M.PsnrMetric(data_range=255), skimage.peak_signal_noise_ratio(*pair, data_range=255)),
    ):
        metric.update(M.ImageInput(*[emberlet.asarray(x, backend=backend) for x in (guess, truth)]))
        assert metric.value() == pytest.approx(expected, rel=1e-4)
    for make, score in (
        (M.MaeMetric, sk.mean_absolute_error), (M.RmseMetric, sk.root_mean_squared_error), (M.R2Metric, sk.r2_score),
    ):  # fmt: skip
        for dtype, scale in (("uint8", 1), ("float16", 8)):  # whose differences wrap around, and squares overflow
            true, found = [x.reshape(-1).astype(dtype) * np.dtype(dtype).type(scale) for x in pair]
            metric = make()
            metric.update(M.RegressionInput(*[emberlet.asarray(x, backend=backend) for x in (found, true)]))
            expected = score(true.astype(np.float64), found.astype(np.float64))
            assert metric.value() == pytest.approx(expected, rel=1e-4), (make, dtype)


def test_perplexity_of_narrow_floats_does_not_overflow() -> None:
    scores = emberlet.asarray(np.tile(np.float16([0, 30]), (4000, 1)))
    metric = M.PerplexityMetric()
    metric.update(M.PerplexityInput(scores, emberlet.zeros((4000,), dtype="int64")))
    assert metric.value() == pytest.approx(math.exp(30), rel=1e-3)


def test_empty_batches_count_nothing() -> None:
    for name, (make, output, targets, expected) in EXPECTED.items():
        metric = make()
        columns = [DATA[column][:0] for column in (output, targets)]
        empty = metric.Input(*[c if isinstance(c, list) else emberlet.asarray(c) for c in columns])
        over(metric, output, targets)
        assert metric.update(empty).name == metric.name
        assert np.allclose(metric.compute(), expected, rtol=2e-5, atol=1e-6), name
    losses = M.LossMetric()
    losses.update(M.LossInput(emberlet.asarray([2.0])))
    losses.update(M.LossInput(emberlet.zeros((0,))))
    assert losses.value() == 2


@given(
    st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=40),
    st.lists(st.integers(0, 40), max_size=3),
)
def test_areas_are_scikit_learns_however_batches_are_cut(rows: list[tuple[int, bool]], cuts: list[int]) -> None:
    scores, truth = np.array([s for s, _ in rows], np.float32), np.array([t for _, t in rows])
    edges = sorted({0, len(rows), *[c % len(rows) for c in cuts]})
    metrics = (M.AurocMetric(), M.AucPrMetric())
    for start, stop in itertools.pairwise(edges):
        for m in metrics:
            m.update(M.RankingInput(emberlet.asarray(scores[start:stop]), emberlet.asarray(truth[start:stop])))
    if truth.all() or not truth.any():
        assert all(math.isnan(m.value()) for m in metrics)
    else:
        assert metrics[0].value() == pytest.approx(100 * sk.roc_auc_score(truth, scores))
        assert metrics[1].value() == pytest.approx(100 * sk.average_precision_score(truth, scores))


@given(st.text("abc ", max_size=9), st.text("abc ", max_size=9))
def test_edit_distance_is_a_metric(a: str, b: str) -> None:
    from emberlet.train.metric.texts import edit_distance

    distance = edit_distance(a, b)
    assert distance == edit_distance(b, a)
    assert abs(len(a) - len(b)) <= distance <= max(len(a), len(b))
    assert (distance == 0) == (a == b)
    assert edit_distance(a + "x", b + "x") == distance


def test_two_columns_of_scores_rank_as_their_difference() -> None:
    scores, truth = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]], np.float32), np.array([0, 1, 1])
    metric = M.AurocMetric()
    metric.update(M.RankingInput(emberlet.asarray(scores), emberlet.asarray(truth)))
    assert metric.value() == 100


def test_state_weighs_batches_with_their_sizes() -> None:
    state, format = M.NumericMetricState(), M.FormatOptions("Loss").precision(1).unit("%")
    assert math.isnan(state.value())
    assert state.update(float("nan"), 0, format).serialize == "nan,0"
    entry = state.update(10.0, 3, format)
    assert (entry.name, entry.formatted, entry.serialize) == ("Loss", "epoch 10.0 % - batch 10.0 %", "10.0,3")
    assert state.update(30.0, 1, format).formatted == "epoch 15.0 % - batch 30.0 %"
    state.reset()
    assert math.isnan(state.value())


class Output(M.Adaptor):
    def __init__(self, loss: Any, output: Any = None, targets: Any = None) -> None:
        self.loss = loss
        if output is not None:
            self.output, self.targets = output, targets


def test_outputs_of_a_step_are_adapted() -> None:
    scores, classes = emberlet.asarray(DATA["scores"][:5]), emberlet.asarray(DATA["classes"][:5])
    losses = M.LossMetric()
    losses.update(Output(emberlet.asarray(2.0), scores, classes))
    losses.update(Output(emberlet.asarray([8.0])))
    assert losses.value() == pytest.approx((5 * 2 + 8) / 6)
    accuracy = M.AccuracyMetric()
    accuracy.update(Output(emberlet.asarray(2.0), scores, classes))
    assert accuracy.value() == pytest.approx(M.accuracy(scores, classes))
    with pytest.raises(EmberletError, match="AccuracyInput"):
        accuracy.update(Output(emberlet.asarray(2.0)))
    with pytest.raises(EmberletError, match="LossInput"):
        losses.update(3)


def test_mean_loss_of_a_loss_for_each_item() -> None:
    losses = M.LossMetric()
    losses.update(M.LossInput(emberlet.asarray([1.0, 2.0, 6.0])))
    losses.update(M.LossInput(emberlet.asarray(5.0), 1))
    assert losses.value() == pytest.approx(3.5)


def test_padded_targets_do_not_count() -> None:
    scores, classes = emberlet.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), emberlet.asarray([0, 7, 0])
    padded = M.AccuracyMetric(pad_token=7)
    padded.update(M.AccuracyInput(scores, classes))
    assert padded.value() == 50
    top = M.TopKAccuracyMetric(1, pad_token=7)
    top.update(M.AccuracyInput(scores, classes))
    assert top.value() == 50
    tokens = M.CharErrorRate(pad_token=0)
    tokens.update(M.TextInput(emberlet.asarray([[1, 2, 0, 0]]), emberlet.asarray([[1, 3, 4]])))
    assert tokens.value() == pytest.approx(200 / 3)


def test_rate_and_speed_come_from_the_metadata() -> None:
    rate = M.LearningRateMetric()
    assert rate.update(None, M.MetricMetadata(lr=1e-3)).formatted == "1.00e-03"
    assert rate.value() == 1e-3
    times = iter([0.0, 0.5, 2.0])
    speed = M.IterationSpeedMetric(clock=lambda: next(times))

    class Progress:
        items_processed = 0

    for items in (32, 64, 80):
        Progress.items_processed = items
        entry = speed.update(None, M.MetricMetadata(progress=Progress))
    assert speed.value() == (80 - 32) / 2.0
    assert entry.formatted == "epoch 24.00 items/s - batch 10.67 items/s"


def test_metrics_say_what_does_not_fit() -> None:
    def column(*shape: int) -> Any:
        return emberlet.zeros(shape)

    three, two = emberlet.asarray([0, 1, 2]), emberlet.asarray([0, 1])
    wrong: list[tuple[Callable[[], Any], Any, str]] = [
        (M.AccuracyMetric, M.AccuracyInput(column(3, 4), two), r"\(3, 4\) and \(2,\)"),
        (M.AccuracyMetric, M.AccuracyInput(column(3), three), "scores"),
        (lambda: M.TopKAccuracyMetric(5), M.AccuracyInput(column(3, 4), three), "smaller k"),
        (M.PrecisionMetric, M.ConfusionInput(column(3, 2), three), "a target of 2 among 2 classes"),
        (lambda: M.PrecisionMetric(top_k=3), M.ConfusionInput(column(2, 2), two), "smaller top_k"),
        (M.ConfusionMatrix, M.AccuracyInput(column(3, 2), three - 1), "a target of -1"),
        (M.HammingScore, M.ConfusionInput(column(3, 2), column(3, 4)), "labels"),
        (M.AurocMetric, M.RankingInput(column(3, 3), three), "targets"),
        (M.MseMetric, M.RegressionInput(column(3, 1), column(3)), "reshape one"),
        (M.PerplexityMetric, M.PerplexityInput(column(3, 2, 5), column(3, 4)), "vocabulary"),
        (M.WordErrorRate, M.TextInput(["a"], ["a", "b"]), "1 texts for 2 true ones"),
        (M.SsimMetric, M.ImageInput(column(1, 1, 8, 8), column(1, 1, 8, 8)), "smaller window"),
        (M.PsnrMetric, M.ImageInput(column(3, 8), column(3, 8)), "images"),
    ]
    for make, item, message in wrong:
        with pytest.raises(EmberletError, match=message):
            make().update(item)
    for make in (
        lambda: M.PrecisionMetric("several"), lambda: M.RecallMetric(average="weighted"),
        lambda: M.TopKAccuracyMetric(0), lambda: M.FBetaScoreMetric(-1.0), lambda: M.SsimMetric(window=4),
        lambda: M.PsnrMetric(0),
    ):  # fmt: skip
        with pytest.raises(EmberletError, match="found"):
            make()


def test_epoch_begins_anew_after_clear() -> None:
    for name, (make, output, targets, _) in EXPECTED.items():
        metric = make()
        first = over(metric, output, targets)
        assert over(metric, output, targets) == first, name
        metric.clear()
        assert metric.compute() == [] or math.isnan(metric.compute()), name


def test_metrics_run_under_micropython(unix_port: Port) -> None:
    script = """
import emberlet
from emberlet.train.metric import (
    AccuracyInput, AccuracyMetric, AurocMetric, ConfusionInput, FBetaScoreMetric, LossInput, LossMetric, MseMetric,
    RankingInput, RegressionInput, TopKAccuracyMetric, accuracy
)
t = emberlet.asarray
scores, classes = t([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]), t([1, 1, 2])
for metric, item in (
    (AccuracyMetric(), AccuracyInput(scores, classes)),
    (TopKAccuracyMetric(2), AccuracyInput(scores, classes)),
    (FBetaScoreMetric(1.0), ConfusionInput(scores, classes)),
    (AurocMetric(), RankingInput(t([0.1, 0.9, 0.5]), t([0, 1, 0]))),
    (MseMetric(), RegressionInput(t([1.0, 2.0]), t([1.0, 4.0]))),
    (LossMetric(), LossInput(t(0.5), 3)),
):
    metric.update(item)
    print(metric.name, round(metric.value(), 3))
print(round(accuracy(scores, classes), 3))
"""
    assert unix_port.run(script, heap="1M").check().stdout.splitlines() == [
        "Accuracy 66.667", "Top-2 accuracy 100.0", "F1 score 55.556", "AUROC 100.0", "Mean squared error 2.0",
        "Loss 0.5", "66.667",
    ]  # fmt: skip
