"""The ways of running a model that `emberlet verify` compares, beside one eager call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ....errors import EmberletError
from ....tensor import Tensor
from .. import model as models
from ..results import parts

NAMES = ("eager", "compiled", "threads", "onnxruntime")
DRAWS = 3  # different inputs, in turn
Inputs = dict[str, Tensor]
Outputs = dict[str, Any]
Compare = Callable[[Any, Any], dict[str, Any]]


def chosen(text: str) -> tuple[str, ...]:
    """The ways that --ways names. Raises EmberletError for others."""
    names = NAMES if text == "all" else tuple(name for name in text.split(",") if name)
    if unknown := [name for name in names if name not in NAMES]:
        raise EmberletError(f"--ways: there is no way {unknown[0]!r}; there are {', '.join(NAMES)}, all")
    return names


def rows(
    path: str,
    names: Sequence[str],
    loaded: models.Loaded,
    draws: Sequence[Inputs],
    reference: Callable[[Inputs], Outputs],
    to_numpy: Callable[[Tensor], Any],
    compare: Compare,
) -> list[dict[str, Any]]:
    """A row for each way: whether all calls agree with the reference, and what is to be said."""
    wanted = [reference(inputs) for inputs in draws]
    out = []
    for name in names:
        run, note = _way(name, path, loaded, to_numpy)
        if run is None:
            out.append({"way": name, "within": True, "note": note})
            continue
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "[^ ]* has no plan")  # the row says so
                found = _together(run, draws) if name == "threads" else [run(inputs) for inputs in draws]
        except EmberletError as error:
            out.append({"way": name, "within": False, "note": f"{type(error).__name__}: {error}"})
            continue
        out.append({"way": name, **_judged(found, wanted, compare), "calls": len(found)})
        out[-1]["note"] = f"{out[-1]['note']}{_uncompiled(run)}"
    return out


def _judged(found: Sequence[Outputs], wanted: Sequence[Outputs], compare: Compare) -> dict[str, Any]:
    for number, (got, want) in enumerate(zip(found, wanted, strict=True)):
        if list(got) != list(want):
            return {"within": False, "note": f"call {number + 1} returns {', '.join(got)}, expected {', '.join(want)}"}
        for output, expected in want.items():
            said = compare(got[output], expected)
            if not said["within"]:
                return {"within": False, "note": f"call {number + 1}, {output}: {said['note']}"}
    return {"within": True, "note": f"{len(found)} calls with different inputs agree"}


class _Run:
    """A way as a function of inputs. model: what it calls."""

    def __init__(self, loaded: models.Loaded, to_numpy: Callable[[Tensor], Any]) -> None:
        self.loaded = loaded
        self.to_numpy = to_numpy

    def __call__(self, inputs: Inputs) -> Outputs:
        return {name: self.to_numpy(x) for name, x in self.loaded(inputs).items()}


def _way(
    name: str, path: str, loaded: models.Loaded, to_numpy: Callable[[Tensor], Any]
) -> tuple[Callable[[Inputs], Outputs] | None, str]:
    """The function of a way; None and why where there is none."""
    if name == "eager":
        return _Run(loaded, to_numpy), ""
    if name == "onnxruntime":
        return _front(path, loaded, to_numpy)
    fast = loaded.compiled_anywhere()
    if fast is loaded:
        return None, "this backend does not compile models"
    return _Run(fast, to_numpy), ""


def _front(
    path: str, loaded: models.Loaded, to_numpy: Callable[[Tensor], Any]
) -> tuple[Callable[[Inputs], Outputs] | None, str]:
    """`emberlet.onnxruntime` on the CPU."""
    import numpy as np
    from emberlet.onnxruntime import InferenceSession

    backend = loaded.backend()
    if backend is None or backend.name != "numpy" or loaded.frozen:
        return None, "left out: it runs on numpy, and without --freeze"
    session = InferenceSession(path, providers=["CPUExecutionProvider"])

    def run(inputs: Inputs) -> Outputs:
        found = session.run(None, {name: to_numpy(x) for name, x in inputs.items()})
        named = zip(loaded.outputs, found, strict=True)
        return {part: np.asarray(x) for name, value in named for part, x in parts(name, value).items()}

    return run, ""


def _together(run: Callable[[Inputs], Outputs], draws: Sequence[Inputs]) -> list[Outputs]:
    """The results of calls from two threads at once."""
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(run, draws))


def _uncompiled(run: Callable[[Inputs], Outputs]) -> str:
    """Why a compiled model has no plan."""
    cut = getattr(run.loaded.model, "cut", None) if isinstance(run, _Run) else None
    return "" if cut is None else f"; it runs operation by operation: {cut}"
