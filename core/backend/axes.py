"""Which axes of a model's arguments are open (symbolic), and the values of their symbols in a call."""

from ..errors import BackendError, ShapeError
from ..sizes.scope import HIGHEST, Scope
from ..sizes.size import is_open
from ..tensor import Tensor

ATTEMPTS = (0, 1, 2)  # attempts at a plan with open sizes, by the typical values of its sizes (Axes.scope)
_ANY = (1, HIGHEST, None, 1)  # the default limits of a symbol
_PLAIN = (type(None), bool, int, float, str)  # whose repr tells two apart; that of a class made of them may not
_TYPICAL = (37, 5)  # the least typical value of a symbol; the second is tried if the first fails


class Axes:
    """templates: for each argument None, or a tuple with the length of each axis: a number, or a text such as "past"
    or "past + new"; limits: {symbol: (lowest, highest, capacity, step)} for the symbols that have any.

    An axis whose text cannot be parsed is a symbol of that name.
    """

    def __init__(self, templates, limits):
        self.templates = []
        self.symbols = []
        for template in templates:
            parsed = None if template is None else tuple([_parsed(d) for d in template])
            self.templates.append(parsed)
            for d in parsed or ():
                for name in d[1]:
                    if name not in self.symbols:
                        self.symbols.append(name)
        # If several arguments share a symbol, as caches do, only the first ones are read.
        self._alike = [self.templates.index(template) for template in self.templates]
        unknown = [name for name in limits if name not in self.symbols]
        if unknown:
            raise BackendError(
                "the model has no open axis {!r}; it has {}".format(
                    unknown[0], ", ".join([repr(s) for s in self.symbols]) or "none"
                )
            )
        self.limits = limits

    def numbers(self, shapes):
        """{symbol: its value} for the arguments' shapes (None for an argument that is not a tensor); None if they do
        not match the templates, or do not tell a symbol."""
        found = {}
        waiting = []
        for template, shape, first in zip(self.templates, shapes, self._alike):
            if template is None or shape is None or (shape is not shapes[first] and shape == shapes[first]):
                continue
            if len(template) != len(shape):
                return None
            waiting.extend(zip(template, shape))
        while waiting:
            left = []
            for (number, names), length in waiting:
                unknown = [name for name in names if name not in found]
                rest = length - number - sum([names[n] * found[n] for n in names if n in found])
                if len(unknown) > 1:
                    left.append(((number, names), length))
                elif unknown:
                    if rest % names[unknown[0]] or rest < 0:
                        return None
                    found[unknown[0]] = rest // names[unknown[0]]
                elif rest:
                    return None
            if len(left) == len(waiting):
                return None
            waiting = left
        return found if len(found) == len(self.symbols) else None

    def capacity(self, name, number):
        """The initial capacity for a symbol whose value is now `number`."""
        return max(number, self.limits.get(name, (0, 0, 0))[2] or 0)

    def within(self, name, number):
        """Whether the value is within the symbol's limits."""
        lowest, highest, _, step = self.limits.get(name, _ANY)
        return lowest <= number <= highest and (number - lowest) % step == 0

    def scope(self, opened, numbers, attempt):
        """(Scope, {symbol: its Size, or its number}); the symbols in `opened` stay open. numbers: the current values.

        attempt: in attempts 0 (large) and 1 (small), the typical values are numbers that no other size of a model is
        likely to equal, so that few guards are noted; attempt 2 uses the current values.
        """
        scope = Scope()
        scope.current = numbers
        sizes = {}
        taken = list(numbers.values())
        for name in self.symbols:
            now = numbers[name]
            if name not in opened:
                sizes[name] = now
                continue
            lowest, highest, capacity, step = self.limits.get(name, _ANY)
            chosen = now
            if attempt < 2:
                chosen = _TYPICAL[attempt]
                if attempt == 0:
                    chosen = max(chosen, capacity // 2 if capacity else now)
                chosen = max(min(_prime(chosen // step, taken) * step + lowest % step, highest), lowest)
            taken.append(chosen)
            sizes[name] = scope.symbol(name, lowest, max(highest, now), chosen, step)
        return scope, sizes

    def shapes(self, sizes, shapes):
        """The shapes of the arguments, with Sizes for the open axes."""
        out = []
        for template, shape in zip(self.templates, shapes):
            if template is None or shape is None:
                out.append(shape)
                continue
            lengths = []
            for number, names in template:
                for name in names:
                    number = number + names[name] * sizes[name]
                lengths.append(number)
            out.append(tuple(lengths))
        return out


def _parsed(d):
    """(number, {symbol: coefficient}) of a length: 4, "past", "past + new", "2 * length + 1"."""
    if not isinstance(d, str):
        return d, {}
    number = 0
    names = {}
    for part in d.split(" + "):
        factor = 1
        factors = part.split(" * ")
        rest = [f for f in factors if not f.isdigit()]
        for f in factors:
            factor *= int(f) if f.isdigit() else 1
        if not rest:
            number += factor
        elif len(rest) == 1 and _is_name(rest[0]) and factor:
            names[rest[0]] = names.get(rest[0], 0) + factor
        else:
            return 0, {d: 1}
    return number, names


def _is_name(text):
    """Whether a text is a name, which may contain dots. MicroPython has no `str.isidentifier`."""
    return not (text[:1] or "0").isdigit() and all(c in "._" or c.isalpha() or c.isdigit() for c in text)


def _prime(n, taken):
    """The first prime >= n that is not taken."""
    n = max(n, 2)
    while n in taken or not all(n % i for i in range(2, int(n**0.5) + 1)):
        n += 1
    return n


def unfit(arguments):
    """Why there is no plan for arguments of these types: others may change without becoming another one. None where
    there may be one."""
    for i in range(len(arguments)):
        x = arguments[i]
        if not (isinstance(x, Tensor) or type(x) in _PLAIN or hasattr(type(x), "__members__")):
            return "input {} is a {}, and plans are made for tensors and numbers".format(i, type(x).__name__)
    return None


def argument_names(model, count):
    """The names of the first `count` arguments of a Module or function, as far as they are known."""
    function = getattr(model, "forward", model)
    code = getattr(function, "__code__", None)
    known = getattr(code, "co_varnames", None)  # MicroPython's code objects have no such attribute
    names = list(known[: code.co_argcount]) if known else []
    if names and names[0] == "self":
        names = names[1:]
    if names and code.co_flags & 4:  # arguments collected by *past are named as in INPUTS
        for entry in (getattr(model, "INPUTS", None) or ())[len(names) :]:
            names.append("".join([c if c.isalpha() or c.isdigit() else "_" for c in entry[0]]))
    return [names[i] if i < len(names) else "input{}".format(i) for i in range(count)]


def of_model(model, names, shapes, dims):
    """The Axes of a model's arguments.

    names: the arguments' names; shapes: the examples' shapes, None for an argument that is not a tensor. dims: see
    `compile`. Axes named in a generated model's INPUTS are open under these names.
    """
    templates = [None if shape is None else list(shape) for shape in shapes]
    entries = getattr(model, "INPUTS", None) or ()
    for i in range(min(len(entries), len(templates))):
        shape = entries[i][2]
        if templates[i] is not None and shape is not None and len(shape) == len(templates[i]):
            for axis in range(len(shape)):
                if shape[axis] is None:
                    templates[i][axis] = "{}[{}]".format(entries[i][0], axis)
                elif isinstance(shape[axis], str):
                    templates[i][axis] = shape[axis]
    limits = {}
    for name, given in _checked(dims).items():
        if isinstance(given, dict):
            if name not in names or templates[names.index(name)] is None:
                raise BackendError("no input is named {!r}; the inputs are {}".format(name, names))
            template = templates[names.index(name)]
            for axis, label in given.items():
                if not -len(template) <= axis < len(template):
                    raise ShapeError("{!r} has no axis {}; its shape is {}".format(name, axis, tuple(template)))
                if isinstance(label, tuple):
                    label, limit = label
                    limits[label] = _limit(label, limit)
                template[axis] = label
        else:
            limits[name] = _limit(name, given)
    return Axes(templates, limits)


def named(dims):
    """The symbols that `compile`'s argument of this name contains."""
    out = []
    for name, given in _checked(dims).items():
        labels = [name]
        if isinstance(given, dict):
            labels = [label[0] if isinstance(label, tuple) else label for label in given.values()]
        for label in labels:
            out.extend([s for s in _parsed(label)[1] if s not in out])
    return out


def _checked(dims):
    """`dims` as a dict. Raises BackendError for invalid names, axes and labels."""
    if dims is None:
        return {}
    if not isinstance(dims, dict):
        raise BackendError('dims is a dict such as {{"length": 512}}, found {!r}'.format(dims))
    for name, given in dims.items():
        if not isinstance(name, str):
            raise BackendError("dims must name axes or inputs, found {!r}".format(name))
        for axis, label in given.items() if isinstance(given, dict) else ():
            pair = isinstance(label, tuple) and len(label) == 2
            label = label[0] if pair else label
            if not _is_index(axis) or not isinstance(label, str) or not label:
                raise BackendError(
                    'write an open axis of {0!r} as {{2: "cache"}} or {{2: ("cache", 2048)}}, found {1!r}'.format(
                        name, given
                    )
                )
    return dims


def _is_index(n):
    return hasattr(n, "__index__") or type(n) is int


def _limit(name, given):
    """(lowest, highest, capacity, step) from a number, a pair, a range or None."""
    if given is None:
        return _ANY
    step = 1
    if isinstance(given, range):
        if not len(given) or given.step < 1:
            raise BackendError("the open axis {!r} has no length in {!r}".format(name, given))
        pair, step = (given[0], given[-1]), given.step
    else:
        pair = given if isinstance(given, (tuple, list)) else (1, given)
        if len(pair) == 2 and pair[1] is None and _is_index(pair[0]) and 0 <= pair[0] <= HIGHEST:
            return int(pair[0]), HIGHEST, None, 1
    if len(pair) != 2 or not _is_index(pair[0]) or not _is_index(pair[1]):
        raise BackendError(
            "the limit of the open axis {!r} is a number, None, a pair (lowest, highest) or a range, found {!r}".format(
                name, given
            )
        )
    lowest, highest = int(pair[0]), int(pair[1])
    if not 0 <= lowest <= highest or not highest:
        raise BackendError("the open axis {!r} cannot have a length of {} to {}".format(name, lowest, highest))
    return lowest, highest, highest, step


def closed(x, values):
    """Replace Sizes by numbers, given the values of their scope's atoms; also inside tuples, lists and dicts."""
    if is_open(x):
        return x.at(values)
    if type(x) is tuple or type(x) is list:
        return type(x)([closed(v, values) for v in x])
    if type(x) is dict:
        return {k: closed(x[k], values) for k in x}
    return x
