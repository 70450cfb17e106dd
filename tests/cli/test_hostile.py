"""Hostile files on the command line: one line on stderr, status 2, no terminal control characters."""

import os
import random
import shutil
import sys

import numpy as np
import onnx
import pytest
from conformance.cases import node_cases
from emberlet import store
from emberlet.errors import FormatError
from onnx import TensorProto, helper
from support.hostile_names import ESCAPES, hostile_names
from support.onnx_models import parse
from support.onnx_mutations import mutated
from support.processes import python

COMMANDS = ("inspect", "run", "verify", "codegen", "compile")


def named(name):
    """A model in which everything has this name."""
    made = helper.make_graph(
        [helper.make_node("Neg", [name], [name + "y"], name=name)], name,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, name])],
        [helper.make_tensor_value_info(name + "y", TensorProto.FLOAT, [2, name])],
    )  # fmt: skip
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], doc_string=name, producer_name=name)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("broken", [False, True])
def test_no_escape_sequence_of_a_model_reaches_the_terminal(emberlet, tmp_path, monkeypatch, command, broken):
    monkeypatch.chdir(tmp_path)
    model = named(ESCAPES)
    if broken:
        model.graph.node[0].op_type = "Nor" + ESCAPES
    onnx.save(model, "m.onnx")
    said = emberlet(command, "m.onnx")
    assert said.status in (0, 2) and (said.status == 2 or not broken)
    assert all(c == "\n" or c.isprintable() for c in said.out + said.err), repr(said.out + said.err)


def test_a_file_name_is_escaped_too(emberlet, tmp_path):
    path = tmp_path / "a\x1b[2Jb.onnx"
    path.write_bytes(b"nothing")
    for command in COMMANDS:
        said = emberlet(command, path)
        assert said.status == 2 and "\x1b" not in said.out + said.err


NAMED = hostile_names()


@pytest.mark.parametrize("name", NAMED)
def test_names_inside_of_files_end_in_words_and_reach_no_terminal(emberlet, tmp_path, monkeypatch, digits, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / name).write_bytes(NAMED[name])
    for words in (
        "inspect FILE", "graph FILE --out o.svg", "graph FILE --out o.txt", "diff FILE FILE", "convert FILE o.bpk",
        "convert FILE o.safetensors", "convert FILE o.npz", "codegen FILE --out o", "compile FILE --out o.plan",
        "run FILE --backend numpy", f"run {digits} --backend numpy --input image=FILE", "micro build FILE --out m",
        f"quantize {digits} --calibration FILE --out q --time none",
        "quantize FILE --activations --calibration FILE --out q --time none",
    ):  # fmt: skip
        said = emberlet(*words.replace("FILE", name).split())
        assert said.status in (0, 1, 2) and "EMBERLET_TRACEBACK" not in said.err, (words, said.err)
        assert all(c == "\n" or c.isprintable() for c in said.out + said.err), repr(said.out + said.err)
    if name.startswith(("twice", "half.safetensors", "model")):
        with pytest.raises(FormatError, match=r"twice|surrogate"):
            store.open(tmp_path / name)


@pytest.mark.parametrize("name", ["a\nb.onnx", "-x.onnx", "--out.onnx", "a\u202eb.onnx", "\udcff.onnx", "$(id);.onnx"])
def test_a_name_of_a_file_reaches_no_terminal(emberlet, tmp_path, monkeypatch, digits, name):
    monkeypatch.chdir(tmp_path)
    shutil.copy(digits, os.fsencode(name))
    for words in ("inspect", "graph --out o.svg", "graph --out o.txt", "codegen --out o", "compile --out o.plan",
                  "verify", "convert o.npz"):  # fmt: skip
        command, *more = words.split()
        said = emberlet(command, name, *more)
        assert said.status in (0, 1, 2) and "EMBERLET_TRACEBACK" not in said.err, (words, said.err)
        shown = (said.out + said.err).replace(name, "") if "\n" in name else said.out + said.err
        assert all(c == "\n" or c.isprintable() for c in shown), repr(shown)


@pytest.mark.parametrize("command", COMMANDS)
def test_mutated_models_end_in_words_on_the_command_line(emberlet, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    r = random.Random(command)
    names = sorted(node_cases())
    for _ in range(12):
        onnx.save(mutated(node_cases()[r.choice(names)].model, r.randrange(1 << 30)), "m.onnx")
        said = emberlet(command, "m.onnx")
        assert said.status in ((0, 1, 2) if command == "verify" else (0, 2))
        assert "Traceback" not in said.err


@pytest.mark.parametrize("error", [ValueError("no"), RecursionError("deep"), AssertionError()])
def test_an_unexpected_error_is_one_line_and_no_difference(emberlet, tmp_path, monkeypatch, error):
    from emberlet.codegen import generation

    def fails(*arguments, **named):
        raise error

    onnx.save(parse("g (float[2] x) => (float[2] y) { y = Neg(x) }"), tmp_path / "m.onnx")
    monkeypatch.setattr(generation, "translate", fails)
    said = emberlet("verify", tmp_path / "m.onnx")
    assert said.status == 2
    assert said.err.count("\n") == 1 and type(error).__name__ in said.err and "EMBERLET_TRACEBACK=1" in said.err
    monkeypatch.setenv("EMBERLET_TRACEBACK", "1")
    with pytest.raises(type(error)):
        emberlet("verify", tmp_path / "m.onnx")


@pytest.mark.parametrize("name", ["numpy", "os", "typing"])
def test_a_model_called_like_a_module_does_not_replace_it(emberlet, tmp_path, name):
    before = sys.modules.get(name, sys)
    onnx.save(parse("g (float[2] x) => (float[2] y) { y = Neg(x) }"), tmp_path / "m.onnx")
    assert emberlet("codegen", tmp_path / "m.onnx", "--out", tmp_path, "--name", name).status == 0
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    said = emberlet("run", tmp_path / f"{name}.py", "--input", f"x={tmp_path / 'x.npy'}")
    assert said.status == 0 and "[-1, -2]" in said.out
    assert sys.modules.get(name, sys) is before


@pytest.mark.parametrize("command", ["run", "compile"])
def test_the_help_says_that_a_module_is_executed(emberlet, command):
    assert "executed" in emberlet(command, "--help").out


def test_the_package_is_a_command():
    done = python("-m", "emberlet", "--version", env=os.environ, check=True)
    assert done.stdout.strip()
    done = python("-m", "emberlet", "inspect", "nowhere.onnx")
    assert done.returncode == 2 and done.stderr == "emberlet: nowhere.onnx: No such file or directory\n"
