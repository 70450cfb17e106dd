"""Coverage-guided fuzzing of the reader of saved plans: python tests/fuzz/fuzz_plan.py [-max_total_time=60].

Needs atheris. The input is a plan's JSON. Any input either becomes a consistent plan, or ValueError is raised with a
message, which `SavedPlan` turns into FormatError. No GPU is opened.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness, multiplied

harness.instrument("emberlet.wgpu_backend.plan", "emberlet.wgpu_backend.plan_file")

import emberlet  # noqa: E402
from emberlet import functional as F  # noqa: E402
from emberlet.burnpack import Burnpack  # noqa: E402
from emberlet.errors import FormatError  # noqa: E402
from emberlet.wgpu_backend import plan_file  # noqa: E402
from emberlet.wgpu_backend.plan.data import KEY  # noqa: E402
from emberlet.wgpu_backend.plan.reading import read as read_plan  # noqa: E402


class Pack:
    """A stand-in for the file from which `SavedPlan` takes its JSON."""

    origin = "plan"

    def __init__(self, text: str) -> None:
        self.metadata = {KEY: text}


class Reader(plan_file.SavedPlan):
    """A saved plan that is only read."""

    def __init__(self, text: str) -> None:
        self.origin = "plan"
        content = self._json(Pack(text), KEY)
        try:
            self.plan, self.inputs, self.outputs, self.held = read_plan(content, "gpu")
        except ValueError as error:
            self._bad(f"has inconsistent contents: {error}")


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


def seeds() -> dict[str, bytes]:
    """The plans of three small models, and numbers that JSON has and a plan does not."""
    x, at = emberlet.ones((2, 3)), emberlet.asarray([0, 1])
    table = emberlet.ones((4, 2))
    made = {
        "sum": (lambda a: F.exp(a) + 1.0, x),
        "take": (lambda i: F.take(table.to_device(i.backend), i, axis=0), at),
        "product": (lambda a: F.softmax(a @ a.T, axis=-1), x),
    }
    found = {}
    folder = pathlib.Path(harness.scratch())
    for name, (model, example) in made.items():
        file = folder / (name + ".bpk")
        plan_file.save(str(file), model, example)
        content = json.loads(Burnpack.from_bytes(file.read_bytes()).metadata[KEY])
        content["kernels"] = [[n, "k"] for n, _ in content["kernels"]]
        content["steps"] = {"gpu": content["steps"]["gpu"]}
        found[name] = json.dumps(content, separators=(",", ":")).encode()
        found[name + " huge"] = found[name].replace(b"2,3", b"1e999,-1")
        found[name + " nested"] = found[name].replace(b"[2,", b"[" * 400)
    return found


if __name__ == "__main__":
    harness.run(read, seeds(), 1536, build=multiplied.plan)
