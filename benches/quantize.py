"""Quantized models beside onnxruntime's quantizers and runtime: size, agreement with the float model, time.

digits (labels), the wake word of examples/micro_wake_word, small vision networks (a residual network whose scores vary
over the images, a MobileNet, a vision transformer, a U-Net by its pixels), SqueezeNet, a MobileNetV3 and ResNet-50
(weights drawn at random, images too: the float model's classes are the labels), a transformer encoder, a language model
of 15 million parameters on a prompt, and silero where a folder of models lies beside the checkout. Models are
calibrated on some of the samples and compared on the others.

emberlet: weights in 8 and in 4 bits (a scale for 32 weights; GPTQ for small models), and 8 bits with activations.
onnxruntime: `quantize_static` with a scale for each channel; for the language model `quantize_dynamic`, and MatMulNBits
with 4 bits. emberlet quantizes the language model and silero by the range of each call, too; onnxruntime leaves silero
in float, whose layers lie in branches.
emberlet runs on the fastest way of this machine's processor that is installed: native, WebAssembly or NumPy. A second
table compares its own float and int8 on each backend; --gpu writes that of a real GPU alone.

Both take and give NumPy arrays. Each row is a process of its own, with one thread and with two (on NumPy two
processes), and so is each backend of the second table; the least time of a call counts. The rows of a model are
measured in turns: a shared machine takes half as long again for seconds, which would be a row's whole measurement. What
takes longer than --limit seconds, or fails, is a dash with its reason below. Quantized models stay in .cache/quantize,
under a digest of the float model, its samples and the sources that quantize. --floor writes how fast int8 can be on
NumPy, and is, into docs/quantization.md (_quantize_floor.py), --ranges how much each method of calibration keeps
(_quantize_ranges.py), --awq what AWQ keeps of small transformers (_quantize_awq.py).
Writes benches/results/quantize.md; rows of models that are not measured stay. Its own processes run it with `--child`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import logging
import math
import os
import platform
import queue
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import _quantize_awq
import _quantize_floor
import _quantize_ranges
import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
RESULTS = ROOT / "benches" / "results" / "quantize.md"
SHARED = ROOT.parent / "shared" / "models"
MODELS = ROOT / "tests" / "models"
THREADS = (1, 2)
TURNS = 10
CACHE = ROOT / ".cache" / "quantize"
QUANTIZING = ("codegen", "core/functional/quantized", "core/host/cli/quantize", "core/host/quantization", "core/nn",
              "core/store")  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "emberlet float": {},
    "emberlet int8": {"bits": 8, "activations": True},
    "emberlet int8 weights": {"bits": 8},
    "emberlet int4 weights": {"bits": 4, "level": 32, "method": "gptq"},
}
HEAD = (
    f"| model | backend | {' | '.join(kind.removeprefix('emberlet ') for kind in OPTIONS)} | int8 / float |",
    f"|---|---|{'---:|' * (len(OPTIONS) + 1)}",
)
FLAGS = ("language", "dynamic", "large")  # of a Case
Arrays = Mapping[str, NDArray[Any]]


class Case(NamedTuple):
    """A model as ONNX, samples of its inputs (a row of the arrays with axes each), and their labels, None for the float
    model's. calibrating: how many samples are calibrated on, 0 for half; the others are compared. language: whether it
    is a language model; dynamic: whether activations are quantized by the range of each call. large: whether its
    weights of 4 bits are rounded to the nearest."""

    model: Any
    samples: Arrays
    labels: NDArray[Any] | None = None
    calibrating: int = 0
    language: bool = False
    dynamic: bool = False
    large: bool = False

    @property
    def split(self) -> int:
        """The number of the first sample that is compared."""
        return self.calibrating or max(len(x) for x in self.samples.values()) // 2


def digits() -> Case:
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as held:
        images = (held["images"] / 16).astype(np.float32)[:, None]
        return Case(ROOT / "examples" / "digits" / "digits.onnx", {"image": images}, held["labels"], 100)


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
    return images(model, tuple(shape[1:]), 64)._replace(large=True)


def small(name: str) -> Case:
    with np.load(next((MODELS / name).glob("case*.npz"))) as held:
        shape = next(held[key].shape for key in held.files if key.startswith("in_"))
    return images(MODELS / name / "model.onnx", shape[1:], 1032)._replace(calibrating=32)


def residual() -> Case:
    import onnx

    from tools.networks.varied_classes import varied

    case = small("residual_cnn")
    return case._replace(model=varied(onnx.load(case.model), case.samples[""][: case.split]))


def encoder() -> Case:
    from _gpu_models import encoder as made

    return images(made(6, 384, 12, 128), (128, 384), 8)


def llama() -> Case:
    from tools.networks.decoder import Sizes, decoder

    sizes = Sizes()
    draw = np.random.default_rng(0)
    empty = np.zeros((96, sizes.heads, 0, sizes.width // sizes.heads), np.float32)
    caches = {f"past_key_values.{n}.{what}": empty for n in range(sizes.layers) for what in ("key", "value")}
    tokens = draw.integers(0, sizes.words, (96, 32))
    return Case(decoder(sizes), {"tokens": tokens, **caches}, calibrating=64, language=True, dynamic=True)


def silero() -> Case:
    import wave

    with wave.open(str(SHARED / "speech_16k_10s.wav")) as file:
        sound = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    windows = np.stack([sound[at : at + 576] for at in range(0, len(sound) - 576, 2048)])[:64]
    states = np.zeros((len(windows), 2, 1, 128), np.float32)
    samples = {"input": windows[:, None], "state": states, "sr": np.full(len(windows), 16000)}
    return Case(SHARED / "silero_vad.onnx", samples, dynamic=True)  # all of it lies in branches, without ranges


CASES: dict[str, Callable[[], Case]] = {
    "digits": digits,
    "wake word": wake_word,
    "residual_cnn": residual,
    "mobile_cnn": lambda: small("mobile_cnn"),
    "vit": lambda: small("vit"),
    "unet": lambda: small("unet"),
    "squeezenet": lambda: images(network("squeezenet"), (3, 224, 224), 16)._replace(large=True),
    "mobilenetv3": mobilenet,
    "resnet50": lambda: images(network("resnet50"), (3, 224, 224), 4)._replace(large=True),
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


def save(name: str, case: Case) -> Path:
    """Write the float model and the samples into a folder of their own, unless they are there; returns it."""
    import onnx

    model = onnx.load(case.model) if isinstance(case.model, Path) else case.model
    model.ir_version = max(model.ir_version, 4)  # before, initializers were inputs, too, which SqueezeNet's are not
    data = model.SerializeToString()
    digest = hashlib.sha256(data)
    names = [i.name for i in model.graph.input if i.name not in {t.name for t in model.graph.initializer}]
    samples = {(n or names[0]): x for n, x in case.samples.items()}
    for n, x in samples.items():
        digest.update(n.encode() + np.ascontiguousarray(x).tobytes())
    for file in sorted(f for folder in QUANTIZING for f in (ROOT / folder).rglob("*.py")):
        digest.update(file.read_bytes())
    digest.update(Path(__file__).read_bytes())
    folder = CACHE / f"{name.replace(' ', '_')}-{digest.hexdigest()[:16]}"
    for old in CACHE.glob(f"{name.replace(' ', '_')}-*"):
        if old != folder:
            shutil.rmtree(old)
    if not (folder / "samples.npz").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "float.onnx").write_bytes(data)
        np.savez(folder / "compared.npz", **{n: x[case.split :] for n, x in samples.items()})
        np.savez(folder / "samples.npz", **{n: x[: case.split] for n, x in samples.items()})
    return folder


def kinds(case: Case) -> list[str]:
    """The rows of a model."""
    return ["onnxruntime float", "onnxruntime int8", *(["onnxruntime int4"] if case.language else []), *OPTIONS]


def prepare(kind: str, folder: Path, case: Case) -> None:
    """Write the quantized model of a row, unless it is there."""
    if kind == "onnxruntime float":
        return
    who, _, what = kind.partition(" ")
    target = folder / (f"{what}.onnx" if who == "onnxruntime" else kind.replace(" ", "_"))
    if target.exists():
        return
    draft = folder / f"draft-{os.getpid()}-{target.name}"
    with np.load(folder / "samples.npz") as held:
        samples = dict(held)
    try:
        if who == "onnxruntime":
            theirs(what, folder / "float.onnx", draft, rows(Case(None, samples)), case.language)
        else:
            chosen = dict(OPTIONS[kind])
            if case.large:
                chosen.pop("method", None)
            ours(folder / "float.onnx", draft, samples, chosen, case.dynamic)
        draft.replace(target)
    finally:
        if draft.is_dir():
            shutil.rmtree(draft)
        draft.unlink(missing_ok=True)


def ours(
    path: Path, folder: Path, samples: Arrays, options: dict[str, Any], dynamic: bool, method: str = "minmax"
) -> None:
    """Write a quantized module, or the float one without options. method: by which activations are calibrated."""
    from emberlet.codegen import generate
    from emberlet.codegen.quantized import writing
    from emberlet.host.cli.quantize.models import Source
    from emberlet.host.cli.quantize.rewritten import Dynamic, Static
    from emberlet.host.cli.quantize.samples import fitted

    folder.mkdir()
    if not options:
        generate(path, folder, name="model")
        return
    chosen = dict(options)
    activations = chosen.pop("activations", False)

    def fit(inputs: Any) -> Any:
        return fitted(dict(samples), inputs, {})

    if activations and dynamic:
        source: Source = Dynamic(str(path), "model")
    elif activations:
        source = Static(str(path), "model", fit, method, 99.99, quiet)
    else:
        source = Source(str(path), "model")
    scheme = writing.Scheme(**chosen)
    source.choose(scheme, False, fit(source.inputs), quiet)
    model, text, more = source.final(scheme)
    writing.write(folder, "model", text, model, {}, more)


def quiet(_: str) -> None:
    pass


def theirs(what: str, path: Path, target: Path, calls: list[dict[str, NDArray[Any]]], language: bool) -> None:
    """Write the model that onnxruntime quantizes."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static

    left = list(calls)

    class Rows(CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Any] | None:
            return left.pop() if left else None

    if what == "int4":
        import onnx

        from tools.networks.decoder import decoder

        onnx.save(decoder(bits=4), target)
    elif language:
        quantize_dynamic(str(path), str(target), per_channel=True, weight_type=QuantType.QInt8)
    else:
        import onnx

        model = onnx.load(path)
        if max(o.version for o in model.opset_import if not o.domain) < 13:  # without scales for each channel
            path = target.with_suffix(".13.onnx")
            onnx.save(onnx.version_converter.convert_version(model, 13), path)
        # Its kernels are fastest with unsigned activations.
        kinds = {"weight_type": QuantType.QInt8, "activation_type": QuantType.QUInt8}
        quantize_static(str(path), str(target), Rows(), per_channel=True, **kinds)
        target.with_suffix(".13.onnx").unlink(missing_ok=True)


def session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def fastest() -> str:
    """The fastest backend on the processor that is installed."""
    return "native" if find_spec("llvmlite") else "wasm" if find_spec("wasmtime") else "numpy"


def opened(kind: str, folder: Path, threads: int, backend: str) -> tuple[Callable[[dict[str, Any]], Any], int, str]:
    """(a function from a sample's inputs to the first output, bytes of the file of its weights, the backend)"""
    who, _, what = kind.partition(" ")
    if who == "onnxruntime":
        path = folder / f"{what}.onnx"
        found = session(path, threads)
        return (lambda given: found.run(None, given)[0]), path.stat().st_size, ""
    from emberlet.host.cli.model import load

    if backend == "native":
        from emberlet.wgpu_backend.llvm import set_threads
    elif backend == "wasm":
        from emberlet.wgpu_backend.wasm import set_threads
    if backend in ("native", "wasm"):
        set_threads(threads)
    at = folder / kind.replace(" ", "_")
    loaded = load(str(at / "model.py"), "numpy")
    if backend == "python":
        call: Any = loaded.model.fork(backend)
    else:
        call = loaded.model.fork(backend).compile(backend=backend)
    names = [i.name for i in loaded.inputs]
    with np.load(folder / "samples.npz") as held:
        first = rows(Case(None, dict(held)))[0]
    call(*[first[name] for name in names])
    if getattr(call, "cut", None) is not None:  # no plan there: NumPy takes inputs for constants where they decide
        backend, call = "numpy", loaded.model.compile(backend="numpy")

    def run(given: dict[str, Any]) -> Any:
        result = call(*[given[name] for name in names])
        return np.asarray(result[0] if isinstance(result, tuple) else result)

    return run, (at / "model.bpk").stat().st_size, backend


def least(run: Callable[[dict[str, Any]], Any], given: dict[str, Any], seconds: float) -> float:
    """The least milliseconds of a call."""
    best, end = float("inf"), time.perf_counter() + seconds
    run(given)
    while time.perf_counter() < end or best == float("inf"):
        begin = time.perf_counter()
        run(given)
        best = min(best, time.perf_counter() - begin)
    return best * 1e3


def in_turns(
    runs: Mapping[str, Callable[[dict[str, Any]], Any]], given: dict[str, Any], seconds: float
) -> dict[str, float]:
    """The least milliseconds of a call of each, measured in turns for as many seconds each."""
    found = dict.fromkeys(runs, float("inf"))
    for _ in range(TURNS):
        for kind, run in runs.items():
            found[kind] = min(found[kind], least(run, given, seconds / TURNS))
    return found


def beside(
    kinds: list[str], folder: Path, case: Case, calls: list[dict[str, Any]], options: argparse.Namespace
) -> None:
    """Print each model's least time on one backend as JSON, all measured in turns."""
    runs: dict[str, Callable[[dict[str, Any]], Any]] = {}
    said: dict[str, dict[str, Any]] = {}
    for kind in kinds:
        said[kind] = {"kind": kind, "threads": THREADS[0]}
        try:
            prepare(kind, folder, case)
            runs[kind], size, where = opened(kind, folder, THREADS[0], options.on)
            said[kind].update(size=size, backend=where)
        except Exception as error:
            said[kind]["error"] = f"{type(error).__name__}: {error}"[:300]
    for kind, ms in in_turns(runs, calls[0], options.seconds).items():
        said[kind]["ms"] = ms
    for line in said.values():
        print(json.dumps(line), flush=True)


def child(kinds: list[str], folder: Path, threads: list[int], options: argparse.Namespace) -> None:
    """Print each model's size as JSON, a line for each number of threads, and write the outputs; then print the least
    time of a call with each number of threads that is read. On NumPy, whose threads are the process's, only the first
    number is measured."""
    case = Case(None, {}, **{flag: getattr(options, flag) for flag in FLAGS})
    with np.load(folder / "compared.npz") as held:
        calls = rows(Case(None, dict(held)))
    if options.on == "floor":
        print(json.dumps({"row": _quantize_floor.row(kinds[0], folder, calls[0], options.seconds)}))
        return
    if options.on:
        beside(kinds, folder, case, calls, options)
        return
    (kind,) = kinds
    runs: dict[int, Callable[[dict[str, Any]], Any]] = {}
    for count in threads:
        said: dict[str, Any] = {"threads": count}
        try:
            prepare(kind, folder, case)
            run, size, where = opened(kind, folder, count, fastest())
            if where == "numpy" and count != threads[0]:
                continue
            if count == THREADS[0]:
                np.save(folder / (kind.replace(" ", "_") + ".npy"), np.stack([run(given) for given in calls]))
            runs[count] = run
            said.update(size=size, backend=where)
        except Exception as error:
            said["error"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(said), flush=True)
    print(json.dumps({"opened": kind}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"ms": least(runs[int(line)], calls[0], options.seconds / TURNS)}), flush=True)


def environment(threads: int) -> dict[str, str]:
    """That of a process whose NumPy has so many threads."""
    return {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}


class Row:
    """A process that measures a model when it is asked. found: what it said of each number of threads, with the least
    time; reason: why there is nothing of the first one."""

    def __init__(self, words: list[str], threads: Sequence[int], limit: float) -> None:
        self.limit = limit
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, __file__, *words], env=environment(threads[0]), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8",
        )  # fmt: skip
        self._lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self.found: dict[int, dict[str, Any]] = {}
        end = time.perf_counter() + limit
        said = self._next(limit)
        while "threads" in said:
            self.found[said["threads"]] = said
            said = self._next(max(0.0, end - time.perf_counter()))
        self.reason = self.found.get(threads[0], {"error": said.get("error", "")}).get("error")
        self.found = {count: one for count, one in self.found.items() if "error" not in one}
        if "error" in said:
            self.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._lines.put(json.loads(line))
        status = self._process.wait()
        self._errors.seek(0)
        self._lines.put(
            {"error": (self._errors.read().strip().splitlines() or [f"ended with status {status}"])[-1][:300]}
        )

    def _next(self, seconds: float) -> dict[str, Any]:
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            return {"error": f"took more than {self.limit:.0f} s"}

    def turn(self) -> None:
        """Measure with each number of threads."""
        for one in self.found.values():
            if self._process.poll() is None and self._process.stdin is not None:
                print(one["threads"], file=self._process.stdin, flush=True)
                said = self._next(self.limit)
                if "ms" not in said:
                    self.close()
                one["ms"] = min(one.get("ms", math.inf), said.get("ms", math.inf))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def process(words: list[str], threads: int, limit: float) -> tuple[list[dict[str, Any]], str]:
    """What a process prints, and why there is no more."""
    reason, said = "", ""
    try:
        ended = subprocess.run(
            [sys.executable, __file__, *words], env=environment(threads), capture_output=True, text=True,
            encoding="utf-8", check=False, timeout=limit,
        )  # fmt: skip
        said = ended.stdout
        if ended.returncode:
            reason = (ended.stderr.strip().splitlines() or [f"ended with status {ended.returncode}"])[-1][:300]
    except subprocess.TimeoutExpired as error:
        reason = f"took more than {limit:.0f} s"
        said = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    return [json.loads(line) for line in said.splitlines() if line.startswith("{") and line.endswith("}")], reason


class Measured(NamedTuple):
    """The lines of a model in both tables, and the reasons of dashes."""

    lines: list[str]
    ratios: list[str]
    notes: list[str]


def measured(name: str, options: argparse.Namespace, share: float) -> Measured:
    """One model. share: seconds after which no more processes are started."""
    end = time.perf_counter() + share
    case = CASES[name]()
    folder = save(name, case)
    labels = None if case.labels is None else case.labels[case.split :]
    out = Measured([], [], [])
    named = [f"--{flag}" for flag in FLAGS if getattr(case, flag)]
    flags = ["--seconds", str(options.seconds), *named]

    def ask(wanted: list[str], threads: Sequence[int], where: str, *more: str) -> dict[tuple[str, int], dict[str, Any]]:
        """What is measured of (kind, threads), in one process; notes say what is not."""
        left = end - time.perf_counter()
        words = ["--child", ",".join(wanted), str(folder), ",".join(map(str, threads)), *flags, *more]
        limit = min(options.limit * len(wanted), left + 20)
        said, reason = process(words, threads[0], limit) if left >= 1 else ([], "no time was left")
        found = {(r["kind"], r["threads"]): r for r in said}
        reasons: dict[str, list[str]] = {}
        for kind in wanted:
            why = found.get((kind, threads[0]), {"error": reason}).get("error")
            if why is not None:
                reasons.setdefault(why, []).append(kind)
        for why, of in reasons.items():
            out.notes.append(f"- {name}, {', '.join(of)}{where}: {why}")
            print(out.notes[-1], flush=True)
        return {key: r for key, r in found.items() if "error" not in r}

    measured_rows = [] if options.gpu else in_rows(kinds(case), folder, flags, options, end)
    for kind, found, reason in measured_rows:
        if reason:
            out.notes.append(f"- {name}, {kind}: {reason}")
            print(out.notes[-1], flush=True)
        out.lines.append(_line(name, kind, folder, found, labels))
        print(out.lines[-1], flush=True)
    ours = list(OPTIONS)
    for backend in ["wgpu"] if options.gpu else backends(name):
        found = ask(ours, THREADS[:1], f" on {backend}", "--on", backend)
        cells = [_time(found.get((kind, 1)), backend) for kind in OPTIONS]
        out.ratios.append(f"| {' | '.join([name, backend, *cells, _ratio(cells)])} |")
        print(out.ratios[-1], flush=True)
    return out


def in_rows(
    wanted: list[str], folder: Path, flags: list[str], options: argparse.Namespace, end: float
) -> list[tuple[str, dict[int, dict[str, Any]], str]]:
    """(kind, what is measured with each number of threads, why it is not) of the rows of a model, measured in turns."""
    started: list[tuple[str, list[Row]]] = []
    try:
        for kind in wanted:
            of_kind: list[Row] = []
            started.append((kind, of_kind))
            missing: Sequence[int] = THREADS
            while missing and time.perf_counter() < end and not (of_kind and of_kind[-1].reason):
                words = ["--child", kind, str(folder), ",".join(map(str, missing)), *flags]
                of_kind.append(Row(words, missing, min(options.limit, end + 20 - time.perf_counter())))
                missing = [t for t in missing[1:] if t not in of_kind[-1].found]
        for _ in range(TURNS):
            for _, of_kind in started:
                for row in of_kind:
                    row.turn()
    finally:
        for _, of_kind in started:
            for row in of_kind:
                row.close()
    out = []
    for kind, of_kind in started:
        found = {t: one for row in of_kind for t, one in row.found.items() if one.get("ms", math.inf) < math.inf}
        reasons = [row.reason for row in of_kind if row.reason] if of_kind else ["no time was left"]
        out.append((kind, found, reasons[0] if reasons else ""))
    return out


def _time(said: dict[str, Any] | None, backend: str) -> str:
    """Milliseconds; a dash where there are none, or where another backend computed."""
    return "–" if said is None or said["backend"] not in ("", backend) else f"{said['ms']:.3f}"


def _ratio(cells: Sequence[str]) -> str:
    """int8's time, of float's."""
    return "–" if "–" in cells[:2] else f"{float(cells[1]) / float(cells[0]):.2f}"


def _line(name: str, kind: str, folder: Path, found: dict[int, dict[str, Any]], labels: Any) -> str:
    """A row of the first table. found: what was measured with each number of threads."""
    from emberlet.host.quantization.comparison import classes, compare

    times = [f"{found[t]['ms']:.3f}" if t in found else "–" for t in THREADS]
    size, where, figures = "–", "", ["–"] * 3
    if THREADS[0] in found:
        first = found[THREADS[0]]
        size = f"{first['size'] / 1e3:.1f}"
        where = "" if first["backend"] in ("", fastest()) else f" ({first['backend']})"
        both = [folder / (k.replace(" ", "_") + ".npy") for k in ("onnxruntime float", kind)]
        if all(f.is_file() for f in both):
            real, other = (_flat(np.load(f)) for f in both)
            c = compare({"y": real}, {"y": other}, labels)
            same = "–"
            if len(np.unique(classes(real))) > 1:  # one class for all says nothing
                hits = (classes(real) == classes(other)).reshape(len(real), -1).mean(1)
                same = f"{c.same_best:.2%} ± {hits.std() / len(hits) ** 0.5:.2%}"
            figures = ["–" if c.accuracy is None else f"{c.accuracy:.2%}", same, f"{c.rms:.3%}"]
    return f"| {' | '.join([name, kind + where, size, *figures, *times])} |"


def backends(name: str) -> list[str]:
    """Where a model's float and int8 are compared, of what is installed; plain Python for small models only."""
    ways = ("native", "wasm", "numpy", "wgpu", "python")
    found = dict.fromkeys(CASES, ways[:3])
    found |= dict.fromkeys(("squeezenet", "mobilenetv3", "vit", "silero"), ways[:4])
    found |= dict.fromkeys(("digits", "wake word", "mobile_cnn"), ways)
    needs = {"native": "llvmlite", "wasm": "wasmtime", "numpy": "numpy", "wgpu": "wgpu", "python": "numpy"}
    return [backend for backend in found.get(name, ()) if find_spec(needs[backend])]


def _flat(x: NDArray[Any]) -> NDArray[Any]:
    """Outputs (samples, 1, …) without the batch axis, and without spatial axes of 1; of images, the channels last."""
    x = x[:, 0] if x.ndim > 2 and x.shape[1] == 1 else x
    while x.ndim > 2 and x.shape[-1] == 1:
        x = x[..., 0]
    return np.moveaxis(x, 1, -1) if x.ndim == 4 else x


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--minutes", type=float, default=8, metavar="M", help="for everything, at most (default: 8)")
    parser.add_argument(
        "--seconds", type=float, default=0.3, metavar="S", help="of calls in each process (0.3), in turns"
    )
    parser.add_argument("--limit", type=float, default=90, metavar="S", help="of each process, at most (default: 90)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead")
    parser.add_argument("--floor", action="store_true", help="only the floor on NumPy; writes docs/quantization.md")
    parser.add_argument(
        "--ranges", action="store_true", help="only methods of calibration; writes docs/quantization.md"
    )
    parser.add_argument("--awq", action="store_true", help="only AWQ; writes docs/quantization.md")
    parser.add_argument("--gpu", action="store_true", help="only emberlet's models on the GPU; writes quantize-NAME.md")
    for flag in FLAGS:
        parser.add_argument(f"--{flag}", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--on", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    logging.disable(logging.WARNING)  # onnxruntime recommends preprocessing
    if options.child:
        wanted, folder, threads = options.child
        child(wanted.split(","), Path(folder), [int(n) for n in threads.split(",")], options)
        return 0
    chosen = options.models or [name for name in CASES if name != "silero" or SHARED.is_dir()]
    for name in chosen:
        if name not in CASES:
            parser.error(f"there is no model {name!r}; there are {', '.join(CASES)}")
    if options.awq:
        _quantize_awq.write(options.out or ROOT / "docs" / "quantization.md")
        return 0
    if options.floor or options.ranges:
        (floor if options.floor else ranges)(chosen, options)
        return 0
    path = options.out or (gpu_page() if options.gpu else RESULTS)
    load = os.getloadavg()[0]
    end = time.perf_counter() + options.minutes * 60 - 20
    found: dict[str, Measured] = {}
    for k, name in enumerate(chosen):
        left = max(0.0, end - time.perf_counter())
        found[name] = measured(name, options, min(left, left / (len(chosen) - k) * 2.5))
        (write_gpu if options.gpu else write)(path, found, load)
    return 0


def floor(chosen: list[str], options: argparse.Namespace) -> None:
    """Write the table of what int8 takes on NumPy at least: one thread, each model in a process of its own."""
    load, lines = os.getloadavg()[0], []
    for name in chosen:
        case = CASES[name]()
        folder = save(name, case)
        for kind in ("emberlet float", "emberlet int8"):
            prepare(kind, folder, case)
        named = [f"--{flag}" for flag in FLAGS if getattr(case, flag)]
        words = ["--child", name, str(folder), "1", "--on", "floor", "--seconds", str(options.seconds), *named]
        found, reason = process(words, THREADS[0], options.limit)
        lines += [said["row"] for said in found]
        print(lines[-1] if found else f"{name}: {reason}", flush=True)
    said = (
        f"One thread, Python {platform.python_version()}, NumPy {np.__version__}; load of the machine when it began: "
        f"{load:.1f}."
    )
    _quantize_floor.write(options.out or ROOT / "docs" / "quantization.md", lines, said)


def ranges(chosen: list[str], options: argparse.Namespace) -> None:
    """Write the table of what each method of calibration keeps of models whose activations have ranges."""
    from emberlet.host.quantization.calibration import METHODS

    for name in chosen:
        case = CASES[name]()
        if case.dynamic:
            continue
        folder = save(name, case)
        with np.load(folder / "compared.npz") as held:
            calls = rows(Case(None, dict(held)))
        with np.load(folder / "samples.npz") as held:
            samples = dict(held)
        prepare("emberlet float", folder, case)
        wanted = _quantize_ranges.outputs(opened("emberlet float", folder, 1, fastest())[0], calls, _flat)
        found = {}
        for method in METHODS:
            kind = f"emberlet {method}"
            at = folder / kind.replace(" ", "_")
            if not at.exists():
                ours(folder / "float.onnx", at, samples, {"bits": 8, "activations": True}, False, method)
            run = opened(kind, folder, 1, fastest())[0]
            found[method] = _quantize_ranges.Outputs(wanted, _quantize_ranges.outputs(run, calls, _flat))
            shutil.rmtree(at)
        line = _quantize_ranges.row(name, found)
        print(line, flush=True)
        _quantize_ranges.write(options.out or ROOT / "docs" / "quantization.md", METHODS, [line])


def gpu_page() -> Path:
    """The page of results with this GPU's name."""
    from _gpu_device import results_page
    from emberlet.backend import get_backend

    return results_page("quantize", get_backend("wgpu").device)


def write_gpu(path: Path, found: dict[str, Measured], load: float) -> None:
    """Write the page of a GPU, of the models that were measured."""
    from emberlet.backend import get_backend

    device: Any = get_backend("wgpu").device
    info = device.raw.adapter_info
    lines = [
        f"# Quantized models on {info['device']}",
        "",
        f"`python3 dev.py bench quantize --gpu`: one sample a call, from arrays to an array; the least time of all "
        f"calls, the models in turns, ms. Driver {info['description']}. {os.cpu_count()} CPUs, Python "
        f"{platform.python_version()}; load of the machine when it began: {load:.1f}.",
        "",
        *HEAD,
        *(line for one in found.values() for line in one.ratios),
    ]
    notes = [note for one in found.values() for note in one.notes]
    lines += ["", "Not measured:", "", *notes] if notes else []
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write(path: Path, found: dict[str, Measured], load: float) -> None:
    """Write the page, with the old rows of models that were not measured."""
    old = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    at = next((i for i, line in enumerate(old) if line.startswith("| model | backend |")), len(old))

    def kept(name: str, lines: list[str], start: str) -> list[str]:
        return [line for line in lines if line.startswith(f"{start} {name}{' |' if start == '|' else ','}")]

    lines = [
        "# Quantized models",
        "",
        f"`python3 dev.py bench quantize`: one sample a call; the least time of all calls. emberlet on {fastest()}, or "
        "where that has no plan on the backend that the row names. "
        "Accuracy by labels, the same class as the float model's and its standard error (a dash where that names one "
        "class for all samples), "
        "and the difference (root mean square) relative to the range of its outputs, on samples that no model was "
        "calibrated on. Sizes: of the ONNX file, or of "
        f"emberlet's weights. {os.cpu_count()} CPUs, Python {platform.python_version()}; load of the machine when it "
        f"began: {load:.1f}. Above 1, times say little.",
        "",
        "| model | | kB | accuracy | same class | difference | ms, 1 thread | ms, 2 threads |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in CASES:
        lines += found[name].lines if name in found else kept(name, old[:at], "|")
    lines += ["", "emberlet's own models on each backend, one thread, in turns, ms:", "", *HEAD]
    for name in CASES:
        lines += found[name].ratios if name in found else kept(name, old[at:], "|")
    notes = [n for name in CASES for n in (found[name].notes if name in found else kept(name, old[at:], "-"))]
    lines += ["", "Not measured:", "", *notes] if notes else []
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
