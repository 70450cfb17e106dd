"""The built-in layers give PyTorch's results (arrays made by tests/core/fixtures/torch_layers.py)."""

import emberlet as el
import numpy as np
import pytest
from emberlet import nn
from support.rows import every

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


LAYERS = {
    "conv1d": lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2),
    "conv2d": lambda: nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    "conv2d_depthwise": lambda: nn.Conv2d(4, 8, 3, padding="same", groups=4, bias=False),
    "conv3d": lambda: nn.Conv3d(2, 3, 2, stride=(1, 2, 1)),
    "conv_transpose1d": lambda: nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
    "conv_transpose2d": lambda: nn.ConvTranspose2d(3, 4, (3, 2), stride=2, padding=(1, 0), dilation=(2, 1)),
    "conv_transpose3d": lambda: nn.ConvTranspose3d(2, 3, 2, stride=(1, 2, 2), output_padding=(0, 1, 0)),
    "batch_norm": lambda: nn.BatchNorm2d(3),
    "layer_norm": lambda: nn.LayerNorm((3, 4)),
    "layer_norm_no_bias": lambda: nn.LayerNorm(4, bias=False),
    "group_norm": lambda: nn.GroupNorm(2, 6),
    "instance_norm": lambda: nn.InstanceNorm(3),
    "rms_norm": lambda: nn.RmsNorm(6),
    "embedding": lambda: nn.Embedding(7, 4),
    "prelu": lambda: nn.PRelu(),
    "prelu_channels": lambda: nn.PRelu(3),
    "max_pool1d": lambda: nn.MaxPool1d(3, 2, 1),
    "max_pool2d": lambda: nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    "max_pool2d_ceil": lambda: nn.MaxPool2d(3, 2, ceil_mode=True),
    "max_pool3d": lambda: nn.MaxPool3d(2),
    "avg_pool1d": lambda: nn.AvgPool1d(3, 2, 1),
    "avg_pool2d": lambda: nn.AvgPool2d(3, 2, 1),
    "avg_pool2d_exclude_pad": lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    "avg_pool2d_ceil": lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True),
    "avg_pool3d": lambda: nn.AvgPool3d(2),
    "adaptive_avg_pool1d": lambda: nn.AdaptiveAvgPool1d(3),
    "adaptive_avg_pool2d": lambda: nn.AdaptiveAvgPool2d((3, 5)),
    "relu": nn.Relu,
    "leaky_relu": lambda: nn.LeakyRelu(0.2),
    "gelu": nn.Gelu,
    "gelu_tanh": lambda: nn.Gelu("tanh"),
    "sigmoid": nn.Sigmoid,
    "hard_sigmoid": lambda: nn.HardSigmoid(1 / 6),
    "hard_swish": nn.HardSwish,
    "tanh": nn.Tanh,
    "silu": nn.Silu,
    "elu": lambda: nn.Elu(0.5),
    "selu": nn.Selu,
    "softplus": lambda: nn.Softplus(2.0),
    "softmax": lambda: nn.Softmax(0),
    "log_softmax": lambda: nn.LogSoftmax(1),
    "glu": lambda: nn.Glu(1),
    "mse_loss": nn.MseLoss,
    "huber_loss": lambda: nn.HuberLoss(0.7),
    "cross_entropy": nn.CrossEntropyLoss,
    "binary_cross_entropy": nn.BinaryCrossEntropyLoss,
    "binary_cross_entropy_logits": lambda: nn.BinaryCrossEntropyLoss(logits=True),
    "unfold": lambda: nn.Unfold4d((2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1)),
    "interpolate_nearest": lambda: nn.Interpolate2d((5, 12)),
    "interpolate_linear": lambda: nn.Interpolate2d(scale_factor=(2, 1.5), mode="linear"),
    "interpolate_corners": lambda: nn.Interpolate2d((5, 12), mode="linear", align_corners=True),
    "interpolate_cubic": lambda: nn.Interpolate2d((10, 5), mode="cubic"),
    "interpolate1d_nearest": lambda: nn.Interpolate1d(5),
    "interpolate1d_linear": lambda: nn.Interpolate1d(11, mode="linear"),
}


@every("name", LAYERS)
def test_layer(case, name):
    case = case(name)
    module = LAYERS[name]()
    # A loss's class weights are no parameters here.
    case.load(module, {} if name.startswith("cross") else None)
    case.check(module(*case.inputs))


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
