"""What functions, keyword arguments and methods are called elsewhere: in PyTorch, NumPy and Burn.

Looked up only where a name is unknown here, and only on CPython: a device never loads this. A name that means the same
is an alias; one that means something else is answered with what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ....errors import ArgumentError
from . import functions
from .burn import BURN_FUNCTIONS, BURN_METHODS, bound
from .functions import REDUCTIONS

FUNCTIONS = functions.FUNCTIONS | BURN_FUNCTIONS
METHODS = functions.METHODS | {name: bound(name) for name in BURN_METHODS}

# our function -> its names elsewhere that mean the same
_SAME = {
    "abs": "absolute fabs",
    "add": "add_scalar", "divide": "div true_divide div_scalar", "multiply": "mul mul_scalar",
    "subtract": "sub sub_scalar", "remainder": "mod remainder_scalar", "fmod": "fmod_scalar",
    "all_close": "allclose",
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
    "atan2": "arctan2",
    "asarray": "array as_tensor from_numpy from_floats from_ints from_bool",
    "attention": "scaled_dot_product_attention attention_fallback",
    "affine_grid": "affine_grid_2d", "grid_sample": "grid_sample_2d",
    "bitwise_and": "bitwise_and_scalar", "bitwise_or": "bitwise_or_scalar", "bitwise_xor": "bitwise_xor_scalar",
    "bitwise_invert": "bitwise_not invert",
    "bitwise_left_shift": "left_shift bitwise_left_shift_scalar",
    "bitwise_right_shift": "right_shift bitwise_right_shift_scalar",
    "broadcast_to": "broadcast",
    "clip": "clamp",
    "clamp_max": "clip_max", "clamp_min": "clip_min",
    "concat": "concatenate",
    "deform_conv": "deform_conv2d",
    "deg2rad": "radians", "rad2deg": "degrees",
    "equal": "eq equal_elem equal_scalar", "not_equal": "ne not_equal_elem not_equal_scalar",
    "less": "lt lower lower_elem lower_scalar", "less_equal": "le lower_equal lower_equal_elem lower_equal_scalar",
    "greater": "gt greater_elem greater_scalar", "greater_equal": "ge greater_equal_elem greater_equal_scalar",
    "expand_dims": "unsqueeze_dim unsqueeze_dims",
    "flatten": "ravel",
    "hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish", "log_sigmoid": "logsigmoid",
    "hard_shrink": "hardshrink", "soft_shrink": "softshrink",
    "is_close": "isclose",
    "isfinite": "is_finite", "isinf": "is_inf", "isnan": "is_nan",
    "logical_and": "bool_and and_", "logical_or": "bool_or or_", "logical_xor": "bool_xor",
    "logical_not": "bool_not not_",
    "mask_fill": "masked_fill",
    "max_with_indices": "max_dim_with_indices", "min_with_indices": "min_dim_with_indices",
    "maximum": "max_pair", "minimum": "min_pair",
    "negative": "neg",
    "permutation": "randperm",
    "pow": "powf powi powf_scalar powi_scalar power",
    "reciprocal": "recip",
    "round": "around rint",
    "squeeze": "squeeze_dim squeeze_dims",
    "swap_dims": "swapaxes swapdims",
    "trunc": "fix",
    "uniform": "rand",
}  # fmt: skip
# names of values that are attributes here
VALUES: dict[str, Callable[[Any], Any]] = {
    "dims": lambda x: x.shape,
    "dim": lambda x: x.ndim,
    "num_dims": lambda x: x.ndim,
    "rank": lambda x: x.ndim,
    "num_elements": lambda x: x.size,
    "numel": lambda x: x.size,
    "t": lambda x: x.T if x.ndim == 2 else x,
}
ALIASES = {theirs: ours for ours, names in _SAME.items() for theirs in names.split()}

# a name elsewhere -> what to write here
ADVICE = {
    "contiguous": "tensors have no memory layout to change; leave it out",
    "cpu": "write x.to('numpy')",
    "cuda": "write x.to('wgpu')",
    "numpy": "write numpy.asarray(x)",
    "data_ptr": "write numpy.asarray(x).ctypes.data",
    "argwhere_async": "write argwhere(x)",
    "nonzero_async": "write nonzero(x)",
    "cross_entropy_with_logits": "write cross_entropy(x, target)",
    "dtype_or": "pass dtype= where the tensor is created",
    "extract": "write x[mask]",
    "histc": "write histogram(x, bins, (min, max))[0]",
    "into_data_async": "write await x.to_data_async()",
    "into_scalar_async": "write await x.item_async()",
    "quantize_dynamic": "write quantize(x)",
    "rrelu": "outside training it is leaky_relu(x, (lower + upper) / 2)",
    "sort_descending_with_indices": "write sort_with_indices(x, axis, descending=True)",
    "var_bias": "write var(x, axis, keepdims=True)",
    "var_mean_bias": "write var_mean(x, axis, keepdims=True)",
    "with_device": "pass backend= where the tensor is created",
    "with_dtype": "pass dtype= where the tensor is created",
    "view": "write reshape(x, shape)",
    "view_as": "write reshape(x, other.shape)",
    "reshape_as": "write reshape(x, other.shape)",
    "upsample": "write interpolate(x, …)",
    "dropout": "outside training it returns its input; dropout_with_mask draws",
}  # fmt: skip

# Burn's reductions, written as functions: over one axis, over several, and over several that are dropped
for _reduction in REDUCTIONS:
    ADVICE[f"{_reduction}_dim"] = f"write {_reduction}(x, axis, keepdims=True)"
    ADVICE[f"{_reduction}_dims"] = f"write {_reduction}(x, axes, keepdims=True)"
    ADVICE[f"{_reduction}_dims_squeeze"] = f"write {_reduction}(x, axes)"

# a parameter elsewhere -> ours, the first one that the function has
_PARAMETERS = {
    "dim": "axis axes dim1", "dims": "axes axis", "keepdim": "keepdims", "keep_dims": "keepdims",
    "other": "x2", "eps": "epsilon", "size": "shape output_size", "tensors": "arrays",
    "elements": "x1", "test_elements": "x2", "vec2": "x2", "device": "backend", "running_mean": "mean",
    "running_var": "var", "num_samples": "count", "k": "bias", "shifts": "shift",
    "index": "indices", "min_val": "min_value", "max_val": "max_value", "weight": "alpha",
    "a_min": "min", "a_max": "max", "ddof": "correction",
    "constant_values": "value", "pad_width": "pads", "rcond": "rtol",
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
    "median": "median_with_indices, which takes the lower of two middle elements as there",
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

    from .classes import CLASSES
    from .layers import LAYERS, PACKAGE_ADVICE

    home = import_module(where)
    if name[:2] == "__":
        raise AttributeError(f"{where} has no attribute {name!r}")
    ours = {"emberlet.nn": LAYERS, "emberlet": ALIASES, "emberlet.functional": ALIASES}.get(where, {}).get(name)
    if ours is not None:
        return getattr(home, ours)
    if where == "emberlet.nn" and name.endswith("Config"):
        layer = LAYERS.get(name[:-6], name[:-6])
        config = import_module("emberlet.host.interface.layer_configs").config_of(layer + "Config")
        if config is not None:
            return config
    if name in CLASSES.get(where, ()):
        file, found = CLASSES[where][name]
        return getattr(import_module(file), found)
    if name == "show" and where == "emberlet":
        return import_module("emberlet.host.tensors.showing").show
    if name in ("complex64", "complex128") and where == "emberlet":
        return import_module("emberlet.dtypes").dtype(name)
    if name in FUNCTIONS and where in ("emberlet", "emberlet.functional"):
        return FUNCTIONS[name]
    raise Absent(where, name, lambda: dir(home), PACKAGE_ADVICE.get(where, ADVICE))


def find_method(self: Any, name: str) -> Any:
    """A method of a Tensor that is called `name` elsewhere. Raises AttributeError, saying what to write."""
    if name == "__array_struct__":  # NumPy asks for it whenever a tensor becomes an array
        raise AttributeError(name)
    from importlib import import_module

    lookup = import_module("emberlet.lookup")
    if name in ALIASES and lookup.method(ALIASES[name]):
        return getattr(self, ALIASES[name])
    if name in VALUES:
        return lambda: VALUES[name](self)
    if name in METHODS:
        return METHODS[name](self)
    advice: Mapping[str, str] = ADVICE
    if name[:1] != "_" and (name in ALIASES or lookup.function(name)):
        advice = {name: f"it is a function: write emberlet.{ALIASES.get(name, name)}(x, …)"}
    raise Absent("Tensor", name, lambda: dir(type(self)), advice)


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
