"""An omitted argument of a layer has the default of PyTorch's or Burn's layer: with and without it the module is the
same."""

from __future__ import annotations

import inspect
from typing import Any

import emberlet
import pytest
from emberlet import nn
from emberlet.module import Module
from emberlet.param import Param
from support.rows import every

RECURRENT = "bias=True, batch_first=True"
WINDOWS = "stride=1, padding=0, dilation=1, groups=1, bias=True"
BLOCK = "dropout=0.1, norm_first=False, quiet_softmax=False, epsilon=1e-5"
# The call that leaves arguments out -> those arguments.
LAYERS = {
    "AttentionCache()": "grow=True",
    "AvgPool1d(2)": "stride=2, padding=0, count_include_pad=True, ceil_mode=False, dilation=1",
    "AvgPool2d(2)": "stride=2, padding=0, count_include_pad=True, ceil_mode=False, dilation=1",
    "AvgPool3d(2)": "stride=2, padding=0, count_include_pad=True, ceil_mode=False, dilation=1",
    "BatchNorm(2)": "epsilon=1e-5, momentum=0.1, affine=True",
    "BatchNorm1d(2)": "epsilon=1e-5, momentum=0.1, affine=True",
    "BatchNorm2d(2)": "epsilon=1e-5, momentum=0.1, affine=True",
    "BatchNorm3d(2)": "epsilon=1e-5, momentum=0.1, affine=True",
    "BCELoss()": "reduction='mean'",
    "BCEWithLogitsLoss()": "reduction='mean'",
    "BiGru(2, 3)": f"{RECURRENT}, reset_after=True",
    "Bilinear(2, 3, 4)": "bias=True",
    "BiLstm(2, 3)": f"{RECURRENT}, input_forget=False",
    "BinaryCrossEntropyLoss()": "logits=False",
    "BiRnn(2, 3)": f"{RECURRENT}, hidden_activation='Tanh'",
    "Celu()": "alpha=1.0",
    "Conv1d(2, 4, 3)": WINDOWS,
    "Conv2d(2, 4, 3)": WINDOWS,
    "Conv3d(2, 4, 3)": WINDOWS,
    "ConvTranspose1d(2, 4, 3)": f"{WINDOWS}, output_padding=0",
    "ConvTranspose2d(2, 4, 3)": f"{WINDOWS}, output_padding=0",
    "ConvTranspose3d(2, 4, 3)": f"{WINDOWS}, output_padding=0",
    "CosineEmbeddingLoss()": "margin=0.0, reduction='mean'",
    "CosineSimilarity()": "axis=1, epsilon=1e-8",
    "CrossEntropyLoss()": "logits=True",
    "CTCLoss()": "blank=0, reduction='mean', zero_infinity=False",
    "DeformConv2d(2, 4, 3)": f"{WINDOWS}, offset_groups=1",
    "Dropout()": "prob=0.5",
    "Elu()": "alpha=1.0",
    "Flatten()": "start_dim=1, end_dim=-1",
    "Fold4d(4, 2)": "stride=1, padding=0, dilation=1",
    "GateController(2, 3)": "bias=True",
    "GaussianNLLLoss()": "full=False, epsilon=1e-6, reduction='mean'",
    "Gelu()": "approximate='none'",
    "Glu()": "axis=-1",
    "GroupNorm(2, 4)": "epsilon=1e-5, affine=True",
    "Gru(2, 3)": f"{RECURRENT}, reset_after=True, reverse=False",
    "HardShrink()": "lambd=0.5",
    "HardSigmoid()": "alpha=0.2, beta=0.5",
    "Hardtanh()": "min_value=-1.0, max_value=1.0",
    "HingeEmbeddingLoss()": "margin=1.0, reduction='mean'",
    "HuberLoss()": "delta=1.0",
    "InstanceNorm(2)": "epsilon=1e-5, affine=True",
    "Interpolate1d(3)": "mode='nearest', align_corners=False",
    "Interpolate2d(3)": "mode='nearest', align_corners=False",
    "KaimingNormal()": "gain=1.0, fan_out_only=False",
    "KaimingUniform()": "gain=1.0, fan_out_only=False",
    "KLDivLoss()": "reduction='mean', log_target=False",
    "L1Loss()": "reduction='mean'",
    "LayerNorm(3)": "epsilon=1e-5, affine=True, bias=True",
    "LeakyRelu()": "negative_slope=0.01",
    "Linear(2, 3)": "bias=True",
    "LocalResponseNorm(3)": "alpha=1e-4, beta=0.75, k=1.0",
    "LogSoftmax()": "axis=-1",
    "LpLoss()": "p=2.0, reduction='mean'",
    "LPPool1d(2, 3)": "stride=3, ceil_mode=False",
    "LPPool2d(2, 3)": "stride=3, ceil_mode=False",
    "LPPool3d(2, 3)": "stride=3, ceil_mode=False",
    "Lstm(2, 3)": f"{RECURRENT}, reverse=False, input_forget=False",
    "MarginRankingLoss()": "margin=0.0, reduction='mean'",
    "MaxPool1d(2)": "stride=2, padding=0, dilation=1, ceil_mode=False",
    "MaxPool2d(2)": "stride=2, padding=0, dilation=1, ceil_mode=False",
    "MaxPool3d(2)": "stride=2, padding=0, dilation=1, ceil_mode=False",
    "ModuleList()": "modules=()",
    "MSELoss()": "reduction='mean'",
    "MultiHeadAttention(4, 2)": "dropout=0.1, min_float=-1e4, quiet_softmax=False",
    "MultiLabelMarginLoss()": "reduction='mean'",
    "MultiLabelSoftMarginLoss()": "reduction='mean'",
    "MultiMarginLoss()": "p=1, margin=1.0, reduction='mean'",
    "NLLLoss()": "ignore_index=-100, reduction='mean'",
    "Normal()": "mean=0.0, std=1.0",
    "Orthogonal()": "gain=1.0",
    "PairwiseDistance()": "p=2.0, epsilon=1e-6, keepdims=False",
    "PoissonNllLoss()": "log_input=True, full=False, epsilon=1e-8, reduction='mean'",
    "PositionalEncoding(4)": "max_sequence_size=5000, max_timescale=10_000",
    "PositionWiseFeedForward(2, 4)": "dropout=0.1",
    "PRelu()": "num_parameters=1, alpha=0.25",
    "FakeQuantizedWeight(nn.Linear(3, 2).weight)": "axis=0",
    "QuantizedBiLstm(2, 3)": f"{RECURRENT}, input_forget=False, affine=False",
    "QuantizedConv1d(2, 4, 3)": "stride=1, padding=0, dilation=1, groups=1, bias=True, bits=8, affine=False",
    "QuantizedConv2d(2, 4, 3)": "stride=1, padding=0, dilation=1, groups=1, bias=True, bits=8, affine=False",
    "QuantizedConv3d(2, 4, 3)": "stride=1, padding=0, dilation=1, groups=1, bias=True, bits=8, affine=False",
    "QuantizedEmbedding(4, 2)": "bits=8, affine=False",
    "QuantizedLinear(4, 2)": "bias=True, bits=8, affine=False",
    "QuantizedLstm(2, 3)": f"{RECURRENT}, reverse=False, input_forget=False, affine=False",
    "QuantizedWeight((4, 2))": "axis=0",
    "RmsNorm(3)": "epsilon=1e-5",
    "Rnn(2, 3)": f"{RECURRENT}, reverse=False, hidden_activation='Tanh'",
    "RNNTLoss()": "blank=0, reduction='mean', fused_log_softmax=True",
    "RotaryEncoding(5, 4)": "theta=10_000.0, interleaved=True",
    "RRelu()": "lower=1 / 8, upper=1 / 3",
    "Shrink()": "lambd=0.5, bias=0.0",
    "SmoothL1Loss()": "reduction='mean', beta=1.0",
    "SoftMarginLoss()": "reduction='mean'",
    "Softmax()": "axis=-1",
    "Softmin()": "axis=-1",
    "Softplus()": "beta=1.0",
    "SoftShrink()": "lambd=0.5",
    "SwiGlu(2, 3)": "bias=False",
    "ThresholdedRelu()": "alpha=1.0",
    "TransformerDecoder(4, 6, 2, 2)": BLOCK,
    "TransformerDecoderLayer(4, 6, 2)": BLOCK,
    "TransformerEncoder(4, 6, 2, 2)": BLOCK,
    "TransformerEncoderLayer(4, 6, 2)": BLOCK,
    "TripletMarginLoss()": "margin=1.0, p=2.0, epsilon=1e-6, swap=False, reduction='mean'",
    "TripletMarginWithDistanceLoss()": "margin=1.0, swap=False, reduction='mean'",
    "Unfold4d(2)": "stride=1, padding=0, dilation=1",
    "Uniform()": "low=0.0, high=1.0",
    "Upsample(3)": "mode='nearest'",
    "XavierNormal()": "gain=1.0",
    "XavierUniform()": "gain=1.0",
}


def content(x: Any) -> Any:
    """A module's contents, with its parameters' values."""
    if isinstance(x, Param):
        x = x.val()
    if isinstance(x, emberlet.Tensor):
        return x.dtype.name, x.shape, x.tolist()
    if isinstance(x, (list, tuple)):
        return [content(v) for v in x]
    if isinstance(x, (Module, nn.Initializer, nn.AttentionCache)):
        return type(x).__name__, {name: content(v) for name, v in vars(x).items()}
    return repr(x)


@every("call", LAYERS)
def test_a_layer_without_arguments_equals_the_one_with_their_defaults(call: str) -> None:
    found = []
    for text in (call, f"{call[:-1]}, {LAYERS[call]})".replace("(, ", "(")):
        emberlet.functional.manual_seed(7)
        found.append(content(eval(f"nn.{text}")))
    assert found[0] == found[1]


def test_every_layer_with_defaults_has_a_call() -> None:
    called = {call.partition("(")[0] for call in LAYERS}
    missing = []
    for name in dir(nn):
        found = getattr(nn, name)
        if inspect.isclass(found) and name not in called | {"Conv", "ConvTranspose", "Param", "Model"}:
            parameters = inspect.signature(found).parameters.values()
            if any(p.default not in (p.empty, None) for p in parameters):
                missing.append(name)
    assert not missing


X, Y = [[0.2, 0.7], [0.9, 0.4]], [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("loss", ["MseLoss()", "HuberLoss()", "BinaryCrossEntropyLoss()", "CrossEntropyLoss()"])
def test_a_loss_is_a_mean_unless_told_otherwise(loss: str) -> None:
    layer = eval(f"nn.{loss}")
    x, y = emberlet.asarray(X), emberlet.asarray([1, 0] if loss.startswith("Cross") else Y)
    assert layer(x, y).shape == () and layer(x, y).item() == layer(x, y, "mean").item()
    assert layer(x, y).item() != layer(x, y, "sum").item()


def test_attention_gives_its_weights_unless_told_otherwise() -> None:
    layer, x = nn.MultiHeadAttention(4, 2), emberlet.ones((1, 3, 4))
    assert layer(x).weights.shape == (1, 2, 3, 3) and layer(x, need_weights=False).weights is None


def test_a_rotary_encoding_starts_at_the_first_position() -> None:
    layer, x = nn.RotaryEncoding(9, 4), emberlet.functional.uniform((1, 2, 3, 4), seed=1)
    assert layer(x).tolist() == layer(x, 0).tolist() != layer(x, 1).tolist()
