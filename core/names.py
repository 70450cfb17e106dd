"""Which functional family holds which function: the one table that makes every look-up lazy.

`emberlet.exp`, `emberlet.functional.exp` and `Tensor.exp` are the same function. Adding one: write it in its family's
file under core/functional/ and add its name here (a test compares the two). No family bears the name of a function.
"""

# family -> (functions that are also Tensor methods, functions that are not)
FAMILIES = {
    "creation": (
        "full_like zeros_like ones_like empty_like tril triu to to_device",
        "asarray full zeros ones empty arange eye linspace meshgrid from_dlpack tril_mask triu_mask diag_mask"
        " cartesian_grid move",
    ),
    "arithmetic": (
        "add subtract multiply divide trunc_divide floor_divide remainder fmod pow atan2 maximum minimum negative"
        " positive abs sign square reciprocal clip clamp_min clamp_max hypot logaddexp copysign signbit nextafter",
        "",
    ),
    "transcendental": (
        "sqrt rsqrt exp exp2 expm1 log log1p log2 log10 erf erfc sin cos tan asin acos atan sinh cosh tanh asinh acosh"
        " atanh",
        "",
    ),
    "rounding": ("floor ceil trunc round", ""),
    "comparison": (
        "equal not_equal less less_equal greater greater_equal isnan isinf isfinite contains_nan logical_and"
        " logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_left_shift"
        " bitwise_right_shift bitwise_invert mask_where mask_fill is_close all_close",
        "where _and _or _xor _invert",
    ),
    "activations": (
        "relu relu6 leaky_relu prelu sigmoid hard_sigmoid silu swish hard_swish gelu softplus softsign log_sigmoid"
        " mish elu selu celu thresholded_relu shrink hardtanh softmax softmin quiet_softmax log_softmax hardmax glu",
        "swiglu",
    ),
    "reductions": (
        "sum prod max min any all count_nonzero mean var_mean var std argmax argmin logsumexp norm cumulative_sum"
        " cumulative_prod cummax cummin diff max_with_indices min_with_indices",
        "vector_norm",
    ),
    "movement": (
        "reshape flatten permute_dims permute transpose matrix_transpose swap_dims moveaxis movedim squeeze"
        " expand_dims unsqueeze broadcast_to expand narrow flip roll tile repeat repeat_dim pad depth_to_space"
        " space_to_depth",
        "broadcast_arrays broadcast_shapes",
    ),
    "joining": ("unstack split chunk", "concat cat stack"),
    "linear_algebra": ("matmul tensordot vecdot dot outer", "linear gemm"),
    "convolution": (
        "",
        "conv conv1d conv2d conv3d conv_transpose conv_transpose1d conv_transpose2d conv_transpose3d dilate",
    ),
    "pooling": (
        "",
        "max_pool avg_pool lp_pool max_pool_with_indices global_avg_pool global_max_pool adaptive_avg_pool"
        " adaptive_max_pool max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d"
        " adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d",
    ),
    "normalization": (
        "",
        "batch_norm layer_norm rms_norm group_norm instance_norm local_response_norm lp_normalize mean_variance_norm",
    ),
    "conversion": (
        "item into_scalar tolist to_data into_data to_data_async item_async astype cast bitcast float int bool"
        " to_full_precision from_full_precision detach require_grad set_require_grad is_require_grad",
        "",
    ),
    "sorting": (
        "sort argsort sort_with_indices topk topk_with_indices sort_descending argsort_descending",
        "searchsorted lexsort_rows",
    ),
    "sets": ("", "unique_all unique_counts unique_inverse unique_values unique unique_rows isin"),
    "randomness": (
        "random_like",
        "manual_seed random_bits uniform normal bernoulli randint permutation random",
    ),
    "inspection": ("", "finfo iinfo isdtype can_cast result_type"),
    "quantization": ("quantize dequantize", "quantize_linear dequantize_linear dynamic_quantize_linear"),
    "integer_products": (
        "",
        "matmul_integer conv_integer qlinear_matmul qlinear_conv qlinear requantize qgemm matmul_integer_to_float"
        " dynamic_quantize_matmul",
    ),
    "few_bits": ("", "unpack_bits dequantize_nbits matmul_nbits gather_block_quantized"),
    "recurrent": ("", "rnn gru lstm"),
    "quantized_recurrent": ("", "dynamic_quantize_lstm"),
    "recurrent_activations": ("", "activation"),
    "dot_product_attention": ("", "attention attention_outputs flex_attention"),
    "packed_attention": ("", "self_attention multi_head_attention group_query_attention"),
    "recurrent_attention": ("", "linear_attention causal_conv"),
    "rotary": ("", "rotary_embedding"),
    "determinants": ("", "det"),
    "losses": ("", "nll_loss cross_entropy"),
    "einstein": ("", "einsum"),
    "interpolation": ("", "resize interpolate"),
    "indexing_nd": ("", "gather_nd scatter_nd tensor_scatter"),
    "encoding": ("one_hot", "embedding cumsum eye_like compress reverse_sequence"),
    "display": ("", "format_tensor describe_tensor format_with"),
    "indexing": (
        "getitem assigned slice slice_assign take select take_along_axis gather scatter select_assign nonzero argwhere",
        "setitem",
    ),
    "sampling": ("", "grid_sample affine_grid roi_align max_roi_pool deform_conv"),
    "boxes": ("", "non_max_suppression"),
    "patches": ("", "im2col col2im unfold fold max_unpool center_crop_pad"),
    "signal": ("", "hann_window hamming_window blackman_window dft stft mel_weight_matrix"),
    "text": (
        "",
        "string_concat string_split string_normalizer regex_full_match tfidf label_encode as_strings as_numbers",
    ),
    "trees": ("", "tree_ensemble"),
    "optimizers": ("", "adagrad adam momentum"),
    "sequences": ("", "sequence_insert sequence_erase split_to_sequence decode_image"),
    "dropping": ("", "dropout_with_mask multinomial"),
}

_functions = {}


def _find(name):
    """(family, whether it is a method too) of a function, or None. Searched, not indexed: an index of all names takes
    a device 40 KB, and each name is looked for once."""
    word = " " + name + " "
    for family in FAMILIES:
        methods, functions = FAMILIES[family]
        if word in " " + methods + " ":
            return family, True
        if word in " " + functions + " ":
            return family, False
    return None


def function(name):
    """The function called `name`, imported from its family on first use. None where there is no such function."""
    found = _functions.get(name)
    if found is None:
        where = _find(name)
        if where is None:
            return None
        home = "emberlet.functional." + where[0] if where[0] != "display" else "emberlet.display"
        module = __import__(home, None, None, ("*",))
        found = _functions[name] = getattr(module, name)
    return found


def method(name):
    """The function behind the Tensor method `name`, or None."""
    where = _find(name)
    if where is None or not where[1]:
        return None
    return function(name)


def all_names():
    """Every public functional name, sorted."""
    names = []
    for family in FAMILIES:
        for group in FAMILIES[family]:
            names += group.split()
    return sorted([n for n in names if not n.startswith("_")])
