"""Shared by convolution and pooling: strides, dilations, padding, and output sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..emit.emitter import Default, default
from ..emit.expression import Liftable
from ..ir.choices import AutoPad
from ..ir.problem import Problem
from ..ir.types import Dim, Shape
from ..records import dataclass
from .attributes import Attributes

Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """A window over the spatial axes: kernel, stride and dilation of each; pads, all lower sides and then all upper.

    In a file each may be omitted (an empty tuple: the default). `explicit` returns the window with everything filled
    in; configs of nodes hold that one, as far as sizes are known.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[int, ...]
    auto_pad: AutoPad = AutoPad.NOTSET

    @classmethod
    def read(cls, a: Attributes) -> Window:
        return cls(
            a.ints("kernel_shape", ()),
            a.ints("strides", ()),
            a.ints("dilations", ()),
            a.ints("pads", ()),
            a.choice("auto_pad", AutoPad, AutoPad.NOTSET),
        )

    def of(self, n: int, kernel: Sequence[int] = ()) -> Window:
        """The window with an entry for each of n spatial axes. Raises Problem if counts differ or make no sense."""
        size = self.kernel or tuple(kernel)
        whole = Window(
            size, self.stride or (1,) * n, self.dilation or (1,) * n, self.pads or (0,) * (2 * n), self.auto_pad
        )
        for name, entries, count in (
            ("kernel_shape", whole.kernel, n),
            ("strides", whole.stride, n),
            ("dilations", whole.dilation, n),
            ("pads", whole.pads, 2 * n),
        ):
            if len(entries) != count:
                raise Problem(f"{name} has {len(entries)} entries for {n} spatial axes")
        if min((*whole.kernel, *whole.stride, *whole.dilation), default=1) < 1:
            raise Problem(f"kernel {whole.kernel}, strides {whole.stride}, dilations {whole.dilation} must be positive")
        return whole

    def explicit(self, spatial: Shape | None) -> Window:
        """The window with its padding in numbers and no auto_pad; itself if that needs an unknown size."""
        try:
            pairs = self.padding(spatial)
        except Problem:
            return self
        pads = (*(low for low, _ in pairs), *(high for _, high in pairs))
        return replace(self, pads=pads, auto_pad=AutoPad.NOTSET)

    def padding(self, spatial: Shape | None) -> tuple[Pair, ...]:
        """(low, high) per axis. Raises Problem if automatic padding needs an unknown size."""
        n = len(self.kernel)
        if self.auto_pad == "NOTSET":
            return tuple((self.pads[i], self.pads[i + n]) for i in range(n))
        if self.auto_pad == "VALID":
            return ((0, 0),) * n
        out = []
        for i in range(n):
            size = spatial[i] if spatial is not None else None
            reach = self.dilation[i] * (self.kernel[i] - 1) + 1
            if self.stride[i] == 1:
                total = reach - 1
            elif isinstance(size, int):
                total = max(0, (-(-size // self.stride[i]) - 1) * self.stride[i] + reach - size)
            else:
                raise Problem(
                    f"auto_pad {self.auto_pad} with stride {self.stride[i]} needs a known size of axis {i + 2}"
                )
            low = total // 2 if self.auto_pad == "SAME_UPPER" else total - total // 2
            out.append((low, total - low))
        return tuple(out)

    def amounts(self, spatial: Shape | None) -> tuple[Pair, ...] | str:
        """`padding`, or the name by which functions and layers take it from the sizes of each call."""
        try:
            return self.padding(spatial)
        except Problem:
            return self.auto_pad.lower()

    def sizes(self, spatial: Shape, ceil_mode: bool = False) -> Shape:
        """The spatial axes of the output."""
        out: list[Dim] = []
        padding = () if self.auto_pad in ("SAME_UPPER", "SAME_LOWER") else self.padding(spatial)
        for i, size in enumerate(spatial):
            stride = self.stride[i]
            if not padding:
                out.append(-(-size // stride) if isinstance(size, int) else size if stride == 1 else None)
                continue
            low, high = padding[i]
            reach = self.dilation[i] * (self.kernel[i] - 1) + 1
            if not isinstance(size, int):
                out.append(size if stride == 1 and low + high == reach - 1 else None)
                continue
            room = size + low + high - reach
            count = (-(-room // stride) if ceil_mode else room // stride) + 1
            if ceil_mode and (count - 1) * stride >= size + low:
                count -= 1
            if count < 0:
                raise Problem(f"a kernel of {self.kernel} does not fit the input {spatial} with its padding")
            out.append(max(0, count))
        return tuple(out)

    def keywords(self, padding: tuple[Pair, ...] | str) -> dict[str, Liftable | Default]:
        """stride, padding, dilation as keyword arguments, without defaults."""
        n = len(self.kernel)
        return (
            {
                "stride": default(short(self.stride)),
                "padding": default(short_padding(padding)),
                "dilation": default(short(self.dilation)),
            }
            if n
            else {}
        )


def short(entries: tuple[int, ...]) -> int | tuple[int, ...]:
    """One number if all entries are equal."""
    return entries[0] if len(set(entries)) == 1 else entries


def short_padding(padding: tuple[Pair, ...] | str) -> int | str | tuple[int | Pair, ...]:
    """One number if all sides are equal, one per axis if both its sides are; a name as it is."""
    if isinstance(padding, str):
        return padding
    axes = tuple(low if low == high else (low, high) for low, high in padding)
    first = axes[0]
    return first if isinstance(first, int) and len(set(axes)) == 1 else axes


def spatial_of(shape: Shape | None, rank: int) -> Shape:
    """The axes behind batch and channels."""
    if rank < 3:
        raise Problem(f"expected (n, c, *spatial), found rank {rank}")
    return (None,) * (rank - 2) if shape is None else shape[2:]
