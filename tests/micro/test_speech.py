"""The front end for wake words gives the features of TensorFlow Lite Micro's, to the byte, on every port."""

from __future__ import annotations

import json
from array import array

import numpy as np
import numpy.typing as npt
import pytest
from emberlet.micro.speech import MicroFrontend
from support.draws import draw

from tools.boards_in_qemu import EmulatedBoard
from tools.micropython import Port
from tools.paths import ROOT

FILES = ("speech.py", "frames.py", "speech_tables.py", "speech_kernels_viper.py")

SOUNDS = ("noise", "quiet", "silence", "sine", "square", "chirp", "lowest", "voice")


def sound(name: str, seed: int, count: int = 8000) -> list[int]:
    rng, t = np.random.default_rng(seed), np.arange(count)
    made: dict[str, npt.NDArray[np.generic]] = {
        "noise": rng.integers(-32768, 32768, count),
        "quiet": rng.integers(-3, 4, count),
        "silence": np.zeros(count),
        "sine": 32767 * np.sin(t * rng.uniform(0.05, 2)),
        "square": np.where(t // rng.integers(2, 60) % 2, 32767, -32768),
        "chirp": 20000 * np.sin(t * t * rng.uniform(1e-5, 1e-4)) + rng.normal(0, 100, count),
        "lowest": np.full(count, -32768),
        "voice": sum(rng.uniform(0, 6000) / k * np.sin(t * 0.05 * k) * (1 + np.sin(t * 0.001 * k)) for k in range(1, 9))
        + rng.normal(0, 60, count),
    }
    return [int(v) for v in np.clip(np.round(made[name].astype(float)), -32768, 32767)]


def features(samples: list[int]) -> list[list[int]]:
    front, found = MicroFrontend(), []
    for k in range(0, len(samples), 160):
        if front.push(array("h", samples[k : k + 160])):
            found.append(list(front.features()))
    return found


@pytest.mark.parametrize("name", SOUNDS)
def test_features_are_those_of_tensorflow_lite_micro(name: str) -> None:
    judge = pytest.importorskip("pymicro_features", reason="pymicro-features has no wheel for this Python")
    seed = draw(name).randrange(1 << 31)
    samples = sound(name, seed)
    front, due = judge.MicroFrontend(), []
    for k in range(0, len(samples), 160):
        said = front.process_samples(array("h", samples[k : k + 160]).tobytes())
        if said.features:
            due.append([round(v * 256 / 10) for v in said.features])
    assert len(due) == 48
    assert features(samples) == due


SCRIPT = """
import json
from array import array
from emberlet.micro.speech import MicroFrontend

samples = array("h", SAMPLES)  # their bytes
front, out = MicroFrontend(), []
for k in range(0, len(samples), 160):
    if front.push(samples[k : k + 99]) | front.push(list(samples[k + 99 : k + 160])):
        out.append(list(front.features()))
print(json.dumps(out))
"""


@pytest.mark.parametrize("port_name", ["unix_port", "armhf_port", "wasm_port"])
def test_every_port_computes_the_same(port_name: str, request: pytest.FixtureRequest) -> None:
    port: Port = request.getfixturevalue(port_name)
    samples = sound("voice", 1, 1600) + sound("square", 2, 800)
    found = port.run(SCRIPT.replace("SAMPLES", repr(array("h", samples).tobytes()))).check().stdout
    assert json.loads(found) == features(samples)


def test_a_frame_is_complete_after_480_samples_and_then_after_each_hop() -> None:
    front = MicroFrontend(320)
    pushed = [front.push([1] * n) for n in (320, 159, 1, 319, 1, 200, 200)]
    assert pushed == [False, False, True, False, True, False, True]
    front.reset()
    assert [front.push([1] * n) for n in (320, 160)] == [False, True]


def test_the_size_of_chunks_makes_no_difference() -> None:
    samples, front, found = sound("voice", 3, 4000), MicroFrontend(), []
    for k in range(0, 4000, 77):
        if front.push(samples[k : k + 77]):
            found.append(list(front.features()))
    assert found == features(samples)


def test_what_makes_no_sense_is_refused() -> None:
    for hop in (0, 481, 160.0, "abc", None):
        with pytest.raises(ValueError, match=f"an integer from 1 to 480, found {hop!r}"):
            MicroFrontend(hop)
    with pytest.raises(ValueError, match="at most 160 samples"):
        MicroFrontend().push([0] * 161)


COUNTED = """
import gc
from array import array
import speech

front = speech.MicroFrontend()
samples = array("h", ((i * i * 37 + i * 1103) % 20011 - 10000 for i in range(160)))
for i in range(4):
    if front.push(samples):
        front.features()
gc.collect()
gc.disable()
start = end = 0
start = count()
front.push(samples)
front.features()
end = count()
print(end - start)
print(list(front._out))
"""


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", ["m7", "m0"])
def test_a_hop_takes_less_than_a_fifth_of_its_time_on_a_pico(name: str) -> None:
    """A count, not a time: 10 ms of sound are 1.25 million instructions at 125 MHz, one a cycle."""
    texts = {file: (ROOT / "micro" / file).read_text(encoding="utf-8").replace("from . ", "") for file in FILES}
    files = {file: text.replace("from .", "from ").encode() for file, text in texts.items()}
    counted, last = EmulatedBoard(name).run(COUNTED, files).splitlines()[-2:]
    samples = [(i * i * 37 + i * 1103) % 20011 - 10000 for i in range(160)]
    assert json.loads(last) == features(samples * 5)[-1]
    print(counted)
    assert int(counted) < 1_250_000 / 5
