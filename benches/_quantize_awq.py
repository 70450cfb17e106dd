"""What AWQ keeps beside rounding to the nearest: small transformers with random weights, as they are and with two
channels of each norm 30 times larger, as trained language models have them.

Both see the same 8 samples, and are compared on the same 32 others by the float model's best outputs. The standard
error of the difference is that of its mean over these, each paired with itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

START, END = "<!-- AWQ: python3 dev.py bench quantize --awq -->", "<!-- end of AWQ -->"
CALIBRATED, COMPARED = 8, 32
LARGER = 30  # times, in the second half of the table
FORMS: dict[str, dict[str, Any]] = {
    "dynamic": {"activations": "dynamic"},
    "static": {"activations": "static"},
    "float, weights of 4 bits": {"bits": 4, "level": 32},
}
Array = NDArray[Any]
Samples = Mapping[str, Array]


def encoder() -> tuple[onnx.ModelProto, Samples]:
    """Two layers of 96 channels, and inputs."""
    from _gpu_models import encoder as written

    model = onnx.load(written(2, 96, 4, 32))
    x = np.random.default_rng(5).normal(size=(CALIBRATED + COMPARED, 32, 96))
    return model, {model.graph.input[0].name: x.astype(np.float32)}


def language_model() -> tuple[onnx.ModelProto, Samples]:
    """Two layers of 96 channels, and prompts of 16 words."""
    from tools.networks.decoder import Sizes, decoder

    sizes, count = Sizes(words=500, width=96, hidden=256, heads=3, layers=2), CALIBRATED + COMPARED
    past = np.zeros((count, sizes.heads, 0, sizes.width // sizes.heads), np.float32)
    cache = {f"past_key_values.{n}.{part}": past for n in range(sizes.layers) for part in ("key", "value")}
    return decoder(sizes), {"tokens": np.random.default_rng(0).integers(0, sizes.words, (count, 16)), **cache}


MODELS = {"encoder": encoder, "language model": language_model}


def enlarge(model: onnx.ModelProto) -> None:
    """Multiply two channels of each norm's weight."""
    made = {o: n.op_type for n in model.graph.node for o in n.output}
    norms = {
        n.input[1] for n in model.graph.node
        if n.op_type == "LayerNormalization" or (n.op_type == "Mul" and made.get(n.input[0]) == "Div")
    }  # fmt: skip
    for t in model.graph.initializer:
        if t.name in norms:
            weight = onnx.numpy_helper.to_array(t).copy()
            weight[[3, 17]] *= LARGER
            t.CopyFrom(onnx.numpy_helper.from_array(weight, t.name))


def best(model: Any, names: list[str], samples: Samples) -> Array:
    """The largest output of each row of each sample that is compared."""
    found = []
    for k in range(CALIBRATED, CALIBRATED + COMPARED):
        y = model(*[samples[name][k : k + 1] for name in names])
        found.append(np.asarray(y[0] if isinstance(y, tuple) else y).argmax(-1).reshape(-1))
    return np.stack(found)


def cells(which: str, larger: bool, form: dict[str, Any]) -> list[str]:
    """The shares kept by rounding to the nearest and by AWQ, and their difference."""
    from emberlet import codegen

    model, samples = MODELS[which]()
    if larger:
        enlarge(model)
    held = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in held]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        wanted = best(codegen.load(path, "numpy"), names, samples)
        shown = {name: x[:CALIBRATED] for name, x in samples.items()}
        kept = []
        for weights in ("rtn", "awq"):
            made, _ = codegen.quantize(path, shown, weights=weights, **form)
            kept.append((best(made, names, samples) == wanted).mean(1))
    off = kept[1] - kept[0]
    error = off.std(ddof=1) / len(off) ** 0.5
    return [*(f"{x.mean():.1%}" for x in kept), f"{100 * off.mean():+.1f} ± {100 * error:.1f}".replace("-", "−")]


def table() -> list[str]:
    head = ["to the nearest", "AWQ", "difference"]
    lines = [
        f"| model, activations | {' | '.join(['norms of ones: ' + head[0], *head[1:]])} | "
        f"{' | '.join([f'two channels {LARGER} times larger: ' + head[0], *head[1:]])} |",
        "|---|" + "---:|" * 6,
    ]
    for which in MODELS:
        for name, form in FORMS.items():
            if which == "language model" and name == "static":
                continue  # none of its activations has a range: its cache is empty
            row = [f"{which}, {name}", *cells(which, False, form), *cells(which, True, form)]
            lines.append(f"| {' | '.join(row)} |")
            print(lines[-1], flush=True)
    return lines


def write(path: Path) -> None:
    """Put the table between its marks in a page."""
    lines = table()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, _, rest = text.partition(START)
    path.write_text("\n".join([f"{before}{START}", *lines, f"{END}{rest.partition(END)[2]}"]), encoding="utf-8")
