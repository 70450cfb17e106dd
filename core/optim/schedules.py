"""Learning-rate schedules: `schedule.step()` gives the rate of the next iteration."""

import math

from ..config import Config
from ..errors import ArgumentError
from .rates import finite


class Schedule:
    """A rate for each iteration. at: a function of the number of the iteration, from 0."""

    def __init__(self, at):
        self.at = at
        self.iteration = 0

    def step(self):
        """The rate of this iteration; the next call gives that of the next one. Raises ArgumentError if it is negative
        or not finite."""
        rate = finite("the learning rate", self.at(self.iteration))
        self.iteration += 1
        return rate

    def to_record(self):
        """The state, a dict of numbers."""
        return {"iteration": self.iteration}

    def load_record(self, record):
        """Continue where the schedule of the record was; returns the schedule."""
        self.iteration = int(record["iteration"])
        return self


class ConstantLr(Schedule):
    """The same rate in each iteration. Raises ArgumentError for one that is negative or not finite."""

    def __init__(self, rate):
        finite("the learning rate", rate)
        Schedule.__init__(self, lambda i: rate)


class _ScheduleConfig(Config):
    def init(self):
        """A Schedule with these settings. Raises ArgumentError as `check` does."""
        self.check()
        return Schedule(self._at)

    def rate(self, i):
        """The rate of iteration i. Raises ArgumentError as `check` does."""
        self.check()
        return self._at(i)

    def check(self):
        """Raise ArgumentError for numbers that are negative or not finite, and for no iterations."""
        for name in self.FIELDS:
            value = getattr(self, name)
            if finite(name, value) < 1 and name in ("num_iters", "step_size", "warmup_steps", "model_size"):
                raise ArgumentError("{} is at least 1, found {}".format(name, value))


class LinearLrSchedulerConfig(_ScheduleConfig):
    """From initial_lr to final_lr in num_iters equal steps, then final_lr."""

    FIELDS = ("initial_lr", "final_lr", "num_iters")

    initial_lr: float
    final_lr: float
    num_iters: int

    def _at(self, i):
        part = min(i, self.num_iters) / self.num_iters
        return self.initial_lr + (self.final_lr - self.initial_lr) * part


class CosineAnnealingLrSchedulerConfig(_ScheduleConfig):
    """Half a cosine from initial_lr to min_lr in num_iters steps, and again (Loshchilov and Hutter 2017). As in Burn,
    the iteration that has min_lr belongs to the cycle, which has num_iters + 1."""

    FIELDS = ("initial_lr", "num_iters", "min_lr")

    initial_lr: float
    num_iters: int
    min_lr: float = 0.0

    def _at(self, i):
        part = i % (self.num_iters + 1) / self.num_iters
        return self.min_lr + (self.initial_lr - self.min_lr) * (1 + math.cos(math.pi * part)) / 2


class ExponentialLrSchedulerConfig(_ScheduleConfig):
    """initial_lr * gamma ** iteration."""

    FIELDS = ("initial_lr", "gamma")

    initial_lr: float
    gamma: float

    def _at(self, i):
        return self.initial_lr * self.gamma**i


class StepLrSchedulerConfig(_ScheduleConfig):
    """initial_lr, multiplied by gamma every step_size iterations."""

    FIELDS = ("initial_lr", "step_size", "gamma")

    initial_lr: float
    step_size: int
    gamma: float = 0.1

    def _at(self, i):
        return self.initial_lr * self.gamma ** (i // self.step_size)


class NoamLrSchedulerConfig(_ScheduleConfig):
    """factor / sqrt(model_size) * min(n ** -0.5, n * warmup_steps ** -1.5) for n = 1, 2, … (Vaswani et al. 2017)."""

    FIELDS = ("factor", "warmup_steps", "model_size")

    factor: float
    warmup_steps: int = 4000
    model_size: int = 512

    def _at(self, i):
        n = i + 1
        return self.factor * self.model_size**-0.5 * min(n**-0.5, n * self.warmup_steps**-1.5)


class PolynomialLrSchedulerConfig(_ScheduleConfig):
    """final_lr + (initial_lr - final_lr) * (1 - iteration / num_iters) ** power, then final_lr."""

    FIELDS = ("initial_lr", "num_iters", "power", "final_lr")

    initial_lr: float
    num_iters: int
    power: float = 1.0
    final_lr: float = 0.0

    def _at(self, i):
        left = 1 - min(i, self.num_iters) / self.num_iters
        return self.final_lr + (self.initial_lr - self.final_lr) * left**self.power


class WarmupLrSchedulerConfig(_ScheduleConfig):
    """A factor that rises from start to 1 in num_iters equal steps, then 1: a part of a composed schedule."""

    FIELDS = ("num_iters", "start")

    num_iters: int
    start: float = 0.0

    def _at(self, i):
        return self.start + (1 - self.start) * min(i, self.num_iters) / self.num_iters


class ComposedLrSchedulerConfig(_ScheduleConfig):
    """Several schedules as one. parts: their configs, or what else has `rate(i)`; reduction: "prod", "sum" or "avg" of
    their rates."""

    FIELDS = ("parts", "reduction")

    parts: list
    reduction: str = "prod"

    def check(self):
        """Raise ArgumentError for no parts, for a part that is wrong itself, and for another reduction."""
        if self.reduction not in ("prod", "sum", "avg"):
            raise ArgumentError("reduction is prod, sum or avg, found {!r}".format(self.reduction))
        if not self.parts:
            raise ArgumentError("a composed schedule needs at least 1 part, found none")
        for part in self.parts:
            if hasattr(part, "check"):
                part.check()

    def _at(self, i):
        rates = [p.rate(i) for p in self.parts]
        if self.reduction == "prod":
            out = 1.0
            for r in rates:
                out *= r
            return out
        return sum(rates) / (len(rates) if self.reduction == "avg" else 1)
