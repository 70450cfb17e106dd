"""A kernel's arrays in WGSL: how they are declared, read and written.

A tensor larger than the limit of a binding is bound as pages, each an array of its own: `in0[i]` is then `load_in0(i)`,
which picks the page, and `out[i] = v` is `store_out(i, v)`. On most devices every tensor fits.
"""

from emberlet.sizes.size import is_open

from ..lower.kernel_ir import RESULT, SECOND


def name(slot):
    """The name of a slot's array."""
    return "out" if slot == RESULT else "second" if slot == SECOND else "in{}".format(slot)


def element(slots, slot, at):
    """Text that reads the slot's array at `at`. The caller registers the use (`Slots.uses`)."""
    return ("{}[{}]" if slots.pages(slot) == 1 else "load_{}({})").format(name(slot), at)


def assignment(slots, at, value, slot=RESULT):
    """The statement that writes a result at `at`."""
    return ("{}[{}] = {};" if slots.pages(slot) == 1 else "store_{}({}, {});").format(name(slot), at, value)


def declaration(binding, access, label, element, length=None):
    """The declaration of one array."""
    size = "" if length is None else ", {}".format(length)
    return "@group(0) @binding({}) var<storage, {}> {}: array<{}{}>;".format(binding, access, label, element, size)


SIZES = "var<uniform> sizes:"  # in the text of a kernel whose last binding is the block of open sizes


def with_sizes(source, scope):
    """A kernel's text with each `sizes.n5u`, lowering's name for Size number 5, replaced by a read from the block of
    sizes. In comments, where no `u` follows, the Size is written in words."""
    parts = source.split("sizes.n")
    if len(parts) == 1:
        return source
    out = [parts[0]]
    length = 0
    for part in parts[1:]:
        end = 0
        while part[end : end + 1].isdigit():
            end += 1
        if part[end : end + 1] != "u":
            out.append(repr(scope.size(int(part[:end]))) + part[end:])
            continue
        at = scope.place(int(part[:end]))
        length = max(length, at // 4 + 1)
        out.append("sizes[{}].{}{}".format(at // 4, "xyzw"[at % 4], part[end + 1 :]))
    source = "".join(out)
    if not length:
        return source
    at = source.index("\n", source.rindex("@group(0) @binding(")) + 1
    declared = "@group(0) @binding({}) {} array<vec4<u32>, {}>;\n"
    return source[:at] + declared.format(source.count("@group(0) @binding("), SIZES, length) + source[at:]


def element_bytes(element):
    """Bytes of an element of WGSL's array<element>."""
    return (2 if "f16" in element else 4) * (4 if "vec4" in element else 1)


class Arrays:
    """The arrays of a kernel whose text is rendered; vector_out: whether the result is bound as vectors of four."""

    def __init__(self, slots, vector_out=False):
        self.slots = slots
        word = slots.result.word
        self.elements = {RESULT: "vec4<{}>".format(word) if vector_out else word}
        if slots.second is not None:
            self.elements[SECOND] = slots.second.word
        for slot in slots.bound():
            self.elements[slot] = slots.types[slot]
        for slot in self.elements:
            if "8" in self.elements[slot]:
                self.elements[slot] = "u32"

    def half(self):
        """Whether any array is of f16."""
        return any("f16" in element for element in self.elements.values())

    def declarations(self):
        """One per line: the slots that are read, in order, then those that are written."""
        lines = []
        for slot in self.slots.bound() + self.slots.written():
            access = "read_write" if slot < 0 else "read"
            for label in labels(name(slot), self.slots.pages(slot)):
                lines.append(declaration(len(lines), access, label, self.elements[slot], self._length(slot)))
        return "\n".join(lines)

    def accessors(self):
        """The functions that read and write tensors of several pages."""
        functions = []
        for slot in self.slots.bound() + self.slots.written():
            count = self.slots.pages(slot)
            if count > 1:
                page_bytes = self.slots.limits.page_bytes
                functions.append(accessors(name(slot), self.elements[slot], count, page_bytes, slot < 0))
        return "\n\n".join(functions)

    def _length(self, slot):
        """The length to declare, or None: if none is wanted, for pages, for open sizes, and for a constant index beyond
        the end (of a tile that overhangs it), which WGSL refuses for a known length."""
        if not self.slots.limits.known_lengths or is_open(self.slots.node(slot).nbytes) or self.slots.pages(slot) > 1:
            return None
        length = -(-self.slots.node(slot).nbytes // element_bytes(self.elements[slot]))  # buffers are padded
        return length if self.slots.read.get(slot, -1) < length else None


def labels(label, count):
    """The names of the arrays of a tensor of `count` pages."""
    return [label] if count == 1 else ["{}_{}".format(label, page) for page in range(count)]


def accessors(label, element, count, page_bytes, written):
    """The functions load_LABEL over `count` pages, and store_LABEL if `written`."""
    length = page_bytes // element_bytes(element)
    load = ["fn load_{}(i: u32) -> {} {{".format(label, element)]
    store = ["fn store_{}(i: u32, value: {}) {{".format(label, element)]
    for page in range(count):
        # The last page takes all further indices, also wrapped negative ones, since their values are discarded.
        test = "    if (i < {}u) {{ ".format((page + 1) * length) if page < count - 1 else "    "
        end = " }" if page < count - 1 else ""
        place = "{}_{}[i - {}u]".format(label, page, page * length)
        load.append("{}return {};{}".format(test, place, end))
        store.append("{}{} = value;{}{}".format(test, place, " return;" if end else "", end))
    text = "\n".join(load) + "\n}"
    if written:
        text += "\n\n" + "\n".join(store) + "\n}"
    return text
