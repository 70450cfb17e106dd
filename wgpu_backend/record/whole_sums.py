"""Sums of integers that stay float32 from the product to their scale, where float32 holds them exactly: a conversion to
int32 and back takes as many instructions as the rest of a requantization."""

from emberlet import dtypes
from emberlet.tensor import Tensor

from .bounds import interval
from .host_evaluation import given

_EXACT = 1 << 24  # integers up to it are exact in float32


def as_floats(x):
    """int32 x in float32, where it is a sum that a kernel computes in float32, plus or minus constants; else None."""
    node = x.data
    if node.op == "cast" and node.arg == "whole":
        return Tensor(node.srcs[0], dtypes.float32, node.shape, x.backend)
    if node.op != "binary" or node.arg not in ("add", "sub") or node.dtype is not dtypes.int32:
        return None
    total, constant = node.srcs
    known = interval(total)
    reach = _reach(constant, x.backend.host)
    if not known or reach is None or max(-known[0], known[1]) + reach > _EXACT:
        return None
    left = as_floats(Tensor(total, total.dtype, total.shape, x.backend))
    if left is None:
        return None
    right = x.backend.cast(Tensor(constant, constant.dtype, constant.shape, x.backend), dtypes.float32)
    return x.backend.binary(node.arg, left, right)


def _reach(node, host):
    """How far the elements of a constant are at most from 0; None of what is not known."""
    found = given(node, host)
    if found is None:
        return None
    return max([0] + [abs(n) for n in host.to_list(host.reshape(found, (found.size,)))])
