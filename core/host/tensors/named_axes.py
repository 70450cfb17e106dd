"""Names on axes: `x.named("batch", "time", "feature")` is a thin wrapper whose operations take axes by name."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from numbers import Integral
from typing import Any

from ...errors import ArgumentError, EmberletError, ShapeError
from ...tensor import Tensor

# Methods whose results have other axes, or the same in another order, even where their number is that of the operand.
_OTHER_AXES = frozenset(
    "argwhere corrcoef cov flatnonzero kron matmul matrix_transpose moveaxis movedim nonzero outer permute "
    "permute_dims reshape rot90 swap_dims tensordot transpose".split()
)


class NamedTensor:
    """A tensor and a name for each of its axes. `tensor` is the tensor itself: unwrapped, it costs nothing.

    A method of Tensor takes names where it takes axes: `x.mean("time")`, `x.softmax("feature")`. Operators match axes
    by name, in any order, and repeat an operand along names that only the other has. Raises ShapeError, with both
    names, where lengths or names do not match.
    """

    __array_priority__ = 2000

    def __init__(self, tensor: Tensor, names: tuple[str, ...]) -> None:
        if len(names) != len(tensor.shape) or not all(isinstance(n, str) and n for n in names):
            raise ArgumentError(f"named: {len(tensor.shape)} axes need a name each, found {names}")
        if len(set(names)) != len(names):
            raise ArgumentError(f"named: each axis needs a name of its own, found {names}")
        self.tensor = tensor
        self.names = names

    @property
    def shape(self) -> dict[str, int]:
        """The length of each axis by name."""
        return dict(zip(self.names, self.tensor.shape, strict=True))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}: {length}" for n, length in self.shape.items())
        return f"NamedTensor({sizes}; {self.tensor!r})"

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __neg__(self) -> NamedTensor:
        return NamedTensor(-self.tensor, self.names)

    def __abs__(self) -> NamedTensor:
        return NamedTensor(abs(self.tensor), self.names)

    def axis(self, name: Any) -> Any:
        """The number of the axis called `name`, or of each of several. Raises ArgumentError."""
        if isinstance(name, (tuple, list)):
            return tuple(self.axis(n) for n in name)
        if not isinstance(name, str):
            return name
        if name not in self.names:
            near = import_module("emberlet.host.interface.elsewhere.names").nearest(name, self.names)
            raise ArgumentError(f"there is no axis {name!r}; the axes are {', '.join(self.names)}{near}")
        return self.names.index(name)

    def align(self, *names: str) -> NamedTensor:
        """The axes in the order of `names`, all of which must be there once."""
        if sorted(names) != sorted(self.names):
            raise ShapeError(f"align: the axes are {', '.join(self.names)}, found {', '.join(names)}")
        return NamedTensor(self.tensor.permute_dims(self.axis(names)), names)

    def rename(self, **names: str) -> NamedTensor:
        """Other names: `x.rename(time="step")`."""
        for old in names:
            self.axis(old)
        return NamedTensor(self.tensor, tuple(names.get(n, n) for n in self.names))

    def at(self, **keys: Any) -> NamedTensor:
        """The elements at an index or a slice of axes by name: `x.at(time=0)` leaves out the axis, `x.at(time=slice(0,
        2))` keeps it."""
        key = [slice(None)] * len(self.names)
        for name, value in keys.items():
            key[self.axis(name)] = value
        kept = tuple(n for n in self.names if not isinstance(keys.get(n), Integral))
        return NamedTensor(self.tensor[tuple(key)], kept)

    def dot(self, other: NamedTensor, over: str) -> NamedTensor:
        """The sum of products over the axis `over`, which both have; axes that both have too are matched, all others
        stay: those of self, then those of `other`."""
        both = [n for n in self.names if n in other.names]
        if over not in both:
            raise ShapeError(f"dot: {over!r} is no axis of both: {self.names} and {other.names}")
        self._matched(other, both)
        letters = dict(zip(dict.fromkeys(self.names + other.names), "abcdefghijklmnopqrstuvwxyz", strict=False))
        out = tuple(n for n in dict.fromkeys(self.names + other.names) if n != over)
        terms = ["".join(letters[n] for n in names) for names in (self.names, other.names, out)]
        einsum = import_module("emberlet.lookup").function("einsum")
        return NamedTensor(einsum(f"{terms[0]},{terms[1]}->{terms[2]}", self.tensor, other.tensor), out)

    def __matmul__(self, other: Any) -> NamedTensor:
        raise ArgumentError('@ does not say which axis is summed; write x.dot(y, over="name") with the axis of both')

    __rmatmul__ = __matmul__

    def __getitem__(self, key: Any) -> NamedTensor:
        raise ArgumentError(f"elements are taken by name; write x.at({self.names[0] if self.names else 'name'}=0)")

    def _matched(self, other: NamedTensor, names: list[str]) -> None:
        for n in names:
            if self.shape[n] != other.shape[n]:
                raise ShapeError(
                    f"axis {n!r} has {self.shape[n]} elements in ({', '.join(self.names)}) and {other.shape[n]} in "
                    f"({', '.join(other.names)})"
                )

    def _spread(self, names: tuple[str, ...]) -> Tensor:
        """The tensor with the axes `names`, of length 1 where self has none."""
        own = tuple(n for n in names if n in self.names)
        x = self.align(*own).tensor
        return x.reshape(tuple(self.shape.get(n, 1) for n in names))

    def _combined(self, other: Any, operator: str, swapped: bool) -> NamedTensor:
        if not isinstance(other, NamedTensor):
            if isinstance(other, Tensor) and other.shape:
                raise ShapeError(f"{operator}: a tensor {other.shape} has no names; write it.named(…)")
            pair = (other, self.tensor) if swapped else (self.tensor, other)
            return NamedTensor(_function(operator)(*pair), self.names)
        both = [n for n in self.names if n in other.names]
        if not both and self.names and other.names:
            raise ShapeError(f"{operator}: ({', '.join(self.names)}) and ({', '.join(other.names)}) share no axis")
        self._matched(other, both)
        names = tuple(dict.fromkeys(self.names + other.names))
        return NamedTensor(_function(operator)(self._spread(names), other._spread(names)), names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(self.tensor, name)
        if not callable(method):
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            taken = list(signature(method).parameters)
            kwargs = dict(zip(taken, args, strict=False)) | kwargs if len(args) <= len(taken) else kwargs
            kwargs = {k: self.axis(v) if k in ("axis", "axes") else self._plain(v) for k, v in kwargs.items()}
            axis = kwargs.get("axis")
            return self._named_again(method(**kwargs), axis, getattr(method, "__name__", name))

        return call

    def _plain(self, value: Any) -> Any:
        if isinstance(value, NamedTensor):
            return value._spread(self.names) if set(value.names) <= set(self.names) else value.align(*self.names).tensor
        several = isinstance(value, (tuple, list)) and bool(value) and all(isinstance(v, str) for v in value)
        return self.axis(value) if several or (isinstance(value, str) and value in self.names) else value

    def _named_again(self, found: Any, axis: Any, name: str) -> Any:
        """A result of the same rank keeps the names, if the method does not move axes; one of a lower rank has lost
        those of `axis`."""
        if isinstance(found, (tuple, list)):
            return type(found)([self._named_again(f, axis, name) for f in found])
        if not isinstance(found, Tensor):
            return found
        if len(found.shape) == len(self.names) and name not in _OTHER_AXES:
            return NamedTensor(found, self.names)
        gone = range(len(self.names)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        if name not in _OTHER_AXES and all(isinstance(a, int) for a in gone):
            lost = {a % len(self.names) for a in gone}
            kept = tuple(n for i, n in enumerate(self.names) if i not in lost)
            if len(kept) == len(found.shape):
                return NamedTensor(found, kept)
        raise EmberletError(f"{name}: the names of the result's axes are not known; write x.tensor.{name}(…).named(…)")


def _function(name: str) -> Any:
    return import_module("emberlet.lookup").function(name)


def _operator(name: str, swapped: bool) -> Any:
    def method(self: NamedTensor, other: Any) -> NamedTensor:
        return self._combined(other, name, swapped)

    return method


_ARITHMETIC = "add add sub subtract mul multiply truediv divide floordiv floor_divide mod remainder pow pow".split()
_COMPARISONS = "eq equal ne not_equal lt less le less_equal gt greater ge greater_equal".split()
for _words in (_ARITHMETIC, _COMPARISONS):
    for _i in range(0, len(_words), 2):
        setattr(NamedTensor, f"__{_words[_i]}__", _operator(_words[_i + 1], False))
        if _words is _ARITHMETIC:
            setattr(NamedTensor, f"__r{_words[_i]}__", _operator(_words[_i + 1], True))
NamedTensor.__hash__ = object.__hash__  # type: ignore[method-assign]


def named(x: Tensor, *names: str) -> NamedTensor:
    """The tensor with a name for each axis: `x.named("batch", "time", "feature")`."""
    return NamedTensor(x, names)
