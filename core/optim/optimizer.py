"""Optimizer: applies a rule to every parameter that has a gradient, and keeps the rule's state by ParamId."""

from .. import dtypes
from ..backend import get_backend
from ..errors import LoadError


class Optimizer:
    """Made by the `init` of a config, which holds the rule: `update(state, value, gradient, lr)` -> (the new value, the
    new state), with a state of tensors and ints, None at first."""

    def __init__(self, config, groups=()):
        self.config = config
        self.groups = list(groups)
        self._configs = [config.replace(**g.changes) for g in self.groups]
        self._states = {}  # value of a ParamId -> dict

    def step(self, lr, model, grads):
        """Update the parameters of `model` that have a gradient in the GradientsParams `grads`, which are consumed,
        with the learning rate `lr`; returns the model.

        Frozen parameters stay. The parameters change together at the end: an interrupted step changes nothing.
        """
        found = self._found(model, grads)
        clipping = getattr(self.config, "grad_clipping", None)
        if clipping is not None:
            clipped = clipping.clipped([f[1] for f in found])
            found = [(f[0], g, f[2]) for f, g in zip(found, clipped)]
        changes = []
        for param, gradient, group in found:
            value = param.val()
            inner = value.inner() if hasattr(value.backend, "from_inner") else value
            gradient = gradient.to(inner.backend)
            rate = lr if group is None else lr * self.groups[group].rate
            config = self.config if group is None else self._configs[group]
            state = _moved(self._states.get(param.id.value), inner.backend)
            changes.append((param, value) + config.update(state, inner, gradient, rate))
        _realize(changes)
        self._apply(changes)
        return model

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

    def _found(self, model, grads):
        """(Param, gradient, index of its group or None) of every parameter with a gradient."""
        found, seen = [], set()
        for name, param in model.named_params():
            if id(param) in seen or not param.require_grad:
                continue
            seen.add(id(param))
            gradient = grads.remove(param.id)
            if gradient is not None:
                found.append((param, gradient, self._group(name, param)))
        return found

    def _group(self, name, param):
        for i in range(len(self.groups)):
            if self.groups[i].match(name, param):
                return i
        return None

    def to_record(self):
        """The state as a Record, which can be saved as a burnpack."""
        from ..module.record import Record

        tensors = {}
        for id in self._states:
            state = self._states[id] or {}
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
        return self


def _number(value):
    return get_backend().full((), value, dtypes.int64)


def _moved(state, backend):
    """The state on the parameter's backend."""
    if state is None:
        return None
    return {key: v.to(backend) if hasattr(v, "backend") and v.backend is not backend else v for key, v in state.items()}


def _realize(changes):
    """Compute all new values and states, on the GPU in one submission."""
    by_backend = {}
    for _, _, new, state in changes:
        tensors = [new] + [v for v in (state or {}).values() if hasattr(v, "backend")]
        by_backend.setdefault(id(new.backend), []).extend(tensors)
    for tensors in by_backend.values():
        tensors[0].backend.realize(*tensors)
