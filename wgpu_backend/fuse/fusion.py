"""Decides which nodes become kernels: cuts the recorded graph into items, one kernel each.

One pass from the sources to the roots decides, for every node, between three states:

- *stored*: the node has a buffer and ends an item;
- *inline*: the node is part of its readers' expressions (elementwise operations, movement, constants);
- *open*: the node ends an epilogue, which is an anchor (a reduction, matmul, convolution, …) and the elementwise
  operations that follow it one to one. A single reader may extend it; with several, the node is stored.

A second pass, from the roots to the sources, stores inline nodes that several kernels would otherwise compute again.
"""

from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open, typical

from ..record.node import CONSTANTS, ELEMENTWISE, Node, is_inline, is_leaf, topological
from .items import Item, State, Stored, cost, is_picked, is_simple, is_table, joined, reads
from .own_ranges import without_ranges
from .packing import aliased, is_widened, pack, reads_bytes, visit_words
from .rows import find_regions

MAX_INPUTS = 6  # distinct buffers an item may read: below the 8 storage buffers of a WebGPU stage, for output and slack
MAX_MEMBERS = 48  # inlined nodes of one item but numbers: bounds the length of a shader
MAX_DIAMOND = 24  # elementwise nodes between a fork in an epilogue and the node where its branches join
CHEAP = 3  # a node of at most this cost may be recomputed instead of stored

_HEAVY = ("matmul", "conv", "dot_bytes", "attention", "packed")
# Operations whose kernels can take an epilogue.
_OPENING = ("reduce", "argreduce", "matmul", "conv", "dot_bytes", "pool", "cumulative", "attention", "packed")
_REREADS = ("attention", "matmul", "conv", "dot_bytes", "pool", "scatter", "sort_runs", "merge_runs", "recurrence",
            "range_levels")  # fmt: skip


class Fusion:
    """The items of a graph, in an order in which they can run.

    items: list of Item; stored: id -> node of everything that gets a buffer; aliases: list of (node, source): a
    stored node that is a reshape of another and shares its buffer.
    """

    def __init__(self, roots, options, max_inputs=MAX_INPUTS, packed=True, max_outside=None):
        self.max_inputs = max_inputs
        self.options = options
        self.order = topological(roots)
        self.roots = {}
        for r in roots:
            self.roots[id(r)] = r
        self.consumers = {}
        for node in self.order:
            for s in node.srcs:
                readers = self.consumers.setdefault(id(s), [])
                if node not in readers:
                    readers.append(node)
        self.states = {}
        self.stored = Stored()
        self.regions = {}
        self.aliases = []
        self.packed = {}  # ids of bytes that are stored as the words that products read
        self.anew = {}  # ids of words, and views of them, that products compute at every read
        self.inside = {}  # nodes whose several readers all belong to the same epilogue
        self.place = {}
        for at in range(len(self.order)):
            self.place[id(self.order[at])] = at
        self.rows = find_regions(self.order, self.consumers, self.roots, max_outside)
        for node in self.order:
            self.states[id(node)] = self._visit(node)
        self._share()
        pack(self, packed)
        self.items = self._collect()

    # -- the pass from the sources --------------------------------------------------------------------------------

    def store(self, node):
        """Close or store `node`; returns its new state. Leaves have buffers already."""
        state = self.states[id(node)]
        if state.kind != "leaf" and id(node) not in self.stored:
            self.stored[id(node)] = node
            state.kind = "stored"
            state.leaves = {id(node): 1}
            state.members = {}
        return state

    def _visit(self, node):
        if is_leaf(node):
            return State("leaf", {id(node): 1}, {})
        if id(node) in self.rows:
            region = self.rows[id(node)]
            return self._visit_rows(node, region) if node is region.exit else State("row", {}, {})
        if known_equal(node.count, 0) and is_inline(node):
            return State("inline", {}, {})
        if node.op == "append":
            self._visit_append(node)
            return self._end(node, State("stored", {id(node): 1}, {}))
        if not is_inline(node):
            return self._visit_anchor(node)
        if (node.op == "concat" and self._visit_concat(node)) or (node.op == "words" and visit_words(self, node)):
            return self._end(node, State("stored", {id(node): 1}, {}))
        state = self._extend(node)
        if state is None:
            state = self.inline(node)
        return self._end(node, state)

    def _end(self, node, state):
        """The final state of `node`: roots are stored, and open nodes whose several readers do not join again."""
        if (
            id(node) in self.roots
            or state.kind == "stored"
            or (state.kind == "open" and self.options.reads_bytes and is_widened(self, node))
            or (
                state.kind == "open"
                and len(self.consumers.get(id(node), ())) != 1
                and id(node) not in self.inside
                and not self._comes_together(node, state)
            )
        ):
            self.stored[id(node)] = node
            state.kind = "stored"
            state.leaves = {id(node): 1}
            state.members = {}
        return state

    def _visit_anchor(self, node):
        leaves = {}
        for s in node.srcs:
            state = self.states[id(s)]
            if self.options.reads_bytes and reads_bytes(self, node, s):
                state = self.states[id(s)]
            elif state.kind == "open" or (
                state.kind == "inline"
                and node.op in _REREADS
                and self.members_cost(state) > self._again(node, s)
                and not self.pads(node, s)
            ):
                state = self.store(s)
            elif node.op in ("kernel", "packed"):  # whose inputs must be buffers
                state = self.store(s)
            leaves.update(state.leaves)
        while len(leaves) > self.max_inputs and self._store_one(node):
            leaves = joined(*[self.states[id(s)].leaves for s in node.srcs])
        return self._end(node, State("open" if node.op in _OPENING else "stored", leaves, {}, node, ()))

    def pads(self, node, source):
        """Whether the kernel of a convolution adds the border of its picture itself, and computes that once."""
        takes_pad = self.options.takes_pad
        return takes_pad is not None and node.op == "conv" and source is node.srcs[0] and takes_pad(node)

    def _again(self, node, source):
        """The highest cost at which `source` is computed inside the kernel of `node` anew at every read."""
        if id(source) in self.anew:
            return self.members_cost(self.states[id(source)])
        again = reads(node) if len(self.consumers[id(source)]) == 1 else 0
        few = self.options.little // again if again else 0
        if source.dtype is node.dtype or node.op not in ("matmul", "conv") or is_picked(source):
            return max(few, self.options.computed_again)
        # Operands of products with wider sums: kernels pack them once. In a convolution only the weights are packed.
        once = node.op == "matmul" or (source is node.srcs[1] and node.arg[3] == 1)
        return max(few, self.options.packed_again if once else self.options.computed_again)

    def _visit_rows(self, node, region):
        """The exit of a row region is the anchor of an epilogue, like a single reduction."""
        outside = sorted(region.externals(), key=lambda n: self.place[id(n)])
        leaves = {}
        for s in outside:
            state = self.states[id(s)]
            if state.kind == "inline" and [1 for t in s.srcs if t in outside and id(t) in self.stored]:
                state = self.states[id(s)] = self.inline(s)  # which costs less since its source is stored
            # An inlined source is recomputed in every pass over the row, and readers of its row may read it, too.
            costly = state.kind == "inline" and self.members_cost(state) > 2 * CHEAP
            little = 4 * len(state.leaves) <= self.max_inputs and self._is_little(s, len(region.reductions) + 1)
            if state.kind == "open" or (costly and not little):
                state = self.store(s)
            leaves.update(state.leaves)
        anchor = Node("rows", tuple(outside), region, node.dtype, node.shape, node.word)
        while len(leaves) > self.max_inputs and self._store_one(anchor):
            leaves = joined(*[self.states[id(s)].leaves for s in outside])
        return self._end(node, State("open", leaves, {}, anchor, ()))

    def _extend(self, node):
        """The state of `node` as the next link of an epilogue, or None if it cannot be one."""
        looked_up = self.options.joins_lookups and is_table(node)
        if node.op not in ELEMENTWISE and node.op not in ("reshape", "permute") and not looked_up:
            return None
        best = None
        for s in node.srcs[1:] if node.op == "take" else node.srcs:
            state = self.states[id(s)]
            if state.kind != "open" or (node.op in ELEMENTWISE and not known_equal(s.shape, node.shape)):
                continue
            if best is None or (state.anchor.op in _HEAVY and self.states[id(best)].anchor.op not in _HEAVY):
                best = s
        if best is None:
            return None
        state = self.states[id(best)]
        leaves = dict(state.leaves)
        members = dict(state.members)
        for s in node.srcs:
            if s is not best:
                other = self.states[id(s)]
                if other.kind == "open" and other.anchor is not state.anchor:
                    other = self.store(s)
                leaves.update(other.leaves)
                members.update(other.members)
        if len(leaves) > self.max_inputs or len(members) >= MAX_MEMBERS:
            return None
        members[id(node)] = cost(node)
        return State("open", leaves, members, state.anchor, tuple(state.chain) + (node,))

    def _comes_together(self, node, state):
        """Whether the elementwise nodes computed from `node` join again in one node, as in x * sigmoid(x), so that all
        of them can be one epilogue. The nodes in between are added to `inside`."""
        leaves = {}
        members = {}
        waiting = list(self.consumers.get(id(node), ()))
        while waiting:
            # Take the earliest first: once a single node waits, all branches join in it.
            at = min(waiting, key=lambda n: self.place[id(n)])
            waiting.remove(at)
            if at.op not in ELEMENTWISE or not known_equal(at.shape, node.shape) or id(at) in self.rows:
                return False
            for s in at.srcs:
                if s is not node and id(s) not in members:
                    if not is_simple(s):
                        return False
                    leaves[id(s)] = 0 if s.op in CONSTANTS else 1
            if len(members) >= MAX_DIAMOND or len(state.leaves) + sum(leaves.values()) > self.max_inputs:
                return False
            if not waiting and members:
                if len(state.members) + len(members) + sum(leaves.values()) + 1 >= MAX_MEMBERS:
                    return False
                self.inside.update(members)
                return True
            members[id(at)] = at
            if id(at) in self.roots:
                return False
            waiting.extend([c for c in self.consumers[id(at)] if c not in waiting])
        return False

    def inline(self, node):
        for s in node.srcs:
            state = self.states[id(s)]
            repeated = state.kind == "inline" and typical(s.count) < typical(node.count) and node.op != "concat"
            if id(s) in self.anew:
                self.anew[id(node)] = True
                repeated = False
            if state.kind == "open" or (repeated and self.members_cost(state) > self._anew(s)):
                self.store(s)
        while True:
            leaves = joined(*[self.states[id(s)].leaves for s in node.srcs])
            members = joined(*[self.states[id(s)].members for s in node.srcs])
            if len(leaves) <= self.max_inputs and len(members) < MAX_MEMBERS:
                break
            if not self._store_one(node):
                break
        if node.op != "full":  # a number in the text
            members[id(node)] = cost(node)
        return State("inline", leaves, members)

    def _anew(self, node):
        """The highest cost at which readers compute an inline node for themselves."""
        return self.options.numbers_again if known_equal(node.count, 1) else CHEAP

    def members_cost(self, state):
        total = 0
        for key in state.members:
            total += state.members[key]
        return total

    def _is_little(self, node, times):
        """Whether computing an inline node so many times takes no longer than another dispatch."""
        if is_open(node.count):
            return False
        cost = self.members_cost(self.states[id(node)])
        return node.count * cost * times <= self.options.little

    def _store_one(self, node):
        """Store the inlined source of `node` that reads most; False if there is none."""
        best = None
        for s in node.srcs:
            state = self.states[id(s)]
            if state.kind == "inline" and state.members and s.op not in ("full", "arange"):
                weight = len(state.leaves) * 100 + len(state.members)
                if best is None or weight > best[0]:
                    best = (weight, s)
        if best is None:
            return False
        self.store(best[1])
        return True

    def _visit_concat(self, node):
        """Whether the kernels that compute the parts write them straight into the whole's buffer."""
        parts = [s for s in node.srcs if not known_equal(s.count, 0)]
        opened = 0
        repeated = False
        for i in range(len(parts)):
            repeated = repeated or parts[i] in parts[:i]
            if self.states[id(parts[i])].kind == "open":
                opened += 1
        leaves = joined(*[self.states[id(s)].leaves for s in parts])
        if repeated or (not (opened * 2 >= len(parts) and opened) and len(leaves) <= self.max_inputs):
            if len(parts) <= self.max_inputs:
                return False
        axis = node.arg
        at = 0
        regions = []
        for s in node.srcs:
            starts = [0] * len(node.shape)
            starts[axis] = at
            at += s.shape[axis]
            if known_equal(s.count, 0):
                continue
            state = self.states[id(s)]
            if state.kind == "open" and not repeated:
                state.kind = "region"
                regions.append(Item(s, state.anchor, state.chain, (node, tuple(starts))))
            else:
                if state.kind == "open":
                    self.store(s)
                regions.append(Item(s, None, (), (node, tuple(starts)), state.kind in ("leaf", "stored")))
        self.regions[id(node)] = regions
        return True

    def _visit_append(self, node):
        """Let the kernels that compute the appended parts write them into the buffer, unless they also read it: WebGPU
        does not allow a kernel to do both."""
        whole = node.srcs[0]
        axis, places = node.arg
        regions = []
        for i in range(len(places)):
            s = node.srcs[1 + i]
            if known_equal(s.count, 0):
                continue
            starts = [0] * len(node.shape)
            starts[axis] = places[i]
            state = self.states[id(s)]
            if id(whole) in state.leaves and s is not whole:
                state = self.store(s)
            if state.kind == "open":
                state.kind = "region"
                regions.append(Item(s, state.anchor, state.chain, (node, tuple(starts))))
            else:
                regions.append(Item(s, None, (), (node, tuple(starts)), state.kind in ("leaf", "stored")))
        self.regions[id(node)] = regions
        self.aliases.append((node, whole))

    # -- the pass from the roots ----------------------------------------------------------------------------------

    def _share(self):
        """Store inline nodes that several kernels would compute, where that costs more than storing."""
        owners = {}
        for i in range(len(self.order) - 1, -1, -1):
            node = self.order[i]
            key = id(node)
            state = self.states[key]
            if state.kind in ("leaf", "stored", "region"):
                owners[key] = {key: 1}
                continue
            if state.kind == "row":
                owners[key] = owners[id(self.rows[key].exit)]
                continue
            if state.kind == "open":
                # Its only reader is the next link of the chain, in the same item.
                owners[key] = owners[id(self.consumers[key][0])]
                continue
            mine = {}
            for reader in self.consumers.get(key, ()):
                mine.update(owners[id(reader)])
            costly = self.members_cost(state) > self._anew(node) or len(state.leaves) > 2
            few = key in self.anew or self._is_little(node, len(mine) - 1)
            if len(mine) > 1 and costly and not few:
                self.stored[key] = node
                state.kind = "stored"
                mine = {key: 1}
            owners[key] = mine

    # -- the result -----------------------------------------------------------------------------------------------

    def _collect(self):
        items = []
        for node in self.order:
            key = id(node)
            if key in self.regions:
                for item in self.regions[key]:
                    item.copy = item.copy or id(item.node) in self.stored
                    items.append(item)
                continue
            if key not in self.stored or known_equal(node.count, 0):
                continue
            state = self.states[key]
            source = aliased(self, node)
            # A buffer is shared only if both are packed alike.
            if source is not None and (source.word == node.word or node.op == "words"):
                self.aliases.append((node, source))
                continue
            items.append(Item(node, state.anchor, state.chain))
        return without_ranges(self, items)
