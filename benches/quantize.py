"""Quantized models beside onnxruntime's quantizer and runtime: size, agreement with the float model, time.

digits (labels), the wake word of examples/micro_wake_word, and vision networks, on images at random where there are no
others: the float model's classes are the labels there. emberlet: `emberlet quantize` with and without `--activations`;
onnxruntime: `quantize_static` with a scale for each channel. Ranges are the extremes for both. The engines take turns
in one process. Writes benches/results/quantize.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "quantize.md"
SECONDS = 1.0  # of calls that are compared


class Case(NamedTuple):
    """A model, the samples for calibration and comparison, and their labels, None for the float model's."""

    name: str
    path: Path
    samples: NDArray[Any]
    labels: NDArray[Any] | None


def cases() -> list[Case]:
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as held:
        digits = (held["images"] / 16).astype(np.float32)[:, None]
        found = [Case("digits", ROOT / "examples" / "digits" / "digits.onnx", digits, held["labels"])]
    with np.load(ROOT / "examples" / "micro_wake_word" / "calibration.npz") as held:
        path = ROOT / "examples" / "micro_wake_word" / "wake_word.onnx"
        found.append(Case("wake word", path, held["features"].astype(np.float32), None))
    models = ROOT / "tests" / "models"
    for name in ("residual_cnn", "mobile_cnn"):
        with np.load(next((models / name).glob("case*.npz"))) as held:
            shape = next(held[key].shape for key in held.files if key.startswith("in_"))
        images = np.random.default_rng(0).normal(size=(64, *shape[1:])).astype(np.float32)
        found.append(Case(name, models / name / "model.onnx", images, None))
    return found


def ours(case: Case, folder: Path, *options: str) -> tuple[Any, int]:
    """(the model on NumPy, bytes of its burnpack)"""
    from emberlet.host.cli import main
    from emberlet.host.cli.model import load

    np.savez(folder / "samples.npz", x=case.samples)
    said = io.StringIO()
    words = ["quantize", str(case.path), "--calibration", str(folder / "samples.npz"), "--out", str(folder / "out")]
    with contextlib.redirect_stdout(said):
        status = main([*words, "--name", "small", "--time", "none", "--json", "--samples", "100000", *options])
    if status:
        raise RuntimeError(f"emberlet quantize ended with {status}")
    return load(str(folder / "out" / "small.py"), "numpy").model, int(json.loads(said.getvalue())["after"])


def theirs(case: Case, folder: Path) -> Path:
    """The model that onnxruntime quantizes."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    name = session(case.path).get_inputs()[0].name
    rows = [case.samples[i : i + 1] for i in range(len(case.samples))]

    class Rows(CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Any] | None:
            return {name: rows.pop()} if rows else None

    path = folder / "theirs.onnx"
    quantize_static(str(case.path), str(path), Rows(), per_channel=True, weight_type=QuantType.QInt8)
    return path


def session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def caller(found: Any) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """A function from one sample to the first output."""
    if hasattr(found, "get_inputs"):
        name = found.get_inputs()[0].name
        return lambda x: found.run(None, {name: x})[0]  # type: ignore[no-any-return]
    call = found.compile(backend="numpy")

    def run(x: NDArray[Any]) -> NDArray[Any]:
        result = call(x)
        return np.asarray(result[0] if isinstance(result, tuple) else result)

    return run


def compared(case: Case, seconds: float) -> list[str]:
    """The rows of one model."""
    from emberlet.codegen import load
    from emberlet.host.quantization.comparison import compare

    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(k) for k in range(3)]
        for folder in folders:
            folder.mkdir()
        float_size = case.path.stat().st_size
        weights, small = ours(case, folders[0])
        static, smaller = ours(case, folders[1], "--activations")
        path = theirs(case, folders[2])
        qdq = folders[1] / "out" / "small.onnx"
        found = [
            ("onnxruntime float", session(case.path), float_size),
            ("onnxruntime int8", session(path), path.stat().st_size),
            ("emberlet's file on onnxruntime", session(qdq), qdq.stat().st_size),
            ("emberlet float", load(str(case.path), "numpy"), float_size),
            ("emberlet, weights in 8 bits", weights, small),
            ("emberlet, activations too", static, smaller),
        ]
        calls = [(label, caller(model), size) for label, model, size in found]
        outputs = {label: np.concatenate([call(x[None]) for x in case.samples]) for label, call, _ in calls}
        times = dict.fromkeys(outputs, float("inf"))
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for label, call, _ in calls:
                begin = time.perf_counter()
                call(case.samples[:1])
                times[label] = min(times[label], time.perf_counter() - begin)
    wanted = outputs["onnxruntime float"]
    rows = []
    for label, _, size in calls:
        c = compare({"y": wanted}, {"y": outputs[label]}, case.labels)
        right = "–" if c.accuracy is None else f"{c.accuracy:.2%}"
        same = "–" if c.same_best is None else f"{c.same_best:.2%}"
        rows.append(
            f"| {case.name} | {label} | {size / 1e3:.1f} | {right} | {same} | {c.rms:.3%} | {times[label] * 1e3:.3f} |"
        )
        print(rows[-1], flush=True)
    return rows


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, metavar="S", help="of calls of each model (default: 1)"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="write there instead")
    options = parser.parse_args(argv)
    logging.disable(logging.WARNING)  # onnxruntime recommends preprocessing
    lines = [
        "# Quantized models",
        "",
        "`python3 dev.py bench quantize`: 8 bits, one sample a call, one thread of onnxruntime, emberlet on NumPy; the "
        "shortest time of all calls. Accuracy by labels, the same class as the float model's, and the difference (root "
        "mean square) relative to the range of its outputs, on the samples that the models were calibrated on. Sizes: "
        f"of the ONNX file, or of emberlet's weights. {os.cpu_count()} CPUs, Python {platform.python_version()}; load "
        f"of the machine when it began: {os.getloadavg()[0]:.1f}. Above 1, times say little.",
        "",
        "| model | | kB | accuracy | same class | difference | ms |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for case in cases():
        lines += compared(case, options.seconds)
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
