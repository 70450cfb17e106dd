"""The kernel IR: what one kernel computes, as expressions, independent of the language it is rendered in.

A `Value` is one scalar of an expression tree; equal trees are shared (`Builder`), so a renderer that names every
Value once computes nothing twice. `Loop` describes a kernel: for every element of an iteration space, optionally fold
`reduction.body` over inner counters, then evaluate `result` and store it at an index. wgsl.py renders this as WGSL.

Value types are "f32", "i32", "u32" and "bool"; elements may be stored otherwise (storage.py): f16 is read as f32.
"""

from emberlet.shapes import size
from emberlet.sizes.questions import positive
from emberlet.sizes.size import is_open, least, most, surely_less

from . import index as ix


class Value:
    """One scalar. op and attr:

    "const": attr the Python number; "load": attr (slot, Index); "index": attr an Index, as an integer;
    "guard": args (value, otherwise), attr conditions ((Index, limit), …): value where every index lies in [0, limit),
    and value is evaluated only there; "choose": args values, attr (Index, starts): values[i] where the index is in
    [starts[i], starts[i + 1]); "reduced": the finished reduction; "variable": the variable named attr; "load4": four
    neighboring elements, attr (slot, Index / 4), and "component" attr of one; any other op is an operation of
    backend.UNARY or BINARY, "where", "cast", "bitcast", or a function of shaders/math.wgsl.
    """

    def __init__(self, number, op, type, args, attr):
        self.id = number
        self.op = op
        self.type = type
        self.args = args
        self.attr = attr

    def __repr__(self):
        return "{}:{}({})".format(self.op, self.type, ", ".join(["v{}".format(a.id) for a in self.args]))


class Builder:
    """Makes Values; equal ones are one object."""

    def __init__(self):
        self.values = {}
        self.count = 0

    def make(self, op, type, args=(), attr=None, attr_key=None):
        key = (op, type, tuple([a.id for a in args]), attr if attr_key is None else attr_key)
        found = self.values.get(key)
        if found is None:
            self.count += 1
            found = self.values[key] = Value(self.count, op, type, tuple(args), attr)
        return found

    def const(self, number, type):
        return self.make("const", type, (), number, "{}{!r}".format(type, number))

    def load(self, slot, index, type):
        return self.make("load", type, (), (slot, index), (slot, index.key))

    def index(self, index, type):
        if index.is_const():
            return self.const(index.const, type)
        return self.make("index", type, (), index, index.key)

    def guard(self, conditions, value, otherwise):
        """`value` where 0 <= Index < limit for every (Index, limit). Conditions that the ranges prove are left out."""
        needed = []
        for index, limit in conditions:
            if least(index.lo) >= 0 and surely_less(index.hi, limit):
                continue
            if most(index.hi) < 0 or surely_less(limit - 1, index.lo):
                return otherwise
            needed.append((index, limit))
        if not needed:
            return value
        key = tuple([(i.key, limit) for i, limit in needed])
        return self.make("guard", value.type, (value, otherwise), tuple(needed), key)

    def choose(self, index, starts, values):
        if index.is_const() and not [n for n in (index.const,) + starts if is_open(n)]:
            for i in range(len(values) - 1, -1, -1):
                if index.const >= starts[i]:
                    return values[i]
        return self.make("choose", values[0].type, values, (index, starts), (index.key, starts))


class Reduction:
    """Fold `body` with op ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin") over nested counters.

    counters: ((name, extent), …), outermost first. type: of the accumulator. position: for argmax and argmin the Index
    (over the counters) that is the answer.
    """

    def __init__(self, op, type, counters, body, position=None):
        self.op = op
        self.type = type
        self.counters = counters
        self.body = body
        self.position = position

    def extent(self):
        n = 1
        for _, e in self.counters:
            n *= e
        return n


RESULT = -1  # the slot of the result
SECOND = -2  # the slot of a second result


def pages(nbytes, page_bytes):
    """The number of pages of a tensor of `nbytes`: buffers bound in its place if one may not be that large. A tensor of
    open size takes one; larger ones need another plan."""
    if is_open(nbytes):
        return 1 if nbytes <= page_bytes else nbytes.__index__()
    return max(1, (nbytes + page_bytes - 1) // page_bytes)


class Limits:
    """A device's limits on arrays. page_bytes: the largest array, in bytes; known_lengths: whether lengths are
    declared, as SwiftShader then checks an index in fewer instructions (docs/wgpu.md); sizes: the Scope of the plan's
    open sizes, or None."""

    def __init__(self, page_bytes=1 << 27, known_lengths=False, sizes=None):
        self.page_bytes = page_bytes
        self.known_lengths = known_lengths
        self.sizes = sizes


class Slots:
    """The tensors of a kernel by slot number. nodes; types: the element type each is bound as; result: the node whose
    buffer is written (its slot is RESULT); second: another such node, or None (SECOND); limits: a Limits.

    read: slot -> its largest constant index, or -1, of the slots that the rendered text reads. Only those are bound: a
    binding that a shader does not use is missing from its automatic layout.
    """

    def __init__(self, nodes=(), types=(), result=None, limits=None, second=None):
        self.nodes = list(nodes)
        self.types = list(types)
        self.result = result
        self.second = second
        self.limits = limits or Limits()
        self.read = {}
        self._numbers = {}

    def of(self, node):
        """The slot of a node, a new one if it has none."""
        found = self._numbers.get(id(node))
        if found is None:
            found = self._numbers[id(node)] = len(self.nodes)
            self.nodes.append(node)
            self.types.append(node.word)
        return found

    def uses(self, slot, constant=-1):
        """Note that the rendered text reads the slot (or writes the result), at index `constant` if it is known."""
        if constant > self.read.get(slot, -2):
            self.read[slot] = constant

    def bound(self):
        """The slots that are read, in order."""
        return sorted([slot for slot in self.read if slot >= 0])

    def written(self):
        """The slots of the results, in the order in which they are bound."""
        return [RESULT] if self.second is None else [SECOND, RESULT]

    def node(self, slot):
        """The node of a slot, or of a result."""
        return self.second if slot == SECOND else self.result if slot == RESULT else self.nodes[slot]

    def pages(self, slot):
        """How many buffers are bound for the slot."""
        node = self.node(slot)
        return 1 if node is None else pages(node.nbytes, self.limits.page_bytes)


class Frame:
    """The values that every template needs: the kernel's name; the Lowering's slots; count: the number of elements, or
    of whatever the template counts; vector_out: whether the result is bound as vectors of four."""

    def __init__(self, name, slots, count, vector_out=False):
        self.name = name
        self.slots = slots
        self.count = count
        self.vector_out = vector_out


class Loop(Frame):
    """One kernel over `count` values of the counter "g".

    cells: the (Value, Index) that each stores in the output: one, or four neighbors; vector_out: those four go into
    one vector; reduction: a Reduction or None.
    """

    def __init__(self, name, slots, count, cells, reduction):
        Frame.__init__(self, name, slots, count)
        self.cells = cells
        self.reduction = reduction


def coordinates(name, shape):
    """Coordinates of `shape` as digits of one flat counter."""
    return ix.unflatten(ix.counter(name, positive(size(shape))), shape)
