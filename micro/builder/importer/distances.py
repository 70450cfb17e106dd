"""The loop that skl2onnx writes for distances from constant rows: nearest neighbors, Gaussian processes."""

from __future__ import annotations

import numpy as np
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops import elementwise as e
from emberlet.codegen.ops.arithmetic import Pow, Sub
from emberlet.codegen.ops.control import Scan
from emberlet.codegen.ops.movement import Identity
from emberlet.codegen.ops.reduction import ReduceSum, ReduceSumSquare

from ..functions import Chain
from ..kernels.distance import DistanceFloat
from ..kernels.elementwise import MapFloat
from .state import Importer
from .table import translates
from .values import numpy_of

OTHER = "only loops over the distances from constant rows are supported, as skl2onnx writes them"

SQUARE: Chain = (("pow", (2.0,)),)


@translates(Scan)
def distances(t: Importer, node: Scan) -> None:
    c, rows = node.config, node.value(1) if len(node.inputs) == 2 else None
    plain = c.num_scan_inputs == 1 and not c.batched and not any((*c.input_axes, *c.input_reverse))
    if rows is None or not plain or len(node.outputs) != 2 or any((*c.output_axes, *c.output_reverse)):
        raise Problem(OTHER)
    held = t.of(node.inputs[0])
    table = numpy_of(rows)
    if table.ndim != 2 or held.dims != (1, table.shape[1]):
        raise Problem(f"the rows have shapes {held.dims} and {table.shape}; one row beside several is supported")
    apart, after = _chains(node)
    held = t.shaped(held, (table.shape[1],))
    out = t.define(node.outputs[1], (0, 1))
    name = t.layout.part_of(out, "sums") if after else out.name
    t.add(DistanceFloat(node.name, (held.name,), name, table.astype(np.float32), apart))
    if after:
        t.add(MapFloat(f"{node.name} root", (name,), out.name, t.layout.shapes[out.name], after))
    if node.outputs[0].name in t.outputs.read:
        t.layout.held[node.outputs[0].name] = t.of(node.inputs[0])


def _chains(node: Scan) -> tuple[Chain, Chain]:
    """The function of each difference, and that of their sum. Raises Problem for another loop."""
    body = node.config.body
    state, row = (a.name for a in body.inputs)
    now, apart, after, is_sum = "", list[tuple[str, tuple[float, ...]]](), list[tuple[str, tuple[float, ...]]](), False
    same = {state}
    for n in body.nodes:
        name, out = n.inputs[0].name, n.outputs[0].name
        if isinstance(n, Identity) and name in same:
            same.add(out)
        elif isinstance(n, Sub) and not now and {n.inputs[0].name, n.inputs[1].name} == {state, row}:
            now = out
            if name == row:
                apart.append(("affine", (-1.0, 0.0)))
        elif name != now or not now:
            raise Problem(OTHER)
        elif isinstance(n, ReduceSum | ReduceSumSquare) and not is_sum and (n.axes() or ()) == (1,):
            apart += SQUARE if isinstance(n, ReduceSumSquare) else ()
            now, is_sum = out, True
        elif isinstance(n, e.Abs | e.Sqrt | Pow | Identity):
            chain = after if is_sum else apart
            if isinstance(n, Pow):
                power = n.value(1)
                if power is None or power.size != 1:
                    raise Problem(OTHER)
                chain.append(("pow", (float(numpy_of(power).reshape(-1)[0]),)))
            elif not isinstance(n, Identity):
                chain.append(("abs" if isinstance(n, e.Abs) else "sqrt", ()))
            now = out
        else:
            raise Problem(OTHER)
    first, last = (a.name for a in body.outputs)
    if first not in same or last != now or not is_sum:
        raise Problem(OTHER)
    return tuple(apart), tuple(after)
