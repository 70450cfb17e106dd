"""Layers, records and sequences at the ends of what they take: just inside is computed, just outside is refused."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import EmberletError, ShapeError
from emberlet.module.layouts import adapter
from emberlet.module.record import Record
from emberlet.nn.attention import causal_mask, pad_mask
from emberlet.param import Param
from support.rows import every


def Z(*shape: int) -> Any:
    return F.zeros(shape)


# A call -> words of the ShapeError, or the shape of the result.
CALLS: dict[str, Any] = {
    "nn.Conv2d(4, 6, 1, groups=2)(Z(1, 4, 2, 2))": (1, 6, 2, 2),
    "nn.Conv2d(4, 5, 1, groups=2)": "4 input and 5 output channels do not divide into 2 groups",
    "nn.Conv2d(3, 6, 1, groups=2)": "3 input and 6 output channels do not divide into 2 groups",
    "nn.Conv2d(3, 4, 1)(Z(3, 2, 2))": (4, 2, 2),
    "nn.Conv2d(3, 4, 1)(Z(2, 2))": "needs (n, channels) and 2 spatial axes",
    "nn.Conv2d(3, 4, 1)(Z(1, 3, 2, 2, 2))": "needs (n, channels) and 2 spatial axes",
    "nn.Conv2d(3, 4, (3, 3, 3))": "kernel_size has 3 entries for 2 spatial axes",
    "nn.Conv1d(3, 4, 3)(Z(1, 2, 8))": "has 2 channels",
    "nn.MaxPool1d(2)(Z(1, 3, 8, 8))": "MaxPool1d needs (n, channels) and 1 spatial axes",
    "nn.Linear(3, 4)(Z(2, 5))": "input (2, 5) does not fit weight (3, 4)",
    "nn.Interpolate2d()": "needs output_size or scale_factor",
    "nn.Interpolate1d(3)(Z(1, 1, 4, 4))": "Interpolate1d needs",
    "nn.GroupNorm(2, 4)(Z(1, 4, 3))": (1, 4, 3),
    "nn.GroupNorm(3, 4)": "4 channels do not divide into 3 groups",
    "nn.LayerNorm((2, 3))(Z(5, 2, 3))": (5, 2, 3),
    "nn.LayerNorm((2, 3))(Z(2, 3))": (2, 3),
    "nn.LayerNorm((2, 3))(Z(3, 2, 2))": "LayerNorm over (2, 3) does not fit shape (3, 2, 2)",
    "nn.LayerNorm((2, 3))(Z(3))": "LayerNorm over (2, 3) does not fit shape (3,)",
    "nn.MultiHeadAttention(6, 3)(Z(1, 2, 6)).context": (1, 2, 6),
    "nn.MultiHeadAttention(6, 4)": "4 heads do not divide d_model 6",
    "nn.PositionalEncoding(4, 5)(Z(1, 5, 4))": (1, 5, 4),
    "nn.PositionalEncoding(4, 5)(Z(1, 6, 4))": "at most 5 steps",
    "nn.PositionalEncoding(4, 5)(Z(1, 5, 2))": "does not fit shape (1, 5, 2)",
    "nn.RotaryEncoding(5, 4)(Z(1, 5, 4))": (1, 5, 4),
    "nn.RotaryEncoding(5, 4)(Z(1, 3, 4), start=2)": (1, 3, 4),
    "nn.RotaryEncoding(5, 4)(Z(3, 4))": (3, 4),
    "nn.RotaryEncoding(5, 4)(Z(0, 3, 4))": (0, 3, 4),
    "nn.RotaryEncoding(5, 4)(Z(1, 3, 4), start=3)": "from step 3",
    "nn.RotaryEncoding(5, 4)(Z(1, 6, 4))": "at most 5 steps",
    "nn.RotaryEncoding(5, 4)(Z(1, 5, 2))": "does not fit shape (1, 5, 2)",
    "nn.RotaryEncoding(5, 3)": "expected an even number",
    "nn.Gru(4, 3)(Z(2, 5, 4))[0]": (2, 5, 3),
    "nn.Gru(4, 3, batch_first=False)(Z(5, 2, 4))[0]": (5, 2, 3),
    "nn.BiGru(4, 3)(Z(2, 5, 4))[0]": (2, 5, 6),
    "nn.BiGru(4, 3, batch_first=False)(Z(5, 2, 4))[0]": (5, 2, 6),
    "nn.Gru(4, 3)(Z(2, 5, 3))": "Gru needs (batch, seq, 4), found shape (2, 5, 3)",
    "nn.Gru(4, 3)(Z(5, 4))[0]": (5, 3),
    "nn.Gru(4, 3)(Z(5, 3))": "Gru needs (batch, seq, 4), found shape (5, 3)",
    "nn.Gru(4, 3)(Z(1, 2, 5, 4))": "found shape (1, 2, 5, 4)",
    "nn.HuberLoss()(Z(2), Z(3))": "differ in shape",
    "nn.BinaryCrossEntropyLoss()(Z(2), Z(2, 1))": "differ in shape",
    "nn.CrossEntropyLoss()(Z(2, 3), F.asarray([0, 1, 2]))": "needs (n, classes) and (n,)",
    "nn.CrossEntropyLoss()(Z(2), F.asarray([0, 1]))": "needs (n, classes) and (n,)",
    "nn.CrossEntropyLoss(weights=[1.0, 2.0])(Z(2, 3), F.asarray([0, 1]))": "2 weights for 3 classes",
    "nn.CrossEntropyLoss(weights=[1.0] * 3)(Z(2, 3), F.asarray([0, 2]))": (),
    "nn.CrossEntropyLoss()(Z(2, 3), F.asarray([0, 1]), 'none')": (2,),
    "nn.Interpolate1d(3, 2.0)": "and not both",
    "nn.Interpolate1d((3,))(Z(1, 1, 5))": (1, 1, 3),
    "nn.Orthogonal()((3,))": "at least two axes",
    "nn.Orthogonal()((2, 3))": (2, 3),
    "nn.Orthogonal()((3, 2, 1))": (3, 2, 1),
    "nn.Orthogonal()((0, 3))": (0, 3),
    "F.squeeze(Z(2, 1, 1))": (2,),
    "F.squeeze(Z(2, 1, 1), (1,))": (2, 1),
    "F.squeeze(Z(2, 1, 1), (0, 1))": "only 1 can be squeezed",
    "F.narrow(Z(5), 0, 2, 3)": (3,),
    "F.narrow(Z(5), 0, -2, 2)": (2,),
    "F.narrow(Z(5), 0, 5, 0)": (0,),
    "F.narrow(Z(5), 0, -5, 5)": (5,),
    "F.narrow(Z(5), 0, 3, 3)": "3 elements from 3 do not lie",
    "F.narrow(Z(5), 0, 2, -1)": "-1 elements from 2 do not lie",
    "F.narrow(Z(5), 0, -6, 1)": "do not lie",
    "F.split(Z(5), 2)[1]": (2,),
    "F.split(Z(5), 5)[4]": (1,),
    "F.split(Z(5), 7)[6]": (0,),
    "F.split(Z(5), (2, 3))[1]": (3,),
    "F.split(Z(5), (2, 2))": "do not add up",
    "F.split(Z(5), 65541)[-1]": (0,),
    "F.split(Z(5), 65542)": "most would be empty",
    "F.chunk(Z(5), 1)[0]": (5,),
    "F.chunk(Z(0), 3)[0]": (0,),
    "F.chunk(Z(5), 0)": "at least 1",
    "F.split_to_sequence(Z(5), 2)[2]": (1,),
    "F.split_to_sequence(Z(5, 2), keepdims=False)[4]": (2,),
    "F.split_to_sequence(Z(5, 2))[4]": (1, 2),
    "F.split_to_sequence(Z(5, 2), 1, keepdims=False)[4]": (1, 2),
    "F.split_to_sequence(Z(5), F.asarray([2, 3]))[1]": (3,),
    "F.split_to_sequence(Z(5), F.asarray([2, 2]))": "does not add up",
    "F.split_to_sequence(Z(5), 0)": "split must be positive",
    "F.reshape_keeping(Z(2, 3), (0, -1))": (2, 3),
    "F.reshape_keeping(Z(2, 3), (3, 2))": (3, 2),
    "F.reshape_keeping(Z(2, 3), (6, 1, 0))": "keeps axis 2",
    "F.slice_axes(Z(5, 4), (1,), (3,))": (2, 4),
    "F.slice_axes(Z(5, 4), (1, 0), (3, 2), (1, 0))": (2, 2),
    "F.slice_axes(Z(5, 4), (4,), (0,), (0,), (-2,))": (2, 4),
    "F.slice_axes(Z(5, 4), (1,), (3, 4))": "got 2 values for 1 axes",
    "F.pad_axes(Z(2, 3), (1, 2), (-1,))": (2, 6),
    "F.pad_axes(Z(2, 3), (1, 0, 2, 1))": (5, 4),
    "F.stack([Z(2), Z(2)], -1)": (2, 2),
    "F.unstack(Z(3, 2), 1)[1]": (3,),
    "F.roll(Z(2, 3), (1, 2), 1)": (2, 3),
    "F.roll(Z(2, 3), 1, (0, 1))": (2, 3),
    "F.roll(Z(0, 3), 1, 0)": (0, 3),
    "F.roll(Z(0, 3), 1)": (0, 3),
    "F.roll(F.asarray(1.0), 1)": (),
    "F.expand(Z(1, 3), 2, -1)": (2, 3),
    "F.expand(Z(3), (2, -1))": (2, 3),
    "F.flip(Z(2, 0), 0)": (2, 0),
    "F.flip(Z(2, 3), ())": (2, 3),
    "F.permute(Z(2, 3), (1, 0))": (3, 2),
    "F.permute(Z(2), 0)": (2,),
    "F.transpose(Z(2, 3, 4))": (2, 4, 3),
    "F.transpose(Z(2, 3, 4), 2, 0, 1)": (4, 2, 3),
    "F.transpose(Z(2, 3, 4), (2, 0, 1))": (4, 2, 3),
    "F.expand_dims(Z(2, 3), (0, 3))": (1, 2, 3, 1),
    "F.expand_dims(Z(2, 3), -1)": (2, 3, 1),
    "F.expand_dims(Z(2, 3), 4)": "axis",
    "F.tensor_scatter(Z(2, 5, 3), Z(2, 2, 3), axis=-2)": (2, 5, 3),
    "F.tensor_scatter(Z(2, 5, 3), Z(2, 5, 1), axis=2)": (2, 5, 3),
    "F.tensor_scatter(Z(2, 5, 3), Z(2, 5, 3), axis=3)": "cannot be written",
}


@every("call", CALLS)
def test_shapes_at_the_limit(call):
    expected = CALLS[call]
    if isinstance(expected, tuple):
        assert eval(call).shape == expected
        return
    with pytest.raises(ShapeError) as raised:
        eval(call)
    assert expected in str(raised.value)


@pytest.mark.parametrize(("prob", "fits"), [(0, True), (1, True), (-0.01, False), (1.01, False), (float("nan"), False)])
def test_a_probability_lies_in_0_to_1(prob, fits):
    if fits:
        assert nn.Dropout(prob).prob == prob
    else:
        with pytest.raises(EmberletError, match="expected a probability"):
            nn.Dropout(prob)


def test_noise_has_a_deviation_of_at_least_0():
    assert nn.GaussianNoise(0).std == 0
    for std in (-0.01, float("nan")):
        with pytest.raises(EmberletError, match="at least 0"):
            nn.GaussianNoise(std)


def test_masks_hide_later_and_padded_steps():
    for queries in (1, 2, 4):
        expected = ~np.tril(np.ones((queries, 4), bool), 4 - queries)
        assert causal_mask(queries, 4, "python").tolist() == expected.tolist()
        assert causal_mask(queries, 4, "python").device == "python"
    assert pad_mask(F.asarray([0, 1, 3]), 3).tolist() == [[True] * 3, [False, True, True], [False] * 3]


def test_attention_adds_its_masks():
    layer = nn.MultiHeadAttention(4, 2)
    x = F.uniform((2, 3, 4), seed=1)
    pad = pad_mask(F.asarray([2, 3]), 3)
    causal = causal_mask(3, 3)
    one = F.asarray(np.array([[[0, 1, 0]] * 3, [[0, 0, 1]] * 3], bool))
    for masks, hidden in (
        ({"mask_pad": pad}, np.broadcast_to(np.asarray(pad)[:, None], (2, 3, 3))),
        ({"mask_attn": causal}, np.broadcast_to(np.asarray(causal), (2, 3, 3))),
        ({"mask_attn": one}, np.asarray(one)),
        ({"mask_pad": pad, "mask_attn": causal}, np.asarray(pad)[:, None] | np.asarray(causal)),
        ({"mask_pad": pad, "mask_attn": one}, np.asarray(pad)[:, None] | np.asarray(one)),
    ):
        found = layer(x, **masks)
        for head in (0, 1):
            assert ((np.asarray(found.weights)[:, head] < 1e-6) == hidden).all()
        blind = layer(x, **masks, need_weights=False)
        assert blind.weights is None
        np.testing.assert_allclose(np.asarray(blind.context), np.asarray(found.context), rtol=1e-5, atol=1e-6)


def test_a_constant_memory_is_projected_once():
    layer = nn.MultiHeadAttention(4, 2)
    x, memory, other = (F.uniform((1, n, 4), seed=n) for n in (2, 3, 5))
    kept = nn.AttentionCache(grow=False)
    first = layer(x, memory, cache=kept)
    assert len(kept) == 3
    again = layer(x, other, cache=kept)
    assert len(kept) == 3
    assert again.context.tolist() == first.context.tolist()
    growing = nn.AttentionCache()
    assert len(growing) == 0
    layer(x, cache=growing)
    found = layer(x, cache=growing)
    assert len(growing) == 4 and found.weights.shape == (1, 2, 2, 4)


# -- modules ----------------------------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "left right")


def test_the_layout_of_dense_weights_is_declared_given_or_told_by_the_shape():
    net = nn.Linear(2, 3)
    burn = {"weight": F.reshape(F.arange(6.0), (2, 3)), "bias": F.zeros((3,))}
    turned = {"weight": burn["weight"].mT, "bias": burn["bias"]}
    for record, layout in ((burn, None), (burn, "burn"), (turned, "pytorch"), (Record(burn, {}), None)):
        net.load_record(record, layout=layout)
        assert net.weight.val().tolist() == burn["weight"].tolist()
    for record, layout in ((turned, None), (turned, "burn")):
        with pytest.raises(emberlet.errors.LoadError, match="layout='pytorch' transposes"):
            net.load_record(record, layout=layout)
    with pytest.raises(emberlet.errors.LoadError, match="'rows'"):
        net.load_record(burn, layout="rows")
    square = nn.Linear(2, 2)
    values = {"weight": F.asarray([[1.0, 2.0], [3.0, 4.0]]), "bias": F.zeros((2,))}
    with pytest.raises(emberlet.errors.LoadError, match="is square"):
        square.load_record(values)
    square.load_record(Record(values, {}))
    assert square.weight.val().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    square.load_record(values, layout="pytorch")
    assert square.weight.val().tolist() == [[1.0, 3.0], [2.0, 4.0]]
    square.load_record(values, layout="burn")
    assert square.weight.val().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    square.load_record({"bias": F.ones((2,))}, strict=False)  # no dense weight, no question
    assert square.bias.val().tolist() == [1.0, 1.0]
    assert adapter(square, values, "burn", Param)("weight", values["weight"]) is not values["weight"]
