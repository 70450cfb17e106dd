"""The layers that are not in the file of their own name."""

_FILES = {
    "activation": (
        "Elu Gelu Glu HardSigmoid HardSwish LeakyRelu LogSoftmax Relu Selu Sigmoid Silu Softmax Softplus Tanh"
    ),
    "attention": "AttentionCache AttentionOutput MultiHeadAttention causal_mask pad_mask",
    "containers": "ModuleDict ModuleList Sequential",
    "dropout": "GaussianNoise",
    "elementwise": ("Celu HardShrink Hardtanh LogSigmoid Mish Relu6 SoftShrink Softmin Softsign Tanhshrink"),
    "gate": "GateController",
    "group_norm": "InstanceNorm",
    "gru": "BiGru",
    "initializer": (
        "Constant KaimingNormal KaimingUniform Normal Ones Orthogonal Uniform XavierNormal XavierUniform Zeros"
    ),
    "loss": "BinaryCrossEntropyLoss CrossEntropyLoss HuberLoss MseLoss",
    "more_losses": "BCELoss BCEWithLogitsLoss KLDivLoss L1Loss MSELoss NLLLoss SmoothL1Loss",
    "lstm": "BiLstm LstmState",
    "pool": "AdaptiveAvgPool1d AdaptiveAvgPool2d AvgPool1d AvgPool2d AvgPool3d MaxPool1d MaxPool2d MaxPool3d",
    "quantized_linear": "FakeQuantizedLinear",
    "positional": "PositionalEncoding RotaryEncoding",
    "prelu": "PRelu",
    "rnn": "BiRnn RnnState",
    "shaping": (
        "CircularPad1d CircularPad2d ConstantPad1d ConstantPad2d ConstantPad3d Flatten Identity ReflectionPad1d "
        "ReflectionPad2d ReplicationPad1d ReplicationPad2d ReplicationPad3d Unflatten Upsample ZeroPad1d ZeroPad2d "
        "ZeroPad3d"
    ),
    "swiglu": "SwiGlu",
    "transformer_decoder": "TransformerDecoderLayer",
    "transformer_encoder": "PositionWiseFeedForward TransformerEncoderLayer",
}
# name -> file
FILES = {"Module": "..module", "Param": "..param", "ParamId": "..param.identity", "Model": "..model"}
for _file in _FILES:
    for _name in _FILES[_file].split():
        FILES[_name] = _file
