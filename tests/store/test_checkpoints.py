"""Generated models load checkpoints of the model that they were exported from, without a mapping of names."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from emberlet import codegen, nn, store
from emberlet.codegen.checkpoint_names import metadata_entry
from emberlet.errors import LoadError
from emberlet.store.checkpoints import Checkpoint
from emberlet.store.source_mapping import NORM
from emberlet.store.sources import Place, places

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
    with pytest.raises(LoadError, match=r"blocks\.0\.bn"):
        model.load_from(state_dict(), partial=True)
    assert np.array_equal(answers(model)[0], before)


def test_a_checkpoint_without_its_norms_is_refused():
    model = codegen.load(HERE / "architecture.onnx")
    with pytest.raises(LoadError, match=r"blocks\.0\.conv\.weight"):
        model.load_from(state_dict().filter(lambda name, _: not name.startswith("blocks.0.bn")))
    with pytest.raises(LoadError, match=r"blocks\.0\.bn\.running_var"):
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
    model = codegen.load(HERE / "architecture.onnx")
    checkpoint = Checkpoint(text)
    at = dict(state_dict())
    for place in places(model):
        checkpoint.is_transposed(place)
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


# -- one parameter's entry of the mapping


class Held(nn.Module):
    """A module that is not emberlet's, with one parameter."""

    def __init__(self, key, shape):
        self.__dict__[key] = nn.Param.zeros(shape)


def place_of(key="weight", shape=(4, 3), holder=None):
    holder = holder or Held(key, shape)
    return Place(f"fc.{key}", "Net", holder, key, getattr(holder, key))


def found_for(entry, at, place=None, known=True):
    place = place or place_of()
    checkpoint = Checkpoint(json.dumps({place.name: entry}) if known else None)
    return checkpoint.find(place, at)


@pytest.mark.parametrize(
    ("entry", "at", "found"),
    [
        ({}, "fc.weight", "fc.weight"), ({"name": "other"}, "other", "other"), ({"name": "other"}, "fc.weight", None),
        ({}, "other", None), ({"name": None}, "other", None), ({"name": ""}, "fc.weight", None),
        ({"name": None}, "fc.weight", "was computed from several tensors"),
    ],
)  # fmt: skip
def test_an_entry_names_the_tensor_of_a_checkpoint(entry, at, found):
    held = dict(store.store_of({at: np.ones(2, np.float32)}))
    assert found_for(entry, held, known=False) is None
    if found is None:
        assert found_for(entry, held) is None
    elif found == at:
        s, names = found_for(entry, held)
        assert s is held[at] and names == (at,)
    else:
        with pytest.raises(LoadError, match=found):
            found_for(entry, held)


@pytest.mark.parametrize(
    ("entry", "shape", "layer", "turned"),
    [
        ({}, (4, 3), False, None), ({}, (4, 3), True, True), ({"turned": False}, (4, 3), True, False),
        ({"turned": True}, (4, 3), False, True), ({"turned": True}, (4,), False, None),
        ({"turned": 0}, (4, 3), True, False),
    ],
)  # fmt: skip
def test_an_entry_says_whether_a_matrix_is_turned(entry, shape, layer, turned):
    place = place_of(holder=nn.Linear(4, 3)) if layer else place_of(shape=shape)
    assert Checkpoint(json.dumps({"fc.weight": entry})).is_transposed(place) is turned
    assert Checkpoint(None).is_transposed(place) is None


@pytest.mark.parametrize("named", ["path", "list"])
@pytest.mark.parametrize("epsilon", [None, 0.25])
@pytest.mark.parametrize(
    ("shape", "axis", "groups"),
    [((4, 3), 0, 1), ((3, 4), 1, 1), ((6, 2, 5), 1, 2), ((6, 3, 1, 2), 1, 3), ((2, 5, 4), 2, 1)],
)
def test_a_norm_scales_the_channels_of_a_weight(shape, axis, groups, epsilon, named):
    random = np.random.default_rng(axis)
    channels = shape[axis] * groups
    arrays = {n: random.random(channels).astype(np.float32) + 0.5 for n in NORM}
    weight = random.standard_normal(shape).astype(np.float32)
    names = [f"bn.{n}" for n in NORM]
    at = dict(store.store_of({"fc.weight": weight, **dict(zip(names, arrays.values(), strict=True))}))
    entry = {"norm": "bn" if named == "path" else names, "axis": axis, "groups": groups}
    entry |= {} if epsilon is None else {"epsilon": epsilon}
    s, used = found_for(entry, at, place_of(shape=shape))
    assert used == ("fc.weight", *names)
    scale = arrays["weight"].astype(float) / np.sqrt(arrays["running_var"].astype(float) + (epsilon or 1e-5))
    wide = weight.reshape(groups, shape[0] // groups, *shape[1:]).astype(float)
    before = (groups, 1) if groups > 1 else (1,) * (axis + 1)
    at_axis = (*before, -1, *(1,) * (len(shape) - axis - 1))
    wanted = (wide * scale.reshape(at_axis)).reshape(shape)
    np.testing.assert_allclose(np.asarray(s), wanted, rtol=1e-6)
    assert (s.shape, s.dtype.name) == (shape, "float32")


@pytest.mark.parametrize(
    ("entry", "drop", "change", "says"),
    [
        ({"norm": 3}, (), {}, None), ({"norm": {"a": 1}}, (), {}, None),
        ({"norm": "bn"}, ("fc.weight", "bn"), {}, None),
        ({"norm": "bn"}, ("bn",), {}, "has a batch norm folded into it, and the file lacks bn.weight, bn.bias, "),
        ({"norm": "bn"}, ("bn.bias",), {}, "the file lacks bn.bias$"),
        ({"norm": "bn"}, ("fc.weight",), {}, "the file lacks fc.weight$"),
        ({"norm": "bn"}, (), {"bn.bias": (3,)}, "differ in shape"),
        ({"norm": "bn"}, (), {"bn": (2, 2)}, "differ in shape"),
        ({"norm": "bn"}, (), {"bn": (5,)}, r"shape \(4, 3\) of fc.weight does not fit the batch norm's \(5,\)"),
        ({"norm": "bn", "axis": 1}, (), {}, r"does not fit the batch norm's \(4,\)"),
        ({"norm": "bn", "axis": 2}, (), {}, r"does not fit the batch norm's \(4,\)"),
        ({"norm": "bn", "groups": 2}, (), {}, r"does not fit the batch norm's \(4,\)"),
    ],
)  # fmt: skip
def test_a_norm_that_does_not_fit_is_refused(entry, drop, change, says):
    shapes = {"fc.weight": (4, 3), **{f"bn.{n}": (4,) for n in NORM}}
    shapes = {k: change.get(k, change.get(k.partition(".")[0] if k[0] == "b" else "", v)) for k, v in shapes.items()}
    kept = {k: v for k, v in shapes.items() if k not in drop and k.partition(".")[0] not in drop}
    at = dict(store.store_of({k: np.ones(v, np.float32) for k, v in kept.items()}))
    if says is None:
        assert found_for(entry, at) is None
        return
    with pytest.raises(LoadError, match=says):
        found_for(entry, at)
