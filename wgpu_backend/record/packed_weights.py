"""Records a product with weights of few bits as one operation whose kernel unpacks them, for the backends with one."""

from emberlet import dtypes
from emberlet.functional.movement.rearranging import narrow
from emberlet.functional.quantized.packed_weights import unpack_bits
from emberlet.sizes.questions import known_equal
from emberlet.tensor import Tensor

from .host_evaluation import is_evaluated, values_of
from .node import of_open_size, topological

WORD = 32  # bits of a word, which holds neighboring weights of one column
LEAST = 4  # columns of a panel
FEW = 4  # rows for which kernels unpack weights again


def product(backend, lanes, x, weight, scales, zero_points, bias, *, rows, columns, bits=4, block_size=32):
    """x (…, rows) times a weight as `matmul_nbits` takes it, plus a bias, as an operation of a plan that is being
    traced, with panels of at most `lanes` columns or, if that is None, a panel of all. None if there is no kernel for
    it."""
    if not backend.tracing or not _is_plain(x, weight, scales, zero_points, bias) or bits not in (2, 4, 8):
        return None
    count = -(-rows // block_size)
    whole = weight.size == columns * count * block_size * bits // 8 and scales.size == columns * count
    if not whole or not rows or not x.shape or not known_equal(x.shape[-1], rows) or known_equal(x.size, 0):
        return None
    while lanes is not None and lanes > columns:
        lanes //= 2
    lanes = columns if lanes is None else lanes
    parts = [
        backend.reshape(weight, (columns, count, block_size * bits // 8)),
        backend.reshape(scales, (columns, count)),
    ]
    if zero_points is not None:
        parts.append(_zeros(backend, zero_points, columns, count, bits))
    if None in parts or lanes < LEAST or (parts[0].shape[2] % 4 and count > 1):
        return None
    nodes = topological([t.data for t in parts])
    if [n for n in nodes if n.op in ("input", "buffer") or of_open_size(n) or not is_evaluated(n)]:
        return None
    sources = [backend.reshape(x, (x.size // rows, rows))]
    sources += _packed(backend, values_of([t.data for t in parts], backend.host), bits, lanes)
    shape = sources[0].shape[:1] + (columns,)
    out = backend._record("matmul_nbits", sources, (), "packed", (bits, block_size), dtypes.float32, shape)
    if bias is not None:
        out = backend.binary("add", out, backend.cast(bias, dtypes.float32))
    return backend.reshape(out, x.shape[:-1] + (columns,))


def _is_plain(x, weight, scales, zero_points, bias):
    """Whether the arguments are Tensors of the dtypes that the kernels take."""
    given = [t for t in (x, weight, scales, zero_points, bias) if t is not None]
    if [t for t in given if not isinstance(t, Tensor)]:
        return False
    return [t.dtype.name for t in (x, weight, scales)] == ["float32", "uint8", "float32"]


def _zeros(backend, zero_points, columns, count, bits):
    """The zero points (columns, count) in float32, None if they are of another dtype or number."""
    if zero_points.dtype is dtypes.uint8:
        packed = backend.reshape(zero_points, (columns, zero_points.size // columns))
        return backend.cast(narrow(unpack_bits(packed, bits), 1, 0, count), dtypes.float32)
    if zero_points.dtype is not dtypes.float32 or zero_points.size != columns * count:
        return None
    return backend.reshape(zero_points, (columns, count))


def _packed(backend, parts, bits, lanes):
    """The sources of a "packed" node beside x, as data, from the host's weight (columns, blocks, bytes), scales and,
    unless the zero points are the middle of the levels, zero points.

    They are the words of a panel of `lanes` columns (panels, words of a column, lanes) as uint32, its scales (panels,
    blocks, lanes) and its zero points. Without zero points levels are signed. The last panel has the last columns, some
    of which the one before it may have, too.
    """
    host, data = backend.host, parts[0]
    if data.shape[2] % 4:
        data = host.pad(data, ((0, 0), (0, 0), (0, -data.shape[2] % 4)), 0)
    if len(parts) == 2:
        signs = sum([1 << at for at in range(bits - 1, 8, bits)])
        data = host.binary("bitwise_xor", data, host.full((), signs, dtypes.uint8))
    out = [_panels(backend, data, lanes, (data.shape[1] * data.shape[2] // 4, 4))]
    for part in parts[1:]:
        out.append(_panels(backend, part, lanes, (data.shape[1],)))
    return out


def _panels(backend, part, lanes, rest):
    """A host's tensor (columns, …) as data (panels, first of `rest`, lanes, others of `rest`)."""
    host, columns = backend.host, part.shape[0]
    panels = (columns + lanes - 1) // lanes
    part = host.reshape(part, (columns,) + rest)
    ones = (1,) * (1 + len(rest))

    def cut(start, count):
        return host.slice(part, (start,) + (0,) * len(rest), (count,) + rest, ones)

    part = host.concat([cut(0, (panels - 1) * lanes), cut(columns - lanes, lanes)], 0)
    part = host.permute(host.reshape(part, (panels, lanes) + rest), (0, 2, 1, 3)[: 2 + len(rest)])
    dtype = dtypes.uint32 if part.dtype is dtypes.uint8 else part.dtype
    return backend.from_bytes(host.to_bytes(part), dtype, part.shape[:3])
