"""`emberlet verify --idioms`: checks that each operation a pass recognized computes the same as the nodes it
replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...backend import get_backend
from ...errors import ModelError
from ...tensor import Tensor
from .model import Loaded
from .options import frozen_values

IDIOMS = tuple(
    "unfused norms activations pooling gathered recurrent batch-norm linear packed rotary attention masks lengths "
    "heads".split()
)
"""Passes that put one operator in the place of several. --passes switches each of them."""
RUNS = 3  # draws of the inputs


def drawn_sizes(names: Sequence[str], seed: int) -> dict[str, int]:
    """A small size for each open dimension."""
    import numpy as np

    random = np.random.default_rng(seed)
    return {name: int(random.integers(2, 7)) for name in names}


def found(path: str, freeze: Sequence[str]) -> dict[str, list[str]]:
    """The changes that each of these passes reports for a model; only passes with changes, in order."""
    from emberlet.codegen.generation import translate

    said: dict[str, list[str]] = {}
    for note in translate(path, freeze=frozen_values(freeze))[2]:
        name, _, what = note.partition(": ")
        said.setdefault(name, []).append(what)
    return {name: said[name] for name in IDIOMS if name in said}


def rows(
    path: str,
    backend: str | None,
    freeze: Sequence[str],
    loaded: Loaded,
    draws: Sequence[Mapping[str, Tensor]],
    array: Callable[[Tensor], Any],
    compare: Callable[[Any, Any], dict[str, Any]],
) -> list[dict[str, Any]]:
    """For each idiom of a model: its pass, the finding, and the largest difference of the outputs from those of the
    model generated without the pass, over all of `draws`. array: converts a Tensor to NumPy. compare: compares two
    arrays, as `verify` does."""
    made = []
    wanted = [loaded(inputs) for inputs in draws]
    for name, said in found(path, freeze).items():
        row: dict[str, Any] = {"idiom": name, "found": said}
        try:
            plain = _without(name, path, backend, freeze, loaded)
        except ModelError as error:
            made.append({**row, "within": False, "note": f"cannot be generated without the pass: {error}"})
            continue
        pairs = zip(wanted, draws, strict=True)
        results = [_compared(name, ours, plain(inputs), array, compare) for ours, inputs in pairs]
        made.append({**row, **max(results, key=lambda r: (not r["within"], r["absolute"]))})
    return made


def _without(name: str, path: str, backend: str | None, freeze: Sequence[str], loaded: Loaded) -> Loaded:
    """The model, generated without a pass."""
    from emberlet.codegen import weights
    from emberlet.codegen.emit.instance import instantiate
    from emberlet.codegen.generation import translate
    from emberlet.codegen.passes import PASSES

    model, written, _ = translate(path, passes=[p for p in PASSES if p != name], freeze=frozen_values(freeze))
    instance = instantiate(written, model.name, get_backend(backend))
    instance.load_record(weights.tensors(written.record, backend), layout="burn")
    return replace(loaded, model=instance)


def _compared(
    name: str,
    ours: Mapping[str, Tensor],
    plain: Mapping[str, Tensor],
    array: Callable[[Tensor], Any],
    compare: Callable[[Any, Any], dict[str, Any]],
) -> dict[str, Any]:
    """The largest difference of all outputs. If every key is hidden, the separate operations of an attention give 0 / 0
    and the attention gives 0; this is not counted."""
    import numpy as np

    worst: dict[str, Any] = {"within": True, "absolute": 0.0, "relative": 0.0, "note": "equal"}
    for key, x in ours.items():
        a, b = array(x), array(plain[key])
        if name == "attention" and a.shape == b.shape and b.dtype.kind == "f":
            a = np.where(np.isnan(b), b, a)
        row = {"absolute": 0.0, "relative": 0.0, **compare(a, b)}
        if (not row["within"], row["absolute"]) > (not worst["within"], worst["absolute"]):
            worst = {**row, "note": f"{key}: {row['note']}"}
    return worst
