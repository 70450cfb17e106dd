"""The log-mel front end computes NumPy's features within its resolution, and the same integers on every port."""

from __future__ import annotations

import json
import re
from array import array
from pathlib import Path

import numpy as np
import pytest
from emberlet.micro.audio import LogMel
from emberlet.micro.builder.audio import log_mel

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
def test_features_are_those_of_numpy(amplitude: float, noise: float) -> None:
    samples = chirp(amplitude, noise)
    exact = log_mel(samples)
    found = np.array(frames(samples, LogMel()))[1 : 1 + len(exact)] / 256
    assert np.abs(found - exact).mean() < 0.06
    assert np.abs(found - exact).max() < 1


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
    front.push(samples[k : k + 512])
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
    assert out == frames(samples, LogMel(hop=512))
    assert allocated == 0


@pytest.mark.parametrize("name", ["audio_kernels", "image_kernels"])
def test_both_kinds_of_kernels_are_one_text(name: str) -> None:
    """The bytecode kernels are the viper source without decorators, types and the shift that restores signs."""
    viper = Path(ROOT, "micro", f"{name}_viper.py").read_text(encoding="utf-8")
    bytecode = Path(ROOT, "micro", f"{name}_bytecode.py").read_text(encoding="utf-8")
    body = viper[viper.index("@micropython.viper") :].replace("@micropython.viper\n", "")
    plain = re.sub(r": (ptr\d*|int)(?=[,)])|(?<=\)) -> int", "", body)
    squeezed = re.sub(r"\s+", "", plain)
    assert re.sub(r"\s+", "", bytecode[bytecode.index("def ") :]) == squeezed


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="power of two"):
        LogMel(size=500)
    with pytest.raises(ValueError, match="has no bin"):
        LogMel(size=128, hop=64, count=60)
    with pytest.raises(ValueError, match="at most 256 samples"):
        LogMel().push([0] * 257)
