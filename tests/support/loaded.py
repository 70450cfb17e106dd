"""Models on several backends, whose module is generated once: it is the same for all of them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from emberlet.codegen import weights
from emberlet.codegen.emit.instance import instantiate
from emberlet.codegen.emit.module import Written
from emberlet.codegen.generation import translate


@lru_cache(4)
def _written(path: Path, changed: int, flat: bool) -> Written:
    return translate(str(path), flat=flat)[1]


def loaded(path: Path, backend: str, *, flat: bool = False) -> Any:
    """As `codegen.load` of a file."""
    written = _written(path, path.stat().st_mtime_ns, flat)
    model = instantiate(written, path.stem, backend)
    model.load_record(weights.tensors(written.record, backend), layout="burn")
    return model
