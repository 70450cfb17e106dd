"""An omitted argument has the default of ONNX's operator, or else of PyTorch's, NumPy's or Burn's function: the call
without it gives the same result as the call with it."""

from __future__ import annotations

import inspect
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.interface.declarations import read
from support.rows import every

DRAW = np.random.default_rng(5)


def floats(*shape: int, low: float = -2.0, high: float = 2.0) -> Any:
    return F.asarray(DRAW.uniform(low, high, shape).astype(np.float32), backend="numpy")


def integers(*shape: int, low: int = 0, high: int = 9, dtype: str = "int64") -> Any:
    return F.asarray(DRAW.integers(low, high, shape).astype(dtype), backend="numpy")


X = floats(3, 4)
DEEP = floats(2, 3, 4)
LINE = floats(2, 4, 9)
IMAGE = floats(2, 4, 9, 9)
VOLUME = floats(1, 2, 5, 5, 5)
SMALL = floats(2, 4, 3, 3) * 1e-2  # so that an epsilon makes a difference
COUNTS = integers(4, 4)
BYTES = integers(4, 64, high=256, dtype="uint8")
ROIS = F.asarray([[0.3, 0.2, 7.2, 6.1], [1.0, 2.0, 3.0, 9.0]], backend="numpy")
KERNEL1, KERNEL2, KERNEL3 = floats(4, 4, 3), floats(4, 4, 3, 3), floats(2, 2, 3, 3, 3)
HEADS = floats(1, 2, 3, 4)
STEPS, W4, R4 = floats(3, 2, 5), floats(1, 16, 5), floats(1, 16, 4)
QKV = floats(1, 3, 8)
TIMES, WORDS = F.log_softmax(LINE.permute(2, 0, 1)), F.asarray([[1, 2], [3, 3]], backend="numpy")

# The call without the arguments; the arguments.
CALLS = """
adagrad(0.1, 3, X, X * 1e-4, X * X * 1e-9) | norm_coefficient=0.0, epsilon=1e-6, decay_factor=0.0
adam(0.1, 3, X, X, X, X * X) | alpha=0.9, beta=0.999, norm_coefficient=0.0, norm_coefficient_post=0.0, epsilon=1e-6
adam(0.1, 3, X, X * 1e-4, X * 1e-4, X * X * 1e-9) | epsilon=1e-6
adaptive_avg_pool(IMAGE, 2) |
affine_grid(floats(2, 2, 3), (2, 3, 4, 5)) | align_corners=False
all(X > 0) | axis=None, keepdims=False
all_close(F.asarray([1.0, 2.0, 0.0]), F.asarray([1.0000105, 2.0, 0.0])) | rtol=1e-5, atol=1e-8
all_close(F.asarray([1.0, 0.0]), F.asarray([1.0, 1.5e-8])) | rtol=1e-5, atol=1e-8
all_close(F.asarray([1.0, 2.0, 0.0]), F.asarray([1.000015, 2.0, 0.0])) | rtol=1e-5, atol=1e-8
all_close(F.asarray([1.0, float("nan")]), F.asarray([1.0, float("nan")])) | equal_nan=False
any(X > 5) | axis=None, keepdims=False
arange(7) | stop=None, step=1
arange(2, 7) | step=1
argmax(X) | axis=None, keepdims=False
argmin(X) | axis=None, keepdims=False
argsort(X) | axis=-1, descending=False, stable=True
argsort_descending(X) | axis=-1
argtopk(X, 2) | axis=-1, largest=True
attention(HEADS, HEADS, HEADS) | is_causal=False, softcap=0.0
attention_outputs(HEADS, HEADS, HEADS, scores_output=2) | is_causal=False, softcap=0.0
avg_pool(IMAGE, 3, padding=1) | dilation=1, ceil_mode=False, count_include_pad=True
avg_pool(IMAGE, 2) | stride=2, padding=0, dilation=1, ceil_mode=False
avg_pool1d(LINE, 3, padding=1) | dilation=1, ceil_mode=False, count_include_pad=True
avg_pool1d(LINE, 2) | stride=2, padding=0, dilation=1, ceil_mode=False
avg_pool2d(IMAGE, 3, padding=1) | dilation=1, ceil_mode=False, count_include_pad=True
avg_pool2d(IMAGE, 2) | stride=2, padding=0, dilation=1, ceil_mode=False
avg_pool3d(VOLUME, 3, padding=1) | dilation=1, ceil_mode=False, count_include_pad=True
avg_pool3d(VOLUME, 2) | stride=2, padding=0, dilation=1, ceil_mode=False
ctc_loss(TIMES, WORDS, [9, 2], [2, 2]) | blank=0, reduction="mean"
ctc_loss(TIMES, WORDS, [9, 2], [2, 2]) | zero_infinity=False
rnnt_loss(IMAGE[:, :, :3], WORDS[:, :2], [4, 4], [2, 1]) | blank=0, reduction="mean", fused_log_softmax=True
average(X) | axis=None, keepdims=False
convolve(X[0], X[1]) | mode="full"
digitize(X, F.asarray([-1.0, 0.0, 1.0], backend="numpy")) | right=False
geomspace(1.0, 9.0) | num=50, endpoint=True
gradient(X) | spacing=1.0, axis=None
logspace(1.0, 2.0) | num=50, base=10.0, endpoint=True
array_split(X, 2) | axis=0
ptp(X) | axis=None, keepdims=False
rot90(X) | times=1, axes=(0, 1)
round(X) | decimals=0
tri(3) | k=0
tril(X) | k=0
tril_indices(3) | k=0
trapezoid(X) | dx=1.0, axis=-1
triu_indices(3) | k=0
vander(X[0]) | increasing=False
istft(F.stft(LINE[0], 1, frame_length=4), 1) | onesided=True
sliding_windows(X, 1, 2) | step=1
batch_norm(SMALL, floats(4), F.asarray([1e-5, 1e-4, 0.0, 1.0], backend="numpy")) | epsilon=1e-5
bincount(COUNTS[0]) | minlength=0
blackman_window(6) | periodic=True
cast(floats(5, high=1000.0), "float8_e4m3fn") | saturate=True
cast(floats(9, low=0.1), "float8_e8m0fnu") | saturate=True, round_mode="up"
cat([X, X]) | axis=0
celu(X) | alpha=1.0
chunk(X, 2) | axis=0
col2im(floats(1, 8, 9), (4, 4), 2) | stride=1, padding=0, dilation=1
concat([X, X]) | axis=0
conv(IMAGE, KERNEL2) | stride=1, padding=0, dilation=1, groups=1
conv1d(LINE, KERNEL1) | stride=1, padding=0, dilation=1, groups=1
conv2d(IMAGE, KERNEL2) | stride=1, padding=0, dilation=1, groups=1
conv3d(VOLUME, KERNEL3) | stride=1, padding=0, dilation=1, groups=1
conv_integer(integers(1, 2, 7, 7, dtype="uint8"), integers(2, 2, 3, 3, dtype="uint8")) \
    | stride=1, padding=0, dilation=1, groups=1
conv_transpose(IMAGE, KERNEL2) | stride=1, padding=0, output_padding=0, dilation=1, groups=1
conv_transpose1d(LINE, KERNEL1) | stride=1, padding=0, output_padding=0, dilation=1, groups=1
conv_transpose2d(IMAGE, KERNEL2) | stride=1, padding=0, output_padding=0, dilation=1, groups=1
conv_transpose3d(VOLUME, KERNEL3) | stride=1, padding=0, output_padding=0, dilation=1, groups=1
corrcoef(X) | rowvar=True
count_nonzero(COUNTS) | axis=None, keepdims=False
cov(X) | correction=1.0, rowvar=True
cross(floats(2, 3), floats(2, 3)) | axis=-1
cross_entropy(X, integers(3, high=4)) | ignore_index=None, reduction="mean"
cummax(COUNTS) | axis=-1
cummin(COUNTS) | axis=-1
cumprod(X) | axis=-1
cumsum(COUNTS) | axis=-1, exclusive=False, reverse=False
cumulative_prod(COUNTS[0]) | include_initial=False
cumulative_sum(COUNTS[0]) | include_initial=False
deform_conv(IMAGE, KERNEL2, floats(2, 18, 7, 7)) | stride=1, padding=0, dilation=1, groups=1, offset_groups=1
depth_to_space(IMAGE, 2) | mode="DCR"
dequantize_linear(BYTES[:, :4], F.asarray([0.1, 0.2, 0.3, 0.4], backend="numpy")) | axis=1, block_size=0
dequantize_nbits(BYTES, floats(4 * 4), rows=128, columns=4) | bits=4, block_size=32
dft(floats(2, 6, 3, 2)) | length=3, axis=-2, inverse=False, onesided=False
diag(X) | k=0
diag_mask((3, 4)) | diagonal=0
diff(COUNTS) | axis=-1, n=1
dropout_with_mask(X, seed=3, training=True) | ratio=0.5
dropout_with_mask(X, seed=3) | training=True
elu(X) | alpha=1.0
expand_dims(X) | axis=0
eye(3) | n_cols=3, k=0, dtype="float32"
eye_like(X) | k=0
flatten(DEEP) | start_dim=0, end_dim=-1
fold(floats(1, 8, 9), (4, 4), 2) | stride=1, padding=0, dilation=1
gather_block_quantized(BYTES, integers(3, high=4), floats(4, 1)) \
    | gather_axis=0, quantize_axis=-1, block_size=128, bits=4
gather_nd(integers(2, 3), integers(2, 2, high=2)) | batch_dims=0
gelu(X) | approximate="none"
gemm(X, X.mT) | alpha=1.0, beta=1.0, trans_a=False, trans_b=False
gemm(X, X.mT, X[:, :3]) | alpha=1.0, beta=1.0
glu(X) | axis=-1
grid_sample(IMAGE, floats(2, 3, 3, 2, low=-1.2, high=1.2)) | mode="linear", padding_mode="zeros", align_corners=False
group_norm(SMALL, 2) | epsilon=1e-5
group_query_attention(QKV, QKV, QKV, None, None, F.asarray([2]), 3, num_heads=2, kv_num_heads=2, cos=floats(9, 2), \
    sin=floats(9, 2)) | softcap=0.0, window=-1, interleaved=False
group_query_attention(QKV, QKV, QKV, None, None, F.asarray([2]), 3, num_heads=2, kv_num_heads=2, \
    q_norm=floats(4) * 1e-2, k_norm=floats(4)) | softcap=0.0
group_query_attention(QKV * 1e-3, QKV * 1e-3, QKV, None, None, F.asarray([2]), 3, num_heads=2, kv_num_heads=2, \
    q_norm=floats(4), k_norm=floats(4)) | epsilon=1e-6
gru(STEPS, W4[:, :12], R4[:, :12], floats(1, 24)) \
    | direction="forward", alphas=(), betas=(), clip=0.0, linear_before_reset=False, batch_first=False
hamming_window(6) | periodic=True
hann_window(6) | periodic=True
hard_shrink(X) | lambd=0.5
hard_sigmoid(X) | alpha=0.2, beta=0.5
hardmax(X) | axis=-1
hardtanh(X) | min_value=-1.0, max_value=1.0
histogram(X) | bins=10, density=False
im2col(IMAGE, 2) | stride=1, padding=0, dilation=1
instance_norm(SMALL) | epsilon=1e-5
interpolate(IMAGE, 5) | mode="nearest", align_corners=False
interpolate(IMAGE, 5, mode="linear") | align_corners=False
is_close(F.asarray([1.0, 0.0]), F.asarray([1.000015, 1.5e-8])) | rtol=1e-5, atol=1e-8, equal_nan=False
is_close(F.asarray([1.0, 0.0]), F.asarray([1.000008, 0.8e-8])) | rtol=1e-5, atol=1e-8
is_close(F.asarray([float("nan")]), F.asarray([float("nan")])) | equal_nan=False
isin(COUNTS, F.asarray([1, 2])) | invert=False
layer_norm(SMALL) | epsilon=1e-5, axis=-1
leaky_relu(X) | negative_slope=0.01
linspace(0.0, 1.0, 5) | endpoint=True
local_response_norm(IMAGE * 20, 3) | alpha=1e-4, beta=0.75, bias=1.0, before=1
log_softmax(X) | axis=-1
logsumexp(X) | axis=None, keepdims=False
lp_normalize(X) | p=2, axis=-1, epsilon=0.0
lp_pool(IMAGE, 3) | stride=3, padding=0, dilation=1, ceil_mode=False, p=2
lstm(STEPS, W4, R4, floats(1, 32)) \
    | direction="forward", alphas=(), betas=(), clip=0.0, input_forget=False, batch_first=False
masked_mean(DEEP, F.zeros((2, 3), backend="numpy") + 1e-10) | least=1e-9
matmul_nbits(floats(2, 128), BYTES, floats(4 * 4), rows=128, columns=4) | bits=4, block_size=32
max(X) | axis=None, keepdims=False
max_pool(IMAGE, 2) | stride=2, padding=0, dilation=1, ceil_mode=False
max_pool1d(LINE, 2) | stride=2, padding=0, dilation=1, ceil_mode=False
max_pool2d(IMAGE, 2) | stride=2, padding=0, dilation=1, ceil_mode=False
max_pool3d(VOLUME, 2) | stride=2, padding=0, dilation=1, ceil_mode=False
max_pool_with_indices(IMAGE, 2) | stride=2, padding=0, dilation=1, ceil_mode=False
max_roi_pool(IMAGE, F.asarray([[0, 1, 1, 5, 5]], dtype="float32", backend="numpy"), (2, 2)) | spatial_scale=1.0
max_unpool(floats(1, 1, 2, 2), F.asarray([[[[0, 1], [3, 4]]]]), 2) | stride=1, padding=0
max_with_indices(X) | axis=-1, keepdims=True
mean(X) | axis=None, keepdims=False
mean_variance_norm(SMALL * 1e-6) | axes=(0, 2, 3), epsilon=1e-9
median(X) | axis=None, keepdims=False
median_with_indices(X) | axis=-1, keepdims=True
meshgrid(COUNTS[0], COUNTS[1, :2]) | indexing="xy"
min(X) | axis=None, keepdims=False
min_with_indices(X) | axis=-1, keepdims=True
momentum(0.1, 3, X, X, X, 0.9, 0.5) | norm_coefficient=0.0, nesterov=False
multi_head_attention(QKV, QKV, QKV, num_heads=2, mask=F.asarray([[1, 1, 0]])) \
    | is_causal=False, mask_filter_value=-10000.0
multi_head_attention(QKV, QKV, QKV, num_heads=2, mask=F.asarray([[0, 0, 0]])) | mask_filter_value=-10000.0
multinomial(floats(2, 5, low=0.1), seed=4) | count=1, replacement=False
nan_to_num(F.asarray([1.0, float("nan")])) | nan=0.0
nanmax(X) | axis=None, keepdims=False
nanmean(X) | axis=None, keepdims=False
nanmedian(X) | axis=None, keepdims=False
nanmin(X) | axis=None, keepdims=False
nanprod(X) | axis=None, keepdims=False
nanquantile(X, 0.3) | axis=None, keepdims=False
nanstd(X) | axis=None, correction=0.0, keepdims=False
nansum(X) | axis=None, keepdims=False
nanvar(X) | axis=None, correction=0.0, keepdims=False
nll_loss(X, integers(3, high=4)) | ignore_index=None, reduction="mean"
non_max_suppression(floats(1, 5, 4, low=0.0), floats(1, 1, 5), 3) | iou_threshold=0.0, center_point_box=False
non_max_suppression(floats(1, 5, 4, low=0.0), floats(1, 1, 5)) | max_output_boxes_per_class=0
norm(X) | p=2, axis=None, keepdims=False
normal((20,), seed=3) | mean=0.0, std=1.0
one_hot(integers(5, high=4), 4) | axis=-1, off_value=0, on_value=1
one_hot_encode(integers(5), [1, 3, 5]) | unknown="zeros"
pad(X, [(1, 1), (0, 2)]) | value=0, mode="constant"
pad_axes(X, [1, 2, 0, 1]) | value=0, mode="constant"
percentile(X, 30) | axis=None, keepdims=False, method='linear'
prod(X) | axis=None, keepdims=False
qgemm(BYTES[:, :3], 0.1, 3, BYTES[:3], 0.2, 1) | alpha=1.0, trans_a=False, trans_b=False
quantile(X, 0.3) | axis=None, keepdims=False, method='linear'
quantize_linear(X, F.asarray([0.1, 0.2, 0.3, 0.4], backend="numpy")) | axis=1, block_size=0, dtype="uint8"
quantize_linear(X * 1e4, 1.0, dtype="float8_e4m3fn") | saturate=True
quiet_softmax(X) | axis=-1
randint(9, shape=(20,), seed=3) | dtype="int64"
randint(9, seed=3) | shape=()
random((20,), seed=3) | distribution="uniform"
random((20,), "normal", seed=3) |
random_like(X, seed=3) | distribution="uniform"
repeat(X, 2) | axis=None
resize(IMAGE[:, :, :, :5], (1, 1, 1.7, 2.5)) \
    | mode="nearest", coordinates="half_pixel", nearest_mode="round_prefer_floor"
resize(IMAGE, (1, 1, 0.6, 1.7), mode="cubic") | cubic_coeff_a=-0.75, exclude_outside=False, antialias=False
resize(IMAGE, (1, 1, 0.6, 1.7), mode="linear", coordinates="tf_crop_and_resize", roi=(0, 0, 0, 0, 1, 1, 1.5, 1.5)) \
    | extrapolation_value=0.0
resize(IMAGE, sizes=(2, 4, 5, 7)) | keep_aspect_ratio_policy="stretch"
reverse_sequence(DEEP, F.asarray([1, 2, 2])) | batch_axis=1, time_axis=0
rms_norm(SMALL) | epsilon=1e-5, axis=-1
rnn(STEPS, W4[:, :4], R4[:, :4], floats(1, 8)) | direction="forward", alphas=(), betas=(), clip=0.0, batch_first=False
roi_align(IMAGE, ROIS, F.asarray([0, 1])) \
    | output_size=(1, 1), spatial_scale=1.0, sampling_ratio=0, mode="avg", half_pixel=True
rotary_embedding(HEADS, floats(9, 2), floats(9, 2)) | interleaved=False, rotary_dim=0
scatter(X, 0, integers(3, 4, high=3), X) | reduction="add"
scatter_nd(X, F.asarray([[0], [0]]), X[:2]) | reduction="none"
searchsorted(F.asarray([1, 2, 2, 3]), F.asarray([2, 3])) | side="left"
self_attention(QKV, floats(8, 24), num_heads=2, mask=F.asarray([[1, 1, 0]])) \
    | is_causal=False, mask_filter_value=-10000.0
self_attention(QKV, floats(8, 24), num_heads=2, mask=F.asarray([[0, 0, 0]])) | mask_filter_value=-10000.0
selu(X) | alpha=1.67326319217681884765625, gamma=1.05070102214813232421875
sequence_erase([X, X + 1]) | position=-1
shrink(X) | lambd=0.5, bias=0.0
soft_shrink(X) | lambd=0.5
softmax(X) | axis=-1
softmin(X) | axis=-1
softplus(X) | beta=1.0
sort(X) | axis=-1, descending=False, stable=True
sort_descending(X) | axis=-1
sort_with_indices(X) | axis=-1, descending=False
split(X[:2], 2) | axis=0
split_to_sequence(X) | axis=0, keepdims=True
stack([X, X]) | axis=0
std(X) | axis=None, correction=0.0, keepdims=False
stft(floats(1, 20), 4, frame_length=8) | onesided=True
sum(X) | axis=None, keepdims=False
svm_kernel(X, X) | kind="linear", gamma=0.0, coef0=0.0, degree=0
svm_kernel(X, X, "poly", 0.5) | coef0=0.0, degree=0
svm_kernel(X, X, "rbf") | gamma=0.0
swiglu(X, X) | alpha=1.0
swish(X) | alpha=1.0
take_along_axis(X, integers(3, 2, high=4)) | axis=-1
tensor_scatter(floats(2, 2, 5, 3), floats(2, 2, 2, 3)) | axis=-2, mode="linear"
tensordot(DEEP, DEEP.permute(1, 2, 0)) | axes=2
thresholded_relu(X) | alpha=1.0
topk(X, 2) | axis=-1, largest=True
topk_with_indices(X, 2) | axis=-1, largest=True
trace(X) | k=0
tril(X) | k=0
tril_mask((3, 4)) | diagonal=0
triu(X) | k=0
triu_mask((3, 4)) | diagonal=0
unfold(IMAGE, 2) | stride=1, padding=0, dilation=1
uniform((20,), seed=3) | low=0.0, high=1.0
unique(COUNTS) | axis=None, sorted=True
unique_rows(F.asarray([[3, 1], [1, 2], [3, 1]])) | ordered=True
unsqueeze(X) | axis=0
unstack(X) | axis=0
var(X) | axis=None, correction=0.0, keepdims=False
var_mean(X) | axis=None, correction=0.0, keepdims=False
vecdot(X, X) | axis=-1
vector_norm(X) | axis=None, keepdims=False, ord=2
""".replace("\\\n", "")
ROWS = {}
for line in CALLS.strip().splitlines():
    call, _, left_out = line.partition("|")
    ROWS[" ".join(call.split())] = left_out.strip()


def numbers(found: Any) -> Any:
    if isinstance(found, (tuple, list)):
        return [numbers(x) for x in found]
    return (found.dtype.name, found.shape, found.tolist()) if isinstance(found, emberlet.Tensor) else found


@every("call", ROWS)
def test_a_call_without_arguments_equals_the_one_with_their_defaults(call: str) -> None:
    global DRAW
    found = []
    for text in (call, f"{call[:-1]}, {ROWS[call]})"):
        DRAW = np.random.default_rng(11)  # the same numbers for both
        found.append(repr(numbers(eval(f"F.{text}", globals()))))
    assert found[0] == found[1]


# The defaults from ONNX's table of activations of RNN, GRU and LSTM; if it has none, from the operator.
ACTIVATIONS = {
    "LeakyRelu": ((0.01,), ()), "ThresholdedRelu": ((1.0,), ()), "HardSigmoid": ((0.2,), (0.5,)), "Elu": ((1.0,), ()),
    "Affine": ((1.0,), (0.0,)), "ScaledTanh": ((1.0,), (1.0,)),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_by_name_has_the_parameters_of_onnx(name: str) -> None:
    alphas, betas = [list(values) for values in ACTIVATIONS[name]]
    short, whole = F.activation(name), F.activation(name, alphas, betas)
    assert numbers(short(X)) == numbers(whole(X))


# Arguments whose default None stands for a choice or depends on others, and functions of strings and tables.
OTHERS = {
    "activation", "astype", "backward", "grad", "require_grad", "set_require_grad", "value_and_grad",
    "string_normalizer", "tokenize", "tree_ensemble",
    "qlinear_conv",
    "dynamic_quantize_lstm", "linear_attention", "flex_attention", "decode_image",
}  # fmt: skip


def test_every_function_with_defaults_has_a_call() -> None:
    called = {call.partition("(")[0] for call in ROWS}
    missing = []
    for declaration in read():
        if declaration.kind in ("method", "function") and declaration.name not in called | OTHERS:
            parameters = inspect.signature(getattr(F, declaration.name)).parameters.values()
            if any(p.default not in (p.empty, None) for p in parameters):
                missing.append(declaration.name)
    assert not missing
