"""How alike images are: peak signal-to-noise ratio and structural similarity, the means over images."""

from math import exp, log

from ...errors import ArgumentError, ShapeError
from ...functional.promotion import widened
from .base import Averaged, FormatOptions
from .inputs import ImageInput


class _Images(Averaged):
    Input = ImageInput
    higher_is_better = True

    def __init__(self, data_range=1.0):
        if not data_range > 0:
            raise ArgumentError(
                "data_range, the largest pixel less the smallest, is above 0, found {}".format(data_range)
            )
        super().__init__()
        self.data_range = data_range

    def update(self, item, metadata=None):
        """item: an ImageInput. Raises ShapeError."""
        item = self.input_of(item)
        if item.output.shape != item.targets.shape or item.output.ndim != 4:
            raise ShapeError(
                "{} needs two tensors of images (n, channels, height, width) of the same shape, found {} and {}".format(
                    self.name, item.output.shape, item.targets.shape
                )
            )
        values = self._each(widened(item.output)[0], widened(item.targets)[0])
        batch = sum(values) / len(values) if values else float("nan")
        return self._state.update(batch, len(values), self._format())


class PsnrMetric(_Images):
    """The peak signal-to-noise ratio in dB; infinite of an image that is equal. data_range: the largest possible pixel
    less the smallest."""

    name = "PSNR"

    def _format(self):
        return FormatOptions(self.name).unit("dB")

    def _each(self, output, targets):
        difference = output - targets
        errors = (difference * difference).mean((1, 2, 3)).tolist()
        return [10 * log(self.data_range * self.data_range / e) / log(10) if e else float("inf") for e in errors]


class SsimMetric(_Images):
    """The structural similarity with a Gaussian window (Wang et al. 2004, https://doi.org/10.1109/TIP.2003.819861),
    where the window lies inside the image. data_range: the largest possible pixel less the smallest; window: its side
    in pixels; sigma: of the Gaussian."""

    name = "SSIM"

    def __init__(self, data_range=1.0, window=11, sigma=1.5, k1=0.01, k2=0.03):
        super().__init__(data_range)
        if window < 1 or window % 2 == 0:
            raise ArgumentError("the window of SSIM has an odd number of pixels, found {}".format(window))
        self.window = window
        self.sigma = sigma
        self.k1 = k1
        self.k2 = k2

    def _format(self):
        return FormatOptions(self.name).precision(4)

    def _each(self, output, targets):
        n, channels, height, width = output.shape
        if min(height, width) < self.window:
            raise ShapeError(
                "SSIM with a window of {} pixels of images of {} x {}; pass a smaller window".format(
                    self.window, height, width
                )
            )
        shape = (n * channels, 1, height, width)
        x, y = output.reshape(shape), targets.reshape(shape)
        mean_x, mean_y = self._blurred(x), self._blurred(y)
        of_x = self._blurred(x * x) - mean_x * mean_x
        of_y = self._blurred(y * y) - mean_y * mean_y
        of_both = self._blurred(x * y) - mean_x * mean_y
        c1, c2 = (self.k1 * self.data_range) ** 2, (self.k2 * self.data_range) ** 2
        above = (2 * (mean_x * mean_y) + c1) * (2 * of_both + c2)
        below = (mean_x * mean_x + mean_y * mean_y + c1) * (of_x + of_y + c2)
        found = above / below
        return found.reshape((n, channels) + found.shape[2:]).mean((1, 2, 3)).tolist()

    def _blurred(self, x):
        from ...functional.arrays import asarray
        from ...functional.convolution import conv

        middle = self.window // 2
        line = [exp(-((i - middle) ** 2) / (2 * self.sigma * self.sigma)) for i in range(self.window)]
        weight = asarray([w / sum(line) for w in line], dtype=x.dtype, backend=x.backend)
        x = conv(x, weight.reshape((1, 1, self.window, 1)))
        return conv(x, weight.reshape((1, 1, 1, self.window)))
