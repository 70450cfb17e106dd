"""Gradients by parameter: what an optimizer consumes."""

from ..errors import EmberletError


class GradientsParams:
    """ParamId -> gradient, a tensor on the backend inside the autodiff backend."""

    def __init__(self):
        self._found = {}  # value of a ParamId -> tensor

    @staticmethod
    def from_grads(grads, module):
        """The gradients of all parameters of the module, taken out of `grads`."""
        return GradientsParams._taken(grads, module.params())

    @staticmethod
    def from_module(grads, module):
        """The same, for a part of a model; the rest stays in `grads`."""
        return GradientsParams._taken(grads, module.params())

    @staticmethod
    def from_params(grads, module, ids):
        """The gradients of the module's parameters with these ParamIds, taken out of `grads`."""
        wanted = [i.value for i in ids]
        return GradientsParams._taken(grads, [p for p in module.params() if p.id.value in wanted])

    @staticmethod
    def _taken(grads, params):
        out = GradientsParams()
        for p in params:
            value = p.val()
            if not hasattr(value.backend, "from_inner"):
                raise EmberletError(
                    "the parameters are on {!r}, which records no gradients; call model.train() before the loss is "
                    "computed".format(value.backend)
                )
            if value.is_require_grad():
                found = grads.of(value, True)
                if found is not None:
                    out._found[p.id.value] = found
        return out

    def get(self, id):
        """The gradient of a ParamId, or None."""
        return self._found.get(id.value)

    def remove(self, id):
        """The gradient of a ParamId, taken out, or None."""
        return self._found.pop(id.value, None)

    def register(self, id, gradient):
        """Set the gradient of a ParamId."""
        self._found[id.value] = gradient

    def __len__(self):
        return len(self._found)

    def __repr__(self):
        return "GradientsParams({} parameters)".format(len(self._found))


class GradientsAccumulator:
    """Sums of gradients over several batches, until `grads` takes them."""

    def __init__(self):
        self._sums = GradientsParams()

    def accumulate(self, module, grads):
        """Add the GradientsParams of a batch; they are consumed."""
        sums = self._sums._found
        for p in module.params():
            new = grads.remove(p.id)
            if new is not None:
                old = sums.get(p.id.value)
                sums[p.id.value] = new if old is None else old + new.to(old.backend)

    def grads(self):
        """The sums as GradientsParams; the accumulator is empty afterwards."""
        out, self._sums = self._sums, GradientsParams()
        return out
