"""Random numbers. Two runs differ unless the node has a seed."""

from __future__ import annotations

import struct
from abc import ABC

from emberlet import dtypes
from emberlet.dtypes import DType

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Liftable
from ..ir.graph import Node
from ..ir.types import TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import dim_at


def _seed(a: Attributes) -> int | None:
    """The generator's integer seed: ONNX's float seed if it is a whole number, else its bits."""
    if not a.has("seed"):
        return None
    seed = a.float("seed")
    return int(seed) if seed >= 0 and seed == int(seed) else int(struct.unpack("<I", struct.pack("<f", seed))[0])


@dataclass(frozen=True)
class RandomConfig:
    """first, second: low and high of a uniform, mean and scale of a normal draw. shape: None means the input's."""

    first: float
    second: float
    dtype: DType | None
    shape: tuple[int, ...] | None
    seed: int | None


@dataclass(frozen=True)
class RandomNode(Node[RandomConfig], ABC):
    """A draw of a given shape, or like the input."""

    pure = False

    @classmethod
    def read(cls, a: Attributes) -> RandomConfig:
        normal, like = "Normal" in cls.__name__, cls.__name__.endswith("Like")
        return RandomConfig(
            a.float("mean", 0.0) if normal else a.float("low", 0.0),
            a.float("scale", 1.0) if normal else a.float("high", 1.0),
            a.dtype("dtype") if a.has("dtype") else None if like else dtypes.float32,
            None if like else a.ints("shape"),
            _seed(a),
        )

    def infer(self) -> tuple[Type, ...]:
        c = self.config
        return (TensorType(c.dtype or self.dtype(0), self.shape(0) if c.shape is None else c.shape),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        dtype = c.dtype or self.dtype(0)
        shape: Liftable = e.shape_of(e.x(0)) if c.shape is None else c.shape
        low, high = ("mean", "std") if "Normal" in self.op() else ("low", "high")
        return e.create(
            "normal" if "Normal" in self.op() else "uniform",
            shape,
            **{low: default(c.first), high: default(c.second)},
            dtype=default(None if dtype is dtypes.float32 else dtype),
            seed=default(c.seed),
        )


class RandomUniform(RandomNode):
    since = (1, 22)


class RandomNormal(RandomNode):
    since = (1, 22)


class RandomUniformLike(RandomNode):
    since = (1, 22)


class RandomNormalLike(RandomNode):
    since = (1, 22)


@dataclass(frozen=True)
class DrawConfig:
    dtype: DType | None
    count: int
    seed: int | None


class Bernoulli(Node[DrawConfig]):
    """1 with the probability given by the input."""

    since, pure = (15, 22), False

    @classmethod
    def read(cls, a: Attributes) -> DrawConfig:
        return DrawConfig(a.dtype("dtype") if a.has("dtype") else None, 1, _seed(a))

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.config.dtype or self.dtype(0), self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        dtype = self.config.dtype or self.dtype(0)
        return e.call("bernoulli", e.x(0), dtype=default(dtype), seed=default(self.config.seed))


class Multinomial(Node[DrawConfig]):
    """Classes drawn by unnormalized log probabilities: (batch, classes) -> (batch, count)."""

    since, pure = (7, 22), False

    @classmethod
    def read(cls, a: Attributes) -> DrawConfig:
        return DrawConfig(a.dtype("dtype") if a.has("dtype") else dtypes.int32, a.int("sample_size", 1), _seed(a))

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.config.dtype or dtypes.int32, (dim_at(self.shape(0), 0), self.config.count)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "multinomial",
            e.call("softmax", e.x(0)),
            c.count,
            True,
            dtype=default(c.dtype),
            seed=default(c.seed),
        )
