"""Number: a number that each step computes on the host, such as the learning rate.

While a step is traced, an optimizer's rule computes with Numbers as with floats. What meets a tensor becomes an element
of one input of the plan, so that another rate or another count of steps changes data, not the plan, and rounds as in a
step without a plan.
"""


def _operation(symbol, compute):
    def method(self, other):
        if isinstance(other, Number):
            key = (symbol, self.key, other.key)
            return Number(key, lambda env: compute(self.value(env), other.value(env)), self.slots)
        if isinstance(other, (bool, int, float)):
            return Number((symbol, self.key, other), lambda env: compute(self.value(env), other), self.slots)
        return compute(self.tensor(other), other) if hasattr(other, "backend") else NotImplemented

    def reflected(self, other):
        if isinstance(other, (bool, int, float)):
            return Number((symbol, other, self.key), lambda env: compute(other, self.value(env)), self.slots)
        return compute(other, self.tensor(other)) if hasattr(other, "backend") else NotImplemented

    return method, reflected


class Number:
    """key: equal for numbers computed alike; value(env) -> the number, where env maps the names of what changes
    from step to step to ints and floats; slots: the Slots of the trace."""

    def __init__(self, key, value, slots):
        self.key = key
        self.value = value
        self.slots = slots

    def __bool__(self):
        from ..errors import UnsupportedError

        raise UnsupportedError(
            "an optimizer's rule asks for the value of the rate or of a count, with which a compiled step only "
            "computes; write arithmetic in place of the condition, or train with optimizer.step"
        )

    def tensor(self, like):
        """The number as a 0-D tensor of like's dtype and backend."""
        return self.slots.tensor(self, like)


def _attach():
    import operator as o

    table = (
        ("add", "+", o.add), ("sub", "-", o.sub), ("mul", "*", o.mul), ("truediv", "/", o.truediv),
        ("pow", "**", o.pow), ("gt", ">", o.gt), ("lt", "<", o.lt),
    )  # fmt: skip
    for name, symbol, compute in table:
        method, reflected = _operation(symbol, compute)
        setattr(Number, "__" + name + "__", method)
        if name not in ("gt", "lt"):
            setattr(Number, "__r" + name + "__", reflected)


_attach()


def named(name, slots):
    """The Number that a step is given under this name."""
    return Number(name, lambda env: env[name], slots)


class Slots:
    """The elements of one input: `whole`, a 1-D tensor of float64. numbers: those in use, in order; more are taken than
    the input has where `whole` is too short, and the trace has to be repeated with `len(numbers)`."""

    def __init__(self, whole):
        self.whole = whole
        self.numbers = []
        self._tensors = {}

    def tensor(self, number, like):
        """The element of a Number as a 0-D tensor of like's dtype."""
        key = (number.key, like.dtype.name)
        found = self._tensors.get(key)
        if found is None:
            keys = [n.key for n in self.numbers]
            if number.key not in keys:
                keys.append(number.key)
                self.numbers.append(number)
            at = min(keys.index(number.key), self.whole.shape[0] - 1)
            backend = self.whole.backend
            one = backend.reshape(backend.slice(self.whole, (at,), (1,), (1,)), ())
            found = self._tensors[key] = backend.cast(one, like.dtype)
        return found
