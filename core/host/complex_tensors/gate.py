"""Which public functions take complex tensors; all others refuse them by name."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from ...errors import DTypeError
from ...tensor import Tensor
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


# A complex number beside a tensor takes the tensor's precision in these.
_PRECISE = frozenset("add assigned divide equal multiply not_equal pow subtract where".split())


def _precise(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The call with Python's complex numbers as tensors of complex128."""
    asarray = import_module("emberlet.lookup").function("asarray")
    backend = next(x.backend for x in args if isinstance(x, Tensor))
    numbers = [asarray(a, dtype="complex128", backend=backend) if type(a) is complex else a for a in args]
    return function(*numbers, **kwargs)


def check(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function that computes this call of complex numbers, or None if `function` does. Raises DTypeError if it does
    not take them, UnsupportedError if they are on another backend than numpy and python."""
    instead = None
    if function.__name__ in _PRECISE and any(type(a) is complex for a in args):
        if any(isinstance(a, Tensor) and a.dtype.name in ("float64", "complex128") for a in args):
            instead = partial(_precise, function)
    for value in (*args, *kwargs.values()):
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, Tensor) and one.dtype.kind == "complex":
                refuse_elsewhere(one.backend)
                if function.__name__ in BY_NUMPY:
                    instead = import_module("emberlet.host.complex_tensors.by_numpy").FUNCTIONS[function.__name__]
                elif function.__name__ not in NAMES:
                    raise DTypeError(
                        f"{function.__name__} does not take complex numbers ({one.dtype}); write it of real(x), "
                        "imag(x) or abs(x)"
                    )
    return instead


def check_result(found: Any) -> None:
    """Raise UnsupportedError if the result of a function is complex and on another backend than numpy and python."""
    if isinstance(found, Tensor) and found.dtype.kind == "complex":
        refuse_elsewhere(found.backend)
