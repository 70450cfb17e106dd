"""What a Renderer asks about Values to write them in fewer or faster instructions."""

_LIGHT = ("cast", "bitcast", "add", "sub", "mul")
_EXACT = 1 << 24  # integers up to it are exact in float32
_READ = ("load", "component", "const", "index", "variable")


def is_light(value, depth=4):
    """Whether a Value is a load, or a few instructions on one: computing it takes less time than a branch around it."""
    if value.op in _READ:
        return True
    return depth > 0 and value.op in _LIGHT and not [1 for a in value.args if not is_light(a, depth - 1)]


def conversion(value, name):
    """The text of a conversion of levels or of sums of integers, which needs no check, or is none; None for other
    Values. name: gives the text of an operand."""
    cut = _whole_numbers(value)
    if cut is not None:
        return "{}({})".format(value.type, _least(cut, name))
    found = _whole_float(value)
    if found is None:
        return None
    text = _least(found[0], name)
    return "{} - ({}.0)".format(text, found[1]) if found[1] else text


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
    if cut.op != "minimum" or cut.args[0].op != "where" or cut.args[1].op != "const":
        return None
    condition, x, lowest = cut.args[0].args
    if condition.op != "gt" or condition.args != (x, lowest) or lowest.op != "const":
        return None
    least = ends[0] if len(ends) == 2 else 0.0
    return cut.args if lowest.attr >= least and cut.args[1].attr <= ends[-1] else None


def _whole_float(value):
    """(operands of a minimum or a single Value, number) whose difference is an integer that a Value converts to a
    float: one of levels less a zero point, or of a sum that was whole as a float. None for other Values."""
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
    return (cut, less) if cut is not None and _is_whole(cut[0]) and cut[1].attr == int(cut[1].attr) else None


def _is_whole(cut):
    """Whether a float that was cut from below is an integer: rounded, with a zero point."""
    _, x, lowest = cut.args
    if x.op == "add" and x.args[1].op == "const" and x.args[1].attr == int(x.args[1].attr):
        x = x.args[0]
    return x.op == "round" and lowest.attr == int(lowest.attr)
