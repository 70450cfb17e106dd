"""Runs a module on several threads: each has its own instance, and all share one memory.

Every thread calls "part" with its number, how many there are, and the number of the run, which thread 0 begins. All go
through the same steps, a kernel that they share in ranges of its loop. Ranges are numbered through the whole run, and a
thread takes the next number from a counter when it is free: it need not come in time, nor do as much as the others. It
begins once all ranges of the groups before (step_groups.py) are done, which a second counter says. The first bytes of
the memory hold both (addresses.py).
"""

from .addresses import COUNT, DONE, STOPPED, TICKET, WAITING
from .assembler import Function, call, i32, i64, memory, op, select
from .kernels import split

MOST = 8  # threads of a module: each has scratch memory of its own
RANGES = 4  # of a kernel for each thread, so that one which was late, or lost its processor, delays no other

# How often a thread reads whether the steps before are done, until it sleeps; this takes about 2 ms, and most ranges
# take less. A virtual processor whose thread sleeps may be given to others, and then waking takes 2 to 4 ms: the
# convolution of `bench wasm`, whose ranges take 0.4 ms, lost that in half of its runs when threads slept after 0.2 ms.
# Where threads have to share a processor, this costs more, and one thread is chosen (web/package/threads.mjs).
SPIN = 2000000

# A thread that the browser ended with a range in hand is never done. The others give up after WAITS waits of 10 s. One
# wait of a minute would not do: it would end at once for all when a computer wakes from sleep.
WAITS = 6
WAIT_NS = 10 * 1000 * 1000 * 1000

_UNREACHABLE = b"\x00"
_NONE = -1  # instead of a number, for a thread that belongs to a run which is over: beyond every step, as unsigned


def part(groups, scratch, stride, several):
    """The function "part". groups: of steps (step_groups.py), each of which is (kernel's name, its addresses, its
    Function); scratch: the address of the scratch memory of thread 0; stride: bytes to that of the next thread;
    several: whether more than one thread may call it."""
    f = Function("part", ("i32", "i32", "i32"))
    thread, threads, run = [f.param(n) for n in range(3)]
    own = f.let(op("i32.add", i32(scratch), op("i32.mul", thread, i32(stride))))
    if not several:
        for group in groups:
            _write(f, group, own)
        return f.finish()
    turn = f.let(call("begin", "i32", thread, threads, run))
    count = f.let(_word(COUNT))
    f.begin_if(op("i32.lt_u", count, op("i32.add", thread, i32(1))))
    f.exit()  # late, and thread 0 goes on without it
    f.end()
    ranges = f.let(select(op("i32.gt_u", count, i32(1)), op("i32.mul", count, i32(RANGES)), i32(1)))
    # Numbers of ranges: the first one of the group, that of the step, that of the next step, and the one in hand.
    begun, first, last, ticket = [f.local("i32") for _ in range(4)]
    f.set(first, i32(1))
    f.set(ticket, call("take", "i32", turn))
    for group in groups:
        f.set(begun, f.get(first))
        shared = split.shares(group[0][2])
        for steps in [[step] for step in group] if shared else [group]:
            many = (ranges if split.fine(steps[0][2]) else count) if shared else i32(1)
            f.set(last, op("i32.add", f.get(first), many))
            f.begin_block()
            f.begin_loop()
            f.branch_if(op("i32.ge_u", f.get(ticket), f.get(last)), 1)
            f.do(call("await", "", f.get(begun), count))
            _write(f, steps, own, (op("i32.sub", f.get(ticket), f.get(first)), many) if shared else None)
            f.set(ticket, call("next", "i32", turn))
            f.branch(0)
            f.end()
            f.end()
            f.set(first, f.get(last))
    f.begin_if(op("i32.eqz", thread))
    f.do(call("await", "", f.get(first), count))
    f.end()
    return f.finish()


def _write(f, steps, own, place=None):
    """Call the kernels of steps. place: (number of a range, number of ranges), both expressions; None for the whole."""
    for name, addresses, kernel in steps:
        for at in addresses:
            f.do(i32(at))
        f.do(own)
        if place is None:
            f.do(i32(0))
            f.do(i32(kernel.steps))
        else:
            for number in (place[0], op("i32.add", place[0], i32(1))):
                f.do(op("i32.div_u", op("i32.mul", number, i32(kernel.steps)), place[1]))
        f.code.append(("call", name))


def helpers():
    """The functions that "part" calls where several threads may: (name, Function)."""
    return [("begin", _begin()), ("await", _await()), ("take", _take()), ("next", _next())]


def alone():
    """The function "run": all steps on one thread."""
    f = Function("run", ())
    f.do(call("part", "", i32(0), i32(1), i32(0)))
    return f.finish()


def _word(at):
    return memory("i32.atomic.load", i32(at))


def _put(f, at, value):
    f.do(memory("i32.atomic.store", i32(at), value))


def _add(at, number):
    return memory("i32.atomic.rmw.add", i32(at), i32(number))


def _turn():
    """The number of the run, the upper half of the counter."""
    return op("i32.wrap_i64", op("i64.shr_u", memory("i64.atomic.load", i32(TICKET)), i64(32)))


def _begin():
    """A thread's number, how many there are, and the number of the run -> the number of this run. Thread 0 begins it:
    while the lower half of the counter is 0, nobody gets a range. The others often come a moment before."""
    f = Function("begin", ("i32", "i32", "i32"), ("i32",))
    f.begin_if(op("i32.eqz", f.param(0)))
    closed = f.let(op("i64.shl", op("i64.extend_i32_u", op("i32.add", _turn(), i32(1))), i64(32)))
    f.do(memory("i64.atomic.store", i32(TICKET), closed))
    _put(f, COUNT, f.param(1))
    _put(f, DONE, i32(1))
    f.do(memory("i64.atomic.store", i32(TICKET), op("i64.or", closed, i64(1))))
    f.otherwise()
    left = f.local("i32")
    f.set(left, i32(SPIN))
    opened = f.let(op("i64.shl", op("i64.extend_i32_u", f.param(2)), i64(32)))
    f.begin_block()
    f.begin_loop()
    f.branch_if(op("i64.gt_u", memory("i64.atomic.load", i32(TICKET)), opened), 1)
    f.set(left, op("i32.sub", f.get(left), i32(1)))
    f.branch_if(f.get(left), 0)
    f.end()
    f.end()
    f.end()
    # A thread that is a whole run late gets no part of the next, in which another one may have its number and memory.
    f.give(select(op("i32.eqz", f.param(0)), _turn(), f.param(2)))
    return f.finish()


def _take():
    """The number of a run -> the number of its next range. The run is compared in the same instruction, so that a
    thread that is late takes no range of a later one."""
    f = Function("take", ("i32",), ("i32",))
    f.begin_loop()
    now = f.let(memory("i64.atomic.load", i32(TICKET)))
    number = f.let(op("i32.wrap_i64", now))
    other = op("i32.ne", op("i32.wrap_i64", op("i64.shr_u", now, i64(32))), f.param(0))
    f.begin_if(op("i32.or", other, op("i32.eqz", number)))
    f.exit(i32(_NONE))
    f.end()
    taken = memory("i64.atomic.rmw.cmpxchg", i32(TICKET), now, op("i64.add", now, i64(1)))
    f.branch_if(op("i64.ne", taken, now), 0)
    f.end()
    f.give(number)
    return f.finish()


def _next():
    """The range in hand is done: take the next one."""
    f = Function("next", ("i32",), ("i32",))
    f.let(_add(DONE, 1))
    f.begin_if(_word(WAITING))
    f.let(memory("memory.atomic.notify", i32(DONE), i32(MOST)))
    f.end()
    f.give(call("take", "i32", f.param(0)))
    return f.finish()


def _await():
    """Return when all ranges before one are done. Parameters: its number, and how many threads there are."""
    f = Function("await", ("i32", "i32"))
    need, done = f.param(0), f.local("i32")
    left = f.local("i32")

    def leave_if_stopped():
        f.begin_if(_word(STOPPED))
        f.code.append(_UNREACHABLE)
        f.end()

    f.begin_block()
    f.set(left, i32(SPIN))
    f.begin_loop()
    f.branch_if(op("i32.ge_u", _word(DONE), need), 1)
    f.set(left, op("i32.sub", f.get(left), i32(1)))
    f.branch_if(f.get(left), 0)
    f.end()
    f.let(_add(WAITING, 1))
    f.set(left, i32(WAITS))
    f.begin_block()
    f.begin_loop()
    f.set(done, _word(DONE))
    f.branch_if(op("i32.ge_u", f.get(done), need), 1)
    late = f.let(memory("memory.atomic.wait32", i32(DONE), f.get(done), i64(WAIT_NS)))
    leave_if_stopped()
    f.begin_if(op("i32.eq", late, i32(2)))
    f.set(left, op("i32.sub", f.get(left), i32(1)))
    f.begin_if(op("i32.eqz", f.get(left)))
    _put(f, STOPPED, i32(2))
    f.code.append(_UNREACHABLE)
    f.end()
    f.end()
    f.branch(0)
    f.end()
    f.end()
    f.let(_add(WAITING, -1))
    f.end()
    f.begin_if(op("i32.gt_u", f.param(1), i32(1)))
    leave_if_stopped()
    f.end()
    return f.finish()
