"""Make the models under this folder again, with their inputs and onnxruntime's outputs.

    pip install torch==2.13.0 onnx onnxscript onnxruntime
    python tests/models/export.py            # all of them
    python tests/models/export.py vit gpt    # those whose names begin like this

Everything is seeded. Testing needs none of this: the files are committed.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from recipes import ALL  # noqa: E402
from recipes.recipe import Inputs, Recipe  # noqa: E402

LARGEST = 300_000
INDEX = HERE / "index.json"


def session_for(path: Path, literal: bool) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if literal:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(session: onnxruntime.InferenceSession, inputs: Inputs) -> dict[str, np.ndarray]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def save(recipe: Recipe) -> dict[str, object]:
    """Write one model and its cases; return its entry in the index."""
    folder = HERE / recipe.name
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.iterdir():
        stale.unlink()
    proto = recipe.build()
    if recipe.checked:
        onnx.checker.check_model(proto)
    path = folder / "model.onnx"
    onnx.save(proto, path)
    size = path.stat().st_size
    if size > LARGEST:
        raise SystemExit(f"{recipe.name}: {size:,} bytes, at most {LARGEST:,} are wanted")
    session = session_for(path, recipe.literal)
    cases = []
    for label, inputs in recipe.cases().items():
        outputs = run(session, inputs)
        for name, value in outputs.items():
            flat = value.dtype.kind == "f" and not (np.isfinite(value).all() and np.abs(value).max(initial=0) > 1e-2)
            if not value.size or flat or (value.size > 1 and value.std() == 0):
                what = f"{recipe.name} {label}: output {name}"
                raise SystemExit(f"{what} is empty, constant, tiny or not finite, so it tests nothing: {value!r}")
        file = f"case_{label}.npz" if label else "case.npz"
        np.savez_compressed(
            folder / file,
            **{f"in_{name}": value for name, value in inputs.items()},
            **{f"out_{name}": value for name, value in outputs.items()},
        )
        cases.append(file)
    operators = sorted({f"{n.domain}:{n.op_type}" if n.domain else n.op_type for n in proto.graph.node})
    print(f"{recipe.name:45} {size:8,} bytes  {len(cases)} cases  {', '.join(operators)[:160]}")
    return {
        "about": recipe.about,
        "opset": {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import},
        "cases": cases,
        "atol": recipe.atol,
        "rtol": recipe.rtol,
        "literal": recipe.literal,
        "operators": operators,
    }


def main() -> None:
    wanted = sys.argv[1:]
    index = json.loads(INDEX.read_text(encoding="utf-8")) if INDEX.exists() else {}
    known = {recipe.name for recipe in ALL}
    for recipe in ALL:
        if not wanted or any(recipe.name.startswith(prefix) for prefix in wanted):
            index[recipe.name] = save(recipe)
            INDEX.write_text(
                json.dumps({name: index[name] for name in sorted(index) if name in known}, indent=1) + "\n",
                encoding="utf-8",
            )


if __name__ == "__main__":
    main()
