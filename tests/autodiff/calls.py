"""The calls of tests/core/calls as functions of their tensors, so that gradients of every function can be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import emberlet
from emberlet import functional as F
from emberlet.backend import set_default_backend
from support import neighboring_calls
from support.neighboring_calls import SCOPE

FOLDER = Path(__file__).parents[1] / "core" / "calls"
TOPICS = sorted(p.stem for p in FOLDER.glob("*.txt"))


def rows(topic: str) -> Iterator[str]:
    """The calls of a topic."""
    for line in (FOLDER / f"{topic}.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def as_function(text: str, float_dtype: str) -> tuple[Callable[..., Any], list[Any]]:
    """(f, arguments) for a call: f(*arguments) computes it with these in place of its tensors, in order. Tensors of
    float32 become tensors of float_dtype."""
    made: list[Any] = []

    def record(name: str) -> Callable[..., Any]:
        maker = getattr(neighboring_calls, name)

        def make(*args: Any, **kwargs: Any) -> Any:
            x = maker(*args, **kwargs)
            made.append(x.astype(float_dtype) if str(x.dtype) == "float32" else x)
            return made[-1]

        return make

    F.manual_seed(0)
    eval(text, {**SCOPE, **{name: record(name) for name in "XPV"}})

    def call(*inputs: Any) -> Any:
        left = iter(inputs)

        def take(*args: Any, **kwargs: Any) -> Any:
            return next(left)

        before = emberlet.get_backend()
        set_default_backend(inputs[0].backend if inputs else before)
        try:
            F.manual_seed(0)
            return _tensors(eval(text, {**SCOPE, **dict.fromkeys("XPV", take)}))
        finally:
            set_default_backend(before)

    return call, made


def _tensors(found: Any) -> Any:
    """The tensors of a result."""
    if isinstance(found, emberlet.Tensor):
        return [found]
    if isinstance(found, (list, tuple)):
        return [x for part in found for x in _tensors(part)]
    if isinstance(found, dict):
        return [x for part in found.values() for x in _tensors(part)]
    return []
