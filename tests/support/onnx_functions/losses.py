"""Losses and determinants."""

from __future__ import annotations

from typing import Any

from emberlet import functional as F

from .call import Call, handles


@handles("Det")
def det(c: Call) -> Any:
    return F.det(c.tensor(0))


@handles("NegativeLogLikelihoodLoss")
def nll_loss(c: Call) -> Any:
    return F.nll_loss(*(c.tensor(i) for i in range(3)), c.get("ignore_index"), c.get("reduction", "mean"))


@handles("SoftmaxCrossEntropyLoss")
def cross_entropy(c: Call) -> Any:
    x = c.tensor(0)
    loss = F.cross_entropy(x, c.tensor(1), c.tensor(2), c.get("ignore_index"), c.get("reduction", "mean"))
    return [loss, F.log_softmax(x, 1)]
