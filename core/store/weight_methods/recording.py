"""What the layers of a model see over samples: second moments of inputs, means of outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...functional.convolution import padding_pairs
from ...functional.quantized.quantization import dequantize_linear
from ...nn.conv import Conv
from ...nn.conv_transpose import ConvTranspose
from ...nn.linear import Linear

Array = NDArray[Any]
Sample = Sequence[Any]
"""The arguments of a call of the model."""

MOST_ROWS = 4096
"""Of one call's inputs; of more, a fixed random sample."""


class Group(NamedTuple):
    """Layers that are called with one input, and how often one call of the model calls them (None: until its end)."""

    names: tuple[str, ...]
    calls: int | None

    def only(self, names: Iterable[str]) -> Group:
        """The group of some of its layers."""
        chosen = tuple(names)
        return Group(chosen, self.calls if chosen == self.names else len(chosen))


class Moments:
    """Of a layer's inputs, as rows that the weights are multiplied with: grams, a sum of x xᵀ for each group of
    channels; sizes, the mean absolute value of each input."""

    def __init__(self) -> None:
        self.grams: list[Array] = []
        self._sum: Array = np.zeros(0)
        self._count = 0

    def add(self, parts: Sequence[Array]) -> None:
        """Rows (n, inputs) of each group, float32 or float64."""
        if not self.grams:
            self.grams = [np.zeros((x.shape[1], x.shape[1])) for x in parts]
            self._sum = np.zeros(sum(x.shape[1] for x in parts))
        with np.errstate(over="ignore", invalid="ignore"):  # inputs that are not finite are known by the result
            for gram, x in zip(self.grams, parts, strict=True):
                gram += x.T @ x
        self._sum += np.concatenate([np.abs(x).sum(0, dtype=np.float64) for x in parts])
        self._count += len(parts[0])

    @property
    def sizes(self) -> Array:
        """The mean absolute value of each input."""
        return self._sum / max(self._count, 1)


class _Reached(Exception):
    """The layers that are looked at have been called."""


See = Callable[[str, Any, Any, Any], None]


@contextmanager
def watched(layers: Mapping[str, Any], see: See) -> Iterator[None]:
    """While this lasts, see(name, layer, x, y) is called with the input and output of each call of these layers in this
    thread."""
    own = {id(layer): (name, layer, layer.__dict__.get("forward")) for name, layer in layers.items()}
    try:
        for name, layer, _ in own.values():
            layer.__dict__["forward"] = _watching(name, layer, layer.forward, see)
        yield
    finally:
        for _, layer, forward in own.values():
            layer.__dict__.pop("forward", None)
            if forward is not None:
                layer.__dict__["forward"] = forward


def _watching(name: str, layer: Any, own: Callable[..., Any], see: See) -> Callable[..., Any]:
    here = get_ident()

    def forward(x: Any, *more: Any, **named: Any) -> Any:
        y = own(x, *more, **named)
        if get_ident() != here:
            return y
        if not isinstance(layer, Conv) or len(x.shape) == layer.RANK + 2:  # without a batch, it calls itself with one
            see(name, layer, x, y)
        return y

    return forward


def groups(module: Any, layers: Mapping[str, Any], samples: Sequence[Sample]) -> list[Group]:
    """The layers in the order of their first calls, those that only later samples reach after the layers before them;
    those called one after the other with the same tensor are one group. A layer that a sample calls several times is a
    group of its own."""
    found: list[list[str]] = []
    most: Counter[str] = Counter()
    seen: list[tuple[str, Any]] = []
    with watched(layers, lambda name, layer, x, y: seen.append((name, x))):
        for sample in samples:
            seen.clear()
            module(*sample)
            _add(found, seen)
            most |= Counter(name for name, _ in seen)
    split = [[group] if all(most[n] == 1 for n in group) else [[n] for n in group] for group in found]
    return [Group(tuple(group), sum(most[name] for name in group)) for parts in split for group in parts]


def _add(found: list[list[str]], seen: Sequence[tuple[str, Any]]) -> None:
    """Add the layers of one call, with their inputs, to the groups of those before."""
    counts = Counter(name for name, _ in seen)
    last, at = None, 0  # found[at - 1] was called last
    for name, x in seen:
        known = next((k for k, group in enumerate(found) if name in group), None)
        if known is not None:
            last, at = None, known + 1
        elif x is last and counts[name] == 1:
            found[at - 1].append(name)
        else:
            found.insert(at, [name])
            last, at = x if counts[name] == 1 else None, at + 1


def _run(module: Any, layers: Mapping[str, Any], group: Group, samples: Sequence[Sample], see: See) -> None:
    """Show the calls of a group's layers over all samples; each call of the model ends with the last of them."""
    calls = 0

    def counted(name: str, layer: Any, x: Any, y: Any) -> None:
        nonlocal calls
        see(name, layer, x, y)
        calls += 1
        if calls == group.calls:
            raise _Reached

    with watched({name: layers[name] for name in group.names}, counted):
        for sample in samples:
            calls = 0
            try:
                module(*sample)
            except _Reached:
                continue


def moments(module: Any, layers: Mapping[str, Any], group: Group, samples: Sequence[Sample]) -> dict[str, Moments]:
    """The moments of the inputs of a group's layers, those that have some: Linear and convolutions."""
    found: dict[str, Moments] = {}
    draw = np.random.default_rng(0)

    def see(name: str, layer: Any, x: Any, _: Any) -> None:
        x = _multiplied(layer, x)
        parts = rows(layer, x.astype(np.float32) if x.dtype.itemsize < 4 else x, draw)
        if parts is not None:
            found.setdefault(name, Moments()).add(parts)

    _run(module, layers, group, samples, see)
    return found


def _multiplied(layer: Any, x: Any) -> Array:
    """x as the layer multiplies it: rounded to its integers, if it has some."""
    if getattr(layer, "input", None) is not None and x.dtype.is_float:
        x = dequantize_linear(*layer._given(x))
    found: Array = np.asarray(x)
    return found


def means(module: Any, layers: Mapping[str, Any], group: Group, samples: Sequence[Sample]) -> dict[str, Array]:
    """The mean of each output channel of a group's layers."""
    sums: dict[str, Array] = {}
    counts: dict[str, int] = {}

    def see(name: str, layer: Any, _: Any, y: Any) -> None:
        y = np.asarray(y)
        axis = 1 if isinstance(layer, Conv) else y.ndim - 1
        total = y.sum(tuple(i for i in range(y.ndim) if i != axis), dtype=np.float64)
        sums[name] = sums.get(name, 0.0) + total
        counts[name] = counts.get(name, 0) + y.size // max(len(total), 1)

    _run(module, layers, group, samples, see)
    return {name: total / max(counts[name], 1) for name, total in sums.items()}


def rows(layer: Any, x: Array, draw: np.random.Generator) -> list[Array] | None:
    """A call's inputs as rows that the weights (channels, inputs) are multiplied with, for each group of channels, at
    most MOST_ROWS of them; None for a layer whose inputs are no such rows."""
    if isinstance(layer, Linear):
        return [_some(x.reshape(-1, x.shape[-1]), draw)]
    if not isinstance(layer, Conv) or isinstance(layer, ConvTranspose):
        return None
    n = layer.RANK
    kernel = layer.weight.shape[2:]
    padding = padding_pairs(layer.padding, n, kernel, layer.dilation, layer.stride, x)
    low, high = (tuple(max(pair[k], 0) for pair in padding) for k in (0, 1))
    x = np.pad(x, ((0, 0), (0, 0), *zip(low, high, strict=True)))
    reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, layer.dilation, strict=True))
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, n + 2)))
    strided = tuple(slice(None, None, s) for s in layer.stride)
    dilated = tuple(slice(None, None, d) for d in layer.dilation)
    windows = windows[(slice(None), slice(None), *strided, *dilated)]
    windows = np.moveaxis(windows, 1, n + 1)  # (batch, *outputs, channels, *kernel)
    outer = windows.shape[: n + 1]
    count = int(np.prod(outer))
    at = np.arange(count) if count <= MOST_ROWS else np.sort(draw.choice(count, MOST_ROWS, replace=False))
    taken = windows[np.unravel_index(at, outer)]  # (rows, channels, *kernel)
    return [part.reshape(len(at), -1) for part in np.split(taken, layer.groups, axis=1)]


def _some(x: Array, draw: np.random.Generator) -> Array:
    return x if len(x) <= MOST_ROWS else x[np.sort(draw.choice(len(x), MOST_ROWS, replace=False))]
