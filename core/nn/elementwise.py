"""Activation functions as layers that few models keep in fields, by one mechanism: a layer is its function, called with
the layer's settings in their order."""

from ..functional.elementwise import activations
from ..module import Module


class _Elementwise(Module):
    FUNCTION = ""
    SHOWN = ""

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype."""
        return getattr(activations, self.FUNCTION)(x, *[getattr(self, name) for name in self.SHOWN.split()])


class Relu6(_Elementwise):
    """min(max(x, 0), 6)."""

    FUNCTION = "relu6"


class Softsign(_Elementwise):
    """x / (1 + |x|)."""

    FUNCTION = "softsign"


class LogSigmoid(_Elementwise):
    """log(1 / (1 + exp(-x)))."""

    FUNCTION = "log_sigmoid"


class Mish(_Elementwise):
    """x * tanh(softplus(x)) (Misra 2019)."""

    FUNCTION = "mish"


class Celu(_Elementwise):
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""

    FUNCTION = "celu"
    SHOWN = "alpha"

    def __init__(self, alpha=1.0):
        self.alpha = alpha


class Hardtanh(_Elementwise):
    """x clamped to [min_value, max_value]."""

    FUNCTION = "hardtanh"
    SHOWN = "min_value max_value"

    def __init__(self, min_value=-1.0, max_value=1.0):
        self.min_value = min_value
        self.max_value = max_value


class Softmin(_Elementwise):
    """softmax(-x) along axis."""

    FUNCTION = "softmin"
    SHOWN = "axis"

    def __init__(self, axis=-1):
        self.axis = axis


class HardShrink(_Elementwise):
    """x where |x| > lambd, 0 elsewhere."""

    SHOWN = "lambd"

    def __init__(self, lambd=0.5):
        self.lambd = lambd

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype; NaN stays NaN, as in PyTorch."""
        from ..functional.elementwise.comparison import where

        return where(x.abs() <= self.lambd, 0.0, x)


class SoftShrink(HardShrink):
    """x moved towards 0 by lambd, 0 where |x| <= lambd."""

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype; NaN stays NaN, as in PyTorch."""
        return x - x.clip(-self.lambd, self.lambd)


class Tanhshrink(_Elementwise):
    """x - tanh(x)."""

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype."""
        return x - x.tanh()


class Shrink(HardShrink):
    """x moved towards 0 by bias where |x| > lambd, 0 elsewhere (ONNX Shrink, Burn)."""

    SHOWN = "lambd bias"

    def __init__(self, lambd=0.5, bias=0.0):
        self.lambd = lambd
        self.bias = bias

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype."""
        return activations.shrink(x, self.lambd, self.bias)


class Threshold(_Elementwise):
    """x where x > threshold, value elsewhere."""

    SHOWN = "threshold value"

    def __init__(self, threshold, value):
        self.threshold = threshold
        self.value = value

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype."""
        from ..functional.elementwise.thresholds import threshold

        return threshold(x, self.threshold, self.value)


class ThresholdedRelu(_Elementwise):
    """x where x > alpha, 0 elsewhere."""

    FUNCTION = "thresholded_relu"
    SHOWN = "alpha"

    def __init__(self, alpha=1.0):
        self.alpha = alpha


class RRelu(_Elementwise):
    """x where it is positive, x times the mean of lower and upper elsewhere: what PyTorch's and Burn's compute outside
    of training. In training, the slope of each element is drawn between lower and upper (Xu et al. 2015)."""

    SHOWN = "lower upper"

    def __init__(self, lower=1 / 8, upper=1 / 3):
        self.lower = lower
        self.upper = upper

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype."""
        slope = (self.lower + self.upper) / 2
        if hasattr(x.backend, "from_inner"):  # in training
            from ..functional.randomness.draws import uniform

            slope = uniform(x.shape, self.lower, self.upper, dtype=x.dtype, backend=x.backend)
        from ..functional.elementwise.comparison import where

        return where(x > 0, x, x * slope)
