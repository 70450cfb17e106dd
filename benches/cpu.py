"""Networks on the CPU: compiled natively and as plans of NumPy calls, compared with onnxruntime.

The networks are published ones, ONNX's light architectures with random weights, and others built from their tables
(_cpu_networks.py). The runtimes take turns, each in its own process, because an idle thread of one would slow down the
other. The best call counts; peak memory is the process's. With one thread, processor time is measured, which other
programs disturb less. The first native process compiles every kernel, the others find the code. OPENBLAS_CORETYPE is
not passed on, so OpenBLAS runs its best kernels. The step of the language model is one of a session, natively on the
backend `native`. torch's CPU (`--torch PYTHON`, one that has torch and onnx) runs some, operator by operator.
`--minutes 15` measures everything once, for each number of threads, and again as long as the time allows. Rows that are
not measured stay unchanged. Writes benches/results/cpu.md. The benchmark's own processes run it with `--child`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from _cpu_networks import ISSUED, LOOSE, SHAPES, inputs, missing, source

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
RESULTS = ROOT / "benches" / "results"
CACHED, STEPS = 256, 64  # tokens in the cache when a step is timed first, and steps until it is filled anew
SETTLING = 8  # steps before plans for steps are made and used
LEAST = 5e-4  # seconds that are timed at once
THREADS = int(os.environ.get("OPENBLAS_NUM_THREADS") or os.cpu_count() or 1)
Found = dict[str, dict[str, float]]  # runtime -> what was measured, by name


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
    """A function that runs the model and returns its first output; its first call makes the plan."""
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

    model = generated(name, folder)
    if runtime == "native":
        set_threads()
        model = model.compile()
    else:
        model = model.compile(backend="numpy")
    tensors = [emberlet.asarray(x, backend="numpy") for x in given]

    def call() -> Any:
        found = model(*tensors)
        return found[0] if isinstance(found, tuple) else found

    call.__dict__["model"] = model
    return call


def set_threads() -> None:
    from emberlet.wgpu_backend import llvm

    llvm.set_threads(min(THREADS, 8))


def generated(name: str, folder: Path) -> Any:
    """The module that `prepare` wrote, with its weights."""
    from emberlet.model import Model

    sys.path.insert(0, str(folder))
    found = vars(__import__(name)).values()
    kinds = [v for v in found if isinstance(v, type) and issubclass(v, Model) and v is not Model]
    return next(k for k in kinds if hasattr(k, "WEIGHTS")).default(backend="numpy")


def stepping(runtime: str, name: str, folder: Path) -> Callable[[], Any]:
    """A function that returns the logits of one more token. The cache is filled again every STEPS calls; the first call
    after that is slower than the others."""
    if runtime == "onnxruntime":
        import onnx

        from tools.networks.decoder import Reference

        model: Any = Reference(onnx.load(folder / f"{name}.onnx"), THREADS)
    else:
        model = generated(name, folder)
        if runtime == "native":
            set_threads()
            model = model.fork("native")
        model = model.session(capacity=CACHED + STEPS)
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
    call = opened(runtime, name, folder, inputs(name))
    start = time.perf_counter()
    np.save(folder / f"{name}-{runtime}.npy", np.asarray(call()))
    first = time.perf_counter() - start
    for _ in range(SETTLING if name == "llama_step" else 0):
        call()
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
    model = getattr(call, "model", None)
    by_numpy = runtime == "native" and model is not None and model.chosen == "numpy"
    beyond = max(first - best, 0.0)  # the first call computes, too
    found = {"ms": best * 1e3, "first s": beyond, "peak MB": peak_memory(), "by NumPy": float(by_numpy)}
    print(json.dumps(found))


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


def runtimes(name: str, torch: str | None) -> list[str]:
    """Those that run a network here."""
    found = ["emberlet", "onnxruntime"]
    if find_spec("llvmlite"):
        found.insert(0, "native")
    if torch and len(SHAPES[name]) == 1 and len(SHAPES[name][0]) == 4:
        found.append("torch")
    return found


def turn(name: str, folder: Path, seconds: float, environment: dict[str, str], torch: str | None, best: Found) -> None:
    """Measure each runtime once, and keep the best."""
    for runtime in runtimes(name, torch):
        python = torch if torch and runtime == "torch" else sys.executable
        command = [python, __file__, "--child", runtime, name, str(folder), "--seconds", str(seconds)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8")
        if done.returncode and runtime == "torch":  # _torch_graph has some operators only
            print(f"{name}, torch: {done.stderr.strip().splitlines()[-1:]}", flush=True)
            continue
        if done.returncode:
            raise RuntimeError(f"{runtime} fails on {name}: {done.stderr.strip().splitlines()[-1:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        before = best.get(runtime, found)
        best[runtime] = {k: min(v, before[k]) for k, v in found.items()}
    ours, *others = (np.load(folder / f"{name}-{runtime}.npy") for runtime in best)
    for theirs in others:
        largest = float(np.abs(theirs).max())
        if name not in LOOSE:
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4 * max(1.0, largest))
        elif np.abs(ours - theirs).mean() > 0.5 * np.abs(theirs).mean():
            raise AssertionError("the results of two runtimes are far apart")


def surroundings(threads: int, cache: Path) -> dict[str, str]:
    """The environment variables of a runtime's process. cache: where native code is kept, and Python's bytecode, which
    an installed package has."""
    from emberlet.host import blas_kernels

    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    environment |= {"OPENBLAS_NUM_THREADS": str(threads), "EMBERLET_CACHE": str(cache)}
    blas_kernels.choose(environment)
    if cache.is_absolute():
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = str(cache / "bytecode")
    return environment


def measure(name: str, seconds: float, rounds: int, environment: dict[str, str]) -> Found:
    """The best of all rounds for each runtime; the environment says how many threads they have."""
    best: Found = {}
    with tempfile.TemporaryDirectory() as folder:
        prepare(name, Path(folder))
        environment = {**environment, "EMBERLET_CACHE": str(Path(folder) / "cache")}
        for _ in range(rounds):
            turn(name, Path(folder), seconds, environment, None, best)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs=3, metavar=("RUNTIME", "NETWORK", "FOLDER"))
    parser.add_argument("--seconds", type=float, default=1.0, help="of each runtime on each network, a turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each runtime on each network, at most")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no second turn begins later")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS / "cpu.md", metavar="FILE")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has torch and onnx")
    parser.add_argument("--models", nargs="*", default=list(ISSUED), choices=list(SHAPES))
    options = parser.parse_args()
    if options.child:
        runtime, name, folder = options.child
        child(runtime, name, Path(folder), options.seconds)
        return 0
    end = time.monotonic() + 60 * options.minutes
    names = []
    for name in options.models:
        if why := missing(name):
            print(f"{name} is left out: {why}")
        else:
            names.append(name)
    found: dict[tuple[int, str], Found] = {}
    seconds: dict[str, float] = {}  # of generating each module, and of its first native call ever
    failed: dict[tuple[int, str], str] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for number, name, threads in itertools.product(range(options.rounds), names, options.threads):
            if number and time.monotonic() >= end:
                break
            if name not in seconds:
                seconds[name] = prepare(name, folder)
            best = found.setdefault((threads, name), {})
            try:
                turn(name, folder, options.seconds, surroundings(threads, folder / "cache"), options.torch, best)
            except (RuntimeError, AssertionError) as error:
                failed[threads, name] = str(error).strip().partition("\n")[0][:200]
                print(f"{name}: {failed[threads, name]}", flush=True)
                continue
            seconds.setdefault(f"{name}, cold", best.get("native", {}).get("first s", math.nan))
            print(f"turn {number + 1}, {threads} threads {row(name, best, seconds)}", flush=True)
            write(found, seconds, failed, options.out)
    return int(bool(failed))


BURN = (
    "Burn 0.22.1 on its CPU backend (Flex), built and run once on two cores of an AMD Zen 5, of onnxruntime's time "
    "there: digits 7.5, SqueezeNet 6 to 8, ResNet-50 4.3 to 4.5, an encoder (6 layers, 768 wide, 128 tokens) 2.5 to "
    "3.8."
)
HEAD = [
    "| model | native ms | onnxruntime ms | ratio | plan of NumPy calls ms | ratio | torch ms "
    "| native: compile s, cold | warm | peak MB | onnxruntime: first call s | peak MB | NumPy: compile s | peak MB "
    "| generate s |",
    "|---" + "|---:" * 14 + "|",
]


def row(name: str, best: Found, seconds: dict[str, float]) -> str:
    """A line of the table."""
    nothing = dict.fromkeys(("ms", "first s", "peak MB"), math.nan)
    native, plain, theirs, torch = (best.get(k, nothing) for k in ("native", "emberlet", "onnxruntime", "torch"))
    ms = [native["ms"], theirs["ms"], native["ms"] / theirs["ms"], plain["ms"], plain["ms"] / theirs["ms"], torch["ms"]]
    times = [f"{x:.3g}" if n not in (2, 4) else f"{x:.2f}" for n, x in enumerate(ms)]
    times[0] += " (NumPy)" * bool(native.get("by NumPy"))
    rest = [f"{seconds[f'{name}, cold']:.2f}", f"{native['first s']:.2f}", f"{native['peak MB']:.0f}"]
    rest += [f"{theirs['first s']:.2f}", f"{theirs['peak MB']:.0f}"]
    rest += [f"{plain['first s']:.2f}", f"{plain['peak MB']:.0f}", f"{seconds[name]:.2f}"]
    return f"| {name} | " + " | ".join("–" if x == "nan" else x for x in times + rest) + " |"


def products(environment: dict[str, str]) -> str:
    """What multiplies in such a process: NumPy's BLAS and its kernels."""
    code = "from emberlet.host import blas_kernels; import numpy; print(blas_kernels.summary())"
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout.strip()


def summary(lines: list[str]) -> str:
    """The geometric mean of the native ratios, and which are above 1.3."""
    ratios = {line.split("|")[1].strip(): line.split("|")[4].strip() for line in lines}
    known = {name: float(text) for name, text in ratios.items() if text != "–"}
    if not known:
        return ""
    mean = math.exp(sum(map(math.log, known.values())) / len(known))
    above = ", ".join(f"{name} {ratio:.2f}" for name, ratio in known.items() if ratio > 1.3)
    return f"Native, of onnxruntime's time: {mean:.2f} (geometric mean of {len(known)}); above 1.3: {above or 'none'}."


def write(
    found: dict[tuple[int, str], Found], seconds: dict[str, float], failed: dict[tuple[int, str], str], path: Path
) -> None:
    """Write the tables. Rows that were not measured stay unchanged."""
    import onnxruntime

    about = (
        f"{processor()}, Python {platform.python_version()}, NumPy {np.__version__} "
        f"({products(surroundings(1, Path('off')))}), onnxruntime {onnxruntime.__version__}; load of the machine when "
        f"it was written: {os.getloadavg()[0]:.1f}. Milliseconds a call, the best of many, with tensors on NumPy; "
        "memory is the process's. Native: `model.compile()`, by NumPy where it says so, since the model looks at "
        "values. Compile, and first call: what the first call of a loaded model takes beyond a later one; "
        "native cold, and warm with the code of an earlier process. minilm: 6 layers, 384 wide, 128 tokens; "
        f"llama_step: a token behind {CACHED} others. A dash: not measured. {BURN} "
        "`python3 dev.py bench cpu --minutes 15`, with "
        "`--torch PYTHON` for torch"
    )
    before = path.read_text(encoding="utf-8").split("\n## ") if path.is_file() else []
    tables = {}
    for part in before[1:]:
        if HEAD[0] in part:
            lines = part.splitlines()
            tables[int(lines[0].split()[0])] = {
                line.split("|")[1].strip(): line for line in lines if line.startswith("| ") and line != HEAD[0]
            }
    text = f"# Models on the CPU\n\n{about}\n"
    for threads in sorted({t for t, _ in found} | set(tables)):
        rows = tables.get(threads, {})
        rows |= {n: row(n, best, seconds) for (t, n), best in found.items() if t == threads and (t, n) not in failed}
        lines = [rows[name] for name in SHAPES if name in rows]
        text += f"\n## {threads} thread{'s' * (threads > 1)}\n\n"
        text += "Processor time. " * (threads == 1) + summary(lines) + "\n\n" + "\n".join([*HEAD, *lines]) + "\n"
        text += "".join(f"\n{name}: {why}\n" for (t, name), why in failed.items() if t == threads)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def processor() -> str:
    """The processor's name."""
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in said.splitlines() if line.startswith("model name")), "")


if __name__ == "__main__":
    sys.exit(main())
