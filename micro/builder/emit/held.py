"""A copy of the state that the kernels' module keeps while layers run, so that an interrupt leaves that of before."""

from __future__ import annotations

from ..program import Program, Step

END = "begun[0] = 0"
"""The last line of an inference, and of a change to the state that `hold` precedes."""

_HOLD = '''\
begun = bytearray(1)  # 1 while layers run


def hold():
    """Keep the state; if the layers were interrupted, put back what was kept."""
    if begun[0]:
{back}
    else:
{keep}
        begun[0] = 1
'''


# `every` is a slice that is made once, since `run` allocates nothing; a class in the module would be one more function.
_BIND = """\
{array}class Every:
    def __getitem__(self, part):
        return part
global every, past, before
every = Every()[:]
past = ({past},)
before = ({before},)
"""


def spans(program: Program) -> list[tuple[int, int]]:
    """Where the arena holds a state from one inference to the next: offsets, and numbers of elements."""
    found: list[tuple[int, int]] = []
    for place, size in sorted((place, size) for place, size, _ in (*program.states, *program.kept)):
        if found and sum(found[-1]) == place:
            found[-1] = found[-1][0], found[-1][1] + size
        else:
            found.append((place, size))
    return found


def changes_state(program: Program, step: Step) -> bool:
    """Whether a layer writes what remains from one inference to the next."""
    return step.layer.remembers or any(at <= step.places["o"] < at + size for at, size in spans(program))


def held_bytes(program: Program) -> int:
    """The memory that the copy takes."""
    return sum(size for _, size in spans(program)) * (4 if program.is_float else 1)


def hold_source(program: Program) -> str:
    """The function `hold`, and what it needs."""
    each = range(len(spans(program)))
    return _HOLD.format(
        back="\n".join(f"        past[{k}][every] = before[{k}]" for k in each),
        keep="\n".join(f"        before[{k}][every] = past[{k}]" for k in each),
    )


def bind_lines(program: Program) -> list[str]:
    """Lines of `bind` that make the copies: views of the arena, and of what holds the numbers of before."""
    room, size = ("array('f', bytes({}))", 4) if program.is_float else ("bytearray({})", 1)
    past = [f"memoryview(A)[{place}:{place + count}]" for place, count in spans(program)]
    before = [f"memoryview({room.format(size * count)})" for _, count in spans(program)]
    array = "from array import array\n" * program.is_float
    return _BIND.format(array=array, past=", ".join(past), before=", ".join(before)).splitlines()
