"""emberlet score on a cluster of two worker nodes loses and duplicates no row, whatever is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from emberlet.batch import Predictor
from numpy.typing import NDArray
from PIL import Image
from pyarrow import csv, parquet
from support.hostile_columns import hostile_parquet
from support.ray_processes import PATIENCE, environment, running, wait_until

from tools.components import require

ROWS, FILES = 4096, 4
# Slow enough to be killed half-way; records which process works on which rows; waits at three quarters while `hold`
# exists.
PREPARE = """
import os, time
from pathlib import Path

def slowly(batch):
    time.sleep(0.15)
    notes = Path({notes!r})
    with open(notes / str(os.getpid()), "a") as file:
        file.write(f"{{len(batch['image'])}}\\n")
    for _ in range(600):
        rows = sum(int(line) for path in notes.iterdir() for line in path.read_text().split())
        if rows < {most} or not notes.with_name("hold").exists():
            break
        time.sleep(0.1)
    return {{"image": batch["image"]}}
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A short path: Ray puts sockets below it, whose paths may have 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="ray"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[str]:
    """The address of a cluster of two worker nodes."""
    require("ray")
    with open(folder / "errors.txt", "wb") as errors:
        process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("cluster.py"), str(folder / "t")],
            env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            encoding="utf-8",
        )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    address = process.stdout.readline().strip()
    assert address, (folder / "errors.txt").read_text(encoding="utf-8")
    yield address
    process.stdin.close()
    try:
        process.wait(PATIENCE)
    finally:
        process.kill()
        wait_until(lambda: not running(folder), "the end of Ray's processes")


@pytest.fixture(scope="module")
def images() -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (ROWS, 784), np.uint8)


@pytest.fixture(scope="module")
def wanted(network: Path, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The results of a plain loop."""
    predictor = Predictor(network)
    found = [predictor({"image": images[i : i + 256]})["scores"] for i in range(0, ROWS, 256)]
    return np.concatenate(found)


@pytest.fixture
def inputs(tmp_path: Path, images: NDArray[np.uint8]) -> Path:
    """A folder of Parquet files."""
    path = tmp_path / "inputs"
    path.mkdir()
    for i, part in enumerate(np.split(images, FILES)):
        column = pa.FixedSizeListArray.from_arrays(pa.array(part.reshape(-1)), 784)
        ids = np.arange(i * len(part), (i + 1) * len(part))
        parquet.write_table(pa.table({"id": ids, "image": column}), path / f"{i}.parquet")
    return path


class Work:
    """`emberlet score` in a folder, with a record of which process handled which rows."""

    def __init__(self, tmp_path: Path, home: Path, arguments: list[Any]) -> None:
        self.folder, self.notes, self.out = tmp_path, tmp_path / "notes", tmp_path / "out"
        self.notes.mkdir(exist_ok=True)
        (tmp_path / "prepare.py").write_text(
            PREPARE.format(notes=str(self.notes), most=3 * ROWS // 4), encoding="utf-8"
        )
        self._environment = environment(home)
        self._arguments = [*map(str, arguments), "--out", str(self.out)]

    def start(self, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "emberlet", "score", *self._arguments, *more]
        return subprocess.Popen(command, cwd=self.folder, env=self._environment, text=True, encoding="utf-8",
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip

    def finish(self, process: subprocess.Popen[str]) -> str:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        return out

    def committed(self) -> list[Path]:
        found = Path(f"{self.out}.checkpoint/rows").glob("*.parquet")
        return [path for path in found if ".pending" not in path.name]

    def worked(self) -> dict[int, int]:
        """Process -> the rows that it prepared."""
        return {int(p.name): sum(map(int, p.read_text(encoding="utf-8").split())) for p in self.notes.iterdir()}


@pytest.fixture
def work(tmp_path: Path, folder: Path, network: Path, inputs: Path, cluster: str) -> Work:
    return Work(tmp_path, folder, [network, inputs, "--keep", "id", "--preprocess", "prepare:slowly", "--ray", cluster,
                                   "--batch-size", 128, "--rows-per-file", 256])  # fmt: skip


def assert_complete(out: Path, wanted: NDArray[np.float32]) -> None:
    """Every row occurs once, with the plain loop's result."""
    found = parquet.read_table(out).sort_by("id")
    assert found["id"].to_pylist() == list(range(len(wanted)))
    assert len(set(found["row_id"].to_pylist())) == len(wanted)
    scores = np.array(found["scores"].to_pylist(), np.float32)
    np.testing.assert_allclose(scores, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    assert not Path(f"{out}.checkpoint").exists()


@pytest.mark.timeout(900)
def test_a_killed_worker_loses_and_doubles_nothing(work: Work, wanted: NDArray[np.float32]) -> None:
    process = work.start("--workers", "2")
    wait_until(lambda: len(work.committed()) >= 2 or process.poll() is not None, "the first results")
    assert process.poll() is None, process.communicate()
    victim = max(work.worked(), key=lambda pid: work.worked()[pid])
    os.kill(victim, signal.SIGKILL)
    said = work.finish(process)
    assert said.startswith(f"wrote {ROWS} rows in ")
    assert said.rstrip().endswith("2 workers")
    assert len(work.worked()) >= 3, "another process took the victim's place"
    assert_complete(work.out, wanted)


@pytest.mark.timeout(900)
def test_a_killed_driver_is_resumed_where_it_was(work: Work, wanted: NDArray[np.float32]) -> None:
    hold = work.notes.with_name("hold")
    hold.touch()
    process = work.start("--workers", "2", "--resume")
    wait_until(lambda: len(work.committed()) >= 1 or process.poll() is not None, "the first results")
    assert process.poll() is None, process.communicate()
    process.kill()
    process.communicate(timeout=PATIENCE)
    done = sum(len(parquet.read_table(path)) for path in work.committed())
    hold.unlink()
    assert 0 < done < ROWS
    before = sum(work.worked().values())
    again = work.start("--workers", "2", "--resume")
    said = work.finish(again)
    assert said.startswith(f"wrote {ROWS} rows in ")
    # Committed rows were not scored again; some rows that were in progress were.
    assert sum(work.worked().values()) - before <= ROWS - done + 2 * 128
    assert_complete(work.out, wanted)
    assert "nothing is left to do" in work.finish(work.start("--resume"))


PIPELINE = """
import sys

import ray
from emberlet.batch import Predictor

model, source, out, address = sys.argv[1:]
ray.init(address=address, log_to_driver=False)
data = ray.data.read_parquet(source)
scored = data.map_batches(
    Predictor,
    fn_constructor_args=(model,),
    fn_constructor_kwargs={"keep": ["id"]},
    batch_size=256,
    compute=ray.data.ActorPoolStrategy(size=2),
    num_cpus=1,
)
scored.write_parquet(out)
"""


@pytest.mark.timeout(900)
def test_a_pipeline_of_ray_data_calls_a_predictor(
    tmp_path: Path, folder: Path, network: Path, inputs: Path, cluster: str, wanted: NDArray[np.float32]
) -> None:
    script = tmp_path / "pipeline.py"
    script.write_text(PIPELINE, encoding="utf-8")
    out = tmp_path / "scores"
    command = [sys.executable, str(script), str(network), str(inputs), str(out), cluster]
    done = subprocess.run(command, env=environment(folder), capture_output=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    found = parquet.read_table(out).sort_by("id")
    assert found["id"].to_pylist() == list(range(ROWS))
    scores = np.array(found["scores"].to_pylist(), np.float32)
    np.testing.assert_allclose(scores, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.timeout(900)
def test_corrupt_pictures_stop_the_run_or_are_skipped_and_counted(
    tmp_path: Path, folder: Path, network: Path, cluster: str
) -> None:
    random = np.random.default_rng(0)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for i in range(200):
        Image.fromarray(random.integers(0, 256, (28, 28), np.uint8)).save(pictures / f"{i:03}.png")
    data = (pictures / "117.png").read_bytes()
    (pictures / "117.png").write_bytes(data[: len(data) // 2])
    (pictures / "150.png").write_bytes(b"no picture")
    run = Work(tmp_path, folder, [network, pictures, "--rows-per-file", 40, "--ray", cluster, "--workers", 2])
    stopped = run.start()
    out, err = stopped.communicate(timeout=PATIENCE)
    assert (stopped.returncode, out) == (2, "")
    assert err.count("\n") == 1
    assert any(err.startswith(f"emberlet: {pictures}/{name}.png: ") for name in ("117", "150"))
    said = json.loads(run.finish(run.start("--skip-bad", "--resume", "--json")))
    assert said["rows"] == 198
    assert [Path(each["file"]).name for each in said["skipped"]] == ["117.png", "150.png"]
    found = parquet.read_table(run.out)
    names = sorted(Path(name).name for name in found["source_file"].to_pylist())
    assert names == [f"{i:03}.png" for i in range(200) if i not in (117, 150)]


@pytest.mark.timeout(900)
def test_hostile_files_among_honest_ones_run_nothing_and_are_named(
    tmp_path: Path, folder: Path, network: Path, inputs: Path, wanted: NDArray[np.float32], cluster: str
) -> None:
    """Pickles in columns, at any depth, and in the parameters of types; the honest files are scored."""
    images = parquet.read_table(inputs / "0.parquet")
    trap = tmp_path / "ran"
    hostile = hostile_parquet(images, trap)
    for number, table in enumerate(hostile.values()):
        parquet.write_table(table, inputs / f"9{number:02}.parquet")
    run = Work(tmp_path, folder, [network, inputs, "--keep", "id", "--ray", cluster, "--rows-per-file", 512])
    out, err = run.start().communicate(timeout=PATIENCE)
    assert out == "" and "has the extension type 'ray.data." in err and not trap.exists()
    said = json.loads(run.finish(run.start("--skip-bad", "--resume", "--json")))
    assert said["rows"] == ROWS
    assert [Path(each["file"]).name for each in said["skipped"]] == [f"9{n:02}.parquet" for n in range(len(hostile))]
    assert all("has the extension type" in each["why"] for each in said["skipped"])
    assert_complete(run.out, wanted)
    assert not trap.exists()


@pytest.mark.timeout(900)
def test_without_a_cluster_one_is_started_and_stopped(tmp_path: Path, network: Path) -> None:
    """CSV is read, the damaged file is skipped, and no process of Ray remains."""
    require("ray")
    home = Path(tempfile.mkdtemp(prefix="ray"))
    try:
        x = np.random.default_rng(0).random((300, 784)).round(3)
        names = [f"p{i}" for i in range(784)]
        csv.write_csv(pa.table(list(x.T), names=names), tmp_path / "a.csv")
        (tmp_path / "b.csv").write_text(",".join(names) + "\n1,2,3\n", encoding="utf-8")
        run = Work(tmp_path, home, [network, "a.csv", "b.csv", "--input", "image=" + ",".join(names), "--workers", 1])
        said = run.finish(run.start("--skip-bad", "--output", "scores=s"))
        assert said.startswith("skipped b.csv: ")
        assert "wrote 300 rows in 1 files to" in said
        wanted = Predictor(network)({"image": x})["scores"]
        found = np.array(parquet.read_table(run.out).sort_by("row_id")["s"].to_pylist())
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
        wait_until(lambda: not running(home), "the end of Ray's processes")
    finally:
        shutil.rmtree(home, ignore_errors=True)
