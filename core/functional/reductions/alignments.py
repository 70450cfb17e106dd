"""Losses of sequences whose alignment is unknown: the sum over all alignments, by dynamic programming on the backend.

A step of time is one elementwise operation over the batch and all labels, so that a GPU records the whole recursion. An
impossible alignment has the log-probability -1e30 instead of -inf, whose differences would be NaN.
"""

from ...errors import ArgumentError, ShapeError
from ..elementwise.comparison import where
from ..indexing.picking import check_bounds
from ..movement.joining import concat, stack
from ..movement.rearranging import pad
from ..operands import astype, tensor
from ..overriding import composite
from ..promotion import integers, widened
from .losses import known_reduction
from .over_axes import logsumexp

_NEVER = -1e30


def _lengths(lengths, limit, what, backend):
    """(n, 1) int64 from a list or a tensor. Raises ArgumentError for a listed length beyond `limit`."""
    if isinstance(lengths, (list, tuple)):
        for n in lengths:
            if not 0 <= n <= limit:
                raise ArgumentError("{} are 0 to {}, found {}".format(what, limit, n))
    lengths = integers(tensor(lengths, backend), what).astype("int64")
    return lengths.reshape((lengths.size, 1))


def _reduced(loss, lengths, reduction, zero_infinity, dtype):
    """The losses (n,) reduced; the mean divides each by its number of labels first, as in PyTorch."""
    loss = where(loss > -_NEVER / 2, 0.0 if zero_infinity else float("inf"), loss)
    if reduction == "mean":
        loss = (loss / lengths.reshape(loss.shape).clip(1, None).astype(loss.dtype)).mean()
    elif reduction == "sum":
        loss = loss.sum()
    return astype(loss, dtype)


def _positions(n, backend):
    from ..creation.fills import arange

    return arange(n, backend=backend)


def _shifted(x, by, value):
    """x (n, m) moved `by` places to the right, with `value` at the left."""
    return pad(x, ((0, 0), (by, 0)), value)[:, : x.shape[1]]


def _rows(targets, lengths):
    """(n, longest) from targets one after the other (1-D), whose lengths are known to the host."""
    lengths = lengths.tolist() if hasattr(lengths, "tolist") else list(lengths)
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    if not lengths or ends[-1] != targets.size:
        raise ShapeError("ctc_loss: {} targets one after the other, lengths {}".format(targets.size, lengths))
    longest = max(lengths)
    return stack([pad(targets[e - n : e], ((0, longest - n),), 0) for e, n in zip(ends, lengths)])


#: function; PyTorch ctc_loss; Burn ctc_loss; log_probs: TensorLike; targets: TensorLike; input_lengths: TensorLike;
#: target_lengths: TensorLike; blank: int
@composite
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """-log of the probability of `targets` under every alignment with blanks (Graves et al. 2006, connectionist
    temporal classification).

    log_probs (time, n, classes), or (time, classes) for one; targets (n, longest) integers, what follows a row's length
    is ignored, or all rows one after the other (1-D); input_lengths, target_lengths (n,). blank: its class.
    zero_infinity: 0 where no alignment fits. reduction: "mean" (of each loss divided by its number of labels), "sum" or
    "none" (n,). Integers become float32. Raises ShapeError if the shapes do not match, IndexingError for a target that
    is not a class.
    """
    known_reduction(reduction)
    log_probs, dtype = widened(log_probs)
    targets = integers(tensor(targets, log_probs.backend), "ctc_loss: targets").astype("int64")
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.reshape((log_probs.shape[0], 1, log_probs.shape[1]))
        targets = targets.reshape((1, targets.size))
    elif targets.ndim == 1:
        targets = _rows(targets, target_lengths)
    if log_probs.ndim != 3 or targets.ndim != 2 or targets.shape[0] != log_probs.shape[1]:
        raise ShapeError("ctc_loss: log_probs {} do not fit targets {}".format(log_probs.shape, targets.shape))
    steps, n, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise ArgumentError("ctc_loss: blank is {}, there are {} classes".format(blank, classes))
    backend, longest = log_probs.backend, targets.shape[1]
    inputs = _lengths([input_lengths] if isinstance(input_lengths, int) else input_lengths, steps,
                      "ctc_loss: input_lengths", backend)  # fmt: skip
    labels = _lengths([target_lengths] if isinstance(target_lengths, int) else target_lengths, longest,
                      "ctc_loss: target_lengths", backend)  # fmt: skip
    if inputs.shape != (n, 1) or labels.shape != (n, 1):
        raise ShapeError("ctc_loss: {} rows need {} input_lengths and target_lengths".format(n, n))
    # A blank before, between and after the labels. Padding may hold any number: it is never reached.
    targets = where(_positions(longest, backend).reshape((1, longest)) < labels, targets, blank)
    targets = check_bounds(targets, classes, 2)[0]
    between = targets * 0 + blank
    path = stack([between, targets], 2).reshape((n, 2 * longest))
    path = concat([path, backend.full((n, 1), blank, path.dtype)], 1)
    states = path.shape[1]
    seen = log_probs.clip(_NEVER, None).gather(2, path.reshape((1, n, states)).expand(steps, n, states))
    place = _positions(states, backend).reshape((1, states))
    # From the label before, past the blank between them, if the two differ.
    skips = (path != blank) & (path != _shifted(path, 2, blank))
    reached = where(place < 2, seen[0], _NEVER)
    for t in range(1, steps):
        skipped = where(skips, _shifted(reached, 2, _NEVER), _NEVER)
        moved = logsumexp(stack([reached, _shifted(reached, 1, _NEVER), skipped]), 0) + seen[t]
        reached = where(inputs > t, moved.clip(_NEVER, None), reached)
    ends = (place == 2 * labels) | (place == 2 * labels - 1)
    loss = -logsumexp(where(ends, reached, _NEVER), 1)
    loss = where(inputs.reshape((n,)) > 0, loss, where(labels.reshape((n,)) > 0, -_NEVER, 0.0))
    if single and reduction == "none":
        loss = loss.reshape(())
        labels = labels.reshape(())
    return _reduced(loss, labels, reduction, zero_infinity, dtype)


#: function; Burn rnnt_loss; logits: TensorLike; targets: TensorLike; logit_lengths: TensorLike;
#: target_lengths: TensorLike; blank: int
@composite
def rnnt_loss(logits, targets, logit_lengths, target_lengths, blank=0, reduction="mean", fused_log_softmax=True):
    """-log of the probability of `targets` under every alignment of a transducer (Graves 2012): each step of time gives
    any number of labels and then a blank.

    logits (n, time, longest + 1, classes), targets (n, longest) integers, logit_lengths and target_lengths (n,), of at
    least one step. fused_log_softmax: logits are no log-probabilities yet. reduction: "mean", "sum" or "none" (n,).
    Integers become float32. Raises ShapeError if the shapes do not match, IndexingError for a target that is not a
    class.
    """
    from ..elementwise.activations import log_softmax

    known_reduction(reduction)
    logits, dtype = widened(logits)
    targets = integers(tensor(targets, logits.backend), "rnnt_loss: targets").astype("int64")
    if logits.ndim != 4 or targets.shape != (logits.shape[0], logits.shape[2] - 1):
        raise ShapeError("rnnt_loss: logits {} do not fit targets {}".format(logits.shape, targets.shape))
    n, steps, states, classes = logits.shape
    if not -classes <= blank < classes:
        raise ArgumentError("rnnt_loss: blank is {}, there are {} classes".format(blank, classes))
    backend, blank = logits.backend, blank % classes
    inputs = _lengths(logit_lengths, steps, "rnnt_loss: logit_lengths", backend)
    labels = _lengths(target_lengths, states - 1, "rnnt_loss: target_lengths", backend)
    if inputs.shape != (n, 1) or labels.shape != (n, 1):
        raise ShapeError("rnnt_loss: {} rows need {} logit_lengths and target_lengths".format(n, n))
    logs = (log_softmax(logits, 3) if fused_log_softmax else logits).clip(_NEVER, None)
    place = _positions(states, backend).reshape((1, states))
    targets = check_bounds(where(place[:, : states - 1] < labels, targets, blank), classes, 3)[0]
    # A label for the state after the last, which is never left.
    targets = pad(targets, ((0, 0), (0, 1)), blank)
    blanks = logs[:, :, :, blank]
    index = targets.reshape((n, 1, states, 1)).expand(n, steps, states, 1)
    emits = logs.gather(3, index).reshape((n, steps, states))
    # Diagonal d holds the states (t, u) with t + u = d, which follow from those of d - 1.
    reached = where(place == 0, logs[:, 0, :, 0] * 0, _NEVER)
    ends = inputs - 1 + labels
    last = where(ends == 0, reached, _NEVER)
    for d in range(1, steps + states - 1):
        stayed = reached + _diagonal(blanks, d - 1)
        moved = _shifted(reached + _diagonal(emits, d - 1), 1, _NEVER)
        inside = (place <= d) & (place > d - steps)
        reached = where(inside, logsumexp(stack([stayed, moved]), 0).clip(_NEVER, None), _NEVER)
        last = where(ends == d, reached, last)
    # The last step of time ends with a blank.
    at = (inputs - 1).reshape((n, 1, 1)).expand(n, 1, states)
    last = where(place == labels, last + blanks.gather(1, at).reshape((n, states)), _NEVER)
    loss = -logsumexp(last, 1)
    if reduction == "mean":
        return astype(loss.mean(), dtype)
    return _reduced(loss, labels, reduction, False, dtype)


def _diagonal(x, d):
    """(n, states): the elements (t, u) of x (n, steps, states) with t + u = d; -1e30 where there are none."""
    n, steps, states = x.shape
    place = _positions(states, x.backend)
    t = d - place
    known = (t >= 0) & (t < steps)
    index = where(known, t, 0).reshape((1, 1, states)).expand(n, 1, states)
    return where(known.reshape((1, states)), x.gather(1, index).reshape((n, states)), _NEVER)
