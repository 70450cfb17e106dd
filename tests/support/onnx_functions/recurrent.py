"""Recurrent layers."""

from __future__ import annotations

from typing import Any

from emberlet import functional as F

from .call import Call, handles


def _options(c: Call) -> dict[str, Any]:
    options = {
        "direction": c.get("direction", "forward"),
        "clip": c.get("clip", 0.0),
        "batch_first": bool(c.get("layout", 0)),
        "sequence_lens": c.tensor(4),
        "initial_h": c.tensor(5),
    }
    if c.get("activations"):
        options["activations"] = c.get("activations")
        options["alphas"], options["betas"] = c.get("activation_alpha", ()), c.get("activation_beta", ())
    return options


@handles("RNN")
def rnn(c: Call) -> Any:
    return F.rnn(*(c.tensor(i) for i in range(4)), **_options(c))


@handles("GRU")
def gru(c: Call) -> Any:
    return F.gru(*(c.tensor(i) for i in range(4)), **_options(c), linear_before_reset=c.get("linear_before_reset", 0))


@handles("LSTM")
def lstm(c: Call) -> Any:
    return F.lstm(
        *(c.tensor(i) for i in range(4)),
        **_options(c),
        initial_c=c.tensor(6),
        peepholes=c.tensor(7),
        input_forget=c.get("input_forget", 0),
    )
