"""Products and convolutions of tensors that were dequantized from 8 bits, by exact sums of their integers."""

from emberlet import dtypes, shapes
from emberlet.sizes.size import is_open

from .levels import levels
from .primitives import Primitives

_MOST = 1 << 15  # products within 255 * 255 that 32 bits sum


def _fits(count):
    return not is_open(count) and count <= _MOST


class LevelProducts(Primitives):
    """A backend that sums integers. It has besides, for int32 values within 255 of 0: _matmul_levels(a, b) and
    _conv_levels(x, weight, stride, padding, dilation, groups), the sums in int32, or None where floats are better."""

    def matmul(self, a, b):
        """a @ b; of operands that were dequantized from 8 bits, by the exact sums of their integers."""
        if _fits(a.shape[-1]) and len(a.shape) > 1 and len(b.shape) > 1:
            left, right = levels(a), levels(b)
            if left and right and left[1].size == 1 and (right[1].size == 1 or right[1].shape[-2] == 1):
                total = self._matmul_levels(left[0], right[0])
                if total is not None:
                    return self._scaled(total, left[1], right[1])
        return Primitives.matmul(self, a, b)

    def conv(self, x, weight, bias, stride, padding, dilation, groups):
        """`conv`, in the same way."""
        total = None
        if _fits(shapes.size(weight.shape[1:])):
            left, right = levels(x), levels(weight)
            if left and right and left[1].size == 1:
                scale = right[1]
                if scale.size == 1 or scale.shape[0] == scale.size:
                    total = self._conv_levels(left[0], right[0], stride, padding, dilation, groups)
                    if total is not None:
                        if scale.size > 1:
                            scale = self.reshape(scale, (scale.size,) + (1,) * len(stride))
                        total = self._scaled(total, left[1], scale)
        if total is None:
            return Primitives.conv(self, x, weight, bias, stride, padding, dilation, groups)
        if bias is not None:
            total = self.binary("add", total, self.reshape(bias, (bias.shape[0],) + (1,) * len(stride)))
        return total

    def _scaled(self, total, a_scale, b_scale):
        """int32 sums times the scales of their operands."""
        return self.binary("mul", self.cast(total, dtypes.float32), self.binary("mul", a_scale, b_scale))
