"""Checks that plans for fixed sizes have not changed, by a digest of each test model's saved plan.

    python -m tools.plan_digests --write FILE      before a change
    python -m tools.plan_digests --against FILE    after it: names the models whose plan changed, and exits with 1

A plan is its kernels' WGSL, dispatches, buffers and weights, for each class of device; no GPU is needed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path

from tools.paths import ROOT


def digests(pattern: str = "") -> dict[str, str]:
    """Test model -> the digest of its plan for the inputs of its first case, or the reason that it has none."""
    from emberlet import asarray
    from emberlet.codegen import load
    from emberlet.errors import EmberletError
    from emberlet.wgpu_backend import plan_file

    sys.path.insert(0, str(ROOT / "tests"))
    from models.index import cases

    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.plan"
        for case in cases():
            if case.name in found or pattern not in case.name:
                continue
            try:
                model = load(case.model, "numpy")
                plan_file.save(str(path), model, *(asarray(x) for x in case.inputs().values()))
                found[case.name] = hashlib.sha256(path.read_bytes()).hexdigest()
            except EmberletError as error:
                found[case.name] = f"{type(error).__name__}: {error}"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--against", type=Path, metavar="FILE")
    options = parser.parse_args()
    found = digests(options.pattern)
    plans = sum(len(text) == 64 for text in found.values())
    print(f"{len(found)} models, {plans} of them with a plan")
    if options.write:
        options.write.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if options.against:
        before = json.loads(options.against.read_text(encoding="utf-8"))
        other = [name for name in found if found[name] != before.get(name)]
        print("\n".join(f"another plan: {name}" for name in other) or "all as before")
        return int(bool(other))
    return 0


if __name__ == "__main__":
    sys.exit(main())
