"""Sessions on MicroPython: the same steps give the same results as here, and a step appends in place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from emberlet.codegen import generate, load
from emberlet.errors import EmberletError
from models.index import HERE

from tools.layout import device_tree
from tools.micropython import Port

SCRIPT = """
import json
import emberlet
from emberlet import functional as F
from emberlet.errors import EmberletError
from {module} import {name}

model = {name}.default()
session = model.session(capacity=12, dims={dims})
found = []
places = []

def run(what):
    for kind, value in what:
        global session
        if kind == "step":
            out = session.step(F.asarray(value, dtype={dtype!r}))
            out = out if isinstance(out, tuple) else (out,)
            found.append([out[0].tolist(), session.length])
            places.append([id(r.array.data[0]) for r in session._rooms if r is not None])
        elif kind == "fork":
            session = session.fork()
        elif kind == "snapshot":
            session.snapshot()
        elif kind == "rewind":
            session.rewind(value)

run({what!r})
try:
    run({more!r})
except EmberletError as error:
    found.append(str(error))
    session.reset()
    run({what!r}[:1])
    places.pop()
print(json.dumps([found, len(set([str(p) for p in places]))]))
"""


@pytest.mark.parametrize(
    ("name", "steps", "dims", "dtype"),
    [
        ("llama", [[[1, 2, 3]], [[4]], [[5, 6]]], {}, "int64"),
        ("lstm_step", [[[[0.25] * 12]], [[[0.5] * 12], [[1.0] * 12]], [[[-1.0] * 12]]], {}, "float32"),
    ],
)
def test_the_same_steps_on_micropython(
    unix_port: Port, tmp_path: Path, name: str, steps: list[object], dims: dict[str, int], dtype: str
) -> None:
    path = HERE / name / "model.onnx"
    made = generate(path, tmp_path, name=name, embed=True)
    first, second, third = steps
    what = [("step", first), ("snapshot", 0), ("step", second), ("fork", 0), ("step", third), ("step", second)]
    grows = name == "llama"
    what.append(("rewind", 4 if grows else 3))
    what += [("step", second)] * (1 if grows else 2)
    more = [("step", [[1] * 9])] if grows else [("rewind", 1)]
    script = SCRIPT.format(module=name, name=made.class_name, dims=dims, dtype=dtype, what=what, more=more)
    result = unix_port.run(script, heap="8M", micropypath=[device_tree(), tmp_path]).check()
    found, places = json.loads(result.stdout)

    session = load(path, "numpy").session(12, dims=dims)
    wanted = []
    for kind, value in what:
        if kind == "step":
            out = session.step(np.array(value, dtype))
            wanted.append((out, session.length))
        elif kind == "fork":
            session = session.fork()
        elif kind == "snapshot":
            session.snapshot()
        else:
            session.rewind(value)
    for (got, length), (want, expected) in zip(found, wanted, strict=False):
        assert length == expected
        np.testing.assert_allclose(np.float32(got), np.asarray(want), atol=1e-4)
    with pytest.raises(EmberletError) as caught:
        session.step(np.array(more[0][1], dtype)) if grows else session.rewind(1)
    assert found[len(wanted)] == str(caught.value)
    out = np.asarray(session.reset().step(np.array(first, dtype)))
    np.testing.assert_allclose(np.float32(found[-1][0]), out, atol=1e-4)
    assert len(found) == len(wanted) + 2 and found[-1][1] == session.length
    assert places == (2 if grows else 1), "a fork has memory of its own, and a step takes none"
