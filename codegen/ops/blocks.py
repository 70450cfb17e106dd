"""Blocks of pixels as channels, and back."""

from __future__ import annotations

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, lift
from ..ir.choices import BlockMode
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, Shape, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import times

FAMILY = "movement"


@dataclass(frozen=True)
class BlockConfig:
    block_size: int
    mode: BlockMode


def block(a: Attributes, mode: BlockMode) -> BlockConfig:
    return BlockConfig(a.count("blocksize"), mode)


class DepthToSpace(Node[BlockConfig]):
    since = (1, 11, 13, 28)

    @classmethod
    def read(cls, a: Attributes) -> BlockConfig:
        return block(a, a.choice("mode", BlockMode, BlockMode.DCR))

    def infer(self) -> tuple[Type, ...]:
        x, b = self.tensor(0), self.config.block_size
        if x.shape is None:
            return (TensorType(x.dtype, (None,) * 4),)
        n, c, h, w = four(x.shape)
        channels = c // (b * b) if isinstance(c, int) else None
        return (TensorType(x.dtype, (n, channels, times(h, b), times(w, b))),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("depth_to_space", e.x(), self.config.block_size, mode=default(self.config.mode))


class SpaceToDepth(Node[BlockConfig]):
    since = (1, 13, 28)

    @classmethod
    def read(cls, a: Attributes) -> BlockConfig:
        return block(a, a.choice("mode", BlockMode, BlockMode.DCR))

    def infer(self) -> tuple[Type, ...]:
        x, b = self.tensor(0), self.config.block_size
        if x.shape is None:
            return (TensorType(x.dtype, (None,) * 4),)
        n, c, h, w = four(x.shape)
        return (
            TensorType(
                x.dtype,
                (n, times(c, b * b), h // b if isinstance(h, int) else None, w // b if isinstance(w, int) else None),
            ),
        )

    def emit(self, e: Emitter) -> Emission:
        if self.config.mode == "CRD":
            return self.channels_first(e)
        return e.call("space_to_depth", e.x(), self.config.block_size)

    def channels_first(self, e: Emitter) -> Expr:
        """The layout in which a channel's blocks stay together."""
        b, shape = self.config.block_size, e.assign("sizes", e.shape_of(e.x()))
        n, c, h, w = (e.index(shape, i) for i in range(4))
        rows, columns = Binary("//", h, lift(b)), Binary("//", w, lift(b))
        blocks = e.method(e.x(), "reshape", (n, c, rows, b, columns, b))
        moved = e.method(blocks, "permute", 0, 1, 3, 5, 2, 4)
        return e.method(moved, "reshape", (n, Binary("*", c, lift(b * b)), rows, columns))


def four(shape: Shape) -> tuple[Dim, Dim, Dim, Dim]:
    if len(shape) != 4:
        raise Problem(f"expected (n, c, h, w), found rank {len(shape)}")
    return shape[0], shape[1], shape[2], shape[3]
