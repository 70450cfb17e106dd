"""A Plan as one module: its kernels, a function that runs them in order, and the layout of its memory."""

from emberlet.errors import BackendError

from . import engine, library, threads
from .addresses import SIZES
from .assembler import code_section, module
from .kernels import split
from .step_groups import grouped
from .stored import BLOCK_BYTES, expansion, nbytes

PAGE = 1 << 16
MOST = 1 << 16  # pages of a memory with 32-bit addresses


class Layout:
    """Where a plan's buffers lie in one memory. addresses: the address of each buffer of the Plan, by number; rooms:
    their bytes. scratch: the address of the kernels' scratch memory; scratch_room: its bytes, for each thread. nbytes:
    the size of the memory in bytes. held: the numbers of constant buffers that are in place in every instance."""

    held = ()

    def __init__(self, plan, stored=None, sizes=0, room=None, apart=()):
        """stored: {number of a constant buffer: how its file encodes it} (stored.py); sizes: how many open sizes the
        kernels read; room: the bytes to reserve for an open size or a number of bytes; apart: numbers of buffers that
        get no place here."""
        self.plan = plan
        room = room or int
        at = SIZES + (4 * sizes + 63) // 64 * 64
        self.addresses = []
        self.rooms = [room(b.nbytes) for b in plan.buffers]
        for number in range(len(plan.buffers)):
            self.addresses.append(at)
            if number in apart:
                continue
            block = BLOCK_BYTES if stored and number in stored else 64
            at += (max(4, self.rooms[number]) + block - 1) // block * block
        self.parts = []
        self.encoded = {}  # number of a stored buffer -> addresses of what encodes it
        for number in sorted(stored or ()):
            how, count = stored[number], plan.buffers[number].nbytes // 4
            elements, scales = nbytes(how, count)
            to = self.addresses[number]
            first = to + (count * 4 + BLOCK_BYTES - 1) // BLOCK_BYTES * BLOCK_BYTES - elements
            self.encoded[number] = (first, at)[: 2 if scales else 1]
            self.parts.append((how, to, count, first, at))
            at += (scales + 63) // 64 * 64
        self.scratch = at
        self.scratch_room = max([0] + [room(f.scratch) for _, f in plan.kernels])
        self.nbytes = at + self.scratch_room + 64


class Image(Layout):
    """module: the bytes of a module that exports "memory" and "run". pages: the size of the memory in pages of 64 KiB;
    threads: the most threads that may run it (threads.py); groups: the positions of the Plan's steps, as step_groups.py
    groups them."""

    def __init__(self, plan, stored=None, sizes=0, room=None, relaxed=False):
        """relaxed: whether functions of the library use relaxed SIMD."""
        Layout.__init__(self, plan, stored, sizes, room)
        parts, scratch = self.parts, self.scratch
        stride = (self.scratch_room + 63) // 64 * 64  # bytes between the scratch memories of two threads
        called = [plan.kernels[step.kernel][1] for step in plan.steps]
        self.groups = grouped([(f, step.buffers) for f, step in zip(called, plan.steps)])
        self.threads = threads.MOST if split.pays([[called[at] for at in group] for group in self.groups]) else 1
        if self.threads == 1:
            self.groups = [range(len(called))]
        self.nbytes += (self.threads - 1) * stride
        pages = (self.nbytes + PAGE - 1) // PAGE
        if pages > MOST:
            raise BackendError("this plan takes {} bytes of memory; WebAssembly has at most 4 GiB".format(self.nbytes))
        functions, seen = [], {}
        for n, (_, f) in enumerate(plan.kernels):
            _add(functions, seen, "kernel{}".format(n), f, relaxed)
        groups = [[self._call(plan.steps[at]) for at in group] for group in self.groups]
        self.exported = ["run"]
        if self.threads > 1:
            functions += threads.helpers()
            self.exported.append("part")
        functions.append(("part", threads.part(groups, scratch, stride, self.threads > 1)))
        functions.append(("run", threads.alone()))
        if parts:
            self.exported.append("expand")
            functions.append(("expand", expansion(parts)))
        self._functions = functions
        self.pages = pages
        self.module = module(functions, self.exported, pages)

    def _call(self, step):
        """(the name of its function, the addresses of its buffers, the Function) of a step."""
        f = self.plan.kernels[step.kernel][1]
        return "kernel{}".format(step.kernel), [self.addresses[b] for b in step.buffers], f

    def instance(self):
        """A memory for the module, and what runs it: on several threads where the engine has them."""
        return engine.shared(self) or engine.compiled(self.module).instance()

    def file(self, custom, data):
        """The module with custom sections (name, bytes), and with `data`: number of a buffer -> its bytes, or a list of
        what encodes it."""
        return module(self._functions, self.exported, self.pages, custom, self._placed(data))

    def _placed(self, data):
        """(address, bytes) of `data`, as in `file`."""
        placed = []
        for number in data:
            if number in self.encoded:
                placed.extend(zip(self.encoded[number], data[number]))
            else:
                placed.append((self.addresses[number], data[number]))
        return placed

    def shared_module(self):
        """The module with a shared memory that it imports, for several threads."""
        return module(self._functions, self.exported, self.pages, shared=True)

    def code(self):
        """The code section."""
        return code_section(self._functions)

    def open_module(self, data=()):
        """The module with every kernel exported as well, so that each can be timed. data: as in `file`."""
        names = [name for name, _ in self._functions if name.startswith("kernel")]
        return module(self._functions, names + ["run"], self.pages, (), self._placed(data))


def _add(functions, seen, name, f, relaxed):
    """Add a function and those that it calls."""
    seen[name] = True
    for called in f.called():
        if called not in seen:
            _add(functions, seen, called, library.function(called, relaxed), relaxed)
    functions.append((name, f))
