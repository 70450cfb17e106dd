"""What a plan of a step computes: a function of tensors alone that runs the loss, the backward pass and the update."""

from ..autodiff import autodiff
from ..autodiff.dispatch import unwrapped
from ..autodiff.tensors import backward
from ..backend.drawing import Undrawn
from ..errors import EmberletError
from ..module.copying import rebuilt
from ..param import Param
from ..tensor import Tensor
from .numbers import Slots, named


class StepFunction:
    """The function to trace. Its arguments are the numbers, a float64 vector; the random words of each draw; the values
    of `params`; their states that are tensors; and the batch. It returns (what the loss function returned, the new
    values of the params `changed`, the new states).

    params: [(path, Param)], each once. states: for each of them a dict, with the name of a Number for an int and None
    for a tensor, or None where it has no state. Known once it has run: draws, the shapes of the draws; numbers, the
    Numbers that it needs; changed, trained, counts.
    """

    def __init__(self, model, loss, optimizer, strategy, params, states):
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.strategy = strategy
        self.params = params
        self.states = states
        self.draws = []
        self.numbers = []
        self.changed = []  # positions of the params that a step changes
        self.trained = []  # positions of those that have a gradient
        self.counts = {}  # name of a Number -> the Number that it becomes
        self.kept = [(i, key) for i in range(len(states)) for key in states[i] or {} if states[i][key] is None]

    def __call__(self, *given):
        given = list(given)
        slots = Slots(given.pop(0))
        backend = slots.whole.backend
        outer = autodiff(backend, self.strategy)
        words = _Words(outer, [given.pop(0) for _ in self.draws])
        values = [given.pop(0) for _ in self.params]
        states = self._states(slots, [given.pop(0) for _ in self.kept])
        copies = [
            Param(outer.from_inner(v), p.id, p.require_grad and v.dtype.is_float)
            for (_, p), v in zip(self.params, values)
        ]
        model = self._model(outer, copies)
        with Undrawn(words):
            out = self.loss(model, *[outer.from_inner(x) if isinstance(x, Tensor) else x for x in given])
            grads = backward(loss_of(out, outer))
        self.draws = words.shapes
        found = []
        self.trained = trained = []
        for i in range(len(copies)):
            copy = copies[i]
            if not copy.require_grad:
                continue
            gradient = grads.of(copy.val(), True)
            if gradient is not None:
                name, param = self.params[i]
                group = self.optimizer.group_of(name, param)
                state = states[i] if states[i] is not None else self.optimizer.start(group, values[i])
                found.append((values[i], gradient, group, state))
                trained.append(i)
        if not trained:
            raise EmberletError(
                "no parameter has a gradient: the loss function is given the model, loss(model, *batch), and has to "
                "compute the loss with that one"
            )
        updated = dict(zip(trained, self.optimizer.updated(found, named("lr", slots))))
        self.changed, new = [], []
        for i in range(len(copies)):
            value = copies[i].val().data.inner
            if i in updated:
                value = updated[i][0]
                states[i] = updated[i][1]
            if value is not values[i]:
                self.changed.append(i)
                new.append(value)
        kept = [states[i][key] for i, key in self.kept]
        self.counts = {}
        for i in range(len(states)):
            for key in states[i] or {}:
                if self.states[i] and self.states[i][key]:
                    self.counts[self.states[i][key]] = states[i][key]
        self.numbers = slots.numbers
        return unwrapped_all(out), tuple(new), tuple(kept)

    def places(self):
        """The numbers of the values, params before states, that the new ones belong to, in their order."""
        return list(self.changed) + [len(self.params) + k for k in range(len(self.kept))]

    def _states(self, slots, tensors):
        """The state of each parameter, with the given tensors and Numbers."""
        out = []
        for i in range(len(self.states)):
            state = self.states[i]
            if state is None:
                out.append(None)
                continue
            found = {}
            for key in state:
                found[key] = tensors[self.kept.index((i, key))] if state[key] is None else named(state[key], slots)
            out.append(found)
        return out

    def _model(self, outer, copies):
        """The model with these Params, on the backend that records."""
        places = {id(p): i for i, (_, p) in enumerate(self.params)}

        def change(leaf):
            if isinstance(leaf, Param):
                return copies[places[id(leaf)]]
            inner = unwrapped(leaf)
            return outer.from_inner(Tensor(inner.data, inner.dtype, inner.shape, outer.inner))

        return rebuilt(self.model, {}, change, True, outer)


def is_tensor(x):
    return hasattr(x, "backend")


def loss_in(out):
    """What stands for the loss in what a loss function returned."""
    loss = out[0] if isinstance(out, (tuple, list)) and out else out
    return loss if isinstance(loss, Tensor) else getattr(loss, "loss", loss)


def loss_of(out, backend):
    """The loss among what a loss function returned."""
    loss = loss_in(out)
    if not isinstance(loss, Tensor) or loss.backend is not backend or loss.shape:
        what = "{} {}".format(loss.dtype, loss.shape) if isinstance(loss, Tensor) else repr(loss)
        raise EmberletError(
            "the loss function returns the loss, a tensor without axes on {!r}, or a tuple that begins with it, or an "
            "object with an attribute `loss`; found {}".format(backend, what)
        )
    return loss


def unwrapped_all(out):
    """What a loss function returned, with tensors of the inner backend."""
    if isinstance(out, dict):
        return {key: unwrapped_all(out[key]) for key in out}
    if isinstance(out, (list, tuple)):
        parts = [unwrapped_all(v) for v in out]
        return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    if isinstance(out, Tensor):
        return unwrapped(out)
    parts = getattr(out, "__dict__", None)
    if not parts or isinstance(out, type):
        return out
    found = object.__new__(type(out))
    for key in parts:
        setattr(found, key, unwrapped_all(parts[key]))
    return found


class _Words:
    """The source of a trace's random draws (backend/drawing.py): inputs, in the order of the draws, as far as there are
    any. shapes: those of all draws. The draws of a trace have counters of their own: they take nothing from the
    sequence, from which other threads may draw meanwhile."""

    def __init__(self, backend, given):
        self.backend = backend
        self.given = given
        self.shapes = []
        self.state = (0, 0)  # as draws._state
        self._found = {}  # counter -> words: a checkpointed block draws twice

    def words(self, shape, counter):
        found = self._found.get(counter)
        if found is None:
            at = len(self.shapes)
            self.shapes.append(shape)
            if at < len(self.given):
                inner = self.given[at]
            else:
                from .. import dtypes

                inner = self.backend.inner.full(shape, 1, dtypes.uint32)
            found = self._found[counter] = self.backend.from_inner(inner)
        return found
