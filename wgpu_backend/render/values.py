"""What a Renderer asks about Values to write them in fewer or faster instructions."""

from emberlet.sizes.size import is_open

_LIGHT = ("cast", "bitcast", "add", "sub", "mul")
_EXACT = 1 << 24  # integers up to it are exact in float32
_BOUNDED = ("add", "sub", "mul", "maximum", "minimum", "round", "neg", "abs")
_LARGE = 1e37  # no sum or product of smaller bounds is infinite in between
_READ = ("load", "component", "const", "index", "variable")


def is_light(value, depth=4):
    """Whether a Value is a load, or a few instructions on one: computing it takes less time than a branch around it."""
    if value.op in _READ:
        return True
    return depth > 0 and value.op in _LIGHT and not [1 for a in value.args if not is_light(a, depth - 1)]


def in_few(value, name):
    """The text of a conversion of levels or of sums of integers, which needs no check, or is none, or of the larger or
    smaller one of two numbers that are not NaN; None for other Values. name: gives the text of an operand."""
    if value.op in ("maximum", "minimum") and value.type == "f32" and _bound(value) is not None:
        return "{}({}, {})".format(value.op[:3], *[name(a) for a in value.args])
    cut = _whole_numbers(value)
    if cut is not None:
        return "{}({})".format(value.type, _least(cut, name))
    found = _whole_float(value)
    if found is None:
        return None
    return _less(found[0], found[1], name)


def _bound(value, depth=8):
    """A number that a finite float Value is at most away from 0; None where it may be larger, or NaN."""
    levels = _whole_float(value)
    if value.op == "const":
        found = _LARGE if is_open(value.attr) else abs(value.attr)
    elif levels is not None and len(levels[0]) == 2:
        found = 2 * _EXACT
    else:
        parts = [_bound(a, depth - 1) for a in value.args] if depth and value.op in _BOUNDED else [None]
        if None in parts:
            return None
        found = parts[0] * parts[1] if value.op == "mul" else sum(parts) + 1
    return found if found < _LARGE else None


def _less(values, number, name):
    """The text of the smaller one of two Values, or of a single one, less a whole number. Levels are cut without their
    zero point where that is the number."""
    if number and len(values) == 2:
        high, (_, x, lowest) = values[1], values[0].args
        if x.op == "add" and x.args[0].op == "round" and x.args[1].op == "const" and x.args[1].attr == number:
            low, high = float(lowest.attr - number), float(high.attr - number)
            return "min(select({0}, {1}, {1} > ({0})), {2})".format(low, name(x.args[0]), high)
    text = _least(values, name)
    return "{} - ({}.0)".format(text, number) if number else text


def _least(values, name):
    """The text of the smaller one of two Values, or of a single one."""
    names = [name(a) for a in values]
    return names[0] if len(names) == 1 else "min({}, {})".format(*names)


def _whole_numbers(value):
    """The operands of the minimum that a Value converts to integers, where the float was cut to their range, as levels
    are, and therefore is no NaN either: WGSL leaves other conversions undefined. None for other Values."""
    if value.op != "function" or value.attr[0] not in ("to_u32", "to_i32"):
        return None
    cut, ends = value.args[0], [float(text) for text in value.attr[1:]]
    if not _is_cut(cut):
        return None
    least = ends[0] if len(ends) == 2 else 0.0
    return cut.args if cut.args[0].args[2].attr >= least and cut.args[1].attr <= ends[-1] else None


def _is_cut(value):
    """Whether a Value is a float that was cut to a range as levels are, NaN to its lowest."""
    if value.op != "minimum" or value.args[0].op != "where" or value.args[1].op != "const":
        return False
    condition, x, lowest = value.args[0].args
    return condition.op == "gt" and condition.args == (x, lowest) and lowest.op == "const"


def _is_number(value):
    """Whether a Value is a constant integer as float32 holds it."""
    return (
        value.op == "const" and not is_open(value.attr) and abs(value.attr) <= _EXACT and value.attr == int(value.attr)
    )


def _whole_float(value):
    """(operands of a minimum or a single Value, number) whose difference is an integer that a Value converts to a
    float: one of levels less a zero point, or of a sum that was whole as a float. None for other Values."""
    if value.op == "sub" and value.type == "f32" and _is_number(value.args[1]):
        found = _whole_float(value.args[0])
        return None if found is None or found[1] else (found[0], int(value.args[1].attr))
    if value.op != "cast" or value.type != "f32":
        return None
    inner, less = value.args[0], 0
    if inner.op == "sub" and inner.type == "i32" and inner.args[1].op == "const":
        inner, less = inner.args[0], inner.args[1].attr
        if abs(less) > _EXACT:
            return None
    if inner.op == "cast" and inner.type == "i32" and inner.args[0].type == "f32":
        return inner.args, less  # of "whole" casts
    if inner.op == "cast" and inner.type == "i32":
        inner = inner.args[0]
    cut = _whole_numbers(inner)
    return (cut, less) if cut is not None and _is_whole(cut[0]) and _is_number(cut[1]) else None


def _is_whole(cut):
    """Whether a float that was cut from below is an integer: rounded, with a zero point."""
    _, x, lowest = cut.args
    if x.op == "add" and _is_number(x.args[1]):
        x = x.args[0]
    return x.op == "round" and _is_number(lowest)
