"""A plan of NumPy calls as a text that is the same on every machine: its steps, and the buffers that they work in."""

from __future__ import annotations

from typing import Any

import numpy as np
from emberlet.host.numpy_backend.compile.memory import address
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
    def __init__(self, plan: Plan) -> None:
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
        own = getattr(step.function, "__self__", None)
        name = getattr(step.function, "__name__", type(step.function).__name__)
        name = f"{own.__name__}.{name}" if isinstance(own, np.ufunc) else name
        said = f"{name}({', '.join(map(self.of, step.args))})"
        writes = [self.of(a) for a in step.writes]
        if step.over is not None:
            return said if step.over is step.args[-1] is step.writes[0] else f"{said} over {self.of(step.over)}"
        return f"{said} writes {', '.join(writes)}"

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
