"""How much memory one row of an Arrow table takes as Python's objects.

Rows may share what is stored once: views of lists and texts, dictionaries and runs name the same values again and
again, and lists of nulls take no bytes. So a row can be a million times as large as its file.
The layouts: https://arrow.apache.org/docs/format/Columnar.html.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Costs = float | NDArray[np.float64]  # of all elements, or of each

SLOT, OBJECT = 8, 48  # bytes of a place in a list, and of a number, a list or the head of a text, about


def largest_row(table: Any) -> float:
    """The bytes of the largest row as a dict of Python's objects, about, and not too few."""
    columns = [c for c in table.columns if not pa.types.is_primitive(c.type)]
    return sum(max((most(costs(chunk)) for chunk in column.chunks if len(chunk)), default=0.0) for column in columns)


def most(found: Costs) -> float:
    return float(np.max(found, initial=SLOT))


def costs(x: Any) -> Costs:
    """The bytes of the elements of an Arrow array. Memory and time are in proportion to its buffers."""
    kind = x.type
    if isinstance(kind, pa.BaseExtensionType):
        return costs(x.storage)
    if pa.types.is_null(kind):
        return SLOT
    if pa.types.is_dictionary(kind):
        inner = costs(x.dictionary)
        if isinstance(inner, float | int) or not len(inner):
            return most(inner)
        return inner[x.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    if pa.types.is_run_end_encoded(kind):
        return most(costs(x.values))
    if pa.types.is_union(kind):
        return max((most(costs(x.field(i))) for i in range(kind.num_fields)), default=SLOT)
    if pa.types.is_struct(kind):
        return reduce(add, (costs(x.field(i)) + SLOT for i in range(kind.num_fields)), float(OBJECT))
    if pa.types.is_fixed_size_list(kind):
        return _of_fixed(x, kind.list_size)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return _of_ranges(x.values, x.offsets.to_numpy(), x.sizes.to_numpy())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        offsets = x.offsets.to_numpy()
        return _of_ranges(x.values, offsets[:-1], np.diff(offsets))
    return _of_bytes(x)


def _of_bytes(x: Any) -> Costs:
    """Of an array without elements that are arrays."""
    kind = x.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        views = np.frombuffer(x.buffers()[1] or b"", np.int32).reshape(-1, 4)[x.offset : x.offset + len(x)]
        return np.maximum(views[:, 0], 0) + float(OBJECT + SLOT)
    if pa.types.is_fixed_size_binary(kind):
        return float(OBJECT + SLOT + kind.byte_width)
    if kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
        return pc.binary_length(x).fill_null(0).to_numpy(zero_copy_only=False) + float(OBJECT + SLOT)
    return OBJECT + SLOT


def _of_fixed(x: Any, size: int) -> Costs:
    inner = costs(x.values)
    if isinstance(inner, float | int) or not size:
        return OBJECT + SLOT + size * most(inner)
    return inner[x.offset * size : (x.offset + len(x)) * size].reshape(len(x), size).sum(1) + (OBJECT + SLOT)


def _of_ranges(values: Any, starts: NDArray[Any], sizes: NDArray[Any]) -> Costs:
    """Of lists that begin at these elements of their values."""
    inner = costs(values)
    if isinstance(inner, float | int):
        return sizes * float(inner) + (OBJECT + SLOT)
    ends = np.concatenate([[0.0], np.cumsum(inner)])
    return ends[starts + sizes] - ends[starts] + (OBJECT + SLOT)
