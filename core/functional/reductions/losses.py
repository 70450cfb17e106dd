"""Classification losses as in ONNX: any number of axes, class weights, and an index to ignore."""

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ..indexing.visibility import checked
from ..movement.rearranging import expand_dims, reshape
from ..operands import astype, like
from ..overriding import composite
from ..promotion import integers, widened

_NO_CLASS = (
    "nll_loss: target {index} is not one of {end} classes, 0 to {last}; to skip a value, pass it as ignore_index"
)


def known_reduction(reduction):
    """Raise ArgumentError for a reduction that losses do not have."""
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError("reduction is 'mean', 'sum' or 'none', found {!r}".format(reduction))


#: function; ONNX NegativeLogLikelihoodLoss; PyTorch nll_loss; ignore_index: int
@composite
def nll_loss(x, target, weight=None, ignore_index=None, reduction="mean"):
    """-x at the target class, times the class's weight: x (n, classes, …) log-probabilities, target (n, …) integers.

    weight (classes,); targets equal to ignore_index give 0 and are not counted. reduction: "mean" (weighted), "sum" or
    "none" (the shape of target). Raises ShapeError if x, target and weight do not match, IndexingError for a target
    that is not a class; targets computed on a GPU are not read back, and give NaN instead (ONNX
    NegativeLogLikelihoodLoss).
    """
    x, dtype = widened(x)
    target = integers(target, "nll_loss: target")
    if x.ndim < 2 or target.shape != x.shape[:1] + x.shape[2:]:
        raise ShapeError("nll_loss: predictions {} do not fit targets {}".format(x.shape, target.shape))
    backend, classes = x.backend, x.shape[1]
    # Before the targets, which a plan checks only in its calls.
    known_reduction(reduction)
    if weight is not None:
        weight = like(weight, x)
        if weight.shape != (classes,):
            raise ShapeError("nll_loss: weights {} are not one for each of {} classes".format(weight.shape, classes))
    counts = None
    if ignore_index is not None:
        counts = backend.binary("ne", target, backend.full((), ignore_index, target.dtype))
        target = backend.where(counts, target, backend.full((), 0, target.dtype))
    index = astype(target, dtypes.int64)
    known = None
    seen = checked(index, 0, classes, _NO_CLASS)
    if seen is not None:
        index = seen
    elif index.size:
        # Checking would wait for the GPU, so a target that is not a class gives NaN, and so does a sum that includes
        # it.
        known = backend.binary("logical_and", backend.binary("ge", index, backend.full((), 0, index.dtype)),
                         backend.binary("lt", index, backend.full((), classes, index.dtype)))  # fmt: skip
        index = backend.where(known, index, backend.full((), 0, index.dtype))
    loss = backend.unary("neg", reshape(backend.gather(x, expand_dims(index, 1), 1), target.shape))
    if known is not None:
        loss = backend.where(known, loss, backend.full((), float("nan"), loss.dtype))
    share = None if weight is None else backend.take(weight, index, 0)
    if counts is not None:
        zero = backend.full((), 0, x.dtype)
        share = backend.where(counts, backend.full(target.shape, 1, x.dtype) if share is None else share, zero)
        loss = backend.where(counts, loss, zero)
    if share is not None:
        loss = backend.binary("mul", loss, share)
    if reduction == "none":
        return astype(loss, dtype)
    axes = tuple(range(loss.ndim))
    total = backend.reduce("sum", loss, axes, False)
    if reduction == "sum":
        return astype(total, dtype)
    count = backend.full((), loss.size, x.dtype) if share is None else backend.reduce("sum", share, axes, False)
    return astype(backend.binary("div", total, count), dtype)


#: function; ONNX SoftmaxCrossEntropyLoss; PyTorch cross_entropy; ignore_index: int
@composite
def cross_entropy(x, target, weight=None, ignore_index=None, reduction="mean"):
    """`nll_loss` of log_softmax(x) over the classes, axis 1 (ONNX SoftmaxCrossEntropyLoss)."""
    from ..elementwise.activations import log_softmax

    x, dtype = widened(x)
    return astype(nll_loss(log_softmax(x, 1), target, weight, ignore_index, reduction), dtype)
