"""Scoring data sets on Ray compared with a plain loop over the same batches: speed, memory, processes that are killed.

BLAS has one thread everywhere, and all processes share this machine. The plain loop, one worker and two workers take
turns, because the load of other programs changes; tables have the fastest of each. A worker's time is from the start of
its first batch to the end of its last, so it excludes starting processes, which is shown separately. Processor time is
the worker's own, which other programs disturb least. Every row's result is compared with the plain loop's. Parts that
are not measured keep their earlier results. Writes benches/results/batch.md. The benchmark's own processes run it with
`--child`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import runpy
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "batch.md"
FOUND = RESULTS.with_suffix(".json")
PARTS = ("speeds", "runs", "kills", "memory")
BATCH = 256
STORE = 300 << 20
MNIST = """<ir_version: 10, opset_import: ["": 21]>
mnist (float[batch,1,28,28] image) => (float[batch,10] scores) {
    a = Conv<kernel_shape=[5,5], pads=[2,2,2,2]>(image, w1, b1)
    b = Relu(a)
    c = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b)
    d = Conv<kernel_shape=[5,5], pads=[2,2,2,2]>(c, w2, b2)
    e = Relu(d)
    f = MaxPool<kernel_shape=[3,3], strides=[3,3]>(e)
    g = Flatten(f)
    scores = Gemm(g, w3, b3)
}"""
WEIGHTS = {"w1": (8, 1, 5, 5), "b1": (8,), "w2": (16, 8, 5, 5), "b2": (16,), "w3": (256, 10), "b3": (10,)}
LIGHT = """<ir_version: 10, opset_import: ["": 21]>
light (float[batch,3,224,224] image) => (float[batch,3,1,1] mean) { mean = GlobalAveragePool(image) }"""


# What is scored


def models(folder: Path) -> None:
    """mnist.onnx (the layers of ONNX's mnist, its batch open), light.onnx and squeezenet.onnx; random weights."""
    import onnx
    from onnx import numpy_helper, parser

    random = np.random.default_rng(0)
    mnist = parser.parse_model(MNIST)
    for name, shape in WEIGHTS.items():
        values = random.standard_normal(shape) / np.sqrt(max(1, math.prod(shape[1:])))
        mnist.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    onnx.save(mnist, folder / "mnist.onnx")
    onnx.save(parser.parse_model(LIGHT), folder / "light.onnx")
    onnx.save(runpy.run_path(str(ROOT / "benches" / "core.py"))["network"]("squeezenet"), folder / "squeezenet.onnx")


def numbers(folder: Path, rows: int) -> None:
    """rows.parquet: pixels as bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    pixels = np.random.default_rng(1).integers(0, 256, (rows, 784), np.uint8)
    column = pa.FixedSizeListArray.from_arrays(pa.array(pixels.reshape(-1)), 784)
    parquet.write_table(
        pa.table({"id": np.arange(rows), "image": column}), folder / "rows.parquet", row_group_size=8192
    )


def pictures(folder: Path, count: int) -> None:
    """JPEG files of 320 x 240."""
    from PIL import Image

    random = np.random.default_rng(2)
    (folder / "pictures").mkdir()
    for i in range(count):
        coarse = Image.fromarray(random.integers(0, 256, (15, 20, 3), np.uint8))
        coarse.resize((320, 240), Image.Resampling.BILINEAR).save(folder / "pictures" / f"{i:05}.jpg")


# The plain loop


def loop(folder: Path) -> dict[str, float]:
    """The rows of rows.parquet through the model, batch by batch."""
    from emberlet.batch import Predictor
    from pyarrow import parquet

    predictor = Predictor(folder / "mnist.onnx", keep=["id"])
    found = []
    begin, cpu = time.perf_counter(), time.process_time()
    for batch in parquet.ParquetFile(folder / "rows.parquet").iter_batches(BATCH):
        found.append(predictor({"id": batch["id"].to_numpy(), "image": batch["image"]}))
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    np.save(folder / "scores.npy", np.concatenate([x["scores"] for x in found]))
    return {"seconds": seconds, "cpu": cpu}


def loop_over_pictures(folder: Path) -> dict[str, float]:
    from emberlet.batch import Predictor

    predictor = Predictor(
        folder / "squeezenet.onnx", inputs={"data_0": "path"}, preprocess="emberlet.batch.pictures:imagenet"
    )
    files = [str(path) for path in sorted((folder / "pictures").iterdir())]
    begin = time.perf_counter()
    found = [next(iter(predictor({"path": np.array(files[i : i + 8])}).values())) for i in range(0, len(files), 8)]
    seconds = time.perf_counter() - begin
    np.save(folder / "pictures.npy", np.concatenate(found))
    return {"seconds": seconds}


# On Ray


class Timed:
    """A Predictor that records its start, end and processor time in columns."""

    def __init__(self, model: str) -> None:
        from emberlet.batch import Predictor

        self._predictor = Predictor(model, keep=["id"])
        self._predictor({"id": np.zeros(BATCH), "image": np.zeros((BATCH, 784), np.uint8)})  # the plan
        self._cpu: float | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        begin = time.time()
        if self._cpu is None:
            self._cpu = time.process_time()
        found: dict[str, Any] = self._predictor(batch)
        rows = len(batch["id"])
        noted = {"begin": begin, "end": time.time(), "cpu": time.process_time() - self._cpu, "pid": os.getpid()}
        return {**found, **{name: np.full(rows, value) for name, value in noted.items()}}


def on_ray(folder: Path, workers: int) -> dict[str, float]:
    """The times of the workers of map_batches(Predictor) over rows.parquet. The scores are compared with the loop's."""
    import ray
    from ray.data import ActorPoolStrategy

    begin = time.perf_counter()
    data = ray.data.read_parquet(str(folder / "rows.parquet"), num_cpus=0.5)
    data = data.map_batches(
        Timed,
        fn_constructor_args=(str(folder / "mnist.onnx"),),
        batch_size=BATCH,
        compute=ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    parts = list(data.iter_batches(batch_size=None, batch_format="numpy"))
    whole = time.perf_counter() - begin
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(found["id"])
    compare(found["id"][order], found["scores"][order], np.load(folder / "scores.npy"))
    cpu = sum(found["cpu"][found["pid"] == pid].max() for pid in set(found["pid"].tolist()))
    return {"seconds": float(found["end"].max() - found["begin"].min()), "cpu": float(cpu), "whole": whole}


def compare(ids: Any, scores: Any, wanted: Any) -> None:
    """Check that every row occurs once, with the plain loop's result up to the order of additions."""
    assert np.array_equal(ids, np.arange(len(wanted))), "a row is lost or doubled"
    np.testing.assert_allclose(scores, wanted, rtol=1e-3, atol=1e-5 * np.abs(wanted).max())


def speeds(folder: Path, rounds: int) -> dict[str, Any]:
    """The plain loop, one worker and two, in turns."""
    import ray

    kept: dict[str, list[dict[str, float]]] = {"loop": [], "1": [], "2": []}
    begin = time.perf_counter()
    with started(folder):
        starting = time.perf_counter() - begin
        for _ in range(rounds):
            for name, found in kept.items():
                found.append(child("loop", folder) if name == "loop" else on_ray(folder, int(name)))
                print(f"  {name}: {json.dumps(found[-1])}", flush=True)
        del ray
    return {"rounds": kept, "starting": starting}


def made_on_the_fly(folder: Path, gigabytes: float) -> dict[str, Any]:
    """The peak memory of each kind of process, where one stage makes rows of 602 kB and the next scores them."""
    import ray
    from emberlet.batch import Predictor
    from ray.data import ActorPoolStrategy

    size = 3 * 224 * 224 * 4
    rows = int(gigabytes * 1e9 / size)

    def make(batch: dict[str, Any]) -> dict[str, Any]:
        pixels = np.empty((len(batch["id"]), 3, 224, 224), np.float32)
        pixels[:] = batch["id"].reshape(-1, 1, 1, 1)
        return {"id": batch["id"], "image": pixels}

    with started(folder), watched(folder) as peaks:
        begin = time.perf_counter()
        data = ray.data.range(rows, override_num_blocks=max(1, rows // 500)).map_batches(
            make, batch_size=16, num_cpus=0.5
        )
        data = data.map_batches(
            Predictor,
            fn_constructor_args=(str(folder / "light.onnx"),),
            fn_constructor_kwargs={"keep": ["id"]},
            batch_size=16,
            compute=ActorPoolStrategy(size=2),
            num_cpus=1,
        )
        count = total = 0
        for batch in data.iter_batches(batch_size=None):
            count += len(batch["id"])
            total += int(batch["id"].sum())
            np.testing.assert_allclose(batch["mean"].reshape(-1, 3), batch["id"][:, None].repeat(3, 1), rtol=1e-5)
        seconds = time.perf_counter() - begin
        assert (count, total) == (rows, rows * (rows - 1) // 2), "a row is lost or doubled"
    return {"rows": rows, "bytes": rows * size, "seconds": seconds, "peaks": dict(sorted(peaks.items()))}


@contextmanager
def started(folder: Path) -> Iterator[None]:
    """A cluster on this machine with two CPUs for workers and two for reading."""
    import logging

    import ray

    options = {"include_dashboard": False, "object_store_memory": STORE, "log_to_driver": False}
    ray.init(num_cpus=4, logging_level=logging.ERROR, _temp_dir=str(folder / "t"), **options)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = 8 << 20  # every worker gets a block, and several are waiting
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def watched(folder: Path) -> Iterator[dict[str, float]]:
    """Kind of process -> the largest memory of one of them in MB, with the shared memory that it touched."""
    peaks: dict[str, float] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.3):
            for pid, title in processes(folder).items():
                try:
                    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
                    peak = int(status.split("VmHWM:")[1].split()[0]) / 1000
                except (OSError, IndexError):
                    continue
                peaks[title] = max(peaks.get(title, 0.0), peak)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def processes(folder: Path) -> dict[int, str]:
    """The processes of a cluster whose files are in `folder`, and this one: number -> title."""
    lines, parents = {}, {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                lines[int(process.name)] = (
                    (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                parents[int(process.name)] = int(
                    (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
                )
            except (OSError, ValueError):
                continue
    mine = {pid for pid, line in lines.items() if str(folder / "t") in line}
    found = {os.getpid(): "driver"}
    for pid, line in lines.items():
        if parents.get(pid) in mine and line.startswith("ray::"):
            found[pid] = line.removeprefix("ray::").split(".")[0].strip()
        elif pid in mine and "/raylet" in line.split(" ")[0]:
            found[pid] = "raylet (the object store)"
    return found


# The command line, with and without kills


def score(folder: Path, *arguments: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "emberlet", "score", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=folder, env=environment(folder), text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate()
    if process.returncode:
        raise RuntimeError(err)
    found: dict[str, Any] = json.loads(out)
    return found


def whole_runs(folder: Path) -> dict[str, Any]:
    """The time of `emberlet score` on both data sets, from the start of the process to its end."""
    found = {}
    for name, model, given, options in (
        ("rows", "mnist.onnx", "rows.parquet", ["--keep", "id"]),
        ("pictures", "squeezenet.onnx", "pictures", ["--preprocess", "emberlet.batch.pictures:imagenet",
                                                     "--input", "data_0=path"]),
    ):  # fmt: skip
        out = folder / f"out-{name}"
        begin = time.perf_counter()
        said = finished(score(folder, model, given, "--out", out, "--workers", 2, "--json", *options))
        found[name] = {**said, "whole": time.perf_counter() - begin}
        check(folder, out, name)
        print(f"  {name}: {json.dumps(found[name])}", flush=True)
    return found


def check(folder: Path, out: Path, name: str) -> None:
    """Compare the rows of an output folder with the plain loop's."""
    from pyarrow import parquet

    found = parquet.read_table(out).sort_by("row_id")
    wanted = np.load(folder / ("scores.npy" if name == "rows" else "pictures.npy"))
    scores = np.array(found[found.column_names[-1]].to_pylist(), np.float32).reshape(wanted.shape)
    if name == "rows":
        compare(found["id"].to_numpy(), scores, wanted)
    else:
        compare(found["row_id"].to_numpy() >> 40, scores, wanted)


def kills(folder: Path) -> dict[str, Any]:
    """Kill a worker, and in another run the driver, when half of the rows are written."""
    (folder / "k").mkdir()
    (folder / "ray").mkdir(exist_ok=True)  # where Ray notes the address of a cluster; only `ray.init` makes it
    command = [sys.executable, __file__, "--child", "cluster", str(folder / "k")]
    cluster = subprocess.Popen(command, env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, encoding="utf-8")  # fmt: skip
    assert cluster.stdin is not None and cluster.stdout is not None
    address = cluster.stdout.readline().strip()
    found = {}
    try:
        for name in ("worker", "driver"):
            out = folder / f"out-{name}"
            arguments = ["mnist.onnx", "rows.parquet", "--out", out, "--keep", "id", "--ray", address, "--workers", 2,
                         "--rows-per-file", 2048, "--json", "--resume"]  # fmt: skip
            process = score(folder, *arguments)
            half = wait_for_half(process, Path(f"{out}.checkpoint"))
            if name == "worker":
                victims = [pid for pid, title in processes(folder / "k").items() if title.startswith("MapWorker")]
                os.kill(victims[0], signal.SIGKILL)
                said = finished(process)
            else:
                process.kill()
                process.communicate()
                said = finished(score(folder, *arguments))
            check(folder, out, "rows")
            found[name] = {"written when killed": half, **said}
            print(f"  {name}: {json.dumps(found[name])}", flush=True)
    finally:
        cluster.stdin.close()
        cluster.wait()
    return found


def wait_for_half(process: subprocess.Popen[str], checkpoint: Path) -> int:
    from pyarrow import parquet

    while process.poll() is None:
        committed = [path for path in checkpoint.glob("*.parquet") if ".pending" not in path.name]
        if len(committed) >= 20:
            return sum(parquet.read_metadata(path).num_rows for path in committed)
        time.sleep(0.02)
    raise RuntimeError(process.communicate()[1] or "the run ended before it could be killed")


def cluster(folder: Path) -> None:
    """A cluster of two worker nodes, until stdin is closed."""
    from ray.cluster_utils import Cluster

    common = {"include_dashboard": False, "object_store_memory": STORE // 3, "memory": 4 << 30}
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "temp_dir": str(folder / "t"), **common})
    for _ in range(2):
        found.add_node(num_cpus=2, **common)
    print(found.address, flush=True)
    sys.stdin.read()
    found.shutdown()


# Running all of it


def environment(folder: Path) -> dict[str, str]:
    """Environment variables: BLAS has one thread, Ray writes only to the folder and sends no usage statistics."""
    from emberlet.host import blas_kernels

    found = {k: v for k, v in os.environ.items() if not k.startswith("RAY_") and k != "OPENBLAS_CORETYPE"}
    found |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    found |= {
        "RAY_AUTH_MODE": "disabled",
        "RAY_TMPDIR": str(folder),
        "HOME": str(folder),
        "RAY_BACKEND_LOG_LEVEL": "fatal",
    }
    blas_kernels.choose(found)
    return found


def child(name: str, folder: Path, *arguments: Any) -> Any:
    """The result of a function of this file, run in its own process."""
    command = [sys.executable, __file__, "--child", name, str(folder), *map(str, arguments)]
    done = subprocess.run(
        command, env=environment(folder), check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    for line in done.stdout.splitlines()[:-1]:
        print(line, flush=True)
    return json.loads(done.stdout.splitlines()[-1])


CHILDREN: dict[str, Callable[..., Any]] = {
    "loop": loop,
    "pictures": loop_over_pictures,
    "speeds": lambda folder, rounds: speeds(folder, int(rounds)),
    "memory": lambda folder, gigabytes: made_on_the_fly(folder, float(gigabytes)),
    "cluster": cluster,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--child", nargs="+", metavar="NAME")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.child:
        name, folder, *rest = options.child
        found = CHILDREN[name](Path(folder), *rest)
        if found is not None:
            print(json.dumps(found))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="ray"))  # a short path: Ray's sockets lie below it
    try:
        print("making models and inputs", flush=True)
        models(folder)
        numbers(folder, options.rows)
        pictures(folder, options.pictures)
        child("loop", folder)  # the reference for the other results
        parts: dict[str, Callable[[], Any]] = {
            "speeds": lambda: child("speeds", folder, options.rounds),
            "runs": lambda: {"plain": child("pictures", folder), **whole_runs(folder)},
            "kills": lambda: kills(folder),
            "memory": lambda: child("memory", folder, options.gigabytes),
        }
        for name in options.parts:
            begin = os.getloadavg()[0]
            found = parts[name]()
            load = sorted((begin, os.getloadavg()[0]))
            write({**measured(), name: {**found, "load": f"{load[0]:.0f} to {load[1]:.0f}"}})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(RESULTS.read_text(encoding="utf-8"))
    return 0


def measured() -> dict[str, Any]:
    """The results of earlier runs, for the parts that are not measured now."""
    return json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.is_file() else {}


def write(found: dict[str, Any]) -> None:
    FOUND.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if set(found) >= set(PARTS):
        RESULTS.write_text("\n".join(page(found)) + "\n", encoding="utf-8")


def beside(these: list[dict[str, float]], those: list[dict[str, float]]) -> str:
    ratios = sorted(a["seconds"] / b["seconds"] for a, b in zip(these, those, strict=True))
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def page(found: dict[str, Any]) -> Iterator[str]:
    import ray

    rounds, runs, killed, memory = found["speeds"]["rounds"], found["runs"], found["kills"], found["memory"]
    best = {name: {key: min(each[key] for each in all_) for key in all_[0]} for name, all_ in rounds.items()}
    loops, one, two = best["loop"], best["1"], best["2"]
    rows, files = killed["driver"]["rows"], runs["pictures"]["rows"]
    about = " ".join((__doc__ or "").partition("\n\n")[2].split("Writes benches")[0].split())
    yield from ("# Data sets on Ray", "", "Written by `python3 dev.py bench batch`.", "")
    yield (
        f"{os.cpu_count()} processors of {platform.machine()}, which other programs used too: each table has the load, "
        f"in busy processors. Python {platform.python_version()}, NumPy {np.__version__}, Ray {ray.__version__}. "
        f"{about}"
    )
    yield from ("", f"## {rows:,} rows of 28 x 28 in batches of {BATCH}", "", f"Load {found['speeds']['load']}.", "")
    yield from ("| | seconds | processor seconds | rows/s |", "|---|---:|---:|---:|")
    for name, each in (("plain loop", loops), ("Ray Data, one worker", one), ("Ray Data, two workers", two)):
        yield f"| {name} | {each['seconds']:.2f} | {each['cpu']:.2f} | {rows / each['seconds']:,.0f} |"
    yield from ("", f"- One worker takes {100 * (one['cpu'] / loops['cpu'] - 1):+.1f}% processor time beside the loop.")
    yield f"  By the clock, round by round: {beside(rounds['1'], rounds['loop'])} times as long."
    yield f"- Two workers take {100 * (two['cpu'] / one['cpu'] - 1):+.1f}% processor time beside one, which is"
    yield f"  {2 * one['cpu'] / two['cpu']:.2f} times the speed where two processors are idle. By the clock, round by"
    yield f"  round: one worker takes {beside(rounds['1'], rounds['2'])} times as long as two."
    yield f"- Starting Ray took {found['speeds']['starting']:.1f} s. Starting a worker, reading and stopping took"
    yield f"  another {one['whole'] - one['seconds']:.1f} s beside the batches."
    yield from ("", "## `emberlet score` with two workers, from its start to its end", "", f"Load {runs['load']}.", "")
    yield from ("| | seconds | rows/s | files |", "|---|---:|---:|---:|")
    for name, title in (("rows", f"{rows:,} rows of 28 x 28"), ("pictures", f"{files:,} JPEG files, SqueezeNet")):
        each = runs[name]
        yield f"| {title} | {each['whole']:.1f} | {each['rows'] / each['whole']:,.0f} | {each['files']} |"
    yield from ("", f"The plain loop over the pictures takes {runs['plain']['seconds']:.1f} s.", "")
    yield from ("## Killed by a signal, on a cluster of two worker nodes", "", f"Load {killed['load']}.", "")
    yield from ("| killed | rows written by then | rows at the end | lost | doubled |", "|---|---:|---:|---:|---:|")
    for name, title in (("worker", "a worker"), ("driver", "the driver; started again with `--resume`")):
        yield f"| {title} | {killed[name]['written when killed']:,} | {killed[name]['rows']:,} | 0 | 0 |"
    yield from ("", f"## {memory['bytes'] / 1e9:.1f} GB of inputs, made on the fly", "")
    yield (
        f"Load {memory['load']}. {memory['rows']:,} rows of 602 kB, made by one stage of the pipeline and scored by "
        f"the next, in {memory['seconds']:.0f} s with an object store of {STORE >> 20} MB. The most memory that a "
        f"process held, shared memory included:"
    )
    yield from ("", "| process | MB |", "|---|---:|")
    for name, peak in memory["peaks"].items():
        yield f"| {name} | {peak:.0f} |"


if __name__ == "__main__":
    sys.exit(main())
