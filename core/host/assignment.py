"""`x[key] = value` on a desktop: one assignment at a time, and in place where nobody else has the elements.

Otherwise x gets new elements and whoever shares the old ones keeps them (docs/tensors.md, "What is shared").
"""

from __future__ import annotations

import threading
from typing import Any

from ..lookup import function

_lock = threading.RLock()  # two writers at once: neither loses its update


def assign(x: Any, key: Any, value: Any) -> None:
    """x[key] = value."""
    with _lock:
        in_place = getattr(x.backend, "assign_in_place", None)
        if in_place is None or not in_place(x, key, value):
            function("setitem")(x, key, value)
