"""An inference that gives back control between its layers, for programs with other tasks: `for _ in model.steps(x)`."""

from __future__ import annotations

from ..program import Program
from .kernels import stepped_run

_MODULE = '''\
"""The layers of {name}, one after the other; {name}.steps uses it."""

from {kernels} import *

{run}'''

_STEPS = '''
_run = _kernels.bind(A, W, T)
_begun = 0  # how often the state was settled
_kept = ()  # during a step-wise run, the state before it


def _settle():
    """Undo what a step-wise run that was abandoned did to the state."""
    global _begun, _kept
    _begun += 1
    for place, held in _kept:
        memoryview(A)[place : place + len(held)] = held
    _kept = ()


def run():
    """Infer what lies in the inputs, which may be overwritten."""
    _settle()
    _run()


def steps(*inputs):
    """Infer step by step, from the numbers of each input: a generator that gives back control after each layer. After
    its end `get` has the result. If it is abandoned before, the state stays as it was."""
    global _kept
    from NAME_steps import run

COUNTED    _settle()
    begun = _begun
    for which in range(len(inputs)):
        put(inputs[which], which)
    _kept = tuple((place, A[place : place + size]) for place, size in STATES)
    for _ in run(A, W, T):
        yield
        if begun != _begun:
            raise RuntimeError("another inference or reset() came in between")
    _kept = ()
'''


def steps_source(program: Program, dialect: str, arch: str = "") -> str:
    """The module for kernels of a dialect, or for those in an instruction set's assembly."""
    kernels = f"{program.name}_{'bytecode' if dialect == 'bytecode' else 'kernels'}"
    return _MODULE.format(name=program.name, kernels=kernels, run=stepped_run(program, dialect, arch))


def steps_functions(program: Program) -> str:
    """`run` and `steps` of the module to import, whose line COUNTED checks the inputs."""
    states = tuple((place, size) for place, size, _ in (*program.states, *program.kept))
    return _STEPS.replace("NAME", program.name).replace("STATES", repr(states))
