"""Lowering: from graph nodes to the kernel IR.

`Lowering.value(node, indices)` is the element of `node` at `indices` as a kernel IR Value. Stored nodes become loads;
everything else is inlined, movement operations by rewriting the indices. `loop` makes the kernel of one stored node.
"""

from emberlet import dtypes
from emberlet.errors import refuse
from emberlet.sizes.questions import assume_equal, known_equal, positive

from ..record.node import ELEMENTWISE, Node
from ..run import storage
from . import index as ix
from .kernel_ir import Builder, Loop, Reduction, Slots, coordinates
from .operations import LOWER
from .reductions import identity, specification


def after(chain, coordinates, shape):
    """(coordinates, shape) of an element behind a chain of nodes, from those of the element before it."""
    for node in chain:
        if node.op == "reshape":
            coordinates = ix.unflatten(ix.flatten(coordinates, shape), node.shape)
        elif node.op == "permute":
            coordinates = [coordinates[axis] for axis in node.arg]
        shape = node.shape
    return coordinates, shape


def _key(place):
    """By what the element of a node at indices is found again."""
    return (id(place[0]), tuple([i.identity for i in place[1]]))


class Lowering:
    """Builds the Values of one kernel. item: what it computes; stored: the Stored nodes, which have, or will have, a
    buffer of their own."""

    def __init__(self, item, stored, anchor=None, flat_reduction=False):
        self.build = Builder()
        self.item = item
        self.stored = stored
        self.anchor = anchor
        self.flat_reduction = flat_reduction
        self.reduction = None
        whole = item.region[0] if item.region else item.node
        self.slots = Slots(result=whole, limits=stored.limits, second=item.second[0] if item.second else None)
        self._memo = {}
        self._own = {}  # ids of the nodes that the kernel computes and stores
        self._fixed = {}
        self._numbers = None
        self.ranged = None  # the tensor whose range the kernel finds

    @property
    def in_bytes(self):
        """Whether the result is stored four elements to a word."""
        return self.slots.result.word in ("i8", "u8")

    def load(self, node, flat):
        return self.build.load(self.slots.of(node), flat, storage.register(node.dtype))

    def number(self, node, which, plain, type):
        """Number `which` of node.numbers as a Value: the literal `plain`, or an element of the kernel's buffer of
        numbers if the kernel is to serve other numbers too."""
        if not self.stored.bind_numbers:
            return self.build.const(plain, type)
        if self._numbers is None:
            self._numbers = Node("numbers", (), [], dtypes.uint32, (0,))
        known = self._numbers.arg
        if (id(node), which) not in known:
            known.append((id(node), which))
            self._numbers.count = len(known)
            self._numbers.shape = (len(known),)
        word = self.load(self._numbers, ix.const(known.index((id(node), which))))
        if type == "bool":
            return self.build.make("ne", "bool", (word, self.build.const(0, "u32")))
        return word if type == "u32" else self.build.make("bitcast", type, (word,))

    def fix(self, node, value):
        """Make `node` evaluate to `value` from now on, whatever the indices."""
        self._fixed[id(node)] = value

    def vector(self, four):
        """Four loads as the components of one vec4 load, or None if they are not contiguous and aligned."""
        slot = None
        for v in four:
            if v.op != "load" or (slot is not None and v.attr[0] != slot):
                return None
            slot = v.attr[0]
            if v.type != "f32" and (v.type != "u32" or self.slots.types[slot] not in ("u32", "vec4<u32>")):
                return None  # only floats, and whole words
        if not ix.consecutive([v.attr[1] for v in four]):
            return None
        if self.slots.types[slot][:4] != "vec4":
            self.slots.types[slot] = "vec4<{}>".format(self.slots.types[slot])
        at = ix.quarter(four[0].attr[1])
        whole = self.build.make("load4", "vec4", (), (slot, at), (slot, at.key))
        return [self.build.make("component", four[i].type, (whole,), i) for i in range(4)]

    def value(self, node, indices):
        # Operands come before what is computed of them: a long chain needs no deep stack, which MicroPython does not
        # have.
        waiting = [(node, indices)]
        while waiting:
            at = waiting[-1]
            key = _key(at)
            if key not in self._memo:
                left = [each for each in self._operands(at[0], at[1]) if _key(each) not in self._memo]
                if left:
                    left.reverse()
                    waiting.extend(left)
                    continue
                self._memo[key] = self._value(at[0], at[1])
            waiting.pop()
        return self._memo[key]

    def _operands(self, node, indices):
        """The (node, indices) of the operands of an elementwise operation that is inlined; of other nodes none."""
        if node.op not in ELEMENTWISE or node is self.anchor or id(node) in self._fixed:
            return ()
        if known_equal(node.count, 0) or (id(node) in self.stored and id(node) not in self._own):
            return ()
        if len(node.srcs) == 1:
            return ((node.srcs[0], indices),)
        return [(s, self.spread(s, indices)) for s in node.srcs]

    def _value(self, node, indices):
        if node is self.anchor:
            return self._reduce(node, indices)
        if id(node) in self._fixed:
            return self._fixed[id(node)]
        if known_equal(node.count, 0):
            return self.build.const(0, storage.register(node.dtype))  # never read: there is no buffer
        if id(node) not in self._own and (node.op in ("data", "buffer", "input") or id(node) in self.stored):
            return self.load(node, ix.flatten(indices, node.shape))
        if node.op not in LOWER:
            refuse("no kernel", node.op, "the wgpu, wasm or native")
        return LOWER[node.op](self, node, indices)

    def spread(self, node, indices):
        """The indices of the element of `node` that broadcasts to `indices` (NumPy's rule)."""
        skip = len(indices) - len(node.shape)
        # An open length is 1 here where it was taken for 1 when the shapes were broadcast.
        one = [assume_equal(n, 1, "broadcast") for n in node.shape]
        return [ix.ZERO if one[i] else indices[skip + i] for i in range(len(one))]

    def operand(self, node, indices):
        """The element of `node` that broadcasts to `indices`."""
        return self.value(node, self.spread(node, indices))

    def round(self, value, dtype):
        """`value` rounded or wrapped to a narrow dtype."""
        how = storage.rounding(dtype)
        if how is None:
            return value
        name, bits = how
        attr = (name,) if bits is None else (name, "{}u".format(bits))
        return self.build.make("function", value.type, (value,), attr)

    def _reduce(self, node, indices):
        if self.reduction is None:
            spec = specification(node)
            if known_equal(spec.size(), 0):
                # A constant, so that dividing by it is `undisguised`.
                type = storage.register(node.dtype)
                return self.build.const(identity(spec.op, type), type)
            counters = [("r{}".format(i), spec.extents[i]) for i in range(len(spec.extents))]
            if self.flat_reduction:
                inner = coordinates("r", spec.extents)
                counters = [("r", positive(spec.size()))]
            else:
                inner = [ix.counter(name, extent) for name, extent in counters]
            body = spec.body(self, indices, inner)
            position = spec.position(inner) if spec.position else None
            self.reduction = Reduction(spec.op, spec.type, counters, body, position)
        out = self.build.make("reduced", storage.register(node.dtype))
        if node.op != "reduce" or node.arg[0] in ("sum", "prod"):
            out = self.round(out, node.dtype)
        return out

    def place(self, coordinates, value=None):
        """(result, index to store it at) for the element of the item's anchor at `coordinates`, whose value is `value`.

        The epilogue is applied to the value. The index counts in the buffer that the item writes: for a region, the
        concatenation's.
        """
        item = self.item
        self._own = {} if item.copy else {id(item.node): True}
        if value is not None:
            self._fixed[id(item.anchor)] = value
            # A cell beyond the edge can have the coordinates of one inside, which must not reuse its value.
            self._memo = {}
        shape = item.anchor.shape if item.anchor is not None else item.node.shape
        coordinates, shape = after(item.chain, coordinates, shape)
        result = self.value(item.node, coordinates)
        if item.region is None:
            return result, ix.flatten(coordinates, shape)
        whole, starts = item.region
        coordinates = [ix.add(coordinates[i], ix.const(starts[i])) for i in range(len(starts))]
        return result, ix.flatten(coordinates, whole.shape)

    def place_second(self, coordinates, result):
        """(result, index to store it at) of the item's second node, for the element of its anchor at `coordinates`, of
        which `result` is the first node's."""
        item = self.item
        node, chain = item.second
        self._own[id(node)] = True
        self._fixed[id(item.node)] = result
        coordinates, shape = after(tuple(item.chain) + tuple(chain), coordinates, item.anchor.shape)
        found = self.value(node, coordinates), ix.flatten(coordinates, shape)
        del self._fixed[id(item.node)]
        return found

    def loop(self, name, wide=False):
        """The Loop that computes the item, one counter "g" over the elements it stores; wide: four at a time."""
        item, node = self.item, self.item.node
        self._own = {} if item.copy else {id(node): True}
        cells = []
        for c in range(4 if wide else 1):
            flat = ix.counter("g", positive(node.count))
            if wide:
                flat = ix.add(ix.mul(ix.counter("g", node.count // 4), 4), ix.const(c))
            indices = ix.unflatten(flat, node.shape)
            store = flat
            if item.region is not None:
                whole, starts = item.region
                store = ix.flatten([ix.add(indices[i], ix.const(starts[i])) for i in range(len(starts))], whole.shape)
            cells.append((self.value(node, indices), store))
        loop = Loop(name, self.slots, node.count // len(cells), cells, self.reduction)
        if wide:
            self._widen_loads()
            loop.vector_out = self.in_bytes or ix.consecutive([store for _, store in cells])
        return loop

    def _widen_loads(self):
        """Read slots as vectors that are only read at 4 * q + constant."""
        fits = {}
        for key in self.build.values:
            v = self.build.values[key]
            if v.op == "load":
                slot, index = v.attr
                fits[slot] = fits.get(slot, True) and ix.fours(index) and not index.is_const()
        for slot in fits:
            if fits[slot]:
                self.slots.types[slot] = "vec4<{}>".format(self.slots.types[slot])
