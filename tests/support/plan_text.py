"""A plan of NumPy calls as a text that is the same on every machine: its steps, and the buffers that they work in."""

from __future__ import annotations

from typing import Any

import numpy as np
from emberlet.host.numpy_backend.compile.memory import address
from emberlet.host.numpy_backend.compile.open_sizes.plan import Number, OpenPlan, View, Whole
from emberlet.host.numpy_backend.compile.plan import Plan
from emberlet.tensor import Tensor

CODES = {"float32": "", "float64": "d", "float16": "h", "int32": "i", "int64": "l", "bool": "?", "uint8": "B"}


def plan_text(plan: Plan) -> str:
    """The results, a line for each step, and a line with the buffers: their bytes, offset, and first and last step."""
    written = _Text(plan)
    inputs = ", ".join(f"{i} in {written.of(a)}" for i, a in zip(plan.inputs, plan.input_arrays, strict=True))
    steps = [written.step(s) for s in plan.steps]
    results = ", ".join(map(written.of, plan.root_arrays))
    threads = f", {plan.threads} threads in {len(plan.phases)} phases" if plan.threads > 1 else ""
    lines = [f"inputs {inputs}; results {results}; order {plan.order}; {plan.nbytes} bytes{threads}", *steps]
    if plan.threads > 1:
        lines.append("phases " + "; ".join(" ".join(str(len(part)) for part in phase) for phase in plan.phases))
    return "\n".join([*lines, written.buffers()])


class _Text:
    def __init__(self, plan: Plan | OpenPlan) -> None:
        self.plan = plan
        self.numbers: dict[int, int] = {}
        self.found: list[Any] = []

    def buffers(self) -> str:
        said = []
        for b in self.found:
            fill = "" if b.fill is None else f" of {b.fill}"
            arena = f" part {b.arena}" if b.arena else ""
            said.append(f"{b.nbytes}{fill} at {b.offset} for {b.first}-{b.last}{arena}")
        return "buffers " + "; ".join(said)

    def step(self, step: Any) -> str:
        said = self.call(step.function, tuple(map(self.of, step.args)))
        writes = [self.of(a) for a in step.writes]
        if step.over is not None:
            return said if step.over is step.args[-1] is step.writes[0] else f"{said} over {self.of(step.over)}"
        return f"{said} writes {', '.join(writes)}"

    def call(self, function: Any, arguments: tuple[str, ...]) -> str:
        own = getattr(function, "__self__", None)
        name = getattr(function, "__name__", type(function).__name__)
        name = f"{own.__name__}.{name}" if isinstance(own, np.ufunc) else name
        return f"{name}({', '.join(arguments)})"

    def of(self, x: Any) -> str:
        """An argument: b0[2,3] is buffer 0 whole, b0+8[3]/24 a part of it with strides of bytes, =[3] a constant."""
        if isinstance(x, Tensor):
            return self.of(x.data)
        if isinstance(x, np.generic):
            return f"{x.item()!r}{CODES.get(x.dtype.name, x.dtype.name)}"
        if isinstance(x, (list, tuple)):
            return f"({', '.join(map(self.of, x))})"
        if not isinstance(x, np.ndarray):
            return getattr(x, "__name__", None) or str(x)
        code = CODES.get(x.dtype.name, x.dtype.name)
        shape = f"{code}[{','.join(map(str, x.shape))}]"
        strides = "" if x.flags.c_contiguous else "/" + ",".join(map(str, x.strides))
        buffer = self.plan._buffers.of(x)
        if buffer is None:
            return f"={x.item()!r}{code}" if x.size == 1 and not x.ndim else f"={shape}{strides}"
        if id(buffer) not in self.numbers:
            self.numbers[id(buffer)] = len(self.found)
            self.found.append(buffer)
        offset = address(x) - address(buffer.base)
        return f"b{self.numbers[id(buffer)]}{f'+{offset}' if offset else ''}{shape}{strides}"


def open_plan_text(plan: OpenPlan) -> str:
    """The calls with polynomials in the open lengths for what changes, the buffers, and what is made anew when."""
    numbers = plan._numbers
    names = ["".join(m) for m in numbers._monomials]

    def polynomial(number: int) -> str:
        found = [(c, n) for c, n in zip(numbers.coefficients[number].tolist(), names, strict=True) if c]
        return "+".join(n if c == 1 and n else f"{c}{n}" for c, n in found).replace("+-", "-") or "0"

    fixed = _Text(plan)

    def of(x: Any) -> str:
        if type(x) is View:
            start, *parts = [polynomial(n) for n in x.numbers]
            shape, strides = ",".join(parts[: x.rank]), ",".join(parts[x.rank :])
            memory = f"b{x.memory}" if type(x.memory) is int else f"={x.memory.size}"
            return f"v{x.place}:{memory}+{start}{CODES.get(x.kind.name, x.kind.name)}[{shape}]/{strides}"
        if type(x) is Number:
            return f"({polynomial(x.number)})"
        if type(x) is Whole:
            return f"<{', '.join(map(of, x.parts))}>"
        return f"({', '.join(map(of, x))})" if isinstance(x, (list, tuple)) else fixed.of(x)

    guards = [f"{size!r} {relation} 0 is {answer}" for size, relation, answer, _ in plan.scope.guards]
    atoms = [f"{i}: {polynomial(n)}" for i, n in plan._atoms]
    points = [" ".join(f"{k}={v}" for k, v in p.items()) for p in plan.points.numbers]
    head = f"inputs {plan.inputs} closed {plan.closed} at {'; '.join(points)}"
    head += f" where {'; '.join(guards)}" if guards else ""
    head += f" atoms {'; '.join(atoms)}" if atoms else ""
    calls = [fixed.call(f, tuple(map(of, a.parts)) if type(a) is Whole else tuple(map(of, a)))
             for f, a in zip(plan._functions, plan._arguments, strict=True)]  # fmt: skip
    buffers = []
    for buffer, shape in zip(plan._buffers.all, plan._sizes, strict=True):
        fill = "" if buffer.fill is None else f" of {buffer.fill}"
        buffers.append(f"[{','.join(map(polynomial, shape))}]{fill} {buffer.first}-{buffer.last}")
    views = f"given {', '.join(map(of, plan._given))}; results {', '.join(map(of, plan._results))}"
    changes = f"moving {[v.place for v in plan._moving]} changing {[i for i, _ in plan._changing]}"
    changes += f" bordered {plan._bordered} shapes {plan._shapes}"
    return "\n".join([head, *calls, views, "buffers " + "; ".join(buffers), changes])
