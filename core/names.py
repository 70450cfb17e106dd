"""Which family holds which function, the long table (written by emberlet.host.interface.stubs).

Written from the declarations in core/functional. lookup.py repeats the families that small networks need, so that a
microcontroller loads this table for other functions only.
"""

# fmt: off
# family -> (functions that are also Tensor methods, functions that are not)
FAMILIES = {
    "arrays": ("", "asarray"),
    "convolution": ("", "conv"),
    "creation.conversion": (
        "to_data into_data into_scalar to_data_async item_async astype cast bitcast float int bool "
        "to_full_precision from_full_precision",
        "",
    ),
    "creation.fills": (
        "full_like zeros_like ones_like empty_like tril triu",
        "from_dlpack full zeros ones empty arange linspace eye meshgrid tril_mask triu_mask diag_mask "
        "cartesian_grid",
    ),
    "creation.grids": ("", "logspace geomspace tri vander indices tril_indices triu_indices"),
    "creation.inspection": ("", "finfo iinfo isdtype can_cast result_type"),
    "creation.transfer": ("to to_device", "move"),
    "display": ("", "format_tensor describe_tensor format_with"),
    "elementwise.activations": (
        "relu6 leaky_relu prelu sigmoid hard_sigmoid silu swish hard_swish gelu softplus softsign log_sigmoid mish "
        "elu selu celu thresholded_relu shrink hardtanh softmax softmin quiet_softmax log_softmax hardmax glu",
        "swiglu",
    ),
    "elementwise.activations_by_name": ("", "activation"),
    "elementwise.arithmetic": (
        "add subtract multiply divide trunc_divide floor_divide remainder fmod pow atan2 maximum minimum negative "
        "positive abs sign square reciprocal clip clamp_min clamp_max hypot logaddexp copysign signbit nextafter",
        "",
    ),
    "elementwise.comparison": (
        "equal not_equal less less_equal greater greater_equal isnan isinf isfinite contains_nan logical_and "
        "logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
        "bitwise_right_shift bitwise_invert mask_where mask_fill is_close all_close",
        "_and _or _xor _invert where",
    ),
    "elementwise.complex_parts": ("real imag conj angle view_as_complex view_as_real", ""),
    "elementwise.numeric": ("cbrt sinc fmax fmin heaviside gcd lcm", "divmod"),
    "elementwise.rounding": ("floor ceil trunc round", ""),
    "elementwise.thresholds": ("hard_shrink soft_shrink tanhshrink threshold", ""),
    "elementwise.transcendental": (
        "sqrt rsqrt exp exp2 expm1 log log1p log2 log10 erf erfc sin cos tan asin acos atan sinh cosh tanh asinh "
        "acosh atanh deg2rad rad2deg",
        "",
    ),
    "gradients.tensors": (
        "detach require_grad set_require_grad is_require_grad inner from_inner backward grad grad_remove",
        "",
    ),
    "gradients.transforms": ("", "value_and_grad vjp jvp check_grads"),
    "indexing.boxes": ("", "non_max_suppression"),
    "indexing.encoding": ("one_hot cumsum", "embedding eye_like compress reverse_sequence"),
    "indexing.index_tuples": ("", "gather_nd scatter_nd tensor_scatter"),
    "indexing.picking": ("take select take_along_axis gather scatter select_assign nonzero argwhere", ""),
    "indexing.positions": ("flatnonzero", "unravel_index ravel_multi_index"),
    "indexing.selection": ("getitem assigned slice slice_assign", "setitem"),
    "linear_algebra.determinants": ("", "det"),
    "linear_algebra.diagonals": ("diag trace cross", ""),
    "linear_algebra.einsum": ("", "einsum"),
    "linear_algebra.products": ("matmul tensordot vecdot dot kron outer", "linear gemm"),
    "max_pooling": ("", "max_pool"),
    "movement.by_axes": ("", "slice_axes pad_axes reshape_keeping"),
    "movement.editing": ("rot90", "append insert delete array_split block atleast_1d atleast_2d atleast_3d"),
    "movement.joining": ("unstack split chunk", "concat cat stack"),
    "movement.rearranging": (
        "permute_dims permute transpose matrix_transpose swap_dims moveaxis movedim squeeze expand_dims unsqueeze "
        "broadcast_to expand narrow flip roll tile repeat repeat_dim pad depth_to_space space_to_depth",
        "broadcast_arrays broadcast_shapes",
    ),
    "movement.sequences": ("", "sequence_insert sequence_erase split_to_sequence decode_image"),
    "movement.stacking": ("", "vstack hstack dstack column_stack"),
    "onnx_ml.classifier_outputs": ("", "softmax_zero probit one_hot_encode zip_map dict_vectorize map_to_tensor"),
    "onnx_ml.optimizers": ("", "adagrad adam momentum"),
    "onnx_ml.svm": ("", "svm_kernel one_against_one pairwise_coupling"),
    "onnx_ml.text": (
        "",
        "string_concat string_split string_normalizer tokenize regex_full_match tfidf label_encode as_strings "
        "as_numbers",
    ),
    "onnx_ml.trees": ("", "tree_ensemble"),
    "python_values": ("item tolist", ""),
    "quantized.integer_products": (
        "",
        "matmul_integer requantize qlinear_matmul matmul_integer_to_float dynamic_quantize_matmul qgemm "
        "conv_integer qlinear_conv qlinear",
    ),
    "quantized.packed_weights": ("", "unpack_bits dequantize_nbits matmul_nbits gather_block_quantized"),
    "quantized.quantization": ("", "quantize_linear dequantize_linear dynamic_quantize_linear"),
    "quantized.tensors": ("quantize dequantize", "QuantScheme Quantized"),
    "randomness.draws": ("random_like", "manual_seed random_bits uniform normal bernoulli randint permutation random"),
    "randomness.dropout": ("", "dropout_with_mask multinomial"),
    "rectifiers": ("relu", ""),
    "recurrent.layers": ("", "rnn gru lstm"),
    "recurrent.quantized_lstm": ("", "dynamic_quantize_lstm"),
    "reductions.alignments": ("", "ctc_loss rnnt_loss"),
    "reductions.losses": ("", "nll_loss cross_entropy"),
    "reductions.masked": ("", "masked_mean"),
    "reductions.normalization": (
        "",
        "batch_norm layer_norm rms_norm group_norm instance_norm local_response_norm lp_normalize "
        "mean_variance_norm",
    ),
    "reductions.over_axes": (
        "sum prod max min any all count_nonzero mean var_mean var std argmax argmin logsumexp norm cumulative_sum "
        "cumulative_prod cumprod cummax cummin diff max_with_indices min_with_indices",
        "vector_norm",
    ),
    "reductions.sets": (
        "",
        "unique_rows unique_all unique_counts unique_inverse unique_values unique isin union1d intersect1d "
        "setdiff1d",
    ),
    "reductions.sorting": (
        "sort argsort sort_with_indices topk_with_indices topk argtopk sort_descending argsort_descending",
        "searchsorted lexsort_rows",
    ),
    "reshaping": ("reshape flatten", ""),
    "statistics.correlation": ("cov corrcoef", ""),
    "statistics.counts": ("bincount", "histogram"),
    "statistics.curves": ("average ptp", "gradient trapezoid digitize interp polyval convolve"),
    "statistics.missing": ("nansum nanprod nanmax nanmin nanmean nanvar nanstd nan_to_num", ""),
    "statistics.quantiles": ("quantile percentile median median_with_indices nanquantile nanmedian", ""),
    "transformer.dot_product_attention": ("", "attention attention_outputs flex_attention"),
    "transformer.fused_attention": ("", "self_attention multi_head_attention group_query_attention"),
    "transformer.linear_attention": ("", "linear_attention causal_conv"),
    "transformer.rotary": ("", "rotary_embedding"),
    "windows.convolution_by_rank": ("", "conv1d conv2d conv3d"),
    "windows.interpolation": ("", "resize interpolate"),
    "windows.patches": ("sliding_windows", "im2col unfold col2im fold max_unpool center_crop_pad"),
    "windows.pooling": (
        "",
        "avg_pool lp_pool max_pool_with_indices global_avg_pool global_max_pool adaptive_avg_pool adaptive_max_pool "
        "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
        "adaptive_max_pool1d adaptive_max_pool2d",
    ),
    "windows.sampling": ("", "grid_sample affine_grid roi_align max_roi_pool deform_conv"),
    "windows.signal": ("", "hann_window hamming_window blackman_window dft stft istft mel_weight_matrix"),
    "windows.transposed_convolution": ("", "conv_transpose dilate conv_transpose1d conv_transpose2d conv_transpose3d"),
}
# fmt: on


def all_names():
    """Every public functional name, sorted."""
    names = []
    for methods, functions in FAMILIES.values():
        names += methods.split() + functions.split()
    return sorted([n for n in names if not n.startswith("_")])


def method_names():
    """Every name that is a Tensor method too, sorted."""
    return sorted([n for methods, _ in FAMILIES.values() for n in methods.split()])
