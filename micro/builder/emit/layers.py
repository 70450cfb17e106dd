"""The optional module that lists a model's layers and times each on the board."""

from __future__ import annotations

from ..program import Program
from .kernels import timed_run
from .steps import steps_source

_MODULE = '''\
"""The layers of {name}: `print(layers)` lists them, and how long each took once predict(..., profile=True) has run."""

from time import ticks_diff, ticks_us

import {name} as _model
from {kernels} import *

{run}

class Layers:
    """The layers, in order; microseconds: of each, in the last profile."""

    names = {names!r}
    kinds = {kinds!r}
    work = {work!r}
    microseconds = [0] * {count}

    def __repr__(self):
        total = sum(self.microseconds)
        lines = ["{{:>10}} {{:>6}} {{:>10}}  layer".format("us", "%", "MAC")]
        for k in range(len(self.names)):
            us = self.microseconds[k]
            part = "{{:.1f}}".format(100 * us / total) if total else "-"
            what = "{{}} ({{}})".format(self.names[k], self.kinds[k])
            lines.append("{{:>10}} {{:>6}} {{:>10}}  {{}}".format(us, part, self.work[k], what))
        lines.append("{{:>10}} {{:>6}} {{:>10}}  all".format(total, "", sum(self.work)))
        return "\\n".join(lines)


layers = Layers()


def profile():
    """Infer what lies in the inputs, and time each layer."""
    run(_model.A, _model.W, _model.T, layers.microseconds)
    return layers
'''


def layers_source(program: Program, dialect: str, arch: str = "") -> str:
    """The module for kernels of a dialect, or for those in an instruction set's assembly."""
    steps = [step.layer for step in program.steps]
    return _MODULE.format(
        name=program.name,
        kernels=f"{program.name}_{'bytecode' if dialect == 'bytecode' else 'kernels'}",
        run=timed_run(program, dialect, arch),
        names=tuple("".join(c if c.isprintable() else "?" for c in layer.name) for layer in steps),
        kinds=tuple(layer.kind for layer in steps),
        work=tuple(layer.macs for layer in steps),
        count=len(steps),
    )


def more_sources(program: Program, layers: bool, steps: bool, dialect: str, arch: str = "") -> dict[str, str]:
    """The optional modules by name."""
    made = {"layers": layers_source, "steps": steps_source}
    wanted = {"layers": layers, "steps": steps}
    return {f"{program.name}_{key}": made[key](program, dialect, arch) for key in made if wanted[key]}
