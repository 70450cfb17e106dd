"""`emberlet score`: the rows of files through a model, on Ray Data, into Parquet.

All arguments are checked before Ray starts: the model is opened, the files are listed, and the first row is scored
here. Scheduling, retries and the checkpoint of finished rows are Ray's.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow import fs as arrow_fs

from ..errors import EmberletError
from ..host import listing
from .files import Files, Part, find, parts, system_of
from .output_folder import begin, check, checkpoint, forget, held, read_record, rows_of, write_record
from .predictor import Predictor
from .rows import Reading, schema, tables
from .scorer import Bad, Scorer

TRIED = 20  # rows, or files, to try before Ray starts

Report = Callable[[int, int | None, int], None]
"""Called now and then with the rows that are done, how many there are if that is known, and how many were skipped."""


@dataclass(frozen=True)
class Job:
    """A checked scoring job.

    parts: the parts to read; rows: their number, if known; record: the arguments that a resumed run must match; done:
    whether an earlier run finished.
    """

    predictor: Predictor
    out: str
    system: Any
    folder: str
    files: Files
    parts: list[Part]
    reading: Reading
    options: dict[str, Any]
    block_bytes: int
    rows: int | None
    record: dict[str, Any]
    done: bool


@dataclass(frozen=True)
class Summary:
    """rows and files: the contents of the folder. skipped: (file, row or -1 for a file or its rest, reason) in this
    run."""

    rows: int
    files: int
    seconds: float
    workers: int
    skipped: list[Bad] = field(default_factory=list)


def prepare(
    model: Any,
    inputs: Sequence[str],
    out: str,
    *,
    columns: Mapping[str, Sequence[str]] | None = None,
    outputs: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    preprocess: str | None = None,
    backend: str = "auto",
    batch_size: int | None = None,
    rows_per_file: int | None = None,
    resume: bool = False,
    skip_bad: bool = False,
) -> Job:
    """Check everything without starting anything. Raises EmberletError, OSError."""
    for name, number in (("batch_size", batch_size), ("rows_per_file", rows_per_file)):
        if number is not None and number < 1:
            raise EmberletError(f"{name} is {number}, expected 1 or more")
    found = find(inputs)
    given = {name: list(names) for name, names in (columns or {}).items()}
    predictor = Predictor(
        model, backend, outputs=outputs or None, inputs=given, preprocess=preprocess, batch_size=batch_size
    )
    model_inputs = predictor.opened.inputs
    if found.kind == "pictures" and not given and not preprocess and len(model_inputs) == 1:
        given = {model_inputs[0].name: ["path"]}
        predictor = Predictor(model, backend, outputs=outputs or None, inputs=given, batch_size=batch_size)
    rows = rows_per_file or (256 if found.kind == "pictures" else 8192)
    cut = parts(found, rows)
    reading = Reading(found.system, None, (), rows)
    options = {"keep": tuple(keep), "system": found.system, "skip": skip_bad, "batch_size": batch_size,
               "pictures": found.kind == "pictures"}  # fmt: skip
    reading = _columns(predictor, _schema(cut, reading, skip_bad), keep, preprocess is not None, reading)
    row = _first_row(predictor, cut, reading, options)
    system, folder = system_of(out)
    record = _record(model, found, {"columns": given, "outputs": dict(outputs or {}), "keep": list(keep),
                                               "preprocess": preprocess})  # fmt: skip
    done = check(system, folder, out, found, record, resume)
    # Ray joins and splits tables into blocks of this many bytes; each block becomes a file.
    block = 128 << 20 if found.kind == "pictures" else min(max(rows * row, 1 << 20), reading.most_bytes)
    return Job(predictor, out, system, folder, found, cut, reading, options, block, _count(found), record, done)


def _schema(cut: Sequence[Part], reading: Reading, skip: bool) -> list[str]:
    """The columns of the first file that can be read."""
    for part in cut[:TRIED]:
        try:
            return schema(part, reading)
        except (EmberletError, OSError) as error:
            if not skip:
                raise
            last = error
    raise last


def _columns(predictor: Predictor, names: list[str], keep: Sequence[str], free: bool, reading: Reading) -> Reading:
    """The columns to read: the model's inputs and the kept ones; all if a preprocess function may use any."""
    used: list[str] = []
    floats = []
    for i in predictor.opened.inputs:
        mapped = predictor.columns_of(i, names)
        used += mapped
        # The only column of an image holds its path.
        if i.dtype is not None and i.dtype.is_float and (len(mapped) > 1 or (i.shape is not None and len(i.shape) < 3)):
            floats += mapped
    for name in keep:
        if name not in names:
            raise EmberletError(f"there is no column {name!r} to keep; the columns are {listing.names(names)}")
    wanted = None if free else tuple(dict.fromkeys([*used, *keep]))
    return Reading(reading.system, wanted, tuple(floats) if not free else (), reading.rows)


def _first_row(predictor: Predictor, cut: Sequence[Part], reading: Reading, options: Mapping[str, Any]) -> int:
    """Score one row here, so that a mismatch with the model is found at once; returns its size in bytes.

    If bad rows are skipped, the first of TRIED rows that can be scored is used; if there is none, something else is
    wrong.
    """
    scorer = Scorer(predictor, report=lambda rows, bad: None, **{**options, "skip": False})
    first: Exception | None = None
    rows = _Single(cut, Reading(reading.system, reading.columns, reading.floats, 1))
    for _ in range(TRIED):
        try:
            row = next(rows, None)
            if row is None:
                break
            scorer(row)
            return int(row.nbytes)
        except (EmberletError, OSError) as error:
            if not options["skip"]:
                raise
            first = first or error
    if first is not None:
        raise first
    return 1024


class _Single:
    """Yields rows one by one, as tables; if reading a part fails, continues with the next."""

    def __init__(self, cut: Sequence[Part], reading: Reading) -> None:
        self._parts = iter(cut)
        self._reading = reading
        self._tables: Iterator[Any] = iter(())

    def __iter__(self) -> _Single:
        return self

    def __next__(self) -> Any:
        while True:
            try:
                return next(self._tables)
            except StopIteration:
                self._tables = tables(next(self._parts), self._reading)


def _count(found: Files) -> int | None:
    """The number of rows, if it can be determined without reading much."""
    if found.kind == "pictures":
        return len(found.files)
    if found.kind != "Parquet" or len(found.files) > 100:
        return None
    with suppress(Exception):  # a damaged file raises when it is read
        return sum(rows_of(found.system, f.path) for f in found.files)
    return None


def _record(model: Any, found: Files, options: dict[str, Any]) -> dict[str, Any]:
    listing = hashlib.sha256()
    for f in found.files:
        listing.update(f"{f.path}\0{f.size}\0{f.changed}\n".encode())
    weights = hashlib.sha256()
    path = Path(model)
    for each in sorted(p for p in path.parent.iterdir() if p.is_file() and p.name.startswith(path.stem + ".")):
        if each.suffix in (".onnx", ".py", ".bpk", ".data"):
            weights.update(each.name.encode() + hashlib.sha256(each.read_bytes()).digest())
    return {
        "emberlet score": 1,
        "model": path.name,
        "weights": weights.hexdigest(),
        "inputs": len(found.files),
        "listing": listing.hexdigest(),
        **options,
    }


def run(
    job: Job,
    *,
    address: str | None = None,
    workers: int | None = None,
    cpus: float = 1,
    gpus: float = 0,
    report: Report | None = None,
    quiet: bool = False,
) -> Summary:
    """Score the remaining rows of a job.

    address: the Ray cluster's; None starts one on this machine and stops it at the end. workers: how many processes
    hold the model. cpus, gpus: Ray's resources for each; BLAS uses as many threads. quiet: see
    ray_cluster.connected.

    Raises EmberletError, which names the file that could not be read or scored, OSError.
    """
    from . import ray_cluster

    begun = time.monotonic()
    if job.done:
        forget(job.system, job.folder)  # the earlier run may have been killed between its record and this
        return Summary(*held(job.system, job.folder), 0.0, 0)
    if read_record(job.system, job.folder) is None:  # left over from a folder that no longer exists
        forget(job.system, job.folder)
    with ray_cluster.connected(address, workers, cpus, gpus, quiet) as count:
        write_record(job.system, job.folder, {**job.record, "done": False})
        begin(job.system, job.folder)
        skipped = _scored(job, count, cpus, gpus, address is not None, report)
        rows, files = held(job.system, job.folder)
        if not rows and skipped:
            raise EmberletError(f"no row could be scored; the first: {skipped[0][0]}: {skipped[0][2]}")
        write_record(job.system, job.folder, {**job.record, "done": True})
        forget(job.system, job.folder)
    return Summary(rows, files, time.monotonic() - begun, count, skipped)


def _scored(job: Job, workers: int, cpus: float, gpus: float, elsewhere: bool, report: Report | None) -> list[Bad]:
    """Run the pipeline; returns the skipped rows."""
    import ray
    from ray.data import ActorPoolStrategy, DataContext
    from ray.data.checkpoint import CheckpointConfig

    from . import ray_cluster
    from .ray_parts import Rows, Tally, Worker

    tally = Tally.remote()  # type: ignore[attr-defined]
    context = DataContext.get_current().copy()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    local = isinstance(job.system, arrow_fs.LocalFileSystem)
    config = CheckpointConfig(
        "row_id",
        checkpoint(job.folder if local else job.out),
        delete_checkpoint_on_success=False,  # only after the record says that all is done
        override_filesystem=job.system,
    )
    config.checkpoint_actor_memory_bytes = 64 << 20  # reserved memory; Ray requests more if the ids need it
    context.checkpoint_config = config
    context.target_max_block_size = job.block_bytes
    with DataContext.current(context), _by_value(job.predictor), _watched(tally, job.rows, report):
        source = Rows(job.parts, job.reading, job.options["skip"], tally)
        data = ray.data.read_datasource(source, num_cpus=0.5, concurrency=workers, override_num_blocks=len(job.parts))
        data = data.map_batches(
            Worker,
            fn_constructor_args=(job.predictor, job.options, tally),
            batch_size=None,
            batch_format="pyarrow",
            compute=ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=2),
            num_cpus=cpus,
            **({"num_gpus": gpus} if gpus else {}),
            **({"runtime_env": {"env_vars": ray_cluster.variables(cpus)}} if elsewhere else {}),
        )
        try:
            data.write_parquet(
                job.folder if local else job.out,
                filesystem=job.system,
                ray_remote_args={"num_cpus": 0.25},
            )
        except Exception as error:
            with suppress(ray.exceptions.RayError):
                if why := ray.get(tally.failure.remote(), timeout=10):
                    raise EmberletError(why) from error
            raise EmberletError(f"Ray gave up: {_last_line(error)}") from error
    found: list[Bad] = ray.get(tally.skipped.remote())
    return found


@contextmanager
def _by_value(predictor: Predictor) -> Iterator[None]:
    """Context manager: pickles the module of a `preprocess` function by value, so that workers need not have it."""
    from ray import cloudpickle

    module = sys.modules.get(predictor.resolve() or "")
    if module is None or module.__name__.startswith("emberlet."):
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


class _watched:
    """Context manager: calls `report` with the tally twice a second, from a thread."""

    def __init__(self, tally: Any, rows: int | None, report: Report | None) -> None:
        self._tally, self._rows, self._report = tally, rows, report
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        if self._report:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._report:
            self._thread.join(10)

    def _watch(self) -> None:
        import ray

        while not self._ended.wait(0.5):
            with suppress(Exception):  # the cluster is shutting down, which the main thread reports
                rows, skipped = ray.get(self._tally.state.remote(), timeout=5)
                if self._report:
                    self._report(rows, self._rows, skipped)
