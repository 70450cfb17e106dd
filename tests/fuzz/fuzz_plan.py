"""Coverage-guided fuzzing of the reader of saved plans: python tests/fuzz/fuzz_plan.py [-max_total_time=60].

Needs atheris. The input is a plan's JSON, with that of a training step under "step". Any input either becomes a
consistent plan, or ValueError is raised with a message, which `SavedPlan` turns into FormatError. No GPU is opened.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness, multiplied

harness.instrument("emberlet.wgpu_backend.plan", "emberlet.wgpu_backend.plan_file", "emberlet.wgpu_backend.saved_step")

import emberlet  # noqa: E402
from emberlet import functional as F  # noqa: E402
from emberlet import nn, optim  # noqa: E402
from emberlet.burnpack import Burnpack  # noqa: E402
from emberlet.errors import EmberletError, FormatError  # noqa: E402
from emberlet.wgpu_backend import plan_file, saved_step  # noqa: E402
from emberlet.wgpu_backend.plan import open_ports  # noqa: E402
from emberlet.wgpu_backend.plan.data import KEY, KEY_STEP  # noqa: E402
from emberlet.wgpu_backend.plan.reading import read as read_plan  # noqa: E402
from emberlet.wgpu_backend.run import step_numbers  # noqa: E402


class Pack:
    """A stand-in for the file from which `SavedPlan` takes its JSON."""

    origin = "plan"

    def __init__(self, text: str) -> None:
        self.metadata = {KEY: text}


class Reader(saved_step.SavedStep):
    """A saved plan, or a step, that is only read."""

    def __init__(self, text: str) -> None:
        self.origin = "plan"
        content = self._json(Pack(text), KEY)
        try:
            self.plan, self.inputs, self.outputs, self.held = read_plan(content, "gpu")
            self.counts = self.plan.counts
        except ValueError as error:
            self._bad(f"has inconsistent contents: {error}")
        self.step = content.get("step")
        if isinstance(self.step, dict):
            try:
                self._read_entry(self.step)
            except ValueError as error:
                self._bad(f"has inconsistent contents of a step: {error}")


def read(data: bytes) -> None:
    try:
        found = Reader(data.decode("utf-8", "replace"))
    except FormatError as error:
        assert not str(error).endswith("None"), error
        return
    count = len(found.plan.buffers)
    assert all(b < count for step in found.plan.steps for b in step.buffers)
    assert all(step.kernel < len(found.plan.kernels) for step in found.plan.steps)
    assert all(port.buffer < count for port in found.inputs + found.outputs)
    if found.counts is not None:
        check_open(found)
    if isinstance(found.step, dict):
        check_step(found)


def check_open(found: Reader) -> None:
    """Every size has a value of a few bytes at every length, and inputs of the wrong lengths are refused."""
    counts = found.counts
    for at in (1, 2):
        sizes = tuple(symbol[at] for symbol in counts.symbols)
        values = counts.values(sizes)
        counts.refusal(sizes, values)
        try:
            ports = [open_ports.closed(port, values) for port in (*found.inputs, *found.outputs)]
            given = [Shaped(port.shape) for port in ports[: len(found.inputs)]]
            told = open_ports.sizes_of(counts, found.inputs, given)
        except ValueError:
            pass
        else:  # several sizes may give one shape
            again = counts.values(told)
            assert [open_ports.closed(port, again).shape for port in found.inputs] == [array.shape for array in given]
        assert all(abs(n) <= open_ports.MAX_VALUE for n in values)


class Shaped:
    """An array that has a shape only."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


def check_step(found: Reader) -> None:
    """Every value that changes is an input that no other shares, and every number has a value or an EmberletError."""
    count = len(found.plan.buffers)
    assert all(a < count and b < count for a, b in found._pairs)
    assert len({p.buffer for p in found._values}) == len(found._values)
    env = {name: float(n) for name, n in found._now[1].items()} | {"lr": 0.5}
    for number in [*found._numbers, *(n for _, n, _ in found._counts if n is not None)]:
        try:
            assert isinstance(step_numbers.value_of(number, env), float)
        except EmberletError:
            pass


def seeds() -> dict[str, bytes]:
    """The plans of small models and of a training step, with open sizes too, and numbers that JSON has and a plan does
    not."""
    x, at = emberlet.ones((2, 3)), emberlet.asarray([0, 1])
    table = emberlet.ones((4, 2))
    made = {
        "sum": (lambda a: F.exp(a) + 1.0, x),
        "take": (lambda i: F.take(table.to_device(i.backend), i, axis=0), at),
        "product": (lambda a: F.softmax(a @ a.T, axis=-1), x),
    }
    F.manual_seed(1)
    model = nn.Linear(3, 1, bias=False, backend="numpy")
    step = model.compile_step(lambda model, x: model(x).mean(), optim.RmsPropConfig(momentum=0.0).init())
    found = {}
    folder = pathlib.Path(harness.scratch())
    two = {"a": {0: ("rows", (2, 9)), 1: ("columns", (1, 9))}}
    opened = {"open": (lambda a: F.softmax(a.reshape((-1, 3)) @ a.T, axis=-1), {"a": {0: ("rows", (1, 64))}}),
              "open twice": (lambda a: F.concat([a, a[::2]]) + 1.0, two),
              "open step": (step, {"batch": (2, 64)})}  # fmt: skip
    every = {**{n: (*m, None) for n, m in made.items()}, "step": (step, x, None)}
    every |= {name: (model, x, dims) for name, (model, dims) in opened.items()}
    for name, (model, example, dims) in every.items():
        file = folder / (name + ".bpk")
        plan_file.save(str(file), model, example, dims=dims)
        metadata = Burnpack.from_bytes(file.read_bytes()).metadata
        content = json.loads(metadata[KEY])
        if KEY_STEP in metadata:
            content["step"] = json.loads(metadata[KEY_STEP])
        content["kernels"] = [[n, "k"] for n, _ in content["kernels"]]
        content["steps"] = {"gpu": content["steps"]["gpu"]}
        found[name] = json.dumps(content, separators=(",", ":")).encode()
        found[name + " huge"] = found[name].replace(b"2,3", b"1e999,-1")
        found[name + " nested"] = found[name].replace(b"[2,", b"[" * 400)
    return found


if __name__ == "__main__":
    harness.run(read, seeds(), 2048, build=multiplied.plan)
