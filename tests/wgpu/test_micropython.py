"""The engine plans the same kernels under MicroPython as under CPython."""

from __future__ import annotations

import contextlib
import io
import json

SCRIPT = """
import json

from emberlet import dtypes
from emberlet import functional as F
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.kernels.table import Options
from emberlet.wgpu_backend.plan.make import make_plan

k = WgpuBackend(planning=True)


def zeros(shape, dtype=dtypes.float32):
    n = 1
    for d in shape:
        n *= d
    return k.from_bytes(bytes(dtype.itemsize * n), dtype, shape)


def network(x, w, b, dense):
    y = k.conv(x, w, b, (1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    y = k.pool("max", k.binary("maximum", y, k.full((), 0, dtypes.float32)), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1))
    y = k.matmul(k.reshape(y, (2, 64)), dense)
    e = k.unary("exp", k.binary("sub", y, k.reduce("max", y, (1,), True)))
    return k.binary("div", e, k.reduce("sum", e, (1,), True))


x = zeros((2, 3, 8, 8))
first = network(x, zeros((4, 3, 3, 3)), zeros((4,)), zeros((64, 10)))
order = k.sort(zeros((3, 2000), dtypes.int32), 1, True)[1]
scattered = k.scatter(zeros((5, 6)), zeros((2, 6), dtypes.int64), zeros((2, 6)), 0, "add")
moved = k.permute(k.slice(x, (0, 0, 7, 0), (2, 3, 4, 8), (1, 1, -2, 1)), (0, 2, 1, 3))
moved = k.concat([moved, zeros((2, 4, 1, 8))], 2)
heads = zeros((1, 2, 32, 8))
attended = k.dot_product_attention(heads, heads, heads, None, 0.35, 0.0, False, None)
large = k.matmul(zeros((128, 96)), zeros((96, 132)))
narrow = k.cast(k.binary("mul", zeros((9,), dtypes.int8), zeros((9,), dtypes.int8)), dtypes.float16)
wide = k.binary("add", zeros((200, 100)), k.unary("erf", zeros((100,))))
roots = [t.data for t in (first, order, scattered, moved, attended, large, narrow, wide, k.cumulative("sum", x, 3))]
plan = make_plan(roots, Options("DEVICE"))[0]
steps = [[s.kernel, s.buffers, s.groups] for s in plan.steps]
print(json.dumps([plan.kernels, steps, [b.nbytes for b in plan.buffers]]))
"""


def _here(script):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(script, {})
    return json.loads(printed.getvalue())


def test_plans_are_the_same(unix_port):
    for device in ("cpu", "gpu"):
        script = SCRIPT.replace("DEVICE", device)
        there = json.loads(unix_port.run(script, heap="32M").check().stdout)
        here = _here(script)
        assert [name for name, _ in there[0]] == [name for name, _ in here[0]]
        for (name, mine), (_, theirs) in zip(here[0], there[0], strict=True):
            assert theirs == mine, name
        assert there[1:] == here[1:]
