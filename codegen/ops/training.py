"""Operators of ai.onnx.preview.training: one step of a gradient descent method, for any number of parameters at once.

Inputs: learning rate, step count, all parameters, all gradients, then each kind of state for all parameters.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from ..emit.emitter import Default, Emission, Emitter, default
from ..emit.expression import Expr, Liftable
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import TensorType, Type
from ..records import dataclass
from .attributes import Attributes


@dataclass(frozen=True)
class OptimizerConfig:
    alpha: float
    beta: float
    norm_coefficient: float
    norm_coefficient_post: float
    epsilon: float
    decay_factor: float
    nesterov: bool


@dataclass(frozen=True)
class Optimizer(Node[OptimizerConfig], ABC):
    function: ClassVar[str]
    states: ClassVar[int]
    domain: ClassVar[str] = "ai.onnx.preview.training"

    @classmethod
    def read(cls, a: Attributes) -> OptimizerConfig:
        return OptimizerConfig(
            a.float("alpha", 0.9),
            a.float("beta", 0.999),
            a.float("norm_coefficient", 0.0),
            a.float("norm_coefficient_post", 0.0),
            a.float("epsilon", 1e-6),
            a.float("decay_factor", 0.0),
            a.string("mode", "standard", ("standard", "nesterov")) == "nesterov",
        )

    def count(self) -> int:
        """The number of optimized parameters."""
        count, rest = divmod(len(self.inputs) - 2, 2 + self.states)
        if rest:
            raise Problem(f"{len(self.inputs)} inputs do not make 2 and a multiple of {2 + self.states}")
        return count

    def infer(self) -> tuple[Type, ...]:
        n = self.count()
        kept = [i for i in range(2, len(self.inputs)) if not 2 + n <= i < 2 + 2 * n]
        return tuple(TensorType(self.dtype(i), self.shape(i)) for i in kept)

    def options(self) -> dict[str, Liftable | Default]:
        raise NotImplementedError

    def emit(self, e: Emitter) -> Emission:
        n = self.count()
        steps: list[Expr] = []
        for j in range(n):
            inputs = [e.x(2 + j + n * kind) for kind in range(2 + self.states)]
            steps.append(e.assign("step", e.call(self.function, e.x(0), e.x(1), *inputs, **self.options())))
        return tuple(e.index(step, kind) for kind in range(1 + self.states) for step in steps)


class Adagrad(Optimizer):
    function, states = "adagrad", 1

    def options(self) -> dict[str, Liftable | Default]:
        c = self.config
        return {
            "norm_coefficient": default(c.norm_coefficient),
            "epsilon": default(c.epsilon),
            "decay_factor": default(c.decay_factor),
        }


class Adam(Optimizer):
    function, states = "adam", 2

    def options(self) -> dict[str, Liftable | Default]:
        c = self.config
        return {
            "alpha": default(c.alpha),
            "beta": default(c.beta),
            "norm_coefficient": default(c.norm_coefficient),
            "norm_coefficient_post": default(c.norm_coefficient_post),
            "epsilon": default(c.epsilon),
        }


class Momentum(Optimizer):
    function, states = "momentum", 1

    def options(self) -> dict[str, Liftable | Default]:
        c = self.config
        return {
            "alpha": c.alpha,
            "beta": c.beta,
            "norm_coefficient": default(c.norm_coefficient),
            "nesterov": default(c.nesterov),
        }
