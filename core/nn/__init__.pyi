"""Types of emberlet.nn (written by emberlet.host.interface.module_stubs)."""
# fmt: off
# ruff: noqa

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..backend import Backend
from ..dtypes import DType
from ..model import Model as Model
from ..module import Module as Module
from ..param import Param as Param
from ..param.identity import ParamId as ParamId
from ..tensor import Tensor

class Relu(Module):
    """max(x, 0)."""
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class LeakyRelu(Module):
    """x where it is >= 0, negative_slope * x elsewhere."""
    negative_slope: float
    def __init__(self, negative_slope: float = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class Gelu(Module):
    """x times the standard normal distribution function at x; approximate: "none" or "tanh"."""
    approximate: str
    def __init__(self, approximate: str = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class Sigmoid(Module):
    """1 / (1 + exp(-x))."""
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class HardSigmoid(Module):
    """alpha * x + beta, clamped to [0, 1] (PyTorch's alpha is 1/6)."""
    alpha: float
    beta: float
    def __init__(self, alpha: float = ..., beta: float = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class HardSwish(Module):
    """x * min(max(x + 3, 0), 6) / 6."""
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class Tanh(Module):
    """The hyperbolic tangent."""
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class Silu(Module):
    """x * sigmoid(x)."""
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class Elu(Module):
    """x where it is >= 0, alpha * (exp(x) - 1) elsewhere."""
    alpha: float
    def __init__(self, alpha: float = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class Selu(Module):
    """The self-normalizing exponential linear unit."""
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class Softplus(Module):
    """log(1 + exp(beta * x)) / beta."""
    beta: float
    def __init__(self, beta: float = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""

class Softmax(Module):
    """exp(x) / sum(exp(x)) along axis."""
    axis: int
    def __init__(self, axis: int = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape with `axis` -> the same shape; the elements along `axis` sum to 1."""

class LogSoftmax(Module):
    """log(softmax(x))."""
    axis: int
    def __init__(self, axis: int = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape with `axis` -> the same shape."""

class Glu(Module):
    """The first half of x along axis times the sigmoid of the second half."""
    axis: int
    def __init__(self, axis: int = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x with an even length along `axis` -> that length halved. Raises ShapeError for an odd length."""

class _Loss(Module):
    reduction: str
    def __init__(self, reduction: str = ...) -> None: ...
    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        """x and targets of one shape -> a 0-D tensor, or with "none" that shape. Raises ShapeError."""

class CTCLoss(_Loss):
    """-log of the probability of the targets under every alignment with blanks (Graves et al. 2006). blank: its class;
    zero_infinity: 0 where no alignment fits."""
    blank: int
    zero_infinity: bool
    def __init__(self, blank: int = ..., reduction: str = ..., zero_infinity: bool = ...) -> None: ...
    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int]) -> Tensor:  # type: ignore[override]
        """log_probs (time, n, classes), targets (n, longest), lengths (n,) -> a 0-D tensor, or with "none" (n,)."""

class RNNTLoss(_Loss):
    """-log of the probability of the targets under every alignment of a transducer (Graves 2012). blank: its class;
    fused_log_softmax: the logits are no log-probabilities yet."""
    blank: int
    fused_log_softmax: bool
    def __init__(self, blank: int = ..., reduction: str = ..., fused_log_softmax: bool = ...) -> None: ...
    def forward(self, logits: Tensor, targets: Tensor, logit_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int]) -> Tensor:  # type: ignore[override]
        """logits (n, time, longest + 1, classes), targets (n, longest), lengths (n,) -> a 0-D tensor, or with "none"
        (n,)."""

class AttentionOutput:
    """context: (batch, seq_q, d_model); weights: (batch, n_heads, seq_q, seq_k), after the softmax, or None."""
    context: Tensor
    weights: Tensor | None
    def __init__(self, context: Tensor, weights: Tensor | None) -> None: ...

class AttentionCache:
    """The keys and values of a MultiHeadAttention so far: (batch, n_heads, seq, d_head) each, None before the first
    call.

    grow: every call appends its own; otherwise the first call's are kept (attention to a constant memory)."""
    grow: bool
    key: Tensor | None
    value: Tensor | None
    def __init__(self, grow: bool = ...) -> None: ...
    def __len__(self) -> int: ...
    def add(self, key: Tensor | None, value: Tensor | None) -> tuple[Tensor, Tensor]:
        """Append key and value; returns (all keys, all values)."""

class MultiHeadAttention(Module):
    """softmax(q kᵀ / sqrt(d_head)) v in n_heads heads, where q, k, v are Linear projections of query, key and value,
    and a fourth Linear merges the heads. key and value default to query, value to key.

    query (batch, seq_q, d_model), key and value (batch, seq_k, d_model). mask_pad (batch, seq_k): True hides a key from
    every query; mask_attn (batch, seq_q, seq_k) or (seq_q, seq_k): True hides one key from one query. min_float: the
    number added to a hidden score. quiet_softmax: a query may attend to nothing (softmax with an extra score of 0).
    All inputs, and then the results, may be without the batch."""
    d_model: int
    n_heads: int
    d_head: int
    dropout: float
    min_float: float
    quiet_softmax: bool
    query: Linear
    key: Linear
    value: Linear
    output: Linear
    def __init__(self, d_model: int, n_heads: int, dropout: float = ..., min_float: float = ..., quiet_softmax: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, query: Tensor, key: Tensor | None = ..., value: Tensor | None = ..., mask_pad: Tensor | None = ..., mask_attn: Tensor | None = ..., cache: AttentionCache | None = ..., need_weights: bool = ...) -> AttentionOutput:
        """-> AttentionOutput, whose weights are None unless they are needed. With an AttentionCache, query holds only
        the new steps, which attend to the cached steps and to themselves."""

class BatchNorm(Module):
    """(x - running_mean) / sqrt(running_var + epsilon) * weight + bias per channel of x (n, num_features, …).

    weight, bias, running_mean, running_var: (num_features,); weight and bias are None if affine is False. In training,
    on an autodiff backend, the batch's own mean and variance take the place of the running ones, which move toward
    them by `momentum`."""
    num_features: int
    epsilon: float
    momentum: float
    weight: Param | None
    bias: Param | None
    running_mean: Param
    running_var: Param
    def __init__(self, num_features: int, epsilon: float = ..., momentum: float = ..., affine: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (n, num_features, …) -> the same shape and dtype. Raises ShapeError for another number of channels."""

class Bilinear(Module):
    """y[o] = x1 · weight[o] · x2 + bias[o] for x1 (…, d_input1) and x2 (…, d_input2) -> (…, d_output).

    weight: (d_output, d_input1, d_input2); bias: (d_output,) or None; both uniform within ±1 / sqrt(d_input1)."""
    d_input1: int
    d_input2: int
    d_output: int
    weight: Param
    bias: Param | None
    def __init__(self, d_input1: int, d_input2: int, d_output: int, bias: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """x1 (…, d_input1), x2 (…, d_input2) -> (…, d_output). Raises ShapeError for another last axis."""

class _Numbered(Module):
    """Modules under their numbers as names, as in a state dict of PyTorch: `0.weight`."""
    def __init__(self, modules: Any = ...) -> None: ...
    def append(self, layer: Module) -> Any:
        """Add a module at the end. Returns self."""
    def extend(self, modules: Any) -> Any:
        """Add several modules at the end. Returns self."""
    def __len__(self) -> int: ...

class Sequential(_Numbered):
    """Modules called one after the other, each with the result of the one before: `nn.Sequential(a, b)(x)` is b(a(x)).

    modules: modules or functions, or one list of them, or one dict, whose keys are then their names."""
    def __init__(self, *modules: Any) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x through all modules in turn."""

class ModuleList(_Numbered):
    """A list of modules; the module that holds it calls them."""
    pass

class ModuleDict(Module):
    """A dict of modules by name; the module that holds it calls them."""
    def __init__(self, modules: Any | None = ...) -> None: ...
    def update(self, modules: Any) -> None:
        """Add or replace modules: a dict, or pairs of a name and a module."""
    def __len__(self) -> int: ...
    def keys(self) -> Any:
        """The names."""
    def values(self) -> Any:
        """The modules."""
    def items(self) -> Any:
        """The pairs of a name and a module."""

class Conv(Module):
    """Base of the convolutions; RANK is the number of spatial axes."""
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: str | tuple[tuple[int, int], ...]
    groups: int
    weight: Param
    bias: Tensor | None
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = ..., padding: int | str | Sequence[int | tuple[int, int]] = ..., dilation: int | Sequence[int] = ..., groups: int = ..., bias: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def weight_shape(self, in_channels: int, out_channels: int) -> tuple[int, ...]:
        """The shape of `weight`: (out_channels, in_channels / groups, *kernel_size)."""
    def forward(self, x: Tensor) -> Tensor:
        """x (n, in_channels, *spatial) -> (n, out_channels, *spatial'), or both without n. Raises ShapeError if x does
        not fit."""
    def convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution of x with the values of `weight` and `bias`; transposed convolutions override it."""

class Conv1d(Conv):
    """x (n, in_channels, length)."""
    pass

class Conv2d(Conv):
    """x (n, in_channels, height, width)."""
    pass

class Conv3d(Conv):
    """x (n, in_channels, depth, height, width)."""
    pass

class ConvTranspose(Conv):
    """Base of the transposed convolutions."""
    output_padding: tuple[int, ...]
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = ..., padding: int | str | Sequence[int | tuple[int, int]] = ..., output_padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., groups: int = ..., bias: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def weight_shape(self, in_channels: int, out_channels: int) -> tuple[int, ...]:
        """The shape of `weight`: (in_channels, out_channels / groups, *kernel_size)."""
    def convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The transposed convolution of x with the values of `weight` and `bias`."""

class ConvTranspose1d(ConvTranspose):
    """x (n, in_channels, length)."""
    pass

class ConvTranspose2d(ConvTranspose):
    """x (n, in_channels, height, width)."""
    pass

class ConvTranspose3d(ConvTranspose):
    """x (n, in_channels, depth, height, width)."""
    pass

class DeformConv2d(Conv):
    """x (n, in_channels, h, w), offset (n, 2 * offset_groups * taps, h', w') in (y, x) pairs, mask (n, offset_groups *
    taps, h', w') or None -> (n, out_channels, h', w'). The rest as in Conv2d."""
    offset_groups: int
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = ..., padding: int | str | Sequence[int | tuple[int, int]] = ..., dilation: int | Sequence[int] = ..., groups: int = ..., offset_groups: int = ..., bias: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor, offset: Tensor, mask: Tensor | None = ...) -> Tensor:  # type: ignore[override]
        """The convolution with each tap moved by `offset` and scaled by `mask`. Raises ShapeError if shapes do not
        fit."""

class CosineSimilarity(Module):
    """The cosines of the angles between vectors along `axis`; epsilon: the least product of their lengths."""
    axis: int
    epsilon: float
    def __init__(self, axis: int = ..., epsilon: float = ...) -> None: ...
    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Two tensors that broadcast -> their shape without `axis`."""

class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + epsilon along the last axis."""
    p: float
    epsilon: float
    keepdims: bool
    def __init__(self, p: float = ..., epsilon: float = ..., keepdims: bool = ...) -> None: ...
    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Two tensors (…, d) that broadcast -> (…)."""

class Dropout(Module):
    """Returns x; in training, x with each element zeroed with probability `prob` and the rest scaled by
    1 / (1 - prob)."""
    prob: float
    def __init__(self, prob: float = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """Another tensor of x's elements, or in training new ones."""

class GaussianNoise(Module):
    """Returns x; in training, x plus normally distributed noise of standard deviation `std`."""
    std: float
    def __init__(self, std: float) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """Another tensor of x's elements, or in training new ones."""

class _Elementwise(Module):
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype."""

class Relu6(_Elementwise):
    """min(max(x, 0), 6)."""
    pass

class Softsign(_Elementwise):
    """x / (1 + |x|)."""
    pass

class LogSigmoid(_Elementwise):
    """log(1 / (1 + exp(-x)))."""
    pass

class Mish(_Elementwise):
    """x * tanh(softplus(x)) (Misra 2019)."""
    pass

class Celu(_Elementwise):
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""
    alpha: float
    def __init__(self, alpha: float = ...) -> None: ...

class Hardtanh(_Elementwise):
    """x clamped to [min_value, max_value]."""
    min_value: float
    max_value: float
    def __init__(self, min_value: float = ..., max_value: float = ...) -> None: ...

class Softmin(_Elementwise):
    """softmax(-x) along axis."""
    axis: int
    def __init__(self, axis: int = ...) -> None: ...

class HardShrink(_Elementwise):
    """x where |x| > lambd, 0 elsewhere."""
    lambd: float
    def __init__(self, lambd: float = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype; NaN stays NaN, as in PyTorch."""

class SoftShrink(HardShrink):
    """x moved towards 0 by lambd, 0 where |x| <= lambd."""
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype; NaN stays NaN, as in PyTorch."""

class Tanhshrink(_Elementwise):
    """x - tanh(x)."""
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype."""

class Shrink(HardShrink):
    """x moved towards 0 by bias where |x| > lambd, 0 elsewhere (ONNX Shrink, Burn)."""
    lambd: float
    bias: float
    def __init__(self, lambd: float = ..., bias: float = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype."""

class Threshold(_Elementwise):
    """x where x > threshold, value elsewhere."""
    threshold: float
    value: float
    def __init__(self, threshold: float, value: float) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype."""

class ThresholdedRelu(_Elementwise):
    """x where x > alpha, 0 elsewhere."""
    alpha: float
    def __init__(self, alpha: float = ...) -> None: ...

class RRelu(_Elementwise):
    """x where it is positive, x times the mean of lower and upper elsewhere: what PyTorch's and Burn's compute outside
    of training. In training, the slope of each element is drawn between lower and upper (Xu et al. 2015)."""
    lower: float
    upper: float
    def __init__(self, lower: float = ..., upper: float = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x of any shape and a float dtype -> the same shape and dtype."""

class Embedding(Module):
    """x (…) of integers in [0, num_embeddings) -> (…, d_model), the rows of the table.

    weight: (num_embeddings, d_model), drawn from N(0, 1) unless an `initializer` is given."""
    num_embeddings: int
    d_model: int
    weight: Param
    def __init__(self, num_embeddings: int, d_model: int, dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (…) of integers -> (…, d_model), floats. python and numpy raise IndexingError for an index out of range."""

class GateController(Module):
    """input_transform(x) + hidden_transform(h): a gate before its activation.

    x (…, d_input), h (…, d_hidden) -> (…, d_hidden). Both transforms are Linear layers, initialized by XavierNormal
    unless an `initializer` is given."""
    d_input: int
    d_hidden: int
    bias: bool
    input_transform: Linear
    hidden_transform: Linear
    def __init__(self, d_input: int, d_hidden: int, bias: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """x (batch, d_input), hidden (batch, d_hidden) -> (batch, d_hidden)."""

class Group(Module):
    """Named Modules and Params: `Group(dense=Linear(2, 3)).dense`."""
    def __init__(*given: Any, **held: Any) -> None: ...

class GroupNorm(Module):
    """Zero mean and unit variance over each of num_groups groups of channels of x (n, num_channels, …), then * weight +
    bias per channel. weight, bias: (num_channels,), None if affine is False."""
    num_groups: int
    num_channels: int
    epsilon: float
    weight: Param | None
    bias: Param | None
    def __init__(self, num_groups: int, num_channels: int, epsilon: float = ..., affine: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (n, num_channels, …) -> the same shape and dtype. Raises ShapeError for other channels."""

class InstanceNorm(GroupNorm):
    """Zero mean and unit variance over the spatial axes of each channel, then * weight + bias per channel."""
    def __init__(self, num_channels: int, epsilon: float = ..., affine: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> None: ...

class Gru(Module):
    """x (batch, seq, d_input), or (seq, batch, d_input) if batch_first is False -> (the hidden states of all steps, in
    x's order of axes, the last one (batch, d_hidden)). state: the initial (batch, d_hidden), by default zeros.
    x, the outputs and the states may be without the batch.

    z, r = sigmoid of the update and reset gate; n = tanh of the new gate, in which r multiplies the hidden transform's
    output (reset_after, as in PyTorch) or else its input; hidden = (1 - z) * n + z * hidden. reverse: from the last
    step to the first. clip: clamps the gates' inputs to ± clip."""
    d_input: int
    d_hidden: int
    bias: bool
    reset_after: bool
    batch_first: bool
    reverse: bool
    clip: float | None
    update_gate: GateController
    reset_gate: GateController
    new_gate: GateController
    def __init__(self, d_input: int, d_hidden: int, bias: bool = ..., reset_after: bool = ..., batch_first: bool = ..., reverse: bool = ..., clip: float | None = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def gates(self) -> tuple[GateController, ...]:
        """The GateControllers in the order of `functional.gru`: update, reset, new."""
    def forward(self, x: Tensor, state: Tensor | None = ...) -> tuple[Tensor, Tensor]:
        """x and `state` (batch, d_hidden), zeros if None -> (outputs, last state). Raises ShapeError if x does not
        fit."""

class BiGru(Module):
    """Two Gru layers, one reading forwards and one backwards: the same inputs and outputs as Gru, with hidden states of
    2 * d_hidden (forward first) and a state of (2, batch, d_hidden)."""
    d_input: int
    d_hidden: int
    bias: bool
    reset_after: bool
    batch_first: bool
    clip: float | None
    forward_layer: Gru
    reverse_layer: Gru
    def __init__(self, d_input: int, d_hidden: int, bias: bool = ..., reset_after: bool = ..., batch_first: bool = ..., clip: float | None = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor, state: Tensor | None = ...) -> tuple[Tensor, Tensor]:
        """x and `state` (2, batch, d_hidden), zeros if None -> (outputs, last state). Raises ShapeError if x does not
        fit."""

class Initializer:
    """Base of the initializers; subclass it and write `make(shape, dtype, backend, fan_in, fan_out)`."""
    def __call__(self, shape: Sequence[int], dtype: DType | str | None = ..., backend: Backend | str | None = ..., fans: tuple[int, int] | None = ...) -> Tensor: ...
    def make(self, shape: Sequence[int], dtype: DType | str, backend: Backend | str, fan_in: int, fan_out: int) -> Tensor:
        """The initial values: a Tensor of `shape` and `dtype` on `backend`. fan_in, fan_out: int."""

class Constant(Initializer):
    """Every element `value`."""
    value: float
    def __init__(self, value: float) -> None: ...
    def make(self, shape: Sequence[int], dtype: DType | str, backend: Backend | str, fan_in: int, fan_out: int) -> Tensor:
        """`value` in every element, as a Tensor of `shape` and `dtype` on `backend`. Raises ShapeError for a negative
        length."""

class Zeros(Constant):
    """Every element 0."""
    value: int
    def __init__(self) -> None: ...

class Ones(Constant):
    """Every element 1."""
    value: int
    def __init__(self) -> None: ...

class Uniform(Initializer):
    """Uniform over [low, high)."""
    low: float
    high: float
    def __init__(self, low: float = ..., high: float = ...) -> None: ...
    def make(self, shape: Sequence[int], dtype: DType | str, backend: Backend | str, fan_in: int, fan_out: int) -> Tensor:
        """Draws from [low, high), as a Tensor of `shape` and `dtype` on `backend`."""

class Normal(Initializer):
    """The normal distribution with the given mean and standard deviation."""
    mean: float
    std: float
    def __init__(self, mean: float = ..., std: float = ...) -> None: ...
    def make(self, shape: Sequence[int], dtype: DType | str, backend: Backend | str, fan_in: int, fan_out: int) -> Tensor:
        """Draws of the given mean and standard deviation, as a Tensor of `shape` and `dtype` on `backend`."""

class KaimingUniform(Initializer):
    """Uniform within ± gain * sqrt(3 / fan in), or fan out where fan_out_only (He et al. 2015)."""
    gain: float
    fan_out_only: bool
    def __init__(self, gain: float = ..., fan_out_only: bool = ...) -> None: ...
    def make(self, shape: Sequence[int], dtype: DType | str, backend: Backend | str, fan_in: int, fan_out: int) -> Tensor:
        """Uniform draws scaled by the fans (He et al. 2015), as a Tensor of `shape` and `dtype` on `backend`."""

class KaimingNormal(KaimingUniform):
    """Normal with standard deviation gain / sqrt(fan in), or fan out where fan_out_only (He et al. 2015)."""
    def make(self, shape: Sequence[int], dtype: DType | str, backend: Backend | str, fan_in: int, fan_out: int) -> Tensor:
        """Normal draws scaled by the fans (He et al. 2015), as a Tensor of `shape` and `dtype` on `backend`."""

class XavierUniform(Initializer):
    """Uniform within ± gain * sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    gain: float
    def __init__(self, gain: float = ...) -> None: ...
    def make(self, shape: Sequence[int], dtype: DType | str, backend: Backend | str, fan_in: int, fan_out: int) -> Tensor:
        """Uniform draws scaled by both fans (Glorot and Bengio 2010): a Tensor on `backend`."""

class XavierNormal(XavierUniform):
    """Normal with standard deviation gain * sqrt(2 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    def make(self, shape: Sequence[int], dtype: DType | str, backend: Backend | str, fan_in: int, fan_out: int) -> Tensor:
        """Normal draws scaled by both fans (Glorot and Bengio 2010): a Tensor on `backend`."""

class Orthogonal(Initializer):
    """gain times a random matrix (the first axis by all others) with orthonormal rows, or orthonormal columns if there
    are more rows than columns (Saxe et al. 2014). Raises ShapeError for a shape of fewer than two axes."""
    gain: float
    def __init__(self, gain: float = ...) -> None: ...
    def make(self, shape: Sequence[int], dtype: DType | str, backend: Backend | str, fan_in: int, fan_out: int) -> Tensor:
        """A matrix with orthonormal rows or columns (Saxe et al. 2013), as a Tensor of `shape` and `dtype` on
        `backend`."""

class _Interpolate(Module):
    output_size: tuple[int, ...] | None
    scale_factor: float | Sequence[float] | None
    mode: str
    align_corners: bool
    def __init__(self, output_size: int | Sequence[int] | None = ..., scale_factor: float | Sequence[float] | None = ..., mode: str = ..., align_corners: bool = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...

class Interpolate1d(_Interpolate):
    """x (n, c, length) resized to output_size or by scale_factor. mode: "nearest", "linear" or "cubic"; align_corners:
    the first and last elements keep their values (not for nearest)."""
    pass

class Interpolate2d(_Interpolate):
    """x (n, c, height, width) resized to output_size or by scale_factor, a number or one per axis. mode: "nearest",
    "linear" (along both axes) or "cubic"; align_corners: the corners keep their values (not for nearest)."""
    pass

class LayerNorm(Module):
    """Zero mean and unit variance over the last axes, those of `normalized_shape` (an int or a tuple), then * weight
    + bias. weight, bias: of that shape; bias is None if `bias` is False, both are None if `affine` is False."""
    normalized_shape: tuple[int, ...]
    epsilon: float
    weight: Param | None
    bias: Param | None
    def __init__(self, normalized_shape: int | Sequence[int], epsilon: float = ..., affine: bool = ..., bias: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (…, *normalized_shape) -> the same shape and dtype. Raises ShapeError for other last axes."""

class Linear(Module):
    """y = x @ weight + bias for x of shape (…, d_input) -> (…, d_output).

    weight: (d_input, d_output), Burn's layout and the transpose of PyTorch's; bias: (d_output,) or None.
    Both are uniform within ±1 / sqrt(d_input) unless an `initializer` is given (emberlet.nn.initializer)."""
    d_input: int
    d_output: int
    weight: Param
    bias: Param | None
    def __init__(self, d_input: int, d_output: int, bias: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (…, d_input) -> (…, d_output). Raises ShapeError for another last axis."""

class MseLoss(Module):
    """(prediction - target)²."""
    def forward(self, x: Tensor, targets: Tensor, reduction: str = ...) -> Tensor:
        """x and targets of one shape. Raises ShapeError if the shapes differ."""

class HuberLoss(Module):
    """Half the squared difference up to delta, delta * (|difference| - delta / 2) beyond."""
    delta: float
    def __init__(self, delta: float = ...) -> None: ...
    def forward(self, x: Tensor, targets: Tensor, reduction: str = ...) -> Tensor:
        """x and targets of one shape. Raises ShapeError if the shapes differ."""

class CrossEntropyLoss(Module):
    """-log of the probability of the target class: predictions (n, classes), targets (n,) of integers -> the mean.

    logits: whether predictions are logits instead of probabilities. pad_tokens: targets to ignore. weights: a number
    per class; the mean is weighted by those of the targets. smoothing: the probability that is spread over all classes."""
    pad_tokens: list[int]
    weights: Sequence[float]
    smoothing: float | None
    logits: bool
    def __init__(self, pad_tokens: Sequence[int] | None = ..., weights: Sequence[float] | None = ..., smoothing: float | None = ..., logits: bool = ...) -> None: ...
    def forward(self, x: Tensor, targets: Tensor, reduction: str = ...) -> Tensor:
        """x (n, classes) floats, targets (n,) integers; reduction: "mean", "sum" or "none". Raises ShapeError."""

class BinaryCrossEntropyLoss(Module):
    """-(t log p + (1 - t) log(1 - p)) for predictions p and targets t of one shape; logits: predictions are logits."""
    logits: bool
    def __init__(self, logits: bool = ...) -> None: ...
    def forward(self, x: Tensor, targets: Tensor, reduction: str = ...) -> Tensor:
        """x and targets of one shape. Raises ShapeError if the shapes differ."""

class LstmState:
    """cell, hidden: (batch, d_hidden); of a bidirectional layer (2, batch, d_hidden)."""
    cell: Tensor
    hidden: Tensor
    def __init__(self, cell: Tensor, hidden: Tensor) -> None: ...

class _Steps:
    pass

class Lstm(_Steps, Module):
    """x (batch, seq, d_input), or (seq, batch, d_input) if batch_first is False -> (the hidden states of all steps, in
    x's order of axes, the last LstmState). state: the initial LstmState, by default zeros.
    x, the outputs and the states may be without the batch.

    i, f, o = sigmoid of the input, forget and output gate, g = tanh of the cell gate (each a GateController);
    cell = f * cell + i * g; hidden = o * tanh(cell). reverse: from the last step to the first. clip: clamps the gates'
    inputs to ± clip. input_forget: f is 1 - i."""
    d_input: int
    d_hidden: int
    bias: bool
    batch_first: bool
    reverse: bool
    clip: float | None
    input_forget: bool
    input_gate: GateController
    forget_gate: GateController
    output_gate: GateController
    cell_gate: GateController
    def __init__(self, d_input: int, d_hidden: int, bias: bool = ..., batch_first: bool = ..., reverse: bool = ..., clip: float | None = ..., input_forget: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def gates(self) -> tuple[GateController, ...]:
        """The GateControllers in the order of `functional.lstm`: input, output, forget, cell."""
    def forward(self, x: Tensor, state: LstmState | None = ...) -> tuple[Tensor, LstmState]:
        """x and an LstmState, zeros if None -> (outputs, LstmState). Raises ShapeError if x does not fit."""

class BiLstm(_Steps, Module):
    """Two Lstm layers, one reading forwards and one backwards: the same inputs and outputs as Lstm, with hidden states
    of 2 * d_hidden (forward first) and a state of (2, batch, d_hidden)."""
    d_input: int
    d_hidden: int
    bias: bool
    batch_first: bool
    clip: float | None
    input_forget: bool
    forward_layer: Lstm
    reverse_layer: Lstm
    def __init__(self, d_input: int, d_hidden: int, bias: bool = ..., batch_first: bool = ..., clip: float | None = ..., input_forget: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor, state: LstmState | None = ...) -> tuple[Tensor, LstmState]:
        """x and an LstmState, zeros if None -> (outputs, LstmState). Raises ShapeError if x does not fit."""

class L1Loss(_Loss):
    """|prediction - target|."""
    pass

class SmoothL1Loss(_Loss):
    """difference² / (2 beta) below beta, |difference| - beta / 2 beyond."""
    beta: float
    def __init__(self, reduction: str = ..., beta: float = ...) -> None: ...

class MSELoss(_Loss):
    """(prediction - target)²; `MseLoss` with the reduction given once."""
    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        """x and targets of one shape -> a 0-D tensor, or with "none" that shape. Raises ShapeError."""

class BCELoss(_Loss):
    """`BinaryCrossEntropyLoss` of probabilities, with the reduction given once."""
    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        """x and targets of one shape -> a 0-D tensor, or with "none" that shape. Raises ShapeError."""

class BCEWithLogitsLoss(BCELoss):
    """`BinaryCrossEntropyLoss` of logits, with the reduction given once."""
    pass

class NLLLoss(_Loss):
    """-x at the target class, for log-probabilities x (n, classes, …) and integer targets (n, …). weight: a tensor
    (classes,); ignore_index: a target that is not counted."""
    weight: Tensor | None
    ignore_index: int
    def __init__(self, weight: Tensor | None = ..., ignore_index: int = ..., reduction: str = ...) -> None: ...
    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        """x (n, classes, …), targets (n, …) -> a 0-D tensor, or with "none" (n, …). Raises ShapeError."""

class KLDivLoss(_Loss):
    """target * (log target - x) for log-probabilities x. log_target: targets are log-probabilities too. reduction:
    also "batchmean", the sum divided by the first axis, which is the divergence."""
    reduction: str
    log_target: bool
    def __init__(self, reduction: str = ..., log_target: bool = ...) -> None: ...
    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        """x and targets of one shape -> a 0-D tensor, or with "none" that shape. Raises ShapeError."""

class PixelShuffle(Module):
    """x (n, c * r², h, w) -> (n, c, h * r, w * r): channels become pixels (Shi et al. 2016). r: upscale_factor."""
    upscale_factor: int
    def __init__(self, upscale_factor: int) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """Raises ShapeError unless r² divides the channels."""

class PixelUnshuffle(Module):
    """x (n, c, h * r, w * r) -> (n, c * r², h, w): the inverse of PixelShuffle. r: downscale_factor."""
    downscale_factor: int
    def __init__(self, downscale_factor: int) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """Raises ShapeError unless r divides the height and the width."""

class ChannelShuffle(Module):
    """x (n, c, *spatial) -> the same shape: channel i of group g becomes channel g of group i (Zhang et al. 2018)."""
    groups: int
    def __init__(self, groups: int) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """Raises ShapeError unless `groups` divides the channels."""

class Fold4d(Module):
    """x (n, c * taps, positions) -> (n, c, *output_size): windows summed back into an image, as Unfold4d made them."""
    output_size: tuple[int, ...]
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: str | tuple[tuple[int, int], ...]
    def __init__(self, output_size: int | Sequence[int], kernel_size: int | Sequence[int], stride: int | Sequence[int] = ..., padding: int | str | Sequence[int | tuple[int, int]] = ..., dilation: int | Sequence[int] = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """Raises ShapeError if the columns do not fit."""

class Softmax2d(Module):
    """softmax over the channels of x (n, c, h, w) or (c, h, w)."""
    def forward(self, x: Tensor) -> Tensor:
        """x -> the same shape. Raises ShapeError for another rank."""

class LocalResponseNorm(Module):
    """x (n, c, *spatial) divided by (k + alpha / size * the sum of squares over `size` neighboring channels) ** beta
    (Krizhevsky et al. 2012)."""
    size: int
    alpha: float
    beta: float
    k: float
    def __init__(self, size: int, alpha: float = ..., beta: float = ..., k: float = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x -> the same shape."""

class _Pool(Module):
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: str | tuple[tuple[int, int], ...]
    def forward(self, x: Tensor) -> Tensor:
        """x (n, c, *spatial) -> (n, c, *windows), or both without n. Raises ShapeError for another rank."""

class _MaxPool(_Pool):
    """The largest element of each window."""
    ceil_mode: bool
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = ..., padding: int | str | Sequence[int | tuple[int, int]] = ..., dilation: int | Sequence[int] = ..., ceil_mode: bool = ...) -> None: ...

class MaxPool1d(_MaxPool):
    """The largest element of each window of x (n, c, length)."""
    pass

class MaxPool2d(_MaxPool):
    """The largest element of each window of x (n, c, height, width)."""
    pass

class MaxPool3d(_MaxPool):
    """The largest element of each window of x (n, c, depth, height, width)."""
    pass

class _AvgPool(_Pool):
    """The mean of each window; count_include_pad: include padding, as zeros."""
    count_include_pad: bool
    ceil_mode: bool
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = ..., padding: int | str | Sequence[int | tuple[int, int]] = ..., count_include_pad: bool = ..., ceil_mode: bool = ..., dilation: int | Sequence[int] = ...) -> None: ...

class AvgPool1d(_AvgPool):
    """The mean of each window of x (n, c, length)."""
    pass

class AvgPool2d(_AvgPool):
    """The mean of each window of x (n, c, height, width)."""
    pass

class AvgPool3d(_AvgPool):
    """The mean of each window of x (n, c, depth, height, width)."""
    pass

class _AdaptiveAvgPool(_Pool):
    """Means of windows that divide each spatial axis as evenly as possible into output_size parts: a number, or one
    for each axis, where None keeps the length."""
    output_size: int | Sequence[int | None]
    def __init__(self, output_size: int | Sequence[int | None]) -> None: ...

class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """x (n, c, length) -> (n, c, output_size): means of windows of nearly equal size."""
    pass

class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """x (n, c, height, width) -> (n, c, *output_size): means of windows of nearly equal size."""
    pass

class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """x (n, c, depth, height, width) -> (n, c, *output_size): means of windows of nearly equal size."""
    pass

class _AdaptiveMaxPool(_AdaptiveAvgPool):
    """Largest elements of windows that divide each spatial axis as evenly as possible into output_size parts."""
    pass

class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """x (n, c, length) -> (n, c, output_size): largest elements of windows of nearly equal size."""
    pass

class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """x (n, c, height, width) -> (n, c, *output_size): largest elements of windows of nearly equal size."""
    pass

class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """x (n, c, depth, height, width) -> (n, c, *output_size): largest elements of windows of nearly equal size."""
    pass

class _LPPool(_Pool):
    """The sum of the p-th powers of each window, to the power 1 / p; p: norm_type. Powers of x, not of |x|, as in
    PyTorch."""
    norm_type: float
    ceil_mode: bool
    def __init__(self, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = ..., ceil_mode: bool = ...) -> None: ...

class LPPool1d(_LPPool):
    """LPPool of x (n, c, length)."""
    pass

class LPPool2d(_LPPool):
    """LPPool of x (n, c, height, width)."""
    pass

class LPPool3d(_LPPool):
    """LPPool of x (n, c, depth, height, width)."""
    pass

class _Encoding(Module):
    """A table that is computed on first use, once for each backend."""
    pass

class PositionalEncoding(_Encoding):
    """x + table for x (batch, seq, d_model): table[p][2i] = sin(p / max_timescale^(2i / d_model)), table[p][2i + 1] the
    cosine. Raises ShapeError for more than max_sequence_size steps."""
    d_model: int
    max_sequence_size: int
    max_timescale: int
    def __init__(self, d_model: int, max_sequence_size: int = ..., max_timescale: int = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (batch, seq, d_model) -> the same shape."""

class RotaryEncoding(_Encoding):
    """x (…, seq, d_model) with every pair of elements rotated by its position times theta^(-2i / d_model).

    A pair is (2i, 2i + 1) if interleaved, as in Burn, else (i, i + d_model / 2), as in GPT-NeoX and Llama. scaling: a
    function from a frequency (radians per step) to the one to use. Raises ShapeError for positions past
    max_sequence_length."""
    max_sequence_length: int
    d_model: int
    theta: float
    interleaved: bool
    scaling: Any | None
    def __init__(self, max_sequence_length: int, d_model: int, theta: float = ..., interleaved: bool = ..., scaling: Any | None = ...) -> None: ...
    def forward(self, x: Tensor, start: int = ...) -> Tensor:
        """start: the position of x's first step."""

class PRelu(Module):
    """max(0, x) + weight * min(0, x), one slope for all or one per channel (axis 1). weight: (num_parameters,)."""
    num_parameters: int
    weight: Param
    def __init__(self, num_parameters: int = ..., alpha: float = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (n, c, …) -> the same shape; c is num_parameters unless there is only one slope."""

class _QuantizedLayer:
    """What layers with a QuantizedWeight have in common, beside the float layer's class.

    `_grids` sets input and output: both None, or those of a layer that computes with integers."""
    @property
    def bits(self) -> int:
        """8, 4 or 2."""
    @property
    def block_size(self) -> int:
        """How many weights of an output, an output channel or an embedding share a scale."""
    def keeps(self, name: str) -> bool:
        """Whether `cast` leaves a parameter as it is: the bias of a layer of integers stands for integers."""

class QuantizedLinear(_QuantizedLayer, Linear):
    """A Linear with a QuantizedWeight, which products read a few columns at a time, on every backend.

    x (…, d_input) -> (…, d_output). bits: 8, 4 or 2; block_size: how many of an output's weights share a scale
    (None: all); affine: with zero points; input, without block_size: (scale, zero point) of the uint8 or int8 that
    it multiplies, to which it quantizes floats, or "dynamic", by the range of each call; output: (scale, zero
    point) of the uint8 that it gives, with a third for "int8", or for "float32" on that grid; None: floats.
    `Module.quantize_weights` makes these of Linear. Raises ArgumentError for other inputs and outputs, an output
    without (scale, zero point) of the input, and an input with a block_size."""
    d_input: int
    d_output: int
    weight: Any
    bias: Param | None
    def __init__(self, d_input: int, d_output: int, bias: bool = ..., bits: int = ..., block_size: int | None = ..., affine: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., input: Sequence[Any] | None = ..., output: Sequence[Any] | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (…, d_input) -> (…, d_output). Raises ShapeError for another last axis."""

class _QuantizedConv(_QuantizedLayer, Conv):
    """Base of the convolutions with a QuantizedWeight, which is dequantized when they run.

    bits: 8, 4 or 2; block_size: how many of an output channel's weights share a scale (None: all); affine: with zero
    points; input, output: as of QuantizedLinear; everything else as in Conv. `Module.quantize_weights` makes these of
    convolutions. Raises ArgumentError as QuantizedLinear does."""
    weight: Any
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = ..., padding: int | str | Sequence[int | tuple[int, int]] = ..., dilation: int | Sequence[int] = ..., groups: int = ..., bias: bool = ..., bits: int = ..., block_size: int | None = ..., affine: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., input: Sequence[Any] | None = ..., output: Sequence[Any] | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (n, in_channels, *spatial) -> (n, out_channels, *spatial'), or, of floats, both without n. Raises
        ShapeError if x does not fit."""

class QuantizedConv1d(_QuantizedConv):
    """x (n, in_channels, length)."""
    pass

class QuantizedConv2d(_QuantizedConv):
    """x (n, in_channels, height, width)."""
    pass

class QuantizedConv3d(_QuantizedConv):
    """x (n, in_channels, depth, height, width)."""
    pass

class QuantizedEmbedding(_QuantizedLayer, Embedding):
    """An Embedding with a QuantizedWeight, of which only the rows that are looked up are dequantized.

    bits: 8, 4 or 2; block_size: how many of a row's weights share a scale (None: all); affine: with zero points.
    `Module.quantize_weights` makes these of Embedding."""
    num_embeddings: int
    d_model: int
    weight: Any
    def __init__(self, num_embeddings: int, d_model: int, bits: int = ..., block_size: int | None = ..., affine: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (…) of integers -> (…, d_model), floats. python and numpy raise IndexingError for an index out of range."""

class _IntegerSteps:
    pass

class QuantizedLstm(_IntegerSteps, Lstm):
    """An Lstm with weights of 8 bits that multiplies integers: its input is quantized by the range of each call, its
    hidden state at each step, for each sequence by itself. All else is that of Lstm; com.microsoft
    DynamicQuantizeLSTM.

    Both transforms of each gate are a QuantizedLinear with input="dynamic"; affine: with zero points."""
    def __init__(self, d_input: int, d_hidden: int, bias: bool = ..., batch_first: bool = ..., reverse: bool = ..., clip: float | None = ..., input_forget: bool = ..., affine: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> None: ...

class QuantizedBiLstm(_IntegerSteps, BiLstm):
    """Two QuantizedLstm layers, one reading forwards and one backwards: inputs, outputs and states are those of
    BiLstm."""
    forward_layer: QuantizedLstm
    reverse_layer: QuantizedLstm
    def __init__(self, d_input: int, d_hidden: int, bias: bool = ..., batch_first: bool = ..., clip: float | None = ..., input_forget: bool = ..., affine: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> None: ...

class QuantizedWeight(Module):
    """A layer's weight in 8, 4 or 2 bits, in the place of its Param: `val()` returns the weight, dequantized.

    shape: that of the weight; axis: its axis of channels; scheme: the WeightScheme by which float weights are quantized
    as they load. values: uint8 (channels, blocks, block_size * bits / 8), the first level of a byte in its lowest bits,
    or (channels, blocks, block_size) in the scheme's float dtype; scale: (channels * blocks,) in the scheme's dtype, in
    blocks of two axes one for several channels; tensor_scale: None, or one float32 that all scales are multiplied
    by; zero_point: float32 (channels * blocks,), or None for symmetric weights; levels: None, or the float32 (16,) that
    the values number (nf4); input_scale: None, or float32 (d_input,), what each input of a dense layer is multiplied by
    before the product with the packed weight, 1 until it is set (AWQ). whole: zero points are uint8.
    `Module.quantize_weights` makes these. Raises ShapeError for a negative size."""
    shape: Sequence[int]
    axis: int
    scheme: Any
    dtype: Any
    count: Any
    bits: Any
    block_size: Any
    values: Param
    rows: Any
    scale: Param
    tensor_scale: Param | None
    zero_point: Param | None
    input_scale: Param | None
    levels: Param | None
    def __init__(self, shape: Sequence[int], axis: int = ..., scheme: Any | None = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., input_scale: bool = ..., whole: bool = ...) -> None: ...
    @staticmethod
    def of(param: Param, axis: int, scheme: Any, input_scale: bool = ...) -> QuantizedWeight:
        """The weight of a Param, quantized by a WeightScheme: when it is first used if the Param is lazy."""
    def quantized(self, weight: Tensor) -> dict[str, Tensor]:
        """A weight by this one's scheme: {"values", "scale"}, and "tensor_scale" and "zero_point" if it has them."""
    def set(self, weight: Tensor) -> QuantizedWeight:
        """Set another weight, a Tensor of `shape`, which is quantized now. Returns self."""
    def fill(self, weight: Tensor) -> QuantizedWeight:
        """`set` without a warning. Returns self."""
    def cast_values(self, dtype: DType | str) -> None:
        """Set the dtype of `val()`; the packed weight does not change (Module.cast)."""
    def scales(self) -> Tensor:
        """The scales, float32 (channels * blocks,)."""
    def val(self) -> Tensor:
        """The weight, dequantized."""
    def integers(self) -> tuple[Tensor, Any]:
        """(levels uint8 in the weight's shape, the level of zero: a number, or as many as channels), where a channel's
        weights have one scale."""

class FakeQuantizedWeight(Module):
    """A layer's weight that stays as it is, while the layer computes with it quantized and dequantized: for
    quantization-aware training, where the gradient passes straight through to the weight, and for measuring the loss of
    accuracy. It stands in the place of the weight's Param, `real`.

    axis: the weight's axis of channels; scheme: a WeightScheme, by default symmetric, 8 bits, one scale per channel."""
    real: Param
    axis: int
    scheme: Any
    shape: Any
    def __init__(self, real: Param, axis: int = ..., scheme: Any | None = ...) -> None: ...
    def val(self) -> Tensor:
        """The weight, quantized and dequantized."""

class LpLoss(_Loss):
    """|prediction - target| ** p."""
    p: float
    def __init__(self, p: float = ..., reduction: str = ...) -> None: ...

class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * x)) for targets of 1 and -1."""
    pass

class _Margin(_Loss):
    margin: float
    def __init__(self, margin: float = ..., reduction: str = ...) -> None: ...

class HingeEmbeddingLoss(_Margin):
    """x where the target is 1, max(0, margin - x) where it is -1; x is a distance."""
    pass

class PoissonNllLoss(_Loss):
    """-log of the Poisson distribution at the target, without its constant: exp(x) - target * x, or with log_input
    False x - target * log(x + epsilon). full: with Stirling's approximation of the constant, where targets exceed 1."""
    log_input: bool
    full: bool
    epsilon: float
    def __init__(self, log_input: bool = ..., full: bool = ..., epsilon: float = ..., reduction: str = ...) -> None: ...

class GaussianNLLLoss(_Loss):
    """(log var + (x - target)² / var) / 2, where var is at least epsilon; full: plus log(2π) / 2."""
    full: bool
    epsilon: float
    def __init__(self, full: bool = ..., epsilon: float = ..., reduction: str = ...) -> None: ...
    def forward(self, x: Tensor, targets: Tensor, var: Tensor) -> Tensor:  # type: ignore[override]
        """x, targets and var that broadcast -> a 0-D tensor, or with "none" their shape."""

class MarginRankingLoss(_Margin):
    """max(0, margin - target * (x1 - x2)) for targets of 1 (x1 should rank higher) and -1."""
    def __init__(self, margin: float = ..., reduction: str = ...) -> None: ...
    def forward(self, x1: Tensor, x2: Tensor, targets: Tensor) -> Tensor:  # type: ignore[override]
        """Three tensors of one shape -> a 0-D tensor, or with "none" that shape."""

class CosineEmbeddingLoss(_Margin):
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1."""
    def __init__(self, margin: float = ..., reduction: str = ...) -> None: ...
    def forward(self, x1: Tensor, x2: Tensor, targets: Tensor) -> Tensor:  # type: ignore[override]
        """x1, x2 (n, d) and targets (n,), or (d,) and () -> a 0-D tensor, or with "none" the shape of targets."""

class TripletMarginLoss(_Margin):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with the p-norm of differences + epsilon as d. swap:
    d(positive, negative) counts where it is smaller than d(anchor, negative)."""
    p: float
    epsilon: float
    swap: bool
    def __init__(self, margin: float = ..., p: float = ..., epsilon: float = ..., swap: bool = ..., reduction: str = ...) -> None: ...
    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:  # type: ignore[override]
        """Three tensors (…, d) -> a 0-D tensor, or with "none" (…)."""

class TripletMarginWithDistanceLoss(TripletMarginLoss):
    """TripletMarginLoss with another distance: a function of two tensors (…, d) that returns (…)."""
    distance_function: Callable[[Tensor, Tensor], Tensor] | None
    def __init__(self, distance_function: Callable[[Tensor, Tensor], Tensor] | None = ..., margin: float = ..., swap: bool = ..., reduction: str = ...) -> None: ...

class MultiMarginLoss(_Margin):
    """The sum over the other classes of max(0, margin - x[target] + x[class]) ** p, divided by the number of classes.
    weights: a number per class, which multiplies what is raised to p."""
    p: float
    weights: Tensor | None
    def __init__(self, p: float = ..., margin: float = ..., weights: Tensor | None = ..., reduction: str = ...) -> None: ...
    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        """x (n, classes) and integer targets (n,), or (classes,) and () -> a 0-D tensor, or with "none" (n,) or ()."""

class MultiLabelMarginLoss(_Loss):
    """The sum over the classes y of the targets and all other classes i of max(0, 1 - (x[y] - x[i])), divided by the
    number of classes. A row of targets has the classes in front and -1 behind them."""
    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        """x (n, classes) and integer targets of its shape, or (classes,) -> a 0-D tensor, or with "none" (n,) or ()."""

class MultiLabelSoftMarginLoss(_Loss):
    """The mean over the classes of -(target * log sigmoid(x) + (1 - target) * log sigmoid(-x)). weights: a tensor
    (classes,), a number per class."""
    weights: Tensor | None
    def __init__(self, weights: Tensor | None = ..., reduction: str = ...) -> None: ...
    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        """x (…, classes) and targets (0 or 1) of its shape -> a 0-D tensor, or with "none" (…)."""

class RmsNorm(Module):
    """x / sqrt(mean(x²) + epsilon) * weight over the last axis, of length d_model. weight: (d_model,)."""
    d_model: int
    epsilon: float
    weight: Param
    def __init__(self, d_model: int, epsilon: float = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (…, d_model) -> the same shape and dtype. Raises ShapeError for another last axis."""

class RnnState:
    """hidden: (batch, d_hidden); of a bidirectional layer (2, batch, d_hidden)."""
    hidden: Tensor
    def __init__(self, hidden: Tensor) -> None: ...

class Rnn(Module):
    """x (batch, seq, d_input), or (seq, batch, d_input) if batch_first is False -> (the hidden states of all steps, in
    x's order of axes, the last RnnState). state: the initial RnnState, by default zeros.
    x, the outputs and the states may be without the batch.

    hidden = activation of the gate (a GateController). hidden_activation: "Tanh", "Relu", "Sigmoid", "Softsign" or
    another of ONNX's names. reverse: from the last step to the first. clip: clamps the activation's input to ± clip."""
    d_input: int
    d_hidden: int
    bias: bool
    batch_first: bool
    reverse: bool
    clip: float | None
    hidden_activation: str
    gate: GateController
    def __init__(self, d_input: int, d_hidden: int, bias: bool = ..., batch_first: bool = ..., reverse: bool = ..., clip: float | None = ..., hidden_activation: str = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def gates(self) -> tuple[GateController, ...]:
        """The only GateController, in a list for `functional.rnn`."""
    def forward(self, x: Tensor, state: RnnState | None = ...) -> tuple[Tensor, RnnState]:
        """x and an RnnState, zeros if None -> (outputs, RnnState). Raises ShapeError if x does not fit."""

class BiRnn(Module):
    """Two Rnn layers, one reading forwards and one backwards: the same inputs and outputs as Rnn, with hidden states of
    2 * d_hidden (forward first) and a state of (2, batch, d_hidden)."""
    d_input: int
    d_hidden: int
    bias: bool
    batch_first: bool
    clip: float | None
    hidden_activation: str
    forward_layer: Rnn
    reverse_layer: Rnn
    def __init__(self, d_input: int, d_hidden: int, bias: bool = ..., batch_first: bool = ..., clip: float | None = ..., hidden_activation: str = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor, state: RnnState | None = ...) -> tuple[Tensor, RnnState]:
        """x and an RnnState, zeros if None -> (outputs, RnnState). Raises ShapeError if x does not fit."""

class Identity(Module):
    """x itself, whatever the arguments."""
    def __init__(self, *arguments: Any, **options: Any) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x -> x."""

class Flatten(Module):
    """Axes start_dim to end_dim (inclusive) merged into one."""
    start_dim: int
    end_dim: int
    def __init__(self, start_dim: int = ..., end_dim: int = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (a, …, b, …, c) -> (a, product of …, c)."""

class Unflatten(Module):
    """Axis `dim` as several axes of the sizes `unflattened_size`."""
    dim: int
    unflattened_size: Any
    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (…, n, …) -> (…, *unflattened_size, …)."""

class Upsample(Module):
    """x (n, c, *spatial) resized to `size` or by `scale_factor`. mode: "nearest", "linear", "bilinear", "bicubic" or
    "trilinear"; align_corners: the corners keep their values (not for nearest)."""
    size: int | Sequence[int] | None
    scale_factor: float | Sequence[float] | None
    mode: str
    align_corners: bool | None
    def __init__(self, size: int | Sequence[int] | None = ..., scale_factor: float | Sequence[float] | None = ..., mode: str = ..., align_corners: bool | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (n, c, *spatial) -> (n, c, *resized)."""

class _Pad(Module):
    """padding: an int for every side, or (low, high) of each spatial axis, the last axis first, as in PyTorch; a
    negative number removes elements."""
    padding: int | Sequence[int]
    def __init__(self, padding: int | Sequence[int]) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (n, c, *spatial), or without the batch -> the same, with padded spatial axes."""

class ZeroPad1d(_Pad):
    """Zeros around the last axis."""
    pass

class ZeroPad2d(_Pad):
    """Zeros around the last two axes."""
    pass

class ZeroPad3d(_Pad):
    """Zeros around the last three axes."""
    pass

class _ConstantPad(_Pad):
    value: float
    def __init__(self, padding: int | Sequence[int], value: float) -> None: ...

class ConstantPad1d(_ConstantPad):
    """`value` around the last axis."""
    pass

class ConstantPad2d(_ConstantPad):
    """`value` around the last two axes."""
    pass

class ConstantPad3d(_ConstantPad):
    """`value` around the last three axes."""
    pass

class ReflectionPad1d(_Pad):
    """The last axis mirrored at its ends, which are not repeated."""
    pass

class ReflectionPad2d(_Pad):
    """The last two axes mirrored at their ends, which are not repeated."""
    pass

class ReplicationPad1d(_Pad):
    """The ends of the last axis repeated."""
    pass

class ReplicationPad2d(_Pad):
    """The ends of the last two axes repeated."""
    pass

class ReplicationPad3d(_Pad):
    """The ends of the last three axes repeated."""
    pass

class CircularPad1d(_Pad):
    """The last axis continued from its other end."""
    pass

class CircularPad2d(_Pad):
    """The last two axes continued from their other ends."""
    pass

class CircularPad3d(_Pad):
    """The last three axes continued from their other ends."""
    pass

class ReflectionPad3d(_Pad):
    """The last three axes mirrored at their ends, which are not repeated."""
    pass

class SwiGlu(Module):
    """silu(linear_inner(x)) * linear_outer(x) for x (…, d_input) -> (…, d_output)."""
    d_input: int
    d_output: int
    bias: bool
    linear_inner: Linear
    linear_outer: Linear
    def __init__(self, d_input: int, d_output: int, bias: bool = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (…, d_input) -> (…, d_output). Raises ShapeError for another last axis."""

class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's memory, then the feed-forward layer, each with a residual connection.
    A norm follows each of them (norm_1, norm_2, norm_3 in that order) or, if norm_first, precedes it."""
    cross_attn: MultiHeadAttention
    self_attn: MultiHeadAttention
    pwff: PositionWiseFeedForward
    norm_1: LayerNorm
    norm_2: LayerNorm
    norm_3: LayerNorm
    dropout: Dropout
    norm_first: bool
    BURN_NAMES: Any
    def __init__(self, d_model: int, d_ff: int, n_heads: int, dropout: float = ..., norm_first: bool = ..., quiet_softmax: bool = ..., activation: Callable[[Tensor], Tensor] | None = ..., epsilon: float = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor, memory: Tensor, mask_pad: Tensor | None, mask_attn: Tensor | None, memory_mask_pad: Tensor | None, memory_mask_attn: Tensor | None, cache: tuple[AttentionCache, AttentionCache] | None) -> Tensor:
        """x (batch, seq, d_model), memory (batch, seq_m, d_model); masks are True at positions to ignore -> the shape
        of x."""

class TransformerDecoder(Module):
    """n_layers TransformerDecoderLayers: target (batch, seq, d_model) and memory (batch, seq_m, d_model) -> the
    target's shape.

    mask_pad (batch, seq), memory_mask_pad (batch, seq_m): True at padding; mask_attn (batch, seq, seq) or (seq, seq)
    and memory_mask_attn (batch, seq, seq_m) or (seq, seq_m): True hides a step from another. Self-attention is causal
    only with a causal mask_attn (`attention.causal_mask`) or with a cache."""
    d_model: int
    d_ff: int
    n_heads: int
    n_layers: int
    dropout: float
    norm_first: bool
    quiet_softmax: bool
    layers: list[TransformerDecoderLayer]
    def __init__(self, d_model: int, d_ff: int, n_heads: int, n_layers: int, dropout: float = ..., norm_first: bool = ..., quiet_softmax: bool = ..., activation: Callable[[Tensor], Tensor] | None = ..., epsilon: float = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def new_cache(self) -> list[tuple[AttentionCache, AttentionCache]]:
        """The cache for step-by-step generation: for each layer, the keys and values of the target and of the
        memory."""
    def forward(self, target: Tensor, memory: Tensor, mask_pad: Tensor | None = ..., mask_attn: Tensor | None = ..., memory_mask_pad: Tensor | None = ..., memory_mask_attn: Tensor | None = ..., cache: list[tuple[AttentionCache, AttentionCache]] | None = ...) -> Tensor:
        """With a cache (`new_cache()`), target holds only the new steps, which attend causally to themselves and all
        earlier ones; the memory's keys and values are computed in the first call."""

class PositionWiseFeedForward(Module):
    """linear_outer(activation(linear_inner(x))) for x (…, d_model), with d_ff hidden units. activation: Gelu by
    default."""
    d_model: int
    d_ff: int
    linear_inner: Linear
    linear_outer: Linear
    dropout: Dropout
    activation: Callable[[Tensor], Tensor]
    def __init__(self, d_model: int, d_ff: int, dropout: float = ..., activation: Callable[[Tensor], Tensor] | None = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (…, d_model) -> the same shape."""

class TransformerEncoderLayer(Module):
    """Self-attention, then the feed-forward layer, each with a residual connection. A norm follows each of them (norm_1
    the attention, norm_2 the feed-forward layer) or, if norm_first, precedes it."""
    mha: MultiHeadAttention
    pwff: PositionWiseFeedForward
    norm_1: LayerNorm
    norm_2: LayerNorm
    dropout: Dropout
    norm_first: bool
    BURN_NAMES: Any
    def __init__(self, d_model: int, d_ff: int, n_heads: int, dropout: float = ..., norm_first: bool = ..., quiet_softmax: bool = ..., activation: Callable[[Tensor], Tensor] | None = ..., epsilon: float = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def forward(self, x: Tensor, mask_pad: Tensor | None = ..., mask_attn: Tensor | None = ..., cache: AttentionCache | None = ...) -> Tensor:
        """x (batch, seq, d_model); masks are True at positions to ignore -> the same shape."""

class TransformerEncoder(Module):
    """n_layers TransformerEncoderLayers: x (batch, seq, d_model) -> the same shape.

    mask_pad (batch, seq): True at padding; mask_attn (batch, seq, seq) or (seq, seq): True hides a step from another."""
    d_model: int
    d_ff: int
    n_heads: int
    n_layers: int
    dropout: float
    norm_first: bool
    quiet_softmax: bool
    layers: list[TransformerEncoderLayer]
    def __init__(self, d_model: int, d_ff: int, n_heads: int, n_layers: int, dropout: float = ..., norm_first: bool = ..., quiet_softmax: bool = ..., activation: Callable[[Tensor], Tensor] | None = ..., epsilon: float = ..., dtype: DType | str | None = ..., backend: Backend | str | None = ..., initializer: Initializer | None = ...) -> None: ...
    def new_cache(self) -> list[AttentionCache]:
        """The cache for step-by-step generation: an AttentionCache for each layer."""
    def forward(self, x: Tensor, mask_pad: Tensor | None = ..., mask_attn: Tensor | None = ..., cache: list[AttentionCache] | None = ...) -> Tensor:
        """With a cache (`new_cache()`), x holds only the new steps, which attend causally to themselves and all earlier
        ones."""

class Unfold4d(Module):
    """x (n, c, h, w) -> (n, c * taps, positions): every window as a column."""
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: str | tuple[tuple[int, int], ...]
    def __init__(self, kernel_size: int | Sequence[int], stride: int | Sequence[int] = ..., padding: int | str | Sequence[int | tuple[int, int]] = ..., dilation: int | Sequence[int] = ...) -> None: ...
    def forward(self, x: Tensor) -> Tensor:
        """x (n, c, h, w) -> (n, c * taps, positions). Raises ShapeError for another rank."""

def causal_mask(seq_q: int, seq_k: int, backend: Backend | str | None = ...) -> Tensor:
    """(seq_q, seq_k) bool that hides from each query the keys after it; the last query sees every key."""

def pad_mask(lengths: Tensor, seq: int) -> Tensor:
    """(batch, seq) bool, True at the padding after the first lengths[i] steps of row i. lengths: (batch,) integers."""

BatchNorm1d = BatchNorm

BatchNorm2d = BatchNorm

BatchNorm3d = BatchNorm
