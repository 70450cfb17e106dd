"""The messages for a file that is not a valid burnpack, loaded only when one is needed."""

from ..errors import FormatError

_SAYS = {
    "header": "{} bytes are fewer than the {} of the header",
    "limit": "{} {} are more than the limit of {}",
    "magic": "begins with 0x{:08x}, not with the magic 0x{:08x} of a burnpack",
    "version": "has version {}; this release reads version {}",
    "truncated": "is truncated: {} ends at byte {}, the file at {}",
    "contents": "its metadata is not a map that holds a map 'tensors'",
    "map": "{!r} is not a map",
    "text": "metadata {!r} is not a text",
    "name": "holds no tensor {!r}; it holds {}",
    "descriptor": "tensor {!r}: its descriptor is not a map",
    "shape": "tensor {!r}: its shape is not an array",
    "offsets": "tensor {!r}: its data_offsets are not an array of two",
    "unsigned": "tensor {!r}: {} is {!r}, not an unsigned integer of 64 bits",
    "backwards": "tensor {!r} ends at {}, before it starts at {}",
    "tensor_limit": "tensor {!r}: {} {} are more than the limit of {}",
    "product": "tensor {!r}: the product of its shape {} overflows",
    "dtype": "tensor {!r}: dtype {!r} is none that a burnpack has",
    "length": "tensor {!r}: {} bytes where shape {} of {} takes {}",
    "narrow": "metadata {!r} says {!r}, which does not fit tensor {!r}",
    "narrow_shape": "metadata {!r} says {!r}, which is no shape",
    "narrow_length": "tensor {!r}: {} bytes do not hold {}",
    "scalar": 'scalar {!r} is not one of {{"Int", "UInt", "Float", "Bool": value}}',
}


def refuse(origin, what, found):
    """Raise FormatError: the file, and what was found in it."""
    raise FormatError("{}: {}".format(origin, _SAYS[what].format(*found)))
