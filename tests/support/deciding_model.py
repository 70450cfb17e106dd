"""A model that chooses its weights, its next state and the shape of a result by the values of its inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

DECIDES = """
    detector (float[batch, samples] x, float[2, batch, 4] state, int64 sr, float[1] gain, bool loud, int64[rank] shape)
    => (float[batch, n] y, float[2, batch, 4] stateN, float[?, ?] z)
    <int64 sixteen = {16000}, float[4, 3] slow = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, int64[1] first = {0},
     float[4, 5] fast = {1, 0, 2, 1, 3, 1, 1, 2, 0, 1, 3, 2, 1, 1, 0, 2, 0, 1, 2, 1}>
    {
        is_fast = Equal(sr, sixteen)
        next = If(is_fast) <
            then_branch = a () => (float[2, batch, 4] s) { s = Add(state, state) },
            else_branch = b () => (float[2, batch, 4] s) { s = Neg(state) }
        >
        weight = If(is_fast) <
            then_branch = c () => (float[4, n] w) { w = Identity(fast) },
            else_branch = d () => (float[4, n] w) { w = Identity(slow) }
        >
        stateN = Identity(next)
        first_state = Gather <axis = 0> (state, first)
        one = Squeeze(first_state, first)
        product = MatMul(one, weight)
        louder = Mul(product, gain)
        y = If(loud) <
            then_branch = e () => (float[batch, n] o) { o = Identity(louder) },
            else_branch = f () => (float[batch, n] o) { o = Identity(product) }
        >
        z = Reshape(x, shape)
    }
"""


def arrays(batch: int, samples: int) -> dict[str, Any]:
    random = np.random.default_rng(batch * 31 + samples)
    return {
        "x": random.standard_normal((batch, samples)).astype(np.float32),
        "state": random.standard_normal((2, batch, 4)).astype(np.float32),
    }
