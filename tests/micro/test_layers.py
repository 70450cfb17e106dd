"""Inspecting a model on the device: its layers and their times. Also one arena shared by several models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.kernels.elementwise import BinaryFloat
from emberlet.micro.builder.kernels.state import Keep
from support.microcontrollers.modules import importable
from support.microcontrollers.onnx_models import MODELS

from tools.micropython import Port

NAME = next(name for name in MODELS if "lstm" not in name and "gru" not in name)


def built(name: str, **options: object) -> BuildResult:
    model = MODELS[NAME]()
    dims = [d.dim_value or 1 for d in model.graph.input[0].type.tensor_type.shape.dim]
    samples = {"x": np.random.default_rng(0).standard_normal((8, *dims)).astype(np.float32)}
    return build(read_graph(model.SerializeToString(), name), Options(name, **options), samples)  # type: ignore[arg-type]


def test_a_profile_times_every_layer_and_gives_the_same_numbers(unix_port: Port, tmp_path: Path) -> None:
    result = built("m", layers=True)
    size = result.program.inputs[0].size
    script = importable(tmp_path, result) + (
        f"import m\nx = [0.1 * (i % 7) for i in range({size})]\n"
        "plain = m.predict(x)\nprint(plain == m.predict(x, profile=True))\n"
        "from m_layers import layers\nprint(len(layers.microseconds), sum(layers.work))\n"
    )
    lines = unix_port.run(script, heap="16M", micropypath=[]).check().stdout.splitlines()
    steps = result.program.steps
    assert lines[0].split() == ["us", "%", "MAC", "layer"]
    assert [line.split("  ")[-1] for line in lines[1 : 1 + len(steps)]] == [
        f"{s.layer.name} ({s.layer.kind})" for s in steps
    ]
    assert lines[-2:] == ["True", f"{len(steps)} {result.program.macs}"]


def test_a_plain_build_has_nothing_of_it() -> None:
    assert "profile" not in built("m").sources["m.py"]
    assert "m_layers.py" not in built("m").sources


def test_two_models_share_an_arena(unix_port: Port, tmp_path: Path) -> None:
    first, second = built("large"), built("small", arena="large")
    size = first.program.inputs[0].size
    script = importable(tmp_path, first, second) + (
        f"import large\nimport small\nx = [0.1 * (i % 7) for i in range({size})]\n"
        "print(large.A is small.A, large.predict(x) == small.predict(x))\n"
    )
    assert unix_port.run(script, heap="16M", micropypath=[]).check().stdout.split() == ["True", "True"]


def test_an_arena_that_is_too_small_is_refused(unix_port: Port, tmp_path: Path) -> None:
    script = importable(tmp_path, built("m", arena="tiny"))
    (tmp_path / "tiny.py").write_text("A = bytearray(4)\n", encoding="utf-8")
    out = unix_port.run(script + "import m\n", heap="16M", micropypath=[])
    assert not out.ok and "the arena of tiny does not hold m" in out.stdout + out.stderr


def test_an_arena_is_not_shared_by_models_that_run_in_steps(unix_port: Port, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="without --steps, or without --arena"):
        built("m", arena="other", steps=True)
    built("m", steps=True)
    script = importable(tmp_path, built("large"), built("small", arena="large"))
    script += "import large\nlarge.steps = None\nimport small\n"
    out = unix_port.run(script, heap="16M", micropypath=[])
    assert not out.ok and "runs in steps" in out.stdout + out.stderr


def running_sum() -> Graph:
    """y = x + the last y."""
    shapes = dict.fromkeys(("x", "s", "y"), (4,))
    add = BinaryFloat("add", ("x", "s"), "y", "add", (4,), (4,), None)
    keep = Keep("keep", ("y",), "s", (4,))
    return Graph("m", (add, keep), shapes, ("x",), ("y",), states={"s": 0.0})


def test_a_state_is_kept_and_reset(unix_port: Port, tmp_path: Path) -> None:
    samples = {"x": np.random.default_rng(0).uniform(-1, 1, (20, 4)).astype(np.float32)}
    for number, given in enumerate((None, samples)):
        folder = tmp_path / str(number)
        folder.mkdir()
        script = importable(folder, build(running_sum(), Options("m"), given)) + (
            "import m\nx = [0.5, -0.25, 0, 0.1]\nfirst = m.predict(x)\nsecond = m.predict(x)\nm.reset()\n"
            "print(max(abs(b - 2 * a) for a, b in zip(first, second)) < 0.05, m.predict(x) == first)\n"
        )
        assert unix_port.run(script, heap="16M", micropypath=[]).check().stdout.split() == ["True", "True"]


def test_a_model_with_state_keeps_its_own_arena() -> None:
    with pytest.raises(UnsupportedError, match="keeps a state"):
        build(running_sum(), Options("m", arena="other"))
