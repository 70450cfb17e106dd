"""Operators refuse attributes, shapes and counts that do not fit, each in its own words.

Each row is one node: its operator, its inputs ("float[2,3]", an array for a constant, None for one left out), its
attributes, and the words of the refusal. Next to a refused value is the closest allowed one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import load
from emberlet.errors import ModelError
from onnx import helper, numpy_helper, parser
from support.rows import every

DOMAINS = {"ml": "ai.onnx.ml", "ms": "com.microsoft", "training": "ai.onnx.preview.training"}
A: Any = np.array


def node(operator: str, inputs: list[Any], attributes: dict[str, Any]) -> onnx.ModelProto:
    """The model of one node. Attributes that begin with an underscore: the opset and the number of outputs."""
    prefix, _, name = operator.rpartition(".")
    domain = DOMAINS.get(prefix, "")
    opset, outputs, version = (attributes.pop(k, n) for k, n in (("_opset", 21), ("_outputs", 1), ("_version", 0)))
    names = ["" if x is None else f"i{k}" for k, x in enumerate(inputs)]
    texts = ", ".join(f"{x} i{k}" for k, x in enumerate(inputs) if isinstance(x, str))
    graph = parser.parse_graph(f"g ({texts}) => () {{ }}")
    made = [f"y{k}" for k in range(outputs)]
    graph.node.append(helper.make_node(name, names, made, name="n", domain=domain, **attributes))
    graph.initializer.extend(
        numpy_helper.from_array(x, f"i{k}") for k, x in enumerate(inputs) if isinstance(x, np.ndarray)
    )
    graph.output.extend(onnx.ValueInfoProto(name=o) for o in made)
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, version or (3 if prefix == "ml" else 1)))
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


X4, X3, X2, X1 = "float[1,4,6,6]", "float[1,4,6]", "float[2,3]", "float[4]"
W4 = "float[5,4,3,3]"
TREE = {
    "nodes_featureids": [0], "nodes_modes": A([0], np.uint8), "nodes_truenodeids": [0], "nodes_falsenodeids": [1],
    "nodes_trueleafs": [1], "nodes_falseleafs": [1], "nodes_splits": A([0.5], np.float32), "tree_roots": [0],
    "leaf_weights": A([1.0, 2.0], np.float32), "leaf_targetids": [0, 0], "n_targets": 1, "_version": 5,
}  # fmt: skip
OLD = {
    "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_featureids": [0, 0, 0], "nodes_values": [0.5, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0],
    "target_weights": [1.0, 2.0], "n_targets": 1,
}  # fmt: skip
SVM = {
    "coefficients": [1.0, -1.0], "support_vectors": [1.0, 2.0, 3.0, 4.0], "vectors_per_class": [1, 1], "rho": [0.5],
    "classlabels_ints": [0, 1], "_outputs": 2,
}  # fmt: skip
CLASSES = {
    **{k: v for k, v in OLD.items() if k.startswith("nodes_")}, "class_treeids": [0, 0], "class_nodeids": [1, 2],
    "class_ids": [0, 0], "class_weights": [1.0, 2.0], "classlabels_int64s": [0, 1], "_outputs": 2,
}  # fmt: skip
Q4 = ["float[1,2,3,4]"] * 3
LSTM8 = ["uint8[1,3,8]", "uint8[1,2,8]", None, None, None, None, None, "float[1]", "uint8[1]", "float[1]", "uint8[1]"]
GRAMS = {
    "pool_int64s": [1, 2, 3], "ngram_counts": [0], "ngram_indexes": [0, 1, 2], "mode": "TF", "min_gram_length": 1,
    "max_gram_length": 1, "max_skip_count": 0,
}  # fmt: skip
GQA = {"num_heads": 2, "kv_num_heads": 2}
GQA_INPUTS = ["float[1,1,4]", "float[1,1,4]", "float[1,1,4]", None, None, "int32[1]", "int32[1]"]
NBITS = {"K": 8, "N": 2, "block_size": 16}
NBITS_INPUTS = ["float[1,8]", "uint8[2,1,8]", "float[2,1]"]

REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    # attributes of another type, or missing
    ("Softmax", [X2], {"axis": 1.5}, "'axis' should be an int"),
    ("Elu", [X2], {"alpha": 1}, "'alpha' should be a float"),
    ("DepthToSpace", [X4], {"blocksize": 2, "mode": 1}, "'mode' should be a string"),
    ("DepthToSpace", [X4], {"blocksize": 2, "mode": "RGB"}, "expected one of DCR, CRD"),
    ("Transpose", [X2], {"perm": [0.0, 1.0]}, "'perm' should be a list of ints"),
    ("Transpose", [X2], {"perm": 1}, "'perm' should be a list of ints"),
    ("ml.Scaler", [X2], {"offset": [1], "scale": [1.0]}, "'offset' should be a list of floats"),
    ("StringNormalizer", ["string[2]"], {"stopwords": [1]}, "'stopwords' should be a list of strings"),
    ("Constant", [], {"value": 1.0}, "'value' should be a tensor"),
    ("Constant", [], {}, "has no value"),
    ("Optional", [], {}, "an empty optional needs the attribute 'type'"),
    ("Optional", [], {"type": 3}, "'type' should be a type"),
    ("Loop", [None, None], {"body": 3}, "'body' should be a graph"),
    ("SpaceToDepth", [X4], {}, "'blocksize' (int) is missing"),
    ("Cast", [X2], {"to": 99}, "'to' is 99"),
    ("RNN", ["float[2,1,3]", "float[1,2,3]", "float[1,2,2]"], {"hidden_size": 2, "activations": ["Sin"]}, "has 'Sin'"),
    # movement
    ("DepthToSpace", [X4], {"blocksize": 0}, "'blocksize' is 0, expected 1 or more"),
    ("SpaceToDepth", [X4], {"blocksize": -2}, "'blocksize' is -2, expected 1 or more"),
    ("DepthToSpace", [X3], {"blocksize": 2}, "expected (n, c, h, w), found rank 3"),
    ("Transpose", [X2], {"perm": [0]}, "is not a permutation of 2 axes"),
    ("Transpose", [X2], {"perm": [0, 0]}, "name one axis twice"),
    ("Transpose", [X2], {"perm": [0, 2]}, "axis 2"),
    ("Reshape", [X2, A([-1, -1])], {}, "has more than one -1"),
    ("Reshape", [X2, A([0, -1])], {"allowzero": 1}, "has both 0 and -1"),
    ("Reshape", [X2, A([2, -2])], {}, "has the dimension -2"),
    ("Reshape", [X2, A([6, 1, 0])], {}, "copies dimension 2 of an input of rank 2"),
    ("Reshape", [X2, A([4, -1])], {}, "does not fit the shape"),
    ("Reshape", [X2, A([7])], {}, "does not fit the shape"),
    ("Concat", ["float[2,3]", "float[3,3]"], {"axis": 1}, "do not join along axis 1"),
    ("Concat", ["float[2,3]", "float[2]"], {"axis": 0}, "rank 2 and 1 do not join"),
    ("Concat", [], {"axis": 0}, "has 0 inputs, expected at least 1"),
    ("Split", [X2], {"num_outputs": 3, "_outputs": 2, "axis": 1}, "num_outputs is 3, the node has 2 outputs"),
    ("Split", [X2, A([1, 1])], {"axis": 1, "_outputs": 2}, "do not make up axis 1"),
    ("Split", [X2, A([1, 1, 1])], {"axis": 1, "_outputs": 2}, "do not make up axis 1"),
    ("Slice", [X2, A([0]), A([1, 2]), A([0, 1])], {}, "differ in number"),
    ("Slice", [X2, A([0]), A([1]), A([0]), A([0])], {}, "a step is 0"),
    ("Slice", [X2, A([0]), A([1]), A([2])], {}, "axis 2"),
    ("CenterCropPad", [X2, A([1, 2, 3])], {}, "3 sizes for 2 axes"),
    ("ConstantOfShape", [A([2])], {"value": numpy_helper.from_array(A([1.0, 2.0]))}, "has 2 elements, expected 1"),
    ("ConstantOfShape", ["float[1]"], {}, "the shape is float32, expected int64"),
    ("Range", [A(0), A(3), A(0)], {}, "delta is 0"),
    # products
    ("Gemm", ["float[2,3]", "float[4,5]"], {}, "do not multiply"),
    ("Gemm", ["float[2,3]", "float[3,5]"], {"transB": 1}, "do not multiply"),
    ("Gemm", ["float[2,3,4]", "float[4,5]"], {}, "expected matrices, found rank 3"),
    ("MatMul", ["float[2,3]", "float[4,5]"], {}, "do not multiply"),
    ("MatMul", ["float", "float[4,5]"], {}, "rank 1 or more"),
    ("Einsum", [X2, X2], {"equation": "ij->i"}, "names 1 operands, found 2"),
    ("Einsum", [X2], {"equation": "ijk->i"}, "has rank 2, its term 'ijk' 3 letters"),
    # windows
    ("Conv", [X4, W4], {"kernel_shape": [2, 2]}, "kernel_shape is (2, 2), the weight's is (3, 3)"),
    ("Conv", [X3, W4], {}, "the input has rank 3, the weight 4"),
    ("Conv", ["float[1,3,6,6]", W4], {}, "the input has 3 channels"),
    ("Conv", [X4, W4], {"group": 2}, "wants 8"),
    ("Conv", [X4, W4], {"strides": [1]}, "strides has 1 entries for 2 spatial axes"),
    ("Conv", [X4, W4], {"pads": [1, 1]}, "pads has 2 entries for 2 spatial axes"),
    ("Conv", [X4, W4], {"dilations": [1, 0]}, "must be positive"),
    ("Conv", [X4, W4], {"strides": [0, 1]}, "must be positive"),
    ("Conv", ["float[1,4,1,1]", W4], {}, "does not fit the input"),
    ("Conv", ["float[1,4]", "float[5,4]"], {}, "found rank 2"),
    ("MaxPool", [X4], {"kernel_shape": [9, 9]}, "does not fit the input"),
    ("ConvTranspose", [X4, "float[4,5,3,3]"], {"output_padding": [1]}, "does not fit 2 spatial axes"),
    ("ConvTranspose", [X4, "float[4,5,3,3]"], {"output_shape": [8]}, "does not fit 2 spatial axes"),
    ("ConvTranspose", ["float[1,4,N,6]", "float[4,5,3,3]"], {"output_shape": [8, 8]}, "known size of axis 2"),
    ("DeformConv", [X3, "float[5,4,2,2]", "float[1,8,5,5]"], {}, "takes (n, c, h, w), found rank 3"),
    ("MaxPool", ["float[1,1,4,4,4]"], {"kernel_shape": [2, 2, 2], "storage_order": 1, "_outputs": 2}, "two spatial"),
    # normalization, reductions, resizing
    ("LayerNormalization", [X2, "float[3]"], {"axis": 2}, "axis 2 is outside"),
    ("LayerNormalization", [X2, "float[3]"], {"axis": -3}, "axis -3 is outside"),
    ("GroupNormalization", [X4, X1, X1], {"num_groups": 3}, "4 channels do not divide into 3 groups"),
    ("GroupNormalization", [X4, X1, X1], {"num_groups": 0}, "groups"),
    ("BatchNormalization", [X4, X1, X1, X1, X1], {"spatial": 0, "_opset": 7}, "spatial=0"),
    ("BatchNormalization", [X4, *["float[3]"] * 4], {}, "shape (3,) is not a number for each of 4 channels"),
    ("BatchNormalization", ["float[4]", *["float[4]"] * 4], {}, "each of 1 channels"),
    ("InstanceNormalization", [X4, "float[4,1]", "float[4]"], {}, "shape (4, 1) is not a number for each of 4"),
    ("GroupNormalization", [X4, "float[2]", "float[2]"], {"num_groups": 2}, "each of 4 channels"),
    ("GroupNormalization", [X4, "float[4]", "float[4]"], {"num_groups": 2, "_opset": 18}, "each of 2 channels"),
    ("Resize", [X4], {}, "neither scales nor sizes are given"),
    ("ReduceSum", [X2, A([2])], {}, "axis 2"),
    ("ReduceSum", [X2, A([0, -2])], {}, "name one axis twice"),
    ("Softmax", [X2], {"axis": 2}, "axis 2"),
    ("Softmax", [X2], {"axis": -3}, "axis -3"),
    # recurrent
    ("LSTM", ["float[1,3]", "float[1,8,3]", "float[1,8,2]"], {"hidden_size": 2}, "the input has rank 2"),
    ("LSTM", ["float[2,1,3]", "float[1,8,3]", "float[1,6,2]"], {"hidden_size": 2}, "the recurrence weights"),
    ("GRU", ["float[2,1,3]", "float[1,6,4]", "float[1,6,2]"], {"hidden_size": 2}, "the weights (1, 6, 4)"),
    ("RNN", ["float[2,1,3]", "float[1,2,3]", "float[1,2,2]", "float[1,2]"], {"hidden_size": 2}, "the bias (1, 2)"),
    # control
    ("Sum", [], {}, "has 0 inputs, expected at least 1"),
    ("SequenceAt", [X2, A(0)], {}, "expected a sequence"),
    # machine learning
    ("ml.TreeEnsemble", [X2], {**TREE, "n_targets": 0}, "has 0 targets, expected 1 to"),
    ("ml.TreeEnsemble", [X2], {**TREE, "n_targets": (1 << 20) + 1}, "targets, expected 1 to"),
    ("ml.TreeEnsemble", [X2], {**TREE, "nodes_featureids": [0, 1]}, "one entry a node, and one a leaf"),
    ("ml.TreeEnsemble", [X2], {**TREE, "leaf_targetids": [0]}, "one entry a node, and one a leaf"),
    ("ml.TreeEnsemble", [X2], {**TREE, "nodes_featureids": [-1]}, "has the feature -1 and the mode 0"),
    ("ml.TreeEnsemble", [X2], {**TREE, "nodes_modes": A([7], np.uint8)}, "has the feature 0 and the mode 7"),
    ("ml.TreeEnsemble", [X2], {**TREE, "nodes_truenodeids": [2]}, "refers to leaf 2, which does not exist"),
    ("ml.TreeEnsemble", [X2], {**TREE, "nodes_falsenodeids": [-1]}, "refers to leaf -1, which does not exist"),
    ("ml.TreeEnsemble", [X2], {**TREE, "nodes_trueleafs": [0], "nodes_truenodeids": [1]}, "refers to node 1, which"),
    ("ml.TreeEnsemble", [X2], {**TREE, "nodes_trueleafs": [0]}, "contains a cycle"),
    ("ml.TreeEnsemble", [X2], {**TREE, "tree_roots": [1]}, "root or a leaf's target does not exist"),
    ("ml.TreeEnsemble", [X2], {**TREE, "leaf_targetids": [0, 1]}, "root or a leaf's target does not exist"),
    ("ml.TreeEnsemble", [X2], {**TREE, "leaf_targetids": [0, -1]}, "root or a leaf's target does not exist"),
    ("ml.TreeEnsemble", [X2], {**TREE, "nodes_featureids": [3]}, "has 3 features, a tree reads number 3"),
    ("ml.TreeEnsemble", [X2], {**TREE, "aggregate_function": 4}, "aggregate_function 4 or"),
    ("ml.TreeEnsemble", [X2], {**TREE, "post_transform": 5}, "post_transform 5 does not exist"),
    ("ml.TreeEnsembleRegressor", [X2], {**OLD, "nodes_nodeids": [0, 1, 1]}, "have the same number"),
    ("ml.TreeEnsembleRegressor", [X2], {**OLD, "nodes_values": [0.5, 0.0]}, "must have one entry a node"),
    ("ml.TreeEnsembleRegressor", [X2], {**OLD, "nodes_modes": ["LEQ", "LEAF", "LEAF"]}, "has the mode 'LEQ'"),
    ("ml.TreeEnsembleRegressor", [X2], {**OLD, "nodes_truenodeids": [3, 0, 0]}, "refers to node 3, which does not"),
    ("ml.TreeEnsembleRegressor", [X2], {**OLD, "target_ids": [0]}, "target_ids and"),
    ("ml.TreeEnsembleRegressor", [X2], {**OLD, "base_values": [1.0, 2.0]}, "2 base_values for 1 targets"),
    ("ml.SVMClassifier", ["float[1,2]"], {**SVM, "classlabels_ints": [3]}, "the only label is 3"),
    ("ml.SVMClassifier", ["float[1,2]"], {**SVM, "vectors_per_class": [1, 1, 1]}, "of 2 classes"),
    ("ml.SVMClassifier", ["float[1,2]"], {**SVM, "vectors_per_class": [3, -1]}, "of 2 classes"),
    ("ml.SVMClassifier", ["float[1,2]"], {**SVM, "vectors_per_class": [2, 1]}, "2 coefficients for 3 support vectors"),
    ("ml.SVMClassifier", ["float[1,2]"], {**SVM, "rho": [0.5, 1.0]}, "2 rho, 0 prob_a, 0 prob_b for 1 pairs"),
    ("ml.SVMClassifier", ["float[1,2]"], {**SVM, "prob_a": [0.5]}, "1 rho, 1 prob_a, 0 prob_b for 1 pairs"),
    ("ml.SVMClassifier", ["float[1,2]"], {**SVM, "kernel_params": [1.0]}, "kernel_params are 1 numbers"),
    ("ml.SVMClassifier", ["float[1,3]"], SVM, "has 3 features, its coefficients are for 2"),
    ("ml.LinearRegressor", [X2], {"coefficients": [1.0, 2.0], "targets": 1}, "coefficients are for 2"),
    ("ml.LinearRegressor", [X2], {"coefficients": [1.0] * 4, "targets": 3}, "4 coefficients do not make 3 rows"),
    ("ml.LinearRegressor", [X2], {"coefficients": [1.0] * 3, "targets": 0}, "do not make 0 rows"),
    ("ml.LinearRegressor", ["float[1,2,3]"], {"coefficients": [1.0] * 3}, "expected rows of features, found rank 3"),
    ("ml.LinearClassifier", [X2], {"coefficients": [1.0] * 3, "_outputs": 2}, "has neither"),
    ("ml.FeatureVectorizer", [X2], {"inputdimensions": [1, 2]}, "are not one for each of 1 inputs"),
    ("ml.FeatureVectorizer", [X2], {"inputdimensions": [-1]}, "are not one for each of 1 inputs"),
    ("ml.FeatureVectorizer", [X2], {"inputdimensions": [1 << 24]}, "are not one for each of 1 inputs"),
    ("ml.CategoryMapper", ["string[2]"], {"cats_int64s": [1], "cats_strings": ["a", "b"]}, "1 numbers for 2 words"),
    ("ml.LabelEncoder", ["string[2]"], {"keys_strings": ["a"], "values_int64s": [1, 2]}, "1 keys for 2 values"),
    ("ml.Imputer", ["int32[2]"], {"imputed_value_int64s": [1 << 31], "replaced_value_int64": 0}, "do not fit int32"),
    ("ml.Imputer", ["uint8[2]"], {"imputed_value_int64s": [1]}, "takes float32, float64, int32 or int64"),
    ("ml.Imputer", [X2], {"imputed_value_floats": [1.0, 2.0]}, "has 2 replacement values of float32 for 3 features"),
    ("ml.Scaler", [X2], {"offset": [1.0, 2.0], "scale": [1.0]}, "offset has 2 numbers for 3 features"),
    ("ml.OneHotEncoder", [X2], {"cats_strings": ["a"]}, "its categories are not values of a tensor of float32"),
    ("ml.ZipMap", [X2], {"classlabels_int64s": [1]}, "1 labels for 3 columns"),
    ("ml.DictVectorizer", [X2], {"int64_vocabulary": [1]}, "its input is not a map"),
    ("ml.TreeEnsembleRegressor", [X2], {**OLD, "nodes_truenodeids": [0, 0, 0]}, "a tree contains a cycle"),
    # texts
    ("RegexFullMatch", ["string[2]"], {"pattern": "("}, "is not a regular expression"),
    ("RegexFullMatch", ["string[2]"], {"pattern": "a" * 65537}, "has 65537 characters; at most 65536"),
    ("TfIdfVectorizer", ["int64[3]"], {**GRAMS, "ngram_indexes": [0, -1, 2]}, "must not be empty or negative"),
    ("TfIdfVectorizer", ["int64[3]"], {**GRAMS, "ngram_indexes": [0, 1, 1 << 26]}, "ngram_indexes reach 67108864"),
    ("TfIdfVectorizer", ["int64[3]"], {**GRAMS, "ngram_counts": [1, 0]}, "are not ascending positions"),
    ("TfIdfVectorizer", ["int64[3]"], {**GRAMS, "ngram_counts": [-1]}, "are not ascending positions"),
    ("TfIdfVectorizer", ["int64[3]"], {**GRAMS, "ngram_counts": [4]}, "are not ascending positions"),
    ("TfIdfVectorizer", ["int64[3]"], {**GRAMS, "min_gram_length": 0}, "lengths of n-grams"),
    ("TfIdfVectorizer", ["int64[3]"], {**GRAMS, "min_gram_length": 2}, "lengths of n-grams"),
    ("TfIdfVectorizer", ["int64[3]"], {**GRAMS, "max_skip_count": -1}, "lengths of n-grams"),
    # com.microsoft
    ("ms.Tokenizer", ["string[2]"], {"pad_value": "#", "mark": 0}, "either tokenexp or separators"),
    ("ms.Tokenizer", ["string[2]"], {"pad_value": "#", "mark": 0, "tokenexp": "a", "separators": ["b"]}, "either"),
    ("ms.Tokenizer", ["string[2]"], {"pad_value": "#", "mark": 0, "tokenexp": "a", "mincharnum": 0}, "mincharnum is 0"),
    ("ms.Tokenizer", ["string[2]"], {"pad_value": "#", "mark": 0, "separators": [""], "mincharnum": 2}, "is 2"),
    ("ms.Tokenizer", ["string[2,2,2]"], {"pad_value": "#", "mark": 0, "tokenexp": "a"}, "rank 1 or 2, found rank 3"),
    ("ms.MatMulNBits", NBITS_INPUTS, {**NBITS, "bits": 3}, "weights of 3 bits are not supported"),
    ("ms.MatMulNBits", NBITS_INPUTS, {**NBITS, "weight_prepacked": 1}, "weight_prepacked"),
    ("ms.GatherBlockQuantized", [X2, "int64[2]", "float[2,1]"], {}, "a table of float32 is not supported"),
    ("ms.QLinearConcat", ["float", "uint8", "uint8[2]", "float", "uint8", "uint8[2]"], {"axis": 0}, "has 6 inputs"),
    ("ms.GroupQueryAttention", GQA_INPUTS, {**GQA, "causal": 0}, "'causal' is 0; supported is 1"),
    ("ms.GroupQueryAttention", GQA_INPUTS, {**GQA, "do_rotary": 1}, "no cosines and sines"),
    ("ms.GroupQueryAttention", [*GQA_INPUTS, *[None] * 5, "float[1]"], GQA, "input 12, k_scale, is not supported"),
    ("ms.GroupQueryAttention", [*GQA_INPUTS, *[None] * 6, "float[1]"], GQA, "input 13, v_scale, is not supported"),
    ("ms.GroupQueryAttention", [*GQA_INPUTS, *[None] * 7, "float[2]"], GQA, "come together"),
    ("ms.GroupQueryAttention", [*GQA_INPUTS, *[None] * 8, "float[2]"], GQA, "come together"),
    ("ms.MultiHeadAttention", ["float[1,2,4]", *[None] * 7, "int32"], {"num_heads": 2}, "input 8, past_sequence"),
    ("ms.MultiHeadAttention", ["float[1,2,4]", *[None] * 8, "int32"], {"num_heads": 2}, "input 9, cache_indirection"),
    ("ms.MultiHeadAttention", ["float[1,2,4]"], {"num_heads": 2, "_outputs": 4}, "output 3, the scores"),
    ("ms.MultiHeadAttention", ["float[2,4]"], {"num_heads": 2}, "its query has 2 axes, expected 3 or 5"),
    ("ms.MultiHeadAttention", ["float[1,2,2,4]"], {"num_heads": 2}, "its query has 4 axes, expected 3 or 5"),
    ("ms.MultiHeadAttention", ["float[1,2,4]", "float[2,4]"], {"num_heads": 2}, "its key has 2 axes, expected 3 or 4"),
    ("ms.Attention", ["float[1,2,4]", "float[4,12]", *[None] * 4, "int32"], {"num_heads": 2}, "input 6, past_sequence"),
    ("ms.RotaryEmbedding", ["float[1,2,4]", "int64[1]", X2, X2], {"scale": 2.0}, "'scale' is 2.0; supported is 1.0"),
    ("ms.CDist", [X2, X2], {"metric": "cosine"}, "expected one of"),
    ("ms.BiasSoftmax", [X3, X3], {"axis": 1, "is_inner_broadcast": 1}, "only the last axis is supported, found axis 1"),
    ("ms.BiasSoftmax", [X3, X2], {"axis": 2, "is_inner_broadcast": 1}, "a bias of rank 2 broadcast inside scores of"),
    ("ms.ExpandDims", [X2, A(3, np.int32)], {}, "does not exist in a result of rank 3"),
    ("ms.ExpandDims", [X2, A(-4, np.int32)], {}, "does not exist in a result of rank 3"),
    ("ms.DynamicQuantizeLSTM", ["float[1,3]", *LSTM8], {"hidden_size": 2}, "has rank 2, expected (steps, batch"),
    # attributes and inputs that do not fit each other
    ("Attention", Q4, {"qk_matmul_output_mode": 4, "_opset": 23}, "is 4, expected 0 to 3"),
    ("Attention", Q4, {"qk_matmul_output_mode": -1, "_opset": 23}, "is -1, expected 0 to 3"),
    ("ml.LinearRegressor", [X2], {"coefficients": [1.0] * 3, "intercepts": [1.0, 2.0]}, "2 intercepts for 1 rows"),
    ("ml.TreeEnsembleClassifier", [X2], {**CLASSES, "base_values": [1.0, 2.0, 3.0]}, "3 base_values for 2 classes"),
    ("ml.TreeEnsembleClassifier", [X2], {**CLASSES, "classlabels_int64s": [3]}, "the only label is 3"),
    ("MaxPool", [X3], {"kernel_shape": [2, 2]}, "a kernel of (2, 2) on an input of rank 3"),
    ("Resize", [X4, None, "float[4,1]"], {}, "expected one row"),
    ("Tile", [X2, A([1, 2, 3])], {}, "3 repeats for a tensor of rank 2"),
    ("Pad", [X2, A([1, 1])], {}, "2 pads for 2 axes, expected two for each"),
    ("Where", ["bool[2,3]", X2, "double[2,3]"], {}, "chooses between float32 and float64, expected one dtype"),
    ("Add", [X2, "double[2,3]"], {}, "the operands have dtypes float32 and float64"),
    ("Add", [X2, "float[2,3,4]"], {"axis": 0, "broadcast": 1, "_opset": 6}, "does not line up the shapes"),
    ("Add", [X2, "float[2,3]"], {"axis": 1, "broadcast": 1, "_opset": 6}, "does not line up the shapes"),
    ("Sub", [X2, "float[2,3]"], {"axis": -1, "broadcast": 1, "_opset": 6}, "does not line up the shapes"),
    ("training.Adagrad", ["float", "int64", X1, X1], {}, "4 inputs do not make 2 and a multiple of 3"),
    ("training.Adagrad", ["float", "int64", X1], {}, "3 inputs do not make 2 and a multiple of 3"),
    ("Squeeze", [X2, A([0])], {}, "axis 0 of shape (2, 3) is not 1"),
    ("Squeeze", ["float[1,3]", A([0, 1])], {}, "axis 1 of shape (1, 3) is not 1"),
]  # fmt: skip


@every(("operator", "inputs", "attributes", "words"), REFUSED)
def test_what_an_operator_cannot_do_is_refused(
    operator: str, inputs: list[Any], attributes: dict[str, Any], words: str
) -> None:
    given = {k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in attributes.items()}
    with pytest.raises(ModelError) as refused:
        load(node(operator, inputs, given), "numpy")
    assert words in str(refused.value)


ALLOWED: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("DepthToSpace", [X4], {"blocksize": 1}),
    ("Slice", [X2, A([0]), A([1]), A([-2]), A([-1])], {}),
    ("Range", [A(0), A(3), A(-1)], {}),
    ("Conv", ["float[1,4,3,3]", W4], {}),
    ("MaxPool", [X4], {"kernel_shape": [6, 6]}),
    ("ConvTranspose", [X4, "float[4,5,3,3]"], {"output_shape": [8, 8]}),
    ("LayerNormalization", [X2, "float[2,3]"], {"axis": -2}),
    ("GroupNormalization", [X4, X1, X1], {"num_groups": 4}),
    ("Softmax", [X2], {"axis": -2}),
    ("ml.TreeEnsemble", [X2], {**TREE, "n_targets": 1 << 20}),
    ("ml.TreeEnsemble", [X2], {**TREE, "nodes_featureids": [2], "aggregate_function": 3, "post_transform": 4}),
    ("ml.SVMClassifier", ["float[1,2]"], {**SVM, "prob_a": [0.5], "prob_b": [0.5], "kernel_params": [1.0, 0.0, 3.0]}),
    ("ml.FeatureVectorizer", [X2], {"inputdimensions": [0]}),
    ("ml.Imputer", ["int32[2]"], {"imputed_value_int64s": [(1 << 31) - 1], "replaced_value_int64": -(1 << 31)}),
    ("RegexFullMatch", ["string[2]"], {"pattern": "a" * 65536}),
    ("TfIdfVectorizer", ["int64[3]"], {**GRAMS, "ngram_counts": [0, 3], "max_gram_length": 2}),
    ("ms.Tokenizer", ["string[2,2]"], {"pad_value": "#", "mark": 0, "separators": [""], "mincharnum": 1}),
    ("ms.MatMulNBits", NBITS_INPUTS, {**NBITS, "bits": 4}),
    ("ms.GroupQueryAttention", GQA_INPUTS, {**GQA, "causal": 1}),
    ("ms.ExpandDims", [X2, A(2, np.int32)], {}),
    ("ms.ExpandDims", [X2, A(-3, np.int32)], {}),
    ("Attention", Q4, {"qk_matmul_output_mode": 3, "_opset": 23}),
    ("ml.TreeEnsembleClassifier", [X2], {**CLASSES, "base_values": [1.0, 2.0]}),
    ("Resize", [X4, None, "float[4]"], {}),
    ("Add", [X2, "float[3]"], {"axis": -1, "broadcast": 1, "_opset": 6}),
    ("training.Adagrad", ["float", "int64", X1, X1, X1], {"_outputs": 2}),
]


@every(("operator", "inputs", "attributes"), ALLOWED)
def test_attributes_at_their_limits_are_accepted(operator: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    given = {k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in attributes.items()}
    load(node(operator, inputs, given), "numpy")
