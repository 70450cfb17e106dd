"""What the steps of a session on the GPU decide: open axes, rooms, copies. Stand-ins take the place of plans."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.model import Model
from emberlet.session.room import Growing, Room
from emberlet.wgpu_backend import resident
from emberlet.wgpu_backend.resident import MOST_COPIES, GpuRoom, Resident, _Call, open_dims, rooms_of


def entry(input: int, output: int, axis: int | None) -> Any:
    return SimpleNamespace(input=input, output=output, axis=axis)


def model(inputs: Any, outputs: Any = None) -> Any:
    found = SimpleNamespace(INPUTS=[("x", "float32", shape) for shape in inputs])
    if outputs is not None:
        found.OUTPUTS = [("y", "float32", shape) for shape in outputs]
    return found


TOKENS = [("batch", "new"), (1, "past", 4)]


@pytest.mark.parametrize(
    ("made", "entries", "capacity", "wanted"),
    [
        (SimpleNamespace(), [entry(1, 0, 1)], None, None),
        (model(TOKENS), [entry(1, 0, None)], None, None),
        (model(TOKENS), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS), [entry(1, 0, 1)], 64, {"past": (1, 64)}),
        (model(TOKENS), [entry(1, 0, 0)], 64, None),  # a number
        (model([("new",), (1, "past + 1")]), [entry(1, 0, 1)], None, None),
        (model([("new",), None]), [entry(1, 0, 1)], None, None),
        (model(TOKENS, [(1, "past + new", 4)]), [entry(1, 0, 1)], None, {"past": None, "new": (2, None)}),
        (model(TOKENS, [(1, "past + new", 4)]), [entry(1, 0, 1)], 9, {"past": (1, 9), "new": (2, None)}),
        (model(TOKENS, [("x",), (1, "past + new", 4)]), [entry(1, 1, 1)], None, {"past": None, "new": (2, None)}),
        (model(TOKENS, [("x",), (1, "past + new", 4)]), [entry(1, 2, 1)], None, {"past": None}),
        (model(TOKENS, [(1, "other + new", 4)]), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS, [(1, "past + unknown", 4)]), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS, [(1, "past + 2", 4)]), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS, [(1, 7, 4)]), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS, [(1,)]), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS, [None]), [entry(1, 0, 1)], None, {"past": None}),
        (model([*TOKENS, ("length",)]), [entry(1, 0, 1), entry(2, 1, 0)], None, {"past": None, "length": None}),
    ],
)
def test_the_axes_that_are_open_from_the_start(made: Any, entries: Any, capacity: Any, wanted: Any) -> None:
    assert open_dims(made, entries, capacity) == wanted


@pytest.mark.parametrize(
    ("shape", "axis", "dtype", "word", "length", "wanted"),
    [
        ((2, 3, 4), 1, "float32", "f32", 10, True), ((2, 3, 4), 1, "float32", "f32", 32, True),
        ((2, 3, 4), 1, "float32", "f32", 33, False), ((2, 3, 4), 1, "int32", "i32", 10, False),
        ((2, 3, 4), 1, "float16", "f16", 10, False), ((2, 3, 4), 1, "float16", "f32", 10, True),
        ((2, 3, 0), 1, "float32", "f32", 10, False), ((2, 0, 4), 1, "float32", "f32", 10, True),
        ((0, 3, 4), 1, "float32", "f32", 10, False), ((2, 3, 4), 1, "float32", "f32", 0, False),
        ((3, 85, 1), 2, "float32", "f32", 1, True), ((257, 1), 1, "float32", "f32", 1, False),
    ],
)  # fmt: skip
def test_the_states_that_can_have_a_room(
    shape: tuple[int, ...], axis: int, dtype: str, word: str, length: int, wanted: bool
) -> None:
    device = SimpleNamespace(page_bytes=1024)
    assert GpuRoom.holds(shape, axis, dtypes.dtype(dtype), word, length, device) == wanted


def test_a_room_of_too_many_rows_is_not_made() -> None:
    device = SimpleNamespace(page_bytes=1 << 30)
    for rows, wanted in [(MOST_COPIES, True), (MOST_COPIES + 1, False)]:
        assert GpuRoom.holds((rows, 3), 1, dtypes.float32, "f32", 8, device) == wanted
    assert GpuRoom.holds((3, MOST_COPIES + 1), 0, dtypes.float32, "f32", 8, device)


class Summed(Model):
    """Its result is a sum over the past: of the tensor, or in a loop, for which the length has to be a number."""

    INPUTS = (("x", "float32", (1, 4)), ("past", "float32", ("past", 4)))
    OUTPUTS = (("y", "float32", (4,)), ("present", "float32", ("past + 1", 4)))
    STATE = (("past", "present", "append", 0),)

    def __init__(self, backend: Any, loops: bool) -> None:
        self.backend = get_backend(backend)
        self.loops = loops

    def forward(self, x: Any, past: Any) -> Any:
        now = F.concat((past, x), axis=0)
        y = F.sum(now, axis=0)
        if self.loops:
            y = x[0]
            for i in range(past.shape[0]):
                y = y + past[i]
        return y, now


@pytest.mark.parametrize("backend", ["wasm", "native"])
@pytest.mark.parametrize("loops", [False, True])
def test_no_plan_is_made_for_each_length_of_a_state(backend: str, loops: bool) -> None:
    pytest.importorskip("llvmlite" if backend == "native" else "wasmtime")
    session = Summed(backend, loops).session()
    for n in range(1, 9):
        y = session.step(np.full((1, 4), n, np.float32))
        np.testing.assert_array_equal(np.asarray(y), np.full(4, n * (n + 1) / 2))
    compiled: Any = session._engine.compiled
    assert len(compiled._programs) <= 2  # of the first step, and of that which shows that the length is a number
    assert bool(compiled._open) != loops


def room(axis: int, length: int) -> GpuRoom:
    found: GpuRoom = GpuRoom.__new__(GpuRoom)
    found.axis, found.length = axis, length
    found.array = SimpleNamespace(data=SimpleNamespace(buffer=SimpleNamespace(gpu="room")))
    return found


@pytest.mark.parametrize(
    ("shape", "axis", "wanted"),
    [
        ((2, 3, 5), 1, [(0, 0, 60), (60, 200, 60)]),
        ((2, 3, 5), 0, [(0, 0, 120)]),
        ((2, 1, 3), 2, [(0, 0, 12), (12, 40, 12)]),
        ((2, 0, 5), 1, []),
        ((2, 3, 0), 1, []),
    ],
)
def test_a_state_is_copied_into_its_room_row_by_row(shape: tuple[int, ...], axis: int, wanted: Any) -> None:
    copies: list[Any] = []
    encoder = SimpleNamespace(copy_buffer_to_buffer=lambda *given: copies.append(given))
    room(axis, 10).record(encoder, "state", shape)
    assert copies == [("state", source, "room", target, size) for source, target, size in wanted]


def growing(length: int = 16, used: int = 2, kind: Any = None) -> Any:
    x = F.asarray(np.zeros((1, 4, 2), np.float32), backend="numpy")
    found = Growing(Room(x, 1, length), used, None)
    if kind is None:
        found.room = room(1, length)
    return found


def held(entries: list[Any], capacity: int | None = None) -> Resident:
    found: Resident = Resident.__new__(Resident)
    found.entries, found.capacity, found.moved = entries, capacity, 0
    return found


def test_states_in_rooms_of_one_length_may_be_appended_to() -> None:
    two = [entry(0, 3, 1), entry(2, 5, 1)]
    rooms = rooms_of(two, [growing(), None, growing()], GpuRoom, None)
    assert rooms is not None and rooms.states == [(0, 3, 1), (2, 5, 1)] and rooms.length == 16
    assert rooms_of(two, [growing(), None, growing(32)], GpuRoom, None) is None
    plain = F.asarray([[1.0]], backend="numpy")
    alone = rooms_of(two, [growing(), None, plain], GpuRoom, None)
    assert alone is not None and alone.states == [(0, 3, 1)]
    assert rooms_of([entry(0, 3, None)], [growing()], GpuRoom, None) is None
    assert rooms_of(two, [growing(kind="host"), None, growing(used=0)], GpuRoom, None) is None
    assert rooms_of(two, [plain, None, plain], GpuRoom, None) is None


BACKEND = SimpleNamespace(realize=lambda x: setattr(x.data, "op", "buffer"))


def state(op: str = "buffer", word: str = "f32", size: int = 6, gpu: Any = "gpu", backend: Any = BACKEND) -> Any:
    data = SimpleNamespace(op=op, word=word, buffer=SimpleNamespace(gpu=gpu), nbytes=4 * size)
    return SimpleNamespace(data=data, size=size, backend=backend)


def root(shape: Any = (1, 3, 2), word: str = "f32", count: int | None = None) -> Any:
    return SimpleNamespace(
        shape=shape, word=word, dtype=dtypes.float32, count=int(np.prod(shape)) if count is None else count
    )


def call(
    entries: Any, arguments: Any, roots: Any, words: Any = (), in_place: Any = None, parts: Any = None,
    capacity: int | None = None, pages: int = 1,
) -> _Call:  # fmt: skip
    """words: (argument, its word) of the program's inputs."""
    source = SimpleNamespace(pages=[None] * pages, gpu="result")
    computed = [k for k, r in enumerate(roots) if r.count]
    program = SimpleNamespace(
        allocations=dict.fromkeys(range(9), source), results=[(n, 4) for n in range(len(computed))],
        device=SimpleNamespace(page_bytes=1 << 20), inputs=[(n, 4) for n in range(len(words))],
    )  # fmt: skip
    planned = SimpleNamespace(
        program=program,
        plan=SimpleNamespace(counts=None),
        arguments=[SimpleNamespace(arg=at, word=word) for at, word in words],
        structure=(tuple, [("tensor", k) for k in range(len(roots))]) if parts is None else parts,
        in_place=in_place or {},
        roots=roots,
        backend=BACKEND,
    )
    return _Call(held(entries, capacity), planned, None, arguments)


STATE = [entry(0, 1, 1)]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, True),
        ({"arguments": [state(op="data")]}, True),  # realized first
        ({"arguments": [state(backend=SimpleNamespace())]}, False),
        ({"arguments": [state(word="i32")]}, False),
        ({"arguments": [state(gpu=None)]}, False),
        ({"arguments": [state(size=0, op="data", gpu=None)]}, True),
        ({"arguments": [state(size=0, word="i32")]}, True),
        ({"words": [(0, "i32")]}, False),
        ({"words": [(1, "i32")]}, True),
        ({"words": [(0, "f32")]}, True),
        ({"pages": 2}, False),
        ({"roots": [root(), root(shape=(1, 0, 2))]}, False),
        ({"roots": [root(), root(word="i32")]}, False),
        ({"parts": (list, [("tensor", 0), ("tensor", 1)])}, False),
        ({"parts": (tuple, [("tensor", 0), ("number", 1)])}, False),
        ({"parts": (tuple, [("tensor", 0)])}, False),
        ({"parts": ("tensor", 0)}, False),
        ({"parts": ("tensor", 1), "entries": [entry(0, 0, 1)]}, True),
        ({"in_place": {0: ("x", 1)}, "arguments": [state(gpu=None)]}, True),
    ],
)
def test_a_step_fits_states_that_are_stored_as_the_plan_expects(changes: dict[str, Any], wanted: bool) -> None:
    given: dict[str, Any] = {"entries": STATE, "arguments": [state()], "roots": [root(), root()]} | changes
    made = call(**given)
    assert made.fits() == wanted
    if wanted:
        grown = [1] if "in_place" in changes else []
        assert made.grown == grown
        assert sorted(made.roots) == ([] if grown else [1])
        assert made.wanted == [0]


def test_what_is_computed_is_all_but_what_grows_and_what_is_empty() -> None:
    made = call(STATE, [state()], [root(), root(), root(shape=(0, 2))], in_place={0: ("x", 1)})
    assert made.computed == [0]


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        ([entry(0, 0, 1)], 3), ([entry(0, 0, None)], 0), ([entry(0, 1, 1)], 7), ([entry(0, 0, 1), entry(0, 1, 1)], 7),
        ([entry(0, 1, 1), entry(0, 0, 1)], 7), ([entry(0, 2, 1)], 0), ([entry(0, 0, 3)], 0), ([entry(0, 0, 2)], 2),
    ],
)  # fmt: skip
def test_the_longest_state_after_a_step(entries: Any, wanted: int) -> None:
    assert call(entries, [state()], [root(), root(shape=(1, 7, 2))]).longest() == wanted
    assert call(entries, [state()], [root(), root()], parts=(list, [])).longest() == 0


def test_the_bytes_that_a_step_moves() -> None:
    made = call(STATE, [state()], [root(), root()], words=[(0, "f32"), (3, "f32")])
    assert made.fits() and made.inputs == {0: 0}
    assert made.moved() == 4 * 6 + 8 * 6  # the state, then the new one twice
    empty = call(STATE, [state(size=0)], [root(), root()], words=[(0, "f32")])
    assert empty.fits() and empty.moved() == 8 * 6
    grown = call(STATE, [state(size=4)], [root(), root()], in_place={0: ("x", 1)})
    assert grown.fits() and grown.moved() == 4 * (6 - 4)


@pytest.mark.parametrize(
    ("axis", "shape", "capacity", "wanted"),
    [
        (1, (1, 3, 2), None, 8 * 16 + 4), (1, (1, 16, 2), None, 8 * 16 + 4), (1, (1, 17, 2), None, 8 * 32 + 4),
        (1, (1, 3, 2), 10, 8 * 10 + 4), (1, (1, 11, 2), 10, 8 * 20 + 4), (1, (1, 33, 2), None, 8 * 64 + 4),
        (None, (1, 3, 2), None, 24), (1, (1, 0, 2), None, 0), (1, (1, 1 << 17, 2), None, 1 << 20),
    ],
)  # fmt: skip
def test_the_memory_of_a_state_is_constant_while_it_grows(axis: Any, shape: Any, capacity: Any, wanted: int) -> None:
    count = int(np.prod(shape))
    node = SimpleNamespace(shape=shape, count=count, nbytes=4 * count)
    assert call(STATE, [state()], [root()], capacity=capacity)._room(node, entry(0, 0, axis)) == wanted


def test_states_are_copied_to_the_programs_inputs() -> None:
    copies: list[Any] = []
    encoder = SimpleNamespace(copy_buffer_to_buffer=lambda *given: copies.append(given))
    two = [entry(0, 0, 1), entry(2, 1, 1)]
    made = call(
        two, [state(gpu="first"), None, state(gpu="second", size=3)], [root()], [(0, "f32"), (1, ""), (2, "f32")]
    )
    made.restore(encoder)
    assert copies == [("first", 0, "result", 0, 24), ("second", 0, "result", 0, 12)]
    made.arguments[2].size = 0
    made.restore(encoder)
    assert copies[2:] == copies[:1]


def test_there_is_none_where_the_gpu_can_only_be_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(resident, "Resident", lambda *given: made.append(given) or "made")
    for must, planning, wanted in [(False, False, "made"), (True, False, None), (False, True, None)]:
        monkeypatch.setattr(resident, "must_await", lambda must=must: must)
        assert resident.resident("model", [], 7, SimpleNamespace(planning=planning)) == wanted
    assert made == [("model", [], 7, SimpleNamespace(planning=False))]
