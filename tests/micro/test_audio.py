"""The log-mel front end computes NumPy's features within its resolution, and the same integers on every port."""

from __future__ import annotations

import json
from array import array
from inspect import signature

import numpy as np
import pytest
from emberlet.micro.audio import LogMel, band_edges, mel
from emberlet.micro.builder.audio import filters, log_mel

from tools.boards_in_qemu import EmulatedBoard
from tools.micropython import Port
from tools.paths import ROOT

RATE = 16000


def chirp(amplitude: float, noise: float, seed: int = 0) -> list[int]:
    t = np.arange(RATE // 2) / RATE
    x = amplitude * np.sin(2 * np.pi * (200 + 4000 * t) * t)
    x += noise * np.random.default_rng(seed).standard_normal(t.size)
    return [int(v) for v in np.clip(x, -32768, 32767)]


def frames(samples: list[int], front: LogMel) -> list[list[int]]:
    out = []
    for k in range(0, len(samples) - front.hop + 1, front.hop):
        if front.push(array("h", samples[k : k + front.hop])):
            out.append(list(front.features()))
    return out


@pytest.mark.parametrize(("amplitude", "noise"), [(8000, 400), (300, 30), (25000, 3000), (0, 1000)])
@pytest.mark.parametrize("sizes", [(64, 32, 6), (128, 128, 10), (256, 128, 20), (512, 256, 32), (1024, 512, 40)])
def test_features_are_those_of_numpy(amplitude: float, noise: float, sizes: tuple[int, int, int]) -> None:
    """Sizes whose half is a power of four, and others."""
    samples, (size, hop, count) = chirp(amplitude, noise), sizes
    exact = log_mel(samples, RATE, size, hop, count)
    found = np.array(frames(samples, LogMel(RATE, size, hop, count)))[size // hop - 1 :] / 256
    assert np.abs(found - exact).mean() < 0.06
    assert np.abs(found - exact).max() < (1 if size > 128 else 2.5)  # in a band that others drown out


def test_silence_is_zero() -> None:
    assert set(frames([0] * 1024, LogMel())[-1]) == {0}


@pytest.mark.parametrize("port_name", ["unix_port", "armhf_port", "wasm_port"])
def test_every_port_computes_the_same(port_name: str, request: pytest.FixtureRequest) -> None:
    port: Port = request.getfixturevalue(port_name)
    samples = [(i * i * 37 + i * 1103) % 20011 - 10000 for i in range(2048)]
    script = """
import json, gc
from array import array
from emberlet.micro.audio import LogMel

samples = array("h", ((i * i * 37 + i * 1103) % 20011 - 10000 for i in range(2048)))
front, out = LogMel(hop=512), []
for k in range(0, 2048, 512):
    front.push(samples[k : k + 99])
    front.push(list(samples[k + 99 : k + 200]))
    front.push(memoryview(samples)[k + 200 : k + 500])
    front.push(array("H", (s & 65535 for s in samples[k + 500 : k + 512])))
    out.append(list(front.features()))
late = LogMel(size=64, hop=48, count=4)
for k in range(0, 480, 48):
    late.push(samples[k : k + 48])


def count():
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    front.features()
    return gc.mem_alloc() - before


print(json.dumps([out, count(), list(late.features())]))
"""
    out, allocated, late = json.loads(port.run(script).check().stdout)
    assert out == frames(samples, LogMel(hop=512))
    assert late == frames(samples[:480], LogMel(size=64, hop=48, count=4))[-1]
    assert allocated == 0


def test_samples_may_be_any_integers_but_no_floats() -> None:
    samples = [(i * i * 37) % 60011 - 30000 for i in range(256)]
    given = [samples, *(np.array(samples, kind) for kind in (np.int16, np.int32, np.int64)), array("i", samples)]
    given += [np.array(samples * 2, np.int16)[:256], np.repeat(np.array(samples, np.int16), 2)[::2]]
    found = []
    for numbers in given:
        front = LogMel(hop=256)
        assert front.push(numbers)
        found.append(list(front.features()))
    assert found == [found[0]] * len(given)
    for floats in ([0.5] * 256, np.array(samples, np.float32)):
        with pytest.raises(TypeError):
            LogMel().push(floats)


@pytest.mark.parametrize("chunk", [1, 13, 40, 47, 48])
def test_the_size_of_chunks_makes_no_difference(chunk: int) -> None:
    samples, due = chirp(3000, 100)[:960], LogMel(size=64, hop=48, count=4)
    front, found = LogMel(size=64, hop=48, count=4), []
    for k in range(0, 960, chunk):
        if front.push(samples[k : k + chunk]):
            found.append(list(front.features()))
    assert found == frames(samples, due)


BYTES = """
from array import array
from emberlet.micro.audio import LogMel
from emberlet.micro.speech import MicroFrontend

for front in (LogMel(), MicroFrontend()):
    for make in (bytes, bytearray, lambda n: memoryview(bytes(n)), lambda n: array("B", bytes(n))):
        for count in (front.hop, 100):
            try:
                print(front.push(make(count)))
            except TypeError as error:
                print(error)
"""


@pytest.mark.parametrize("port_name", [None, "unix_port", "armhf_port", "wasm_port"])
def test_bytes_are_refused_with_what_to_push_instead(
    port_name: str | None, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would be taken for samples, two for each of the sound's."""
    if port_name is None:
        exec(BYTES, {})
        said = capsys.readouterr().out
    else:
        said = request.getfixturevalue(port_name).run(BYTES).check().stdout
    found = said.splitlines()
    due = [f"found bytes: read sound into array('h', bytes({2 * hop})) and push that" for hop in (256, 160)]
    assert found == [due[0]] * 8 + [due[1]] * 8


def test_sizes_that_make_no_sense_are_refused() -> None:
    for size in (500, 4, 0, 1 << 17):
        with pytest.raises(ValueError, match="power of two"):
            LogMel(size=size, hop=2, count=1)
    assert list(LogMel(size=8, hop=8, count=1).features()) == [0]
    with pytest.raises(ValueError, match="has no bin"):
        LogMel(size=128, hop=64, count=60)
    with pytest.raises(ValueError, match="at most 256 samples"):
        LogMel().push([0] * 257)


@pytest.mark.parametrize("size", [64, 512])
def test_tables_are_numpys(size: int) -> None:
    front = LogMel(size=size, hop=size // 2, count=8)
    angle = 2 * np.pi * np.arange(size) / size
    assert np.abs(np.array(front._window) - 16384 * (0.5 - 0.5 * np.cos(angle))).max() <= 0.5
    wave = np.concatenate([np.cos(angle[: size // 2]), np.sin(angle[: size // 2])])
    assert np.abs(np.array(front._wave) - 16384 * wave).max() <= 0.5
    logs = np.minimum(256 * np.log2(1 + np.arange(256) / 256), 255)
    assert np.abs(np.array(front._logs) - logs).max() <= 0.5


def test_bands_are_those_of_the_htk_scale() -> None:
    for frequency in (0.0, 60.0, 700.0, 1000.0, 7600.0):
        assert mel(frequency) == pytest.approx(2595 * np.log10(1 + frequency / 700), rel=1e-12)
    mels = np.linspace(mel(100), mel(5000), 12)
    exact = 700 * (10 ** (mels / 2595) - 1) * 256 / 11025
    np.testing.assert_allclose(band_edges(11025, 256, 10, 100, 5000), exact, rtol=1e-9)


@pytest.mark.parametrize("how", [{}, {"rate": 8000, "size": 256, "count": 20, "low": 30, "high": 3999}])
def test_weights_of_bands_are_those_that_models_are_trained_with(how: dict[str, int]) -> None:
    given = {"rate": 16000, "size": 512, "count": 32, "low": 60, "high": 7600} | how
    exact = filters(**given)
    front, at = LogMel(hop=128, **how), 0
    for row, (first, count) in zip(exact, zip(front._edges[::2], front._edges[1::2], strict=True), strict=True):
        found = np.zeros(len(row))
        found[first : first + count] = front._weights[at : at + count]
        at += count
        assert np.abs(found - 64 * row)[row > 1 / 64].max(initial=0) <= 0.5
        assert ((found > 0) == (row > 0)).all()
        assert first > 0 and (found[row > 0] >= 1).all()
    assert at == len(front._weights)


def test_a_frame_is_complete_after_each_hop() -> None:
    front = LogMel(size=64, hop=48, count=4)
    assert [front.push([1] * n) for n in (48, 47, 1, 0, 40, 48, 8)] == [True, False, True, False, False, True, True]
    whole = LogMel(size=64, hop=64, count=4)
    assert [whole.push([1] * n) for n in (63, 1, 64)] == [False, True, True]
    samples = [(k * 911) % 4001 - 2000 for k in range(192)]
    for k in range(0, 192, 48):
        front.push(samples[k : k + 48])
    for k in range(0, 192, 64):
        whole.push(samples[k : k + 64])
    assert list(front.features()) == list(whole.features())  # both hold the last 64 samples


@pytest.mark.parametrize("hop", [0, -1, 65])
def test_a_hop_is_at_least_one_and_at_most_a_frame(hop: int) -> None:
    with pytest.raises(ValueError, match=f"from 1 to 64, found {hop}"):
        LogMel(size=64, hop=hop, count=4)
    LogMel(size=64, hop=1, count=4)


def test_a_front_end_is_that_of_the_features_that_models_are_trained_with_unless_said_otherwise() -> None:
    due = {"rate": 16000, "size": 512, "hop": 256, "count": 32, "low": 60, "high": 7600}
    for made in (LogMel, log_mel):
        assert {n: p.default for n, p in signature(made).parameters.items() if p.default is not p.empty} == due


COUNTED = """
import gc
from array import array
import audio

front = audio.LogMel()
samples = array("h", ((i * i * 37 + i * 1103) % 20011 - 10000 for i in range(256)))
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


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", ["m7", "m0"])
def test_a_hop_takes_a_quarter_of_a_million_instructions(name: str) -> None:
    """A count, not a time: 16 ms of sound, on a Pico's processor with its clock of 125 MHz."""
    text = (ROOT / "micro" / "audio.py").read_text(encoding="utf-8")
    text = text.replace("from . import", "import").replace("from .frames", "from frames")
    others = ("frames.py", "audio_kernels_viper.py")
    files = {"audio.py": text.encode(), **{file: (ROOT / "micro" / file).read_bytes() for file in others}}
    assert int(EmulatedBoard(name).run(COUNTED, files)) < 250_000
