"""Tensors as text: `print(x)`, `repr(x)` and f"{x:.2f}", and the report that compares two tensors."""

from .errors import ArgumentError, ShapeError

# Options of `set_print_options`.
_options = {"precision": None, "threshold": 1000, "edge_items": 3}
_KINDS = {"float": "Float", "int": "Int", "uint": "Int", "bool": "Bool", "string": "String", "complex": "Complex"}


def set_print_options(**options):
    """Set how tensors print; options that are not given are reset to their defaults.

    precision: digits after the decimal point (None: as many as distinguish the values); threshold: the number of
    elements above which only the edges are shown; edge_items: how many to show at either end of each axis.
    """
    for name in options:
        if name not in _options:
            raise ArgumentError("print options are {}, found {!r}".format(", ".join(sorted(_options)), name))
    _options.update({"precision": None, "threshold": 1000, "edge_items": 3})
    _options.update(options)


class print_options:
    """`with print_options(precision=2): ...`: changes some options inside the block."""

    def __init__(self, **options):
        self._new = options

    def __enter__(self):
        self._old = dict(_options)
        merged = dict(_options)
        merged.update(self._new)
        set_print_options(**merged)

    def __exit__(self, *_):
        _options.update(self._old)


def _number(value, dtype, precision):
    if not dtype.is_float or value - value != 0:
        return str(value)
    if precision is not None:
        return "{:.{}f}".format(value, precision)
    from .dtypes.decimal import shortest

    return str(shortest(value, dtype))


def _places(n, edge, summarize):
    """The indices shown along an axis of length n; None stands for those omitted."""
    if not summarize or n <= 2 * edge:
        return list(range(n))
    return list(range(edge)) + [None] + list(range(n - edge, n))


def format_elements(x, precision=None, indent=0, lower=False):
    """The elements of x in nested brackets, one row of the last axis per line; lower: bools as "true" and "false"."""
    precision = _options["precision"] if precision is None else precision
    summarize = x.size > _options["threshold"]
    edge = _options["edge_items"]
    shape = x.shape
    places = [_places(n, edge, summarize) for n in shape]
    if summarize:
        # Only the elements shown are read from the backend.
        for axis in range(len(shape)):
            kept = [i for i in places[axis] if i is not None]
            if len(kept) < shape[axis]:
                backend = x.backend
                from . import dtypes

                x = backend.take(x, backend.from_list(kept, dtypes.int64, (len(kept),)), axis)
    values = [_number(v, x.dtype, precision) if x.dtype.kind != "string" else repr(v) for v in x.backend.to_list(x)]
    if lower:
        values = [v.lower() for v in values]
    position = [0]

    def rows(axis):
        if axis == len(shape):
            position[0] += 1
            return values[position[0] - 1]
        parts = [rows(axis + 1) if i is not None else "..." for i in places[axis]]
        if axis == len(shape) - 1:
            return "[" + ", ".join(parts) + "]"
        # Each on its own line, indented by one more space than its bracket; no comma follows the dots.
        gap = "\n" + " " * (indent + axis + 1)
        lines = [part if part == "..." else part + "," for part in parts[:-1]] + parts[-1:]
        return "[" + gap.join(lines) + "]"

    return rows(0)


#: function; Python repr -> str
def format_tensor(x):
    """`repr(x)`: the elements, dtype and backend."""
    head = "Tensor("
    return head + format_elements(x, None, len(head)) + ", dtype={}, backend={!r})".format(x.dtype, x.device)


#: function; Burn Display; precision: int -> str
def describe_tensor(x, precision=None):
    """`print(x)`: the elements and x's properties, one per line, as Burn prints them."""
    data = format_elements(x, precision, lower=x.dtype.is_bool)
    lines = ["Tensor {", "  data:", data + ",", "  shape:  " + str(list(x.shape)) + ","]
    lines.append("  device:  " + repr(x.device) + ",")
    lines += ['  kind:  "' + _KINDS[x.dtype.kind] + '",', '  dtype:  "' + x.dtype.name + '",', "}"]
    return "\n".join(lines)


#: function; Python format; spec: str -> str
def format_with(x, spec):
    """f"{x:.2f}" or f"{x:.2}": `describe_tensor` with that many digits; a single element formats as a number."""
    if not spec:
        return describe_tensor(x)
    if not x.shape:
        return "{:{}}".format(x.item(), spec)
    digits = spec[1:].rstrip("f") if spec.startswith(".") else ""
    if not digits.isdigit():
        raise ArgumentError("a tensor formats with a precision such as '.2f', found {!r}".format(spec))
    return describe_tensor(x, int(digits))


_TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def closeness(a, b):
    """[(tolerance, fraction of elements that differ by at most that), …]. Raises ShapeError if the shapes differ."""
    if a.shape != b.shape:
        raise ShapeError("closeness needs equal shapes, found {} and {}".format(a.shape, b.shape))
    first, second = a.backend.to_list(a), b.backend.to_list(b)
    gaps = []
    for u, v in zip(first, second):
        same = u == v or (u != u and v != v)
        gaps.append(0.0 if same else abs(u - v))
    return [(t, sum([1 for g in gaps if g <= t]) / (len(gaps) or 1) if gaps else 1.0) for t in _TOLERANCES]


def check_closeness(a, b, color=True):
    """Print, for each tolerance, the fraction of elements of a and b that are within it.

    PASS (green): all; WARN (yellow): at least 90 %; FAIL (red): fewer. Returns the printed text.
    """
    lines = ["Closeness of two tensors of shape {}".format(list(a.shape))]
    for tolerance, share in closeness(a, b):
        word, code = ("PASS", 32) if share == 1 else ("WARN", 33) if share >= 0.9 else ("FAIL", 31)
        mark = "\x1b[{}m[{}]\x1b[0m".format(code, word) if color else "[" + word + "]"
        lines.append("  within {:.0e}: {:6.2f}% {}".format(tolerance, share * 100, mark))
    text = "\n".join(lines)
    print(text)
    return text
