"""Products of matrices and vectors."""

from ...errors import ArgumentError, ShapeError
from ...shapes import axis_of, broadcast
from ..dense import linear as dense
from ..movement.rearranging import matrix_transpose, moveaxis, permute_dims, reshape
from ..operands import astype, floating, like, tensor
from ..overriding import composite, one_backend
from ..promotion import together


#: method; array API
def matmul(x1, x2):
    """Matrix product (…, m, k) @ (…, k, n) -> (…, m, n); leading axes broadcast. A 1-D operand counts as a row or
    column whose axis is then removed. Raises ShapeError if the inner sizes differ."""
    a, b = together(x1, x2)
    if not a.ndim or not b.ndim:
        raise ShapeError("matmul needs at least one axis, found shapes {} and {}".format(a.shape, b.shape))
    row, column = a.ndim == 1, b.ndim == 1
    if row:
        a = reshape(a, (1,) + a.shape)
    if column:
        b = reshape(b, b.shape + (1,))
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            "matmul of {} and {}: {} columns do not match {} rows".format(x1.shape, x2.shape, a.shape[-1], b.shape[-2])
        )
    broadcast(a.shape[:-2], b.shape[:-2])
    out = a.backend.matmul(a, b)
    if row or column:
        shape = out.shape[:-2] + (() if row else out.shape[-2:-1]) + (() if column else out.shape[-1:])
        out = reshape(out, shape)
    return out


#: method; array API; axes: int | tuple[Sequence[int], Sequence[int]]
@composite
def tensordot(x1, x2, axes=2):
    """Products summed over the last `axes` axes of x1 and the first of x2, or over two given lists of axes."""
    a, b = together(x1, x2)
    if isinstance(axes, int):
        first, second = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        first = [axis_of(i, a.ndim) for i in axes[0]]
        second = [axis_of(i, b.ndim) for i in axes[1]]
    if [a.shape[i] for i in first] != [b.shape[i] for i in second]:
        raise ShapeError("tensordot: axes {} of {} and {} of {} differ".format(first, a.shape, second, b.shape))
    keep_a = [i for i in range(a.ndim) if i not in first]
    keep_b = [i for i in range(b.ndim) if i not in second]
    inner = 1
    for i in first:
        inner *= a.shape[i]
    shape = tuple([a.shape[i] for i in keep_a]) + tuple([b.shape[i] for i in keep_b])
    rows = 1
    for i in keep_a:
        rows *= a.shape[i]
    columns = 1
    for i in keep_b:
        columns *= b.shape[i]
    a = reshape(permute_dims(a, keep_a + first), (rows, inner))
    b = reshape(permute_dims(b, second + keep_b), (inner, columns))
    return reshape(a.backend.matmul(a, b), shape)


#: method; array API
@composite
def vecdot(x1, x2, *, axis=-1):
    """The dot product along axis (negative, counted in each operand); the other axes broadcast."""
    a, b = together(x1, x2)
    if a.dtype.kind == "complex":
        from ..elementwise.complex_parts import conj

        a = conj(a)
    if axis >= 0:
        raise ShapeError("vecdot needs a negative axis, which both operands have; found {}".format(axis))
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError("vecdot: shapes {} and {} differ along axis {}".format(x1.shape, x2.shape, axis))
    a, b = reshape(a, a.shape[:-1] + (1, a.shape[-1])), reshape(b, b.shape + (1,))
    out = matmul(a, b)
    return reshape(out, out.shape[:-2])


#: method; NumPy dot; PyTorch dot; Burn dot
@composite
def dot(x1, x2):
    """The sum of products of two 1-D tensors, the matrix product of two matrices, or of a matrix and a vector; with a
    number, x times the number. Raises ShapeError for more axes, where NumPy's rule is none of the usual products."""
    a, b = together(x1, x2)
    if not a.ndim or not b.ndim:
        return a.backend.binary("mul", a, b)
    if a.ndim > 2 or b.ndim > 2:
        raise ShapeError(
            "dot of {} and {}: matmul multiplies batches of matrices, vecdot sums products along an axis, tensordot "
            "along several".format(a.shape, b.shape)
        )
    return matmul(a, b)


#: method; NumPy kron
@composite
def kron(x1, x2):
    """The Kronecker product: blocks of x2, each times an element of x1; shapes multiply axis by axis."""
    a, b = together(x1, x2)
    rank = max(a.ndim, b.ndim)
    sizes = [(1,) * (rank - x.ndim) + tuple(x.shape) for x in (a, b)]
    wide, narrow, shape = [], [], []
    for m, n in zip(*sizes):
        wide += [m, 1]
        narrow += [1, n]
        shape.append(m * n)
    return reshape(a.backend.binary("mul", reshape(a, tuple(wide)), reshape(b, tuple(narrow))), tuple(shape))


#: method; PyTorch outer
@composite
def outer(x1, x2):
    """Every element of x1 times every element of x2: (m,), (n,) -> (m, n)."""
    a, b = together(x1, x2)
    return a.backend.binary("mul", reshape(a, (a.size, 1)), reshape(b, (1, b.size)))


#: function; PyTorch linear; Burn linear; layout: str
@one_backend
def linear(x, weight, bias=None, *, layout=None):
    """x (…, d_input) @ weight + bias (d_output,).

    layout: "burn" if the weight is (d_input, d_output), as in nn.Linear; "pytorch" if it is (d_output, d_input), as in
    PyTorch. None: its shape tells. Raises ShapeError for a square weight without a layout, and if the sizes differ.
    """
    x, weight = floating(x), tensor(weight)
    if layout is None and weight.ndim == 2 and weight.shape != (1, 1):
        if weight.shape[0] == weight.shape[1]:
            raise ShapeError(
                "linear: PyTorch's weights are (d_output, d_input), Burn's (d_input, d_output), and {} does not tell: "
                "pass layout='pytorch' or layout='burn'".format(weight.shape)
            )
        layout = "pytorch" if x.shape[-1:] == weight.shape[1:] else "burn"
    if layout not in (None, "burn", "pytorch"):
        raise ArgumentError("linear: layout is 'burn', 'pytorch' or None, found {!r}".format(layout))
    return dense(x, matrix_transpose(weight) if layout == "pytorch" else weight, bias)


#: function; ONNX Gemm
@composite
def gemm(a, b, c=None, alpha=1.0, beta=1.0, trans_a=False, trans_b=False):
    """alpha * a' @ b' + beta * c, where a' and b' are a and b, transposed if trans_a, trans_b (ONNX Gemm)."""
    a, b = together(a, b)
    backend = a.backend
    out = matmul(permute_dims(a, (1, 0)) if trans_a else a, permute_dims(b, (1, 0)) if trans_b else b)
    if alpha != 1.0:
        out = _scaled(out, alpha)
    if c is not None:
        c = like(c, out)
        out = backend.binary("add", out, c if beta == 1.0 else _scaled(c, beta))
    return out


def _scaled(x, factor):
    backend = x.backend
    if x.dtype.is_integer:
        return astype(backend.binary("mul", floating(x), backend.full((), factor, floating(x).dtype)), x.dtype)
    return backend.binary("mul", x, backend.full((), factor, x.dtype))
