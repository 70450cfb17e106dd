"""The examples, built by the command line and run on MicroPython as their READMEs say."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from emberlet.micro.builder.cli import main
from emberlet.micro.builder.deploy import HELPERS

from tools.micropython import Port
from tools.paths import ROOT

EXAMPLES = ROOT / "examples"

MODELS = {
    "micro_sine": ("sine/sine.onnx", "sine/heldout.npz"),
    "micro_digits": ("digits/digits.onnx", "micro_digits/calibration.npz"),
    "micro_wake_word": ("micro_wake_word/wake_word.onnx", "micro_wake_word/calibration.npz"),
    "micro_accelerometer": ("micro_accelerometer/accelerometer.onnx", "micro_accelerometer/calibration.npz"),
}


@pytest.fixture
def lines(request: pytest.FixtureRequest, unix_port: Port, tmp_path: Path) -> list[str]:
    """The lines that an example's main.py prints."""
    name: str = request.param
    model, samples = (str(EXAMPLES / file) for file in MODELS[name])
    assert main(["build", model, "--calibration", samples, "--board", "unix", "--out", str(tmp_path)]) == 0
    helpers = tmp_path / "lib" / "emberlet" / "micro"
    helpers.mkdir(parents=True)
    for file in {file for files in HELPERS.values() for file in files}:
        shutil.copy(ROOT / "micro" / f"{file}.py", helpers)
    folders = [tmp_path / "x64", EXAMPLES / name, tmp_path / "lib"]
    return unix_port.run(EXAMPLES / name / "main.py", micropypath=folders, heap="4M").check().stdout.splitlines()


@pytest.mark.parametrize("lines", ["micro_sine"], indirect=True)
def test_sine_follows(lines: list[str]) -> None:
    assert len(lines) == 33
    off = re.fullmatch(r"at most (\d\.\d+) off", lines[-1])
    assert off and float(off[1]) < 0.05


@pytest.mark.parametrize("lines", ["micro_digits"], indirect=True)
def test_digits_are_read(lines: list[str]) -> None:
    assert [line.split()[1] for line in lines if line.startswith("a ")] == [f"{k}," for k in range(10)]


@pytest.mark.parametrize("lines", ["micro_wake_word"], indirect=True)
def test_sounds_are_heard(lines: list[str]) -> None:
    heard = [(line.split()[0], line.split()[3]) for line in lines]
    assert len(heard) == 8
    assert all(kind == found for kind, found in heard)


@pytest.mark.parametrize("lines", ["micro_accelerometer"], indirect=True)
def test_motions_are_told_apart(lines: list[str]) -> None:
    right = total = 0
    for line in lines:
        kind, _, _, *seen = line.split()[:-4]
        right += seen.count(kind)
        total += len(seen)
    assert total == 50
    assert right >= 46


@pytest.mark.parametrize("name", MODELS)
def test_what_a_readme_says_of_sizes_is_so(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, samples = (str(EXAMPLES / file) for file in MODELS[name])
    main(["build", model, "--calibration", samples, "--out", str(tmp_path)])
    said = (EXAMPLES / name / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    macs = re.search(r"([\d,]+) multiply-accumulates", said)
    arena = re.search(r"([\d,.]+ (?:bytes|KB)) of arena", said)
    report = capsys.readouterr().out
    assert macs and f"{macs[1]} multiply-accumulates" in report
    assert arena and f"arena {arena[1].replace('bytes', 'B')}" in report
