"""Calls of PyTorch that also fit our signatures, but mean something else there: they are understood or refused.

A function of ADAPTERS gets the arguments of a call of the function of its name, and returns those to call it with. Only
calls on CPython are adapted; a device runs models that were written here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....errors import ArgumentError, ShapeError
from ....tensor import Tensor

Arguments = tuple[Any, ...]
Named = dict[str, Any]
Adapter = Callable[[Arguments, Named], tuple[Arguments, Named]]


def _by_name(names: tuple[str, ...], values: Arguments) -> Named:
    if len(values) > len(names):
        raise ArgumentError(f"too many positional arguments; the last are {', '.join(names)}")
    return dict(zip(names, values, strict=False))


class Refused(ArgumentError):
    """A call that means something else in PyTorch; its message says what to write."""


def _refused(words: str) -> ArgumentError:
    return Refused(words)


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape that `value` is; None if it is no int or sequence of ints."""
    if isinstance(value, bool) or (isinstance(value, (list, tuple)) and not value):
        return None
    sizes = value if isinstance(value, (list, tuple)) else (value,)
    return tuple(sizes) if all(isinstance(n, int) and not isinstance(n, bool) for n in sizes) else None


def _normalized(name: str, parameters: tuple[str, ...]) -> Adapter:
    """layer_norm and rms_norm: PyTorch's second argument is the shape to normalize over."""

    def adapt(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
        given = kwargs.get("normalized_shape", args[1] if len(args) > 1 else None)
        shape = _shape(given)
        if shape is None:
            return args, kwargs
        if "axis" in kwargs:
            raise _refused(f"{name}: {given!r} is the shape to normalize over, as in PyTorch, and so is axis=")
        named = _by_name(("x", "normalized_shape", *parameters), args) | kwargs
        named.setdefault("x", named.pop("input", None))
        named.pop("normalized_shape")
        x = named.pop("x")
        epsilon = named.pop("eps", named.pop("epsilon", None if name == "rms_norm" else 1e-5))
        if tuple(x.shape[max(0, len(x.shape) - len(shape)) :]) != shape:
            raise ShapeError(f"{name}: the last axes of {tuple(x.shape)} are not the shape {shape} to normalize over; "
                             "weights are passed as a tensor")  # fmt: skip
        if epsilon is None:  # PyTorch's default for rms_norm
            from ....functional.creation.inspection import finfo

            epsilon = finfo(x.dtype).eps
        return (x,), {**named, "epsilon": epsilon, "axis": -len(shape)}

    return adapt


def _batch_norm(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
    if len(args) < 6 or not isinstance(args[5], bool):
        return args, kwargs
    if args[5]:
        raise _refused("batch_norm: training=True changes running statistics in place; pass x.mean((0, 2, 3)) and "
                       "x.var((0, 2, 3)) as the statistics of an image batch x")  # fmt: skip
    return args[:5], kwargs | _by_name(("momentum", "eps"), args[6:])


def _instance_norm(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
    if len(args) < 2:
        return args, kwargs
    if any(a is not None for a in args[1:3]):
        raise _refused("instance_norm: PyTorch's second and third arguments are running statistics; write "
                       "instance_norm(x, weight=…, bias=…)")  # fmt: skip
    if len(args) > 5 and args[5] is not True:
        raise _refused("instance_norm: use_input_stats is always True; with given statistics it is batch_norm")
    return args[:1], kwargs | _by_name(("weight", "bias", "use_input_stats", "momentum", "eps"), args[3:])


def _avg_pool(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
    if len(args) > 4 and isinstance(args[4], bool):
        raise _refused(
            "average pooling: PyTorch's fifth argument is ceil_mode, Burn's count_include_pad; write the name"
        )
    return args, kwargs


def _classification(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
    if len(args) < 5 and not (len(args) == 4 and isinstance(args[3], bool)):
        return args, kwargs
    if len(args) == 5 and isinstance(args[4], str):
        return args, kwargs
    named = _by_name(("size_average", "ignore_index", "reduce", "reduction", "label_smoothing"), args[3:])
    return args[:3], kwargs | named


def _norm(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
    if (len(args) > 1 and isinstance(args[1], str)) or isinstance(kwargs.get("p"), str):
        order = args[1] if len(args) > 1 else kwargs["p"]
        if order != "fro":
            raise _refused(f"norm: p is a number or 'fro', found {order!r}")
        return args[:1] + (2,) * (len(args) > 1) + args[2:], kwargs | ({"p": 2} if "p" in kwargs else {})
    return args, kwargs


def _without_inplace(position: int) -> Adapter:
    """An activation whose argument at `position` is PyTorch's `inplace`."""

    def adapt(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
        if len(args) > position and isinstance(args[position], bool):
            return args[:position] + args[position + 1 :], kwargs | {"inplace": args[position]}
        return args, kwargs

    return adapt


def _randint(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
    """PyTorch's randint(high, size)."""
    if len(args) == 2 and isinstance(args[1], (list, tuple)) and not {"high", "shape"} & set(kwargs):
        return (args[0], None, args[1]), kwargs
    return args, kwargs


def _transpose(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
    """PyTorch's transpose(dim0, dim1) swaps two axes; NumPy's transpose(0, 1) names all of them."""
    if "dim0" in kwargs:
        args += tuple(kwargs.pop(k) for k in ("input", "dim0", "dim1") if k in kwargs)
    if len(args) != 3 or not all(isinstance(a, int) for a in args[1:]) or not isinstance(args[0], Tensor):
        return args, kwargs
    x, first, second = args
    rank = len(x.shape)
    if rank == 2:
        if first % 2 == 0 and second % 2 == 1:
            raise _refused(f"transpose({first}, {second}) of a matrix swaps its axes in PyTorch and leaves them in "
                           "NumPy; write x.T or x.swap_dims(0, 1) to swap them")  # fmt: skip
        return args, kwargs
    if not -rank <= first < rank or not -rank <= second < rank:
        return args, kwargs
    axes = list(range(rank))
    axes[first], axes[second] = axes[second], axes[first]
    return (x, tuple(axes)), kwargs


def _full(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
    """full: a complex number, which is none on devices, has its own default dtype."""
    given = kwargs.get("fill_value", args[1] if len(args) > 1 else None)
    return (args, {"dtype": "complex64", **kwargs}) if isinstance(given, complex) else (args, kwargs)


def _repeat(args: Arguments, kwargs: Named) -> tuple[Arguments, Named]:
    if len(args) > 2:
        raise _refused(f"repeat: PyTorch's and Burn's repeats the whole tensor; write tile(x, {args[1:]})")
    return args, kwargs


ADAPTERS: dict[str, Adapter] = {
    "repeat": _repeat,
    "full": _full,
    "layer_norm": _normalized("layer_norm", ("weight", "bias", "eps")),
    "rms_norm": _normalized("rms_norm", ("weight", "eps")),
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d"), _avg_pool),
    **dict.fromkeys(("nll_loss", "cross_entropy"), _classification),
    "norm": _norm,
    **dict.fromkeys(("relu", "relu6", "selu", "silu", "mish", "hard_swish", "hard_sigmoid"), _without_inplace(1)),
    **dict.fromkeys(("elu", "celu", "leaky_relu"), _without_inplace(2)),
    "hardtanh": _without_inplace(3),
    "randint": _randint,
    "transpose": _transpose,
}
