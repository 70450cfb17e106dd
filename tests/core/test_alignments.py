"""CTC and transducer losses against the sum over every alignment, one by one, and their gradients."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import ArgumentError, IndexingError, ShapeError
from support.every_backend import ALL, WGPU

BACKENDS = ["python", "loops", "numpy", WGPU]
LOGITS = np.random.RandomState(5).randn(3, 4, 3, 4).astype(np.float32)


def log_softmax(x: Any) -> Any:
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def ctc(logs: Any, labels: list[int], blank: int) -> float:
    """-log of the sum over every path (time,) that gives `labels`."""
    total = 0.0
    for path in product(range(logs.shape[1]), repeat=len(logs)):
        merged = [k for i, k in enumerate(path) if i == 0 or path[i - 1] != k]
        if [k for k in merged if k != blank] == labels:
            total += float(np.exp(sum(logs[t, k] for t, k in enumerate(path))))
    return -float(np.log(total)) if total else float("inf")


def transducer(logs: Any, labels: list[int], blank: int) -> float:
    """-log of the sum over every order of labels and steps of time, of which the last is a blank."""
    steps, total = len(logs), 0.0
    for places in combinations(range(steps - 1 + len(labels)), len(labels)):
        t = u = 0
        said = 0.0
        for i in range(steps - 1 + len(labels)):
            if i in places:
                said, u = said + logs[t, u, labels[u]], u + 1
            else:
                said, t = said + logs[t, u, blank], t + 1
        total += float(np.exp(said + logs[t, u, blank]))
    return -float(np.log(total))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("blank", [0, 3])
def test_ctc_sums_over_every_alignment(backend: str, blank: int) -> None:
    logs = log_softmax(LOGITS[:, :, 0]).transpose(1, 0, 2)
    rows, steps = [[1, 2], [2, 2], [1]], [4, 3, 2]
    targets = np.array([[*row, -1][:2] for row in rows])
    expected = [ctc(logs[:n, i], row, blank) for i, (row, n) in enumerate(zip(rows, steps, strict=True))]
    x = emberlet.asarray(np.ascontiguousarray(logs), backend=backend)
    found = F.ctc_loss(x, emberlet.asarray(targets, backend=backend), steps, [2, 2, 1], blank, reduction="none")
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
    lengths = [emberlet.asarray(v, backend=backend) for v in (steps, [2, 2, 1])]
    again = F.ctc_loss(x, emberlet.asarray(targets, backend=backend), *lengths, blank, reduction="sum")
    np.testing.assert_allclose(again.item(), sum(expected), rtol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("blank", [0, -1])
def test_a_transducer_sums_over_every_alignment(backend: str, blank: int) -> None:
    rows, steps = [[1, 2], [2, 2], [1]], [4, 1, 3]
    logs = log_softmax(LOGITS)
    expected = [transducer(logs[i, :n], row, blank % 4) for i, (row, n) in enumerate(zip(rows, steps, strict=True))]
    targets = emberlet.asarray(np.array([[*row, -1][:2] for row in rows]), backend=backend)
    x = emberlet.asarray(LOGITS, backend=backend)
    found = F.rnnt_loss(x, targets, steps, [2, 2, 1], blank, reduction="none")
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
    given = emberlet.asarray(logs.astype(np.float32), backend=backend)
    mean = nn.RNNTLoss(blank, fused_log_softmax=False)(given, targets, steps, [2, 2, 1])
    np.testing.assert_allclose(mean.item(), np.mean(expected), rtol=1e-5)


@pytest.mark.parametrize("name", ["ctc", "rnnt"])
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    targets = emberlet.asarray([[1, 2], [2, 2], [1, 0]])

    def loss(x: Any) -> Any:
        if name == "rnnt":
            return F.rnnt_loss(x, targets.to(x.backend), [4, 2, 3], [2, 2, 1])
        logs = F.log_softmax(x[:, :, 0], 2).permute(1, 0, 2)
        return F.ctc_loss(logs, targets.to(x.backend), [4, 3, 2], [2, 2, 1])

    x = emberlet.asarray(LOGITS.astype(np.float64)).to("autodiff:numpy").require_grad()
    found = np.asarray(x.grad(loss(x).backward()))
    r = np.random.RandomState(1)
    for _ in range(3):
        way = r.randn(*LOGITS.shape)
        high, low = [loss(emberlet.asarray(LOGITS + s * way, dtype="float64")).item() for s in (1e-5, -1e-5)]
        np.testing.assert_allclose((found * way).sum(), (high - low) / 2e-5, rtol=1e-5)


def compile_for(backend: str) -> Any:
    if backend == "numpy":
        from emberlet.host.numpy_backend.compile import compile
    else:
        from emberlet.wgpu_backend.compiled import compile  # type: ignore[assignment]
    return compile


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("name", ["ctc", "rnnt"])
def test_a_target_that_is_no_class_is_refused(name: str, backend: str) -> None:
    x, axis = emberlet.asarray(LOGITS), 3

    def loss(x: Any, targets: Any) -> Any:
        return F.rnnt_loss(x, targets, [4, 2, 3], [2, 2, 1])

    if name == "ctc":
        x, axis = F.log_softmax(x[:, :, 0], 2).permute(1, 0, 2), 2

        def loss(x: Any, targets: Any) -> Any:
            return F.ctc_loss(x, targets, [4, 2, 3], [2, 2, 1])

    def on(targets: list[list[int]]) -> Any:
        return x.to(backend), emberlet.asarray(targets, backend=backend)

    right = [[1, 2], [1, 2], [1, 2]]
    for run in [loss] if backend == "python" else [loss, compile_for(backend)(loss, *on(right), backend=backend)]:
        assert run(*on([[1, 2], [1, 2], [1, 1000]])).item() == run(*on(right)).item()
        for wrong in (4, -1000):
            with pytest.raises(IndexingError, match=f"index {wrong} is outside axis {axis} of length 4"):
                run(*on([[1, 2], [1, wrong], [1, 2]]))


def test_what_does_not_fit_is_refused() -> None:
    x, targets = emberlet.zeros((4, 2, 3)), emberlet.asarray([[1, 2], [1, 2]])
    with pytest.raises(ShapeError, match="do not fit"):
        F.ctc_loss(x, targets[:1], [4, 4], [2, 2])
    with pytest.raises(ArgumentError, match="input_lengths are 0 to 4"):
        F.ctc_loss(x, targets, [5, 4], [2, 2])
    with pytest.raises(ArgumentError, match="blank is 3"):
        F.ctc_loss(x, targets, [4, 4], [2, 2], blank=3)
    with pytest.raises(ArgumentError, match="reduction"):
        F.ctc_loss(x, targets, [4, 4], [2, 2], reduction="batch")
    with pytest.raises(ShapeError, match="need 2"):
        F.ctc_loss(x, targets, [4], [2, 2])
    with pytest.raises(ShapeError, match="do not fit"):
        F.rnnt_loss(x, targets, [4, 4], [2, 2])
