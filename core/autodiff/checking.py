"""check_grads: gradients compared with finite differences."""

import math

from ..errors import EmberletError
from .backend import around
from .transforms import _leaves, mapped, vjp

# bits of the dtype -> (step, relative and absolute tolerance)
_STEPS = {64: (1e-6, 1e-5, 1e-7), 32: (1e-2, 2e-2, 2e-3)}


def _wave(count, phase):
    """`count` numbers in [-1, 1] without a pattern, the same in each run."""
    return [math.sin(1.0 + 12.9898 * (i + 1) + 78.233 * phase) for i in range(count)]


def _tensor(values, like):
    return like.backend.from_list(values, like.dtype, like.shape)


def _moved(x, direction, step):
    return x.backend.binary("add", x, _tensor([d * step for d in direction], x))


def check_grads(f, args, epsilon=None, rtol=None, atol=None):
    """See `emberlet.check_grads`."""
    args = list(args)
    floats = [i for i in range(len(args)) if args[i].dtype.is_float]
    results, pull = vjp(f, *args)
    outputs = [y for y in _leaves(results, []) if y.dtype.is_float]
    weights = [_wave(y.size, i) for i, y in enumerate(outputs)]
    places = iter(range(len(outputs)))

    def cotangent(y):
        return _tensor(weights[next(places)], y) if y.dtype.is_float else y

    gradients = pull(mapped(results, cotangent))

    def weighted(inputs):
        # On the same backend, where layers are in training too.
        found = [y for y in _leaves(f(*[around(x.backend).from_inner(x) for x in inputs]), []) if y.dtype.is_float]
        return sum([sum([w * v for w, v in zip(ws, _flat(y))]) for ws, y in zip(weights, found)])

    for i in floats:
        x = args[i]
        step, relative, absolute = _STEPS[64 if x.dtype.bits == 64 else 32]
        step = epsilon or step
        relative, absolute = relative if rtol is None else rtol, absolute if atol is None else atol
        direction = _wave(x.size, 7 + i)
        high = weighted([_moved(a, direction, step) if j == i else a for j, a in enumerate(args)])
        low = weighted([_moved(a, direction, -step) if j == i else a for j, a in enumerate(args)])
        numeric = (high - low) / (2 * step)
        analytic = sum([d * g for d, g in zip(direction, _flat(gradients[i]))])
        if not abs(numeric - analytic) <= absolute + relative * max(abs(numeric), abs(analytic)):
            raise EmberletError(
                "the gradient in argument {} (shape {}) is {} along a direction, finite differences give {}".format(
                    i, x.shape, analytic, numeric
                )
            )


def _flat(x):
    return x.backend.to_list(x)
