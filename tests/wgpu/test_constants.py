"""Operations on constants never reach WGSL's constant evaluation, and all give NumPy's results."""

from __future__ import annotations

import numpy as np
from emberlet import dtypes
from emberlet.backend import protocol
from emberlet.tensor import Tensor
from emberlet.wgpu_backend.plan.make import make_plan
from emberlet.wgpu_backend.record.node import Node
from emberlet.wgpu_backend.run.runtime import run_once
from support.rows import every

INF = float("inf")
FLOATS = [0.0, -0.0, 1.0, -1.0, -2.5, 0.3, 1.1754943508222875e-38, 3.4028234663852886e38, INF, -INF, float("nan")]
NARROW = [0.0, -1.0, 0.5, 300.0, 49152.0, INF, float("nan")]
EXTREMES = {
    "float32": FLOATS, "float16": NARROW, "bfloat16": NARROW, "bool": [True, False],
    "int32": [0, 1, -1, 7, -(1 << 31), (1 << 31) - 1], "uint32": [0, 1, 7, (1 << 32) - 1],
    "int8": [0, 1, -1, -128, 127],
    "uint8": [0, 1, 255], "int16": [0, -1, -(1 << 15), (1 << 15) - 1], "uint16": [0, 3, (1 << 16) - 1],
    "int64": [0, -1, 5, 9],
}  # fmt: skip
FLOAT_ONLY = {
    "sqrt", "exp", "expm1", "log", "log1p", "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "atan2",
}  # fmt: skip
INTEGER_ONLY = {"bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "bitwise_not"}
TOGETHER = 24  # results of one kernel


def _allowed(op, dtype):
    if dtype.is_bool:
        return op.startswith(("logical", "bitwise")) or op in ("eq", "ne", "maximum", "minimum")
    return not (op in INTEGER_ONLY and dtype.is_float) and not (op in FLOAT_ONLY and not dtype.is_float)


def _raw(backend, op, srcs, arg, dtype, shape):
    """A recorded node, without constant folding."""
    node = Node(op, tuple(s.data for s in srcs), arg, dtype, shape, backend.word(dtype))
    return Tensor(node, dtype, shape, backend)


DIVIDING = ("div", "floor_divide", "atan2")


def _divides_by_all(backend):
    """Whether the device divides correctly by numbers outside of 2^-126 to 2^126, which WGSL does not guarantee."""
    x, y = (backend.from_bytes(np.float32(FLOATS[7]).tobytes(), dtypes.float32, (1,)) for _ in range(2))
    return backend.to_list(backend.binary("div", x, y)) == [1.0]


def _cases(backend, dtype, host):
    """(what, tensor on wgpu, tensor on the host): each operation over each constant and over two, and over elements
    and a constant on either side."""
    if dtype is dtypes.float32 and not _divides_by_all(backend):
        yield from _cases_over(backend, dtype, host, [x for x in FLOATS if x not in FLOATS[6:8]], DIVIDING)
        others = [op for op in protocol.BINARY if op not in DIVIDING]
        yield from _cases_over(backend, dtype, host, FLOATS, others)
    else:
        yield from _cases_over(backend, dtype, host, EXTREMES[dtype.name], protocol.BINARY)


def _cases_over(backend, dtype, host, numbers, binary):
    n = len(numbers)

    def both(x):
        return backend.from_bytes(host.to_bytes(x), x.dtype, x.shape), x

    loaded, elements = both(host.from_list(numbers, dtype, (n,)))
    wanted = [(v, host.full((1,), v, dtype), _raw(backend, "full", (), v, dtype, (1,))) for v in numbers]
    for op in protocol.UNARY:
        result = dtypes.bool if op in protocol.BOOLEAN_RESULT else dtype
        for v, own, x in wanted if _allowed(op, dtype) else ():
            yield f"{op} {v}", _raw(backend, "unary", (x,), op, result, (1,)), host.unary(op, own)
    for op in binary:
        result = dtypes.bool if op in protocol.BOOLEAN_RESULT else dtype
        for v, own, x in wanted if _allowed(op, dtype) else ():
            yield f"x {op} {v}", _raw(backend, "binary", (loaded, x), op, result, (n,)), host.binary(op, elements, own)
            yield f"{v} {op} x", _raw(backend, "binary", (x, loaded), op, result, (n,)), host.binary(op, own, elements)
            for w, other, y in wanted[:: 3 if n > 6 else 2]:
                folded = _raw(backend, "binary", (x, y), op, result, (1,))
                yield f"{v} {op} {w}", folded, host.binary(op, own, other)
    for name in EXTREMES:
        target = dtypes.dtype(name)
        for v, own, x in wanted if target is not dtype else ():
            if target.is_integer and dtype.is_float and not np.all(np.isfinite(np.asarray(own, dtype=float))):
                continue
            if target.bits == 64 or (target.is_float and dtype.bits == 64):
                continue
            yield f"{v} as {name}", _raw(backend, "cast", (x,), True, target, (1,)), host.cast(own, target, True)


def _rtol(dtype):
    return {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype.name, 2e-5)


@every("name", EXTREMES, share=3)
def test_every_operation_compiles_over_constants_and_gives_its_value(gpu, make, name):
    groups = {}
    with np.errstate(all="ignore"):
        for case in _cases(gpu, dtypes.dtype(name), make.cpu):
            groups.setdefault(case[1].dtype, []).append(case)
    wrong = []
    for dtype, cases in groups.items():
        for at in range(0, len(cases), TOGETHER):
            some = cases[at : at + TOGETHER]
            size = sum(x.size for _, x, _ in some)
            whole = _raw(gpu, "concat", [x for _, x, _ in some], 0, dtype, (size,))
            plan, externals = make_plan([whole.data], gpu.options)
            assert not [n for n in externals if n.op == "numbers"]
            (out,) = run_once(gpu.device, plan, [gpu.upload(n) for n in externals])
            whole.data.become_buffer(out)
            found = np.array(gpu.to_list(whole), dtype=float if dtype.is_float else object)
            begin = 0
            for what, x, want in some:
                got = found[begin : begin + x.size]
                begin += x.size
                expected = np.array(make.cpu.to_list(want), dtype=got.dtype)
                if dtype.is_float:
                    near = np.isclose(got, expected, rtol=_rtol(dtype), atol=1e-37, equal_nan=True)
                else:
                    near = got == expected
                if not np.all(near):
                    wrong.append(f"{what}: {got.tolist()}, NumPy has {expected.tolist()}")
    assert not wrong, "\n".join([f"{len(wrong)} differ", *wrong])
