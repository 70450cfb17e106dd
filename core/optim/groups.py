"""Parameter groups: parts of a model with a rate and settings of their own, and parts that are frozen."""

from ..errors import ArgumentError
from .rates import finite


class Group:
    """Parameters with a rate and settings of their own.

    match: which ones: a regular expression that is searched in the parameter's path, a list of paths, a function of
    (path, Param), or a Module. rate: what the learning rate is multiplied with. changes: fields of the optimizer's
    config, such as weight_decay. Raises ArgumentError for a rate that is negative or not finite.
    """

    def __init__(self, match, rate=1.0, **changes):
        self.match = matcher(match)
        self.rate = finite("the rate of a Group", rate)
        self.changes = changes


def matcher(match):
    """A function of (path, Param) for what `Group` takes."""
    if isinstance(match, str):
        import re

        pattern = re.compile(match)
        return lambda name, param: pattern.search(name) is not None
    if isinstance(match, (list, tuple)):
        names = list(match)
        return lambda name, param: name in names
    if hasattr(match, "named_params"):
        ids = [p.id.value for p in match.params()]
        return lambda name, param: param.id.value in ids
    if callable(match):
        return match
    raise ArgumentError(
        "parameters are chosen by a regular expression, a list of paths, a function of (path, Param) or a Module, "
        "found {!r}".format(match)
    )


def _set(module, match, require):
    chosen = matcher(match)
    count = 0
    for name, param in module.named_params():
        if chosen(name, param):
            param.set_require_grad(require and param.dtype.is_float)
            count += 1
    if not count:
        raise ArgumentError("no parameter of {} matches".format(type(module).__name__))
    return module


def freeze_group(module, match):
    """Mark the parameters that match (see `Group`) as not requiring a gradient; returns the module. Raises
    ArgumentError if there are none."""
    return _set(module, match, False)


def unfreeze_group(module, match):
    """Mark the parameters that match (see `Group`) as requiring a gradient; returns the module. Raises ArgumentError if
    there are none."""
    return _set(module, match, True)
