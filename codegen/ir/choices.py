"""The words that attributes may be, one enumeration for each kind; values are ONNX's words unless it says otherwise."""

from __future__ import annotations

from enum import StrEnum


class AutoPad(StrEnum):
    """How a window is padded. A window whose sizes are known has NOTSET and its pads, whatever the file says."""

    NOTSET = "NOTSET"
    SAME_UPPER = "SAME_UPPER"
    SAME_LOWER = "SAME_LOWER"
    VALID = "VALID"


class Direction(StrEnum):
    """Of a recurrent layer."""

    FORWARD = "forward"
    REVERSE = "reverse"
    BIDIRECTIONAL = "bidirectional"


class PadMode(StrEnum):
    """What new elements are."""

    CONSTANT = "constant"
    REFLECT = "reflect"
    EDGE = "edge"
    WRAP = "wrap"


class ScatterReduction(StrEnum):
    """What becomes of several values at one place."""

    NONE = "none"
    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


class LossReduction(StrEnum):
    """Of a loss over its elements."""

    NONE = "none"
    MEAN = "mean"
    SUM = "sum"


class Interpolation(StrEnum):
    """Between the elements of Resize and GridSample."""

    NEAREST = "nearest"
    LINEAR = "linear"
    CUBIC = "cubic"


class Coordinates(StrEnum):
    """Where an output's place lies in the input of Resize."""

    HALF_PIXEL = "half_pixel"
    HALF_PIXEL_SYMMETRIC = "half_pixel_symmetric"
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    ALIGN_CORNERS = "align_corners"
    ASYMMETRIC = "asymmetric"
    TF_HALF_PIXEL_FOR_NN = "tf_half_pixel_for_nn"
    TF_CROP_AND_RESIZE = "tf_crop_and_resize"


class NearestMode(StrEnum):
    """Which neighbor Resize takes."""

    ROUND_PREFER_FLOOR = "round_prefer_floor"
    ROUND_PREFER_CEIL = "round_prefer_ceil"
    FLOOR = "floor"
    CEIL = "ceil"


class AspectRatio(StrEnum):
    """What Resize makes of sizes that would change it."""

    STRETCH = "stretch"
    NOT_LARGER = "not_larger"
    NOT_SMALLER = "not_smaller"


class GridPadding(StrEnum):
    """What GridSample sees outside its input."""

    ZEROS = "zeros"
    BORDER = "border"
    REFLECTION = "reflection"


class RoiMode(StrEnum):
    """What RoiAlign makes of the samples of a bin."""

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
    """Of the Normalizer of scikit-learn's models."""

    MAX = "MAX"
    L1 = "L1"
    L2 = "L2"


class CaseChange(StrEnum):
    """Of StringNormalizer."""

    NONE = "NONE"
    LOWER = "LOWER"
    UPPER = "UPPER"


class Weighting(StrEnum):
    """Of TfIdfVectorizer: counts, weights, or both."""

    TF = "TF"
    IDF = "IDF"
    TFIDF = "TFIDF"


class PixelFormat(StrEnum):
    """Of ImageDecoder."""

    RGB = "RGB"
    BGR = "BGR"
    GRAYSCALE = "Grayscale"


class Metric(StrEnum):
    """Of CDist."""

    EUCLIDEAN = "euclidean"
    SQEUCLIDEAN = "sqeuclidean"


class RoundMode(StrEnum):
    """Of a Cast to float8_e8m0fnu."""

    UP = "up"
    DOWN = "down"
    NEAREST = "nearest"


class UpdateRule(StrEnum):
    """Of LinearAttention's state."""

    LINEAR = "linear"
    GATED = "gated"
    DELTA = "delta"
    GATED_DELTA = "gated_delta"


class Aggregation(StrEnum):
    """Of the leaves that an ensemble of trees reaches; values are those of `F.tree_ensemble`."""

    AVERAGE = "average"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


class PostTransform(StrEnum):
    """Of scores, in scikit-learn's models; values are names of functions."""

    SOFTMAX = "softmax"
    LOGISTIC = "logistic"
    SIGMOID = "sigmoid"
    SOFTMAX_ZERO = "softmax_zero"
    PROBIT = "probit"


class KernelType(StrEnum):
    """Of a support vector machine; values are names of functions."""

    LINEAR = "linear"
    POLY = "poly"
    RBF = "rbf"
    SIGMOID = "sigmoid"


class MapCast(StrEnum):
    """What CastMap makes of a map's values."""

    TO_FLOAT = "TO_FLOAT"
    TO_STRING = "TO_STRING"
    TO_INT64 = "TO_INT64"
