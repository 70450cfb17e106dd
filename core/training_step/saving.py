"""What a file of a compiled step holds, apart from the plan (wgpu_backend/plan/step_writer.py)."""

from ..autodiff.dispatch import unwrapped
from ..errors import ArgumentError, ModelError
from ..module.copying import rebuilt
from ..param import Param
from .function import StepFunction
from .numbers import Number


class Contents:
    """function: the StepFunction, for a trace on another backend; batch: the Tensors of the examples; parameters:
    [(names, Tensor, id)] in the function's order, more than one name where modules share a parameter; states: [(name,
    Tensor)]; counts: [(name of a Number, its value, names in the optimizer's record)].

    Raises ArgumentError where no batch is given, ModelError where the step has no plan.
    """

    def __init__(self, step, examples, backend):
        if not examples:
            raise ArgumentError("a step is saved with a batch, save(path, step, x, y): its plan is for these shapes")
        self.batch = step.as_batch(examples)
        function = step.function_of(self.batch)
        if function is None:
            raise ModelError(
                "this step cannot be saved: it runs operation by operation, {}".format(
                    step.cut or "as all steps on the backend {!r} do".format(step.backend.name)
                )
            )

        def moved(leaf):
            return leaf if isinstance(leaf, Param) else unwrapped(leaf).to(backend)

        model = rebuilt(function.model, {}, moved, True)
        self.function = StepFunction(
            model, function.loss, function.optimizer, function.strategy, function.params, function.states
        )
        names = {}
        for name, param in step.model.named_params():
            names.setdefault(id(param), []).append(name)
        self.parameters = []
        counted = {}
        for i, (_, param) in enumerate(function.params):
            if param._on_save or param._on_load:
                raise ModelError(
                    "{!r} has a mapper of records, which a saved step cannot run".format(names[id(param)][0])
                )
            self.parameters.append((names[id(param)], step.value(i), param.id.value))
            state = function.states[i] or {}
            for key in state:
                if state[key] is not None:
                    counted.setdefault(state[key], []).append("{:016x}.{}".format(param.id.value, key))
        at = len(function.params)
        self.states = []
        for k, (i, key) in enumerate(function.kept):
            self.states.append(("{:016x}.{}".format(function.params[i][1].id.value, key), step.value(at + k)))
        now = step.counts()
        self.counts = [(name, now[name], counted[name]) for name in counted]


def plain(number):
    """A Number as JSON can hold it: a name, a number, or [operator, a, b]."""

    def part(key):
        return [part(k) if i else k for i, k in enumerate(key)] if isinstance(key, tuple) else key

    return part(number.key) if isinstance(number, Number) else number
