"""Models compiled on the numpy backend compared with onnxruntime, and with torch if a Python has it.

The models are small ones, an encoder, a step of a language model with its cache, and ONNX's nine light architectures,
whose constant weights are replaced by seeded random ones. torch's CPU (`--torch PYTHON`, one that has torch and onnx)
runs mnist, digits and those architectures, operator by operator. The runtimes take turns, each in its own process,
because an idle thread of one would slow down the other. The best call counts; peak memory is the process's. If
OPENBLAS_NUM_THREADS is 1, both have one thread, and processor time is measured, which other programs disturb less;
`--threads` sets the number. OPENBLAS_CORETYPE is not passed on, so OpenBLAS runs its best kernels. mnist and silero are
read from a folder of models beside the checkout. Where compiled plans use MKL, they are also measured with NumPy's own
products (EMBERLET_BLAS=numpy). Where llvmlite is installed, the native backend takes part, but for the
step of the language model, whose cache grows: its first process compiles, the others find the code. Rows of models that
are not measured stay unchanged. Writes benches/results/cpu.md. The benchmark's own processes run it with `--child`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
RESULTS = ROOT / "benches" / "results"
NETWORKS = (
    "squeezenet", "shufflenet", "inception_v1", "inception_v2", "resnet50", "densenet121", "bvlc_alexnet", "zfnet512",
    "vgg19",
)  # fmt: skip
IMAGE = (1, 3, 224, 224)
SHARED = ROOT.parent / "shared" / "models"
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "digits": ((1, 1, 8, 8),),
    "mnist": ((1, 1, 28, 28),),
    "silero": ((1, 576), (2, 1, 128), ()),
    "minilm": ((1, 128, 384),),  # 6 layers of 12 heads
    "llama_step": ((1, 1),),  # a token of a model of 15 million parameters, behind CACHED others
    **dict.fromkeys(NETWORKS, (IMAGE,)),
}
CACHED, STEPS = 256, 64  # tokens in the cache when a step is timed first, and steps until it is filled anew
LEAST = 5e-4  # seconds that are timed at once
THREADS = int(os.environ.get("OPENBLAS_NUM_THREADS") or os.cpu_count() or 1)


def source(name: str) -> Any:
    """A model as ONNX: a path, or the model itself."""
    if name == "digits":
        return ROOT / "examples" / "digits" / "digits.onnx"
    if name in ("mnist", "silero"):
        return SHARED / {"mnist": "mnist.onnx", "silero": "silero_vad.onnx"}[name]
    if name == "minilm":
        from _gpu_models import encoder

        return encoder(6, 384, 12, 128)
    if name == "llama_step":
        from tools.decoder_model import decoder

        return decoder()
    return runpy.run_path(str(ROOT / "benches" / "core.py"))["network"](name)


def inputs(name: str) -> list[Any]:
    """The inputs of a model. The last input of silero is the sampling rate."""
    random = np.random.default_rng(1)
    return [random.standard_normal(s).astype(np.float32) if s else np.array(16000) for s in SHAPES[name]]


def prepare(name: str, folder: Path) -> float:
    """Write a model, the module generated from it and its weights; returns the seconds that generating took."""
    import onnx
    from emberlet.codegen import generate

    found = source(name)
    onnx.save(onnx.load(found) if isinstance(found, Path) else found, folder / f"{name}.onnx")
    start = time.perf_counter()
    generate(folder / f"{name}.onnx", folder, force=True)
    return time.perf_counter() - start


def opened(runtime: str, name: str, folder: Path, given: list[Any]) -> Callable[[], Any]:
    """A function that runs the model and returns its first output."""
    if name == "llama_step":
        return stepping(runtime, name, folder)
    if runtime == "torch":
        return on_torch(folder / f"{name}.onnx", given[0])
    if runtime == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx", options, ["CPUExecutionProvider"])
        feed = {i.name: x for i, x in zip(session.get_inputs(), given, strict=True)}
        return lambda: session.run(None, feed)[0]
    import emberlet

    backend = "native" if runtime == "native" else "numpy"
    if runtime == "native":
        from emberlet.wgpu_backend.llvm import set_threads

        set_threads(min(THREADS, 8))
    model = generated(name, folder).compile(backend=backend)
    tensors = [emberlet.asarray(x, backend=backend) for x in given]

    def call() -> Any:
        found = model(*tensors)
        return found[0] if isinstance(found, tuple) else found

    return call


def generated(name: str, folder: Path) -> Any:
    """The module that `prepare` wrote, with its weights."""
    from emberlet.model import Model

    sys.path.insert(0, str(folder))
    found = vars(__import__(name)).values()
    (kind,) = (v for v in found if isinstance(v, type) and issubclass(v, Model) and v is not Model)
    return kind.default(backend="numpy")


def stepping(runtime: str, name: str, folder: Path) -> Callable[[], Any]:
    """A function that returns the logits of one more token. The cache is filled again every STEPS calls; the first call
    after that is slower than the others."""
    if runtime == "onnxruntime":
        import onnx

        from tools.decoder_model import Reference

        model: Any = Reference(onnx.load(folder / f"{name}.onnx"), THREADS)
    else:
        model = generated(name, folder).session(capacity=CACHED + STEPS)
    prompt = [[1 + i % 1000 for i in range(CACHED)]]
    left = 0

    def call() -> Any:
        nonlocal left
        if not left:
            model.reset()
            model.step(prompt)
            left = STEPS
        left -= 1
        return model.step([[7]])

    return call


def on_torch(path: Path, x: Any) -> Callable[[], Any]:
    """A function that runs the model on torch's CPU."""
    import torch  # type: ignore[import-not-found]
    from _torch_graph import Graph

    torch.set_num_threads(THREADS)
    graph, given = Graph(str(path), "cpu"), torch.from_numpy(x)

    def call() -> Any:
        with torch.inference_mode():
            return graph(given)

    return call


def child(runtime: str, name: str, folder: Path, seconds: float) -> None:
    """Print one runtime's measurements on one network as JSON, and write its output to the folder."""
    start = time.perf_counter()
    call = opened(runtime, name, folder, inputs(name))
    np.save(folder / f"{runtime}.npy", np.asarray(call()))
    first = time.perf_counter() - start
    clock = time.thread_time if THREADS == 1 else time.perf_counter
    start = time.perf_counter()
    call()
    group = 1 + int(LEAST / (time.perf_counter() - start))  # the clock of a thread is coarse, and may say 0
    best, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = clock()
        for _ in range(group):
            call()
        best = min(best, (clock() - start) / group)
    print(json.dumps({"ms": best * 1e3, "first s": first, "peak MB": peak_memory()}))


def peak_memory() -> float:
    """The peak memory of this process in MB. (On Linux ru_maxrss starts with that of the process before exec.)"""
    try:
        said = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(said.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, IndexError):
        if sys.platform == "win32":
            return math.nan
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def measure(
    name: str, seconds: float, rounds: int, environment: dict[str, str], torch: str | None
) -> dict[str, dict[str, float]]:
    """The best of all rounds for each runtime; the environment says how many threads they have."""
    best: dict[str, dict[str, float]] = {}
    ours_too = ["numpy"] if "MKL" in products(environment) else []
    if find_spec("llvmlite") and name != "llama_step":
        ours_too.append("native")
    cold = math.nan
    with tempfile.TemporaryDirectory() as folder:
        environment = {**environment, "EMBERLET_CACHE": str(Path(folder) / "cache")}
        generated = prepare(name, Path(folder))
        for _ in range(rounds):
            for runtime in ("emberlet", *ours_too, "onnxruntime", *(["torch"] if torch and on_one_image(name) else [])):
                python = torch if torch and runtime == "torch" else sys.executable
                command = [python, __file__, "--child", runtime, name, folder, "--seconds", str(seconds)]
                own = {**environment, "EMBERLET_BLAS": "numpy"} if runtime == "numpy" else environment
                said = subprocess.run(
                    command, env=own, check=True, capture_output=True, text=True, encoding="utf-8"
                ).stdout
                found = json.loads(said.splitlines()[-1])
                if runtime == "native" and runtime not in best:
                    cold = found["first s"]
                best[runtime] = {k: min(v, best.get(runtime, found)[k]) for k, v in found.items()}
        ours, *others = (np.load(Path(folder) / f"{runtime}.npy") for runtime in best)
    for theirs in others:
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    best["emberlet"]["generate s"] = generated
    if "native" in best:
        best["native"]["cold s"] = cold
    return best


def on_one_image(name: str) -> bool:
    """Whether torch's CPU runs this model here."""
    return len(SHAPES[name]) == 1 and name not in ("llama_step", "minilm")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs=3, metavar=("RUNTIME", "NETWORK", "FOLDER"))
    parser.add_argument("--seconds", type=float, default=2.0, help="of each runtime on each network, a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--out", type=Path, default=RESULTS / "cpu.md", metavar="FILE")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has torch and onnx")
    parser.add_argument("--models", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    options = parser.parse_args()
    if options.child:
        runtime, name, folder = options.child
        child(runtime, name, Path(folder), options.seconds)
        return 0
    from emberlet.host import blas_kernels

    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    environment["OPENBLAS_NUM_THREADS"] = str(options.threads)
    blas_kernels.choose(environment)
    rows = {}
    for name in options.models:
        if name in ("mnist", "silero") and not SHARED.is_dir():
            print(f"{name} is left out: there is no {SHARED}")
            continue
        found = measure(name, options.seconds, options.rounds, environment, options.torch)
        ours, theirs = found["emberlet"], found["onnxruntime"]
        times = f"{ours['ms']:.3g} | {theirs['ms']:.3g} | {ours['ms'] / theirs['ms']:.2f} | {ours['generate s']:.2f}"
        torch = f"{found['torch']['ms']:.3g}" if "torch" in found else "–"
        plain = f"{found['numpy']['ms']:.3g}" if "numpy" in found else "–"
        row = f"| {name} | {times} | {ours['peak MB']:.0f} | {theirs['peak MB']:.0f} | {torch} | {plain} |"
        if native := found.get("native"):
            speed = f" {native['ms']:.3g} | {native['ms'] / theirs['ms']:.2f} | {native['peak MB']:.0f} |"
            row += f"{speed} {native['cold s']:.2f} | {native['first s']:.2f} |"
        else:
            row += " – |" * 5
        rows[name] = row
        print(rows[name], flush=True)
        write(rows, options.threads, options.out)
    return 0


def products(environment: dict[str, str]) -> str:
    """What multiplies in such a process: NumPy's BLAS and its kernels, and MKL where compiled plans use it."""
    code = """if True:
        from emberlet.host import blas_kernels, mkl
        import numpy
        said = mkl.summary()
        print(blas_kernels.summary() + (f"; {said} in compiled plans" if said else ""))
    """
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout.strip()


HEAD = [
    "| model | emberlet ms | onnxruntime ms | ratio | generate s | peak MB | onnxruntime's | torch ms "
    "| with NumPy's BLAS ms | native ms | native's ratio | native's peak MB | native's first s, cold | warm |",
    "|---" + "|---:" * 13 + "|",
]


def write(rows: dict[str, str], threads: int, path: Path) -> None:
    """Write the table for this number of threads. The other table and rows that were not measured stay unchanged."""
    import onnxruntime
    from emberlet.host import blas_kernels

    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    blas_kernels.choose(environment)
    about = (
        f"{processor()}, Python {platform.python_version()}, NumPy {np.__version__} ({products(environment)}), "
        f"onnxruntime {onnxruntime.__version__}. Milliseconds a call, the best of many; emberlet: the module, "
        f"compiled on NumPy; generate: from the ONNX file to the module and its weights; memory is the process's. "
        f"minilm: 6 layers, 384 wide, 128 tokens; llama_step: a token behind {CACHED} others. With NumPy's BLAS: "
        f"emberlet with EMBERLET_BLAS=numpy, where plans use MKL otherwise. Native: the module, compiled on the native "
        f"backend; its first call includes loading the module and making the plan: cold, compiling every kernel, and "
        f"warm, with the code of an earlier process. A dash: not measured. "
        f"`python3 dev.py bench cpu --threads 1`, with `--torch PYTHON` for torch"
    )
    title = f"## {threads} thread" + "s" * (threads > 1)
    parts = path.read_text(encoding="utf-8").split("\n## ") if path.is_file() else []
    tables = {"## " + part.partition("\n")[0]: "## " + part.strip() for part in parts[1:] if "| model |" in part}
    note = "Processor time.\n\n" if threads == 1 else ""
    before = tables.get(title, "").splitlines()
    kept = {line.split("|")[1].strip(): line for line in before if line.startswith("| ")}
    columns = HEAD[0].count("|")
    kept = {name: line + " – |" * (columns - line.count("|")) for name, line in kept.items()}
    lines = [*HEAD, *(found for name in SHAPES if (found := rows.get(name) or kept.get(name)))]
    tables[title] = f"{title}\n\n{note}" + "\n".join(lines)
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "# Models on the CPU\n\n" + about + "\n\n" + "\n\n".join(tables[k] for k in sorted(tables)) + "\n",
        encoding="utf-8",
    )


def processor() -> str:
    """The processor's name."""
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in said.splitlines() if line.startswith("model name")), "")


if __name__ == "__main__":
    sys.exit(main())
