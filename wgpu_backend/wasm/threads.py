"""Runs a module on several threads: each has its own instance, and all share one memory.

Every thread calls "part" with its number and their count. It goes through the same steps: kernels that threads share
run a range of their loop, the others run on thread 0, and a barrier separates steps whose results others read. The
first bytes of the memory hold the barrier's words (addresses.py).
"""

from .addresses import ARRIVED, STOPPED, TURN, WAITING
from .assembler import Function, call, i32, i64, memory, op
from .kernels import split

MOST = 8  # threads of a module: each has scratch memory of its own
# How often a thread reads the barrier's turn before it sleeps; this takes about 20 us. Waking takes longer than most
# steps.
SPIN = 20000

# A thread that the browser ended never arrives. The others give up after WAITS waits of 10 s. One wait of a minute
# would not do: it would end at once for all when a computer wakes from sleep.
WAITS = 6
WAIT_NS = 10 * 1000 * 1000 * 1000

_UNREACHABLE = b"\x00"


def part(steps, scratch, stride, several):
    """The function "part". steps: (kernel's name, its addresses, its Function); scratch: the address of the scratch
    memory of thread 0; stride: bytes to that of the next thread; several: whether more than one thread may call it."""
    f = Function("part", ("i32", "i32"))
    thread, threads = f.param(0), f.param(1)
    own = f.let(op("i32.add", i32(scratch), op("i32.mul", thread, i32(stride))))
    alone = False  # whether code for thread 0 only is open
    behind = False  # whether a step was written that others must not overtake

    def meet():
        f.begin_if(op("i32.gt_u", threads, i32(1)))
        f.do(call("barrier", "", threads))
        f.end()

    for name, addresses, kernel in steps:
        shared = several and split.shares(kernel)
        if alone and shared:
            f.end()
            alone = False
        if behind and not alone:
            meet()
        if not shared and not alone:
            f.begin_if(op("i32.eqz", thread))
            alone = True
        for at in addresses:
            f.do(i32(at))
        f.do(own)
        for n in range(2):
            if not shared:
                f.do(i32(n * kernel.steps))
            else:
                number = op("i32.add", thread, i32(1)) if n else thread
                f.do(op("i32.div_u", op("i32.mul", number, i32(kernel.steps)), threads))
        f.code.append(("call", name))
        behind = True
    if alone:
        f.end()
    elif behind:
        meet()
    return f.finish()


def alone():
    """The function "run": all steps on one thread."""
    f = Function("run", ())
    f.do(call("part", "", i32(0), i32(1)))
    return f.finish()


def barrier():
    """The function "barrier": its argument is a number of threads, and it returns when so many have called it."""
    f = Function("barrier", ("i32",))

    def word(at):
        return memory("i32.atomic.load", i32(at))

    def add(at, number):
        return memory("i32.atomic.rmw.add", i32(at), i32(number))

    turn = f.let(word(TURN))
    left = f.local("i32")
    f.begin_if(op("i32.eq", op("i32.add", add(ARRIVED, 1), i32(1)), f.param(0)))
    f.do(memory("i32.atomic.store", i32(ARRIVED), i32(0)))
    f.let(add(TURN, 1))
    f.begin_if(word(WAITING))
    f.let(memory("memory.atomic.notify", i32(TURN), i32(MOST)))
    f.end()
    f.otherwise()
    f.set(left, i32(SPIN))
    f.begin_block()
    f.begin_loop()
    f.branch_if(op("i32.ne", word(TURN), turn), 1)
    f.set(left, op("i32.sub", f.get(left), i32(1)))
    f.branch_if(f.get(left), 0)
    f.end()
    f.let(add(WAITING, 1))
    f.set(left, i32(WAITS))
    f.begin_loop()
    late = f.let(memory("memory.atomic.wait32", i32(TURN), turn, i64(WAIT_NS)))
    f.begin_if(op("i32.eq", late, i32(2)))
    f.set(left, op("i32.sub", f.get(left), i32(1)))
    f.begin_if(op("i32.eqz", f.get(left)))
    f.do(memory("i32.atomic.store", i32(STOPPED), i32(2)))
    f.code.append(_UNREACHABLE)
    f.end()
    f.end()
    f.branch_if(op("i32.eq", word(TURN), turn), 0)
    f.end()
    f.let(add(WAITING, -1))
    f.end()
    f.end()
    f.begin_if(word(STOPPED))
    f.code.append(_UNREACHABLE)
    f.end()
    return f.finish()
