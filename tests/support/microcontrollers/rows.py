"""Results of models of one row: onnxruntime's, and those of a built module."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from emberlet.micro.builder.build import BuildResult
from emberlet.micro.builder.kernels.trees import MIDDLE

Array = npt.NDArray[Any]


def row_by_row(data: bytes, x: Array) -> list[Array]:
    """onnxruntime's outputs, computed one row at a time, since it sums the trees of many rows in another order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    rows = [session.run(None, {name: row[None]}) for row in x]
    return [np.concatenate([np.asarray(row[k]) for row in rows]) for k in range(len(rows[0]))]


def scores_of(result: BuildResult, x: Array) -> Array:
    """The scores as the built module computes them, before a transform."""
    graph, port = result.graph, result.program.inputs[0]
    source, target = graph.inputs[0], graph.outputs[0]
    if not graph.sums:
        return np.array([graph.run({source: row})[target].reshape(-1) for row in x])
    assert port.cuts is not None
    wide, sums, found = port.size > len(port.cuts), graph.sums[target], []
    nan, copies = port.nan
    for row in x:
        slots = zip(port.cuts, nan, [*row, *(row[k] for k in copies)], strict=True)
        ranks = [r if np.isnan(v) else bisect_left(cuts, float(v)) for cuts, r, v in slots]
        given = [b for r in ranks for b in ((r & 255, r >> 8) if wide else (r,))]
        words = graph.run({source: np.array(given, np.uint8)})[target].view("<u4")
        found.append((words.astype(np.int64) - MIDDLE) * sums.step)
    return np.array(found)
