"""What Burn has as a function or method, or PyTorch as a method, and what takes a few words here: for CPython only, by
their names and with their arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from ....errors import ArgumentError, BackendError, DTypeError, ShapeError
from ....shapes import axis_of, strides
from .functions import _ours, _tensor, explaining


def arange_step(start: int, stop: int, step: int = 1, **options: Any) -> Any:
    """`arange(start, stop, step)`."""
    return _ours("arange")(start, stop, step, **options)


def seed(seed: int) -> None:
    """`manual_seed(seed)`."""
    _ours("manual_seed")(seed)


def mask_select(x: Any, mask: Any) -> Any:
    """`x[mask]`: the elements where the mask is true, in a row."""
    return _tensor(x)[mask]


def max_abs(x: Any) -> Any:
    """`abs(x).max()`."""
    return _ours("abs")(x).max()


def max_abs_dim(x: Any, dim: Any) -> Any:
    """`abs(x).max(axis, keepdims=True)`; the axis, or each of several, keeps length 1."""
    return _ours("abs")(x).max(dim, keepdims=True)


def split_with_sizes(x: Any, split_sizes: Any, dim: int = 0) -> Any:
    """`split(x, sizes, axis)`."""
    return _ours("split")(x, split_sizes, dim)


def roll_dim(x: Any, shift: int, dim: int) -> Any:
    """`roll(x, shift, axis)`."""
    return _ours("roll")(x, shift, dim)


def iter_dim(x: Any, dim: int) -> Iterator[Any]:
    """The parts of x along an axis, one after the other."""
    return iter(_ours("unstack")(x, dim))


def select_dim(x: Any, dim: int, index: int) -> Any:
    """The part of x at one index of an axis, without the axis."""
    x = _tensor(x)
    return x[(slice(None),) * axis_of(dim, x.ndim) + (index,)]


def slice_dim(x: Any, dim: int, slice_: Any) -> Any:
    """A slice, or a (start, stop) pair, of one axis."""
    x = _tensor(x)
    return x[(slice(None),) * axis_of(dim, x.ndim) + (slice_ if isinstance(slice_, slice) else slice(*slice_),)]


def slice_fill(x: Any, ranges: Any, value: float) -> Any:
    """A copy of x with one number in the slice `ranges`: `slice_assign(x, ranges, value)`."""
    return _ours("slice_assign")(x, ranges, value)


def one_hot_fill(x: Any, num_classes: int, on_value: float, off_value: float, axis: int = -1) -> Any:
    """`one_hot` with the values on_value and off_value."""
    return _ours("one_hot")(x, num_classes, axis, off_value, on_value, dtype="float32")


def meshgrid_stack(tensors: Any) -> Any:
    """The coordinates of every point of the grid that 1-D tensors span, along a last axis."""
    return _ours("stack")(_ours("meshgrid")(*tensors, indexing="ij"), axis=-1)


def softplus_with_threshold(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """`softplus(x, beta)`, and x itself where x * beta exceeds the threshold."""
    x = _tensor(x)
    return _ours("where")(x * beta > threshold, x, _ours("softplus")(x, beta))


def gelu_approximate(x: Any) -> Any:
    """`gelu(x, "tanh")`."""
    return _ours("gelu")(x, "tanh")


def categorical(x: Any, num_samples: int, **options: Any) -> Any:
    """Classes drawn with the weights x, with replacement: `multinomial(x, count, True)`."""
    return _ours("multinomial")(x, num_samples, True, **options)


def int_random(shape: Any, distribution: str = "default", *parameters: float, **options: Any) -> Any:
    """int64: `random(shape, distribution, …)` rounded down; by default from 0 to 254, as in Burn."""
    if distribution == "default" and not parameters:
        distribution, parameters = "uniform", (0, 255)
    return _ours("floor")(_ours("random")(shape, distribution, *parameters, **options)).astype("int64")


def relu_backward(output: Any, grad: Any) -> Any:
    """The gradient of relu: grad where its output is above 0, else 0."""
    return _ours("where")(_tensor(output) > 0, grad, 0)


def broadcast_shape(grad: Any, shape: Any) -> Any:
    """The gradient of an operand that was broadcast: grad, summed over the axes that the shape lacks or has once.
    Raises ShapeError if the shape does not broadcast to grad's."""
    grad, shape = _tensor(grad), (shape,) if isinstance(shape, int) else tuple(shape)
    _ours("broadcast_to")(_ours("zeros")(shape, dtype=grad.dtype, backend=grad.backend), grad.shape)
    own = (1,) * (grad.ndim - len(shape)) + shape
    return grad.sum(tuple(i for i, n in enumerate(own) if n == 1), keepdims=True).reshape(shape)


def into_contiguous(x: Any) -> Any:
    """x: tensors that kernels take have no gaps."""
    return _tensor(x)


def assert_is_on_same_device(x: Any, other: Any) -> None:
    """Raises BackendError if two tensors are on different backends, DTypeError for what is no tensor."""
    for each in (x, other):
        if not hasattr(each, "backend"):
            raise DTypeError(f"assert_is_on_same_device takes two tensors, found {each!r}")
    if x.backend is not other.backend:
        raise BackendError(f"one tensor is on {x.backend!r}, the other on {other.backend!r}; move one with to()")


def build_info(tensors: Any) -> list[int]:
    """What a kernel of Burn's is told about tensors of one rank: the rank, the strides of each, the shapes of each."""
    found = [tuple(x.shape) for x in tensors]
    if len({len(shape) for shape in found}) != 1:
        raise ShapeError(f"build_info takes tensors of one rank, found shapes {found}")
    return [len(found[0]), *(n for shape in found for n in strides(shape)), *(n for shape in found for n in shape)]


def index_select(x: Any, dim: int, index: Any) -> Any:
    """PyTorch's: `take(x, index, axis=dim)`."""
    return _ours("take")(x, index, axis=dim)


def repeat_interleave(x: Any, repeats: Any, dim: int | None = None) -> Any:
    """PyTorch's: `repeat(x, repeats, axis=dim)`, which without an axis flattens x."""
    return _ours("repeat")(x, repeats, axis=dim)


def pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    """`nn.PixelShuffle(upscale_factor)(x)`."""
    return import_module("emberlet.nn").PixelShuffle(upscale_factor)(x)


def pixel_unshuffle(x: Any, downscale_factor: int) -> Any:
    """`nn.PixelUnshuffle(downscale_factor)(x)`."""
    return import_module("emberlet.nn").PixelUnshuffle(downscale_factor)(x)


def normalize(x: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """PyTorch's: x divided by its norm along an axis, or by eps where the norm is smaller."""
    x = _tensor(x)
    return x / import_module("emberlet.linalg").vector_norm(x, ord=p, axis=dim, keepdims=True).clip(eps)


def randn(*sizes: Any, size: Any = None, **options: Any) -> Any:
    """PyTorch's: `normal(size)`."""
    if size is None:
        size = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    return _ours("normal")(size, **options)


def save(file: str | os.PathLike[str], arr: Any) -> None:
    """NumPy's: an .npy file of one array. Weights of a module are written by `module.save_file(path)`."""
    if not isinstance(file, (str, os.PathLike)):
        raise ArgumentError("save: NumPy's takes the path first: save(path, x); module.save_file(path) writes weights")
    path, x = os.fsdecode(file), _tensor(arr)
    if x.dtype.kind == "complex":
        raise DTypeError("save: complex numbers are written by numpy.save(path, numpy.asarray(x))")
    written = path if path.endswith(".npy") else path + ".npy"
    with import_module("emberlet.host.files").atomic_write(written) as out:
        out.write(import_module("emberlet.host.npy").dumps(x))


def load(file: str | os.PathLike[str]) -> Any:
    """NumPy's: the array in an .npy file, or a dict of those in an .npz. `store.open(path)` reads weights."""
    if not isinstance(file, (str, os.PathLike)):
        raise ArgumentError(f"load takes the path of an .npy or .npz file, found a {type(file).__name__}")
    npy, path = import_module("emberlet.host.npy"), os.fsdecode(file)
    if path.endswith(".npz"):
        return npy.load_archive(path)
    if not path.endswith(".npy"):
        raise ArgumentError(f"load: {path} is no .npy or .npz file; write store.open(path) for weights")
    return npy.load(path)


def _without_nan(name: str, zero: float) -> Callable[..., Any]:
    def function(a: Any, axis: int | None = None) -> Any:
        a = _tensor(a)
        filled = _ours("where")(_ours("isnan")(a), zero, a) if a.dtype.is_float else a
        return _ours(name)(filled if axis is not None or a.ndim == 1 else _ours("flatten")(filled), axis=axis or 0)

    return _called(f"nan{name}", function, f"`{name}` in which NaN counts as {zero:g}.")


def _where_not_nan(name: str, last: float) -> Callable[..., Any]:
    def function(a: Any, axis: int | None = None) -> Any:
        a = _tensor(a)
        if not a.dtype.is_float:
            return _ours(name)(a, axis=axis)
        missing = _ours("isnan")(a)
        if _ours("any")(_ours("all")(missing, axis=axis)):
            raise ArgumentError(f"nan{name}: every number of some row is NaN")
        return _ours(name)(_ours("where")(missing, last, a), axis=axis)

    said = f"`{name}` of the numbers that are not NaN. Raises ArgumentError where there are none."
    return _called(f"nan{name}", function, said)


def _called(name: str, function: Callable[..., Any], said: str) -> Callable[..., Any]:
    function.__name__, function.__doc__ = name, said
    return function


def nanpercentile(a: Any, q: Any, axis: Any = None) -> Any:
    """`nanquantile` with q in percent."""
    q = q / 100 if isinstance(q, (int, float)) else _tensor(q) / 100
    return _ours("nanquantile")(a, q, axis)


# also methods of tensors
BURN_METHODS: dict[str, Callable[..., Any]] = explaining({
    "mask_select": mask_select, "masked_select": mask_select, "max_abs": max_abs, "max_abs_dim": max_abs_dim,
    "max_abs_dims": max_abs_dim, "split_with_sizes": split_with_sizes, "roll_dim": roll_dim, "iter_dim": iter_dim,
    "select_dim": select_dim, "slice_dim": slice_dim, "slice_fill": slice_fill, "one_hot_fill": one_hot_fill,
    "categorical": categorical, "index_select": index_select, "repeat_interleave": repeat_interleave,
    "into_contiguous": into_contiguous, "assert_is_on_same_device": assert_is_on_same_device,
})  # fmt: skip
BURN_FUNCTIONS: dict[str, Callable[..., Any]] = BURN_METHODS | explaining({
    "arange_step": arange_step, "seed": seed, "meshgrid_stack": meshgrid_stack,
    "softplus_with_threshold": softplus_with_threshold, "gelu_approximate": gelu_approximate,
    "pixel_shuffle": pixel_shuffle, "pixel_unshuffle": pixel_unshuffle, "normalize": normalize, "randn": randn,
    "int_random": int_random, "relu_backward": relu_backward, "broadcast_shape": broadcast_shape,
    "build_info": build_info, "save": save, "load": load, "nanpercentile": nanpercentile,
    "nancumsum": _without_nan("cumsum", 0.0), "nancumprod": _without_nan("cumprod", 1.0),
    "nanargmax": _where_not_nan("argmax", float("-inf")), "nanargmin": _where_not_nan("argmin", float("inf")),
})  # fmt: skip


def bound(name: str) -> Callable[[Any], Any]:
    """The method of that name, for `functions.METHODS`."""
    return lambda x: partial(BURN_METHODS[name], x)
