"""What a build with each option writes and says, and what the command line makes of its arguments.

Bytes of modules and the stack of kernels stand for themselves here, since they depend on mpy-cross and on Python.
`UPDATE_SNAPSHOTS=1 pytest` on this file records them again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.errors import EmberletError
from emberlet.micro.builder import build as building
from emberlet.micro.builder import cli, cost, written
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import Options, build, module_name
from emberlet.micro.builder.emit.model import Partition
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.graph import Graph, Grid
from emberlet.micro.builder.kernels.elementwise import MapFloat
from support.microcontrollers.described import digest
from support.microcontrollers.drawn_graphs import IMAGE, drawn
from support.microcontrollers.graphs_over_time import over_time
from support.microcontrollers.onnx_models import MODELS
from support.recorded import assert_recorded

RECORDED = Path(__file__).with_name("recorded_files.txt")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(source: str, name: str, arch: Any = None, release: Any = None, code: Any = None) -> bytes:
        text = f"{name} {arch} {release} {source} {sorted((code or {}).items())}"
        return f"{digest(text)} {name}".encode().ljust(len(text) // 9, b"-")

    monkeypatch.setattr(building, "compile_mpy", compiled)
    monkeypatch.setattr(cost, "frames", lambda program, arch="": (100 * len(program.steps) + len(arch), "kernel"))


def quantized() -> Graph:
    graph = drawn(703)[0]
    return replace(graph, grids=dict.fromkeys(graph.shapes, Grid(0.25, 128)))


def over_steps(seed: int) -> Graph:
    graph = over_time(seed)[0]
    return replace(graph, layouts={"x": (graph.shapes["x"], tuple(range(len(graph.shapes["x"]))))})


def narrow() -> Graph:
    """A function of four steps of one row of three numbers."""
    layer = MapFloat("y", ("x",), "y", (4, 1, 3), (("abs", ()),))
    layouts = {"x": ((1, 3, 4, 1), (0, 2, 3, 1))}
    return Graph("m", (layer,), {"x": (4, 1, 3), "y": (4, 1, 3)}, ("x",), ("y",), layouts=layouts)


BASE = Options("net")
BUILDS: dict[str, tuple[Graph, Options]] = {
    **{f"floats, {w}": (drawn(703)[0], replace(BASE, weights=w)) for w in building.WEIGHTS},
    **{f"bytes, {w}": (quantized(), replace(BASE, weights=w)) for w in building.WEIGHTS},
    **{f"for {b.name}": (quantized(), replace(BASE, boards=[b])) for b in BOARDS.values()},
    **{f"{w} for two": (quantized(), replace(BASE, weights=w, boards=[BOARDS["rp2"], BOARDS["esp32s3"]]))
       for w in building.WEIGHTS},
    **{f"{w} of floats for two": (drawn(704)[0], replace(BASE, weights=w, boards=[BOARDS["rp2"], BOARDS["rp2350"]]))
       for w in ("file", "romfs", "frozen")},
    "viper": (quantized(), replace(BASE, kernels="viper", boards=[BOARDS["rp2350"]])),
    "layers": (quantized(), replace(BASE, layers=True, boards=[BOARDS["rp2350"], BOARDS["esp32"]])),
    "layers of floats": (drawn(703)[0], replace(BASE, layers=True)),
    "in floats": (quantized(), replace(BASE, floats=True)),
    "another arena": (quantized(), replace(BASE, arena="other")),
    "another arena with states": (drawn(704, states=1)[0], replace(BASE, arena="other")),
    "an old release": (quantized(), replace(BASE, release="1.19")),
    "on a partition of rp2": (quantized(), replace(
        BASE, weights="partition", partition=Partition("rp2", 1 << 20), boards=[BOARDS["rp2"]])),
    "on a partition of esp32": (quantized(), replace(
        BASE, weights="partition", partition=Partition("esp32", label="net"), boards=[BOARDS["esp32"]])),
    "nowhere": (quantized(), replace(BASE, weights="nowhere")),
    "by nobody": (quantized(), replace(BASE, kernels="c")),
    "a stream": (over_steps(703), replace(BASE, stream=over_time(703)[1])),
    "a stream of two steps": (over_steps(706), replace(BASE, stream=over_time(706)[1], new_steps=2)),
    **{f"a stream along axis {k}": (narrow(), replace(BASE, stream=k)) for k in range(5)},
    **{f"a stream of {k} steps": (narrow(), replace(BASE, stream=2, new_steps=k)) for k in (0, 1, 4, 5)},
}  # fmt: skip


def told(built: building.BuildResult, options: Options, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    cli.print_report(built, options)
    yield capsys.readouterr().out.rstrip()
    yield f"sources {[(n, digest(text)) for n, text in built.sources.items()]}"
    yield f"extra {[(n, len(data), digest(data)) for n, data in built.extra.items()]}"
    for arch, files in built.deployed.items():
        yield f"{arch}: {[(n, len(data), digest(data)) for n, data in files.items()]}"
        yield f"  {built.costs[arch]}"
    yield f"images {[(n, len(data), digest(data)) for n, data in built.images.items()]}"
    yield f"listings {[(n, digest(text)) for n, text in built.listings.items()]}"
    yield f"notes {built.notes} {built.agreement}"
    out = Path("out")
    for path, data in ((out / name, data) for name, data in written._files(built, options).items()):
        yield f"{path.as_posix()}: {len(data)} {digest(data)}"


@pytest.mark.parametrize("name", BUILDS)
def test_the_files_of_a_build_are_recorded(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    graph, options = BUILDS[name]
    try:
        lines = "\n".join(told(build(graph, options), options, capsys))
    except EmberletError as error:
        lines = str(error)
    assert_recorded(RECORDED, name, lines)


@pytest.mark.parametrize("how", ["auto", "minmax", "percentile"])
def test_what_calibration_chooses_is_recorded(how: str) -> None:
    """Its agreement with float32 too, of samples with an outlier, one by one and every few of many."""
    lines = []
    for seed, count in ((700, 1), (703, 8), (706, 130), (707, 64), (709, 65)):
        x = np.random.default_rng(seed).integers(-16, 17, (count, *IMAGE)).astype(np.float32) / 8
        x[-1, 0, 0, 0] = 40
        graph = drawn(seed, states=seed % 2)[0]
        result = build(graph, replace(BASE, method=how, percentile=99.0), {"x": x})
        grids = {n: f"{g.scale:.6g} {g.zero}" for n, g in result.graph.grids.items()}
        lines.append(f"{seed}: {result.agreement} {digest(str(grids))} {grids[result.graph.outputs[0]]}")
    assert_recorded(RECORDED, f"calibrated by {how}", "\n".join(lines))


ARGUMENTS = (
    "", "--board rp2", "--board rp2 --board ESP32S3", "--board none", "--float", "--name 'My net'", "--name 3d",
    "--name class", "--name gc", "--name _", "--name A-b.c", "--weights romfs", "--weights frozen --board esp32",
    "--weights partition", "--weights partition --partition 0x100000", "--weights partition --partition data",
    "--weights partition --board rp2", "--weights partition --board rp2 --partition 4096",
    "--weights partition --board rp2 --partition here", "--weights partition --board esp32 --partition nvs",
    "--weights partition --board stm32f4", "--partition 7", "--method minmax", "--method percentile --percentile 99",
    "--percentile 50", "--percentile 50.5", "--percentile 100", "--percentile 100.5", "--kernels viper", "--int4 bytes",
    "--layers", "--arena 'other net'", "--micropython 1.22", "--micropython v1.22.1", "--micropython 1",
    "--micropython x", "--micropython 1.2.3.4", "--stream 1", "--stream 1 --new-steps 2", "--shape x=1,3,8",
    "--shape x=1,3", "--shape x=1,3,0", "--shape y=1", "--shape x", "--shape =1", "--shape x=1,", "--shape a=b=2",
    "--state x=y", "--state x", "--state =y", "--state x=", "--state z=y", "--state x=z",
    "--calibration no.npz --float",
)  # fmt: skip


def test_the_options_of_a_command_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "net 1.onnx"
    onnx.save(MODELS["arithmetic"](), model)
    found: list[Options] = []
    written: list[Path] = []

    def kept(graph: Graph, options: Options, samples: Any) -> Any:
        assert samples is None
        found.append(options)
        return build(read_graph(model), Options("m"))

    def named(built: Any, options: Options, out: Path, **more: Any) -> list[Path]:
        written.append(out)
        return [out]

    monkeypatch.setattr(cli, "build", kept)
    monkeypatch.setattr(cli, "write", named)
    lines: list[str] = []
    for text in ARGUMENTS:
        try:
            status = cli.main(["build", str(model), *shlex.split(text)])
        except EmberletError as error:
            lines.append(f"{text}: {error}")
            continue
        o = found.pop()
        own = {f.name: getattr(o, f.name) for f in fields(o) if getattr(o, f.name) != getattr(BASE, f.name)}
        own["boards"] = [b.name for b in o.boards]
        lines.append(f"{text}: {status} {own} to {written.pop().as_posix()}")
        assert capsys.readouterr().out.splitlines()[-1].endswith("1 files")
    assert_recorded(RECORDED, "arguments", "\n".join(lines))


def test_names_of_modules_are_recorded() -> None:
    names = ("a", "A b", "3d", "é", "", "__x__", "class", "None", "true", "gc", "esp32", "CON", "con1", "lpt9", "x.y-z")
    assert_recorded(RECORDED, "names", "\n".join(f"{name}: {module_name(name)}" for name in names))
