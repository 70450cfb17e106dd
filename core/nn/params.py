"""The lazy Params of the built-in layers. Initializers are imported only when one runs; loading weights needs none."""

from ..param import Param


def weight(shape, fans, dtype, backend, initializer=None):
    """A Param initialized by `initializer` or, by default, uniformly within ±1 / sqrt(fan in), as in PyTorch and Burn.

    fans: (fan in, fan out).
    """

    def init(shape, dtype, backend):
        from .initializer import KaimingUniform

        return (initializer or KaimingUniform(1 / 3**0.5))(shape, dtype, backend, fans)

    return Param.uninitialized(init, shape, dtype, backend)


def constant(shape, value, dtype, backend, require_grad=None):
    """A Param whose elements are all initialized to `value`."""

    def init(shape, dtype, backend):
        return backend.full(shape, value, dtype)

    return Param.uninitialized(init, shape, dtype, backend, require_grad)


def value(param):
    """The tensor of a Param, or None for None."""
    return None if param is None else param.val()
