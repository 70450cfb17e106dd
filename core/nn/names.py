"""The layers that are not in the file of their own name."""

_FILES = {
    "activation": (
        "Elu Gelu Glu HardSigmoid HardSwish LeakyRelu LogSoftmax Relu Selu Sigmoid Silu Softmax Softplus Tanh"
    ),
    "alignment_losses": "CTCLoss RNNTLoss",
    "attention": "AttentionCache AttentionOutput MultiHeadAttention causal_mask pad_mask",
    "containers": "ModuleDict ModuleList Sequential",
    "distances": "CosineSimilarity PairwiseDistance",
    "dropout": "GaussianNoise",
    "elementwise": (
        "Celu HardShrink Hardtanh LogSigmoid Mish RRelu Relu6 Shrink SoftShrink Softmin Softsign Tanhshrink Threshold "
        "ThresholdedRelu"
    ),
    "gate": "GateController",
    "group_norm": "InstanceNorm",
    "gru": "BiGru",
    "initializer": (
        "Constant KaimingNormal KaimingUniform Normal Ones Orthogonal Uniform XavierNormal XavierUniform Zeros"
    ),
    "loss": "BinaryCrossEntropyLoss CrossEntropyLoss HuberLoss MseLoss",
    "more_losses": "BCELoss BCEWithLogitsLoss KLDivLoss L1Loss MSELoss NLLLoss SmoothL1Loss",
    "lstm": "BiLstm LstmState",
    "pixels": "ChannelShuffle Fold4d LocalResponseNorm PixelShuffle PixelUnshuffle Softmax2d",
    "pool": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d "
        "LPPool1d LPPool2d LPPool3d AvgPool1d AvgPool2d AvgPool3d MaxPool1d MaxPool2d MaxPool3d"
    ),
    "quantized_layers": "QuantizedConv1d QuantizedConv2d QuantizedConv3d QuantizedEmbedding QuantizedLinear",
    "quantized_lstm": "QuantizedBiLstm",
    "quantized_weight": "FakeQuantizedWeight",
    "positional": "PositionalEncoding RotaryEncoding",
    "prelu": "PRelu",
    "ranking_losses": (
        "CosineEmbeddingLoss GaussianNLLLoss HingeEmbeddingLoss LpLoss MarginRankingLoss MultiLabelMarginLoss "
        "MultiLabelSoftMarginLoss MultiMarginLoss PoissonNllLoss SoftMarginLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss"
    ),
    "rnn": "BiRnn RnnState",
    "shaping": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d Flatten Identity "
        "ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d Unflatten "
        "Upsample ZeroPad1d ZeroPad2d ZeroPad3d"
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
