"""Which functional family holds which function: the table that makes every look-up lazy.

`emberlet.exp`, `emberlet.functional.exp` and `Tensor.exp` are the same function. Adding one: write it in its family's
file under core/functional/ and add its name here (a test compares the two). No family bears the name of a function.
The families that small networks need are listed in lookup.py instead, which spares a device this table.
"""

# family -> (functions that are also Tensor methods, functions that are not)
FAMILIES = {
    "activations": (
        (
            "relu6 leaky_relu prelu sigmoid hard_sigmoid silu swish hard_swish gelu softplus softsign log_sigmoid "
            "mish elu selu celu thresholded_relu shrink hardtanh softmax softmin quiet_softmax log_softmax "
            "hardmax glu"
        ),
        "swiglu",
    ),
    "arithmetic": (
        (
            "add subtract multiply divide trunc_divide floor_divide remainder fmod pow atan2 maximum minimum "
            "negative positive abs sign square reciprocal clip clamp_min clamp_max hypot logaddexp copysign "
            "signbit nextafter"
        ),
        "",
    ),
    "boxes": ("", "non_max_suppression"),
    "comparison": (
        (
            "equal not_equal less less_equal greater greater_equal isnan isinf isfinite contains_nan logical_and "
            "logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
            "bitwise_right_shift bitwise_invert mask_where mask_fill is_close all_close"
        ),
        "where _and _or _xor _invert",
    ),
    "conversion": (
        (
            "to_data into_data to_data_async item_async astype cast bitcast float int bool to_full_precision "
            "from_full_precision detach require_grad set_require_grad is_require_grad"
        ),
        "",
    ),
    "convolution_ranks": ("", "conv1d conv2d conv3d"),
    "creation": (
        "full_like zeros_like ones_like empty_like tril triu",
        ("full zeros ones empty arange eye linspace meshgrid from_dlpack tril_mask triu_mask diag_mask cartesian_grid"),
    ),
    "determinants": ("", "det"),
    "display": ("", "format_tensor describe_tensor format_with"),
    "dot_product_attention": ("", "attention attention_outputs flex_attention"),
    "dropping": ("", "dropout_with_mask multinomial"),
    "einstein": ("", "einsum"),
    "encoding": ("one_hot", "embedding cumsum eye_like compress reverse_sequence"),
    "few_bits": ("", "unpack_bits dequantize_nbits matmul_nbits gather_block_quantized"),
    "indexing": (
        (
            "getitem assigned slice slice_assign take select take_along_axis gather scatter select_assign nonzero "
            "argwhere"
        ),
        "setitem",
    ),
    "indexing_nd": ("", "gather_nd scatter_nd tensor_scatter"),
    "inspection": ("", "finfo iinfo isdtype can_cast result_type"),
    "integer_products": (
        "",
        (
            "matmul_integer conv_integer qlinear_matmul qlinear_conv qlinear requantize qgemm "
            "matmul_integer_to_float dynamic_quantize_matmul"
        ),
    ),
    "interpolation": ("", "resize interpolate"),
    "joining": ("unstack split chunk", "concat cat stack"),
    "linear_algebra": ("matmul tensordot vecdot dot outer", "gemm"),
    "losses": ("", "nll_loss cross_entropy"),
    "movement": (
        (
            "permute_dims permute transpose matrix_transpose swap_dims moveaxis movedim squeeze expand_dims "
            "unsqueeze broadcast_to expand narrow flip roll tile repeat repeat_dim pad depth_to_space "
            "space_to_depth"
        ),
        "broadcast_arrays broadcast_shapes",
    ),
    "normalization": (
        "",
        ("batch_norm layer_norm rms_norm group_norm instance_norm local_response_norm lp_normalize mean_variance_norm"),
    ),
    "optimizers": ("", "adagrad adam momentum"),
    "packed_attention": ("", "self_attention multi_head_attention group_query_attention"),
    "patches": ("", "im2col col2im unfold fold max_unpool center_crop_pad"),
    "pooling_means": (
        "",
        (
            "avg_pool lp_pool max_pool_with_indices global_avg_pool global_max_pool adaptive_avg_pool "
            "adaptive_max_pool max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d "
            "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d"
        ),
    ),
    "quantization": ("quantize dequantize", "quantize_linear dequantize_linear dynamic_quantize_linear"),
    "quantized_recurrent": ("", "dynamic_quantize_lstm"),
    "randomness": ("random_like", ("manual_seed random_bits uniform normal bernoulli randint permutation random")),
    "recurrent": ("", "rnn gru lstm"),
    "recurrent_activations": ("", "activation"),
    "recurrent_attention": ("", "linear_attention causal_conv"),
    "reductions": (
        (
            "sum prod max min any all count_nonzero mean var_mean var std argmax argmin logsumexp norm "
            "cumulative_sum cumulative_prod cummax cummin diff max_with_indices min_with_indices"
        ),
        "vector_norm",
    ),
    "rotary": ("", "rotary_embedding"),
    "rounding": ("floor ceil trunc round", ""),
    "sampling": ("", "grid_sample affine_grid roi_align max_roi_pool deform_conv"),
    "scores": ("", "softmax_zero probit one_hot_encode zip_map dict_vectorize map_to_tensor"),
    "sequences": ("", "sequence_insert sequence_erase split_to_sequence decode_image"),
    "sets": ("", ("unique_all unique_counts unique_inverse unique_values unique unique_rows isin")),
    "signal": ("", "hann_window hamming_window blackman_window dft stft mel_weight_matrix"),
    "sorting": (
        ("sort argsort sort_with_indices topk topk_with_indices sort_descending argsort_descending"),
        "searchsorted lexsort_rows",
    ),
    "svm": ("", "svm_kernel one_against_one pairwise_coupling"),
    "text": (
        "",
        ("string_concat string_split string_normalizer regex_full_match tfidf label_encode as_strings as_numbers"),
    ),
    "transcendental": (
        (
            "sqrt rsqrt exp exp2 expm1 log log1p log2 log10 erf erfc sin cos tan asin acos atan sinh cosh tanh "
            "asinh acosh atanh"
        ),
        "",
    ),
    "transfer": ("to to_device", "move"),
    "transposed_convolution": ("", ("conv_transpose conv_transpose1d conv_transpose2d conv_transpose3d dilate")),
    "trees": ("", "tree_ensemble"),
}


def all_families():
    """FAMILIES with those of lookup.py."""
    from .lookup import EVERYDAY

    out = dict(FAMILIES)
    out.update(EVERYDAY)
    return out


def all_names():
    """Every public functional name, sorted."""
    names = []
    for methods, functions in all_families().values():
        names += methods.split() + functions.split()
    return sorted([n for n in names if not n.startswith("_")])
