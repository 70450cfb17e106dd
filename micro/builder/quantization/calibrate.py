"""The range of every tensor over samples, and the grid that covers it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from emberlet.errors import FormatError, ShapeError, UnsupportedError
from emberlet.host import npy
from emberlet.host.quantization.calibration import Observed, Range, grid_of, range_of

from ..graph import Graph, Grid
from ..kernels.layer import Array


def samples_from(path: Path, graph: Graph) -> dict[str, Array]:
    """The arrays of an .npz, by the names of the graph's inputs; the first axis counts samples.

    A file with one array fits a model with one input, whatever the array's name. Raises FormatError if the file is not
    an .npz, lacks an input, or holds anything but finite numbers, DTypeError for arrays of another kind, ShapeError if
    an array has the wrong shape or the numbers of samples differ.
    """
    arrays = _read(path)
    if len(arrays) == 1 and len(graph.inputs) == 1:
        arrays = {graph.inputs[0]: next(iter(arrays.values()))}
    missing = [name for name in graph.inputs if name not in arrays]
    if missing:
        raise FormatError(f"{path}: holds {sorted(arrays)}, expected an array for each input: missing {missing}")
    return check_samples({name: arrays[name] for name in graph.inputs}, graph, str(path))


def _read(path: Path) -> dict[str, Array]:
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            advice = "np.savez(FILE, NAME=array) writes one, NAME an input of the model"
            raise FormatError(f"{path}: not an .npz of calibration samples; {advice}")
    return {name: np.asarray(x) for name, x in npy.load_archive(path, "numpy").items()}


def check_samples(samples: Mapping[str, Array], graph: Graph, origin: str = "samples") -> dict[str, Array]:
    """The samples as float32, (count, *shape of the input), in the graph's order of axes.

    They are passed in the model's layout (its batch axis counts samples, axes of size 1 may be missing, and inputs of
    bytes are bytes) or already channels last. Raises ShapeError if they do not fit, FormatError if a value is not a
    finite number.
    """
    out: dict[str, Array] = {}
    for name in graph.inputs:
        x, shape = _finite(samples[name], f"{origin}: {name!r}"), graph.shapes[name]
        shape = shape[:-1] if name in graph.words else shape
        if not graph.is_float and name in graph.grids and graph.grids[name].wide:
            shape = (*shape[:-1], shape[-1] // 2)
        if name in graph.integers and name in graph.grids:
            grid = graph.grids[name]
            x = (x - np.float32(grid.zero - graph.integers[name])) * np.float32(grid.scale)
        dims, order = graph.layouts.get(name, (shape, tuple(range(len(shape)))))
        wanted = ", ".join(map(str, dims[1:] if dims[:1] == (1,) else dims))
        large = [n for n in x.shape[1:] if n != 1]
        if x.size and large == [n for n in dims if n != 1]:
            x = np.transpose(x.reshape(len(x), *dims), (0, *(k + 1 for k in order)))
        elif not x.size or large != [n for n in shape if n != 1]:
            raise ShapeError(f"{origin}: {name!r} has shape {x.shape}, expected (samples, {wanted})")
        out[name] = x.reshape(len(x), *shape)
    if len({len(x) for x in out.values()}) > 1:
        raise ShapeError(f"{origin}: different numbers of samples: { {n: len(x) for n, x in out.items()} }")
    return out


def _finite(values: Array, what: str) -> Array:
    """The values as float32. A NaN or an infinity would make the range useless."""
    try:
        with np.errstate(over="ignore"):
            x = np.asarray(values, np.float32)
    except ValueError:
        raise FormatError(f"{what} holds {np.asarray(values).dtype}, expected numbers") from None
    if wrong := int(np.count_nonzero(~np.isfinite(x))):
        raise FormatError(f"{what} holds {wrong} values that are NaN or beyond float32; leave those samples out")
    return x


def each(samples: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """One sample after the other."""
    for k in range(len(next(iter(samples.values())))):
        yield {name: x[k] for name, x in samples.items()}


def observe(graph: Graph, samples: Mapping[str, Array]) -> dict[str, Observed]:
    """The values of the float32 graph's tensors over the samples, which are a sequence if layers keep states.

    Raises UnsupportedError for a tensor that becomes NaN or infinite.
    """
    count = len(next(iter(samples.values())))
    seen = {name: Observed(count) for name in graph.shapes}
    states: dict[str, Any] = {}
    for number, sample in enumerate(each(samples)):
        with np.errstate(over="ignore", invalid="ignore"):
            values = graph.run(sample, states)
        for name, x in values.items():
            if not np.isfinite(x).all():
                raise UnsupportedError(
                    f"{graph.name}: tensor {name!r} becomes NaN or infinite in float32 on sample {number}: "
                    "it has no range; check the weights before it, or leave the sample out, or build the model with "
                    "--float"
                )
            seen[name].add(x)
    return seen


def ranges_of(seen: Mapping[str, Observed], method: str, percentile: float = 99.99) -> dict[str, Range]:
    """The range of every tensor; see `calibration.range_of`."""
    return {name: range_of(tally, method, percentile) for name, tally in seen.items()}


def grid_over(low: float, high: float, bits: int = 8) -> Grid:
    """The grid of all bytes, or words, from low to high. Zero is on the grid."""
    return Grid(*grid_of(low, high, bits), bits)
