"""Arguments that do not fit together are refused, whichever of a function's conditions they break; those just within
are taken."""

from __future__ import annotations

import re
from typing import Any

import pytest
from emberlet import errors
from emberlet import functional as F
from emberlet.functional.quantized import weights
from support.rows import every


def Z(*shape: int, dtype: str = "float32") -> Any:
    return F.zeros(shape, dtype=dtype, backend="numpy")


def I(*values: int) -> Any:  # noqa: E743
    return F.asarray(list(values), backend="numpy")


BYTES = {"dtype": "uint8"}
HEADS = Z(1, 2, 3, 4)
W3, R3 = Z(1, 12, 5), Z(1, 12, 3)

# A call -> the error's class and words of it.
REFUSED = r"""
asarray("1.5", dtype="float32") -> DType: strings
asarray("a", dtype="int64") -> DType: strings
asarray([["1.5"]], dtype="float32") -> DType: strings
asarray(["a"], dtype="bool") -> DType: strings
Z(2).quantize("wavelet") -> Unsupported: wavelet
Z(2).quantize("float32") -> DType: float32
activation("Softer") -> Unsupported: unknown activation 'Softer'
add(Z(2, dtype="bool"), Z(2, dtype="bool")) -> DType: not defined for bool
add(F.asarray(["a"]), F.asarray(["b"])) -> DType: not defined for string
add(Z(2, 3), Z(4)) -> Shape: (4,)
add(Z(2, dtype="uint8"), 300) -> DType: 300
negative(Z(2, dtype="bool")) -> DType: bool
tile(Z(2, 3), (-1, 2)) -> Shape: no negative sizes, found (-1, 2)
zeros((1.5, 2)) -> Shape: must hold integers, found (1.5, 2)
eye(-1) -> Shape: no negative sizes, found (-1, -1)
stack([]) -> Shape: at least one tensor
roll(Z(3), "1") -> DType: shifts by integers
roll(Z(3), None) -> DType: shifts by integers
narrow(Z(2, 3), 2, 0, 1) -> Axis: axis 2
narrow(Z(2, 3), 1, -4, 1) -> Shape: do not lie in axis 1
narrow(Z(2, 3), 1, -2, 3) -> Shape: do not lie in axis 1
narrow(Z(2, 3), 1, 0, -1) -> Shape: do not lie in axis 1
narrow(Z(2, 3), 1, 2, 2) -> Shape: do not lie in axis 1
narrow(Z(2, 3), 1, 4, 0) -> Shape: do not lie in axis 1
split_to_sequence(Z(5, 2), I(2, 2)) -> Shape: does not add up to the 5
split_to_sequence(Z(5, 2), 0) -> Shape: must be positive
repeat(Z(2, 3), I(1, -1), axis=0) -> Shape: no negative sizes
expand(Z(1, 3), -2, 3) -> Shape: no negative sizes
expand(Z(3, 1), 4, 4) -> Shape: broadcast
conv1d(Z(1, 2, 5, 5), Z(3, 2, 3, 3)) -> Shape: conv1d
flatten(Z(2, 3), 1, 0) -> Shape: start_dim
resize(Z(2, 3), (1, 2), mode="x") -> Value: 'x'
subtract(F.asarray(["a"]), F.asarray(["b"])) -> DType: not defined for string
multiply(Z(2, dtype="uint64"), Z(2, dtype="int8")) -> DType: no integer dtype holds both
sum(F.asarray(["a"])) -> DType: not defined for string
prod(F.asarray(["a"])) -> DType: not defined for string
max(Z(2, 0), axis=1) -> Shape: over axis 1 of length 0
min(Z(0)) -> Shape: over axis 0 of length 0
argmax(Z(2, 0), axis=1) -> Shape: of an empty tensor
argmin(Z(2, 0)) -> Shape: of an empty tensor
argmax(F.asarray(["a"])) -> DType: not defined for string
cummax(Z(2, dtype="bool")) -> DType: not defined for bool
diff(Z(2, dtype="bool")) -> DType: not defined for bool
relu(F.asarray(["a"])) -> DType: not defined for string
exp(F.asarray(["a"])) -> DType: found strings
roi_align(Z(1, 2, 4), Z(3, 4), I(0, 0, 0)) -> Shape: roi_align needs
roi_align(Z(1, 2, 4, 4), Z(3), I(0, 0, 0)) -> Shape: roi_align needs
roi_align(Z(1, 2, 4, 4), Z(3, 5), I(0, 0, 0)) -> Shape: roi_align needs
roi_align(Z(1, 2, 4, 4), Z(3, 4), I(0, 0, 1)) -> Indexing: outside axis 0
dft(Z(4), axis=0) -> Shape: dft: the last axis
dft(Z(4)) -> Shape: outside
dft(Z(4, 3)) -> Shape: dft: the last axis
dft(Z(4, 2), axis=1) -> Shape: dft: the last axis
stft(Z(1, 8), 2) -> Shape: stft needs frame_length
stft(Z(1, 8), 2, frame_length=9) -> Shape: one frame needs 9
stft(Z(1, 8), 2, frame_length=0) -> Shape: found frame_length 0
stft(Z(1, 8), 2, frame_length=-4) -> Shape: found frame_length -4
stft(Z(1, 8), 2, Z(0)) -> Shape: found frame_length 0
stft(Z(1, 8), 2, Z(5), 4) -> Shape: a window of 5 samples does not fit into frames of 4
istft(Z(1, 3, 3, 2), 2, Z(5), 4) -> Shape: a window of 5 samples does not fit into frames of 4
mel_weight_matrix(0, 16, 8000, 0.0, 4000.0) -> Shape: cannot be made
mel_weight_matrix(1 << 20, 1 << 12, 8000, 0.0, 4000.0) -> Shape: cannot be made
random((2,), "gamma") -> Value: distribution is
nll_loss(Z(2, 3), I(1, 3)) -> Indexing: target 3 is not one of 3 classes
nll_loss(Z(2, 3), I(1, 3), Z(2)) -> Shape: not one for each of 3 classes
nll_loss(Z(2, 3), I(1, 3), reduction="median") -> Argument: reduction is
nll_loss(Z(2, 3), I(-1, 0)) -> Indexing: target -1 is not one of 3 classes
nll_loss(Z(2, 3, 4), I(1, 2)) -> Shape: do not fit targets
nll_loss(Z(2, 3), I(1, 2), Z(3, 1)) -> Shape: not one for each of 3 classes
result_type("string", "int8") -> DType: string and int8 do not mix
result_type("int8", "string") -> DType: string and int8 do not mix
result_type("uint64", "int64") -> DType: no integer dtype holds both
einsum("ij,jk", Z(2, 3), Z(3)) -> Shape: does not name the axes
einsum("i...->i", Z()) -> Shape: does not name the axes
einsum("...i,...i->i", Z(2, 3), Z(4, 3)) -> Shape: lengths
affine_grid(Z(2, 2, 4), (2, 1, 4, 4)) -> Shape: affine_grid
adaptive_max_pool1d(Z(2, 3), 1) -> Shape: 1d pooling needs
max_pool1d(Z(1, 1, 3, 3), 2) -> Shape: 1d pooling needs
max_pool2d(Z(1, 1, 3), 2) -> Shape: 2d pooling needs
max_pool3d(Z(1, 1, 3, 3), 2) -> Shape: 3d pooling needs
avg_pool1d(Z(1, 1, 3, 3), 2) -> Shape: 1d pooling needs
avg_pool2d(Z(1, 1, 3), 2) -> Shape: 2d pooling needs
avg_pool3d(Z(1, 1, 3, 3), 2) -> Shape: 3d pooling needs
adaptive_avg_pool1d(Z(1, 1, 3, 3), 2) -> Shape: 1d pooling needs
adaptive_avg_pool2d(Z(1, 1, 3), 2) -> Shape: 2d pooling needs
adaptive_max_pool2d(Z(1, 1, 3), 2) -> Shape: 2d pooling needs
conv(Z(1, 2, 5), Z(3, 2, 3), padding="some") -> Shape: padding is 'same'
max_pool(Z(1, 2, 5), 3, padding="some") -> Shape: padding is 'same'
interpolate(Z(1, 1, 4), (2,), None, "lanczos") -> Value: 'lanczos'
resize(Z(4), (2.0,), nearest_mode="up") -> Value: 'up'
resize(Z(4), sizes=(2,), keep_aspect_ratio_policy="larger") -> Value: 'larger'
resize(Z(4), (2.0,), mode="linear", coordinates="corners") -> Value: 'corners'
grid_sample(Z(1, 1, 3, 3), Z(1, 2, 2, 2), padding_mode="wrap") -> Shape: 'wrap'
roi_align(Z(1, 1, 3, 3), Z(1, 4), I(0), mode="mean") -> Value: 'mean'
depth_to_space(Z(1, 4, 2, 2), 2, "RDC") -> Value: 'RDC'
tensor_scatter(Z(1, 3, 2), Z(1, 1, 2), axis=1, mode="ring") -> Value: 'ring'
cast(Z(2), "float8_e8m0fnu", round_mode="even") -> Value: 'even'
cast(Z(2), "float32", round_mode="even") -> Value: 'even'
gelu(Z(3), "sigmoid") -> Value: 'sigmoid'
as_attention(HEADS, softmax_dtype="bool") -> DType: softmax is not defined for bool
flex_attention(HEADS, HEADS, HEADS, softmax_dtype="int32") -> DType: softmax is not defined for int32
as_attention(Z(1, 3, 6), num_heads=4) -> Shape: does not divide into 4 heads
as_attention(Z(1, 3, 6)) -> Shape: needs num_heads
as_attention(HEADS, Z(2, 2, 3, 4)) -> Shape: do not match
as_attention(HEADS, Z(1, 2, 3, 5)) -> Shape: do not match
as_attention(HEADS, Z(1, 3, 3, 4)) -> Shape: do not match
as_attention(HEADS, Z(1, 0, 3, 4)) -> Shape: do not match
as_attention(HEADS, HEADS, Z(1, 2, 4, 4)) -> Shape: do not match
as_attention(HEADS, HEADS, Z(1, 1, 3, 4)) -> Shape: do not match
as_attention(HEADS, HEADS, Z(2, 2, 3, 4)) -> Shape: do not match
as_attention(HEADS, past_key=HEADS) -> Shape: past_key and past_value together
as_attention(HEADS, past_value=HEADS) -> Shape: past_key and past_value together
as_attention(HEADS, past_key=HEADS, past_value=HEADS, kv_lengths=I(2)) -> Shape: not together with kv_lengths
adaptive_avg_pool(Z(1, 1, 4), 65541) -> Shape: into 65541 parts
affine_grid(Z(2, 2, 2), (2, 1, 4, 4)) -> Shape: affine_grid
affine_grid(Z(2, 3), (2, 1, 4, 4)) -> Shape: affine_grid
arange(0, 5, 0) -> Shape: has no length
arange(0.0, float("inf")) -> Shape: has no length
arange(float("nan"), 5.0) -> Shape: has no length
asarray([[1, 2], [3]]) -> Shape: 1
asarray([[1, 2], 3]) -> Shape: nested
asarray([1, [2, 3]]) -> Shape: nested
batch_norm(Z(3), Z(3), Z(3)) -> Shape: batch_norm needs
batch_norm(Z(2, 3), Z(3), Z(2)) -> Shape: one value per channel
batch_norm(Z(2, 3), Z(3), Z(3), Z(3), Z(2)) -> Shape: one value per channel
bitcast(Z(3), "int64") -> DType: 32 bits cannot become 64 bits
bitwise_and(Z(3), Z(3)) -> DType: integers
broadcast_to(Z(2, 3), (3, 2)) -> Shape: broadcast
broadcast_to(Z(2, 3), (3,)) -> Shape: does not broadcast
broadcast_to(Z(1), (-1,)) -> Shape: no negative sizes
causal_conv(Z(1, 3), Z(3, 1, 2)) -> Shape: does not fit weight
causal_conv(Z(1, 3, 5), Z(3, 1)) -> Shape: does not fit weight
causal_conv(Z(1, 3, 5), Z(3, 2, 2)) -> Shape: does not fit weight
causal_conv(Z(1, 3, 5), Z(2, 1, 2)) -> Shape: does not fit weight
causal_conv(Z(1, 3, 5), Z(3, 1, 2), activation="relu") -> Value: activation is None or 'silu'
chunk(Z(3), 0) -> Shape: at least 1
col2im(Z(1, 8), (4, 4), 2) -> Shape: do not fold
col2im(Z(1, 7, 9), (4, 4), 2) -> Shape: do not fold
col2im(Z(1, 8, 8), (4, 4), 2) -> Shape: do not fold
col2im(Z(1, 2, 6), (9,), 2, padding=-1) -> Shape: padding must be at least 0
col2im(Z(1, 1, 9), (-11,), 1, padding=10) -> Shape: col2im has no negative sizes, found (-11,)
center_crop_pad(Z(2, 3), (-1, 3)) -> Shape: no negative sizes
center_crop_pad(Z(2, 3), (3,), axes=[2]) -> Axis: axis 2 is outside
col2im(Z(1, 8, 9), (4, 4), 0) -> Shape: kernel_size must be at least 1, found (0, 0)
conv_transpose(Z(1, 2, 5), Z(2, 3, 2), stride=0) -> Shape: stride must be at least 1, found (0,)
im2col(Z(1, 2, 5), 2, dilation=0) -> Shape: dilation must be at least 1, found (0,)
layer_norm(Z(2, 3), F.asarray(["a", "b", "c"])) -> DType: expected numbers, found strings
svm_kernel(Z(2, 3), Z(4, 3), "cubic") -> Value: kind is 'linear', 'poly', 'rbf' or 'sigmoid'
tfidf(I(1, 2), [1, 2], [0], [0, 1], [], "IDFTF", 1, 1, 0) -> Value: mode is 'TF', 'IDF' or 'TFIDF'
string_normalizer(F.asarray(["a"]), "TITLE") -> Value: case_change is 'LOWER', 'UPPER' or None
one_hot_encode(I(1, 2), [1], "one") -> Value: unknown is 'zeros' or 'error'
concat([Z(2, 3), Z(3, 3)], axis=1) -> Shape: do not join
concat([Z(2, 3), Z(2, 4)], axis=0) -> Shape: do not join
concat([]) -> Shape: at least one tensor
conv(Z(1, 2), Z(2, 2)) -> Shape: conv
conv(Z(1, 2, 5), Z(2, 2)) -> Shape: conv
conv(Z(1, 2, 5), Z(2, 2, 3, 3)) -> Shape: conv
conv(Z(1, 4, 5), Z(3, 2, 3), groups=2) -> Shape: groups
conv(Z(1, 4, 5), Z(4, 4, 3), groups=2) -> Shape: groups
conv(Z(1, 2, 5), Z(3, 2, 3), Z(2)) -> Shape: bias
conv(Z(1, 2, 5), Z(3, 2, 3), padding=(1, 1)) -> Shape: padding
conv(Z(1, 2, 5), Z(3, 2, 3), stride=(1, 1)) -> Shape: stride
conv(Z(1, 2, 5), Z(3, 2, 6)) -> Shape: kernel
conv(Z(1, 2, 5), Z(3, 2, 3), dilation=3) -> Shape: kernel
conv_integer(Z(1, 2, **BYTES), Z(1, 2, **BYTES)) -> Shape: does not fit weight
conv_integer(Z(1, 2, 5, **BYTES), Z(1, 2, 3, 3, **BYTES)) -> Shape: does not fit weight
conv_integer(Z(1, 2, 5, **BYTES), Z(4, 1, 3, **BYTES)) -> Shape: does not fit weight
conv_integer(Z(1, 2, 5, **BYTES), Z(3, 1, 3, **BYTES), groups=2) -> Shape: does not fit weight
conv_integer(Z(1, 2, 5, **BYTES), Z(3, 2, 3, **BYTES), Z(3, 1, 1, **BYTES)) -> Shape: zero point
conv_integer(Z(1, 2, 5, **BYTES), Z(3, 2, 3, **BYTES), padding=-2) -> Shape: kernel
conv_integer(Z(1, 2, 5), Z(1, 2, 3, **BYTES)) -> DType: at most 8 bits
conv_integer(Z(1, 2, 5, dtype="int16"), Z(1, 2, 3, **BYTES)) -> DType: at most 8 bits
conv_transpose(Z(1, 2), Z(2, 1)) -> Shape: does not fit weight
conv_transpose(Z(1, 2, 5), Z(2, 1, 3, 3)) -> Shape: does not fit weight
conv_transpose(Z(1, 2, 5), Z(3, 1, 3)) -> Shape: does not fit weight
conv_transpose(Z(1, 3, 5), Z(3, 1, 3), groups=2) -> Shape: does not fit weight
conv_transpose(Z(1, 2, 5), Z(2, 1, 3), padding=4) -> Shape: empty output
conv_transpose(Z(1, 2, 5), Z(2, 1, 3), Z(2)) -> Shape: does not fit 1 channels
conv_transpose(Z(1, 2, 5), Z(2, 1, 3), Z(1), groups=2) -> Shape: does not fit 2 channels
conv_transpose1d(Z(1, 2, 5, 5), Z(2, 1, 3, 3)) -> Shape: 1d needs 1
conv_transpose2d(Z(1, 2, 5), Z(2, 1, 3)) -> Shape: 2d needs 2
conv_transpose3d(Z(1, 2, 5), Z(2, 1, 3)) -> Shape: 3d needs 3
conv2d(Z(1, 2, 5), Z(2, 1, 3)) -> Shape: 2d needs
conv3d(Z(1, 2, 5), Z(2, 1, 3)) -> Shape: 3d needs
cumulative_sum(Z(2, 3)) -> Shape: axis must be given
deform_conv(Z(1, 4, 5, 5), Z(3, 4, 3, 3), Z(1, 17, 3, 3)) -> Shape: do not fit
deform_conv(Z(1, 4, 5, 5), Z(3, 4, 3, 3), Z(1, 54, 3, 3), offset_groups=3) -> Shape: do not fit
deform_conv(Z(1, 4, 5, 5), Z(3, 3, 3, 3), Z(1, 18, 3, 3)) -> Shape: do not fit
deform_conv(Z(1, 4, 5, 5), Z(3, 4, 3, 3), Z(1, 18, 3, 3), groups=2) -> Shape: do not fit
deform_conv(Z(1, 4, 5, 5), Z(3, 2, 3, 3), Z(1, 18, 3, 3), groups=2) -> Shape: do not fit
depth_to_space(Z(1, 6, 2, 2), 2) -> Shape: do not divide into blocks
dequantize_nbits(Z(64, **BYTES), Z(3), rows=32, columns=4) -> Shape: are not 4 columns
det(Z(3)) -> Shape: square matrices
det(Z(2, 3)) -> Shape: square matrices
einsum("ij,jk->ik", Z(2, 3)) -> Shape: names
einsum("ij->ji", Z(2, 3, 4)) -> Shape: does not name the axes
einsum("ijk->i", Z(2, 3)) -> Shape: does not name the axes
einsum("i1->i", Z(2, 3)) -> Shape: does not name the axes
einsum("ii->i", Z(2, 3)) -> Shape: lengths 2 and 3
einsum("ij,jk->ik", Z(2, 3), Z(4, 5)) -> Shape: lengths
einsum("ij->ii", Z(2, 3)) -> Shape: the result names
einsum("ij->ik", Z(2, 3)) -> Shape: the result names
expand(Z(3), -1, 3) -> Shape: keeps an axis
expand(Z(2, 3), -1) -> Shape: keeps an axis
eye_like(Z(3)) -> Shape: needs 2 axes
finfo("int8") -> DType: finfo is for floating
full((2,), 300, dtype="uint8") -> DType: 300
full((2,), -1, dtype="uint8") -> DType: -1
full((-1,), 0) -> Shape: no negative sizes
gather(Z(2, 3), 0, I(1)) -> Shape: do not have the 2 axes
gather(Z(2, 3), 0, Z(1, 4, dtype="int64")) -> Shape: reach beyond axis 1
gather(Z(2, 3), 0, Z(1, 3)) -> DType: indices are integers
gather_block_quantized(Z(4, 8, **BYTES), I(0), Z(4, 1), gather_axis=1) -> Shape: cannot gather along
gather_block_quantized(Z(4, 8, **BYTES), I(0), Z(1, 16), gather_axis=1, quantize_axis=0) -> Shape: cannot gather
gather_nd(Z(2, 3), Z(1, 3, dtype="int64")) -> Shape: do not fit
gather_nd(Z(2, 3), Z(3, 1, dtype="int64"), batch_dims=1) -> Shape: do not fit
gather_nd(Z(2, 3), Z(2, 2, dtype="int64"), batch_dims=1) -> Shape: do not fit
gather_nd(Z(2, 3), F.asarray(1)) -> Shape: do not fit
gather_nd(Z(2, 3), Z(1, 1)) -> DType: gather_nd: indices
grid_sample(Z(1, 2), Z(1, 0)) -> Shape: grid_sample
grid_sample(Z(1, 2, 4, 4), Z(1, 3, 2)) -> Shape: grid_sample
grid_sample(Z(1, 2, 4, 4), Z(1, 3, 3, 3)) -> Shape: grid_sample
grid_sample(Z(2, 2, 4, 4), Z(1, 3, 3, 2)) -> Shape: grid_sample
grid_sample(Z(1, 2, 4, 4), Z(1, 3, 3, 2), "area") -> Shape: 'area'
group_norm(Z(3), 1) -> Shape: do not divide into 1 groups
group_norm(Z(2, 4), 3) -> Shape: do not divide into 3 groups
group_norm(Z(2, 4), 0) -> Shape: do not divide into 0 groups
im2col(Z(1, 1, 3, 3), 4) -> Shape: no window
im2col(Z(1, 1, 5), 2, padding=-1) -> Shape: padding must be at least 0
im2col(Z(1, 1, 5), 2, padding=[(2, -1)]) -> Shape: padding must be at least 0
im2col(Z(1, 1, 3, 3), (2, 0)) -> Shape: kernel_size must be at least 1, found (2, 0)
instance_norm(Z(3)) -> Shape: 2 axes or more
interpolate(Z(1, 1, 4)) -> Value: either size or scale_factor
interpolate(Z(1, 1, 4), 2, 2.0) -> Value: either size or scale_factor
interpolate(Z(1, 1, 4), (2, 3)) -> Shape: sizes or scales for 1 axes
layer_norm(Z(2, 3), Z(2)) -> Shape: broadcast
layer_norm(Z(2, 3), Z(3), Z(4, 2, 3)) -> Shape: does not fit an input
linear(Z(2, 3), Z(3)) -> Shape: linear
linear(F.asarray(1.0), Z(3, 4)) -> Shape: linear
linear(Z(2, 3), Z(4, 2)) -> Shape: linear
linear(Z(2, 3), Z(3, 3)) -> Shape: pass layout='pytorch' or layout='burn'
linear(Z(2, 3), Z(3, 3), layout='x') -> Argument: layout is 'burn', 'pytorch' or None
linear_attention(Z(1, 2, 4), Z(1, 2, 4), Z(1, 2, 4), num_heads=2, kv_num_heads=2, update_rule="none") -> Value: one of
linear_attention(Z(1, 2, 4), Z(1, 2, 4), Z(1, 2, 4), num_heads=2, kv_num_heads=2, update_rule="gated") -> Shape: a decay
linear_attention(Z(1, 2, 4), Z(1, 2, 4), Z(1, 2, 4), num_heads=2, kv_num_heads=2, update_rule="delta") -> Shape: a beta
linear_attention(Z(1, 2, 6), Z(1, 2, 4), Z(1, 2, 4), num_heads=3, kv_num_heads=2, update_rule="linear") -> Shape: heads
linspace(0.0, 1.0, -1) -> Shape: no negative sizes
local_response_norm(Z(3), 3) -> Shape: local_response_norm
local_response_norm(Z(2, 3), 0) -> Shape: local_response_norm
lp_pool(Z(2, 3), 1) -> Shape: pool
masked_mean(Z(3), Z(3)) -> Shape: masked_mean needs
masked_mean(Z(2, 3, 4), Z(2, 4)) -> Shape: masked_mean needs
matmul(F.asarray(1.0), Z(3)) -> Shape: at least one axis
matmul(Z(3), F.asarray(1.0)) -> Shape: at least one axis
matmul(Z(2, 3), Z(2, 3)) -> Shape: 3 columns do not match 2 rows
matmul_nbits(F.asarray(1.0), Z(64, **BYTES), Z(4), rows=32, columns=4) -> Shape: does not fit a weight
matrix_transpose(Z(3)) -> Shape: at least 2 axes
max_pool(Z(1, 1, 3), 5, padding=0, ceil_mode=False) -> Shape: kernel
max_pool(Z(1, 1, 3), 5, 2, ceil_mode=True) -> Shape: kernel
max_pool(Z(1, 1, 3), 5, 3) -> Shape: kernel
meshgrid(Z(2), indexing="yx") -> Value: 'yx'
moveaxis(Z(2, 3), (0, 1), (0,)) -> Shape: 2 sources and 1 destinations
moveaxis(Z(2, 3), (0, 0), (0, 1)) -> Shape: twice
moveaxis(Z(2, 3), (0, 1), (1, 1)) -> Shape: twice
nextafter(Z(3, dtype="float16"), Z(3, dtype="float16")) -> DType: float32 and float64
nll_loss(Z(3), I(1, 2, 0)) -> Shape: do not fit targets
nll_loss(Z(2, 3), I(1, 2), reduction="average") -> Value: 'average'
nonzero(F.asarray(1.0)) -> Shape: at least one axis
one_against_one(Z(2, 3), 2) -> Shape: 2 classes want
one_against_one(Z(3), 3) -> Shape: 3 classes want
one_against_one(Z(2, 0), 0) -> Shape: 0 classes want
one_hot(I(1), -1) -> Shape: must not be negative
one_hot_encode(I(7), [1, 2], "error") -> Indexing: 7 is not one of the 2
map_to_tensor({2: 1.0}, "float32", 2) -> Indexing: outside [0, 2)
map_to_tensor({-1: 1.0}, "float32", 2) -> Indexing: outside [0, 2)
zip_map(Z(2, 3), ["a", "b"]) -> Shape: zip_map takes
zip_map(Z(1, 2, 2), ["a", "b"]) -> Shape: zip_map takes
pad(Z(2, 3), [(1, 1)]) -> Shape: for each of 2 axes
pad(Z(2, 0), [(0, 0), (1, 1)], mode="edge") -> Shape: empty axis 1
pad(Z(2, 3), [(0, 0), (1, 1)], mode="mirror") -> Value: 'mirror'
pad(Z(2, dtype="uint8"), [(1, 1)], 256) -> DType: 256
pad_axes(Z(2, 3), [1, 1], [0, 1]) -> Shape: got 1 values for 2 axes
permute_dims(Z(2, 3), (0, 0)) -> Shape: not a permutation
permute_dims(Z(2, 3), (0,)) -> Shape: not a permutation
prelu(Z(2, 3), Z(4, 2, 3)) -> Shape: does not broadcast
qlinear_conv(Z(1, 2, 5, **BYTES), 1.0, 0, Z(3, 2, 2, **BYTES), 1.0, 0, 1.0, 0, I(1)) -> Shape: does not fit 3 channels
quantize_linear(Z(2, 3), Z(2)) -> Shape: do not fit axis 1
quantize_linear(Z(2, 3), Z(3, 1)) -> Shape: do not fit axis 1
quantize_linear(Z(2, 4), Z(2), block_size=2) -> Shape: blocked scales have the rank
quantize_linear(Z(2, 3), 1.0, dtype="int64") -> DType: cannot quantize to int64
randint(5, 5) -> Shape: different numbers
randint(0, (1 << 32) + 1) -> Shape: different numbers
randint(300, dtype="uint8") -> DType: 299
repeat(Z(3), I(1, 2)) -> Shape: 2 repeats for axis 0
repeat(Z(3), -1) -> Shape: no negative sizes
reshape(Z(2, 3), (-1, -1)) -> Shape: cannot reshape
reshape(Z(2, 3), (4, -1)) -> Shape: cannot reshape
reshape(Z(2, 3), (0, -1)) -> Shape: cannot reshape
reshape(Z(2, 3), (5,)) -> Shape: cannot reshape
reshape(Z(2, 3), (-1, -3)) -> Shape: cannot reshape
reshape(Z(2, 3), (-2, -3)) -> Shape: cannot reshape
reshape(Z(6), (-1, -2, -3)) -> Shape: cannot reshape
resize(Z(1, 4)) -> Value: either scales or sizes
resize(Z(1, 4), (1, 2), (1, 8)) -> Value: either scales or sizes
resize(Z(1, 4), (2,)) -> Shape: for 2 axes
resize(Z(1, 4), sizes=(1, -1)) -> Shape: sizes lie between
resize(Z(1, 4), sizes=(1, (1 << 24) + 1)) -> Shape: sizes lie between
resize(Z(1, 0), sizes=(1, 2)) -> Shape: out of an empty axis
resize(Z(1, 4), (1, 2), mode="area") -> Value: 'area'
result_type(1, 2.0) -> Value: at least one
reverse_sequence(Z(3, 2), I(1)) -> Shape: do not fit
reverse_sequence(Z(3, 3), I(1, 2, 3), 1, 1) -> Shape: do not fit
reverse_sequence(Z(3, 2), I(1, 4)) -> Indexing: there are 3 steps
reverse_sequence(Z(3, 2), I(-1, 3)) -> Indexing: there are 3 steps
rnn(Z(2, 1, 5), W3, R3) -> Shape: does not fit
gru(Z(2, 1, 4), Z(1, 9, 5), Z(1, 9, 3)) -> Shape: does not fit
lstm(Z(2, 1, 5), W3, R3, Z(1, 23)) -> Shape: does not fit
lstm(Z(2, 5), W3, R3) -> Shape: does not fit
lstm(Z(2, 1, 5), W3, Z(1, 12, 4)) -> Shape: does not fit
lstm(Z(2, 1, 5), W3, R3, direction="bidirectional") -> Shape: does not fit
lstm(Z(2, 1, 5), W3, R3, direction="both") -> Shape: direction is
lstm(Z(2, 1, 5), W3, R3, initial_h=Z(1, 2, 3)) -> Shape: an initial state
lstm(Z(2, 1, 5), W3, R3, initial_c=Z(1, 1, 4)) -> Shape: an initial state
lstm(Z(2, 1, 5), W3, R3, peepholes=Z(1, 8)) -> Shape: peepholes
lstm(Z(2, 1, 5), W3, R3, activations=["Tanh"]) -> Shape: expected
roll(Z(3, 3), (1, 2, 3), (0, 1)) -> Shape: a shift for each axis
roll(Z(3), 1.5) -> DType: shifts by integers
rotary_embedding(Z(2, 4), Z(3, 2), Z(3, 2)) -> Shape: expected 3 or 4 axes
rotary_embedding(Z(1, 3, 6), Z(3, 2), Z(3, 2), num_heads=4) -> Shape: does not divide into 4 heads
rotary_embedding(HEADS, Z(3, 2), Z(3, 1)) -> Shape: do not fit
rotary_embedding(HEADS, Z(3, 1), Z(3, 1)) -> Shape: do not fit
rotary_embedding(HEADS, Z(3, 3), Z(3, 3), rotary_dim=6) -> Shape: do not fit
scatter(Z(3), 0, I(0, 1), Z(3)) -> Shape: do not fit indices
scatter_nd(Z(2, 3), I(1, 0), Z(3)) -> Shape: do not fit indices
searchsorted(Z(2, 3), Z(2)) -> Shape: a 1-D tensor
searchsorted(Z(2), Z(2), side="middle") -> Value: 'middle'
space_to_depth(Z(1, 1, 4, 3), 2) -> Shape: does not divide into blocks
space_to_depth(Z(1, 1, 3, 4), 2) -> Shape: does not divide into blocks
split(Z(4), 0) -> Shape: at least 1
split(Z(4), 65541) -> Shape: most would be empty
split(Z(4), (1, 2)) -> Shape: do not add up
squeeze(Z(2, 1), 0) -> Shape: has length 2
stack([Z(2), Z(3)]) -> Shape: equal shapes
string_normalizer(F.asarray([["a"], ["b"]])) -> Shape: takes (n,) or (1, n)
string_normalizer(F.asarray([[["a"]]])) -> Shape: takes (n,) or (1, n)
svm_kernel(Z(2, 3), Z(4, 2)) -> Shape: do not match
take(Z(2, 3), I(0)) -> Shape: axis must be given
take_along_axis(Z(2, 3), I(0)) -> Shape: indices of 2 axes
tensor_scatter(Z(2, 5, 3), Z(2, 2, 3), axis=0) -> Shape: cannot be written
tensor_scatter(Z(2, 5, 3), Z(2, 6, 3), axis=1) -> Shape: cannot be written
tensor_scatter(Z(2, 5, 3), Z(2, 2, 4), axis=1) -> Shape: cannot be written
tensor_scatter(Z(2, 5, 3), Z(1, 2, 3), axis=1) -> Shape: cannot be written
tensor_scatter(Z(2, 5, 3), Z(2, 2), axis=1) -> Shape: cannot be written
tensordot(Z(2, 3), Z(2, 3), 1) -> Shape: differ
tfidf(F.asarray([[[1]]]), [1], [0], [0], None, "TF", 1, 1, 0) -> Shape: takes (n,) or (batch, n)
topk(Z(3), 4) -> Shape: k is 4
topk(Z(3), -1) -> Shape: k is -1
tree_ensemble(Z(3), I(0), I(0), Z(1), I(0), I(0), 1) -> Shape: takes (rows, features)
tril(Z(3)) -> Shape: at least 2 axes
uniform((2,), 1.0, 0.0) -> Shape: low <= high
uniform((2,), 0.0, float("inf")) -> Shape: finite numbers
uniform((-2,)) -> Shape: no negative sizes
unpack_bits(Z(3, **BYTES), 3) -> DType: bits 2, 4 or 8
unpack_bits(Z(3, dtype="int8"), 4) -> DType: bits 2, 4 or 8
vecdot(Z(2, 3), Z(2, 3), axis=1) -> Shape: a negative axis
vecdot(Z(2, 3), Z(2, 4)) -> Shape: differ along axis
Z(2, 3)[0, 0, 0] -> Indexing: too many indices
Z(2, 3)[..., ...] -> Indexing: ...
Z(2, 3)[::0] -> Indexing: must not be 0
Z(2, 3)["a"] -> Indexing: cannot index
Z(2, 3)[Z(2)] -> Indexing: integer or bool
Z(2, 3)[F.ones((3,), dtype="bool")] -> Indexing: does not fit axis 0
Z(2, 3)[:, 3] -> Indexing: outside axis 1
Z(2, 3)[:, -4] -> Indexing: outside axis 1
Z(2, 3)[-3] -> Indexing: outside axis 0
Z(2, 3)[I(0, 1), I(0, 1, 2)] -> Indexing: index arrays
bool(Z(2)) -> Shape: 2
weights.WeightScheme(3) -> Unsupported: 8, 4 or 2 bits
weights.WeightScheme(8, "odd") -> Unsupported: mode
weights.WeightScheme(8, "affine", "channel", "absolute-mean") -> Unsupported: min-max
weights.WeightScheme(8, "symmetric", "channel", "median") -> Unsupported: calibration
weights.WeightScheme(8, "symmetric", 0) -> Unsupported: whole bytes
weights.WeightScheme(4, "symmetric", 3) -> Unsupported: whole bytes
weights.WeightScheme(4, "symmetric", True) -> Unsupported: whole bytes
weights.WeightScheme(4, "symmetric", "row") -> Unsupported: whole bytes
"""
ROWS = dict(line.rsplit(" -> ", 1) for line in REFUSED.strip().splitlines())

# What the neighbors of those calls take, and the shape that they give.
TAKEN = r"""
scatter(Z(3), 0, I(0, 1), 5.0) -> (3,)
scatter(Z(3), 0, I(0, 1), Z(2)) -> (3,)
select_assign(Z(2, 3, 4), 1, I(0, 2), Z(2, 2, 4)) -> (2, 3, 4)
roi_align(Z(1, 2, 4, 4), Z(0, 4), I(), (2, 3)) -> (0, 2, 2, 3)
roi_align(Z(1, 2, 4, 4), Z(3, 4), I(0, 0, -1), (2, 3)) -> (3, 2, 2, 3)
dft(Z(4, 1), axis=0) -> (4, 2)
dft(Z(3, 4, 2), axis=1) -> (3, 4, 2)
dft(Z(4, 2), length=6, axis=0, onesided=True) -> (4, 2)
dft(Z(4, 2), axis=0, inverse=True, onesided=True) -> (6, 1)
dft(Z(4, 2), length=7, axis=0, inverse=True, onesided=True) -> (7, 1)
stft(Z(1, 8), 2, frame_length=8) -> (1, 1, 5, 2)
stft(Z(1, 8), 2, Z(4)) -> (1, 3, 3, 2)
stft(Z(1, 8, 2), 2, Z(4)) -> (1, 3, 4, 2)
stft(Z(1, 8), 3, Z(3), 4) -> (1, 2, 3, 2)
mel_weight_matrix(1, 1, 8000, 0.0, 4000.0) -> (1, 1)
nll_loss(Z(2, 3), I(0, 2)) -> ()
nll_loss(Z(2, 3), I(0, 7), ignore_index=7) -> ()
nll_loss(Z(2, 3, 4), Z(2, 4, dtype="int64"), reduction="none") -> (2, 4)
nll_loss(Z(0, 3), Z(0, dtype="int64"), reduction="sum") -> ()
max(Z(2, 0), axis=0) -> (0,)
argmax(Z(2, 0), axis=0) -> (0,)
argmax(Z(2, 3), keepdims=True) -> (1, 1)
argmax(Z(2, 3, dtype="bool"), axis=1) -> (2,)
cumulative_sum(Z(3)) -> (3,)
cumulative_prod(Z(3), include_initial=True) -> (4,)
diff(Z(2, 0)) -> (2, 0)
diff(Z(2, 4), n=0) -> (2, 4)
diff(Z(2, 4), n=3) -> (2, 1)
diff(Z(2, 4), n=6) -> (2, 0)
diff(Z(2, 4), axis=0, prepend=Z(1, 4), append=Z(2, 4)) -> (4, 4)
linear(Z(2, 3), Z(4, 3)) -> (2, 4)
linear(Z(2, 3), Z(3, 3), layout='burn') -> (2, 3)
max_pool1d(Z(1, 1, 3), 2, 1) -> (1, 1, 2)
max_pool3d(Z(1, 1, 3, 3, 3), 2, 1) -> (1, 1, 2, 2, 2)
adaptive_max_pool1d(Z(1, 1, 3), 2) -> (1, 1, 2)
adaptive_avg_pool(Z(1, 1, 4), 1) -> (1, 1, 1)
as_attention(Z(1, 3, 8), num_heads=4) -> (1, 3, 8)
as_attention(HEADS, Z(1, 1, 5, 4)) -> (1, 2, 3, 4)
as_attention(HEADS, HEADS, Z(1, 2, 3, 7)) -> (1, 2, 3, 7)
adaptive_avg_pool(Z(1, 1, 4), 6) -> (1, 1, 6)
affine_grid(Z(2, 2, 3), (2, 1, 4, 5)) -> (2, 4, 5, 2)
causal_conv(Z(1, 3, 5), Z(3, 1, 1))[1] -> (1, 3, 0)
conv_transpose(Z(1, 4, 5), Z(4, 1, 3), Z(2), groups=2) -> (1, 2, 7)
conv_transpose(Z(1, 1, 1), Z(1, 1, 3), padding=1) -> (1, 1, 1)
deform_conv(Z(1, 4, 5, 5), Z(6, 2, 3, 3), Z(1, 36, 3, 3), groups=2, offset_groups=2) -> (1, 6, 3, 3)
det(Z(4, 3, 3)) -> (4,)
expand(Z(2, 1), 4, -1, 3) -> (4, 2, 3)
gather(Z(2, 3), 0, Z(5, 2, dtype="int64")) -> (5, 2)
gather_nd(Z(2, 3), Z(4, 0, dtype="int64")) -> (4, 2, 3)
gather_nd(Z(2, 3), Z(2, 1, dtype="int64"), batch_dims=1) -> (2,)
group_norm(Z(2, 4), 4) -> (2, 4)
im2col(Z(1, 1, 3, 3), 3) -> (1, 9, 1)
instance_norm(Z(2, 3)) -> (2, 3)
layer_norm(Z(2, 3), Z(3), Z(1, 3)) -> (2, 3)
linear_attention(Z(1, 2, 8), Z(1, 2, 4), Z(1, 2, 4), num_heads=4, kv_num_heads=2, update_rule="linear")[0] -> (1, 2, 8)
linspace(0.0, 1.0, 0) -> (0,)
max_roi_pool(Z(2, 3, 4, 4), Z(0, 5), (2, 5)) -> (0, 3, 2, 5)
local_response_norm(Z(2, 3), 1) -> (2, 3)
max_pool(Z(1, 1, 3), 5, 3, ceil_mode=True) -> (1, 1, 1)
conv(Z(1, 4, 5), Z(4, 2, 3), Z(4), groups=2) -> (1, 4, 3)
conv(Z(1, 2, 5), Z(3, 2, 5)) -> (1, 3, 1)
conv(Z(1, 2, 5), Z(3, 2, 3), dilation=2) -> (1, 3, 1)
conv(Z(1, 2, 5), Z(3, 2, 3), padding=[(-1, 0)]) -> (1, 3, 2)
conv(Z(1, 2, 5), Z(3, 2, 3), padding=[(1, -1)]) -> (1, 3, 3)
one_against_one(Z(2, 0), 1) -> (2, 1)
one_hot(I(0), 0) -> (1, 0)
pad(Z(2, 3), [(0, 0), (-3, 0)]) -> (2, 0)
prelu(Z(2, 3), Z(2, 1)) -> (2, 3)
randint(0, 1 << 32, (2,)) -> (2,)
randint(-1, 0, (2,)) -> (2,)
resize(Z(1, 0), sizes=(1, 0)) -> (1, 0)
reverse_sequence(Z(3, 2), I(0, 3)) -> (3, 2)
rotary_embedding(HEADS, Z(3, 1), Z(3, 1), rotary_dim=2) -> (1, 2, 3, 4)
tensor_scatter(Z(2, 5, 3), Z(2, 5, 3), axis=1) -> (2, 5, 3)
topk(Z(3), 3) -> (3,)
uniform((2,), 1.0, 1.0) -> (2,)
Z(2, 3)[-2, 2] -> ()
Z(2, 3)[1, -3] -> ()
"""
TAKEN_ROWS = dict(line.rsplit(" -> ", 1) for line in TAKEN.strip().splitlines())


def as_attention(q: Any, k: Any = None, v: Any = None, **options: Any) -> Any:
    k = q if k is None else k
    return F.attention(q, k, k if v is None else v, **options)


def called(text: str) -> Any:
    names = {name: getattr(F, name) for name in re.findall(r"[a-z]\w*", text) if hasattr(F, name)}
    return eval(text, {**names, **globals(), "bool": lambda x: x.__bool__(), "weights": weights})


@every("text", ROWS)
def test_what_does_not_fit_is_refused(text: str) -> None:
    kind, words = ROWS[text].split(":", 1)
    expected = ValueError if kind == "Value" else getattr(errors, f"{kind}Error")
    with pytest.raises(expected, match=re.escape(words.strip())):
        called(text)


@every("text", TAKEN_ROWS)
def test_what_just_fits_is_taken(text: str) -> None:
    assert called(text).shape == eval(TAKEN_ROWS[text])
