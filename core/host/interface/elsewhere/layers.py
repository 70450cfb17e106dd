"""What PyTorch calls layers that `emberlet.nn` has under another name, or with other arguments."""

from __future__ import annotations

# PyTorch's name -> ours, for layers that are built and called alike
LAYERS = {
    "CELU": "Celu", "ELU": "Elu", "GELU": "Gelu", "GLU": "Glu",
    "Hardshrink": "HardShrink", "Hardswish": "HardSwish", "LeakyReLU": "LeakyRelu",
    "PReLU": "PRelu", "Prelu": "PRelu", "ReLU": "Relu", "ReLU6": "Relu6",
    "SELU": "Selu", "SiLU": "Silu", "Softshrink": "SoftShrink", "Swish": "Silu",
    "PoissonNLLLoss": "PoissonNllLoss", "RReLU": "RRelu", "NLLLoss2d": "NLLLoss", "MhaCache": "AttentionCache",
    "MhaOutput": "AttentionOutput", "CrossAttentionCache": "AttentionCache", "FeatureAlphaDropout": "Dropout",
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
    "Fold": "write nn.Fold4d(output_size, kernel_size, stride, padding, dilation)",
    "AdaptiveLogSoftmaxWithLoss": "there is no adaptive softmax; write nn.Linear and nn.CrossEntropyLoss",
    "Buffer": "a plain tensor as an attribute is a constant; a Param with require_grad=False is also saved",
    "Container": "write a class that derives from nn.Module",
    "CrossMapLRN2d": "write nn.LocalResponseNorm(size, alpha, beta, k)",
    "DataParallel": "one process computes; emberlet.batch scores data sets on many machines",
    "EmbeddingBag": "write nn.Embedding, and mean, sum or max over the axis of the bag",
    "FractionalMaxPool2d": "its windows are drawn at random; write nn.AdaptiveMaxPool2d(output_size)",
    "FractionalMaxPool3d": "its windows are drawn at random; write nn.AdaptiveMaxPool3d(output_size)",
    "GRUCell": "write nn.Gru, and call it with one step (batch, 1, d_input) and the state",
    "LSTMCell": "write nn.Lstm, and call it with one step (batch, 1, d_input) and the state",
    "RNNCell": "write nn.Rnn, and call it with one step (batch, 1, d_input) and the state",
    "RNNBase": "write nn.Rnn, nn.Lstm or nn.Gru",
    "RNNCellBase": "write nn.Rnn, nn.Lstm or nn.Gru",
    "MaxUnpool1d": "write F.max_unpool(x, indices, kernel_size), whose indices count over the whole tensor",
    "MaxUnpool2d": "write F.max_unpool(x, indices, kernel_size), whose indices count over the whole tensor",
    "MaxUnpool3d": "write F.max_unpool(x, indices, kernel_size), whose indices count over the whole tensor",
    "SyncBatchNorm": "write nn.BatchNorm(num_features); one process computes",
    "UninitializedBuffer": "write nn.Param.uninitialized(init, shape)",
    "UninitializedParameter": "write nn.Param.uninitialized(init, shape)",
    "UpsamplingBilinear2d": "write nn.Upsample(size, scale_factor, mode='bilinear', align_corners=True)",
    "UpsamplingNearest2d": "write nn.Upsample(size, scale_factor)",
    # Burn
    "Activation": "any layer or function can be a field: nn.Relu()",
    "CrossAttention": "write nn.MultiHeadAttention(d_model, n_heads), called with (query, memory, memory)",
    "GeneratePaddingMask": "write nn.pad_mask(lengths, length)",
    "InterpolateMode": "write a word, for example nn.Interpolate2d(size, mode='cubic')",
    "LinearLayout": "weights are (d_input, d_output); load_record(record, layout='pytorch') reads the transpose",
    "MhaInput": "these are arguments of the call: attention(query, key, value, mask_pad, mask_attn)",
    "Normalization": "any layer can be a field: nn.LayerNorm(d_model)",
    "Reduction": "write a word: reduction='mean', 'sum' or 'none'",
    "SeqLengthOption": "write the length: nn.pad_mask(lengths, length)",
    "TensorCache": "write nn.AttentionCache()",
    "TransformerDecoderAutoregressiveCache": "write decoder.new_cache()",
    "TransformerDecoderInput": "these are arguments of the call: decoder(target, memory, mask_pad, …)",
    "TransformerDecoderLayerAutoregressiveCache": "write decoder.new_cache()",
    "TransformerEncoderAutoregressiveCache": "write encoder.new_cache()",
    "TransformerEncoderInput": "these are arguments of the call: encoder(x, mask_pad, mask_attn)",
    "TransformerEncoderLayerAutoregressiveCache": "write encoder.new_cache()",
}
for _layer in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm"):
    for _rank in ("1d", "2d", "3d"):
        _ours = _layer if "Norm" in _layer else _layer + _rank
        LAYER_ADVICE[f"Lazy{_layer}{_rank}"] = f"write nn.{_ours} with the number of channels"
LAYER_ADVICE["LazyLinear"] = "write nn.Linear(d_input, d_output)"

_STEP = "; step takes the learning rate, as in Burn: optimizer.step(1e-3, model, grads)"
_SCHEDULES = (
    "write optim.CosineAnnealingLrSchedulerConfig(...).init() or another one; its step() gives the learning rate"
)
# package -> name elsewhere -> what to write here
PACKAGE_ADVICE = {
    "emberlet.nn": LAYER_ADVICE,
    "emberlet.optim": {
        **{name: f"write optim.{config}().init()" + _STEP for name, config in (
            ("Adam", "AdamConfig"), ("AdamW", "AdamWConfig"), ("SGD", "SgdConfig"), ("Adagrad", "AdaGradConfig"),
            ("RMSprop", "RmsPropConfig"), ("LBFGS", "LBFGSConfig"))},
        "lr_scheduler": _SCHEDULES,
    },
    "emberlet.fft": {n: f"write fft.{n[:-1]}n(x, axes=(-2, -1))" for n in ("fft2", "ifft2", "rfft2", "irfft2")},
}  # fmt: skip
