"""emberlet.batch.Predictor: batches of any size and form, pickles, pools of processes and threads."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from emberlet import codegen
from emberlet.batch import Predictor
from emberlet.batch.pieces import MOST_BYTES, MOST_ROWS, rows_at_once
from emberlet.errors import DTypeError, EmberletError, FormatError, ShapeError
from PIL import Image
from pyarrow import parquet
from support.onnx_models import expected
from support.processes import ran

from tools.components import require
from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
Save = Callable[..., Path]


def digits(rows: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random((rows, 1, 8, 8), np.float32)


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", ["auto", "numpy", "python", "wgpu"])
def test_batches_of_any_size_give_what_onnxruntime_gives(backend: str) -> None:
    if backend == "wgpu":
        require("gpu-driver")
    predictor = Predictor(DIGITS, backend)
    sizes = np.random.default_rng(1).integers(1, 40 if backend in ("python", "wgpu") else 700, 12)
    if backend == "python":
        sizes = sizes[:2]
    for seed, rows in enumerate(sizes):
        images = digits(int(rows), seed)
        found = predictor({"image": images})
        assert list(found) == ["logits"]
        assert found["logits"].shape == (rows, 10)
        close(found["logits"], expected(DIGITS, {"image": images})[0])


def test_many_sizes_make_few_plans() -> None:
    predictor = Predictor(DIGITS, "numpy")
    for rows in range(1, 60):
        predictor({"image": digits(rows)})
    assert len(predictor.opened._compiled._plans) <= 6


def test_a_batch_size_bounds_what_is_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = Predictor(DIGITS, "numpy", batch_size=7)
    seen = []
    pieces = predictor.opened._pieces
    call = pieces._call
    monkeypatch.setattr(pieces, "_call", lambda inputs: seen.append(len(inputs[0])) or call(inputs))
    images = digits(24)
    close(predictor({"image": images})["logits"], expected(DIGITS, {"image": images})[0])
    assert max(seen) == 7


def test_the_size_of_a_row_decides_how_many_are_computed_at_once() -> None:
    assert rows_at_once([np.zeros((3, 4), np.float32)]) == MOST_ROWS
    picture = np.zeros((1, 3, 224, 224), np.float32)
    assert rows_at_once([picture]) * picture.nbytes <= MOST_BYTES
    assert rows_at_once([np.zeros((1, MOST_BYTES), np.float32)]) == 1


def test_rows_that_influence_each_other_are_not_filled_up(save: Save) -> None:
    """A model that normalizes over the batch has other results with more rows, so its batches must not be padded."""
    path = save("g (float[n, 3] x) => (float[n, 3] y) { y = Softmax<axis=0>(x) }")
    predictor = Predictor(path, "numpy")
    for rows in (9, 8, 7, 6, 5, 4, 3, 11):
        x = np.random.default_rng(rows).random((rows, 3), np.float32)
        close(predictor({"x": x})["y"], expected(path, {"x": x})[0])


def test_a_model_of_a_fixed_batch_takes_every_number_of_rows(save: Save) -> None:
    for fixed in (1, 4):
        path = save(f"g (float[{fixed}, 3] x) => (float[{fixed}, 3] y) {{ y = Relu(x) }}")
        x = np.random.default_rng(0).standard_normal((11, 3)).astype(np.float32)
        np.testing.assert_array_equal(Predictor(path)({"x": x})["y"], np.maximum(x, 0))


def test_a_model_without_a_batch_is_called_for_each_row(save: Save) -> None:
    path = save("g (float[3, 4] x, float k) => (float[4] y) { s = Mul(x, k)\n y = ReduceSum<keepdims=0>(s, axis) }",
                axis=np.array([0], np.int64))  # fmt: skip
    x = np.random.default_rng(0).random((5, 3, 4), np.float32)
    found = Predictor(path)({"x": x, "k": np.full(5, 2.0)})
    close(found["y"], 2 * x.sum(axis=1))
    with pytest.raises(ShapeError, match="one value for all rows"):
        Predictor(path)({"x": x, "k": np.arange(5.0)})


def test_arrow_tables_and_frames_come_back_as_what_they_were() -> None:
    images = digits(9)
    wanted = expected(DIGITS, {"image": images})[0]
    predictor = Predictor(DIGITS, outputs={"logits": "score"}, keep=["id"])
    flat = pa.FixedSizeListArray.from_arrays(pa.array(images.reshape(-1)), 64)
    ragged = pa.array([list(map(float, x.reshape(-1))) for x in images])
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(images)
    for column in (flat, ragged, tensors, pa.chunked_array([flat.slice(0, 4), flat.slice(4)])):
        found = predictor(pa.table({"id": range(9), "image": column}))
        assert isinstance(found, pa.Table)
        assert found.column_names == ["id", "score"]
        assert found["id"].to_pylist() == list(range(9))
        close(found["score"].to_pylist(), wanted)
    batch = pa.RecordBatch.from_pydict({"id": pa.array(range(9)), "image": flat})
    (record,) = predictor.map(iter([batch]))
    assert isinstance(record, pa.RecordBatch)
    close(record["score"].to_pylist(), wanted)
    frame = predictor(pd.DataFrame({"id": range(9), "image": [x.reshape(-1) for x in images]}, index=range(20, 29)))
    assert list(frame.columns) == ["id", "score"]
    close(np.stack(frame["score"].tolist()), wanted)
    with pytest.raises(EmberletError, match="found int"):
        predictor(3)


def test_columns_of_numbers_stand_side_by_side(save: Save) -> None:
    path = save("g (float[n, 3] x, int64[n, 1] k) => (float[n, 3] y) { f = Cast<to=1>(k)\n y = Mul(x, f) }")
    batch = {
        "a": np.arange(4),
        "b": np.arange(4.0),
        "c": np.arange(4, dtype=np.uint8),
        "k": np.arange(4, dtype=np.int32),
    }
    found = Predictor(path, inputs={"x": ["a", "b", "c"]})(batch)
    wanted = np.stack([np.arange(4)] * 3, axis=1) * np.arange(4)[:, None]
    np.testing.assert_array_equal(found["y"], wanted)
    with pytest.raises(DTypeError, match="'b' holds <U1"):
        Predictor(path, inputs={"x": ["a", "b", "c"]})({**batch, "b": np.array(["x"] * 4)})


def test_texts_go_in_and_come_out(save: Save) -> None:
    path = save("g (string[n] x) => (string[n] y) { y = StringConcat(x, tail) }", tail=np.array(["!"], object))
    found = Predictor(path)(pa.table({"x": ["a", "bc"]}))
    assert found["y"].to_pylist() == ["a!", "bc!"]


def test_pictures_are_decoded_from_bytes_and_paths(tmp_path: Path, save: Save) -> None:
    random = np.random.default_rng(3)
    path = save("g (float[n, 3, 6, 5] image) => (float[n, 3, 6, 5] y) { y = Identity(image) }")
    pixels = random.integers(0, 256, (4, 6, 5, 3), np.uint8)
    files = []
    for i, x in enumerate(pixels):
        Image.fromarray(x).save(tmp_path / f"{i}.png")
        files.append(str(tmp_path / f"{i}.png"))
    wanted = pixels.transpose(0, 3, 1, 2).astype(np.float32)
    predictor = Predictor(path, inputs={"image": "path"})
    data = [Path(f).read_bytes() for f in files]
    for column in (np.array(files), np.array(data, object), pa.array(data), [{"bytes": d, "path": None} for d in data]):
        batch = pa.table({"path": column}) if isinstance(column, pa.Array) else {"path": column}
        found = predictor(batch)["y"]
        np.testing.assert_array_equal(np.asarray(found.to_pylist() if hasattr(found, "to_pylist") else found), wanted)
    np.testing.assert_array_equal(Predictor(path)({"image": pixels})["y"], wanted)
    with pytest.raises(FormatError, match="cannot be decoded"):
        predictor({"path": np.array([b"no picture"], object)})
    small = random.integers(0, 256, (1, 2, 2, 3), np.uint8)
    with pytest.raises(ShapeError, match="preprocess"):
        Predictor(path)({"image": small})


def test_preprocess_makes_the_inputs(save: Save) -> None:
    path = save("g (float[n, 3, 224, 224] x) => (float[n, 3] y) { y = ReduceMean<keepdims=0>(x, axes) }",
                axes=np.array([2, 3], np.int64))  # fmt: skip
    random = np.random.default_rng(0)
    pictures = [random.integers(0, 256, (*random.integers(230, 300, 2), 3), np.uint8) for _ in range(3)]
    found = Predictor(path, inputs={"x": "p"}, preprocess="emberlet.batch.pictures:imagenet")({"p": pictures})
    assert found["y"].shape == (3, 3)
    assert np.abs(found["y"]).max() < 1
    doubled = Predictor(DIGITS, preprocess=lambda batch: {"image": batch["image"] * 2})
    close(doubled({"image": digits(3)})["logits"], Predictor(DIGITS)({"image": digits(3) * 2})["logits"])
    with pytest.raises(EmberletError, match="'image'"):
        Predictor(DIGITS, preprocess=lambda batch: {"image": 1})({"image": digits(3)})
    with pytest.raises(EmberletError, match="preprocess returned a list"):
        Predictor(DIGITS, preprocess=lambda batch: [1])({"image": digits(3)})


def test_a_pickle_holds_the_path_and_not_the_weights(tmp_path: Path) -> None:
    made = codegen.generate(DIGITS, tmp_path)
    for model in (DIGITS, made.module):
        predictor = Predictor(model, keep=["id"])
        data = pickle.dumps(predictor)
        assert len(data) < 1500
        again = pickle.loads(data)
        images = digits(5)
        np.testing.assert_array_equal(
            again({"id": np.arange(5), "image": images})["logits"],
            predictor({"id": np.arange(5), "image": images})["logits"],
        )
        assert again.opened is predictor.opened  # a process opens a model once


def test_models_in_memory_and_classes_work_too(tmp_path: Path) -> None:
    made = codegen.generate(DIGITS, tmp_path)
    instance = codegen.load(DIGITS)
    images = digits(4)
    wanted = expected(DIGITS, {"image": images})[0]
    for model in (DIGITS.read_bytes(), instance, made.module):
        close(Predictor(model)({"image": images})["logits"], wanted)


def test_a_file_that_was_replaced_is_opened_again(save: Save) -> None:
    x = np.array([[1.0, -2.0]], np.float32)
    path = save("g (float[n, 2] x) => (float[n, 2] y) { y = Relu(x) }")
    np.testing.assert_array_equal(Predictor(path)({"x": x})["y"], [[1, 0]])
    save("g (float[n, 2] x) => (float[n, 2] y) { z = Neg(x)\n y = Relu(z) }")
    np.testing.assert_array_equal(Predictor(path)({"x": x})["y"], [[0, 2]])


def test_pools_of_processes_and_threads_share_the_work() -> None:
    predictor = Predictor(DIGITS)
    batches = [{"image": digits(20, seed)} for seed in range(6)]
    wanted = [predictor(batch)["logits"] for batch in batches]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for found, want in zip(pool.map(predictor, batches), wanted, strict=True):
            np.testing.assert_array_equal(found["logits"], want)
    with ThreadPoolExecutor(4) as pool:
        for found, want in zip(pool.map(predictor, batches * 10), wanted * 10, strict=True):
            np.testing.assert_array_equal(found["logits"], want)


def test_spark_gets_an_iterator_of_frames() -> None:
    """Spark pickles the function by cloudpickle, and calls it with an iterator of pandas frames."""
    import cloudpickle

    predictor = Predictor(DIGITS, keep=["id"])
    function = pickle.loads(cloudpickle.dumps(predictor.map))
    frames = [pd.DataFrame({"id": range(n), "image": [x.reshape(-1) for x in digits(n, n)]}) for n in (3, 5)]
    results = list(function(iter(frames)))
    for frame, found in zip(frames, results, strict=True):
        assert isinstance(found, pd.DataFrame)
        assert found["id"].tolist() == frame["id"].tolist()
        close(
            np.stack(found["logits"].tolist()), predictor.results({"image": digits(len(frame), len(frame))})["logits"]
        )


DAFT = """
import sys

import daft
from daft import DataType, Series, col
from emberlet.batch import Predictor


@daft.cls
class Score:
    def __init__(self, model: str) -> None:
        self.predictor = Predictor(model)

    @daft.method.batch(return_dtype=DataType.list(DataType.float32()))
    def __call__(self, image: Series) -> Series:
        return list(self.predictor({"image": image.to_arrow()})["logits"])


model, source, out = sys.argv[1:]
rows = daft.read_parquet(source)
rows.select(col("id"), Score(model)(col("image")).alias("logits")).write_parquet(out)
"""


def test_daft_calls_it_from_a_class(tmp_path: Path) -> None:
    """In a process of its own: Daft keeps threads."""
    require("daft")
    images = digits(500)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(images.reshape(-1)), 64)
    parquet.write_table(pa.table({"id": range(500), "image": flat}), tmp_path / "in.parquet")
    script = tmp_path / "score.py"
    script.write_text(DAFT, encoding="utf-8")
    environment = {**os.environ, "DO_NOT_TRACK": "true", "DAFT_ANALYTICS_ENABLED": "0", "DAFT_PROGRESS_BAR": "0"}
    command = [sys.executable, str(script), str(DIGITS), str(tmp_path / "in.parquet"), str(tmp_path / "out")]
    done = ran(*command, env=environment)
    assert done.returncode == 0, done.stderr
    found = parquet.read_table(tmp_path / "out").sort_by("id")
    assert found["id"].to_pylist() == list(range(500))
    close(found["logits"].to_pylist(), expected(DIGITS, {"image": images})[0])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"outputs": "nothing"}, "the model has no output 'nothing'; it has logits"),
        ({"inputs": {"picture": "x"}}, "the model has no input 'picture'; it has image"),
        ({"backend": "gpu"}, "there is no backend 'gpu'"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"preprocess": "nothing:at_all"}, "there is no module 'nothing'"),
        ({"preprocess": "json:at_all"}, "json has no at_all"),
        ({"preprocess": "json"}, "expected module:function"),
        ({"preprocess": "math:pi"}, "pi is not a function"),
    ],
)
def test_what_does_not_fit_the_model_is_said_at_once(options: dict[str, Any], says: str) -> None:
    with pytest.raises(EmberletError, match=says):
        Predictor(DIGITS, **options)


@pytest.mark.parametrize(
    ("batch", "error", "says"),
    [
        ({"picture": digits(2), "b": [1, 2]}, EmberletError, "no column is named 'image'"),
        ({"image": digits(2).reshape(2, 4, 16)[:, :3]}, ShapeError, "found rows of shape"),
        ({"image": np.array(["a", "b"]).reshape(2, 1)}, EmberletError, "found texts"),
        ({"image": digits(2).astype(np.complex64)}, DTypeError, "found complex64"),
        ({"image": [digits(1)[0], digits(1)[0, :, :7]]}, ShapeError, "rows of different shapes"),
        ({"image": np.array([digits(1)[0].tolist(), None], object)}, DTypeError, "row 1 of the batch has no value"),
    ],
)
def test_what_a_batch_lacks_is_said(batch: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Predictor(DIGITS)(batch)


def test_integers_that_do_not_fit_and_floats_for_integers_are_refused(save: Save) -> None:
    path = save("g (int32[n] x) => (int32[n] y) { y = Identity(x) }")
    predictor = Predictor(path)
    assert predictor({"x": np.array([1, 2], np.int64)})["y"].tolist() == [1, 2]
    with pytest.raises(DTypeError, match="does not hold"):
        predictor({"x": np.array([1 << 40])})
    with pytest.raises(DTypeError, match="preprocess"):
        predictor({"x": np.array([1.5])})


def test_an_output_without_rows_is_refused_and_may_be_left_out(save: Save) -> None:
    path = save("g (float[n, 2] x) => (float[n, 2] y, float s) { y = Relu(x)\n s = ReduceSum<keepdims=0>(x) }")
    x = np.ones((3, 2), np.float32)
    with pytest.raises(ShapeError, match="without an axis of rows"):
        Predictor(path)({"x": x})
    assert list(Predictor(path, outputs=["y"])({"x": x})) == ["y"]


def test_a_kept_column_and_an_output_of_one_name_are_refused() -> None:
    with pytest.raises(EmberletError, match="rename the output"):
        Predictor(DIGITS, keep=["logits"])({"logits": np.arange(2), "image": digits(2)})
    with pytest.raises(EmberletError, match="no column 'id' to keep"):
        Predictor(DIGITS, keep=["id"])({"image": digits(2)})
