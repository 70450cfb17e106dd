"""Optimizer: applies a rule to every parameter that has a gradient, and keeps the rule's state by ParamId."""

from .. import dtypes
from ..backend import get_backend
from ..errors import ArgumentError, LoadError
from .rates import finite


class Optimizer:
    """Made by the `init` of a config, which holds the rule (`OptimizerConfig`)."""

    def __init__(self, config, groups=()):
        self.config = config
        self.groups = list(groups)
        self._configs = [config.replace(**g.changes) for g in self.groups]
        self._states = {}  # value of a ParamId -> dict
        self.holder = None  # the compiled step that has newer states than these

    def step(self, lr, model, grads):
        """Update the parameters of `model` that have a gradient in the GradientsParams `grads`, which are consumed,
        with the learning rate `lr`; returns the model.

        Frozen parameters stay. The parameters change together at the end: an interrupted step changes nothing. Raises
        ArgumentError for anything but GradientsParams, and for a rate that is negative or not finite.
        """
        finite("the learning rate", lr)
        if not hasattr(grads, "remove"):
            raise ArgumentError(
                "step takes GradientsParams, as from GradientsParams.from_grads(loss.backward(), model), not {}".format(
                    type(grads).__name__
                )
            )
        states = self.states()
        found = []
        for name, param in distinct(model):
            gradient = grads.remove(param.id) if param.require_grad else None
            if gradient is not None:
                value = param.val()
                inner = value.inner() if hasattr(value.backend, "from_inner") else value
                group = self.group_of(name, param)
                state = states.get(param.id.value)
                state = self.start(group, inner) if state is None else _moved(state, inner.backend)
                found.append((param, value, inner, gradient.to(inner.backend), group, state))
        changed = self.updated([f[2:] for f in found], lr)
        changes = [(f[0], f[1]) + c for f, c in zip(found, changed)]
        _realize(changes)
        self._apply(changes)
        return model

    def updated(self, found, lr):
        """[(the new value, the new state)] for [(value, gradient, group, state)]."""
        clipping = getattr(self.config, "grad_clipping", None)
        gradients = [f[1] for f in found]
        if clipping is not None:
            gradients = clipping.clipped(gradients)
        out = []
        for (value, _, group, state), gradient in zip(found, gradients):
            rate = lr if group is None else lr * self.groups[group].rate
            out.append(self._of(group).update(state, value, gradient, rate))
        return out

    def _of(self, group):
        return self.config if group is None else self._configs[group]

    def start(self, group, value):
        """The state of a parameter before its first step."""
        return self._of(group).start(value)

    def _apply(self, changes):
        states = dict(self._states)
        try:
            for param, old, new, state in changes:
                states[param.id.value] = state
                param.set(old.backend.from_inner(new) if hasattr(old.backend, "from_inner") else new)
            self._states = states
        except BaseException:  # an interrupt: all of the step, or nothing
            for param, old, _, _ in changes:
                param.set(old)
            raise

    def group_of(self, name, param):
        """The number of the first group that a parameter belongs to, or None."""
        for i in range(len(self.groups)):
            if self.groups[i].match(name, param):
                return i
        return None

    def states(self):
        """Value of a ParamId -> its state, a dict of tensors and ints; those of a compiled step are copied from it."""
        holder = self.holder
        if holder is not None:
            states = dict(self._states)
            states.update(holder.states())
            self._states = states
            self.holder = None
        return self._states

    def to_record(self):
        """The state as a Record, which can be saved as a burnpack."""
        from ..module.record import Record

        tensors = {}
        states = self.states()
        for id in states:
            state = states[id]
            for key in state:
                value = state[key]
                tensors["{:016x}.{}".format(id, key)] = value if hasattr(value, "backend") else _number(value)
        return Record(tensors)

    def load_record(self, record):
        """Take the state of a Record, a dict of name -> Tensor, or an open burnpack; returns the optimizer. Raises
        LoadError if it is not the state of an optimizer."""
        states = {}
        burnpack = hasattr(record, "raw")
        for name in record.tensors if burnpack else record:
            id, _, key = name.partition(".")
            try:
                state = states.setdefault(int(id, 16), {})
            except ValueError:
                raise LoadError("{!r} is not the name of an optimizer's state".format(name))
            value = record.tensor(name) if burnpack else record[name]
            state[key] = value if value.dtype.is_float else int(value.item())
        self._states = states
        self.holder = None
        return self


def distinct(model):
    """(path, Param) of every parameter of a module, each once."""
    seen = {}
    found = []
    for name, param in model.named_params():
        if id(param) not in seen:
            seen[id(param)] = True
            found.append((name, param))
    return found


def _number(value):
    return get_backend().full((), value, dtypes.int64)


def _moved(state, backend):
    """The state on the parameter's backend."""
    return {key: v.to(backend) if hasattr(v, "backend") and v.backend is not backend else v for key, v in state.items()}


def _realize(changes):
    """Compute all new values and states, on the GPU in one submission."""
    by_backend = {}
    for _, _, new, state in changes:
        tensors = [new] + [v for v in state.values() if hasattr(v, "backend")]
        by_backend.setdefault(id(new.backend), []).extend(tensors)
    for tensors in by_backend.values():
        tensors[0].backend.realize(*tensors)
