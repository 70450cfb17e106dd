"""A module refuses files that are damaged, cut short, or for another processor; a deployment without power leaves the
old model or the new one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.deploy import DRAFT, commands
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.written import write
from support.draws import draw

from tools.microcontrollers.models import build_digits, deployed, desktop_boards
from tools.micropython import Port

IMPORTED = """
import sys
sys.path[:] = ["{folder}"]


def imported():
    for name in list(sys.modules):
        if name.startswith("digits"):
            del sys.modules[name]
    try:
        import digits
    except (ValueError, OSError) as error:
        return str(error)


def holding(name, data):
    with open("{folder}/" + name, "wb") as f:
        f.write(data)
    return imported()


"""

FLIPPED = """
with open("{folder}/{name}", "rb") as f:
    data = bytearray(f.read())
assert imported() is None
for bit in {bits}:
    data[bit >> 3] ^= 1 << (bit & 7)
    said = holding("{name}", data)
    if not said or "copy" not in said:
        print(bit >> 3, said)
    data[bit >> 3] ^= 1 << (bit & 7)
assert holding("{name}", data) is None
for size in {sizes}:
    said = holding("{name}", data[:size])
    if not said or "copy" not in said:
        print("shortened to", size, said)
assert holding("{name}", data) is None
"""


@pytest.fixture(scope="module", params=["file", "module", "romfs"])
def flash(request: pytest.FixtureRequest, unix_port: Port, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = build_digits(request.param, boards=desktop_boards())
    options = Options("digits", request.param, desktop_boards())  # type: ignore[arg-type]
    return deployed(built, options, tmp_path_factory.mktemp("flash"), unix_port.name)


@pytest.mark.parametrize("which", ["bpk", "kernels"])
def test_flipped_bits_and_missing_bytes_are_noticed(which: str, flash: Path, unix_port: Port) -> None:
    rng = draw(__name__)
    name = "digits.bpk" if which == "bpk" else "digits_kernels.mpy"
    if not (flash / name).exists():
        pytest.skip("the weights are in a module")
    data = (flash / name).read_bytes()
    read = [k for k in range(len(data)) if which == "kernels" or not in_a_gap(data, k)]
    bits = [8 * rng.choice(read) + rng.randrange(8) for _ in range(200)]
    sizes = [rng.randrange(len(data)) for _ in range(20)]
    script = (IMPORTED + FLIPPED).format(folder=flash, name=name, bits=bits, sizes=sizes)
    assert unix_port.run(script, micropypath=[], heap="64M").check().stdout == ""


def in_a_gap(data: bytes, place: int) -> bool:
    """Whether a byte of a burnpack only aligns the next tensor."""
    from emberlet.burnpack import Burnpack

    tensors = Burnpack(data).tensors.values()
    head = min(t.start for t in tensors)
    return place >= head and not any(t.start <= place < t.end for t in tensors)


def test_a_flipped_bit_of_weights_in_a_module_is_noticed(unix_port: Port, tmp_path: Path) -> None:
    built = build_digits("module", boards=desktop_boards())
    folder = deployed(built, Options("digits", "module", desktop_boards()), tmp_path, unix_port.name)  # type: ignore[arg-type]
    data = (folder / "digits_weights.mpy").read_bytes()
    start, size = data.index(built.program.weight_bytes), len(built.program.weight_bytes)
    rng = draw(__name__)
    bits = [8 * (start + rng.randrange(size)) + rng.randrange(8) for _ in range(100)]
    script = (IMPORTED + FLIPPED).format(folder=folder, name="digits_weights.mpy", bits=bits, sizes=[])
    assert unix_port.run(script, micropypath=[], heap="64M").check().stdout == ""


def test_another_processor_is_named(unix_port: Port, tmp_path: Path) -> None:
    built = build_digits(boards=desktop_boards())
    write(built, Options("digits", "file", desktop_boards()), tmp_path)  # type: ignore[arg-type]
    script = IMPORTED.format(folder=tmp_path / "armv7emdp") + "print(imported())\n"
    said = unix_port.run(script, micropypath=[]).check().stdout
    assert "digits_kernels.mpy holds armv7emdp code" in said and "build the model for this board" in said


def net(seed: int) -> BuildResult:
    """A small network; each seed has weights and sizes of its own."""
    rng = np.random.default_rng(seed)
    hidden = 30 + 3 * seed
    one = rng.standard_normal((hidden, 1, 1, 20))
    two = rng.standard_normal((4, 1, 1, hidden))
    layers = (
        DotFloat("hidden", ("x",), "h", (20,), Window((1, 1)), 1, one, np.zeros(hidden), 0.0),
        DotFloat("scores", ("h",), "y", (hidden,), Window((1, 1)), 1, two, np.zeros(4)),
    )
    graph = Graph("net", layers, {"x": (20,), "h": (hidden,), "y": (4,)}, ("x",), ("y",))
    samples = rng.standard_normal((30, 20)).astype(np.float32)
    return build(graph, Options("net", "file", desktop_boards()), {"x": samples})  # type: ignore[arg-type]


@pytest.mark.parametrize("slots", [False, True], ids=["renamed", "slots"])
def test_a_deployment_without_power_leaves_the_old_model_or_the_new(
    slots: bool, unix_port: Port, tmp_path: Path
) -> None:
    """On littlefs, whose renaming is one step; 200 cuts, among them every write after the copying."""
    options = Options("net", "file", desktop_boards())  # type: ignore[arg-type]
    scripts: dict[str, dict[str, str]] = {}
    files: list[str] = []
    for which, seed in (("old", 1), ("new", 2)):
        write(net(seed), options, tmp_path / f"built-{which}")
        prepare, copy, publish = commands(tmp_path / f"built-{which}", "x64", slots=slots)
        scripts[which], files = {"prepare": prepare[-1], "publish": publish[-1]}, copy[2:-1]
        (tmp_path / f"built-{which}" / "x64").rename(tmp_path / which)
    job = {
        "files": [Path(source).name for source in files],
        "draft": f"/{DRAFT}",
        **scripts["new"],
        **({"old": scripts["old"]} if slots else {}),
        "numbers": np.linspace(-1, 1, 20).tolist(),
        "cuts": 200,
    }
    (tmp_path / "deployment.json").write_text(json.dumps(job), encoding="utf-8")
    script = Path(__file__).parent.parent / "support" / "microcontrollers" / "power_cuts.py"
    result = unix_port.run(script, [str(tmp_path)], heap="64M", micropypath=[]).check()
    seen = json.loads(result.stdout.splitlines()[-1])  # a file that is collected after a cut may say so
    assert seen["other"] == []
    assert seen["cuts"] == 200 and seen["old"] > 0 and seen["new"] > 0


SLOTS = """
import json
import os
import sys

folder = "{folder}"
others = {{}}


def started():
    # What a board that starts answers: the slot and the numbers, or the error.
    for name in list(sys.modules):
        if name.startswith("net"):
            del sys.modules[name]
    sys.modules.update(others)
    sys.path[:] = [folder]
    try:
        import net
        from net import predict
    except SystemExit:
        return "reset"
    except Exception as error:
        return repr(error)
    return getattr(net, "slot", None), list(predict({numbers})) == list(net.predict({numbers}))


def deployed(which, publish=True):
    with open(folder + "/" + which + ".json") as f:
        job = json.load(f)
    exec(job["prepare"], {{}})
    if not publish:  # interrupted
        return
    for name in job["files"]:
        with open(job["from"] + "/" + name, "rb") as source, open(folder + "/{draft}/" + name, "wb") as to:
            to.write(source.read())
    exec(job["publish"], {{}})


def changed(path, change):
    with open(folder + "/" + path, "rb") as f:
        data = f.read()
    with open(folder + "/" + path, "wb") as f:
        f.write(change(data))


{steps}
"""


def slots(unix_port: Port, folder: Path, steps: str) -> list[str]:
    """What `said` gives, less what the launcher and the deployments say."""
    return [line for line in said(unix_port, folder, steps) if not line.startswith("net: slot")]


def said(unix_port: Port, folder: Path, steps: str) -> list[str]:
    """What steps print on a board with the folder `board`, and the deployments "old" and "new", and "plain" without
    slots."""
    options = Options("net", "file", desktop_boards())  # type: ignore[arg-type]
    flash = folder / "board"
    flash.mkdir()
    for which, seed in (("old", 1), ("new", 2), ("plain", 3)):
        write(net(seed), options, folder / which)
        prepare, copy, publish = commands(folder / which, "x64", to=str(flash), slots=which != "plain")
        files = {"files": [Path(source).name for source in copy[2:-1]], "from": str(folder / which / "x64")}
        told = json.dumps({**files, "prepare": prepare[-1], "publish": publish[-1]})
        (flash / f"{which}.json").write_text(told, encoding="utf-8")
    script = SLOTS.format(folder=flash, numbers=np.linspace(-1, 1, 20).tolist(), draft=DRAFT, steps=steps)
    return unix_port.run(script, micropypath=[], heap="64M").check().stdout.splitlines()


def test_only_a_first_deployment_says_that_it_has_no_fallback(unix_port: Port, tmp_path: Path) -> None:
    steps = "deployed('old')\nprint(started())\ndeployed('new')\nprint(started())\n"
    assert said(unix_port, tmp_path, steps) == [
        "net: slot 0 has no fallback until the next deployment with --slots",
        "('0', True)",
        "('1', True)",
    ]


def test_a_fallback_stays_until_the_next_deployment_is_whole(unix_port: Port, tmp_path: Path) -> None:
    """And says why, and leaves another model's modules alone."""
    steps = """
others["net_b"] = sys
deployed("old")
started()
deployed("new")
print(started())
changed(".net-1/net.bpk", lambda data: data[:-1] + b"?")
print(started(), sys.modules["net"].refused, "net_b" in sys.modules)
deployed("new", publish=False)
print(started())
"""
    assert slots(unix_port, tmp_path, steps) == [
        "('1', True)",
        "('0', True) files of net are damaged; deploy it again True",
        "('0', True)",
    ]


def test_the_model_that_answers_without_a_pointer_stays(unix_port: Port, tmp_path: Path) -> None:
    steps = """
deployed("old")
started()
os.remove(folder + "/.net-slot")
deployed("new", publish=False)
print(started())
deployed("new")
print(started())
"""
    assert slots(unix_port, tmp_path, steps) == ["('0', True)", "('1', True)"]


def test_a_deployment_without_slots_takes_their_place_once_the_pointer_is_deleted(
    unix_port: Port, tmp_path: Path
) -> None:
    steps = """
deployed("old")
deployed("new")
try:
    deployed("plain")
except OSError as error:
    print(error)
os.remove(folder + "/.net-slot")
deployed("plain")
print(started())
print(sorted(name for name in os.listdir(folder) if "json" not in name))
"""
    refused, answered, left = slots(unix_port, tmp_path, steps)
    assert "deploy with --slots, or delete" in refused
    assert answered == "(None, True)"
    assert left == "['net.bpk', 'net.mpy', 'net_kernels.mpy']"


@pytest.mark.parametrize("weights", ["file", "romfs"])
def test_no_way_of_deploying_goes_around_the_slots(weights: str, unix_port: Port, tmp_path: Path) -> None:
    """Copying in place, and an image."""
    options = Options("digits", weights, desktop_boards())  # type: ignore[arg-type]
    write(build_digits(weights, boards=desktop_boards()), options, tmp_path)
    for name in (".digits-slot", "digits.py"):
        (tmp_path / name).write_text("Written by emberlet: deploy with --slots.", encoding="utf-8")
    script = commands(tmp_path, "x64", to=str(tmp_path), in_place=weights == "file")[0][-1]
    assert "deploy with --slots" in unix_port.run(script, micropypath=[]).stderr
    (tmp_path / ".digits-slot").unlink()
    unix_port.run(script, micropypath=[]).check()
    assert not (tmp_path / "digits.py").exists()


@pytest.mark.parametrize(
    "damage",
    [
        "changed('.net-1/net.mpy', lambda data: data[:40])",
        "changed('.net-1/net.bpk', lambda data: data[:-1] + b'?')",
        "changed('.net-1/net_kernels.mpy', lambda data: b'')",
        "changed('.net-1/slot.txt', lambda data: data[:9])",
        "os.remove(folder + '/.net-1/net.bpk')",
        "changed('.net-slot', lambda data: b'1!')",
    ],
    ids=["module", "weights", "kernels", "list", "missing", "hung"],
)
def test_a_bad_deployment_leaves_the_last_good_model_answering(damage: str, unix_port: Port, tmp_path: Path) -> None:
    """The next one takes the bad one's place."""
    steps = f"deployed('old')\nprint(started())\ndeployed('new')\n{damage}\nprint(started(), started())\n"
    steps += "deployed('new')\nprint(started(), started())\nprint(sorted(os.listdir(folder + '/.net-1')))"
    seen = slots(unix_port, tmp_path, steps)
    assert seen[:3] == ["('0', True)", "('0', True) ('0', True)", "('1', True) ('1', True)"]
    assert seen[3] == "['net.bpk', 'net.mpy', 'net_kernels.mpy', 'slot.txt']"


def test_a_model_that_resets_the_board_is_tried_once(unix_port: Port, tmp_path: Path) -> None:
    bad = "import sys\nsys.exit()\n"
    steps = f"""
deployed("old")
print(started())
deployed("new")
from binascii import crc32
os.remove(folder + "/.net-1/net.mpy")
with open(folder + "/.net-1/net.py", "w") as f:
    f.write({bad!r})
with open(folder + "/.net-1/slot.txt", "w") as f:
    f.write("net.py %d %d\\nend" % ({len(bad)}, crc32({bad.encode()!r})))
print(started(), started(), started())
deployed("new")
print(started())
"""
    assert slots(unix_port, tmp_path, steps) == ["('0', True)", "reset ('0', True) ('0', True)", "('1', True)"]


def test_slots_need_files(tmp_path: Path) -> None:
    options = Options("net", "romfs", desktop_boards())  # type: ignore[arg-type]
    write(build_digits("romfs", boards=desktop_boards()), replace(options, name="digits"), tmp_path)
    with pytest.raises(UnsupportedError, match="--weights file or module"):
        commands(tmp_path, "x64", slots=True)
