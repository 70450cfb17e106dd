"""`x[key] = value` on a desktop: one assignment at a time, in place if no other tensor shares the elements.

Otherwise x gets new elements, and the tensors that share the old ones keep them (docs/tensors.md, "What is shared").
Reference counts show whether the elements are shared.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from ..functional.indexing.selection import _region
from ..lookup import function
from ..python_backend import PythonBackend
from ..python_backend.scattering import assign_region, write_region
from .counts import COUNTS
from .sharing.fields import replace_data

_lock = threading.RLock()  # no update of concurrent writers is lost


def assign(x: Any, key: Any, value: Any) -> None:
    """x[key] = value."""
    with _lock:
        backend = x.backend
        quick = getattr(backend, "assign_in_place", None)
        if quick is not None and quick(x, key, value):
            return
        write = _write_buffer if isinstance(backend, PythonBackend) else getattr(backend, "write_region", None)
        if write is not None:
            region = _region(x, key, value)
            if region and write(x, *region):
                return
        replace_data(x, function("assigned")(x, key, value).data)


def _references(holder: Any) -> tuple[int, int]:
    """The reference counts of a tensor's (buffer, offset, strides) and of the buffer."""
    data = holder.data
    return sys.getrefcount(data), sys.getrefcount(data[0])


class _Alone:
    def __init__(self) -> None:
        self.data = ([0.0], 0, None)


_UNSHARED = _references(_Alone()) if COUNTS else (0, 0)


def _write_buffer(x: Any, starts: Any, sizes: Any, steps: Any, value: Any) -> bool:
    """`write_region` of the python backend, into a copy if the buffer is shared."""
    buffer, offset, strides = x.data
    whole = not offset and strides is None and len(buffer) == x.size and not isinstance(buffer, memoryview)
    del buffer  # or it would be counted
    if COUNTS and whole and _references(x) == _UNSHARED and hasattr(x.data[0], "append"):
        write_region(x.data[0], x.shape, starts, sizes, steps, value)
    else:
        replace_data(x, assign_region(x.backend, x, starts, sizes, steps, value).data)
    return True
