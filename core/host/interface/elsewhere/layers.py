"""What PyTorch calls layers that `emberlet.nn` has under another name, or with other arguments."""

from __future__ import annotations

# PyTorch's name -> ours, for layers that are built and called alike
LAYERS = {
    "CELU": "Celu", "ELU": "Elu", "GELU": "Gelu", "GLU": "Glu",
    "Hardshrink": "HardShrink", "Hardswish": "HardSwish", "LeakyReLU": "LeakyRelu",
    "PReLU": "PRelu", "ReLU": "Relu", "ReLU6": "Relu6",
    "SELU": "Selu", "SiLU": "Silu", "Softshrink": "SoftShrink", "Swish": "Silu",
    "Dropout1d": "Dropout", "Dropout2d": "Dropout", "Dropout3d": "Dropout", "AlphaDropout": "Dropout",
}  # fmt: skip

LAYER_ADVICE = {
    "Hardsigmoid": "write nn.HardSigmoid(1 / 6); its default slope is ONNX's and Burn's 0.2",
    "RMSNorm": "write nn.RmsNorm(d_model, epsilon)",
    "LSTM": "write nn.Lstm(d_input, d_hidden), which has the batch first and returns (outputs, state)",
    "GRU": "write nn.Gru(d_input, d_hidden), which has the batch first and returns (outputs, state)",
    "RNN": "write nn.Rnn(d_input, d_hidden), which has the batch first and returns (outputs, state)",
    "MultiheadAttention": "write nn.MultiHeadAttention(d_model, num_heads), which has the batch first",
    "InstanceNorm1d": "write nn.InstanceNorm(channels), which has a weight and a bias",
    "InstanceNorm2d": "write nn.InstanceNorm(channels), which has a weight and a bias",
    "InstanceNorm3d": "write nn.InstanceNorm(channels), which has a weight and a bias",
    "Unfold": "write nn.Unfold4d(kernel_size, stride, padding, dilation)",
    "Parameter": "write nn.Param(tensor)",
    "ParameterList": "a list of nn.Param as an attribute is part of a module",
    "ParameterDict": "a dict of nn.Param as an attribute is part of a module",
    "Transformer": "write nn.TransformerEncoder and nn.TransformerDecoder",
}
