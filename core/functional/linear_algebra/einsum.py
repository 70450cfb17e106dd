"""einsum: sums of products named by the letters of their axes (Einstein's notation)."""

from ...errors import ShapeError
from ...shapes import size
from ..movement.rearranging import permute_dims, reshape
from ..overriding import composite
from ..promotion import all_together


def _terms(text, operands):
    """(labels of each operand's axes, labels of the result): letters, and ".0", ".1", … for the axes of `...`, counted
    from the last."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ShapeError("einsum {!r} names {} operands, found {}".format(text, len(terms), len(operands)))
    hidden = 0
    out = []
    for term, x in zip(terms, operands):
        head, dots, tail = term.partition("...")
        rest = x.ndim - len(head) - len(tail)
        if rest < 0 or (rest and not dots) or not (head + tail == "" or (head + tail).isalpha()):
            raise ShapeError("einsum {!r}: term {!r} does not name the axes of {}".format(text, term, x.shape))
        hidden = max(hidden, rest)
        out.append(list(head) + ["." + str(i) for i in range(rest - 1, -1, -1)] + list(tail))
    unseen = ["." + str(i) for i in range(hidden - 1, -1, -1)]
    if arrow:
        head, dots, tail = right.partition("...")
        result = list(head) + (unseen if dots else []) + list(tail)
    else:
        letters = [c for labels in out for c in labels if c[0] != "."]
        result = unseen + sorted([c for c in letters if letters.count(c) == 1])
    for c in result:
        if result.count(c) > 1 or not any(c in labels for labels in out):
            raise ShapeError("einsum {!r}: the result names {!r} twice, or no operand has it".format(text, c))
    return out, result


def _diagonals(x, labels):
    """x with each repeated label's axes narrowed to their common diagonal."""
    backend = x.backend
    labels = list(labels)
    for c in labels:
        while labels.count(c) > 1:
            i = labels.index(c)
            j = labels.index(c, i + 1)
            n = x.shape[i]
            if x.shape[j] != n:
                raise ShapeError("einsum: {!r} names axes of lengths {} and {}".format(c, n, x.shape[j]))
            others = [a for a in range(x.ndim) if a not in (i, j)]
            lead = tuple([x.shape[a] for a in others])
            x = reshape(permute_dims(x, others + [i, j]), lead + (n * n,))
            # In the flattened matrix the diagonal is every (n + 1)th element.
            x = backend.slice(x, (0,) * x.ndim, lead + (n,), (1,) * len(lead) + (n + 1,))
            labels = [labels[a] for a in others] + [c]
    return x, labels


def _sizes(operands):
    """The length of each label; an axis of length 1 broadcasts."""
    sizes = {}
    for x, labels in operands:
        for n, c in zip(x.shape, labels):
            if sizes.get(c, 1) == 1:
                sizes[c] = n
            elif n != 1 and n != sizes[c]:
                raise ShapeError("einsum: {!r} names axes of lengths {} and {}".format(c, sizes[c], n))
    return sizes


def _without_ones(x, labels, sizes):
    """x without the axes of length 1 that broadcast, since a missing axis broadcasts by itself."""
    keep = [i for i in range(x.ndim) if x.shape[i] == sizes[labels[i]]]
    return reshape(x, tuple([x.shape[i] for i in keep])), [labels[i] for i in keep]


def _summed(x, labels, needed):
    """x summed over the labels that neither the result nor another operand has."""
    axes = tuple([i for i in range(x.ndim) if labels[i] not in needed])
    if not axes:
        return x, labels
    return x.backend.reduce("sum", x, axes, False), [c for c in labels if c in needed]


def _arranged(x, labels, *groups):
    """x with its axes in the order of the groups, each group merged into one axis."""
    order = [labels.index(c) for group in groups for c in group]
    x = permute_dims(x, order)
    return reshape(x, tuple([size(_lengths(x, order, labels, group)) for group in groups]))


def _lengths(x, order, labels, group):
    return [x.shape[order.index(labels.index(c))] for c in group]


def _contract(a, a_labels, b, b_labels, needed, sizes):
    """The product of two operands, summed over the labels they share and that are needed no further."""
    backend = a.backend
    shared = [c for c in a_labels if c in b_labels]
    inner = [c for c in shared if c not in needed]
    batch = [c for c in shared if c in needed]
    rows = [c for c in a_labels if c not in shared]
    columns = [c for c in b_labels if c not in shared]
    labels = batch + rows + columns
    shape = tuple([sizes[c] for c in labels])
    if not inner:
        a = _arranged(a, a_labels, batch, rows, [])
        b = _arranged(b, b_labels, batch, [], columns)
        return reshape(backend.binary("mul", a, b), shape), labels
    if not rows and not columns:
        product = backend.binary("mul", _arranged(a, a_labels, batch, inner), _arranged(b, b_labels, batch, inner))
        return reshape(backend.reduce("sum", product, (1,), False), shape), labels
    out = backend.matmul(_arranged(a, a_labels, batch, rows, inner), _arranged(b, b_labels, batch, inner, columns))
    return reshape(out, shape), labels


def _cheapest(operands, sizes):
    """The pair whose product is smallest."""
    best = None
    for j in range(1, len(operands)):
        for i in range(j):
            labels = set(operands[i][1] + operands[j][1])
            cost = size([sizes[c] for c in labels])
            if best is None or cost < best[0]:
                best = (cost, i, j)
    return best[1:]


#: function; ONNX Einsum; equation: str; operands: TensorLike
@composite
def einsum(equation, *operands):
    """Sums of products of operands whose axes `equation` names: einsum("bij,bjk->bik", a, b) is a matrix product.

    A letter missing from the result is summed over; a letter repeated in one operand takes the diagonal; `...` stands
    for axes that broadcast. Without `->` the result has the letters that occur once, in alphabetical order (NumPy,
    ONNX). Raises ShapeError if the letters do not match the shapes.
    """
    operands = all_together(operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands)
    terms, result = _terms(equation, operands)
    pending = [_diagonals(x, labels) for x, labels in zip(operands, terms)]
    sizes = _sizes(pending)
    pending = [_without_ones(x, labels, sizes) for x, labels in pending]

    def needed(*but):
        out = list(result)
        for i in range(len(pending)):
            if i not in but:
                out += pending[i][1]
        return out

    pending = [_summed(pending[i][0], pending[i][1], needed(i)) for i in range(len(pending))]
    while len(pending) > 1:
        i, j = _cheapest(pending, sizes) if len(pending) > 2 else (0, 1)
        product = _contract(pending[i][0], pending[i][1], pending[j][0], pending[j][1], needed(i, j), sizes)
        pending = [pending[n] for n in range(len(pending)) if n not in (i, j)] + [product]
    x, labels = pending[0]
    return permute_dims(x, [labels.index(c) for c in result])
