"""Generated models load checkpoints of the model that they were exported from, without a mapping of names."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from emberlet import codegen, store
from emberlet.codegen.checkpoint_names import metadata_entry
from emberlet.errors import LoadError

HERE = Path(__file__).parent / "fixtures"
CHECKPOINT = HERE / "architecture.pt"
EXPORTS = ["architecture", "architecture_traced"]


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """A function that generates a model and gives its class."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names = set(sys.modules)

    def generated(name, **options):
        made = codegen.generate(HERE / f"{name}.onnx", tmp_path, **options)
        return getattr(__import__(name), made.class_name)

    yield generated
    for name in set(sys.modules) - names:
        if name.startswith("architecture"):
            del sys.modules[name]


def answers(model):
    """The model's output for the checkpoint's input, and PyTorch's output with the checkpoint's weights."""
    whole = store.open(CHECKPOINT)
    x = whole["image"].tensor(model.backend if hasattr(model, "backend") else None)
    return np.asarray(model(x)), np.asarray(whole["y"])


def state_dict(**options):
    return store.open(CHECKPOINT, key="model", **options)


@pytest.mark.parametrize("embed", [False, True])
@pytest.mark.parametrize("name", EXPORTS)
def test_a_generated_model_takes_a_checkpoint_as_it_is(name, embed, imported):
    model = imported(name, embed=embed).default("numpy")
    before, wanted = answers(model)
    assert np.abs(before - wanted).max() > 0.01
    result = model.load_from(state_dict())
    assert (result.missing, result.unused, result.wrong) == ([], [], {})
    assert len(result.kept) == 1  # a table that is not part of the state_dict
    np.testing.assert_allclose(answers(model)[0], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("backend", ["numpy", "python"])
@pytest.mark.parametrize("told_so", [False, True])
def test_safetensors_of_a_checkpoint_load_whether_or_not_they_tell_their_layout(name, backend, told_so, tmp_path):
    weights = state_dict()
    arrays = {n: np.asarray(s) for n, s in weights.items()}
    store.store_of(arrays).save(tmp_path / "w.safetensors", metadata={"format": "pt"} if told_so else {})
    model = codegen.load(HERE / f"{name}.onnx", backend=backend)
    result = model.load_from(tmp_path / "w.safetensors")
    assert "square.weight" in result.transposed
    got, wanted = answers(model)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_batch_norms_are_folded_again_with_those_of_the_checkpoint():
    model = codegen.load(HERE / "architecture.onnx")
    model.load_from(state_dict())
    w = {n: np.asarray(s).astype(float) for n, s in state_dict().items()}
    scale = w["blocks.2.bn.weight"] / np.sqrt(w["blocks.2.bn.running_var"] + 1e-3)
    shift = w["blocks.2.bn.bias"] - w["blocks.2.bn.running_mean"] * scale
    record = dict(store.from_module(model))
    weight, bias = record["blocks.2.conv.weight"], record["blocks.2.conv.bias"]
    np.testing.assert_allclose(
        np.asarray(weight), w["blocks.2.conv.weight"] * scale[:, None, None, None], rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(np.asarray(bias), shift, rtol=1e-5, atol=1e-6)


def test_saved_checkpoints_load_by_the_models_own_names(imported, tmp_path):
    kind = imported("architecture")
    model = kind.default("numpy")
    model.load_from(state_dict())
    wanted = answers(model)[0]
    model.save_into(tmp_path / "architecture.bpk", overwrite=True)  # over the generated one
    again = kind.default("numpy")
    assert np.array_equal(answers(again)[0], wanted)
    again.load_from(state_dict())  # the new file still holds the mapping to checkpoints
    assert np.array_equal(answers(again)[0], wanted)
    model.save_into(tmp_path / "w.safetensors")
    again.load_from(tmp_path / "w.safetensors")
    assert np.array_equal(answers(again)[0], wanted)
    assert "emberlet.sources" not in store.open(tmp_path / "w.safetensors").metadata


def test_norms_that_the_exporter_folded_are_refused_with_what_to_do():
    model = codegen.load(HERE / "architecture_fused.onnx")
    before = answers(model)[0]
    with pytest.raises(LoadError, match=r"optimize=False"):
        model.load_from(state_dict())
    with pytest.raises(LoadError, match=r"blocks\.0\.bn: a batch norm of the file"):
        model.load_from(state_dict(), partial=True)
    assert np.array_equal(answers(model)[0], before)


def test_a_checkpoint_without_its_norms_is_refused():
    model = codegen.load(HERE / "architecture.onnx")
    with pytest.raises(
        LoadError, match=r"blocks\.0\.conv\.weight: has a batch norm folded into it, and the file lacks"
    ):
        model.load_from(state_dict().filter(lambda name, _: not name.startswith("blocks.0.bn")))
    with pytest.raises(LoadError, match=r"the file lacks blocks\.0\.bn\.running_var"):
        model.load_from(state_dict().filter(lambda name, _: name != "blocks.0.bn.running_var"))
    with pytest.raises(LoadError, match=r"differ in shape"):
        arrays = {n: np.asarray(s) for n, s in state_dict().items()}
        model.load_from({**arrays, "blocks.0.bn.bias": np.ones(3, np.float32)}, layout="pytorch")


def test_constants_are_kept_only_where_all_of_the_file_is_used():
    model = codegen.load(HERE / "architecture.onnx")
    arrays = {n: np.asarray(s) for n, s in state_dict().items()}
    with pytest.raises(LoadError, match="missing: table"):
        model.load_from({**arrays, "tables": np.ones((16, 1), np.float32)}, layout="pytorch")
    result = model.load_from({**arrays, "tables": np.ones((16, 1), np.float32)}, layout="pytorch", partial=True)
    assert result.unused == ["tables"] and result.kept == ["table"]


@pytest.mark.parametrize("text", ["", "[", "[]", "7", '{"fc": 1}', "[" * 100_000, '{"square.weight": {"norm": 3}}'])
def test_useless_metadata_is_ignored_or_a_load_error(text, tmp_path):
    from emberlet.store.checkpoints import Checkpoint
    from emberlet.store.sources import places

    model = codegen.load(HERE / "architecture.onnx")
    checkpoint = Checkpoint(text)
    at = dict(state_dict())
    for place in places(model):
        checkpoint.turned(place)
        try:
            checkpoint.find(place, at)
        except LoadError:
            pass


def test_only_entries_that_differ_from_the_default_are_written():
    from emberlet.codegen.generation import translate

    (text,) = metadata_entry(translate(HERE / "architecture.onnx")[1].record).values()
    entries = json.loads(text)
    assert entries["attention.weight"] == {"name": "attention.in_proj_weight"}
    assert entries["up.weight"] == {"norm": "up_norm", "epsilon": 1e-5, "axis": 1, "groups": 2}
    assert not {"norm.weight", "head.0.weight", "head.0.bias"} & set(entries)


def test_a_store_in_memory_says_it_too():
    model = codegen.load(HERE / "architecture.onnx")
    model.save_into(saved := io.BytesIO())
    assert "up_norm" in store.open(saved.getvalue()).metadata["emberlet.sources"]
