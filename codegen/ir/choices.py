"""The words that attributes may take, one enumeration per kind; values are ONNX's words unless noted otherwise."""

from __future__ import annotations

from enum import StrEnum


class AutoPad(StrEnum):
    """How a window is padded. If its sizes are known, this is NOTSET with explicit pads, whatever the file says."""

    NOTSET = "NOTSET"
    SAME_UPPER = "SAME_UPPER"
    SAME_LOWER = "SAME_LOWER"
    VALID = "VALID"


class Direction(StrEnum):
    """The direction of a recurrent layer."""

    FORWARD = "forward"
    REVERSE = "reverse"
    BIDIRECTIONAL = "bidirectional"


class RecurrentKind(StrEnum):
    """A recurrent layer by its name in emberlet.nn."""

    LSTM = "Lstm"
    GRU = "Gru"
    RNN = "Rnn"


class Activation(StrEnum):
    """The activation of a recurrent operator, or one that com.microsoft fuses (CLIP among these alone; NONE: none)."""

    NONE = ""
    AFFINE = "Affine"
    CLIP = "Clip"
    ELU = "Elu"
    HARD_SIGMOID = "HardSigmoid"
    LEAKY_RELU = "LeakyRelu"
    RELU = "Relu"
    SCALED_TANH = "ScaledTanh"
    SELU = "Selu"
    SIGMOID = "Sigmoid"
    SOFTPLUS = "Softplus"
    SOFTSIGN = "Softsign"
    TANH = "Tanh"
    THRESHOLDED_RELU = "ThresholdedRelu"


class Gate(StrEnum):
    """The activation of CausalConvWithState and GatedRMSNormalization; ONNX also calls SILU swish."""

    NONE = "none"
    SILU = "silu"
    SIGMOID = "sigmoid"


class PadMode(StrEnum):
    """The values of new elements."""

    CONSTANT = "constant"
    REFLECT = "reflect"
    EDGE = "edge"
    WRAP = "wrap"


class ScatterReduction(StrEnum):
    """How several values at one position are combined."""

    NONE = "none"
    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


class LossReduction(StrEnum):
    """How a loss is reduced over its elements."""

    NONE = "none"
    MEAN = "mean"
    SUM = "sum"


class Interpolation(StrEnum):
    """The interpolation of Resize and GridSample."""

    NEAREST = "nearest"
    LINEAR = "linear"
    CUBIC = "cubic"


class Coordinates(StrEnum):
    """How Resize maps output coordinates to the input."""

    HALF_PIXEL = "half_pixel"
    HALF_PIXEL_SYMMETRIC = "half_pixel_symmetric"
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    ALIGN_CORNERS = "align_corners"
    ASYMMETRIC = "asymmetric"
    TF_HALF_PIXEL_FOR_NN = "tf_half_pixel_for_nn"
    TF_CROP_AND_RESIZE = "tf_crop_and_resize"


class NearestMode(StrEnum):
    """Which neighbor Resize picks."""

    ROUND_PREFER_FLOOR = "round_prefer_floor"
    ROUND_PREFER_CEIL = "round_prefer_ceil"
    FLOOR = "floor"
    CEIL = "ceil"


class AspectRatio(StrEnum):
    """How Resize treats sizes that would change the aspect ratio."""

    STRETCH = "stretch"
    NOT_LARGER = "not_larger"
    NOT_SMALLER = "not_smaller"


class GridPadding(StrEnum):
    """The values that GridSample reads outside its input."""

    ZEROS = "zeros"
    BORDER = "border"
    REFLECTION = "reflection"


class RoiMode(StrEnum):
    """How RoiAlign pools the samples of a bin."""

    AVG = "avg"
    MAX = "max"


class BlockMode(StrEnum):
    """The order of DepthToSpace: depth, column, row or column, row, depth."""

    DCR = "DCR"
    CRD = "CRD"


class GeluApproximation(StrEnum):
    """How Gelu is computed."""

    NONE = "none"
    TANH = "tanh"


class Norm(StrEnum):
    """The norm of scikit-learn's Normalizer."""

    MAX = "MAX"
    L1 = "L1"
    L2 = "L2"


class CaseChange(StrEnum):
    """The case change of StringNormalizer."""

    NONE = "NONE"
    LOWER = "LOWER"
    UPPER = "UPPER"


class Weighting(StrEnum):
    """The weighting of TfIdfVectorizer: counts, weights, or both."""

    TF = "TF"
    IDF = "IDF"
    TFIDF = "TFIDF"


class PixelFormat(StrEnum):
    """The pixel format of ImageDecoder."""

    RGB = "RGB"
    BGR = "BGR"
    GRAYSCALE = "Grayscale"


class Metric(StrEnum):
    """The metric of CDist."""

    EUCLIDEAN = "euclidean"
    SQEUCLIDEAN = "sqeuclidean"


class RoundMode(StrEnum):
    """The rounding of a Cast to float8_e8m0fnu."""

    UP = "up"
    DOWN = "down"
    NEAREST = "nearest"


class UpdateRule(StrEnum):
    """The update rule of LinearAttention's state."""

    LINEAR = "linear"
    GATED = "gated"
    DELTA = "delta"
    GATED_DELTA = "gated_delta"


class Aggregation(StrEnum):
    """How a tree ensemble aggregates the leaves it reaches; values are those of `F.tree_ensemble`."""

    AVERAGE = "average"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


class PostTransform(StrEnum):
    """The function applied to scores in scikit-learn's models; values are names of functions."""

    SOFTMAX = "softmax"
    LOGISTIC = "logistic"
    SIGMOID = "sigmoid"
    SOFTMAX_ZERO = "softmax_zero"
    PROBIT = "probit"


class KernelType(StrEnum):
    """The kernel of a support vector machine; values are names of functions."""

    LINEAR = "linear"
    POLY = "poly"
    RBF = "rbf"
    SIGMOID = "sigmoid"


class MapCast(StrEnum):
    """The type to which CastMap casts a map's values."""

    TO_FLOAT = "TO_FLOAT"
    TO_STRING = "TO_STRING"
    TO_INT64 = "TO_INT64"
