"""Layers of several parts give PyTorch's results (arrays made by tests/core/fixtures/torch_layers.py), and those whose
weights are laid out otherwise. Of all others: test_module_rows.py has one each, test_layers.py says which function a
layer is, and test_torch_configurations.py compares the functions with PyTorch."""

import emberlet as el
import numpy as np
import pytest
from emberlet import nn

from . import module_rows
from .module_rows import GRU, LSTM, attention, bigru, bilstm, fixture, recurrent


class Case:
    """A case of the fixture on one backend: inputs and outputs in order, state by name."""

    def __init__(self, name, backend):
        self.backend = backend
        self.inputs = self._list(f"{name}/inputs/")
        self.outputs = [v for k, v in fixture().items() if k.startswith(f"{name}/outputs/")]
        prefix = f"{name}/state/"
        self.state = {k.removeprefix(prefix): v for k, v in fixture().items() if k.startswith(prefix)}

    def _list(self, prefix):
        return [self.tensor(v) for k, v in fixture().items() if k.startswith(prefix)]

    def tensor(self, array):
        return el.asarray(np.ascontiguousarray(array), backend=self.backend)

    def load(self, module, state=None):
        state = self.state if state is None else state
        module.load_record({k: self.tensor(v) for k, v in state.items() if k != "num_batches_tracked"}, layout="burn")
        return module.to(self.backend)

    def check(self, *outputs, tolerance=2e-5):
        assert len(outputs) == len(self.outputs)
        for got, wanted in zip(outputs, self.outputs, strict=True):
            assert got.shape == wanted.shape
            np.testing.assert_allclose(np.asarray(got.tolist(), wanted.dtype), wanted, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=["numpy", "python"])
def case(request):
    return lambda name: Case(name, request.param)


@pytest.mark.parametrize("name", ["linear", "linear_no_bias"])
def test_linear_holds_the_transpose_of_pytorchs_weight(case, name):
    case = case(name)
    state = {k: v.T if k == "weight" else v for k, v in case.state.items()}
    case.check(case.load(nn.Linear(5, 3, bias=name == "linear"), state)(*case.inputs))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cross_entropy_weights", {}),
        ("cross_entropy_smoothing", {"smoothing": 0.1}),
        ("cross_entropy_pad", {"pad_tokens": [0]}),
    ],
)
def test_cross_entropy_with_options(case, name, options):
    case = case(name)
    case.check(nn.CrossEntropyLoss(weights=case.state["weight"].tolist(), **options)(*case.inputs))


def test_cross_entropy_of_probabilities(case):
    case = case("cross_entropy")
    logits, targets = case.inputs
    case.check(nn.CrossEntropyLoss(logits=False)(logits.softmax(1), targets))


def test_binary_cross_entropy_of_logits_far_from_zero(case):
    case = case("binary_cross_entropy_logits")
    case.check(nn.BinaryCrossEntropyLoss(logits=True)(*case.inputs))


@pytest.mark.parametrize("name", ["lstm", "lstm_time_first", "lstm_no_bias"])
def test_lstm(case, name):
    case = case(name)
    layer = nn.Lstm(4, 3, bias=name != "lstm_no_bias", batch_first=name != "lstm_time_first")
    y, state = case.load(layer, recurrent(case.state, LSTM))(*case.inputs)
    case.check(y, state.hidden.expand_dims(axis=0), state.cell.expand_dims(axis=0))


def test_lstm_with_a_state(case):
    case = case("lstm_state")
    layer = case.load(nn.Lstm(4, 3), recurrent(case.state, LSTM))
    x, hidden, cell = case.inputs
    y, state = layer(x, nn.LstmState(cell.squeeze(0), hidden.squeeze(0)))
    case.check(y, state.hidden.expand_dims(axis=0), state.cell.expand_dims(axis=0))


def test_bilstm_and_its_halves(case):
    case = case("bilstm")
    layer = case.load(nn.BiLstm(4, 3), bilstm(case.state))
    y, state = layer(*case.inputs)
    case.check(y, state.hidden, state.cell)
    ahead, _ = layer.forward_layer(*case.inputs)
    back, last = layer.reverse_layer(*case.inputs)
    case.check(el.concat([ahead, back], axis=2), state.hidden, state.cell)
    np.testing.assert_allclose(last.hidden.tolist(), case.outputs[1][1], rtol=1e-5, atol=1e-5)


def test_gru(case):
    case = case("gru")
    y, state = case.load(nn.Gru(4, 3), recurrent(case.state, GRU))(*case.inputs)
    case.check(y, state.expand_dims(axis=0))


def test_bigru(case):
    case = case("bigru")
    case.check(*case.load(nn.BiGru(4, 3), bigru(case.state))(*case.inputs))


def test_attention_with_masks_and_weights(case):
    case = case("attention")
    layer = case.load(nn.MultiHeadAttention(6, 2), attention(case.state))
    q, k, v, pad, hidden = case.inputs
    out = layer(q, k, v, mask_pad=pad, mask_attn=hidden)
    case.check(out.context, out.weights)
    fused = layer(q, k, v, mask_pad=pad, mask_attn=hidden, need_weights=False)
    assert fused.weights is None
    case.check(fused.context, out.weights)


def encoder(case, norm_first):
    return case.load(nn.TransformerEncoder(6, 8, 2, 2, norm_first=norm_first), module_rows.encoder(case.state))


def decoder(case, norm_first):
    return case.load(nn.TransformerDecoder(6, 8, 2, 2, norm_first=norm_first), module_rows.decoder(case.state))


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_encoder(case, norm_first):
    case = case("encoder_norm_first" if norm_first else "encoder")
    x, pad = case.inputs
    case.check(encoder(case, norm_first)(x, pad), tolerance=1e-4)


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_decoder(case, norm_first):
    case = case("decoder_norm_first" if norm_first else "decoder")
    target, memory, causal, pad = case.inputs
    layer = decoder(case, norm_first)
    case.check(layer(target, memory, mask_attn=causal, memory_mask_pad=pad), tolerance=1e-4)


def test_a_decoder_with_a_cache_gives_the_same_step_by_step(case):
    case = case("decoder")
    target, memory, _, pad = case.inputs
    layer = decoder(case, False)
    cache = layer.new_cache()
    steps = [
        layer(target.narrow(1, 0, 2), memory, memory_mask_pad=pad, cache=cache),
        layer(target.narrow(1, 2, 1), memory, memory_mask_pad=pad, cache=cache),
    ]
    case.check(el.concat(steps, axis=1), tolerance=1e-4)
    assert len(cache[0][0]) == 3


def test_an_encoder_with_a_cache_is_causal_and_the_same_step_by_step(case):
    case = case("encoder")
    x, _ = case.inputs
    layer = encoder(case, False)
    whole = layer(x, mask_attn=nn.causal_mask(4, 4, x.backend))
    cache = layer.new_cache()
    steps = [layer(x.narrow(1, t, 1), cache=cache) for t in range(4)]
    np.testing.assert_allclose(el.concat(steps, axis=1).tolist(), whole.tolist(), rtol=1e-4, atol=1e-5)
