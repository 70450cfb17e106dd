"""MFCC are those of TensorFlow's operators, which LiteRT runs: in NumPy, and on a board the same bytes of a model."""

from __future__ import annotations

import json
from array import array
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from emberlet.micro.builder.audio import mfcc
from emberlet.micro.mfcc import Mfcc

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers import litert
from tools.microcontrollers.tflite_files import File
from tools.micropython import Port
from tools.paths import ROOT

RATE = 16000

# Frames are a whole number of hops, as in `mfcc`.
OPTIONS: list[dict[str, int]] = [
    {},
    {"size": 480, "hop": 160, "coefficients": 13},
    {"size": 400, "hop": 400, "count": 26, "coefficients": 26, "low": 0, "high": 7900},
    {"size": 1024, "hop": 512, "count": 50, "coefficients": 20},
]


def sounds() -> dict[str, npt.NDArray[np.int16]]:
    """Noise, loud and quiet; a sweep; pulses through three resonances, like a vowel; a loud tone; silence."""
    rng, t = np.random.default_rng(3), np.arange(RATE // 2) / RATE
    pulses = np.zeros(t.size)
    pulses[(np.arange(0, 0.5, 1 / 120) * RATE).astype(int)] = 1
    for frequency, width in ((700, 90), (1200, 110), (2600, 160)):
        radius, out = np.exp(-np.pi * width / RATE), np.zeros(t.size)
        turn = 2 * radius * np.cos(2 * np.pi * frequency / RATE)
        for k in range(t.size):
            out[k] = pulses[k] + turn * out[k - 1] - radius**2 * out[k - 2]
        pulses = out
    found = {
        "noise": 3000 * rng.standard_normal(t.size),
        "quiet": 10 * rng.standard_normal(t.size),
        "sweep": 8000 * np.sin(2 * np.pi * (200 + 4000 * t) * t) + 100 * rng.standard_normal(t.size),
        "vowel": 12000 * pulses / np.abs(pulses).max() + 5 * rng.standard_normal(t.size),
        "tone": 30000 * np.sin(2 * np.pi * 440 * t) + 30 * rng.standard_normal(t.size),
        "silence": np.zeros(t.size),
        "hush": np.floor(0.3 * rng.standard_normal(t.size)),
    }
    return {name: np.clip(np.rint(x), -32768, 32767).astype(np.int16) for name, x in found.items()}


def reference(
    samples: npt.NDArray[np.int16], folder: Path, grid: tuple[float, int] | None = None, **how: int
) -> npt.NDArray[Any]:
    """What LiteRT's `Mfcc` gives for its `AudioSpectrogram`; with a grid, what its `Quantize` gives for that."""
    o = {"size": 640, "hop": 320, "count": 40, "coefficients": 10, "low": 20, "high": 4000} | how
    file, frames = File(), 1 + (samples.size - o["size"]) // o["hop"]
    x = file.tensor((samples.size, 1), "float32")
    spectrogram = file.tensor((1, frames, (1 << (o["size"] - 1).bit_length()) // 2 + 1), "float32")
    y = file.tensor((1, frames, o["coefficients"]), "float32")
    file.inputs, file.outputs = [x], [y]
    spectral = {"window_size": o["size"], "stride": o["hop"], "magnitude_squared": True}
    file.operator("CUSTOM AudioSpectrogram", [x], [spectrogram], **spectral)
    limits = {"lower_frequency_limit": float(o["low"]), "upper_frequency_limit": float(o["high"])}
    counts = {"filterbank_channel_count": o["count"], "dct_coefficient_count": o["coefficients"]}
    rate = file.constant(np.array([RATE], np.int32))
    file.operator("CUSTOM Mfcc", [spectrogram, rate], [y], **limits, **counts)
    if grid is not None:
        file.outputs = [file.tensor((1, frames, o["coefficients"]), "int8", *grid)]
        file.operator("QUANTIZE", [y], file.outputs)
    given = (samples / 32768).astype(np.float32).reshape(1, -1, 1)
    return litert.answers({"m": file.written()}, {"m": given}, folder)["m"].reshape(frames, -1)


def frames(samples: npt.NDArray[np.int16], chunk: int = 0, **how: int) -> list[list[int]]:
    """Those of the device from the first whole frame on."""
    front, out = Mfcc(**how), []
    for k in range(0, samples.size, chunk or front.hop):
        if front.push(array("h", samples[k : k + (chunk or front.hop)].tolist())):
            out.append(list(front.features()))
    return out[front.size // front.hop - 1 :]


@pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="LiteRT has no wheel for this Python")
@pytest.mark.parametrize("how", OPTIONS, ids=str)
def test_numpy_computes_what_tensorflow_does(how: dict[str, int], tmp_path: Path) -> None:
    for samples in sounds().values():
        np.testing.assert_allclose(mfcc(samples, **how), reference(samples, tmp_path, **how), atol=1e-4)


@pytest.mark.parametrize("how", OPTIONS, ids=str)
def test_the_device_computes_nearly_the_same(how: dict[str, int]) -> None:
    """Beside coefficients of up to 25, and steps of 0.5 of a network's bytes. A loud tone, 80 dB above the other bands,
    leaves them few bits."""
    for name, samples in sounds().items():
        exact, found = mfcc(samples, **how), np.array(frames(samples, **how)) * Mfcc.unit
        assert np.abs(found - exact).max() < (5e-4 if name == "tone" else 5e-5), name


GRID = 0.5847029, 83
"""That of the int8 input of MLPerf Tiny's keyword spotting network, which these features are for."""


def speech(seconds: int) -> npt.NDArray[np.int16]:
    """Pulses and noise through resonances, louder and quieter, in syllables of 0.2 s, over a background."""
    rng, parts = np.random.default_rng(7), []
    count = RATE // 5
    t, f = np.arange(count) / RATE, np.fft.rfftfreq(count, 1 / RATE)
    for _ in range(5 * seconds):
        pulses = np.diff(np.floor(t * rng.uniform(80, 250)), prepend=-1)
        source = pulses if rng.random() < 0.6 else rng.standard_normal(count)
        places = np.array([rng.uniform(250, 900), rng.uniform(900, 2500), rng.uniform(2300, 3600)])
        responses = [1 / (1 - (f / place) ** 2 + 0.12j * f / place) for place in places]
        x = np.fft.irfft(np.fft.rfft(source) * np.prod(responses, axis=0), count)
        parts.append(x / np.abs(x).max() * 10 ** rng.uniform(1, 4.4) * np.hanning(count))
    sound = np.concatenate(parts) + 3 * rng.standard_normal(5 * seconds * count)
    return np.clip(np.rint(sound), -32768, 32767).astype("<i2")


HEARD = """
from array import array
from emberlet.micro.mfcc import Mfcc
from emberlet.micro.stream import Rows

front, row, samples = Mfcc(), bytearray(10), array("h", bytes(640))
rows = Rows(memoryview(row), 0.5847029, 128 + 83, columns=10, unit=front.unit)
with open("{sound}", "rb") as f:
    while f.readinto(samples) == 640:
        if front.push(samples) and rows.append(front.features()):
            print("".join("%02x" % b for b in row))
"""


def differing(lines: list[str], due: npt.NDArray[Any]) -> int:
    """How many bytes of the rows that a device printed are not LiteRT's."""
    found = np.array([list(bytes.fromhex(line)) for line in lines[1:]]) - 128  # the first is half of silence
    assert found.shape == due.shape and len(np.unique(found)) > 60
    return int((found != due).sum())


@pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="LiteRT has no wheel for this Python")
def test_the_bytes_of_a_model_are_those_that_tensorflow_gives(armhf_port: Port, tmp_path: Path) -> None:
    """All of 1,249 frames: the coefficients, and their conversion to the model's grid."""
    samples = speech(25)
    (tmp_path / "sound").write_bytes(samples.tobytes())
    lines = armhf_port.run(HEARD.format(sound=tmp_path / "sound"), heap="16M").check().stdout.split()
    assert differing(lines, reference(samples, tmp_path, GRID)) == 0


@pytest.mark.parametrize("kind", [float, np.int32, np.int64])
def test_a_rate_of_another_kind_gives_the_same(kind: type) -> None:
    sound = np.ones(640, np.int16)
    np.testing.assert_array_equal(mfcc(sound, rate=kind(16000)), mfcc(sound, rate=16000))


def test_silence_is_that_of_tensorflow() -> None:
    silence = frames(np.zeros(1280, np.int16))[-1]
    assert silence[0] * Mfcc.unit == pytest.approx(np.sqrt(2 / 40) * 40 * np.log(1e-12), abs=1e-5)
    assert max(map(abs, silence[1:])) <= 4


@pytest.mark.parametrize("chunk", [1, 77, 319])
def test_the_size_of_chunks_makes_no_difference(chunk: int) -> None:
    samples = sounds()["sweep"][:3200]
    assert frames(samples, chunk)[-3:] == frames(samples)[-3:]


@pytest.mark.parametrize("port_name", ["unix_port", "armhf_port", "wasm_port"])
def test_every_port_computes_the_same(port_name: str, request: pytest.FixtureRequest) -> None:
    port: Port = request.getfixturevalue(port_name)
    samples = [((i * i * 37 + i * 1103) % 20011 - 10000) >> (i >> 9) for i in range(3200)]
    script = """
import json, gc
from array import array
from emberlet.micro.mfcc import Mfcc

samples = array("h", (((i * i * 37 + i * 1103) % 20011 - 10000) >> (i >> 9) for i in range(3200)))
front, out = Mfcc(), []
for k in range(0, 3200, 320):
    front.push(samples[k : k + 320])
    out.append(list(front.features()))


def count():
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    front.features()
    return gc.mem_alloc() - before


print(json.dumps([out, count()]))
"""
    out, allocated = json.loads(port.run(script).check().stdout)
    assert out[1:] == frames(np.array(samples, np.int16))
    assert allocated == 0


def test_loud_sounds_in_all_bins_of_wide_bands_fit_the_words(armhf_port: Port) -> None:
    """A click and a sweep, whose spectra are flat."""
    size = 2048
    click, t = np.zeros(size), np.arange(size) / size
    click[size // 2] = 32767
    swept = (t > 0.3) & (t < 0.6)
    sweep = 32000 * swept * np.cos(2 * np.pi * np.cumsum(swept * (3000 + 4900 * (t - 0.3) / 0.3)) / RATE)
    how = {"size": size, "hop": size, "count": 9, "coefficients": 9, "low": 0, "high": 7999}
    sounds = [np.rint(x).astype(np.int16) for x in (click, sweep)]
    script = f"""
from array import array
from emberlet.micro.mfcc import Mfcc

for x in {[x.tolist() for x in sounds]}:
    front = Mfcc(**{how})
    front.push(array("h", x))
    print(list(front.features()))
"""
    for line, x in zip(armhf_port.run(script, heap="64M").check().stdout.splitlines(), sounds, strict=True):
        assert json.loads(line) == frames(x, **how)[0]
        np.testing.assert_allclose(np.array(json.loads(line)) * Mfcc.unit, mfcc(x, **how)[0], atol=1e-4)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"size": 7}, "from 8 to 65,536"),
        ({"count": 81}, "at most 80"),
        ({"coefficients": 41}, "at most count"),
    ],
)
def test_what_is_not_supported_is_said(how: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Mfcc(**how)


@pytest.mark.parametrize(("how", "said"), [({"high": 9000}, "half the rate"), ({"low": 7000, "high": 7010}, "no bin")])
def test_numpy_refuses_the_frequencies_that_the_device_does(how: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Mfcc(**how)
    with pytest.raises(ValueError, match=said):
        mfcc(np.zeros(640), **how)


COUNTED = """
import gc
from array import array
import mfcc

front = mfcc.Mfcc()
samples = array("h", ((i * i * 37 + i * 1103) % 20011 - 10000 for i in range(320)))
front.push(samples)
gc.collect()
gc.disable()
start = end = 0
start = count()
front.push(samples)
front.features()
end = count()
print(end - start)
"""


def files_for_boards(assembly: bool = True) -> dict[str, bytes]:
    """The modules, beside each other. assembly: whether the kernels in assembly are among them."""
    texts = {}
    for kind in ("", "_kernels_viper", *["_kernels_thumb"] * assembly):
        texts[f"mfcc{kind}.py"] = (ROOT / "micro" / f"mfcc{kind}.py").read_text(encoding="utf-8")
    for file in ("frames.py", "stream.py"):
        texts[file] = (ROOT / "micro" / file).read_text(encoding="utf-8")
    together = (("from . import", "import"), ("from .frames", "from frames"))
    return {
        file: reduce(lambda text, pair: text.replace(*pair), together, text).encode() for file, text in texts.items()
    }


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", ["m7", "m0"])
def test_a_hop_takes_a_quarter_of_a_million_instructions(name: str) -> None:
    """A count, not a time: 20 ms of sound are 2.5 million cycles of a Pico at 125 MHz."""
    found = int(EmulatedBoard(name).run(COUNTED, files_for_boards()))
    print(name, found)
    assert found < 250_000


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", ["m7", "m0", "rv32"])
def test_a_hop_fits_into_its_time_without_assembly(name: str) -> None:
    found = int(EmulatedBoard(name).run(COUNTED, files_for_boards(assembly=False)))
    print(name, found)
    assert found < 1_200_000


COMPARED = """
from array import array
import mfcc

print(hasattr(mfcc._kernels, "address"))
for how in {kinds}:
    front, v = mfcc.Mfcc(**how), 1
    for k in range(6):
        sound = array("h", bytes(2 * front.hop))
        for i in range(front.hop):
            v = v * 1103515245 + 12345 & 0x3FFFFFFF
            sound[i] = (v >> 12 & 0xFFFF) - 32768 >> 3 * k
        front.push(sound)
        print(list(front.features()))
"""


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", ["m7", "m0", "rv32"])
def test_assembly_computes_the_same(name: str) -> None:
    """For frames and hops of odd sizes too, whose samples are looked at in pairs. RISC-V, which has no kernels in
    assembly, does without."""
    kinds: list[dict[str, int]] = [
        {},
        {"size": 401, "hop": 399, "count": 26, "coefficients": 26, "low": 0, "high": 7900},
        {"size": 2047, "hop": 2001, "count": 9, "coefficients": 9, "low": 0, "high": 7999},
        {"size": 8, "hop": 5, "count": 1, "coefficients": 1, "low": 10, "high": 7000},
        {"size": 1024, "hop": 512, "count": 80, "coefficients": 20},
    ]
    first, *lines = EmulatedBoard(name).run(COMPARED.format(kinds=kinds), files_for_boards()).splitlines()
    assert first == str(name != "rv32")
    due = []
    for how in kinds:
        front, v = Mfcc(**how), 1
        for k in range(6):
            sound = array("h", bytes(2 * front.hop))
            for i in range(front.hop):
                v = v * 1103515245 + 12345 & 0x3FFFFFFF
                sound[i] = (v >> 12 & 0xFFFF) - 32768 >> 3 * k
            front.push(sound)
            due.append(list(front.features()))
    assert [json.loads(line) for line in lines] == due


@pytest.mark.needs("emulated-boards")
@pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="LiteRT has no wheel for this Python")
@pytest.mark.parametrize("name", ["m7", "m0"])
def test_a_board_whose_floats_have_32_bits_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    """All tables are computed by integers."""
    samples = speech(2)
    script = HEARD.format(sound="/rom/sound").replace("emberlet.micro.", "")
    lines = EmulatedBoard(name).run(script, {**files_for_boards(), "sound": samples.tobytes()}).split()
    assert differing(lines, reference(samples, tmp_path, GRID)) == 0
