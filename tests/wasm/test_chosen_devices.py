"""Which device `compile(backend="auto")` asks next, what it keeps, and how it brings results to the host."""

from __future__ import annotations

import pickle
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.backend import get_backend
from emberlet.errors import BackendError
from emberlet.wgpu_backend import fastest
from emberlet.wgpu_backend.fastest import Fastest


def nothing(x: Any) -> Any:
    return x


class Device:
    """A compiled model that takes the given seconds, one after the other; an error instead of seconds is raised."""

    def __init__(self, clock: list[float], name: str, times: list[Any]) -> None:
        self.clock, self.name, self.times, self.calls = clock, name, list(times), 0
        self.model = nothing

    def __call__(self, value: Any = None, **keywords: Any) -> Any:
        self.calls += 1
        took = self.times.pop(0) if self.times else 1.0
        if isinstance(took, Exception):
            raise took
        self.clock[0] += took
        return self.name if value is None else value

    def __repr__(self) -> str:
        return f"<{self.name}>"


def made(monkeypatch: pytest.MonkeyPatch, **times: list[Any]) -> tuple[Fastest, dict[str, Device]]:
    clock = [0.0]
    devices = {name: Device(clock, name, seconds) for name, seconds in times.items()}
    monkeypatch.setattr(fastest, "clock", lambda: clock[0])
    monkeypatch.setattr(fastest, "_compiled", lambda _model, _examples, name, _options: devices[name])
    return Fastest(nothing, (), tuple(times)), devices


def test_each_device_makes_its_plan_first_and_then_takes_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, _ = made(monkeypatch, a=[9.0, 3.0, 3.0, 3.0], b=[1.0, 4.0, 2.0, 4.0])
    assert repr(fast) == "Fastest(measuring a, b)"
    assert [fast() for _ in range(8)] == ["a", "b", "a", "b", "a", "b", "a", "b"]
    assert fast.times == {"a": [3.0, 3.0, 3.0], "b": [4.0, 2.0, 4.0]}  # the first calls do not count
    assert fast.chosen == "b" and repr(fast) == "Fastest(b, <b>)"
    assert [fast() for _ in range(3)] == ["b"] * 3 and fast.times["b"] == [4.0, 2.0, 4.0]


def test_a_device_that_fails_later_is_dropped_with_its_times(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, devices = made(monkeypatch, a=[1.0, BackendError("lost")], b=[5.0], c=[5.0, 2.0])
    assert [fast() for _ in range(4)] == ["a", "b", "c", "b"]
    assert list(fast.times) == ["b", "c"] and devices["a"].calls == 2 and fast.chosen is None
    other, _ = made(monkeypatch, a=[1.0, BackendError("lost")], b=[5.0])
    assert [other() for _ in range(3)] == ["a", "b", "b"] and other.chosen == "b"
    with pytest.raises(ValueError, match="odd"):
        made(monkeypatch, a=[ValueError("odd")], b=[])[0]()


def test_devices_that_do_not_run_here_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(_model: Any, _examples: Any, name: str, _options: Any) -> Any:
        if name != "b":
            raise {"a": BackendError("no device"), "c": ImportError("no package")}[name]
        return Device([0.0], name, [])

    monkeypatch.setattr(fastest, "_compiled", compiled)
    fast = Fastest(nothing, (), ("a", "b", "c"))
    assert fast.chosen == "b" and fast() == "b"
    with pytest.raises(BackendError, match="no device runs compiled models here; a: no device; c: no package"):
        Fastest(nothing, (), ("a", "c"))


def test_results_of_every_structure_come_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, _ = made(monkeypatch, a=[], b=[])
    host, other = get_backend("numpy"), get_backend("python")
    there, here = (emberlet.asarray([1.5, 2.0], backend=backend) for backend in (other, host))
    for _ in range(9):  # while it measures and afterwards
        assert fast(here) is here and fast(3) == 3 and fast("text") == "text"
        moved = fast(there)
        assert moved.backend is host and moved.dtype is there.dtype and moved.tolist() == [1.5, 2.0]
        found = fast({"x": [there, (there, 1)], "y": here})
        assert type(found["x"]) is list and type(found["x"][1]) is tuple and found["y"] is here
        assert found["x"][0].backend is host and found["x"][1][0].backend is host and found["x"][1][1] == 1
    assert fast.chosen


def test_a_copy_measures_anew_on_the_same_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, _ = made(monkeypatch, a=[], b=[])
    assert fast.__reduce__() == (fastest._again, (nothing, ("a", "b"), {}))
    for _ in range(8):
        fast()
    assert fast.__reduce__() == (fastest._again, (nothing, ("a",), {}))
    copy = pickle.loads(pickle.dumps(fast))
    assert copy.chosen == "a" and copy.times == {"a": []}


def test_numpy_is_compiled_by_its_own_planner() -> None:
    x = emberlet.asarray(np.ones(3, np.float32), backend="numpy")
    for name, kind in (("numpy", "numpy_backend"), ("wasm", "wgpu_backend")):
        found = fastest._compiled(nothing, (x,), name, {})
        assert kind in type(found).__module__ and np.asarray(found(x)).tolist() == [1.0, 1.0, 1.0]
