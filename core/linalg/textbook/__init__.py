"""Decompositions in plain Python, one matrix after the other, as lists of rows. The algorithms are those of Golub and
Van Loan, Matrix Computations (4th edition)."""

from ...shapes import size
from ...tensor import Tensor


def compute(what, x, more):
    """The results of the function `what` for every matrix of x (…, m, n), as a tuple of tensors.

    more: a tensor whose matrices belong to those of x, and settings, which are passed on.
    """
    from . import elimination, orthogonal

    function = getattr(elimination, what, None) or getattr(orthogonal, what)
    lead, backend = x.shape[:-2], x.backend
    operands = [_rows(t) for t in (x,) + tuple([m for m in more if isinstance(m, Tensor)])]
    settings = [m for m in more if not isinstance(m, Tensor)]
    found = [function(*[each[i] for each in operands], *settings) for i in range(size(lead))]
    if not found:  # the shapes of the results of an empty batch
        found = [function(*[_identity_like(t) for t in (x,) + more if isinstance(t, Tensor)], *settings)]
    out = []
    for part in range(len(found[0])):
        shape, flat = _shape(found[0][part]), []
        for result in found if size(lead) else []:
            _flatten(result[part], flat)
        out.append(backend.from_list(flat, x.dtype, lead + shape))
    return tuple(out)


def _rows(x):
    """The matrices of x as lists of rows."""
    m, n = x.shape[-2:]
    flat = x.backend.to_list(x)
    return [[flat[(i * m + r) * n : (i * m + r + 1) * n] for r in range(m)] for i in range(size(x.shape[:-2]))]


def _identity_like(x):
    return [[1.0 if r == c else 0.0 for c in range(x.shape[-1])] for r in range(x.shape[-2])]


class Rows(list):
    """Rows of `columns` numbers: the number of columns is known where there are no rows."""

    columns = 0


def matrix(rows, columns):
    """`rows` with the number of columns."""
    out = Rows(rows)
    out.columns = columns
    return out


def _shape(result):
    if isinstance(result, Rows):
        return (len(result), result.columns)
    return (len(result),) if isinstance(result, list) else ()


def _flatten(result, flat):
    if not isinstance(result, list):
        flat.append(result)
        return
    for each in result:
        _flatten(each, flat)
