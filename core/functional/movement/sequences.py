"""Lists of tensors: ONNX's sequence operators, each of which returns a new list.

Also `decode_image`, from a picture's bytes to a tensor.
"""

from ... import dtypes
from ...errors import IndexingError, ShapeError, UnsupportedError
from ...shapes import as_int, axis_of
from ..operands import tensor


#: function; ONNX SequenceInsert; sequence: Sequence[Tensor]; x: Tensor; position: int -> list[Tensor]
def sequence_insert(sequence, x, position=None):
    """`sequence` with x before `position` (at the end for None). Raises IndexingError outside [-n, n]."""
    n = len(sequence)
    if position is None:
        position = n
    if not -n <= position <= n:
        raise IndexingError("position {} is outside [{}, {}]".format(position, -n, n))
    if position < 0:
        position += n
    return list(sequence[:position]) + [x] + list(sequence[position:])


#: function; ONNX SequenceErase; sequence: Sequence[Tensor] -> list[Tensor]
def sequence_erase(sequence, position=-1):
    """`sequence` without the element at `position` (the last one by default). Raises IndexingError outside [-n, n)."""
    n = len(sequence)
    if not -n <= position < n:
        raise IndexingError("position {} is outside [{}, {})".format(position, -n, n))
    position %= n
    return list(sequence[:position]) + list(sequence[position + 1 :])


#: function; ONNX SplitToSequence; split: TensorLike -> list[Tensor]
def split_to_sequence(x, split=None, axis=0, keepdims=True):
    """A list of parts of x along axis, with the lengths in `split`, or of `split` elements each (the last may be
    shorter). Without split the parts have length 1, and the axis is dropped unless keepdims.

    Raises ShapeError if the lengths do not add up.
    """
    from .rearranging import narrow, squeeze

    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis]
    if split is None or isinstance(split, int):
        step = 1 if split is None else split
        if step < 1:
            raise ShapeError("split must be positive, found {}".format(step))
        lengths = [min(step, n - i) for i in range(0, n, step)]
    else:
        lengths = [as_int(s) for s in split]
        if sum(lengths) != n:
            raise ShapeError("split {} does not add up to the {} of axis {}".format(lengths, n, axis))
    parts, start = [], 0
    for length in lengths:
        part = narrow(x, axis, start, length)
        parts.append(squeeze(part, axis) if split is None and not keepdims else part)
        start += length
    return parts


#: function; ONNX ImageDecoder; data: Tensor
def decode_image(data, pixel_format="RGB"):
    """uint8 (height, width, channels) from the bytes of a picture file (uint8, rank 1): BMP, JPEG, PNG, TIFF, WebP, …

    pixel_format: "RGB", "BGR" or "Grayscale" (one channel). Needs Pillow; raises UnsupportedError without it.
    """
    data = tensor(data)
    try:
        from ...host.images import decode
    except ImportError:
        raise UnsupportedError("decoding pictures needs CPython with Pillow: pip install pillow")
    raw, shape = decode(bytes(data.backend.to_bytes(data)), pixel_format)
    return data.backend.from_bytes(raw, dtypes.uint8, shape)
