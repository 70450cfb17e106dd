"""What NumPy and PyTorch have as a function and what takes a few words here: for CPython only, by their names and with
their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from importlib import import_module
from itertools import islice, product
from typing import Any

from ....shapes import axis_of


def _ours(name: str) -> Any:
    # By name: an import statement would be a circle, since the functions import Tensor.
    return import_module("emberlet.lookup").function(name)


def _tensor(x: Any) -> Any:
    return _ours("asarray")(x)


def explaining(functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The functions, in which a wrong argument gives an EmberletError in place of a TypeError."""
    return {name: _explaining(function) for name, function in functions.items()}


def _explaining(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # By name, on the first error: the module imports the functions.
            told = import_module("emberlet.host.interface.wrong_arguments").explained(function, args, kwargs, error)
            if told is None:
                raise
            raise told from error

    return call


def identity(n: int, dtype: Any = None) -> Any:
    """`eye` of a square matrix."""
    return _ours("eye")(n, dtype=dtype)


def copy(a: Any) -> Any:
    """A tensor with elements of its own."""
    return _ours("asarray")(a, copy=True)


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """`asarray`: tensors have no memory layout to change."""
    return _ours("asarray")(a, dtype=dtype)


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1) -> Any:
    """A 1-D tensor of the elements of an iterable."""
    return _ours("asarray")(list(iter if count < 0 else islice(iter, count)), dtype=dtype)


def shape(a: Any) -> tuple[int, ...]:
    """`x.shape`."""
    return tuple(_tensor(a).shape)


def ndim(a: Any) -> int:
    """`x.ndim`."""
    return int(_tensor(a).ndim)


def size(a: Any) -> int:
    """`x.size`."""
    return int(_tensor(a).size)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """`moveaxis(x, axis, start)`; a start behind the axis counts the axes before the move."""
    a = _tensor(a)
    axis, start = axis_of(axis, a.ndim), axis_of(start - 1 if start < 0 else start, a.ndim + 1)
    return _ours("moveaxis")(a, axis, start - 1 if axis < start else start)


def fliplr(m: Any) -> Any:
    """`flip(x, 1)`."""
    return _ours("flip")(_tensor(m), 1)


def flipud(m: Any) -> Any:
    """`flip(x, 0)`."""
    return _ours("flip")(_tensor(m), 0)


def hsplit(a: Any, sections: Any) -> Any:
    """`array_split` along the second axis, or the only one, in equal parts."""
    a = _tensor(a)
    return _equal_parts(a, sections, 1 if a.ndim > 1 else 0)


def vsplit(a: Any, sections: Any) -> Any:
    """`array_split` along the first axis, in equal parts."""
    return _equal_parts(_tensor(a), sections, 0)


def _equal_parts(a: Any, sections: Any, axis: int) -> Any:
    from ....errors import ShapeError

    if isinstance(sections, int) and a.shape[axis] % sections:
        raise ShapeError(f"{sections} equal parts do not divide axis {axis} of {a.shape}; array_split takes others")
    return _ours("array_split")(a, sections, axis)


def vdot(a: Any, b: Any) -> Any:
    """The sum of products of all elements."""
    return _ours("vecdot")(_ours("flatten")(_tensor(a)), _ours("flatten")(_tensor(b)))


def diagonal(a: Any, offset: int = 0) -> Any:
    """`linalg.diagonal` of a matrix."""
    return import_module("emberlet.linalg").diagonal(_two(a, "diagonal"), offset=offset)


def _two(a: Any, name: str) -> Any:
    from ....errors import ShapeError

    a = _tensor(a)
    if a.ndim != 2:
        raise ShapeError(f"{name}: NumPy's is of the first two axes; linalg.{name} is of the last two of {a.shape}")
    return a


def amax(a: Any, axis: Any = None, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Any:
    """`max`, also with PyTorch's keywords."""
    return _ours("max")(a, axis if dim is None else dim, keepdims=keepdims or keepdim)


def amin(a: Any, axis: Any = None, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Any:
    """`min`, also with PyTorch's keywords."""
    return _ours("min")(a, axis if dim is None else dim, keepdims=keepdims or keepdim)


def array_equal(a1: Any, a2: Any) -> bool:
    """Whether two arrays have one shape and equal elements."""
    a1, a2 = _tensor(a1), _tensor(a2)
    return a1.shape == a2.shape and bool((a1 == a2).all())


def ediff1d(ary: Any) -> Any:
    """The differences of neighbors in the row of all elements."""
    return _ours("diff")(_ours("flatten")(_tensor(ary)))


def trim_zeros(filt: Any) -> Any:
    """A 1-D tensor without the zeros at its ends."""
    filt = _tensor(filt)
    kept = _ours("flatnonzero")(filt).tolist()
    return filt[kept[0] : kept[-1] + 1] if kept else filt[:0]


def ndindex(*shape: Any) -> Iterator[tuple[int, ...]]:
    """Every index of a tensor of that shape, in order."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return product(*[range(n) for n in sizes])


def ix_(*args: Any) -> tuple[Any, ...]:
    """1-D indices, shaped so that they select every combination."""
    found = [_tensor(a) for a in args]
    return tuple(x.reshape(tuple(x.size if i == k else 1 for i in range(len(found)))) for k, x in enumerate(found))


def _unfolded(x: Any, dimension: int, size: int, step: int) -> Any:
    """PyTorch's and Burn's unfold of tensors; PyTorch's function of that name is F.unfold."""
    return _ours("sliding_windows")(x, dimension, size, step)


def sliding_window_view(x: Any, window_shape: int, axis: int = -1) -> Any:
    """`sliding_windows` of every element along one axis."""
    return _ours("sliding_windows")(x, axis, window_shape)


def _window(name: str) -> Callable[[int], Any]:
    def window(M: int) -> Any:
        return _ours(name)(M, periodic=False)

    window.__doc__ = f"`{name}(n, periodic=False)`."
    return window


def hamming(M: int) -> Any:
    """NumPy's Hamming window, whose coefficients are 0.54 and 0.46; ONNX's are 25/46 and 21/46."""
    n = _ours("arange")(M, dtype="float32")
    return _ours("cos")(n * (2 * 3.141592653589793 / max(M - 1, 1))) * -0.46 + 0.54 if M > 1 else n * 0 + 1


def _loss(name: str) -> Callable[..., Any]:
    def loss(*inputs: Any, **settings: Any) -> Any:
        return getattr(import_module("emberlet.nn"), name)(**settings)(*inputs)

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"`nn.{name}(…)(x, target)`, with the layer's settings as keywords."
    return loss


# PyTorch's function of a loss -> the layer that computes it
_LOSSES = {
    "binary_cross_entropy": "BCELoss", "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "cosine_embedding_loss": "CosineEmbeddingLoss", "gaussian_nll_loss": "GaussianNLLLoss",
    "hinge_embedding_loss": "HingeEmbeddingLoss", "huber_loss": "HuberLoss", "kl_div": "KLDivLoss",
    "l1_loss": "L1Loss", "margin_ranking_loss": "MarginRankingLoss", "mse_loss": "MSELoss",
    "multi_margin_loss": "MultiMarginLoss", "multilabel_margin_loss": "MultiLabelMarginLoss",
    "multilabel_soft_margin_loss": "MultiLabelSoftMarginLoss", "pairwise_distance": "PairwiseDistance",
    "poisson_nll_loss": "PoissonNllLoss", "smooth_l1_loss": "SmoothL1Loss", "soft_margin_loss": "SoftMarginLoss",
    "triplet_margin_loss": "TripletMarginLoss",
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = explaining({
    function.__name__: function
    for function in (
        identity, copy, ascontiguousarray, fromiter, shape, ndim, size, rollaxis, fliplr, flipud, hsplit, vsplit, vdot,
        diagonal, amax, amin, array_equal, ediff1d, trim_zeros, ndindex, ix_, hamming,
        sliding_window_view,
    )
} | {"hanning": _window("hann_window"), "blackman": _window("blackman_window")}
  | {name: _loss(layer) for name, layer in _LOSSES.items()})  # fmt: skip
# attributes and methods of arrays elsewhere
METHODS: dict[str, Callable[[Any], Any]] = {
    "unfold": lambda x: lambda *args, **kwargs: _unfolded(x, *args, **kwargs),
    "itemsize": lambda x: x.dtype.itemsize,
    "copy": lambda x: lambda: copy(x),
    "amax": lambda x: lambda *args, **kwargs: amax(x, *args, **kwargs),
    "amin": lambda x: lambda *args, **kwargs: amin(x, *args, **kwargs),
    "diagonal": lambda x: lambda offset=0: diagonal(x, offset),
    "clone": lambda x: lambda: copy(x),
    "into_primitive": lambda x: lambda: import_module("emberlet").TensorPrimitive(x),
    "var_bias": lambda x: lambda axis: x.var(axis, keepdims=True),
    "var_mean_bias": lambda x: lambda axis: x.var_mean(axis, keepdims=True),
    "sort_descending_with_indices": lambda x: lambda axis: x.sort_with_indices(axis, descending=True),
}


def _kept(reduction: str) -> Callable[[Any], Any]:
    return lambda x: lambda axis: getattr(x, reduction)(axis=axis, keepdims=True)


# Burn's reductions over one axis, and over several, which they keep with length 1
REDUCTIONS = ("all", "any", "max", "mean", "min", "prod", "sum")
for _reduction in REDUCTIONS:
    METHODS[_reduction + "_dim"] = METHODS[_reduction + "_dims"] = _kept(_reduction)
