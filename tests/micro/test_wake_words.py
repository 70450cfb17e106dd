"""Published wake words, from microphone samples to an answer, on an emulated Pico's processor."""

from __future__ import annotations

import json
from array import array
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.speech import MicroFrontend
from emberlet.micro.stream import Rows

from tools.boards_in_qemu import EmulatedBoard
from tools.paths import ROOT

FILES = ("speech.py", "frames.py", "speech_tables.py", "speech_kernels_viper.py", "stream.py")

LISTENING = """
import gc
import json
from array import array
import net
from speech import MicroFrontend
from stream import Rows

front = MicroFrontend()
rows = Rows(net.inputs[0], *net.input_grids[0], columns=40, hop=3, unit=10 / 256)
answers, most, since = [], 0, 0
with open("/rom/sound", "rb") as f:
    sound = f.read()
for k in range(0, len(sound), 320):
    samples = array("h", sound[k : k + 320])
    gc.collect()
    gc.disable()
    start = end = 0
    start = count()
    due = front.push(samples) and rows.append(front.features())
    if due:
        net.run()
    end = count()
    gc.enable()
    since += end - start
    if due:
        answers.append(net.output[0])
        most, since = max(most, since), 0
print(json.dumps([answers, most]))
"""


@pytest.mark.needs("emulated-boards")
@pytest.mark.skipif(find_spec("pymicro_wakeword") is None, reason="pymicro-wakeword has no wheel for this Python")
@pytest.mark.parametrize("name", ["okay_nabu", "hey_mycroft"])
def test_a_wake_word_answers_in_time(name: str) -> None:
    """Counts, not times: 30 ms of sound are 3.75 million cycles at 125 MHz. The features are compared with TensorFlow
    Lite Micro's in test_speech.py, and the network with LiteRT in test_tflite.py."""
    spec, board = find_spec("pymicro_wakeword"), EmulatedBoard("m0")
    assert spec is not None and spec.origin
    data = (Path(spec.origin).parent / "models" / f"{name}.tflite").read_bytes()
    stand_in = replace(BOARDS["rp2"], name="m0", arch=board.arch)
    built = build(read_graph(data, "net"), Options("net", "romfs", [stand_in]))
    t, rng = np.arange(16000), np.random.default_rng(1)
    sound = sum(6000 / k * np.sin(t * 0.05 * k) * (1 + np.sin(t * 0.001 * k)) for k in range(1, 9))
    samples = np.clip(np.rint(sound + rng.normal(0, 60, t.size)), -32768, 32767).astype("<i2")
    texts = {file: (ROOT / "micro" / file).read_text(encoding="utf-8").replace("from . ", "") for file in FILES}
    files = {file: text.replace("from .", "from ").encode() for file, text in texts.items()}
    out = board.run(LISTENING, {**built.deployed[board.arch], **files, "sound": samples.tobytes()})
    answers, most = json.loads(out.splitlines()[-1])
    port, graph = built.program.inputs[0], built.graph
    window, states, due = bytearray(port.size), dict[str, Any](), []
    front = MicroFrontend()
    rows = Rows(memoryview(window), port.scale, port.zero, columns=40, hop=3, unit=10 / 256)
    for k in range(0, samples.size, 160):
        if front.push(array("h", samples[k : k + 160].tolist())) and rows.append(front.features()):
            x = np.frombuffer(bytes(window), np.uint8).reshape(port.shape)
            due.append(int(graph.run({graph.inputs[0]: x}, states)[graph.outputs[0]].reshape(-1)[0]))
    print(name, most)
    assert answers == due and len(due) > 20
    assert most < 1_800_000
