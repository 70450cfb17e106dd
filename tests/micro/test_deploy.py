"""`emberlet micro deploy` through mpremote itself, over a serial port, onto MicroPython behind a raw REPL."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from emberlet.micro.builder.build import Options, write
from emberlet.micro.builder.cli import main
from emberlet.micro.builder.deploy import commands, deploy
from emberlet.micro.builder.emit_model import Partition
from emberlet.micro.builder.reference import quantise
from support.microcontrollers.models import DIGITS, build_digits, desktop_boards, digits_data
from support.microcontrollers.serial_board import mpremote, serial_board
from support.micropython import Port
from support.paths import ROOT

EXAMPLES = ROOT / "examples"
EXAMPLE = EXAMPLES / "micro_digits"


@pytest.fixture
def serial(unix_port: Port) -> Iterator[str]:
    with serial_board(unix_port) as name:
        yield name


def digits_seen(serial: str, count: int = 10) -> list[int]:
    """What a board with the digit recogniser reads in the first images."""
    images = (digits_data()[0][:count] * 16).reshape(count, -1).astype(int).tolist()
    return [int(n) for n in json.loads(mpremote(serial, "exec", READ.format(images=images)))]


READ = """
import digits
seen = []
for image in {images}:
    digits.predict([v / 16 for v in image])
    seen.append(digits.best())
print(seen)
"""


def expected(count: int = 10) -> list[int]:
    """What the reference reads in them."""
    model = build_digits()
    port = model.program.inputs[0]
    images = [quantise(x, port.scale, port.zero) for x in digits_data()[0][:count]]
    return [int(model.graph.run({"image": x})["logits"].argmax()) for x in images]


def built(out: Path, weights: str, partition: Partition | None = None) -> Path:
    boards = desktop_boards()
    options = Options("digits", weights, boards, partition=partition)  # type: ignore[arg-type]
    write(build_digits(weights, boards=boards, partition=partition), options, out)
    return out


@pytest.mark.parametrize("weights", ["file", "module", "romfs"])
def test_a_deployed_model_infers(weights: str, serial: str, tmp_path: Path) -> None:
    assert deploy(commands(built(tmp_path, weights), "x64", serial)) == 0
    assert digits_seen(serial) == expected()
    assert ("/rom/digits" in mpremote(serial, "exec", "import digits; print(digits.__file__)")) is (weights == "romfs")


@pytest.mark.parametrize("partition", [Partition("esp32", label="model"), Partition("rp2", start=65536)])
def test_weights_are_written_into_a_flash_partition(partition: Partition, serial: str, tmp_path: Path) -> None:
    assert deploy(commands(built(tmp_path, "partition", partition), "x64", serial, "/lib")) == 0
    assert digits_seen(serial) == expected()
    assert mpremote(serial, "exec", "import os; print(sorted(os.listdir('/lib')))").split() == [
        "['digits.mpy',",
        "'digits_kernels.mpy']",
    ]


def test_a_newcomer_follows_the_page_to_a_running_board(
    serial: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command of docs/microcontrollers.md from the built model on, and what it says that they print."""
    page = (ROOT / "docs" / "microcontrollers.md").read_text()
    monkeypatch.chdir(tmp_path)
    shutil.copy(DIGITS / "digits.onnx", "model.onnx")
    shutil.copy(EXAMPLE / "calibration.npz", "samples.npz")
    steps = [shlex.split(line) for line in page.splitlines() if re.match(" {8}(emberlet|mpremote) ", line)]
    build, bring = (step[2:] for step in steps if step[:2] == ["emberlet", "micro"])
    assert main(build) == 0
    said = " ".join(page.split())
    for line in capsys.readouterr().out.splitlines()[:-1]:
        assert " ".join(line.split()).partition(" (root mean square)")[0] in said
    assert main(["unix" if word == "rp2" else word for word in build]) == 0
    assert main([*bring, "--port", serial]) == 0
    (run,) = (step[1:] for step in steps if step[0] == "mpremote")
    assert mpremote(serial, *run).startswith("[")
    wake_word = EXAMPLES / "micro_wake_word"
    samples = str(wake_word / "calibration.npz")
    capsys.readouterr()
    assert main(["build", str(wake_word / "wake_word.onnx"), "--calibration", samples, "--board", "esp8266"]) == 1
    (missing,) = (line.strip() for line in page.splitlines() if line.startswith("    esp8266"))
    assert missing.removesuffix(" …") in capsys.readouterr().out


def test_an_example_runs_after_its_commands(serial: str, tmp_path: Path) -> None:
    samples = str(EXAMPLE / "calibration.npz")
    model = str(DIGITS / "digits.onnx")
    assert main(["build", model, "--calibration", samples, "--board", "unix", "--out", str(tmp_path)]) == 0
    assert main(["deploy", str(tmp_path), "--port", serial, "--helper", "stream"]) == 0
    assert mpremote(serial, "exec", "from emberlet.micro.stream import Rows; print(Rows.__name__)") == "Rows\n"
    files = [str(EXAMPLE / name) for name in ("main.py", "digits_to_read.py")]
    mpremote(serial, "cp", *files, ":", "+", "reset")
    printed = listen(serial, "a 9, in")
    assert all(f"a {n}, in" in printed for n in range(10))


def listen(serial: str, end: str, seconds: float = 20) -> str:
    """What a board prints until `end` is in it."""
    line = os.open(serial, os.O_RDWR | os.O_NOCTTY)
    text, due = "", time.monotonic() + seconds
    while end not in text and time.monotonic() < due:
        if select.select([line], [], [], 0.2)[0]:
            text += os.read(line, 4096).decode()
    os.close(line)
    return text


def test_mip_installs_a_model_and_the_helpers(serial: str, tmp_path: Path) -> None:
    out = built(tmp_path, "file") / "x64"
    mpremote(serial, "mip", "install", str(out / "package.json"))
    assert digits_seen(serial, 3) == expected(3)
    mpremote(serial, "mip", "install", str(ROOT / "micro" / "package.json"))
    names = "from emberlet.micro import stream, audio, image; print(audio.LogMel(hop=64).size)"
    assert mpremote(serial, "exec", names) == "512\n"


def test_a_board_that_is_not_there_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert deploy(commands(built(tmp_path, "file"), "x64", str(tmp_path / "no port"))) != 0
    assert "no port" in capfd.readouterr().err


def test_sources_alone_run_too(serial: str, tmp_path: Path) -> None:
    out = built(tmp_path / "dist", "file")
    mpremote(serial, "cp", *(str(out / name) for name in ("digits.py", "digits_kernels.py", "digits.bpk")), ":")
    assert digits_seen(serial, 3) == expected(3)
