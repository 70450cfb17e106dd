"""Sequences and grids beyond the array API standard, as NumPy names them."""

from ... import dtypes
from ...backend import get_backend
from ...errors import ArgumentError, ShapeError
from ..movement.joining import stack
from ..operands import astype, numeric
from ..overriding import composite
from .fills import arange, linspace, meshgrid, ones, tril, triu


#: function; NumPy logspace; start: float; stop: float; num: int; base: float
def logspace(start, stop, num=50, *, base=10.0, endpoint=True, dtype=None, backend=None):
    """`num` powers of `base`, from base ** start to base ** stop, whose exponents are evenly spaced."""
    if not base > 0:
        raise ArgumentError("logspace: base is {}, expected a positive number".format(base))
    exact = linspace(start, stop, num, dtype=_wide(dtype), backend=backend, endpoint=endpoint)
    return astype(base**exact, dtypes.dtype(dtype or dtypes.float32))


def _wide(dtype):
    dtype = dtypes.dtype(dtype or dtypes.float32)
    return dtype if dtype.is_float else dtypes.float64


#: function; NumPy geomspace; start: float; stop: float; num: int
def geomspace(start, stop, num=50, *, endpoint=True, dtype=None, backend=None):
    """`num` numbers from start to stop with one ratio between neighbors. Raises ArgumentError unless both are finite
    and have one sign."""
    from math import exp, inf, log

    if not 0 < abs(start) < inf or not 0 < abs(stop) < inf or (start > 0) != (stop > 0):
        raise ArgumentError("geomspace: start and stop are finite and have one sign, found {}, {}".format(start, stop))
    if not 0 <= num <= 1 << 24:
        raise ShapeError("geomspace of {} numbers cannot be made".format(num))
    count = num - 1 if endpoint else num
    half = (log(abs(stop)) - log(abs(start))) / count / 2 if count > 0 else 0.0
    values = [start * exp(half * i) * exp(half * i) for i in range(num)]  # the whole ratio can exceed every float
    if endpoint and num > 1:
        values[-1] = float(stop)
    return astype(get_backend(backend).from_list(values, _wide(dtype), (num,)), dtypes.dtype(dtype or dtypes.float32))


#: function; NumPy tri; n_rows: int; n_cols: int
def tri(n_rows, n_cols=None, k=0, *, dtype=None, backend=None):
    """(n_rows, n_cols) with ones on and below diagonal k, and zeros above."""
    n_cols = n_rows if n_cols is None else n_cols
    return tril(ones((n_rows, n_cols), dtype=dtype, backend=backend), k)


#: function; NumPy vander; n: int
@composite
def vander(x, n=None, increasing=False):
    """(size, n): the powers of x (1-D), from n - 1 down to 0, or up if `increasing`; n: by default x's length."""
    x = numeric(x, "vander")
    if x.ndim != 1:
        raise ShapeError("vander takes a 1-D tensor, found shape {}".format(x.shape))
    n = x.size if n is None else n
    if not 0 <= n <= 1 << 16:
        raise ShapeError("vander of {} powers cannot be made".format(n))
    powers = [x.backend.full(x.shape, 1, x.dtype)]
    for _ in range(n - 1):
        powers.append(x.backend.binary("mul", powers[-1], x))
    powers = powers[:n]
    if not powers:
        return x.backend.full((x.size, 0), 0, x.dtype)
    return stack(powers if increasing else powers[::-1], 1)


#: function; NumPy indices -> Tensor[int]
def indices(shape, *, backend=None):
    """int64 (rank, *shape): the index of each element along each axis."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    grid = meshgrid(*[arange(n, backend=backend) for n in shape], indexing="ij")
    return stack(grid, 0) if shape else get_backend(backend).full((0,), 0, dtypes.int64)


def _corner(n_rows, n_cols, k, upper, backend):
    n_cols = n_rows if n_cols is None else n_cols
    if max(n_rows, 0) * max(n_cols, 0) > 1 << 24 or max(n_rows, n_cols) > 1 << 24:
        raise ShapeError("the indices of a matrix {} × {} cannot be listed".format(n_rows, n_cols))
    whole = ones((max(n_rows, 0), max(n_cols, 0)), dtype="uint8", backend=backend)
    found = whole.backend.nonzero((triu if upper else tril)(whole, k))
    return found[0], found[1]


#: function; NumPy tril_indices; n_rows: int; n_cols: int -> tuple[Tensor, Tensor]
def tril_indices(n_rows, k=0, n_cols=None, *, backend=None):
    """(rows, columns) of the elements of a matrix (n_rows, n_cols) on and below diagonal k, row by row."""
    return _corner(n_rows, n_cols, k, False, backend)


#: function; NumPy triu_indices; n_rows: int; n_cols: int -> tuple[Tensor, Tensor]
def triu_indices(n_rows, k=0, n_cols=None, *, backend=None):
    """(rows, columns) of the elements of a matrix (n_rows, n_cols) on and above diagonal k, row by row."""
    return _corner(n_rows, n_cols, k, True, backend)
