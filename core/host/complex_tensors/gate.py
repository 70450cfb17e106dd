"""Which public functions take complex tensors; all others refuse them by name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ...errors import DTypeError
from ...tensor import Tensor
from ..interface.python_numbers import holds_complex
from . import refuse_elsewhere

NAMES = frozenset(
    # elementwise
    "abs acos acosh add asin asinh atan atanh conj cos cosh divide equal exp expm1 imag angle isfinite isinf isnan "
    "log log10 log1p log2 multiply negative not_equal positive pow real reciprocal rsqrt sign sin sinh sqrt square "
    "subtract tan tanh where is_close all_close logical_not "
    # reductions
    "all any count_nonzero cumprod cumsum cumulative_prod cumulative_sum diff mean norm prod sum trace "
    "vector_norm "
    # products
    "cross diagonal dot einsum kron matmul outer tensordot vecdot "
    # moving and indexing
    "append array_split assigned atleast_1d atleast_2d atleast_3d block broadcast_arrays broadcast_to cat chunk "
    "column_stack concat delete diag dstack expand expand_dims flatten flip gather getitem hstack insert mask_fill "
    "mask_where matrix_transpose moveaxis movedim narrow nonzero pad permute permute_dims repeat repeat_dim reshape "
    "roll rot90 scatter select setitem slice slice_assign split squeeze stack swap_dims take take_along_axis tile "
    "transpose tril triu unsqueeze unstack vstack "
    # creation and conversion
    "asarray astype bitcast can_cast describe_tensor empty_like eye finfo format_tensor format_with from_dlpack "
    "full full_like into_data into_scalar isdtype item linspace move ones ones_like result_type to to_data to_device "
    "tolist view_as_complex view_as_real zeros zeros_like alias fork clone meshgrid "
    # emberlet.fft
    "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftshift ifftshift".split()
)


# computed by other functions (by_numpy.py)
BY_NUMPY = frozenset(
    "cholesky det eigh eigvalsh inv matrix_norm matrix_power matrix_rank pinv qr round slogdet solve svd "
    "svdvals unique_all unique_counts unique_inverse unique_values".split()
)


# These take a number where others take a tensor, or say themselves which precision a complex number has.
_AS_GIVEN = frozenset("asarray full full_like into_scalar linspace pad".split())


def tensors_in(*values: Any) -> Iterator[Any]:
    """The tensors among values, and in lists, tuples and dicts."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(*value)
        elif isinstance(value, dict):
            yield from tensors_in(*value.values())


def is_double(x: Any) -> bool:
    """Whether a tensor has the precision of float64."""
    return x.dtype.name in ("float64", "complex128")


def precise(value: Any, backend: Any) -> Any:
    """`value` with Python's complex numbers, and the lists of numbers that hold one, as tensors of complex128."""
    if isinstance(value, dict):
        return {name: precise(v, backend) for name, v in value.items()}
    if isinstance(value, (list, tuple)) and next(tensors_in(value), None) is not None:
        found = [precise(v, backend) for v in value]
        return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)
    if type(value) is complex or (isinstance(value, (list, tuple)) and holds_complex(value)):
        return import_module("emberlet.lookup").function("asarray")(value, dtype="complex128", backend=backend)
    return value


def check(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """What to call for this call of `function`, and with which arguments. Raises DTypeError if the function does not
    take complex numbers, UnsupportedError if they are on another backend than numpy and python."""
    called = function
    if function.__name__ not in _AS_GIVEN and holds_complex((args, kwargs)):
        double = next(filter(is_double, tensors_in(args, kwargs)), None)
        if double is not None:
            args = tuple(precise(a, double.backend) for a in args)
            kwargs = precise(kwargs, double.backend)
    for value in (*args, *kwargs.values()):
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, (list, tuple)) or not holds_complex(one):
                continue
            if isinstance(one, Tensor):
                refuse_elsewhere(one.backend)
            if function.__name__ in BY_NUMPY:
                called = import_module("emberlet.host.complex_tensors.by_numpy").FUNCTIONS[function.__name__]
            elif function.__name__ not in NAMES:
                kind = one.dtype if hasattr(one, "dtype") else "complex"
                raise DTypeError(
                    f"{function.__name__} does not take complex numbers ({kind}); write it of real(x), "
                    "imag(x) or abs(x)"
                )
    return called, args, kwargs


def check_result(found: Any) -> None:
    """Raise UnsupportedError if the result of a function is complex and on another backend than numpy and python."""
    if isinstance(found, Tensor) and found.dtype.kind == "complex":
        refuse_elsewhere(found.backend)
