"""Groups the steps of a plan for threads, which wait for each other once for each group, not for each step."""

from .kernels import split


def grouped(steps):
    """The positions of the steps, in lists that run one after the other. A list has steps that threads share, none of
    which needs another, or steps for one thread, in their order. Every step comes as early as it can.

    steps: (its Function, the numbers of the buffers that it reads and, as the last, writes).
    """
    written, read = {}, {}  # number of a buffer -> the stage of the last step that did so
    stages = {}  # even ones are for one thread
    for position, (function, buffers) in enumerate(steps):
        target = buffers[-1]
        before = max([written.get(b, -1) for b in buffers] + [read.get(target, -1)])
        stage = before + before % 2 + split.shares(function)
        stages.setdefault(stage, []).append(position)
        written[target] = stage
        for b in buffers:
            read[b] = max(stage, read.get(b, -1))
    return [stages[stage] for stage in sorted(stages)]
