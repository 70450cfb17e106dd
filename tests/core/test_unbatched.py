"""Layers take inputs without a batch where PyTorch's do, and give what a batch of one gives, as torch.nn documents."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import nn
from emberlet.errors import ShapeError

WINDOWS = {
    "Conv1d": (nn.Conv1d(2, 4, 3), (2, 9)),
    "Conv2d": (nn.Conv2d(2, 4, 3, padding="same", groups=2), (2, 6, 5)),
    "Conv3d": (nn.Conv3d(1, 2, 2), (1, 3, 4, 3)),
    "ConvTranspose2d": (nn.ConvTranspose2d(2, 3, 2, stride=2), (2, 4, 3)),
    "MaxPool1d": (nn.MaxPool1d(2), (3, 7)),
    "MaxPool2d": (nn.MaxPool2d(2, padding=1), (3, 5, 6)),
    "AvgPool3d": (nn.AvgPool3d(2), (1, 4, 4, 2)),
    "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d((None, 2)), (3, 5, 6)),
    "AdaptiveMaxPool1d": (nn.AdaptiveMaxPool1d(3), (2, 8)),
    "LPPool2d": (nn.LPPool2d(2, 2), (2, 4, 4)),
}
RECURRENT = {
    f"{kind.__name__}, {first}": kind(3, 4, batch_first=first)
    for kind in (nn.Rnn, nn.BiRnn, nn.Lstm, nn.BiLstm, nn.Gru, nn.BiGru)
    for first in (True, False)
}
rng = np.random.default_rng(0)


def drawn(*shape: int) -> Any:
    return emberlet.asarray(rng.random(shape, np.float32))


def fields(state: Any) -> list[Any]:
    names = [name for name in ("cell", "hidden") if hasattr(state, name)]
    return [np.asarray(getattr(state, name)) for name in names] or [np.asarray(state)]


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str) -> None:
    layer, shape = WINDOWS[name]
    x = drawn(*shape)
    wanted = np.asarray(layer(x.reshape((1, *shape))))[0]
    assert np.array_equal(np.asarray(layer(x)), wanted)
    np.testing.assert_allclose(np.asarray(layer.compile(x, backend="numpy")(x)), wanted, rtol=1e-5, atol=1e-6)
    for wrong in (shape[1:], (1, 1, *shape)):
        with pytest.raises(ShapeError, match=f"{name} needs"):
            layer(emberlet.zeros(wrong))


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers(name: str) -> None:
    layer = RECURRENT[name]
    x, axis = drawn(5, 3), 0 if layer.batch_first else 1
    y, state = layer(x)
    y = layer(x, state)[0]
    whole = layer(x.reshape((1, 5, 3) if axis == 0 else (5, 1, 3)))[1]
    wanted, last = layer(x.reshape((1, 5, 3) if axis == 0 else (5, 1, 3)), whole)
    assert np.array_equal(np.asarray(y), np.take(np.asarray(wanted), 0, axis))
    for got, want in zip(fields(state), fields(whole), strict=True):
        assert np.array_equal(got, np.take(want, 0, want.ndim - 2))
    assert fields(last)[0].ndim == fields(state)[0].ndim + 1
    with pytest.raises(ShapeError):
        layer(emberlet.zeros((5, 4)))


def test_attention() -> None:
    layer = nn.MultiHeadAttention(8, 2)
    q, k = drawn(3, 8), drawn(5, 8)
    pad = emberlet.asarray([False, False, True, False, True])
    found = layer(q, k, mask_pad=pad)
    wanted = layer(q.reshape((1, 3, 8)), k.reshape((1, 5, 8)), mask_pad=pad.reshape((1, 5)))
    assert np.array_equal(np.asarray(found.context), np.asarray(wanted.context)[0])
    assert np.array_equal(np.asarray(found.weights), np.asarray(wanted.weights)[0])
    with pytest.raises(ShapeError, match="all without"):
        layer(q, k.reshape((1, 5, 8)))


def test_samples_without_a_batch_choose_the_same_weights() -> None:
    images = [drawn(2, 6, 5) for _ in range(3)]
    first = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Conv2d(4, 3, 2))
    first(images[0])  # initializes the weights, of the clone, too
    second = first.clone()
    first.quantize_weights(4, method="gptq", samples=images)
    second.quantize_weights(4, method="gptq", samples=[x.reshape((1, 2, 6, 5)) for x in images])
    assert np.array_equal(np.asarray(first(images[0])), np.asarray(second(images[0])))
