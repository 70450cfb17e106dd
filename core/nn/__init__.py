"""Layers, named and called like PyTorch's, with lazy parameters: constructing one allocates nothing.

`emberlet.nn.Linear` imports core/nn/linear.py when first asked for and nothing else. docs/modules.md lists every layer.
"""

# file -> the names it defines
_FILES = {
    "activation": (
        "Elu Gelu Glu HardSigmoid HardSwish LeakyRelu LogSoftmax Relu Selu Sigmoid Silu Softmax Softplus Tanh"
    ),
    "attention": "AttentionCache MultiHeadAttention causal_mask pad_mask",
    "batch_norm": "BatchNorm BatchNorm1d BatchNorm2d BatchNorm3d",
    "conv": "Conv1d Conv2d Conv3d",
    "conv_transpose": "ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "deform_conv": "DeformConv2d",
    "dropout": "Dropout GaussianNoise",
    "embedding": "Embedding",
    "gate": "GateController",
    "group_norm": "GroupNorm InstanceNorm",
    "gru": "Gru BiGru",
    "initializer": (
        "Constant KaimingNormal KaimingUniform Normal Ones Orthogonal Uniform XavierNormal XavierUniform Zeros"
    ),
    "interpolate": "Interpolate1d Interpolate2d",
    "layer_norm": "LayerNorm",
    "linear": "Linear",
    "loss": "BinaryCrossEntropyLoss CrossEntropyLoss HuberLoss MseLoss",
    "lstm": "Lstm BiLstm LstmState",
    "pool": "AdaptiveAvgPool1d AdaptiveAvgPool2d AvgPool1d AvgPool2d AvgPool3d MaxPool1d MaxPool2d MaxPool3d",
    "positional": "PositionalEncoding RotaryEncoding",
    "prelu": "PRelu",
    "rms_norm": "RmsNorm",
    "swiglu": "SwiGlu",
    "transformer_decoder": "TransformerDecoder TransformerDecoderLayer",
    "transformer_encoder": "PositionWiseFeedForward TransformerEncoder TransformerEncoderLayer",
    "unfold": "Unfold4d",
}


def __getattr__(name):
    if name == "Module":
        from ..module import Module

        found = Module
    elif name == "Param":
        from ..param import Param

        found = Param
    elif name == "Model":
        from ..model import Model

        found = Model
    else:
        for file in _FILES:
            if name in _FILES[file].split():
                found = getattr(__import__("emberlet.nn." + file, None, None, ("*",)), name)
                break
        else:
            raise AttributeError("module 'emberlet.nn' has no attribute " + repr(name))
    globals()[name] = found
    return found
