"""Initial values of a layer's parameters when no weights are loaded.

An initializer is called as initializer(shape, dtype, backend, fans) and returns a Tensor. fans: (fan in, fan out) of
the layer, by default derived from the shape. Random initializers draw from emberlet's generator (`manual_seed`).
"""

from .. import dtypes
from ..backend import get_backend
from ..errors import refuse
from ..shapes import size


class Initializer:
    """Base of the initializers; subclass it and write `make(shape, dtype, backend, fan_in, fan_out)`."""

    def __call__(self, shape, dtype=None, backend=None, fans=None):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        fan_in, fan_out = fans or fans_of(shape)
        return self.make(shape, dtypes.dtype(dtype or dtypes.float32), get_backend(backend), fan_in, fan_out)

    def make(self, shape, dtype, backend, fan_in, fan_out):
        """The initial values: a Tensor of `shape` and `dtype` on `backend`. fan_in, fan_out: int."""
        raise NotImplementedError

    def __repr__(self):
        own = ["{}={}".format(key, self.__dict__[key]) for key in sorted(self.__dict__)]
        return "{}({})".format(type(self).__name__, ", ".join(own))


def fans_of(shape):
    """(fan in, fan out) of a weight of shape (d_input, d_output), or (out, in, *kernel) for a convolution."""
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    if len(shape) == 2:
        return shape
    taps = size(shape[2:])
    return shape[1] * taps, shape[0] * taps


def _uniform(shape, limit, dtype, backend):
    from ..functional.randomness.draws import uniform

    return uniform(shape, -limit, limit, dtype=dtype, backend=backend)


def _normal(shape, mean, std, dtype, backend):
    from ..functional.randomness.draws import normal

    return normal(shape, mean, std, dtype=dtype, backend=backend)


class Constant(Initializer):
    """Every element `value`."""

    def __init__(self, value):
        self.value = value

    def make(self, shape, dtype, backend, fan_in, fan_out):
        """`value` in every element, as a Tensor of `shape` and `dtype` on `backend`. Raises ShapeError for a negative
        length."""
        if [d for d in shape if d < 0]:
            refuse("least", "a length", 0, shape)
        return backend.full(shape, self.value, dtype)


class Zeros(Constant):
    """Every element 0."""

    def __init__(self):
        self.value = 0


class Ones(Constant):
    """Every element 1."""

    def __init__(self):
        self.value = 1


class Uniform(Initializer):
    """Uniform over [low, high)."""

    def __init__(self, low=0.0, high=1.0):
        self.low = low
        self.high = high

    def make(self, shape, dtype, backend, fan_in, fan_out):
        """Draws from [low, high), as a Tensor of `shape` and `dtype` on `backend`."""
        from ..functional.randomness.draws import uniform

        return uniform(shape, self.low, self.high, dtype=dtype, backend=backend)


class Normal(Initializer):
    """The normal distribution with the given mean and standard deviation."""

    def __init__(self, mean=0.0, std=1.0):
        self.mean = mean
        self.std = std

    def make(self, shape, dtype, backend, fan_in, fan_out):
        """Draws of the given mean and standard deviation, as a Tensor of `shape` and `dtype` on `backend`."""
        return _normal(shape, self.mean, self.std, dtype, backend)


class KaimingUniform(Initializer):
    """Uniform within ± gain * sqrt(3 / fan in), or fan out where fan_out_only (He et al. 2015)."""

    def __init__(self, gain=1.0, fan_out_only=False):
        self.gain = gain
        self.fan_out_only = fan_out_only

    def make(self, shape, dtype, backend, fan_in, fan_out):
        """Uniform draws scaled by the fans (He et al. 2015), as a Tensor of `shape` and `dtype` on `backend`."""
        fan = fan_out if self.fan_out_only else fan_in
        return _uniform(shape, self.gain * (3 / max(1, fan)) ** 0.5, dtype, backend)


class KaimingNormal(KaimingUniform):
    """Normal with standard deviation gain / sqrt(fan in), or fan out where fan_out_only (He et al. 2015)."""

    def make(self, shape, dtype, backend, fan_in, fan_out):
        """Normal draws scaled by the fans (He et al. 2015), as a Tensor of `shape` and `dtype` on `backend`."""
        fan = fan_out if self.fan_out_only else fan_in
        return _normal(shape, 0.0, self.gain / max(1, fan) ** 0.5, dtype, backend)


class XavierUniform(Initializer):
    """Uniform within ± gain * sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010)."""

    def __init__(self, gain=1.0):
        self.gain = gain

    def make(self, shape, dtype, backend, fan_in, fan_out):
        """Uniform draws scaled by both fans (Glorot and Bengio 2010): a Tensor on `backend`."""
        return _uniform(shape, self.gain * (6 / max(1, fan_in + fan_out)) ** 0.5, dtype, backend)


class XavierNormal(XavierUniform):
    """Normal with standard deviation gain * sqrt(2 / (fan in + fan out)) (Glorot and Bengio 2010)."""

    def make(self, shape, dtype, backend, fan_in, fan_out):
        """Normal draws scaled by both fans (Glorot and Bengio 2010): a Tensor on `backend`."""
        return _normal(shape, 0.0, self.gain * (2 / max(1, fan_in + fan_out)) ** 0.5, dtype, backend)


class Orthogonal(Initializer):
    """gain times a random matrix (the first axis by all others) with orthonormal rows, or orthonormal columns if there
    are more rows than columns (Saxe et al. 2014). Raises ShapeError for a shape of fewer than two axes."""

    def __init__(self, gain=1.0):
        self.gain = gain

    def make(self, shape, dtype, backend, fan_in, fan_out):
        """A matrix with orthonormal rows or columns (Saxe et al. 2013), as a Tensor of `shape` and `dtype` on
        `backend`."""
        from ..errors import ShapeError

        if len(shape) < 2:
            raise ShapeError("Orthogonal needs a shape of at least two axes, found {}".format(shape))
        wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
        rows, columns = shape[0], size(shape[1:])
        flipped = rows > columns
        start = _normal((min(rows, columns), max(rows, columns)), 0.0, 1.0, wide, backend)
        matrix = _orthonormal_rows(start) * self.gain
        if flipped:
            matrix = matrix.permute_dims((1, 0))
        return matrix.reshape(shape).astype(dtype)


def _orthonormal_rows(x):
    """The rows of x, orthonormalized (Gram-Schmidt, twice per row, because one pass is inexact)."""
    done = None
    for i in range(x.shape[0]):
        row = x[i : i + 1]
        for _ in range(2):
            if done is not None:
                row = row - (row @ done.mT) @ done
            row = row / (row * row).sum().sqrt()
        done = row if done is None else done.backend.concat((done, row), 0)
    return x if done is None else done
