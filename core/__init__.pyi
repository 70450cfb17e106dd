"""Types of emberlet (written by emberlet.host.interface.stubs)."""
# fmt: off
# ruff: noqa

from typing import Any

from . import errors as errors, functional as functional, nn as nn
from .backend import Backend as Backend, get_backend as get_backend, register as register
from .backend import set_default_backend as set_default_backend
from .config import Config as Config
from .data import TensorData as TensorData
from .display import check_closeness as check_closeness, print_options as print_options
from .display import set_print_options as set_print_options
from .dtypes import DType as DType
from .errors import *
from .functional import QuantScheme as QuantScheme
from .functional import Quantized as Quantized
from .functional import abs as abs
from .functional import acos as acos
from .functional import acosh as acosh
from .functional import activation as activation
from .functional import adagrad as adagrad
from .functional import adam as adam
from .functional import adaptive_avg_pool as adaptive_avg_pool
from .functional import adaptive_avg_pool1d as adaptive_avg_pool1d
from .functional import adaptive_avg_pool2d as adaptive_avg_pool2d
from .functional import adaptive_max_pool as adaptive_max_pool
from .functional import adaptive_max_pool1d as adaptive_max_pool1d
from .functional import adaptive_max_pool2d as adaptive_max_pool2d
from .functional import add as add
from .functional import affine_grid as affine_grid
from .functional import all as all
from .functional import all_close as all_close
from .functional import any as any
from .functional import arange as arange
from .functional import argmax as argmax
from .functional import argmin as argmin
from .functional import argsort as argsort
from .functional import argsort_descending as argsort_descending
from .functional import argwhere as argwhere
from .functional import as_numbers as as_numbers
from .functional import as_strings as as_strings
from .functional import asarray as asarray
from .functional import asin as asin
from .functional import asinh as asinh
from .functional import assigned as assigned
from .functional import astype as astype
from .functional import atan as atan
from .functional import atan2 as atan2
from .functional import atanh as atanh
from .functional import attention as attention
from .functional import attention_outputs as attention_outputs
from .functional import avg_pool as avg_pool
from .functional import avg_pool1d as avg_pool1d
from .functional import avg_pool2d as avg_pool2d
from .functional import avg_pool3d as avg_pool3d
from .functional import backward as backward
from .functional import batch_norm as batch_norm
from .functional import bernoulli as bernoulli
from .functional import bitcast as bitcast
from .functional import bitwise_and as bitwise_and
from .functional import bitwise_invert as bitwise_invert
from .functional import bitwise_left_shift as bitwise_left_shift
from .functional import bitwise_or as bitwise_or
from .functional import bitwise_right_shift as bitwise_right_shift
from .functional import bitwise_xor as bitwise_xor
from .functional import blackman_window as blackman_window
from .functional import broadcast_arrays as broadcast_arrays
from .functional import broadcast_shapes as broadcast_shapes
from .functional import broadcast_to as broadcast_to
from .functional import can_cast as can_cast
from .functional import cartesian_grid as cartesian_grid
from .functional import cast as cast
from .functional import cat as cat
from .functional import causal_conv as causal_conv
from .functional import ceil as ceil
from .functional import celu as celu
from .functional import center_crop_pad as center_crop_pad
from .functional import check_grads as check_grads
from .functional import chunk as chunk
from .functional import clamp_max as clamp_max
from .functional import clamp_min as clamp_min
from .functional import clip as clip
from .functional import col2im as col2im
from .functional import compress as compress
from .functional import concat as concat
from .functional import contains_nan as contains_nan
from .functional import conv as conv
from .functional import conv1d as conv1d
from .functional import conv2d as conv2d
from .functional import conv3d as conv3d
from .functional import conv_integer as conv_integer
from .functional import conv_transpose as conv_transpose
from .functional import conv_transpose1d as conv_transpose1d
from .functional import conv_transpose2d as conv_transpose2d
from .functional import conv_transpose3d as conv_transpose3d
from .functional import copysign as copysign
from .functional import cos as cos
from .functional import cosh as cosh
from .functional import count_nonzero as count_nonzero
from .functional import cross_entropy as cross_entropy
from .functional import cummax as cummax
from .functional import cummin as cummin
from .functional import cumsum as cumsum
from .functional import cumulative_prod as cumulative_prod
from .functional import cumulative_sum as cumulative_sum
from .functional import decode_image as decode_image
from .functional import deform_conv as deform_conv
from .functional import depth_to_space as depth_to_space
from .functional import dequantize as dequantize
from .functional import dequantize_linear as dequantize_linear
from .functional import dequantize_nbits as dequantize_nbits
from .functional import describe_tensor as describe_tensor
from .functional import det as det
from .functional import detach as detach
from .functional import dft as dft
from .functional import diag_mask as diag_mask
from .functional import dict_vectorize as dict_vectorize
from .functional import diff as diff
from .functional import dilate as dilate
from .functional import divide as divide
from .functional import dot as dot
from .functional import dropout_with_mask as dropout_with_mask
from .functional import dynamic_quantize_linear as dynamic_quantize_linear
from .functional import dynamic_quantize_lstm as dynamic_quantize_lstm
from .functional import dynamic_quantize_matmul as dynamic_quantize_matmul
from .functional import einsum as einsum
from .functional import elu as elu
from .functional import embedding as embedding
from .functional import empty as empty
from .functional import empty_like as empty_like
from .functional import equal as equal
from .functional import erf as erf
from .functional import erfc as erfc
from .functional import exp as exp
from .functional import exp2 as exp2
from .functional import expand as expand
from .functional import expand_dims as expand_dims
from .functional import expm1 as expm1
from .functional import eye as eye
from .functional import eye_like as eye_like
from .functional import finfo as finfo
from .functional import flatten as flatten
from .functional import flex_attention as flex_attention
from .functional import flip as flip
from .functional import floor as floor
from .functional import floor_divide as floor_divide
from .functional import fmod as fmod
from .functional import fold as fold
from .functional import format_tensor as format_tensor
from .functional import format_with as format_with
from .functional import from_dlpack as from_dlpack
from .functional import from_full_precision as from_full_precision
from .functional import from_inner as from_inner
from .functional import full as full
from .functional import full_like as full_like
from .functional import gather as gather
from .functional import gather_block_quantized as gather_block_quantized
from .functional import gather_nd as gather_nd
from .functional import gelu as gelu
from .functional import gemm as gemm
from .functional import getitem as getitem
from .functional import global_avg_pool as global_avg_pool
from .functional import global_max_pool as global_max_pool
from .functional import glu as glu
from .functional import grad as grad
from .functional import grad_remove as grad_remove
from .functional import greater as greater
from .functional import greater_equal as greater_equal
from .functional import grid_sample as grid_sample
from .functional import group_norm as group_norm
from .functional import group_query_attention as group_query_attention
from .functional import gru as gru
from .functional import hamming_window as hamming_window
from .functional import hann_window as hann_window
from .functional import hard_sigmoid as hard_sigmoid
from .functional import hard_swish as hard_swish
from .functional import hardmax as hardmax
from .functional import hardtanh as hardtanh
from .functional import hypot as hypot
from .functional import iinfo as iinfo
from .functional import im2col as im2col
from .functional import inner as inner
from .functional import instance_norm as instance_norm
from .functional import interpolate as interpolate
from .functional import into_data as into_data
from .functional import into_scalar as into_scalar
from .functional import is_close as is_close
from .functional import is_require_grad as is_require_grad
from .functional import isdtype as isdtype
from .functional import isfinite as isfinite
from .functional import isin as isin
from .functional import isinf as isinf
from .functional import isnan as isnan
from .functional import item as item
from .functional import item_async as item_async
from .functional import jvp as jvp
from .functional import label_encode as label_encode
from .functional import layer_norm as layer_norm
from .functional import leaky_relu as leaky_relu
from .functional import less as less
from .functional import less_equal as less_equal
from .functional import lexsort_rows as lexsort_rows
from .functional import linear as linear
from .functional import linear_attention as linear_attention
from .functional import linspace as linspace
from .functional import local_response_norm as local_response_norm
from .functional import log as log
from .functional import log10 as log10
from .functional import log1p as log1p
from .functional import log2 as log2
from .functional import log_sigmoid as log_sigmoid
from .functional import log_softmax as log_softmax
from .functional import logaddexp as logaddexp
from .functional import logical_and as logical_and
from .functional import logical_not as logical_not
from .functional import logical_or as logical_or
from .functional import logical_xor as logical_xor
from .functional import logsumexp as logsumexp
from .functional import lp_normalize as lp_normalize
from .functional import lp_pool as lp_pool
from .functional import lstm as lstm
from .functional import manual_seed as manual_seed
from .functional import map_to_tensor as map_to_tensor
from .functional import mask_fill as mask_fill
from .functional import mask_where as mask_where
from .functional import masked_mean as masked_mean
from .functional import matmul as matmul
from .functional import matmul_integer as matmul_integer
from .functional import matmul_integer_to_float as matmul_integer_to_float
from .functional import matmul_nbits as matmul_nbits
from .functional import matrix_transpose as matrix_transpose
from .functional import max as max
from .functional import max_pool as max_pool
from .functional import max_pool1d as max_pool1d
from .functional import max_pool2d as max_pool2d
from .functional import max_pool3d as max_pool3d
from .functional import max_pool_with_indices as max_pool_with_indices
from .functional import max_roi_pool as max_roi_pool
from .functional import max_unpool as max_unpool
from .functional import max_with_indices as max_with_indices
from .functional import maximum as maximum
from .functional import mean as mean
from .functional import mean_variance_norm as mean_variance_norm
from .functional import mel_weight_matrix as mel_weight_matrix
from .functional import meshgrid as meshgrid
from .functional import min as min
from .functional import min_with_indices as min_with_indices
from .functional import minimum as minimum
from .functional import mish as mish
from .functional import momentum as momentum
from .functional import move as move
from .functional import moveaxis as moveaxis
from .functional import movedim as movedim
from .functional import multi_head_attention as multi_head_attention
from .functional import multinomial as multinomial
from .functional import multiply as multiply
from .functional import narrow as narrow
from .functional import negative as negative
from .functional import nextafter as nextafter
from .functional import nll_loss as nll_loss
from .functional import non_max_suppression as non_max_suppression
from .functional import nonzero as nonzero
from .functional import norm as norm
from .functional import normal as normal
from .functional import not_equal as not_equal
from .functional import one_against_one as one_against_one
from .functional import one_hot as one_hot
from .functional import one_hot_encode as one_hot_encode
from .functional import ones as ones
from .functional import ones_like as ones_like
from .functional import outer as outer
from .functional import pad as pad
from .functional import pad_axes as pad_axes
from .functional import pairwise_coupling as pairwise_coupling
from .functional import permutation as permutation
from .functional import permute as permute
from .functional import permute_dims as permute_dims
from .functional import positive as positive
from .functional import pow as pow
from .functional import prelu as prelu
from .functional import probit as probit
from .functional import prod as prod
from .functional import qgemm as qgemm
from .functional import qlinear as qlinear
from .functional import qlinear_conv as qlinear_conv
from .functional import qlinear_matmul as qlinear_matmul
from .functional import quantize as quantize
from .functional import quantize_linear as quantize_linear
from .functional import quiet_softmax as quiet_softmax
from .functional import randint as randint
from .functional import random as random
from .functional import random_bits as random_bits
from .functional import random_like as random_like
from .functional import reciprocal as reciprocal
from .functional import regex_full_match as regex_full_match
from .functional import relu as relu
from .functional import relu6 as relu6
from .functional import remainder as remainder
from .functional import repeat as repeat
from .functional import repeat_dim as repeat_dim
from .functional import requantize as requantize
from .functional import require_grad as require_grad
from .functional import reshape as reshape
from .functional import reshape_keeping as reshape_keeping
from .functional import resize as resize
from .functional import result_type as result_type
from .functional import reverse_sequence as reverse_sequence
from .functional import rms_norm as rms_norm
from .functional import rnn as rnn
from .functional import roi_align as roi_align
from .functional import roll as roll
from .functional import rotary_embedding as rotary_embedding
from .functional import round as round
from .functional import rsqrt as rsqrt
from .functional import scatter as scatter
from .functional import scatter_nd as scatter_nd
from .functional import searchsorted as searchsorted
from .functional import select as select
from .functional import select_assign as select_assign
from .functional import self_attention as self_attention
from .functional import selu as selu
from .functional import sequence_erase as sequence_erase
from .functional import sequence_insert as sequence_insert
from .functional import set_require_grad as set_require_grad
from .functional import setitem as setitem
from .functional import shrink as shrink
from .functional import sigmoid as sigmoid
from .functional import sign as sign
from .functional import signbit as signbit
from .functional import silu as silu
from .functional import sin as sin
from .functional import sinh as sinh
from .functional import slice as slice
from .functional import slice_assign as slice_assign
from .functional import slice_axes as slice_axes
from .functional import softmax as softmax
from .functional import softmax_zero as softmax_zero
from .functional import softmin as softmin
from .functional import softplus as softplus
from .functional import softsign as softsign
from .functional import sort as sort
from .functional import sort_descending as sort_descending
from .functional import sort_with_indices as sort_with_indices
from .functional import space_to_depth as space_to_depth
from .functional import split as split
from .functional import split_to_sequence as split_to_sequence
from .functional import sqrt as sqrt
from .functional import square as square
from .functional import squeeze as squeeze
from .functional import stack as stack
from .functional import std as std
from .functional import stft as stft
from .functional import string_concat as string_concat
from .functional import string_normalizer as string_normalizer
from .functional import string_split as string_split
from .functional import subtract as subtract
from .functional import sum as sum
from .functional import svm_kernel as svm_kernel
from .functional import swap_dims as swap_dims
from .functional import swiglu as swiglu
from .functional import swish as swish
from .functional import take as take
from .functional import take_along_axis as take_along_axis
from .functional import tan as tan
from .functional import tanh as tanh
from .functional import tensor_scatter as tensor_scatter
from .functional import tensordot as tensordot
from .functional import tfidf as tfidf
from .functional import thresholded_relu as thresholded_relu
from .functional import tile as tile
from .functional import to as to
from .functional import to_data as to_data
from .functional import to_data_async as to_data_async
from .functional import to_device as to_device
from .functional import to_full_precision as to_full_precision
from .functional import tokenize as tokenize
from .functional import tolist as tolist
from .functional import topk as topk
from .functional import topk_with_indices as topk_with_indices
from .functional import transpose as transpose
from .functional import tree_ensemble as tree_ensemble
from .functional import tril as tril
from .functional import tril_mask as tril_mask
from .functional import triu as triu
from .functional import triu_mask as triu_mask
from .functional import trunc as trunc
from .functional import trunc_divide as trunc_divide
from .functional import unfold as unfold
from .functional import uniform as uniform
from .functional import unique as unique
from .functional import unique_all as unique_all
from .functional import unique_counts as unique_counts
from .functional import unique_inverse as unique_inverse
from .functional import unique_rows as unique_rows
from .functional import unique_values as unique_values
from .functional import unpack_bits as unpack_bits
from .functional import unsqueeze as unsqueeze
from .functional import unstack as unstack
from .functional import value_and_grad as value_and_grad
from .functional import var as var
from .functional import var_mean as var_mean
from .functional import vecdot as vecdot
from .functional import vector_norm as vector_norm
from .functional import vjp as vjp
from .functional import where as where
from .functional import zeros as zeros
from .functional import zeros_like as zeros_like
from .functional import zip_map as zip_map
from .module import Module as Module
from .param import Param as Param
from .param.identity import ParamId as ParamId
from .tensor import Tensor as Tensor

__version__: str
__array_api_version__: str
e: float
inf: float
nan: float
pi: float
newaxis: None
float64: DType
float32: DType
float16: DType
bfloat16: DType
float8_e4m3fn: DType
float8_e4m3fnuz: DType
float8_e5m2: DType
float8_e5m2fnuz: DType
float8_e8m0fnu: DType
float6_e2m3fn: DType
float6_e3m2fn: DType
float4_e2m1fn: DType
int64: DType
int32: DType
int16: DType
int8: DType
int4: DType
int2: DType
uint64: DType
uint32: DType
uint16: DType
uint8: DType
uint4: DType
uint2: DType
bool: DType
string: DType

def __array_namespace_info__() -> Any: ...
