"""In which dtype weights are stored at a precision: none may become infinite or 0 because the dtype is narrow."""

from .. import dtypes

# A batch norm divides by the square root of running_var, which float16 holds badly: all of it stays in float32.
_VAR = "running_var"
_PARTS = ("weight", "bias", "gamma", "beta", "running_mean", _VAR)
NEGLIGIBLE = 2048.0  # how much smaller than the largest value one must be to become 0: half a step of float16


class PrecisionWarning(UserWarning if hasattr(memoryview, "cast") else Exception):  # type: ignore[misc]
    """Weights that a dtype holds badly: they stay in a wider one than was asked for, or lose more than rounding."""


def holds(tensor, dtype):
    """Whether the floats of `tensor` survive in `dtype`: finite ones stay finite, and none becomes 0 that is more than
    1 / 2048 of the largest."""
    if not tensor.size:
        return True
    size, out = abs(tensor), tensor.astype(dtype).astype(tensor.dtype)
    finite = size.isfinite()
    if bool((finite & ~out.isfinite()).any()):
        return False
    top = size.mask_fill(~finite, 0.0).max().item()
    return not bool(((out == 0) & (size > top / NEGLIGIBLE)).any())


def choose(tensors, rule):
    """name -> the dtype in which it is stored. A float that the narrower dtype does not hold, and a batch norm, keep
    float32, or their own dtype; a warning names the former.

    tensors: name -> (dtype, a function that reads the tensor); rule: dtype -> the dtype that is wanted.
    """
    norms = {n[: -len(_VAR)] + part for n in tensors if n.split(".")[-1] == _VAR for part in _PARTS}
    found, kept = {}, []
    for name in tensors:
        own, read = tensors[name]
        wanted = rule(own)
        found[name] = wanted
        if wanted is own or not wanted.is_float or wanted.bits > own.bits:
            continue
        norm = name in norms and wanted.bits < 32
        if norm or not holds(read(), wanted):
            wide = own.bits > 32 and wanted is not dtypes.float32 and holds(read(), dtypes.float32)
            found[name] = dtypes.float32 if wide else own
            if not norm:
                kept.append((name, found[name], wanted))
    if kept:
        _warn(kept)
    return found


def check_scales(scales):
    """Warn of the layers, name -> the scales of its quantized weights, whose float16 scales are clipped at the largest,
    or so small that few bits of them are left."""
    found = []
    for name in scales:
        stored = scales[name]
        if stored.dtype is dtypes.float16 and stored.size:
            if float(stored.max()) >= 65504.0 or float(stored.min()) < 2.0**-20:
                found.append(name)
    if found:
        said = "the weights of {}".format(_first([repr(n) for n in found])) if found[0] else "these weights"
        _told("scales in float16, 6e-08 to 65504, do not hold {} well; take float32 or bfloat16".format(said))


def _warn(kept):
    said = _first(["{!r} stays {}".format(name, dtype) for name, dtype, _ in kept])
    _told("{}: {} does not hold their values".format(said, kept[0][2]))


def _first(words):
    more = " and {} more".format(len(words) - 5) if len(words) > 5 else ""
    return ", ".join(words[:5]) + more


def _told(text):
    try:
        from ..errors.warning import warn
    except ImportError:  # a device
        return
    warn(text, PrecisionWarning)
