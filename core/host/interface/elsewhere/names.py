"""What functions, keyword arguments and methods are called elsewhere: in PyTorch, NumPy and Burn.

Looked up only where a name is unknown here, and only on CPython: a device never loads this. A name that means the same
is an alias; one that means something else is answered with what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ....errors import ArgumentError

# our function -> its names elsewhere that mean the same
_SAME = {
    "abs": "absolute",
    "all_close": "allclose",
    "any": "any_dim", "all": "all_dim",
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
    "atan2": "arctan2",
    "asarray": "array as_tensor from_numpy",
    "attention": "scaled_dot_product_attention",
    "bitwise_invert": "bitwise_not invert",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
    "broadcast_to": "broadcast",
    "clip": "clamp",
    "clamp_max": "clip_max", "clamp_min": "clip_min",
    "concat": "concatenate",
    "divide": "div true_divide",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "expand_dims": "unsqueeze_dim",
    "hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish", "log_sigmoid": "logsigmoid",
    "is_close": "isclose",
    "isfinite": "is_finite", "isinf": "is_inf", "isnan": "is_nan",
    "mask_fill": "masked_fill",
    "multiply": "mul", "subtract": "sub",
    "negative": "neg",
    "permutation": "randperm",
    "pow": "powf powi powf_scalar powi_scalar power",
    "reciprocal": "recip",
    "remainder": "mod",
    "round": "around",
    "swap_dims": "swapaxes swapdims",
    "trunc": "fix",
    "uniform": "rand",
}  # fmt: skip
ALIASES = {theirs: ours for ours, names in _SAME.items() for theirs in names.split()}

# a name elsewhere -> what to write here
ADVICE = {
    "contiguous": "tensors have no memory layout to change; leave it out",
    "cpu": "write x.to('numpy')",
    "cuda": "write x.to('wgpu')",
    "numpy": "write numpy.asarray(x)",
    "data_ptr": "write numpy.asarray(x).ctypes.data",
    "dims": "write len(x.shape) or x.ndim for their number, x.shape for the sizes",
    "dim": "write x.ndim",
    "index_select": "write take(x, indices, axis)",
    "mean_dim": "write x.mean(axis, keepdims=True)",
    "sum_dim": "write x.sum(axis, keepdims=True)",
    "prod_dim": "write x.prod(axis, keepdims=True)",
    "max_dim": "write x.max(axis, keepdims=True)",
    "min_dim": "write x.min(axis, keepdims=True)",
    "max_pair": "write maximum(a, b)",
    "min_pair": "write minimum(a, b)",
    "masked_select": "write x[mask]",
    "median": "write sort(x, axis), and take its middle",
    "numel": "write x.size",
    "num_elements": "write x.size",
    "lower": "write less(a, b)",
    "lower_equal": "write less_equal(a, b)",
    "pixel_shuffle": "write depth_to_space(x, factor, 'CRD')",
    "randn": "write normal(shape)",
    "repeat_interleave": "write repeat(x, repeats, axis=axis)",
    "view": "write reshape(x, shape)",
    "view_as": "write reshape(x, other.shape)",
    "reshape_as": "write reshape(x, other.shape)",
    "upsample": "write interpolate(x, …)",
    "dropout": "outside training it returns its input; dropout_with_mask draws",
    "normalize": "write lp_normalize(x, p, axis, 1e-12)",
}  # fmt: skip

# a parameter elsewhere -> ours, the first one that the function has
_PARAMETERS = {
    "dim": "axis axes dim1", "dims": "axes axis", "keepdim": "keepdims", "keep_dims": "keepdims",
    "other": "x2", "eps": "epsilon", "size": "shape output_size", "tensors": "arrays",
    "elements": "x1", "test_elements": "x2", "vec2": "x2", "device": "backend", "running_mean": "mean",
    "running_var": "var", "num_samples": "count", "k": "bias", "shifts": "shift",
    "index": "indices", "min_val": "min_value", "max_val": "max_value", "weight": "alpha",
    "a_min": "min", "a_max": "max", "ddof": "correction",
    "sections": "chunks", "exponent": "x2", "repeats": "repetitions",
    "attn_mask": "mask", "dim0": "dim1", "query": "q", "key": "k", "value": "v",
    "num_groups": "groups", "fill_value": "value", "a": "x", "newshape": "shape", "sizes": "shape",
}  # fmt: skip
# Options of PyTorch that change nothing here at these values (None: at any value), so that they may be left out.
_ANY = object()
_LEFT_OUT: dict[str, Any] = {
    "inplace": False, "out": None, "antialias": False, "recompute_scale_factor": None, "size_average": None,
    "reduce": None, "label_smoothing": 0.0, "padding_idx": _ANY, "max_norm": None, "norm_type": _ANY,
    "scale_grad_by_freq": _ANY, "sparse": _ANY, "return_indices": False, "divisor_override": None, "generator": None,
    "requires_grad": False, "assume_unique": _ANY, "_stacklevel": _ANY, "training": False, "momentum": _ANY,
    "use_input_stats": True, "layout": None, "pin_memory": _ANY, "memory_format": _ANY, "non_blocking": _ANY,
    "sorted": True, "dropout_p": 0.0,
}  # fmt: skip
_INSTEAD = {
    "inplace": "tensors are not changed in place; write x = {}(x)",
    "return_indices": "max_pool_with_indices gives both",
    "out": "results are new tensors",
}
# Functions that give one tensor where PyTorch's, told by its own keyword, gives two or overwrites.
_TWO_RESULTS = {
    "max": "max_with_indices", "min": "min_with_indices", "sort": "sort_with_indices", "topk": "topk_with_indices",
    "cummax": "max_with_indices for the whole axis", "cummin": "min_with_indices for the whole axis",
    "scatter": "scatter(x, axis, indices, values, reduction=…), which adds by default",
}  # fmt: skip
_PYTORCH = {"dim", "keepdim", "index", "src", "largest", "sorted"}


def nearest(name: str, known: Iterable[str]) -> str:
    """'; did you mean …?' with the known names nearest to `name`, or ''."""
    from difflib import get_close_matches

    lower: dict[str, str] = {}
    for k in [k for k in known if not k.startswith("_")]:
        lower.setdefault(k.lower().replace("_", ""), k)
    found = get_close_matches(name.lower().replace("_", ""), list(lower), 2, 0.7)
    return "; did you mean {}?".format(" or ".join(lower[f] for f in found)) if found else ""


class Absent(AttributeError):
    """`owner` has no attribute `name`. What to write instead, or the nearest of the names that `known` gives, is looked
    up when the message is read: most are never read, since `hasattr` asks."""

    def __init__(self, owner: str, name: str, known: Callable[[], Iterable[str]], advice: Mapping[str, str]) -> None:
        super().__init__(f"{owner} has no attribute {name!r}")
        self._name, self._known, self._advice = name, known, advice.get(name)

    def __str__(self) -> str:
        said = f"; {self._advice}" if self._advice else nearest(self._name, self._known())
        return f"{self.args[0]}{said}"

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


def find(where: str, name: str) -> Any:
    """What the module `where` has under another name than `name`. Raises AttributeError, saying what to write."""
    from importlib import import_module

    from .layers import LAYER_ADVICE, LAYERS

    home = import_module(where)
    if name[:2] == "__":
        raise AttributeError(f"{where} has no attribute {name!r}")
    ours = LAYERS.get(name) if where == "emberlet.nn" else ALIASES.get(name)
    if ours is not None:
        return getattr(home, ours)
    raise Absent(where, name, lambda: dir(home), LAYER_ADVICE if where == "emberlet.nn" else ADVICE)


def find_method(self: Any, name: str) -> Any:
    """A method of a Tensor that is called `name` elsewhere. Raises AttributeError, saying what to write."""
    from importlib import import_module

    if name in ALIASES and import_module("emberlet.lookup").method(ALIASES[name]):
        return getattr(self, ALIASES[name])
    raise Absent("Tensor", name, lambda: dir(type(self)), ADVICE)


def renamed(
    function: Callable[..., Any],
    kwargs: dict[str, Any],
    name: str = "",
    keywords: Mapping[str, str] = _PARAMETERS,
    left_out: Mapping[str, Any] = _LEFT_OUT,
    advice: Mapping[str, str] = _INSTEAD,
) -> dict[str, Any] | None:
    """The keyword arguments of a call by other libraries' names, under ours; None if none of them is another's. Raises
    ArgumentError, saying what to write, if the call means something else there.

    name: what messages call it; keywords: others' names of parameters; left_out: options that change nothing at these
    values; advice: what to write instead of an option."""
    from inspect import signature

    parameters = signature(function).parameters.values()
    ours = [p.name for p in parameters]
    foreign = [k for k in kwargs if k not in ours]
    if not foreign or any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    name = name or function.__name__
    if name in _TWO_RESULTS and _PYTORCH & set(foreign):
        raise ArgumentError(f"{name}: PyTorch's gives two results or overwrites; here it is {_TWO_RESULTS[name]}")
    named = {k: v for k, v in kwargs.items() if k in ours}
    if name in ("var", "std", "var_mean"):
        if "unbiased" in foreign:
            named["correction"] = int(bool(kwargs["unbiased"]))
            foreign.remove("unbiased")
        elif {"dim", "keepdim"} & set(foreign):
            named.setdefault("correction", 1)  # PyTorch's default
    for k in foreign:
        target = ours[0] if k in ("input", "self") else _target(keywords.get(k, ""), ours)
        if target is not None and target not in named:
            named[target] = kwargs[k]
        elif k not in left_out:
            return None
        elif left_out[k] is not _ANY and kwargs[k] != left_out[k]:
            instead = advice.get(k, "leave it out").format(name)
            raise ArgumentError(f"{name}: {k}={kwargs[k]!r} is not supported; {instead}")
    return named


def _target(names: str, ours: list[str]) -> str | None:
    return next((t for t in names.split() if t in ours), None)
