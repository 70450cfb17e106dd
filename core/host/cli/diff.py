"""emberlet diff A B: the differences between two weight files."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

from ... import dtypes, store
from ...store import Snapshot, Store
from .plain import plain
from .progress import Bytes


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", help="weights of any format")
    parser.add_argument("b", help="weights of any format")
    parser.add_argument("--rename", action="append", metavar="REGEX=NAME", help="rename the tensors of A first")
    parser.add_argument("--key", help="the part of PyTorch files to compare, such as state_dict")
    parser.add_argument("--atol", type=float, default=0.0, help="ignore differences up to this (default: 0)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace) -> int:
    from .convert import _pair

    a, b = (store.open(path, key=arguments.key) for path in (arguments.a, arguments.b))
    if arguments.rename:
        a = a.rename([_pair(text) for text in arguments.rename])
    found = compare(a, b, arguments.atol)
    same = not (found["only_a"] or found["only_b"] or found["different"])
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        print(describe(found))
    return 0 if same else 1


def compare(a: Store, b: Store, atol: float = 0.0) -> dict[str, Any]:
    """{"same": number of equal tensors, "only_a", "only_b": names, "different": {name: difference}}.

    A difference has shapes and dtypes if these differ and, for equal shapes, `max` and `rms`, the largest and the root
    mean square difference; numbers that are not finite are text.
    """
    both = [name for name in a if name in b]
    different: dict[str, Any] = {}
    with Bytes("comparing", sum(a[n].nbytes + b[n].nbytes for n in both)) as progress:
        for name in both:
            what = _difference(a[name], b[name], atol)
            progress.add(a[name].nbytes + b[name].nbytes)
            if what:
                different[name] = what
    only_a, only_b = ([n for n in x if n not in y] for x, y in ((a, b), (b, a)))
    return {"same": len(both) - len(different), "only_a": only_a, "only_b": only_b, "different": different}


def _difference(a: Snapshot, b: Snapshot, atol: float) -> dict[str, Any]:
    what: dict[str, Any] = {}
    if a.dtype is not b.dtype:
        what["dtypes"] = [a.dtype.name, b.dtype.name]
    if a.shape != b.shape:
        return {**what, "shapes": [list(a.shape), list(b.shape)]}
    if a.dtype is b.dtype and a.raw() == b.raw():
        return what
    largest, mean = distance(a, b)
    if largest <= atol and (atol or not what):
        return {}
    return {**what, "max": _json(largest), "rms": _json(mean)}


def distance(a: Snapshot, b: Snapshot) -> tuple[float, float]:
    """(largest, root mean square) difference, computed in float64. Two NaNs are equal, and so are equal infinities."""
    x, y = (s.tensor().astype(dtypes.float64) for s in (a, b))
    if x.size == 0:
        return 0.0, 0.0
    equal = (x == y) | ((x != x) & (y != y))
    gap = abs(x - y)
    gap = gap.mask_fill(equal, 0.0)
    if bool((gap != gap).any()):
        return math.inf, math.inf
    largest = float(gap.max())
    if largest in (0.0, math.inf):
        return largest, largest
    scaled = gap / largest  # squares neither overflow nor vanish
    return largest, largest * math.sqrt(float((scaled * scaled).mean()))


def _json(value: float) -> float | str:
    return value if math.isfinite(value) else "infinite"


def describe(found: dict[str, Any]) -> str:
    """The result as lines of text."""
    lines = [f"only in A: {plain(name)}" for name in found["only_a"]]
    lines += [f"only in B: {plain(name)}" for name in found["only_b"]]
    for name, what in found["different"].items():
        parts = []
        for key in ("dtypes", "shapes"):
            if key in what:
                first, second = (tuple(v) if isinstance(v, list) else v for v in what[key])
                parts.append(f"{first} and {second}")
        if "max" in what:
            largest, mean = (v if isinstance(v, str) else f"{v:.3g}" for v in (what["max"], what["rms"]))
            parts.append(f"largest difference {largest}, root mean square {mean}")
        lines.append(f"{plain(name)}: {'; '.join(parts)}")
    lines.append(
        f"{found['same']} tensors are the same, {len(found['different'])} differ, {len(found['only_a'])} only in A, "
        f"{len(found['only_b'])} only in B"
    )
    return "\n".join(lines)
