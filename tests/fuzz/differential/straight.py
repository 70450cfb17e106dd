"""Straight-line programs over the functional layer: drawn, run and printed as the same few lines of Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import emberlet
import numpy as np
from emberlet import dtypes
from emberlet import functional as F


class Wide:
    """The module dtypes, with float64 in the place of every float."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(dtypes, name)
        return dtypes.float64 if found.is_float else found


class Input(NamedTuple):
    """An argument: its name and its elements."""

    name: str
    array: np.ndarray[Any, Any]

    def text(self) -> str:
        a = self.array
        shape = f".reshape({a.shape})" if a.ndim != 1 else ""
        return f'{self.name} = np.array({a.reshape(-1).tolist()}, "{a.dtype.name}"){shape}'.replace("nan", "np.nan")


class Line(NamedTuple):
    """`name = text`, which reads the values `uses`. The text sees F (the functional layer), D (the dtypes)
    and B (the backend of the inputs)."""

    name: str
    text: str
    uses: tuple[str, ...]


class Program(NamedTuple):
    """A function of inputs to values. variant: how the GPU runs it, for a kind to interpret."""

    inputs: tuple[Input, ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]
    variant: Any = None

    def body(self, watched: bool = False) -> str:
        names = ", ".join(i.name for i in self.inputs)
        texts = [f'W("{line.name}", {line.text})' if watched else line.text for line in self.lines]
        lines = [f"    {line.name} = {text}\n" for line, text in zip(self.lines, texts, strict=True)]
        first = f"    B = {self.inputs[0].name}.backend\n"
        return f"def program({names}):\n{first}{''.join(lines)}    return {', '.join(self.outputs)},\n"

    def function(
        self, *, wide: bool = False, watch: Callable[[str, Any], Any] | None = None
    ) -> Callable[..., tuple[Any, ...]]:
        """The program as a function of tensors; wide: with float64 for every float it names; watch: the value to use
        for a line, given its name and value."""
        names: dict[str, Any] = {"F": F, "D": Wide() if wide else dtypes, "W": watch}
        exec(compile(self.body(watch is not None), "<program>", "exec"), names)
        found: Callable[..., tuple[Any, ...]] = names["program"]
        return found

    def tensors(self, backend: Any) -> list[Any]:
        return [emberlet.asarray(i.array, backend=backend) for i in self.inputs]

    def widened(self) -> list[Any]:
        arrays = [i.array.astype(np.float64) if i.array.dtype.kind == "f" else i.array for i in self.inputs]
        return [emberlet.asarray(a, backend="numpy") for a in arrays]

    def text(self) -> str:
        """The program as a Python file that prints NumPy's results; a kind adds the difference."""
        head = "import numpy as np\nimport emberlet\nfrom emberlet import dtypes as D, functional as F\n\n\n"
        inputs = "".join(i.text() + "\n" for i in self.inputs)
        return f"{head}{self.body()}\n\n{inputs}"

    def simpler(self) -> Iterable[Program]:
        """Fewer outputs; a line left out for one of its operands, or taken as an input; fewer elements of no use."""
        for line in self.lines:  # from the front: the boldest cut comes first
            if (line.name,) != self.outputs and self.outputs:
                yield self._pruned(outputs=(line.name,))
        for at in range(len(self.lines) - 1, -1, -1):
            for name in self.lines[at].uses:
                yield self._without(at, name)
        values = self._values()
        for at in range(len(self.lines) - 1, -1, -1):
            if values is not None and self.lines[at].uses and values[self.lines[at].name] is not None:
                yield self._given(at, values[self.lines[at].name])
        for at, given in enumerate(self.inputs):
            for new in _plainer(given.array):
                inputs = (*self.inputs[:at], Input(given.name, new), *self.inputs[at + 1 :])
                yield self._replace(inputs=inputs)

    def _values(self) -> dict[str, Any] | None:
        everything = self._replace(outputs=tuple(line.name for line in self.lines))
        try:
            found = everything.function()(*self.tensors("numpy"))
        except Exception:
            return None
        out = {}
        for line, x in zip(self.lines, found, strict=True):
            array = np.asarray(x)
            out[line.name] = array if array.dtype.kind in "fiub" and array.dtype.name in dtypes.BY_NAME else None
        return out

    def _without(self, at: int, name: str) -> Program:
        dropped = self.lines[at]
        lines = list(self.lines[:at])
        for line in self.lines[at + 1 :]:
            uses = tuple(name if u == dropped.name else u for u in line.uses)
            lines.append(Line(line.name, re.sub(rf"\b{dropped.name}\b", name, line.text), uses))
        outputs = tuple(name if o == dropped.name else o for o in self.outputs)
        return self._replace(lines=tuple(lines))._pruned(outputs=tuple(dict.fromkeys(outputs)))

    def _given(self, at: int, array: Any) -> Program:
        inputs = (*self.inputs, Input(self.lines[at].name, array))
        return self._replace(inputs=inputs, lines=self.lines[:at] + self.lines[at + 1 :])._pruned(self.outputs)

    def _pruned(self, outputs: tuple[str, ...]) -> Program:
        """Only the lines that the outputs need."""
        needed = set(outputs)
        lines = []
        for line in reversed(self.lines):
            if line.name in needed:
                needed.update(line.uses)
                lines.append(line)
        inputs = tuple(i for i in self.inputs if i.name in needed) or self.inputs[:1]
        return self._replace(inputs=inputs, lines=tuple(reversed(lines)), outputs=outputs)


def _plainer(array: np.ndarray[Any, Any]) -> Iterable[np.ndarray[Any, Any]]:
    """The same shape with counted elements, which show where each went."""
    if array.size and array.dtype.kind in "iuf":
        counted = (np.arange(array.size) % 100).reshape(array.shape).astype(array.dtype)
        if not np.array_equal(counted, array):
            yield counted


EPSILON = {"float64": 2.3e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}


def moved(case: Program) -> list[float]:
    """How far each output in float64 moves if every value that NumPy rounds is off by one unit in the last place."""
    every = case._replace(outputs=tuple(line.name for line in case.lines))
    values = dict(zip(every.outputs, every.function()(*case.tensors("numpy")), strict=True))
    exact = dict(zip(every.outputs, every.function(wide=True)(*case.widened()), strict=True))
    draw = np.random.default_rng(1)

    def shake(name: str, x: Any) -> Any:
        precision = EPSILON.get(values[name].dtype.name)
        if precision is None or np.array_equal(np.asarray(values[name]), np.asarray(exact[name]), equal_nan=True):
            return x
        numbers = np.asarray(x, dtype=np.float64)
        moved = numbers * (1 + precision * draw.choice([-1.0, 1.0], numbers.shape))
        return emberlet.asarray(moved, backend="numpy")

    shaken = case.function(wide=True, watch=shake)(*case.widened())
    out = []
    for name, x in zip(case.outputs, shaken, strict=True):
        a, b = np.asarray(x), np.asarray(exact.get(name, x))  # an output may be an input
        if a.dtype.kind != "f" or a.shape != b.shape:
            out.append(0.0)
            continue
        both = np.isfinite(a) & np.isfinite(b)
        out.append(float(np.abs(a - b)[both].max(initial=0.0)))
    return out
