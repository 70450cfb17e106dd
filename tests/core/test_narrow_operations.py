"""Every primitive on every narrow dtype: python and numpy give the same results."""

from __future__ import annotations

import emberlet
import numpy as np
from emberlet import dtypes
from emberlet import functional as F
from support.backends import NAMES
from support.rows import every

NARROW = [d.name for d in dtypes.ALL if d.kind != "string" and (d.bits < 8 or (d.is_float and d.bits <= 16))]

OPERATIONS = {
    "where": lambda x, y, i: emberlet.where(i > 0, x, y),
    "pad": lambda x, y, i: F.pad(x, [(1, 0), (0, 2)], 1),
    "concat": lambda x, y, i: emberlet.concat([x, y], axis=1),
    "take": lambda x, y, i: emberlet.take(x, i[0], axis=0),
    "gather": lambda x, y, i: x.gather(0, i),
    "assign": lambda x, y, i: x.scatter(0, i, y, "none"),
    "scatter add": lambda x, y, i: x.scatter(0, i, y, "add"),
    "scatter max": lambda x, y, i: x.scatter(0, i, y, "max"),
    "sort": lambda x, y, i: emberlet.sort(x, axis=1),
    "argsort": lambda x, y, i: emberlet.argsort(x, axis=1, descending=True),
    "max": lambda x, y, i: emberlet.max(x, axis=0),
    "argmin": lambda x, y, i: emberlet.argmin(x, axis=1),
    "running maximum": lambda x, y, i: x.cummax(1),
    "nonzero": lambda x, y, i: emberlet.nonzero(x)[0],
    "compare": lambda x, y, i: x <= y,
    "add": lambda x, y, i: x + y,
    "multiply": lambda x, y, i: x * y,
    "maximum": lambda x, y, i: emberlet.maximum(x, y),
    "scalar": lambda x, y, i: x + 1,
    "any": lambda x, y, i: emberlet.any(x),
    "transpose": lambda x, y, i: x.mT[::-1],
    "expand": lambda x, y, i: emberlet.broadcast_to(x[:1], (4, 3)),
    "item": lambda x, y, i: emberlet.asarray(x[0, 0].item()),
    "bytes": lambda x, y, i: x.to_data().to_tensor("python"),
    "unique": lambda x, y, i: emberlet.unique_values(x),
    "pool": lambda x, y, i: F.max_pool1d(x[None], 2),
    "matmul": lambda x, y, i: x @ y.mT,
    "print": lambda x, y, i: emberlet.asarray([repr(x).split("dtype")[0]]),
}


@every("operation", OPERATIONS)
@every("dtype", NARROW)
def test_backends_agree(dtype, operation):
    numbers = [[1, 0, 1], [0, 1, 1]] if dtype == "int2" else [[1, 2, 3], [0, 2, 1]]
    other = [[0, 1, 0], [1, 0, -1]] if dtype == "int2" else [[2, 1, 1], [3, 0, 2]]
    if dtype == "float8_e8m0fnu":
        numbers, other = [[1, 2, 4], [8, 2, 1]], [[2, 1, 1], [4, 8, 2]]
    results = []
    for name in NAMES:
        x = emberlet.asarray(numbers, backend=name).astype(dtype)
        y = emberlet.asarray(other, backend=name).astype(dtype)
        i = emberlet.asarray([[0, 1, 1], [1, 0, 0]], backend=name)
        out = OPERATIONS[operation](x, y, i)
        results.append((out.dtype.name, out.shape, out.backend.to_list(out)))
    for other_result in results[1:]:
        assert other_result[:2] == results[0][:2]
        if results[0][0] == "string":
            assert other_result[2] == results[0][2]
        else:
            np.testing.assert_array_equal(other_result[2], results[0][2])
