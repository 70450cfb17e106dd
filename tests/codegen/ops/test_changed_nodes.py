"""Each operator's cases with one thing changed: onnxruntime computes the same, or both refuse.

The changes are those of `support.changed_nodes`: an attribute left out or one more, an input of another rank, size or
dtype, a constant near the case's own. What onnxruntime does not compute is not compared, but it is computed or refused
by an error of the family, and results have the dtypes and the sizes that the module states.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from conformance.cases import node_cases
from conformance.judge import Runtime
from models.index import cases
from onnx import numpy_helper
from support.changed_nodes import changes
from support.judged_nodes import fitting, here, matches, there, valid, verdict
from support.rows import every

from .test_refusals import CLASSES, GRAMS, LSTM8, OLD, TREE, A, node

MOST, OF_PLAIN = 60, 20  # changes of a case, of one with a plain input
MICROSOFT = {case.name: case for case in cases(contrib=True)}
SCALER = {"scale": [2.0, 3.0, 4.0], "offset": [0.5, 0.25, 1.0]}
VECTORS = {"coefficients": [1.0, -1.0], "support_vectors": [1.0, 2.0, 3.0, 4.0], "rho": [0.5]}
# What differs from onnxruntime on purpose: "operator: case: change: verdict" as a regular expression -> the reason.
DIFFERENT: dict[str, str] = {
    "expected 0 or 1": "the standard's flags are 0 or 1; onnxruntime takes other numbers for 0 here, for 1 there",
    "expected one of|expected a type|expected 0 to 3|expected 1 or more|not a supported element type": (
        "a word or number without meaning"
    ),
    "axis twice|is given twice": "an axis named twice is a mistake in the file",
    "is not known|kernel_shape has \\d entries": "codegen needs a rank or a kernel's size",
    "of unknown rank: (raw IndexError|refused)": "the values drawn for it have a rank that does not fit",
    "kernel .* is larger than input": "onnxruntime computes an empty result",
    "not broadcast|is not one for each|expected one value per channel|weights do not fit": "shapes that do not fit",
    "one element|expected one row|window of one axis": "onnxruntime reads the first of several numbers",
    "features|[Vv]ocabulary|coefficients|support vectors|rho, |classlabels|tree ensem|a tree contains": (
        "tables that contradict each other; onnxruntime reads what is in memory"
    ),
    "^(Random\\w+|Multinomial|Bernoulli|Dropout): .*: result \\d: element": "drawn",
    "^ReduceMean: .*=0: .* is nan": "a mean of nothing: NumPy's NaN",
    "^Reduce(Max|Min): .*empty_set": "without known sizes a maximum of nothing is refused",
    "^TopK: row 113": "not sorted: the order is free",
    "^Unique: .*sorted": "not sorted: the order is free",
    "^MaxUnpool: .*export_with_output_shape": "the case's own result differs from onnxruntime's",
    "^MaxUnpool: .*outside axis": "indices outside of the result",
    "^MaxPool: row 155: dilations": "SAME: the standard's size is the input's over the stride",
    "^QLinear.*: element \\d+ is (\\d+), onnxruntime's": "one step of the grid",
    "^(Resize|Upsample): .* uint8: ": "ONNX's reference rounds whole numbers, onnxruntime cuts them",
    "^Squeeze: .*axes": "an empty list of axes names none, as in ONNX's reference",
    "^Cast(Like)?: row 12\\d: |^Cast: .*to=8": (
        "floats of 8 bits come as bytes; texts of floats have a point as in the cases"
    ),
    "^Pow: row 79": "a power beyond int64",
    "^Optional: row 192": "its type says that it may be None",
    "^(STFT|DFT): ": "complex signals have no one-sided transform; a transform of nothing is refused",
    "^Tokenizer: .*=0: ": "no texts, no tokens",
    "^SVMClassifier: .*kernel_params": "a root of a negative number",
    "^TfIdfVectorizer: .*ngram_indexes": "weights belong to n-grams, as the standard says",
    "^(Attention|MultiHeadAttention): .*(mask|padding|row 171)": "a mask of other numbers than 0 and 1",
    "^EmbedLayerNormalization: ": "masks of other numbers, inputs of other ranks",
    "^(GroupQueryAttention|MultiHeadAttention): .*(last|no output)": "lengths that contradict; memory never written",
    "^LSTM: .*=0: ": "no steps: the initial state, where onnxruntime's memory was never written",
    "^Skip\\w+: .*(\\.0=1|result 1)": "broadcasting, and a mean that onnxruntime leaves at 0",
    "^TransposeMatMul: .*without axis": "a vector: alpha is not applied by onnxruntime",
    "^TreeEnsemble\\w*: ": "trees whose tables were exchanged; SOFTMAX of one target is 1",
    "^(CenterCropPad|Compress|GatherND|Pad|RotaryEmbedding|QLinearWhere|ScatterND|Split|Trilu|Range|HannWindow): ": (
        "sizes, indices and lengths that do not fit; onnxruntime reads or writes beside them"
    ),
    "^(HammingWindow|BlackmanWindow|HannWindow): .*(nan|datatype)": "a window of one sample is 1",
    "^(FusedConv|GatherBlockQuantized|QGemm|DynamicQuantizeLSTM|NegativeLogLikelihoodLoss): .*refused": "out of range",
    "^QGemm: .*no y_scale": "without a scale the result is float32",
    "softcap=-1|local_window_size=0|clip=0": "a limit without meaning",
    "^(Linear\\w+|GroupNorm\\w*|MultiHeadAttention|SoftmaxCrossEntropyLoss): .*refused": "shapes that do not fit",
    "^TopK: .*sorted=0": "not sorted: the order is free",
    "^ConvTranspose: .*needs a known size": "output_shape needs known sizes",
    "^SequenceAt: .*raw IndexError": "Python's own error for a list",
}


def weights(*shape: int) -> Any:
    """Weights of this shape, no two of them equal."""
    return np.arange(1, 1 + math.prod(shape), dtype=np.float32).reshape(shape)


# Operators without cases of their own, and layers: the name, the inputs and the attributes, as in test_refusals.
OTHERS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Range", [A(2), "int64", A(1)], {}),
    ("Range", [A(0), "int64", A(1)], {}),
    ("Range", [A(2.0), A(7.0), A(1.0)], {}),
    ("Range", ["float", "float", A(2.0, np.float32)], {}),
    ("Einsum", ["float[]", "float[3,4]"], {"equation": "...i,ij->...j"}),
    ("Einsum", ["float[2,3]", "float[3,4]"], {"equation": "ij,jk"}),
    ("Einsum", ["float[5,1,3]", "float[7,3]"], {"equation": "...i,...i->..."}),
    ("Tile", ["float[2,3]", "float[1]", A([1.0], np.float32)], {"_opset": 1}),
    ("Tile", ["float[2,3]", A([2.0], np.float32), A([0.0], np.float32)], {"_opset": 1}),
    ("Tile", ["int64[2,3]", "int64[1]", "int64[1]"], {"_opset": 1}),
    ("MatMul", ["float[2,3]", weights(3, 4)], {}),
    ("MatMul", ["int64[2,3]", A(weights(3, 4), np.int64)], {}),
    ("MatMul", ["float[2,3]", weights(5, 3, 4)], {}),
    ("LayerNormalization", ["float[2,3,4]", weights(4), weights(4)], {}),
    ("LayerNormalization", ["float[2,3,4]", weights(4), "float[4]"], {}),
    ("LayerNormalization", ["float[2,3,4]", weights(4), weights(1)], {}),
    ("LayerNormalization", ["float[2,3,4]", weights(1), weights(1)], {"_outputs": 3}),
    ("LayerNormalization", ["float[2,3,4]", weights(3, 4)], {"axis": 1}),
    ("LayerNormalization", ["float[2,3,4]", weights(4)], {"axis": 1}),
    ("RMSNormalization", ["float[2,3,4]", weights(4)], {"_opset": 23}),
    ("RMSNormalization", ["float[2,3,4]", weights(1)], {"_opset": 23}),
    ("RMSNormalization", ["float[2,3,4]", weights(3, 4)], {"axis": 1, "_opset": 23}),
    ("GroupNormalization", ["float[2,4,5]", weights(4), weights(4)], {"num_groups": 2}),
    ("InstanceNormalization", ["float[2,4,5]", weights(4), weights(4)], {}),
    ("BatchNormalization", ["float[2,4,5]", *[weights(4)] * 4], {}),
    ("BatchNormalization", ["float16[2,4,5]", *["float16[4]"] * 2, *["float[4]"] * 2], {
        "training_mode": 1, "_outputs": 3}),
    ("Conv", ["float[1,4,6,6]", weights(5, 4, 3, 3), weights(5)], {"pads": [1, 1, 1, 1]}),
    ("Conv", ["float[1,4,6]", weights(4, 1, 3)], {"group": 4, "auto_pad": "SAME_UPPER"}),
    ("ConvTranspose", ["float[1,4,6,6]", weights(4, 5, 3, 3), weights(5)], {
        "strides": [2, 2], "output_padding": [1, 1]}),
    ("ConvTranspose", ["float[1,4,6]", weights(4, 5, 3)], {"auto_pad": "SAME_LOWER", "strides": [2]}),
    ("Gemm", ["float[2,3]", weights(3, 4), weights(4)], {}),
    ("Gemm", ["float[2,3]", weights(4, 3), weights(1, 4)], {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    ("Gemm", ["float[3,2]", weights(3, 4)], {"transA": 1}),
    ("Gather", [weights(5, 4), "int64[2,3]"], {}),
    ("Gather", [weights(5, 4), "int64[2,3]"], {"axis": 1}),
    ("PRelu", ["float[1,4,5]", weights(4, 1)], {}),
    ("PRelu", ["float[1,4,5]", weights(1)], {}),
    ("LSTM", ["float[2,1,3]", weights(1, 8, 3), weights(1, 8, 2), weights(1, 16)], {"hidden_size": 2, "_outputs": 3}),
    ("LSTM", ["float[2,1,3]", weights(2, 8, 3), weights(2, 8, 2)], {"hidden_size": 2, "direction": "bidirectional"}),
    ("GRU", ["float[2,1,3]", weights(1, 6, 3), weights(1, 6, 2), weights(1, 12)], {
        "hidden_size": 2, "linear_before_reset": 1, "_outputs": 2}),
    ("RNN", ["float[2,1,3]", weights(1, 2, 3), weights(1, 2, 2), None, "int32[1]"], {
        "hidden_size": 2, "direction": "reverse"}),
    ("Reshape", ["float[N,6]", A([0, 2, -1])], {}),
    ("Reshape", ["float[N,M,6]", A([0, 0, 2, 3])], {}),
    ("Reshape", ["float[N,6]", A([0, 6])], {"allowzero": 1}),
    ("Reshape", ["float[]", A([0, 6])], {}),
    ("Reshape", ["float[N,M]", A([-1, 4])], {}),
    ("Expand", [A([1.5], np.float32), A([2, 3])], {}),
    ("Expand", [A(True), A([2, 3])], {}),
    ("Expand", [A([[1], [2]]), A([2, 3])], {}),
    ("Expand", ["float[1,3]", "int64[2]"], {}),
    ("Expand", [A(3), "int64[2]"], {}),
    ("GlobalLpPool", ["float[1,4,6,6]"], {"p": 2}),
    ("RandomUniform", [], {"shape": [2, 3], "low": -1.0, "high": 2.0, "seed": 3.0, "dtype": 1}),
    ("RandomNormal", [], {"shape": [2, 3], "mean": -1.0, "scale": 2.0, "seed": 3.0, "dtype": 11}),
    ("RandomUniformLike", ["float[2,3]"], {"seed": 3.0}),
    ("RandomNormalLike", ["double[2,3]"], {"dtype": 1, "seed": 3.0}),
    ("Multinomial", ["float[2,3]"], {"sample_size": 4, "seed": 3.0, "dtype": 7}),
    # opsets before theirs: what is an input now was an attribute
    ("Slice", ["float[4,5]"], {"starts": [1, 0], "ends": [3, 2147483647], "axes": [0, 1], "_opset": 9}),
    ("Slice", ["float[4,N]"], {"starts": [-2147483647, -2], "ends": [-1, 1 << 62], "_opset": 9}),
    ("ReduceSum", ["float[2,3,4]"], {"axes": [0, 2], "keepdims": 0, "_opset": 11}),
    ("ReduceMax", ["float[2,3,4]"], {"_opset": 11}),
    ("ReduceMean", ["float[2,3,4]"], {"axes": [-1], "_opset": 13}),
    ("Squeeze", ["float[1,3,1]"], {"axes": [0, -1], "_opset": 11}),
    ("Squeeze", ["float[1,3,1]"], {"_opset": 11}),
    ("Unsqueeze", ["float[3]"], {"axes": [0, 2], "_opset": 11}),
    ("Split", ["float[6,4]"], {"axis": 0, "split": [2, 4], "_outputs": 2, "_opset": 11}),
    ("Split", ["float[6,4]"], {"axis": 1, "_outputs": 2, "_opset": 2}),
    ("Pad", ["float[2,3]"], {"pads": [0, 1, 2, 0], "value": 1.5, "_opset": 2}),
    ("Clip", ["float[2,3]"], {"min": -1.0, "max": 2.0, "_opset": 6}),
    ("Upsample", ["float[1,1,4,4]"], {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear", "_opset": 7}),
    ("TopK", ["float[2,5]"], {"k": 2, "axis": -1, "_outputs": 2, "_opset": 1}),
    ("Dropout", ["float[2,3]"], {"ratio": 0.25, "_outputs": 2, "_opset": 10}),
    ("Reshape", ["float[2,3]"], {"shape": [3, -1], "_opset": 1}),
    ("Softmax", ["float[2,3,4]"], {"axis": 1, "_opset": 11}),
    ("Hardmax", ["float[2,3,4]"], {"axis": -1, "_opset": 11}),
    ("BatchNormalization", ["float[2,4,5]", *["float[4]"] * 4], {"is_test": 1, "consumed_inputs": [0], "_opset": 1}),
    ("Add", ["float[2,3,4]", "float[3]"], {"broadcast": 1, "axis": 1, "_opset": 6}),
    ("Add", ["float[2,3,4]", "float[3,4]"], {"broadcast": 1, "axis": 1, "_opset": 6}),
    ("Pow", ["float[2,3]", A(2.0, np.float32)], {}),
    ("Pow", ["int64[2,3]", "float[3]"], {}),
    ("Where", ["bool[3]", A(1.0, np.float64), A(2.0, np.float64)], {}),
    ("Max", ["float[2,3]", "float[3]", "float[1]"], {}),
    ("Mean", ["float[2,3]", "float[3]"], {}),
    # what is known and what is not
    ("Slice", ["float[4,5,6]", A([1, -3]), A([4, -1]), A([0, -1]), A([2, 1])], {}),
    ("Slice", ["float[4,5,6]", A([-1]), A([-(1 << 62)]), A([1]), A([-1])], {}),
    ("Slice", ["float[4,N]", A([0]), A([3]), A([1])], {}),
    ("Slice", ["float[4,5]", "int64[1]", A([3]), A([1])], {}),
    ("Slice", ["float[4,5]", A([0]), A([5]), "int64[1]"], {}),
    ("Split", ["float[6,N]", A([2, 4])], {"axis": 0, "_outputs": 2}),
    ("Split", ["float[7,4]"], {"axis": 0, "num_outputs": 3, "_outputs": 3}),
    ("Split", ["float[N,4]"], {"axis": 0, "num_outputs": 2, "_outputs": 2}),
    ("Concat", ["float[2,3]", "float[N,3]", "float[2,3]"], {"axis": 0}),
    ("Concat", ["float[2,3]", weights(1, 3), weights(2, 3)], {"axis": -2}),
    ("Transpose", [weights(2, 3)], {}),
    ("Transpose", [weights(2, 3)], {"perm": [1, 0]}),
    ("Transpose", [weights(2, 3, 4)], {"perm": [2, 1, 0]}),
    ("Transpose", ["float[]"], {"perm": [1, 0]}),
    ("Flatten", ["float[2,3,N]"], {"axis": 2}),
    ("Flatten", ["float[N,3,4]"], {"axis": -2}),
    ("Squeeze", ["float[1,N,1]", A([0, 2])], {}),
    ("Squeeze", ["float[1,N,1]"], {}),
    ("Squeeze", ["float[]", A([0])], {}),
    ("Unsqueeze", ["float[N,3]", A([0, -1])], {}),
    ("Unsqueeze", ["float[3]", "int64[1]"], {}),
    ("SpaceToDepth", ["float[1,4,N,6]"], {"blocksize": 2}),
    ("DepthToSpace", ["float[1,8,N,6]"], {"blocksize": 2, "mode": "CRD"}),
    ("ReduceSum", ["float[2,N,4]", A([1])], {"keepdims": 0}),
    ("ReduceSum", ["float[2,3,4]", "int64[2]"], {"keepdims": 0}),
    ("ReduceSum", ["float[2,3,4]", A([], np.int64)], {"noop_with_empty_axes": 1}),
    ("ReduceMax", ["bool[2,3]", A([1])], {}),
    ("ReduceL2", ["int32[2,3]", A([1])], {}),
    ("ReduceLogSumExp", ["double[2,3]"], {"keepdims": 0}),
    ("ArgMax", ["float[2,N]"], {"axis": 1, "keepdims": 0, "select_last_index": 1}),
    ("TopK", ["float[2,N]", A([2])], {"axis": 0, "largest": 0, "sorted": 0, "_outputs": 2}),
    ("TopK", ["float[2,5]", "int64[1]"], {"axis": -1, "_outputs": 2}),
    ("CumSum", ["float[2,3]", A(1)], {"exclusive": 1, "reverse": 1}),
    ("CumSum", ["float[2,3]", "int64"], {}),
    ("ConstantOfShape", [A([2, 3])], {}),
    ("ConstantOfShape", ["int64[2]"], {}),
    ("Cast", ["float[2,3]"], {"to": 7}),
    ("Cast", [weights(2, 2)], {"to": 7}),
    ("Cast", ["float[2]"], {"to": 17, "saturate": 0}),
    ("CastLike", ["float[2,3]", "int64[1]"], {}),
    ("Shape", ["float[2,N,4]"], {"start": 1, "end": -1}),
    ("Size", ["float[2,N]"], {}),
    ("OneHot", ["int64[2,3]", A([4]), A([0.0, 1.0], np.float32)], {"axis": 1}),
    ("OneHot", ["int64[2,3]", "int64", "float[2]"], {}),
    ("EyeLike", ["float[3,N]"], {"k": 1, "dtype": 7}),
    ("Trilu", ["float[3,4]", A(1)], {"upper": 0}),
    ("Trilu", ["float[N,4]", "int64"], {}),
    ("Tile", ["float[2,N]", A([2, 1])], {}),
    ("Tile", ["float[2,3]", "int64[2]"], {}),
    ("Pad", ["float[2,3]", A([1, -1, 0, 2]), A(1.0, np.float32)], {"mode": "constant"}),
    ("Pad", ["float[2,N]", A([1, 1]), None, A([1])], {"mode": "reflect"}),
    ("Pad", ["float[2,3]", "int64[4]"], {"mode": "edge"}),
    ("Pad", ["float[2,3]", "int64[2]", A(1.0, np.float32), "int64[1]"], {"mode": "constant"}),
    ("Pad", ["float[2,3]", A([1, 1]), A(0.0, np.float32), "int64[1]"], {}),
    ("Gather", ["float[3,4]", A(1)], {"axis": 0}),
    ("Gather", ["float[3,N]", A([[0, -1]])], {"axis": 1}),
    ("GatherElements", ["float[3,4]", "int64[3,2]"], {"axis": 1}),
    ("GatherND", ["float[2,3,4]", "int64[2,2]"], {"batch_dims": 1}),
    ("ScatterND", ["float[4,5]", "int64[2,1]", "float[2,5]"], {"reduction": "add"}),
    ("ScatterElements", ["float[4,5]", "int64[2,5]", "float[2,5]"], {"axis": 0, "reduction": "max"}),
    ("Compress", ["float[3,4]", A([True, False, True])], {"axis": 0}),
    ("Compress", ["float[3,4]", "bool[4]"], {}),
    ("Unique", ["float[3,4]"], {"axis": 1, "sorted": 0, "_outputs": 4}),
    ("Resize", ["float[1,1,4,4]", None, A([1.0, 1.0, 2.0, 0.5], np.float32)], {"mode": "linear"}),
    ("Resize", ["float[1,1,4,4]", None, None, A([1, 1, 8, 3])], {"mode": "cubic", "cubic_coeff_a": -0.5}),
    ("Resize", ["float[1,1,4,4]", None, None, A([8, 3])], {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}),
    ("Resize", ["float[1,1,N,4]", None, "float[4]"], {"mode": "nearest", "nearest_mode": "floor"}),
    ("GridSample", ["float[1,2,4,4]", "float[1,3,3,2]"], {"mode": "linear", "padding_mode": "border"}),
    ("RoiAlign", ["float[1,2,4,4]", "float[3,4]", "int64[3]"], {"output_height": 2, "output_width": 3, "mode": "max"}),
    ("NonMaxSuppression", ["float[1,6,4]", "float[1,2,6]", A([2]), A([0.5], np.float32)], {"center_point_box": 1}),
    ("AveragePool", ["float[1,4,6,6]"], {"kernel_shape": [3, 3], "count_include_pad": 1, "pads": [1, 1, 1, 1]}),
    ("AveragePool", ["float[1,4,7]"], {"kernel_shape": [2], "strides": [2], "ceil_mode": 1}),
    ("MaxPool", ["float[1,4,6,6]"], {"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ("MaxPool", ["float[1,4,6,N]"], {"kernel_shape": [3, 3], "dilations": [2, 1], "_outputs": 2}),
    ("LpPool", ["float[1,4,6]"], {"kernel_shape": [2], "p": 3}),
    ("MaxUnpool", ["float[1,1,2,2]", "int64[1,1,2,2]"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("LRN", ["float[1,4,5]"], {"size": 3, "alpha": 0.1, "beta": 0.5, "bias": 2.0}),
    ("DFT", ["float[1,8,1]"], {"axis": 1, "onesided": 1, "_opset": 17}),
    ("DFT", ["float[1,8,2]", A(6), A(1)], {"inverse": 1, "_opset": 20}),
    ("STFT", ["float[1,16,1]", A(4), "float[8]"], {"onesided": 1, "_opset": 17}),
    ("STFT", ["float[1,16,1]", A(4), None, A(8)], {"onesided": 0, "_opset": 17}),
    ("MelWeightMatrix", [A(4), A(8), A(16000), A(0.0, np.float32), A(8000.0, np.float32)], {"_opset": 17}),
    ("HannWindow", [A(8)], {"periodic": 0, "_opset": 17}),
    ("HannWindow", ["int64"], {"output_datatype": 11, "_opset": 17}),
    ("QuantizeLinear", ["float[2,3]", weights(3), A([1, 2, 3], np.uint8)], {"axis": 1}),
    ("QuantizeLinear", ["float[2,4]", "float[2,2]", "int8[2,2]"], {"axis": 1, "block_size": 2}),
    ("DequantizeLinear", ["int8[2,3]", A(0.5, np.float32), A(1, np.int8)], {}),
    ("DequantizeLinear", ["int8[2,4]", "float[2,2]"], {"axis": -1, "block_size": 2}),
    ("Attention", ["float[1,3,8]", "float[1,5,4]", "float[1,5,4]", "float[3,5]"], {
        "q_num_heads": 4, "kv_num_heads": 2, "is_causal": 1, "softcap": 2.0, "_opset": 23}),
    ("Attention", ["float[1,4,3,2]", "float[1,2,5,2]", "float[1,2,5,2]", "bool[3,5]"], {"scale": 0.5, "_opset": 23}),
    ("Attention", ["float[1,2,3,4]"] * 3 + [None, "float[1,2,6,4]", "float[1,2,6,4]"], {"_outputs": 3, "_opset": 23}),
    ("RotaryEmbedding", ["float[1,2,3,8]", "float[5,4]", "float[5,4]", "int64[1,3]"], {"_opset": 23}),
    ("RotaryEmbedding", ["float[1,3,16]", "float[1,3,2]", "float[1,3,2]"], {
        "num_heads": 2, "rotary_embedding_dim": 4, "interleaved": 1, "_opset": 23}),
    ("Dropout", ["float[2,3]", A(0.5, np.float32), A(True)], {"seed": 1, "_outputs": 2}),
    ("Identity", ["seq(float[2])"], {}),
    ("SequenceAt", ["seq(float[2,3])", "int64"], {}),
    ("OptionalGetElement", ["optional(float[2])"], {}),
    ("OptionalHasElement", ["optional(seq(float[2]))"], {}),
    ("MaxRoiPool", ["float[1,4,6,6]", "float[2,5]"], {"pooled_shape": [2, 2], "spatial_scale": 0.5}),
    ("SequenceConstruct", ["float[2,3]", "float[2,3]", "float[1,3]"], {}),
    ("SequenceEmpty", [], {"dtype": 7}),
    ("SequenceInsert", ["seq(float[2,3])", "float[2,3]", A(0)], {}),
    ("SequenceErase", ["seq(float[2,3])", A(0)], {}),
    ("SequenceAt", ["seq(float[2,3])", A(0)], {}),
    ("SequenceLength", ["seq(float[2,3])"], {}),
    ("ConcatFromSequence", ["seq(float[2,3])"], {"axis": 1, "new_axis": 1}),
    ("ConcatFromSequence", ["seq(float[2,3])"], {"axis": -1}),
    ("SplitToSequence", ["float[4,3]", A([1, 3])], {"axis": 0}),
    ("SplitToSequence", ["float[4,3]"], {"axis": 1, "keepdims": 0}),
    ("Optional", ["float[2,3]"], {}),
    ("ml.Scaler", ["float[2,3]"], SCALER),
    ("ml.Normalizer", ["float[2,3]"], {"norm": "L2"}),
    ("ml.Imputer", ["float[2,3]"], {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": 0.5}),
    ("ml.Imputer", ["int64[2,3]"], {"imputed_value_int64s": [4], "replaced_value_int64": -1}),
    ("ml.FeatureVectorizer", ["float[2,3]", "int64[2,1]"], {"inputdimensions": [3, 1]}),
    ("ml.OneHotEncoder", ["int64[2,3]"], {"cats_int64s": [1, 2, 5], "zeros": 1}),
    ("ml.OneHotEncoder", ["string[2]"], {"cats_strings": ["a", "b"], "zeros": 0}),
    ("ml.CategoryMapper", ["string[2]"], {"cats_int64s": [1, 2], "cats_strings": ["a", "b"], "default_int64": 7}),
    ("ml.CategoryMapper", ["int64[2]"], {"cats_int64s": [1, 2], "cats_strings": ["a", "b"], "default_string": "z"}),
    ("ml.ZipMap", ["float[2,3]"], {"classlabels_int64s": [1, 2, 4]}),
    ("ml.ZipMap", ["float[2,2]"], {"classlabels_strings": ["a", "b"]}),
    ("ml.DictVectorizer", ["map(int64, float)"], {"int64_vocabulary": [1, 2, 4]}),
    ("ml.DictVectorizer", ["map(string, float)"], {"string_vocabulary": ["a", "b"]}),
    ("ml.CastMap", ["map(int64, float)"], {"cast_to": "TO_FLOAT", "map_form": "DENSE"}),
    ("ml.CastMap", ["map(int64, string)"], {"cast_to": "TO_INT64", "map_form": "SPARSE", "max_map": 4}),
    ("ml.LinearRegressor", ["float[2,3]"], {"coefficients": [1.0] * 6, "intercepts": [1.0, 2.0], "targets": 2}),
    ("ml.LinearClassifier", ["float[2,3]"], {
        "coefficients": [1.0, 2.0, 3.0], "intercepts": [0.5], "classlabels_ints": [0, 1], "post_transform": "LOGISTIC",
        "multi_class": 0, "_outputs": 2}),
    ("ml.LinearClassifier", ["float[2,2]"], {
        "coefficients": [1.0, 2.0, 3.0, 4.0], "classlabels_strings": ["a", "b"], "post_transform": "SOFTMAX",
        "_outputs": 2}),
    ("ml.SVMRegressor", ["float[1,2]"], {
        **VECTORS, "n_supports": 2, "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0], "one_class": 0}),
    ("ml.SVMRegressor", ["float[1,2]"], {"coefficients": [1.0, -1.0], "rho": [0.5], "one_class": 1}),
    ("ml.SVMClassifier", ["float[1,2]"], {
        **VECTORS, "vectors_per_class": [1, 1], "classlabels_ints": [0, 1], "kernel_type": "POLY",
        "kernel_params": [0.5, 1.0, 3.0], "prob_a": [0.5], "prob_b": [0.25], "_outputs": 2}),
    ("ml.SVMClassifier", ["float[1,2]"], {
        "coefficients": [1.0] * 6, "rho": [0.5], "classlabels_strings": ["a", "b", "c"], "_outputs": 2}),
    ("ml.TreeEnsemble", ["float[2,3]"], {**TREE, "aggregate_function": 1, "post_transform": 0}),
    ("ml.TreeEnsembleRegressor", ["float[2,3]"], {**OLD, "base_values": [0.5], "aggregate_function": "AVERAGE"}),
    ("ml.TreeEnsembleClassifier", ["float[2,3]"], {**CLASSES, "post_transform": "LOGISTIC"}),
    ("ml.LabelEncoder", ["int64[2]"], {"keys_int64s": [1, 2], "values_floats": [0.5, 1.5], "default_float": 9.0}),
    ("ml.LabelEncoder", ["string[2]"], {"classes_strings": ["a", "b"], "default_int64": 5, "_version": 1}),
    ("TfIdfVectorizer", ["int64[2,5]"], {**GRAMS, "weights": [0.5, 1.0, 2.0], "mode": "TFIDF"}),
    ("RegexFullMatch", ["string[2]"], {"pattern": "a+"}),
    ("ms.BiasSplitGelu", ["float[2,3,8]", "float[8]"], {}),
    ("ms.BiasSoftmax", ["float[2,3,4]", "float[2,1,4]"], {"axis": 2, "is_inner_broadcast": 0}),
    ("ms.ScaledSiLU", ["float[2,3]"], {}),
    ("ms.QAttention", ["uint8[1,3,4]", "int8[4,12]", "float[12]", "float", "float", None, "uint8", "int8"], {
        "num_heads": 2, "unidirectional": 1}),
    ("ms.GroupNorm", ["float[1,6,6,4]", "float[4]", "float[4]"], {
        "groups": 2, "epsilon": 0.001, "activation": 1, "channels_last": 1}),
    ("ms.GroupNorm", ["float[1,4,6,6]", "float[4]", "float[4]"], {"groups": 4, "activation": 0, "channels_last": 0}),
    ("ms.GemmFastGelu", ["float[2,3]", "float[3,4]", "float[4]"], {}),
    ("ms.FusedMatMul", ["float[2,3]", weights(3, 4)], {
        "alpha": 1.0, "transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0}),
    ("ms.FusedMatMul", ["float[2,5,3]", weights(2, 3, 4)], {
        "alpha": 0.5, "transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0}),
    ("ms.SkipLayerNormalization", ["float[2,3,4]", "float[2,3,4]", weights(4), weights(4), weights(4)], {
        "epsilon": 0.001, "_outputs": 4}),
    ("ms.SkipSimplifiedLayerNormalization", ["float[2,3,4]", "float[2,3,4]", weights(4)], {"_outputs": 4}),
    ("ms.TransposeMatMul", ["float[3,2]", "float[3,4]"], {"transA": 1, "alpha": 0.5}),
    ("ms.FusedMatMulActivation", ["float[2,3]", "float[3,4]"], {"activation": "LeakyRelu", "activation_alpha": 0.5}),
    ("ms.NhwcFusedConv", ["float[1,6,6,4]", "float[5,4,3,3]", "float[5]"], {
        "activation": "Relu", "pads": [1, 1, 1, 1]}),
    ("ms.NhwcConv", ["float[1,6,6,4]", "float[5,4,3,3]"], {"strides": [2, 2]}),
    ("ms.NhwcMaxPool", ["uint8[1,6,6,4]"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("ms.QLinearReduceMean", ["uint8[2,3]", "float", "uint8", "float", "uint8"], {"axes": [1], "keepdims": 0}),
    ("ms.QLinearWhere", ["bool[2,3]", *["uint8[2,3]", "float", "uint8"] * 2, "float", "uint8"], {}),
    ("ms.DynamicQuantizeLSTM", ["float[2,1,3]", *LSTM8], {"hidden_size": 2, "direction": "forward", "_outputs": 3}),
    ("ms.ExpandDims", ["float[2,3]", A(1, np.int32)], {}),
    ("ms.MatMulInteger16", ["int16[2,3]", "int16[3,4]"], {}),
    ("ms.CDist", ["float[2,3]", "float[4,3]"], {"metric": "euclidean"}),
    ("ms.GatedRMSNorm", ["float[2,3,4]", "float[4]", "float[2,3,4]"], {"epsilon": 0.001, "activation": "sigmoid"}),
    ("ms.GatedRMSNorm", ["float[2,3,8]", "float[4]", "float[2,3,8]"], {}),
    ("ms.MatMulInteger16", ["uint16[2,3]", "uint16[3,4]"], {}),
    ("ms.MatMulInteger16", ["uint16[2,3]", "int16[3,4]"], {}),
    ("ms.Tokenizer", ["string[2]"], {"pad_value": "#", "mark": 1, "separators": [" "], "mincharnum": 1}),
    ("ms.Tokenizer", ["string[1,2]"], {"pad_value": "#", "mark": 0, "tokenexp": "a+", "mincharnum": 2}),
    ("ms.Trilu", ["float[3,4]", A(1)], {"upper": 0}),
    ("ms.GatherND", ["float[2,3,4]", "int64[2,2]"], {}),
    ("ms.GridSample", ["float[1,1,4,4]", "float[1,2,2,2]"], {"mode": "bilinear", "align_corners": 1}),
    ("ms.Pad", ["float[2,3]", A([[1, 0, 0, 2]]), "float[1]"], {"mode": "constant"}),
    ("ms.Range", [A(0), A(6), A(2)], {}),
    ("ms.Unique", ["float[4]"], {"_outputs": 3}),
    ("ms.QuantizeLinear", ["float[2,3]", "float[3]", "uint8[3]"], {"axis": 1}),
    ("ms.DequantizeLinear", ["int8[2,3]", "float", "int8"], {"axis": 0}),
]  # fmt: skip


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    found = Runtime()
    yield found
    found.close()


@cache
def by_operator() -> dict[str, list[str]]:
    """Operator -> its cases of that one node: the smallest of those with the fewest inputs, outputs and attributes, and
    of those with the most."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    for name, case in node_cases().items():
        graph = case.model.graph
        if len(graph.node) == 1 and not case.model.functions:
            only = graph.node[0]
            parts = len(only.input) + len(only.output) + len(only.attribute)
            size = sum(getattr(value, "size", 1) for value in case.data_sets[0][0])
            found.setdefault(only.op_type, []).append((parts, size, name))
    chosen = {}
    for operator, rows in found.items():
        most = max(parts for parts, _, _ in rows)
        chosen[operator] = [min(rows)[2], min(row for row in rows if row[0] == most)[2]]
    return chosen


def findings(title: str, model: onnx.ModelProto, arrays: list[Any], runtime: Runtime, most: int = MOST) -> list[str]:
    """What is wrong with a sample of the model's changes, without what differs on purpose."""
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    values = dict(zip([info.name for info in model.graph.input], arrays, strict=True))
    made = [("as it is", model), *changes(model, arrays)]
    only = model.graph.node[0]
    most = most if only.attribute or len(only.input) != 1 else OF_PLAIN
    out = []
    for at in sorted(random.Random(title).sample(range(len(made)), min(most, len(made)))):
        label, changed = made[at]
        if only.op_type == "Loop" and label.startswith("no "):  # it may never end
            continue
        given = fitting(changed, values)
        ours = here(changed, given)
        if not valid(changed, runtime) and not ours.fault.startswith("raw"):
            continue
        said = verdict(ours, there(changed, given, runtime))
        text = f"{only.op_type}: {title}: {label}: {said}"
        if said and not matches(text, DIFFERENT):
            out.append(text)
    return out


@every("operator", lambda: sorted(by_operator()), share=8)
def test_a_node_with_one_thing_changed_gives_what_onnxruntime_gives(operator: str, runtime: Runtime) -> None:
    found = []
    for name in dict.fromkeys(by_operator()[operator]):
        model = onnx.ModelProto()
        model.CopyFrom(node_cases()[name].model)
        found += findings(name, model, list(node_cases()[name].data_sets[0][0]), runtime)
    assert not found, "\n".join(found)


@every("name", sorted(MICROSOFT), share=8)
def test_a_node_of_microsoft_with_one_thing_changed_gives_what_onnxruntime_gives(name: str, runtime: Runtime) -> None:
    model, arrays = onnx.load(MICROSOFT[name].model), MICROSOFT[name].inputs()
    found = findings(name, model, [arrays[info.name] for info in model.graph.input], runtime)
    assert not found, "\n".join(found)


@every("at", range(len(OTHERS)), share=8)
def test_a_node_without_a_case_with_one_thing_changed_gives_what_onnxruntime_gives(at: int, runtime: Runtime) -> None:
    operator, inputs, attributes = OTHERS[at]
    given = {k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in attributes.items()}
    model = node(operator, inputs, given)
    found = findings(f"row {at}", model, [None] * len(model.graph.input), runtime)
    assert not found, "\n".join(found)
