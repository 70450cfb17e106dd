"""Sessions in a tab with awaited steps, where Python cannot wait for the GPU."""

from support.browser.in_micropython import in_micropython
from support.browser.in_pyodide import in_pyodide


@in_pyodide
async def test_an_awaited_step_runs_one_plan_for_every_length():
    import asyncio

    import emberlet
    import pyodide.ffi
    from emberlet import functional as F
    from emberlet.model import Model
    from emberlet.wgpu_backend.browser import bridge
    from emberlet.wgpu_backend.device import can_wait

    class Reader(Model):
        INPUTS = (("x", "float32", ("new", 4)), ("past", "float32", ("past", 4)), ("last", "float32", (4,)))
        OUTPUTS = (("y", "float32", ("new", 4)), ("seen", "float32", ("new + past", 4)), ("now", "float32", (4,)))
        STATE = (("past", "seen", "append", 0), ("last", "now", "replace", None))

        def forward(self, x, past, last):
            seen = F.concat((past, x * 0.5), axis=0)
            y = F.softmax(x @ seen.permute(1, 0), axis=1) @ seen + last
            return y, seen, F.mean(y, axis=0)

    def given(n, new=1):
        return [[((7 * n + 3 * i + k) % 11) / 11 for k in range(4)] for i in range(new)]

    def near(got, want):
        flat = [abs(a - b) for r, s in zip(got.tolist(), want.tolist(), strict=True) for a, b in zip(r, s, strict=True)]
        assert max(flat) < 1e-4, flat

    def first(backend):
        shapes = {"past": (0, 4), "last": (4,)}
        return {name: emberlet.zeros(shape, backend=backend) for name, shape in shapes.items()}

    gpu = emberlet.get_backend("wgpu")
    assert gpu.device  # opened now
    suspends = bridge.can_run_sync
    pyodide.ffi.can_run_sync = bridge.can_run_sync = lambda: False  # as in a tab without Promise Integration
    session = Reader().fork("wgpu").session(capacity=256, initial=first("wgpu"))
    twin = Reader().fork("python").session(capacity=256, initial=first("python"))

    async def steps():
        assert not can_wait()
        for n in range(3):
            near(await session.step_async(given(n)), twin.step(given(n)))
        compiled = session._engine.compiled
        before = gpu.device.created_buffers, len(gpu.device.pipelines), len(compiled._open)
        for n in range(3, 203):
            near(await session.step_async(given(n)), twin.step(given(n)))
        assert (gpu.device.created_buffers, len(gpu.device.pipelines), len(compiled._open)) == before
        near(await session.step_async(given(0, 5)), twin.step(given(0, 5)))  # a prompt in the middle
        other, other_twin = session.fork(), twin.fork()
        for n in range(4):
            found = await asyncio.gather(session.step_async(given(n)), other.step_async(given(n + 1)))
            near(found[0], twin.step(given(n)))
            near(found[1], other_twin.step(given(n + 1)))
        assert session.length == twin.length == other.length == 212
        running = asyncio.ensure_future(session.step_async(given(5)))
        await asyncio.sleep(0)
        running.cancel()
        try:
            await running
        except asyncio.CancelledError:
            assert session.length == 212
        else:
            twin.step(given(5))  # it had finished before
        near(await session.step_async(given(6)), twin.step(given(6)))
        out = session.step(given(7))  # operation by operation, which waits for nothing
        wanted = twin.step(given(7)).tolist()[0]
        data = await out.to_data_async()
        assert max(abs(a - b) for a, b in zip(data.to_list()[0], wanted, strict=True)) < 1e-4
        near(await session.step_async(given(8)), twin.step(given(8)))

    try:
        await steps()
    finally:
        pyodide.ffi.can_run_sync = bridge.can_run_sync = suspends


@in_micropython
async def test_awaited_steps_under_micropython():
    import asyncio

    import emberlet
    from emberlet import functional as F
    from emberlet.errors import EmberletError
    from emberlet.model import Model
    from emberlet.wgpu_backend import device

    class Reader(Model):
        INPUTS = (("x", "float32", ("new", 4)), ("past", "float32", ("past", 4)), ("last", "float32", (4,)))
        OUTPUTS = (("y", "float32", ("new", 4)), ("seen", "float32", ("new + past", 4)), ("now", "float32", (4,)))
        STATE = (("past", "seen", "append", 0), ("last", "now", "replace", None))

        def forward(self, x, past, last):
            seen = F.concat((past, x * 0.5), axis=0)
            y = F.softmax(x @ seen.permute(1, 0), axis=1) @ seen + last
            return y, seen, F.mean(y, axis=0)

    def given(n, backend, new=1):
        rows = [[((7 * n + 3 * i + k) % 11) / 11 for k in range(4)] for i in range(new)]
        return F.asarray(rows, dtype="float32", device=backend)

    def first(backend):
        return {
            "past": emberlet.zeros((0, 4), backend=backend),
            "last": emberlet.zeros((4,), backend=backend),
        }

    async def near(got, want):
        found, want = (await got.to_data_async()).to_list(), want.tolist()
        assert len(found) == len(want)
        differences = [abs(found[i][k] - want[i][k]) for i in range(len(want)) for k in range(4)]
        assert max(differences) < 1e-4, differences

    await device.open_device_async()
    for backend in ("python", "wgpu"):
        session = Reader().fork(backend).session(capacity=64, initial=first(backend))
        twin = Reader().fork("python").session(capacity=64, initial=first("python"))
        for n in range(40):
            await near(await session.step_async(given(n, backend)), twin.step(given(n, "python")))
        await near(await session.step_async(given(0, backend, 5)), twin.step(given(0, "python", 5)))
        other, other_twin = session.fork(), twin.fork()
        found = await asyncio.gather(session.step_async(given(1, backend)), other.step_async(given(2, backend)))
        await near(found[0], twin.step(given(1, "python")))
        await near(found[1], other_twin.step(given(2, "python")))
        try:
            await session.step_async(given(0, backend, 30))
        except EmberletError as error:
            assert "64" in str(error), error
        else:
            raise AssertionError("it took more than its capacity")
        assert session.length == twin.length == 46
        await near(await session.step_async(given(3, backend)), twin.step(given(3, "python")))


@in_micropython
async def test_awaited_steps_give_their_memory_back_under_micropython():
    """MicroPython runs no finalizers, so a step frees the memory that only it used."""
    import emberlet
    from emberlet import functional as F
    from emberlet import nn
    from emberlet.model import Model
    from emberlet.wgpu_backend import device

    class Reader(Model):
        INPUTS = (("x", "float32", (1, 4)), ("past", "float32", ("past", 4)), ("last", "float32", (1, 4)))
        OUTPUTS = (("y", "float32", (1, 4)), ("seen", "float32", ("past + 1", 4)), ("now", "float32", (1, 4)))
        STATE = (("past", "seen", "append", 0), ("last", "now", "replace", None))

        def __init__(self, backend=None):
            self.linear = nn.Linear(4, 4, backend=backend)

        def forward(self, x, past, last):
            seen = F.concat((past, self.linear(x)), axis=0)
            y = F.softmax(x @ seen.permute(1, 0), axis=1) @ seen + last
            return y, seen, F.tanh(y @ self.linear.weight.val())

    def given(n, backend):
        return F.asarray([[((7 * n + k) % 11) / 11 for k in range(4)]], dtype="float32", device=backend)

    async def near(got, want):
        found, wanted = (await got.to_data_async()).to_list()[0], want.tolist()[0]
        assert max([abs(found[k] - wanted[k]) for k in range(4)]) < 1e-4, (found, wanted)

    await device.open_device_async()
    model = Reader("python")
    for param in model.params():
        param.val()  # drawn once, for both
    first = {"past": emberlet.zeros((0, 4), backend="python"), "last": emberlet.zeros((1, 4), backend="python")}
    session = model.fork("wgpu").session(capacity=64, initial=first)
    twin = model.session(capacity=64, initial=first)
    gpu = emberlet.get_backend("wgpu").device

    async def steps(count, session, twin):
        for n in range(count):
            x = given(n, "wgpu")
            y = await session.step_async(x)
            assert y.tolist() == y.tolist()  # on the host already
            await near(y, twin.step(given(n, "python")))
            await near(x, given(n, "python"))

    await steps(4, session, twin)
    lent, made = gpu.live_bytes, gpu.created_buffers
    await steps(36, session, twin)
    grown = 40 * 4 * 4  # bytes of the state that grows
    assert gpu.live_bytes <= lent + 2 * grown, (lent, gpu.live_bytes)
    assert gpu.created_buffers <= made + 12, (made, gpu.created_buffers)  # two of each size that the pool keeps
    other, other_twin = session.fork(), twin.fork()
    await steps(3, session, twin)
    await steps(3, other, other_twin)
    session.snapshot()
    twin.snapshot()
    await steps(2, session, twin)
    session.rewind(2)
    twin.rewind(2)
    await steps(3, session, twin)
    lent = gpu.live_bytes
    session.reset()
    twin.reset()
    assert gpu.live_bytes < lent
    await steps(3, session, twin)
