"""The command line, from a model file to the commands that copy it to a board."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.host import cli
from emberlet.micro.builder.cost import size_text, time_text
from emberlet.micro.builder.deploy import commands, deploy
from onnx import TensorProto, helper

from tools.microcontrollers.models import DIGITS, digits_data
from tools.micropython import Port
from tools.paths import ROOT


def main(arguments: list[str]) -> int:
    return cli.main(["micro", *arguments])


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    path = tmp_path / "samples.npz"
    np.savez(path, image=digits_data()[0][:50].reshape(-1, 1, 8, 8))
    return path


def build(samples: Path, out: Path, *more: str) -> int:
    return main(["build", str(DIGITS / "digits.onnx"), "--calibration", str(samples), "--out", str(out), *more])


def test_build_writes_sources_and_files_for_each_board(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "dist"
    assert build(samples, out, "--board", "rp2", "--board", "esp32s3", "--name", "Zahl 7") == 0
    text = capsys.readouterr().out
    assert "rp2 (Raspberry Pi Pico, RP2040): fits" in text and "esp32s3" in text
    assert "int8 beside float32 on 50 samples" in text
    for arch in ("armv6m", "xtensawin"):
        package = json.loads((out / arch / "package.json").read_text(encoding="utf-8"))
        names = [name for name, _ in package["urls"]]
        assert sorted(names) == ["zahl_7.bpk", "zahl_7.mpy", "zahl_7_kernels.mpy"]
        assert all((out / arch / name).exists() for name in names)
    assert (out / "zahl_7_bytecode.py").exists()


def test_the_report_is_json_for_scripts(samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its numbers are those that people read."""
    more = ["--name", "net", "--board", "rp2", "--board", "esp8266", "--board", "unix"]
    assert build(samples, tmp_path / "read", *more) == 0
    text = capsys.readouterr().out
    assert build(samples, tmp_path / "parsed", *more, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    rp2 = facts["boards"]["rp2"]
    assert rp2["fits"] and rp2["missing"] == [] and facts["costs"]["armv6m"]["macs"] == 86848
    assert f"about {time_text(rp2['milliseconds'])} at {rp2['mhz']} MHz" in text
    assert rp2["cycles"] == pytest.approx(rp2["milliseconds"] * rp2["mhz"] * 1000, rel=1e-3) and rp2["instructions"]
    assert facts["boards"]["unix"]["instructions"] is None
    assert f"flash {size_text(rp2['flash']['needed'])} of {size_text(rp2['flash']['available'])}" in text
    assert f"memory {size_text(rp2['memory']['needed'])} of {size_text(rp2['memory']['available'])}" in text
    assert f"the same largest output in {facts['agreement']['share']:.1%}" in text
    assert all(Path(name).is_file() for name in facts["files"])


@pytest.mark.parametrize(
    ("name", "becomes"), [("CON", "con_model"), ("com1", "com1_model"), ("machine", "machine_model")]
)
def test_a_model_takes_no_name_that_windows_or_a_board_keeps(
    name: str, becomes: str, samples: Path, tmp_path: Path
) -> None:
    assert build(samples, tmp_path / "dist", "--name", name) == 0
    assert (tmp_path / "dist" / f"{becomes}.py").exists() and not (tmp_path / "dist" / f"{name.lower()}.py").exists()


def test_what_an_editor_adds_to_the_report_of_a_build_is_taken(samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "dist"
    assert build(samples, out, "--board", "rp2") == 0
    held = (out / "build.json").read_bytes()
    (out / "build.json").write_bytes(b"\xef\xbb\xbf" + held.replace(b"\n", b"\r\n"))
    assert main(["deploy", str(out), "--dry-run"]) == 0


def test_a_second_build_takes_the_files_of_the_first_away_and_no_others(samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "dist"
    assert build(samples, out, "--board", "rp2", "--name", "first") == 0
    (out / "armv6m" / "notes.txt").write_text("mine", encoding="utf-8")
    assert build(samples, out, "--board", "esp32s3", "--name", "second") == 0
    assert sorted(p.name for p in out.rglob("*") if "first" in p.name) == []
    assert [p.name for p in (out / "armv6m").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("written", [["../samples.npz", 5], {"../samples.npz": "DIGEST"}, {"../samples.npz": 5}, None])
def test_a_forged_report_of_a_build_deletes_nothing(
    written: Any, samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from hashlib import sha256

    out = tmp_path / "dist"
    assert build(samples, out) == 0
    about = json.loads((out / "build.json").read_text(encoding="utf-8"))
    if isinstance(written, dict):
        written = {k: sha256(samples.read_bytes()).hexdigest() if v == "DIGEST" else v for k, v in written.items()}
    (out / "build.json").write_text(json.dumps(about | {"written": written}), encoding="utf-8")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert build(samples, out) == 2
    assert "was not written by an earlier build; --overwrite replaces it" in capsys.readouterr().err
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert build(samples, out, "--overwrite") == 0
    assert samples.exists()


def test_files_of_others_and_changed_files_are_not_replaced(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "dist"
    out.mkdir()
    (out / "zahl.py").write_text("mine", encoding="utf-8")
    assert build(samples, out, "--name", "zahl") == 2
    assert "zahl.py exists and was not written by an earlier build" in capsys.readouterr().err
    assert [p.name for p in out.iterdir()] == ["zahl.py"]
    (out / "zahl.py").unlink()
    assert build(samples, out, "--name", "zahl") == 0
    (out / "zahl.py").write_text("edited", encoding="utf-8")
    assert build(samples, out, "--name", "zahl") == 2
    assert "zahl.py exists and was changed since it was built" in capsys.readouterr().err
    assert build(samples, out, "--name", "other") == 0
    assert (out / "zahl.py").read_text(encoding="utf-8") == "edited"


def test_float32_without_calibration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(DIGITS / "digits.onnx"), "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("digits: float32, 86,848 multiply-accumulates")
    assert not (tmp_path / "digits_bytecode.py").exists()


@pytest.mark.parametrize("quantized", [False, True])
def test_a_model_of_two_inputs_wants_both(unix_port: Port, tmp_path: Path, quantized: bool) -> None:
    left, right, total = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3]) for n in ("a", "b c", "y"))
    graph = helper.make_graph([helper.make_node("Add", ["a", "b c"], ["y"])], "graph", [left, right], [total])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "two.onnx")
    ranges = np.linspace(-4, 4, 30, dtype=np.float32).reshape(10, 3)
    np.savez(tmp_path / "samples.npz", **{"a": ranges, "b c": ranges})
    more = ["--calibration", str(tmp_path / "samples.npz")] if quantized else []
    assert main(["build", str(tmp_path / "two.onnx"), "--out", str(tmp_path), "--board", "unix", *more]) == 0
    script = f"""
import json, sys
sys.path[:] = ["{tmp_path}"]
import two
print(json.dumps(two.predict([1, 2, 3], [-3, -2, 1])))
try:
    two.predict([1, 2, 3])
except ValueError as e:
    print(e)
"""
    numbers, error = unix_port.run(script, micropypath=[]).check().stdout.splitlines()
    np.testing.assert_allclose(json.loads(numbers), [-2, 0, 4], atol=0.1 if quantized else 1e-6)
    assert error == "predict takes 2 inputs, found 1"


def test_what_does_not_fit_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(DIGITS / "digits.onnx"), "--out", str(tmp_path), "--board", "esp8266"]) == 1
    assert "does not fit" in capsys.readouterr().out


def test_errors_are_one_line(tmp_path: Path, samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(tmp_path / "none.onnx")]) == 2
    assert build(samples, tmp_path, "--board", "pico9") == 2
    np.savez(samples, image=np.zeros((3, 9, 9), np.float32))
    assert build(samples, tmp_path) == 2
    np.savez(samples, picture=np.zeros((3, 8, 8)), other=np.zeros((3, 8, 8)))
    assert build(samples, tmp_path) == 2
    samples.write_text("no", encoding="utf-8")
    assert build(samples, tmp_path) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5 and all(line.startswith("emberlet: ") for line in lines)
    assert "expected (samples, 1, 8, 8)" in lines[2]
    assert "missing ['image']" in lines[3]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (np.full((3, 8, 8), np.nan, np.float32), "'image' holds 192 values that are NaN or beyond float32"),
        (np.full((3, 8, 8), 1e300), "'image' holds 192 values that are NaN or beyond float32"),
        (np.full((3, 8, 8), "x"), "'image' holds object, expected numbers"),
        (np.full((3, 8, 8), None), "image.npy: arrays of '|O' are not read"),
    ],
)
def test_samples_that_are_not_finite_are_refused(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], values: np.ndarray, says: str
) -> None:
    np.savez(samples, image=values)
    assert build(samples, tmp_path) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"emberlet: {samples}: {says}") and told.count("\n") == 1


NO_SIZES = ("image", "1,1,8,8", "=1,1,8,8", "image=", "image=1,,8", "image=1,x", "image=1,8,")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--percentile", "500"], "--percentile is 500, expected more than 50 and at most 100"),
        (["--percentile", "0"], "--percentile is 0, expected more than 50 and at most 100"),
        (["--micropython", "latest"], "--micropython is 'latest', expected a release such as 1.22"),
        (["--weights", "partition", "--partition", "model"], "--partition is 'model', expected its start in bytes"),
        *((["--shape", text], f"--shape is {text!r}, expected NAME=SIZES") for text in NO_SIZES),
        *((["--state", text], f"--state is {text!r}, expected INPUT=OUTPUT") for text in ("cache", "=new", "cache=")),
    ],
)
def test_options_out_of_range_are_one_line(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], says: str
) -> None:
    assert build(samples, tmp_path, "--board", "rp2", *more) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"emberlet: {says}") and told.count("\n") == 1


@pytest.mark.parametrize(
    ("more", "written"),
    [
        ([], None),
        (["--board", "rp2"], {"chip": "rp2", "label": "model", "start": 0}),
        (["--board", "rp2", "--partition", "0x100000"], {"chip": "rp2", "label": "model", "start": 1 << 20}),
        (["--board", "esp32"], {"chip": "esp32", "label": "model", "start": 0}),
        (["--board", "esp32", "--partition", "2nd"], {"chip": "esp32", "label": "2nd", "start": 0}),
        (["--partition", "4096"], {"chip": "rp2", "label": "model", "start": 4096}),
        (["--partition", "nets"], {"chip": "esp32", "label": "nets", "start": 0}),
        (["--weights", "partition"], {"chip": "esp32", "label": "model", "start": 0}),
    ],
)
def test_where_weights_lie_in_flash(
    samples: Path, tmp_path: Path, more: list[str], written: dict[str, object] | None
) -> None:
    assert build(samples, tmp_path, *(["--weights", "partition", *more] if more else [])) == 0
    found = json.loads((tmp_path / "build.json").read_text(encoding="utf-8"))["partition"]
    assert found == written


def summing(path: Path, *outputs: str) -> None:
    """A model of y = x + a with open sizes."""
    x, a, *ys = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", "n"]) for n in ("x", "a", *outputs))
    nodes = [helper.make_node("Add", ["x", "a"], ["y"]), helper.make_node("Identity", ["y"], ["z"])]
    graph = helper.make_graph(nodes, "graph", [x, a], ys)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.mark.parametrize("sizes", [["x=1,3", "a=1,3"], ["batch=1", "n=3"]])
def test_sizes_and_states_are_given_by_name(tmp_path: Path, sizes: list[str]) -> None:
    summing(tmp_path / "sum.onnx", "y", "z")
    given = [part for text in sizes for part in ("--shape", text)]
    assert main(["build", str(tmp_path / "sum.onnx"), "--out", str(tmp_path), "--state", "a=y", *given]) == 0
    text = (tmp_path / "sum.py").read_text(encoding="utf-8")
    assert "x: 3" in text and "a: 3" not in text


def test_a_model_whose_outputs_are_all_states_is_refused_and_takes_another_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summing(tmp_path / "sum.onnx", "y")
    given = ["--state", "a=y", "--shape", "batch=1", "--shape", "n=3"]
    assert main(["build", str(tmp_path / "sum.onnx"), "--out", str(tmp_path), *given]) == 2
    told = capsys.readouterr().err
    assert "--state: every output of the model (y) would be kept, and none given out; add an output" in told
    summing(tmp_path / "sum.onnx", "y", "z")
    assert main(["build", str(tmp_path / "sum.onnx"), "--out", str(tmp_path), *given]) == 0


def test_a_single_array_is_refused_as_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "samples.npy"
    np.save(path, np.zeros((3, 8, 8), np.float32))
    assert build(path, tmp_path) == 2
    assert "not an .npz of calibration samples; np.savez(FILE, NAME=array) writes one" in capsys.readouterr().err


def test_deploy_copies_files(samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "dist"
    build(samples, out, "--board", "rp2", "--board", "rp2350")
    assert main(["deploy", str(out)]) == 2
    assert "choose one with --board" in capsys.readouterr().err
    assert main(["deploy", str(out), "--board", "rp2", "--port", "/dev/ttyACM0", "--to", "/lib", "--dry-run"]) == 0
    first, second, third = capsys.readouterr().out.split("mpremote ")[1:]
    assert first.startswith("connect /dev/ttyACM0 exec ") and third.startswith("connect /dev/ttyACM0 exec ")
    assert second.split()[:4] == ["connect", "/dev/ttyACM0", "fs", "cp"]
    assert second.split()[-1] == ":/lib/.emberlet.new/"
    assert f"{out}/armv6m/digits_kernels.mpy" in second


def test_deploy_by_romfs_partition_and_firmware(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    romfs, partition, frozen = tmp_path / "r", tmp_path / "p", tmp_path / "f"
    build(samples, romfs, "--board", "stm32f4", "--weights", "romfs")
    assert commands(romfs)[1:] == [["romfs", "deploy", str(romfs / "armv7emsp" / "digits.romfs")]]
    build(samples, partition, "--board", "esp32", "--weights", "partition", "--partition", "model")
    write, _, copy, _ = commands(partition)
    assert write[:3] == ["mount", str(partition / "xtensawin"), "exec"]
    assert "label='model'" in write[3] and "/remote/digits.bpk" in write[3]
    assert build(samples, partition, "--board", "stm32f4", "--weights", "partition") == 2
    compile(write[3], "writer", "exec")
    assert not any(argument.endswith(".bpk") for argument in copy)
    build(samples, frozen, "--board", "rp2", "--weights", "frozen")
    manifest = frozen / "armv6m" / "manifest.py"
    assert manifest.read_text(encoding="utf-8") == (
        "freeze_mpy('.', ('digits.mpy', 'digits_weights.mpy', 'digits_kernels.mpy'))\n"
    )
    line = f'include("{manifest.as_posix()}")'
    assert f"next: add {line} to your firmware's manifest.py, and build it" in capsys.readouterr().out
    assert main(["deploy", str(frozen)]) == 2
    assert line in capsys.readouterr().err


def test_without_a_board_the_sources_are_frozen(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(samples, tmp_path / "f", "--weights", "frozen")
    manifest = tmp_path / "f" / "manifest.py"
    files = ("digits.py", "digits_kernels.py", "digits_weights.py")
    assert manifest.read_text(encoding="utf-8") == "".join(f'module("{file}")\n' for file in files)
    assert f'include("{manifest.as_posix()}")' in capsys.readouterr().out


def test_deploy_brings_helpers(samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "dist"
    build(samples, out, "--board", "rp2")
    assert main(["deploy", str(out), "--helper", "stream", "--helper", "audio", "--dry-run"]) == 0
    folders, files, *_ = capsys.readouterr().out.split("mpremote ")[1:]
    assert "/lib/emberlet/micro" in folders
    copied = [Path(name) for name in files.split()[2:-1]]
    assert {f.name for f in copied} == {
        f"{n}.py" for n in ("stream", "audio", "frames", "audio_kernels_viper", "bytecode")
    }
    assert all(f.exists() for f in copied)
    assert main(["deploy", str(out), "--helper", "camera"]) == 2
    package = json.loads((ROOT / "micro" / "package.json").read_text(encoding="utf-8"))
    listed = {name for _, name in package["urls"]}
    assert listed == {f.name for f in (ROOT / "micro").glob("*.py")}


def test_deploy_stops_at_the_first_failure() -> None:
    ran: list[str] = []

    def run(arguments: object) -> int:
        ran.append(str(arguments))
        return len(ran) - 1

    assert deploy([["a"], ["b"], ["c"]], run) == 1
    assert len(ran) == 2


def test_deploy_refuses_other_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deploy", str(tmp_path)]) == 2
    (tmp_path / "build.json").write_text("[]", encoding="utf-8")
    assert main(["deploy", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("emberlet: ") == 2
