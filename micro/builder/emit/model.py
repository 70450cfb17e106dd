"""The module that a program imports: it loads the weights, holds the arena, and defines `run`, `put`, `get` and
`predict`."""

from __future__ import annotations

import re
from textwrap import indent

import numpy as np

from ..program import Port, Program
from .inputs import grid_table, has_grid, has_whole, in_grid, integers
from .loading import Deployed, Frozen, Pack, Partition, loading
from .outputs import GET_LARGE, GET_LISTED, has_large, has_listed, room
from .steps import steps_functions
from .trees import trees_functions, trees_state
from .whole import answering_line, is_answered, whole_begin, whole_predict


def model_source(
    program: Program,
    pack: Pack | None = None,
    partition: Partition | None = None,
    layers: bool = False,
    arena: str = "",
    deployed: Deployed | Frozen | None = None,
    steps: bool = False,
) -> str:
    """The module's source. layers: whether a module times the layers; arena: the module of another model whose arena is
    used; pack, partition, deployed: as in loading.py; steps: whether there is an inference in steps.
    """
    load = loading(program, pack, partition, deployed)
    parts = [_docstring(program), load, _state(program, arena), _functions(program, layers, steps)]
    return _spaced("\n".join(parts))


def _spaced(text: str) -> str:
    """Put two empty lines around functions."""
    text = re.sub(r"\n+(?=def )", "\n\n\n", text)
    return re.sub(r"(?<=\n)( +[^\n]*\n)\n*(?=[A-Za-z_])(?!except|else)", r"\1\n\n", text)


def weights_source(program: Program, words: bool = True) -> str:
    """The module that holds both blobs as bytes. words: whether it holds T."""
    return f"W = {program.weight_bytes!r}\n" + f"T = {program.word_bytes!r}\n" * words


def _docstring(program: Program) -> str:
    kind = "float32" if program.is_float else "int8"
    lines = [f'"""{program.name}: {kind}, {program.macs:,} multiply-accumulates. Made by emberlet.', ""]
    lines += [
        "run() infers what lies in `input` and leaves the result in `output`; predict(numbers) gives numbers.",
        "",
    ]
    ports = [("input", p) for p in program.inputs] + [("output", p) for p in program.outputs]
    for kind_of_port, port in ports:
        if port.cuts is not None or port.sums:
            what = "ranks of the features" if port.cuts is not None else "sums of the leaves, in words of 4 bytes"
            lines.append(f"{kind_of_port} {port.text()}, {what}")
            continue
        lines.append(f"{kind_of_port} {port.text()}{_meaning(port, program.is_float)}{_DECIDES * port.decides}")
    return "\n".join(lines) + '\n"""\n'


_DECIDES = ", the place of the class in `labels`: best() gives it"


def _meaning(port: Port, is_float: bool) -> str:
    """The meaning of the elements of an input or output."""
    if port.width == 2:
        if port.scale != 1:
            return f", number = {port.scale:.9g} * (word - {port.zero}), words of two bytes, the lower one first"
        zero = f", less {port.zero}" if port.zero else ""
        return f", whole numbers in two bytes each, the lower one first{zero}"
    if port.columns is not None:
        return ", each number shifted and scaled by `put` before it becomes a byte"
    if port.integer is None:
        return "" if is_float else f", number = {port.scale:.9g} * (byte - {port.zero})"
    dtype = "uint8" if port.integer == 0 else "int8"
    if is_float:
        return f", whole numbers ({dtype} in the model)"
    number = "byte" if port.integer == 0 else "byte - 128"
    return f", {dtype} as in the model: number = {number}, real number = {port.scale:.9g} * (byte - {port.zero})"


def _state(program: Program, other: str = "") -> str:
    if other:
        arena = _SHARED.format(
            other=other, size=program.arena, name=program.name, kind="array" if program.is_float else "bytearray"
        )
        arena += "_all = A\n" if program.is_float else "_all = memoryview(A)\n"
    elif program.is_float:
        arena = f"from array import array\n\nA = array('f', bytes({4 * program.arena}))\n_all = A\n"
    else:
        arena = f"A = bytearray({program.arena})\n_all = memoryview(A)\n"
    lines = ["W, T = _kernels.prepare(_w, _t)", arena]
    if has_grid(program) or any(p.cuts is not None for p in program.inputs):
        lines.insert(0, "from array import array\n")
    for which, ports in (("inputs", program.inputs), ("outputs", program.outputs)):
        if program.is_float:
            lines.append(f"{which} = {_tuple([f'({p.place}, {p.size})' for p in ports])}")
            continue
        views = [f"_all[{p.place}:{p.place + p.size}]" for p in ports]
        lines.append(f"{which} = {_tuple(views)}")
        if not any(p.cuts is not None or p.sums for p in ports):
            lines.append(f"{which[:-1]}_grids = {_tuple([str(p.grid) for p in ports])}  # (scale, zero)")
    if any(p.cuts is not None for p in program.inputs):
        lines += trees_state(program)
    if has_grid(program):
        tables = [
            f"(inputs[{k}], {p.size}, array('I', {_words(grid_table(p))!r}))" if in_grid(p) else "None"
            for k, p in enumerate(program.inputs)
        ]
        lines.append(f"_tables = {_tuple(tables)}  # for `put`: the bytes, how many, and their steps")
    lines += [f"_rooms = {_tuple([room(p) for p in program.outputs])}  # for `get`"] * has_listed(program)
    labels = next((p.labels for p in program.outputs if p.labels), ())
    if labels:
        lines.append(f"labels = {labels!r}")
    if not program.is_float:
        lines.append("input, output = inputs[0], outputs[0]")
    return "\n".join(lines) + "\n"


def _words(numbers: list[int]) -> bytes:
    """Of which MicroPython makes an array without objects between."""
    return np.asarray(numbers, "<u4").tobytes()


def _tuple(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


_SHARED = """\
from {other} import A
import {other} as _other

if type(A).__name__ != "{kind}" or len(A) < {size} or hasattr(_other, "reset") or hasattr(_other, "steps"):
    raise ValueError(
        "the arena of {other} does not hold {name}: it has another kind, is too small, keeps a state, or runs in steps"
    )

"""

_DIRECT = """\
_direct = _kernels.direct(A, _tables) if hasattr(_kernels, "direct") else None
_ways = {list: 1, array: 2} if _direct else {}
"""

_RUN = """
run = _kernels.bind(A, W, T)  # infers what lies in the inputs, which may be overwritten; int8 allocates nothing
"""

_RESET = '''
def reset():
    """Forget what came before."""
BEGINNING    _kernels.reset(A)
'''

_PREDICT_PROFILE = '''
def predict(*inputs, profile=False):
    """The numbers of the first output, from the numbers of each input. profile: time each layer, and print them."""
COUNTED    for which in range(len(inputs)):
        put(inputs[which], which)
    if profile:
BEGINS        from NAME_layers import profile

        print(profile())
    else:
        run()
    return get()
'''

# A stream's initial past is the result of zeros before its first step.
_RESET_STREAM = '''
def reset():
    """Forget what came before: as if zeros had. Call it again if it is interrupted."""
BEGINNING    _kernels.reset(A)
    for _ in range({calls}):
        for i in range({start}, {end}):
            {zero}
        run()
'''

_PREDICT = '''
def predict(*inputs):
    """The numbers of the first output, from the numbers of each input."""
COUNTED    for which in range(len(inputs)):
        put(inputs[which], which)
    run()
    return get()
'''

_PREDICT_ONE = '''
def predict(numbers):
    """The numbers of the first output, from the numbers of the input."""
    put(numbers)
    run()
    return get()
'''

# Only with several inputs: a missing one would silently reuse the data of the last run.
_COUNTED = """\
    if len(inputs) != {0}:
        raise ValueError("predict takes {0} inputs, found {{}}".format(len(inputs)))
"""

_INT8 = '''
def put(numbers, which=0):
    """Write numbers, row by row and channels last, into an input."""
BEGINNINGPUT

def get(which=0):
    """The numbers of an output, as a list."""
    scale, zero = output_grids[which]
GET_WORDSGET_ONEGET_LARGEGET_LISTED    return [scale * (q - zero) for q in outputs[which]]


def best(which=0):
    """The index of an output's greatest element."""
    values = BEST
    k = 0
    for i in range(1, len(values)):
        if values[i] > values[k]:
            k = i
    return k
'''

# Sixty-four numbers at a time: a copy of all as floats takes four times an input's memory. An array says what it holds
# only in its text.
_PUT_GRID = """\
    kind = type(numbers)
    way = _ways.get(kind)
    if way and not _direct(numbers, which, way):
        return
    to, size, table = _tables[which]
    if kind is array and len(numbers) == size:
        if repr(numbers[:0])[7] == "f":
            return _put(numbers, 0, which)
INTEGERS    if kind in (bytes, bytearray):
        numbers = memoryview(numbers)  # of which an array takes the numbers, not the bits
    try:
        count = len(numbers)
        for i in range(0, size if count == size else 0, 64):
            _put(array("f", numbers[i : i + 64]), i, which)
    except TypeError:  # an iterator
        part, count = array("f", bytes(256)), 0
        for v in numbers:
            if count < size:
                part[count & 63] = v
            count += 1
            if count & 63 == 0 or count == size:
                _put(part[: (count - 1 & 63) + 1], count - 1 & -64, which)
    if count != size:
        raise ValueError("input {} takes {} numbers, found {}".format(which, size, count))


def _put(part, i, which):
    to, _, table = _tables[which]
    if _kernels.put(part, to, i, i + len(part), table, which):
        raise ValueError("input {} takes finite numbers".format(which))
"""

_PUT_INTEGERS = """\
    whole = kind in (bytes, bytearray)
    if which in {0} and (whole or kind is array) and len(numbers) == size:
        kind = "B" if whole else repr(numbers[:0])[7]
        if kind in "bB":
            flip = 128 * (kind == "b")
            return _kernels.put_bytes(numbers, to, size, flip, input_grids[which][1] - flip)
"""

_PUT_WORDS = """\
    to = inputs[which]
    scale, zero = input_grids[which]
    i = 0
    for v in numbers:
        q = round(v / scale) + zero
        q = 0 if q < 0 else 65535 if q > 65535 else q
        if i < len(to):
            to[i] = q & 255
            to[i + 1] = q >> 8
        i += 2
    if i != len(to):
        raise ValueError("input {} takes {} numbers, found {}".format(which, len(to) // 2, i // 2))
"""

_GET_WORDS = """\
    if which in {0}:
        words = outputs[which]
        words = [(words[i] | words[i + 1] << 8) - zero for i in range(0, len(words), 2)]
        return words if scale == 1 else [scale * v for v in words]
"""


# A list comprehension is a function, which is made and called.
_GET_ONE = """\
    if len(outputs[which]) == 1:
        return [scale * (outputs[which][0] - zero)]
"""


def _int8(program: Program) -> str:
    """`put`, `get` and `best`, which also handle elements of two bytes."""
    ins, outs = (
        tuple(k for k in range(-len(ports), len(ports)) if ports[k].width == 2)
        for ports in (program.inputs, program.outputs)
    )
    parts = [_PUT_WORDS] if ins else []
    if ins and has_grid(program):
        parts = [f"    if which in {ins}:\n{indent(_PUT_WORDS, '    ')}        return\n"]
    if has_grid(program):
        whole = _PUT_INTEGERS.format(integers(program)) if integers(program) else ""
        parts.append(_PUT_GRID.replace("INTEGERS", whole))
    text = _INT8.replace("PUT\n", "".join(parts))
    text = text.replace("GET_WORDS", _GET_WORDS.format(outs) if outs else "")
    one = any(port.width == 1 == port.size for port in program.outputs)
    text = text.replace("GET_ONE", _GET_ONE if one else "")
    text = text.replace("GET_LARGE", GET_LARGE if has_large(program) else "")
    text = text.replace("GET_LISTED", GET_LISTED if has_listed(program) else "")
    return text.replace("BEST", f"get(which) if which in {outs} else outputs[which]" if outs else "outputs[which]")


_FLOAT = '''
def put(numbers, which=0):
    """Write numbers, row by row and channels last, into an input."""
BEGINNING    at, size = inputs[which]
    i = 0
    for v in numbers:
        if i < size:
            A[at + i] = v
        i += 1
    if i != size:
        raise ValueError("input {} takes {} numbers, found {}".format(which, size, i))


def get(which=0):
    """The numbers of an output, as a list."""
    at, size = outputs[which]
    return [A[i] for i in range(at, at + size)]


def best(which=0):
    """The index of an output's greatest element."""
    values = get(which)
    return values.index(max(values))
'''


_BEST_DECIDED = '''def best(which=None):
    """The place of the class in `labels`; of an output that is given, the index of the greatest element."""
    if which is None:
        return round(get({})[0])
    values = get(which)
    return values.index(max(values))
'''


def _functions(program: Program, layers: bool, steps: bool) -> str:
    counted = _COUNTED.format(len(program.inputs))
    run = steps_functions(program).replace("COUNTED", counted.replace("predict", "steps")) if steps else _RUN
    whole = has_whole(program) and not layers and not steps
    first = "_kernels.reset(A)\n" * (bool(program.states or program.kept) and not program.calls_to_fill)
    parts = [run + first + _DIRECT * has_grid(program)]
    if whole:
        parts.append(whole_begin(program))
    if program.calls_to_fill:
        (port,) = program.inputs
        if program.is_float:
            places = {"start": port.place, "end": port.place + port.size, "zero": "A[i] = 0.0"}
        else:
            zero = f"{port.zero >> 8} if i & 1 else {port.zero & 255}" if port.width == 2 else f"{port.zero}"
            places = {"start": 0, "end": port.size, "zero": f"input[i] = {zero}"}
        parts.append(_RESET_STREAM.format(calls=program.calls_to_fill, **places))
    elif program.states or program.kept:
        parts.append(_RESET)
    own = _FLOAT if program.is_float else _int8(program)
    which = next((k for k, port in enumerate(program.outputs) if port.decides), None)
    if which is not None:
        own = own[: own.index("def best(")] + _BEST_DECIDED.format(which)
    parts.append(trees_functions(program) if program.outputs[0].sums else own)
    one = len(program.inputs) == 1 and not program.is_float
    predict = _PREDICT_PROFILE.replace("NAME", program.name) if layers else _PREDICT_ONE if one else _PREDICT
    if whole:
        predict = whole_predict(program)
    parts.append(predict.replace("COUNTED", counted if len(program.inputs) > 1 else ""))
    if whole and is_answered(program):
        parts.append(answering_line(program))
    if program.calls_to_fill:
        parts.append("\nreset()\n")
    begin = "    global _begun\n    _begun += 1\n" if steps else ""
    return "\n".join(parts).replace("BEGINS", indent(begin, "    ")).replace("BEGINNING", begin)
