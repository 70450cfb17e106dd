"""Quantized models beside onnxruntime's quantizers and runtime: size, agreement with the float model, time.

digits (labels), the wake word of examples/micro_wake_word, two small vision networks, SqueezeNet, a MobileNetV3 and
ResNet-50 (weights drawn at random, images too: the float model's classes are the labels), a transformer encoder, a
language model of 15 million parameters on a prompt, and silero where a folder of models lies beside the checkout.

emberlet: weights in 8 and in 4 bits (GPTQ, a scale for 32 weights), and 8 bits with activations. onnxruntime:
`quantize_static` with a scale for each channel; for the language model `quantize_dynamic`, and MatMulNBits with 4 bits.
emberlet runs on the fastest way of this machine's processor that is installed: native, WebAssembly or NumPy. Each
measurement is a process of its own with one or two threads; the least time of a call counts. Writes
benches/results/quantize.md; rows of models that are not measured stay. The benchmark's own processes run it with
`--child`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import platform
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
RESULTS = ROOT / "benches" / "results" / "quantize.md"
SHARED = ROOT.parent / "shared" / "models"
MODELS = ROOT / "tests" / "models"
THREADS = (1, 2)
Arrays = Mapping[str, NDArray[Any]]


class Case(NamedTuple):
    """A model as ONNX, samples of its inputs (a row of the arrays with axes each), and their labels, None for the float
    model's. language: whether it is one, which is quantized without calibrated activations."""

    model: Any
    samples: Arrays
    labels: NDArray[Any] | None = None
    language: bool = False


def digits() -> Case:
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as held:
        images = (held["images"] / 16).astype(np.float32)[:, None]
        return Case(ROOT / "examples" / "digits" / "digits.onnx", {"image": images}, held["labels"])


def wake_word() -> Case:
    folder = ROOT / "examples" / "micro_wake_word"
    with np.load(folder / "calibration.npz") as held:
        return Case(folder / "wake_word.onnx", {"": held["features"].astype(np.float32)})


def images(model: Any, shape: tuple[int, ...], count: int) -> Case:
    return Case(model, {"": np.random.default_rng(0).normal(size=(count, *shape)).astype(np.float32)})


def network(name: str) -> Any:
    return runpy.run_path(str(ROOT / "benches" / "core.py"))["network"](name)


def mobilenet() -> Case:
    import onnx

    data = (MODELS / "architectures" / "timm_mobilenetv3.onnx.gz").read_bytes()
    model = onnx.load_model_from_string(gzip.decompress(data))
    shape = [d.dim_value or 1 for d in model.graph.input[0].type.tensor_type.shape.dim]
    return images(model, tuple(shape[1:]), 32)


def small(name: str) -> Case:
    with np.load(next((MODELS / name).glob("case*.npz"))) as held:
        shape = next(held[key].shape for key in held.files if key.startswith("in_"))
    return images(MODELS / name / "model.onnx", shape[1:], 64)


def encoder() -> Case:
    from _gpu_models import encoder as made

    return images(made(6, 384, 12, 128), (128, 384), 8)


def llama() -> Case:
    from tools.decoder_model import Sizes, decoder

    sizes = Sizes()
    draw = np.random.default_rng(0)
    empty = np.zeros((8, sizes.heads, 0, sizes.width // sizes.heads), np.float32)
    caches = {f"past_key_values.{n}.{what}": empty for n in range(sizes.layers) for what in ("key", "value")}
    return Case(decoder(sizes), {"tokens": draw.integers(0, sizes.words, (8, 32)), **caches}, language=True)


def silero() -> Case:
    import wave

    with wave.open(str(SHARED / "speech_16k_10s.wav")) as file:
        sound = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    windows = np.stack([sound[at : at + 576] for at in range(0, len(sound) - 576, 2048)])[:64]
    states = np.zeros((len(windows), 2, 1, 128), np.float32)
    return Case(
        SHARED / "silero_vad.onnx", {"input": windows[:, None], "state": states, "sr": np.full(len(windows), 16000)}
    )


CASES: dict[str, Callable[[], Case]] = {
    "digits": digits,
    "wake word": wake_word,
    "residual_cnn": lambda: small("residual_cnn"),
    "mobile_cnn": lambda: small("mobile_cnn"),
    "squeezenet": lambda: images(network("squeezenet"), (3, 224, 224), 8),
    "mobilenetv3": mobilenet,
    "resnet50": lambda: images(network("resnet50"), (3, 224, 224), 4),
    "encoder": encoder,
    "llama 15 M": llama,
    "silero": silero,
}


def rows(case: Case) -> list[dict[str, NDArray[Any]]]:
    """The arguments of a call for each sample."""
    count = max(len(x) for x in case.samples.values())
    names = list(case.samples)
    whole = any(name in ("input", "state") for name in names)  # whose rows have their batch axis already
    return [{n: np.asarray(x[k]) if whole else x[k : k + 1] for n, x in case.samples.items()} for k in range(count)]


def save(case: Case, folder: Path) -> list[str]:
    """Write the float model, the samples and every quantized model; returns what was made, as `child` opens it."""
    import onnx

    path = folder / "float.onnx"
    onnx.save(onnx.load(case.model) if isinstance(case.model, Path) else case.model, path)
    names = [i.name for i in session(path, 1).get_inputs()]
    samples = {(n or names[0]): x for n, x in case.samples.items()}
    np.savez(folder / "samples.npz", **samples)
    calls = rows(case._replace(samples=samples))
    made = ["onnxruntime float", *theirs(path, folder, calls, case.language)]
    made.append("emberlet float")
    ours(path, folder / "float", samples, {})
    kinds: dict[str, dict[str, Any]] = {
        "emberlet int8 weights": {},
        "emberlet int4 weights": {"bits": 4, "level": 32, "method": "gptq"},
    }
    if not case.language:
        kinds["emberlet int8"] = {"activations": True}
    for kind, options in kinds.items():
        try:
            ours(path, folder / kind.replace(" ", "_"), samples, {"bits": 8, **options})
            made.append(kind)
        except Exception as error:
            print(f"{kind}: {error}", flush=True)
    return made


def ours(path: Path, folder: Path, samples: Arrays, options: dict[str, Any]) -> None:
    """Write a quantized module, or the float one without options."""
    from emberlet.codegen import generate
    from emberlet.codegen.quantized import writing
    from emberlet.host.cli.quantize.models import Source, Static
    from emberlet.host.cli.quantize.samples import fitted

    folder.mkdir()
    if not options:
        generate(path, folder, name="model")
        return
    chosen = dict(options)
    activations = chosen.pop("activations", False)

    def fit(inputs: Any) -> Any:
        return fitted(dict(samples), inputs, {})

    source = Static(str(path), "model", fit, "minmax", 99.99, quiet) if activations else Source(str(path), "model")
    scheme = writing.Scheme(**chosen)
    source.choose(scheme, False, fit(source.inputs), quiet)
    model, text, more = source.final(scheme)
    writing.write(folder, "model", writing.quantizing(text, scheme), model, {}, more)


def quiet(_: str) -> None:
    pass


def theirs(path: Path, folder: Path, calls: list[dict[str, NDArray[Any]]], language: bool) -> list[str]:
    """Write the models that onnxruntime quantizes."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static

    left = list(calls)

    class Rows(CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Any] | None:
            return left.pop() if left else None

    made = []
    try:
        if language:
            quantize_dynamic(str(path), str(folder / "int8.onnx"), per_channel=True, weight_type=QuantType.QInt8)
        else:
            quantize_static(str(path), str(folder / "int8.onnx"), Rows(), per_channel=True, weight_type=QuantType.QInt8)
        made.append("onnxruntime int8")
    except Exception as error:
        print(f"onnxruntime int8: {error}", flush=True)
    if language:
        import onnx

        from tools.decoder_model import decoder

        onnx.save(decoder(bits=4), folder / "int4.onnx")
        made.append("onnxruntime int4")
    return made


def session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def fastest() -> str:
    """The fastest backend on the processor that is installed."""
    return "native" if find_spec("llvmlite") else "wasm" if find_spec("wasmtime") else "numpy"


def opened(kind: str, folder: Path, threads: int) -> tuple[Callable[[dict[str, Any]], Any], int, str]:
    """(a function from a sample's inputs to the first output, bytes of the file of its weights, the backend)"""
    who, _, what = kind.partition(" ")
    if who == "onnxruntime":
        path = folder / f"{what}.onnx"
        found = session(path, threads)
        return (lambda given: found.run(None, given)[0]), path.stat().st_size, ""
    from emberlet import asarray
    from emberlet.host.cli.model import load

    backend = fastest()
    if backend == "native":
        from emberlet.wgpu_backend.llvm import set_threads
    elif backend == "wasm":
        from emberlet.wgpu_backend.wasm import set_threads
    if backend != "numpy":
        set_threads(threads)
    at = folder / ("float" if what == "float" else kind.replace(" ", "_"))
    loaded = load(str(at / "model.py"), "numpy")
    call = loaded.model.fork(backend).compile(backend=backend)
    names = [i.name for i in loaded.inputs]
    with np.load(folder / "samples.npz") as held:
        first = rows(Case(None, dict(held)))[0]
    call(*[asarray(first[name], backend=backend) for name in names])
    if getattr(call, "cut", None) is not None:  # no plan there: NumPy takes inputs for constants where they decide
        backend, call = "numpy", loaded.model.compile(backend="numpy")

    def run(given: dict[str, Any]) -> Any:
        result = call(*[asarray(given[name], backend=backend) for name in names])
        return np.asarray(result[0] if isinstance(result, tuple) else result)

    return run, (at / "model.bpk").stat().st_size, backend


def child(kind: str, folder: Path, threads: int, seconds: float) -> None:
    """Print a model's size and the least time of a call as JSON, and write its outputs."""
    with np.load(folder / "samples.npz") as held:
        calls = rows(Case(None, dict(held)))
    run, size, backend = opened(kind, folder, threads)
    if threads == THREADS[0]:
        np.save(folder / (kind.replace(" ", "_") + ".npy"), np.stack([run(given) for given in calls]))
    best, end = float("inf"), time.perf_counter() + seconds
    run(calls[0])
    while time.perf_counter() < end or best == float("inf"):
        begin = time.perf_counter()
        run(calls[0])
        best = min(best, time.perf_counter() - begin)
    print(json.dumps({"size": size, "ms": best * 1e3, "backend": backend}))


def measured(name: str, seconds: float, limit: float) -> list[str]:
    """The rows of one model. limit: seconds after which no more processes are started."""
    from emberlet.host.quantization.comparison import compare

    end = time.perf_counter() + limit
    case = CASES[name]()
    lines = []
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        kinds = save(case, folder)
        for kind in kinds:
            found: dict[int, dict[str, Any]] = {}
            for threads in THREADS:
                if time.perf_counter() > end:
                    break
                words = ["--child", kind, str(folder), str(threads), "--seconds", str(seconds)]
                environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
                said = subprocess.run(
                    [sys.executable, __file__, *words], env=environment, capture_output=True, text=True,
                    encoding="utf-8", check=False, timeout=600,
                )  # fmt: skip
                if said.returncode:
                    print(f"{name}, {kind}: {said.stderr.strip().splitlines()[-1:]}", flush=True)
                    break
                found[threads] = json.loads(said.stdout.splitlines()[-1])
            if not found:
                continue
            wanted, got = (
                {"y": _flat(np.load(folder / (k.replace(" ", "_") + ".npy")))} for k in ("onnxruntime float", kind)
            )
            c = compare(wanted, got, case.labels)
            share = [("–" if x is None else f"{x:.2%}") for x in (c.accuracy, c.same_best)]
            times = [f"{found[t]['ms']:.3f}" if t in found else "–" for t in THREADS]
            first = found[THREADS[0]]
            where = "" if first["backend"] in ("", fastest()) else f" ({first['backend']})"
            cells = [name, kind + where, f"{first['size'] / 1e3:.1f}", *share, f"{c.rms:.3%}", *times]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def _flat(x: NDArray[Any]) -> NDArray[Any]:
    """Outputs (samples, 1, …) without the batch axis."""
    return x[:, 0] if x.ndim > 2 and x.shape[1] == 1 else x


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--minutes", type=float, default=10, metavar="M", help="for all models, about (default: 10)")
    parser.add_argument("--seconds", type=float, metavar="S", help="of calls in each process (default: by --minutes)")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="write there instead")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    logging.disable(logging.WARNING)  # onnxruntime recommends preprocessing
    seconds = options.seconds or min(2.0, options.minutes * 60 / len(CASES) / 40)
    if options.child:
        kind, folder, threads = options.child
        child(kind, Path(folder), int(threads), seconds)
        return 0
    chosen = options.models or [name for name in CASES if name != "silero" or SHARED.is_dir()]
    for name in chosen:
        if name not in CASES:
            parser.error(f"there is no model {name!r}; there are {', '.join(CASES)}")
    load = os.getloadavg()[0]
    begin = time.perf_counter()
    found: dict[str, list[str]] = {}
    for k, name in enumerate(chosen):
        left = options.minutes * 60 - (time.perf_counter() - begin)
        found[name] = measured(name, seconds, left / (len(chosen) - k) * 2)
    write(options.out, found, load)
    return 0


def write(path: Path, found: dict[str, list[str]], load: float) -> None:
    """Write the page, with the old rows of models that were not measured."""
    old = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    held = {name: [line for line in old if line.startswith(f"| {name} |")] for name in CASES}
    lines = [
        "# Quantized models",
        "",
        f"`python3 dev.py bench quantize`: one sample a call; the least time of all calls. emberlet on {fastest()}, or "
        "where that has no plan on the backend that the row names. "
        "Accuracy by labels, the same class as the float model's, and the difference (root mean square) relative to "
        "the range of its outputs, on the samples that the models were calibrated on. Sizes: of the ONNX file, or of "
        f"emberlet's weights. {os.cpu_count()} CPUs, Python {platform.python_version()}; load of the machine when it "
        f"began: {load:.1f}. Above 1, times say little.",
        "",
        "| model | | kB | accuracy | same class | difference | ms, 1 thread | ms, 2 threads |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in CASES:
        lines += found.get(name) or held[name]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
