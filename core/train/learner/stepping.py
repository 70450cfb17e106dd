"""One step of the optimizer: as a plan, or operation by operation on one backend or several."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from ...autodiff import autodiff
from ...errors import ArgumentError, EmberletError
from ...functional.randomness import draws
from ...optim.gradients import GradientsParams
from ...optim.lbfgs import LBFGS
from .batches import described, inside, moved, replaced, rows, tensors
from .loggers import LOG
from .outputs import TrainOutput


class Group(Protocol):
    """Several processes that train one model together."""

    rank: int
    size: int

    def average(self, gradients: list[Any], weight: float) -> list[Any]:
        """The mean of everybody's gradients (tensors, or None), weighted by the items that they are of."""

    def share(self, value: Any) -> Any:
        """What rank 0 gave."""


class Done:
    """What a step gives for the metrics. item: the output, on the inner backend; items: how many the batch had."""

    __slots__ = ("item", "items")

    def __init__(self, item: Any, items: int) -> None:
        self.item, self.items = item, items


def loss_of(item: Any) -> Any:
    """The loss of an output. Raises EmberletError if it has none."""
    loss = item.get("loss") if isinstance(item, dict) else getattr(item, "loss", None)
    if loss is None:
        raise EmberletError(
            f"step(batch) returned {type(item).__name__}, which has no loss: return an output with one, such as "
            f"ClassificationOutput(loss, output, targets), or TrainOutput(model, grads, item)"
        )
    if getattr(loss, "size", 0) != 1 or not hasattr(loss, "backward"):
        found = f"shape {loss.shape}" if hasattr(loss, "backward") else f"{type(loss).__name__} {loss!r}"
        raise EmberletError(
            f"the loss of an output is one number, a tensor that the model computed, such as losses.mean(); "
            f"found {found}"
        )
    return loss


def _sum(parts: Sequence[tuple[GradientsParams, int]], model: Any) -> tuple[GradientsParams, int]:
    """The mean of gradients, weighted by the number of items, and that number."""
    total = sum(count for _, count in parts)
    if len(parts) == 1:
        return parts[0]
    out = GradientsParams()
    for param in model.params():
        mean = None
        for gradients, count in parts:
            gradient = gradients.get(param.id)
            if gradient is None:
                continue
            if mean is not None:
                gradient = gradient.to(mean.backend)
            mean = gradient * (count / total) if mean is None else mean + gradient * (count / total)
        if mean is not None:
            out.register(param.id, mean)
    return out, total


class EagerSteps:
    """Steps that compute gradients and let the optimizer apply them.

    devices: backends, the model's own first; a step takes a batch for each of them. accumulation: the number of steps
    whose gradients are averaged before the optimizer's. group: other processes, or None.
    """

    def __init__(
        self, model: Any, optimizer: Any, devices: Sequence[Any], accumulation: int, group: Group | None
    ) -> None:
        self.model, self.optimizer = model, optimizer
        backends = [getattr(backend, "inner", backend) for backend in devices]
        self.width = len(backends)
        self._accumulation, self._group = accumulation, group
        self._kept: list[tuple[GradientsParams, int]] = []
        self._steps = 0
        self._backends = [autodiff(backend) for backend in backends]
        self.backend = self._backends[0]
        self._copies = [model, *(model.valid().fork(backend).train() for backend in backends[1:])]
        self._threads = ThreadPoolExecutor(self.width) if self.width > 1 else None

    def step(self, batches: list[Any], lr: float) -> list[Done]:
        """Compute the gradients of a batch for each backend, and take the optimizer's step if it is time."""
        if isinstance(self.optimizer, LBFGS):
            return self._several_times(batches, lr)
        if self._threads is None:
            found = [self._gradients(0, batches[0])] if batches else []
        else:
            self._copy_weights(len(batches))
            found = list(self._threads.map(self._gradients, range(len(batches)), batches))
        self._kept += [(gradients, done.items) for gradients, done in found]
        self._steps += 1
        if self._steps >= self._accumulation:
            self.flush(lr)
        return [done for _, done in found]

    def flush(self, lr: float) -> None:
        """Take the optimizer's step for the gradients that are kept, if there are any."""
        if not self._steps:
            return
        kept, self._kept, self._steps = self._kept, [], 0
        gradients, count = _sum(kept, self.model) if kept else (GradientsParams(), 0)
        if self._group is not None:
            gradients = self._with_others(self._group, gradients, count)
        self.optimizer.step(lr, self.model, gradients)

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()

    def _gradients(self, index: int, batch: Any) -> tuple[GradientsParams, Done]:
        model = self._copies[index]
        out = model.step(moved(batch, self._backends[index]))
        items = rows(batch)
        if isinstance(out, TrainOutput):
            return out.grads, Done(inside(out.item), items)
        return GradientsParams.from_grads(loss_of(out).backward(), model), Done(inside(out), items)

    def _several_times(self, batches: list[Any], lr: float) -> list[Done]:
        """A step of an optimizer that computes the loss several times."""
        if self.width > 1 or self._accumulation > 1 or self._group is not None:
            raise ArgumentError("L-BFGS takes one batch a step: use one device and no accumulation of gradients")
        batch = moved(batches[0], self._backends[0])
        first: list[Any] = []

        def loss(model: Any) -> Any:
            out = model.step(batch)
            if not first:
                first.append(inside(out))
            return loss_of(out)

        self.optimizer.step(lr, self.model, loss)
        return [Done(first[0], rows(batch))]

    def _copy_weights(self, count: int) -> None:
        for copy, backend in zip(self._copies[1:count], self._backends[1:count], strict=True):
            for mine, its in zip(self.model.params(), copy.params(), strict=True):
                its.set(backend.from_inner(mine.val().inner().to(backend.inner)))

    def _with_others(self, group: Group, gradients: GradientsParams, count: int) -> GradientsParams:
        params = self.model.params()
        means = group.average([gradients.get(param.id) for param in params], count)
        out = GradientsParams()
        for param, mean in zip(params, means, strict=True):
            if mean is not None:
                out.register(param.id, mean)
        return out


class CompiledSteps:
    """Steps as one plan each (`Module.compile_step`), and operation by operation where a batch or the step does not
    allow one. cut: why all steps run so, or None."""

    width = 1

    def __init__(self, model: Any, optimizer: Any, eager: EagerSteps) -> None:
        self._model, self._optimizer, self._eager = model, optimizer, eager
        self._plan: Any = None
        self._batch: Any = None
        self._kind: Any = None
        self.cut: Exception | None = None

    def step(self, batches: list[Any], lr: float) -> list[Done]:
        """Take the optimizer's step for a batch."""
        batch = moved(batches[0], self._eager.backend.inner)
        kind = described(batch)
        self._kind = self._kind or kind
        if self.cut is not None or kind != self._kind:  # a plan would keep the texts and numbers of the first batch
            return self._eager.step(batches, lr)
        self._batch = batch
        if self._plan is not None:
            return [Done(self._plan(lr, *tensors(batch)), rows(batch))]
        state = list(draws._state)
        try:
            self._plan = self._model.compile_step(self._loss, self._optimizer)
            return [Done(self._plan(lr, *tensors(batch)), rows(batch))]
        except Exception as error:  # without a plan it works, or says what is wrong
            self.cut, self._plan = error, None
            with draws._lock:
                draws._state[:] = state
            LOG.info("steps are not compiled: %s", error)
            return self._eager.step(batches, lr)

    def flush(self, lr: float) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is held."""

    def _loss(self, model: Any, *given: Any) -> Any:
        parts = iter(given)
        return model.step(replaced(self._batch, lambda old: next(parts)))


def steps(
    model: Any, optimizer: Any, devices: Sequence[Any], accumulation: int, group: Group | None, compile: bool
) -> EagerSteps | CompiledSteps:
    """Compiled steps where `compile` allows them and one batch on one backend makes a step, else eager ones."""
    eager = EagerSteps(model, optimizer, devices, accumulation, group)
    alone = eager.width == 1 and accumulation == 1 and group is None
    if compile and alone and eager.backend.inner.name != "python" and not isinstance(optimizer, LBFGS):
        return CompiledSteps(model, optimizer, eager)
    return eager
