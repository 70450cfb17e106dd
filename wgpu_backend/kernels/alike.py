"""Builds the kernels of a plan, equal ones once: layers repeat, and ResNet-50's 57 items need 28 kernels.

Two items are alike if their keys are equal. A key contains everything that lowering reads: the nodes between the item
and the tensors it loads, in a fixed order, and the options by which kernels are chosen. Kernels refer to nodes only by
their bindings, which are translated by the nodes' places in that order. On a desktop the kernels of large plans are
also kept for later processes (kernel_cache.py).
"""

import struct
import sys

from emberlet.sizes.size import is_open

from ..record.node import Node, is_leaf, structure
from ..record.ranges import narrow_range
from .loop import Kernel

FEWEST = 8  # kernels of a plan that is worth a file


class _NoKey(Exception):
    """A value that cannot be part of a key."""


class Alike:
    """The kernels of a plan's items; `build` gives that of each. options: the Options they are built with."""

    def __init__(self, items, stored, options):
        self.stored = stored
        self.options = options
        self._known = {}  # key -> [name, source, bindings, groups]; bindings: places, or lists of (place, which number)
        self._keys = {}
        self._kept = None
        common = "{} {} {} {} ".format(
            options.alike(), stored.bind_numbers, stored.limits.page_bytes, stored.limits.known_lengths
        )
        for item in items:
            try:
                self._keys[id(item)] = _keyed(item, stored, options, common)
            except _NoKey:
                pass
        if stored.limits.sizes is None and sys.implementation.name != "micropython" and sys.platform != "emscripten":
            self._load()

    def _load(self):
        distinct = list({key: True for key, _ in self._keys.values()})  # in the order of the items: CPython's dict
        if len(distinct) >= FEWEST:
            self._kept = self.options.kept(distinct)
            self._known = self._kept.kernels if self._kept else {}

    def build(self, item):
        """The Kernel of an item."""
        found = self._keys.get(id(item))
        if found is None:
            return self.options.build(item, self.stored)
        key, nodes = found
        known = self._known.get(key)
        if known is not None:
            name, source, bindings, groups = known
            return Kernel(name, source, [_bound(b, nodes) for b in bindings], groups)
        kernel = self.options.build(item, self.stored)
        place = {}
        for i in range(len(nodes)):
            place[id(nodes[i])] = i
        bindings = []
        for node in kernel.inputs:
            if node.op == "numbers":
                bindings.append([(place[of], which) for of, which in node.arg])
            else:
                bindings.append(place[id(node)])
        self._known[key] = (kernel.name, kernel.source, bindings, kernel.groups)
        return kernel

    def keep(self):
        """Keep the kernels for later processes, if they are worth it and not kept already."""
        if self._kept is not None:
            self._kept.save()


def _bound(binding, nodes):
    """The node of a binding."""
    if type(binding) is not list:
        return nodes[binding]
    from emberlet import dtypes

    known = [(id(nodes[place]), which) for place, which in binding]
    return Node("numbers", (), known, dtypes.uint32, (len(known),))


def _keyed(item, stored, options, common):
    """(key, nodes): the item's key, and the nodes that it numbers, in order. Raises _NoKey if it has none."""
    nodes = []
    places = {}
    parts = [common]
    own = [item.node] if item.second is None else [item.second[0], item.node]
    stack = list(own)
    entered = {}
    while stack:
        node = stack[-1]
        if id(node) in places:
            stack.pop()
            continue
        loaded = is_leaf(node) or id(node) in stored
        if node in own:
            loaded = item.copy
        if not loaded and id(node) not in entered:
            entered[id(node)] = True
            stack.extend([s for s in node.srcs if id(s) not in places])
            continue
        stack.pop()
        places[id(node)] = len(nodes)
        nodes.append(node)
        parts.append("{} {} {}".format(node.dtype.name, node.word, _text(node.shape)))
        if loaded:
            if node.dtype.is_integer and not stored.bind_numbers:
                parts.append(repr(narrow_range(node)))
            continue
        argument = structure(node) if stored.bind_numbers else node.arg
        parts.append("{} {} {}".format(node.op, _text(argument), [places[id(s)] for s in node.srcs]))
    parts.append(_anchor(item, places, options))
    parts.append(str([places[id(n)] for n in item.chain]))
    if item.second is not None:
        parts.append("second {}".format([places[id(n)] for n in item.second[1]]))
    if item.region is not None:
        whole, starts = item.region
        parts.append("{} {} {} {}".format(whole.dtype.name, whole.word, _text(whole.shape), _text(starts)))
    return "|".join(parts), nodes


def _anchor(item, places, options):
    """The part of a key for the item's anchor."""
    anchor = item.anchor
    if anchor is None:
        return "-"
    if anchor.op != "rows":
        tile = options.measured(anchor)
        return "{} {}".format(places[id(anchor)], tile.numbers() if tile is not None else "")
    region = anchor.arg
    groups = (region.reductions, region.scalars, [region.exit], region.members.values())
    return "rows {} {} {}".format(
        _text(region.full), _text(region.axes), [[places[id(n)] for n in nodes] for nodes in groups]
    )


def _text(value):
    """A text that is equal for two parameters of nodes only if the parameters are equal."""
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is str:
        return repr(value)
    if kind is float:  # not its repr, which MicroPython rounds
        return "f" + repr(struct.pack("<d", value))
    if kind is tuple or kind is list:
        return "({})".format(",".join([_text(v) for v in value]))
    if is_open(value):
        return str(value)
    raise _NoKey
