"""From a camera's frame buffer to the bytes of a model's input: shrinking, RGB565, gray, quantization in one pass.

    shrink = Shrink((320, 240), (96, 96), levels(*model.input_grids[0], mean=127, deviation=128), "rgb565")
    shrink(camera.buffer(), model.inputs[0])
    model.run()

Every pixel of the result is the mean of a box of source pixels.
"""

from array import array

try:
    from . import image_kernels_viper as _kernels
except (ImportError, SyntaxError, ValueError):
    from .bytecode import in_bytecode

    _kernels = in_bytecode("image_kernels_viper")

FORMATS = ("gray", "rgb", "rgb565", "rgb565_swapped")


def levels(scale, zero, mean=0, deviation=255):
    """The byte of a model's input for each brightness v from 0 to 255, where the model takes (v - mean) / deviation."""
    out = bytearray(256)
    for v in range(256):
        q = round((v - mean) / deviation / scale) + zero
        out[v] = 0 if q < 0 else 255 if q > 255 else q
    return out


class Shrink:
    """size, to: (width, height) of the frame buffer and of the input; table: from `levels`.

    source: "gray" and "rgb" have a byte for each channel; "rgb565" has 16-bit pixels, the high byte second (as a
    processor stores them), "rgb565_swapped" the high byte first (as cameras and displays send them). channels: of the
    input, 1 or 3. Raises ValueError for an invalid combination.
    """

    def __init__(self, size, to, table, source="rgb565", channels=1):
        if source not in FORMATS or channels not in (1, 3):
            raise ValueError(
                "source {} with {} channels is unknown; sources: {}".format(source, channels, ", ".join(FORMATS))
            )
        if source in ("gray", "rgb") and channels != (1 if source == "gray" else 3):
            raise ValueError("a {} frame buffer needs channels={}".format(source, 1 if source == "gray" else 3))
        if to[0] > size[0] or to[1] > size[1]:
            raise ValueError("{} cannot be shrunk to {}".format(size, to))
        if (size[0] // to[0] + 1) * (size[1] // to[1] + 1) > 65536:
            raise ValueError("{} to {} averages more than 65536 pixels at a time".format(size, to))
        pixels = size[0] * size[1]
        self._bytes = pixels * {"gray": 1, "rgb": 3}.get(source, 2)
        self._out = to[0] * to[1] * channels
        self._table = table
        self._plain = source in ("gray", "rgb")
        if self._plain:
            self._sizes = array("H", [size[0], size[1], channels, to[0], to[1]])
        else:
            high = 1 if source == "rgb565" else 0
            self._sizes = array("H", [size[0], size[1], high, to[0], to[1], channels])

    def __call__(self, frame, out):
        """Shrink a frame buffer into the bytes of an input. Raises ValueError if one has another size."""
        if len(frame) != self._bytes or len(out) != self._out:
            raise ValueError(
                "expected {} bytes in and {} out, found {} and {}".format(self._bytes, self._out, len(frame), len(out))
            )
        kernel = _kernels.shrink_bytes if self._plain else _kernels.shrink_rgb565
        kernel(frame, out, self._sizes, self._table)
