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
_begun = 0  # how many inferences were begun


def run():
    """Infer what lies in the inputs, which may be overwritten."""
    global _begun
    _begun += 1
    _run()


def steps(*inputs):
    """Infer step by step, from the numbers of each input: a generator that gives back control after each layer. After
    its end `get` has the result. If it is abandoned before, the state stays as it was."""
    from NAME_steps import run

COUNTED    for which in range(len(inputs)):
        put(inputs[which], which)  # which begins an inference
    begun = _begun
    for _ in run(A, W, T):
        yield
        if begun != _begun:
            raise RuntimeError("another inference or reset() came in between")
'''


def steps_source(program: Program, dialect: str, arch: str = "") -> str:
    """The module for kernels of a dialect, or for those in an instruction set's assembly."""
    kernels = f"{program.name}_{'bytecode' if dialect == 'bytecode' else 'kernels'}"
    return _MODULE.format(name=program.name, kernels=kernels, run=stepped_run(program, dialect, arch))


def steps_functions(program: Program) -> str:
    """`run` and `steps` of the module to import, whose line COUNTED checks the inputs."""
    return _STEPS.replace("NAME", program.name)
