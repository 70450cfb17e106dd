"""Renders the kernel IR as WGSL."""

from emberlet.errors import refuse
from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open

from ..lower import index as ix
from ..lower.kernel_ir import RESULT
from ..run import storage
from . import arrays, template
from .values import in_few, is_light

# (operation, operand type) -> pattern. {0}, {1}, {2} are the operands' names.
_SAME = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}",
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}",
    "ge": "{0} >= {1}", "where": "select({2}, {1}, {0})", "fma": "fma({0}, {1}, {2})",
    "max": "max({0}, {1})", "min": "min({0}, {1})",
}  # fmt: skip
_FLOAT = {
    "neg": "-{0}", "div": "{0} / {1}", "logical_not": "{0} == 0.0", "abs": "abs({0})", "sqrt": "sqrt({0})",
    "exp": "exp({0})", "floor": "floor({0})", "ceil": "ceil({0})",
    "round": "round({0})", "trunc": "trunc({0})",
    "ne": "!({0} == {1})",  # implementations compile != to a comparison that is false for NaN
}  # fmt: skip
_UNSIGNED = {"neg": "0u - {0}", "abs": "{0}", "sign": "min({0}, 1u)"}
_INTEGER = {
    "neg": "-{0}",
    "abs": "abs({0})", "sign": "sign({0})", "floor": "{0}", "ceil": "{0}", "round": "{0}", "trunc": "{0}",
    "isnan": "false", "isinf": "false", "bitwise_not": "~{0}",
    "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}",
    "maximum": "max({0}, {1})", "minimum": "min({0}, {1})",
}  # fmt: skip
_BOOL = {
    "logical_not": "!{0}", "bitwise_not": "!{0}", "logical_and": "{0} && {1}", "logical_or": "{0} || {1}",
    "logical_xor": "{0} != {1}", "bitwise_and": "{0} && {1}", "bitwise_or": "{0} || {1}", "bitwise_xor": "{0} != {1}",
    "maximum": "{0} || {1}", "minimum": "{0} && {1}", "add": "{0} || {1}", "mul": "{0} && {1}", "sub": "{0} != {1}",
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "!{0} && {1}", "le": "!{0} || {1}", "gt": "{0} && !{1}",
    "ge": "{0} || !{1}", "abs": "{0}", "sign": "{0}", "where": "select({2}, {1}, {0})",
    "floor": "{0}", "ceil": "{0}", "round": "{0}", "trunc": "{0}", "isnan": "false", "isinf": "false",
}  # fmt: skip


def pattern(op, type):
    """The WGSL of an operation on operands of `type`; a function of shaders/math.wgsl where no pattern is known."""
    if type == "u32" and op in _UNSIGNED:
        return _UNSIGNED[op]
    table = _BOOL if type == "bool" else _FLOAT if type[0] == "f" else _INTEGER
    found = table.get(op)
    if found is None and type != "bool":
        found = _SAME.get(op)
    if found is not None:
        return found
    if op == "logical_not":
        return "{0} == 0" + ("u" if type == "u32" else "")
    if op.startswith("logical_"):
        # Not `!=`, which implementations compile to a comparison that is false for NaN.
        one, other = ["!({{{}}} == {})".format(i, {"f32": "0.0", "i32": "0", "u32": "0u"}[type]) for i in (0, 1)]
        return "{} {} {}".format(one, {"and": "&&", "or": "||", "xor": "!="}[op[8:]], other)
    if op in ("shift_left", "shift_right", "div", "floor_divide", "remainder", "fmod", "pow") or type[0] == "f":
        name = op + "_" + type
        if not template.library(name + "("):
            refuse("no kernel", op, "the wgpu")
        arguments = "({0}, {1})" if op in _TWO else "({0})"
        return name + arguments
    refuse("no kernel", "{} of {}".format(op, type), "the wgpu")


_TWO = ("shift_left", "shift_right", "div", "floor_divide", "remainder", "fmod", "pow", "maximum", "minimum", "atan2")


def literal(value, type):
    """A number as WGSL text of `type`, in brackets where it is negative: `-` may stand before it."""
    if is_open(value):
        return _cast(type, "i32", "i32({}u)".format(value))
    if type == "bool":
        return "true" if value else "false"
    if type == "i32":
        value = int(value)
        value = (value + (1 << 31)) % (1 << 32) - (1 << 31)
        if value == -(1 << 31):
            return "i32(-2147483647 - 1)"
        return "{}".format(value) if value >= 0 else "({})".format(value)
    if type == "u32":
        return "{}u".format(int(value) % (1 << 32))
    bits = storage.f32_bits(float(value))
    magnitude = bits & 0x7FFFFFFF
    # A constant expression must not be infinite or NaN, and a compiler may read a subnormal number as 0 and `-0.0` as
    # 0.0.
    if (magnitude < 0x00800000 and bits) or magnitude >= 0x7F7FFFFF:
        return "from_bits(0x{:08x}u)".format(bits)
    text = repr(float(value))
    if "e" not in text and "." not in text:
        text += ".0"
    return "({})".format(text) if text[0] == "-" else text


def _cast(to, source, text):
    """Conversion between register types, without rounding to narrow dtypes (lowering adds that)."""
    if to == source:
        return text
    if to == "bool":
        return "!({} == {})".format(text, literal(0, source))
    if source == "bool":
        return "select({}, {}, {})".format(literal(0, to), literal(1, to), text)
    return "{}({})".format(to, text)


def _constant(index):
    """The unsigned value of a constant Index; -1 if it is not constant."""
    return index.const & 0xFFFFFFFF if index.is_const() and not is_open(index.const) else -1


class Renderer:
    """Turns Values into statements; every Value gets one name in the innermost block that needs it.

    reduced: the text of a finished reduction; before: a Renderer whose statements come earlier in the same block.
    Names are v_1, v_2, … (Values) and i_1, … (indices): no keyword of WGSL and no name in a template looks like that.
    """

    def __init__(self, slots, reduced=None, before=None):
        self.slots = slots
        self.types = slots.types
        self.lines = []
        self.depth = 0
        self.scopes = [{}] if before is None else before.scopes
        self.atoms = [{}] if before is None else before.atoms
        self.reduced = reduced
        self.temporaries = 0 if before is None else before.temporaries

    # -- statements -----------------------------------------------------------------------------------------------

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def open(self, text):
        self.line(text)
        self.depth += 1
        self.scopes.append({})
        self.atoms.append({})

    def close(self, text="}"):
        self.depth -= 1
        self.scopes.pop()
        self.atoms.pop()
        self.line(text)

    def text(self):
        return "\n".join(self.lines)

    # -- indices --------------------------------------------------------------------------------------------------

    def atom(self, atom):
        if atom.kind == "digit":
            base, _, div, mod = atom.payload
            if known_equal(div, 1) and known_equal(mod, 0):
                return base
        for scope in self.atoms:
            if atom.key in scope:
                return scope[atom.key]
        if atom.kind == "digit":
            text = base if isinstance(base, str) else self.index(base)
            whole = known_equal(div, 1)
            if not whole:
                text = "{} / {}u".format(text, div)
            if not known_equal(mod, 0):
                text = "{} % {}u".format(text, mod) if whole else "({}) % {}u".format(text, mod)
        else:
            text = self.name(atom.payload)
            if atom.payload.type == "u32":
                return text
            text = "u32({})".format(text)
        return self.temporary(atom.key, text)

    def temporary(self, key, text):
        """The name of a variable that holds `text`, found again by `key` as long as its block is open."""
        for scope in self.atoms:
            if key in scope:
                return scope[key]
        self.temporaries += 1
        short = "i_{}".format(self.temporaries)
        self.line("let {} = {};".format(short, text))
        self.atoms[-1][key] = short
        return short

    def index(self, index):
        return ix.render(index, self.atom)

    # -- values ---------------------------------------------------------------------------------------------------

    def name(self, value):
        """The name (or literal) that holds `value`, emitting what is needed to compute it."""
        if value.op == "const":
            return literal(value.attr, value.type)
        if value.op == "reduced":
            return self.reduced
        if value.op == "variable":
            return value.attr
        for scope in self.scopes:
            if value.id in scope:
                return scope[value.id]
        # Operands are emitted in the order of a depth-first walk; chains are short by construction (fusion.py).
        text = self.expression(value)
        short = "v_{}".format(value.id)
        if text is not None:
            self.line("let {} = {};".format(short, text))
        self.scopes[-1][value.id] = short
        return short

    def _load(self, value):
        slot, index = value.attr
        if "8" in self.types[slot] and not (self.types[slot][:4] == "vec4" and ix.fours(index)):
            return self._byte(slot, index, value.type)
        if self.types[slot][:4] != "vec4":
            text = self._element(slot, index)
        elif ix.fours(index):
            return self._component(slot, index) + (" != 0u" if value.type == "bool" else "")
        else:
            at = self.index(index)
            text = "{}[{} % 4u]".format(self._quarter(slot, index, at), at)
        if "f16" in self.types[slot]:
            return "f32({})".format(text)
        return "{} != 0u".format(text) if value.type == "bool" else text

    def expression(self, value):
        op = value.op
        if op == "load":
            return self._load(value)
        if op == "load4":
            return self._whole(value.attr[0], value.attr[1])
        if op == "component":
            return self.name(value.args[0]) + "." + "xyzw"[value.attr]
        if op == "index":
            text = self.index(value.attr)
            return text if value.type == "u32" else "{}({})".format(value.type, text)
        if op == "guard":
            return self._guard(value)
        if op == "choose":
            return self._choose(value)
        whole = in_few(value, self.name)
        if whole is not None:
            return whole
        names = [self.name(a) for a in value.args]
        if names and len([a for a in value.args if a.op == "const"]) == len(names):
            # WGSL evaluates expressions of literals at compile time, and refuses overflow, infinity and NaN; a `let` is
            # not a constant expression.
            names[0] = self.temporary("const {}".format(names[0]), names[0])
        if op == "cast":
            return _cast(value.type, value.args[0].type, names[0])
        if op == "bitcast":
            return "bitcast<{}>({})".format(value.type, names[0])
        if op == "function":
            return "{}({})".format(value.attr[0], ", ".join(names + list(value.attr[1:])))
        kind = value.args[1].type if op == "where" else value.args[0].type
        return pattern(op, kind).format(*names)

    def _component(self, slot, index):
        """One element of a vector that is loaded once for all of its elements."""
        c = index.const % 4
        text = self._whole(slot, ix.quarter(ix.add(index, ix.const(-c))))
        return "{}.{}".format(self.temporary("vec " + text, text), "xyzw"[c])

    def _byte(self, slot, index, type):
        """One of the four elements of a word."""
        at = self.index(index)
        word = self._quarter(slot, index, at)
        if "i8" in self.types[slot]:
            word = "bitcast<i32>({})".format(word)
        text = "extractBits({}, {} % 4u * 8u, 8u)".format(word, at)
        return text + " != 0u" if type == "bool" else text

    def _element(self, slot, index):
        self.slots.uses(slot, _constant(index))
        return arrays.element(self.slots, slot, self.index(index))

    def _quarter(self, slot, index, at):
        """The vector or word that holds the element at `index`, whose text is `at`."""
        self.slots.uses(slot, _constant(index) // 4)
        return arrays.element(self.slots, slot, at + " / 4u")

    def _whole(self, slot, index):
        text = self._element(slot, index)
        if "8" in self.types[slot]:
            return "unpack_{}({})".format("i8" if "i8" in self.types[slot] else "u8", text)
        return "vec4<f32>({})".format(text) if "f16" in self.types[slot] else text

    def _guard(self, value):
        inner, otherwise = value.args
        # Unsigned arithmetic: a negative index is a huge one, so that one comparison checks both ends.
        conditions = ["{} < {}u".format(self.index(index), limit) for index, limit in value.attr]
        fallback = self.name(otherwise)
        if is_light(inner):
            # Reading out of bounds is harmless (WebGPU gives some element or 0), and cheaper than a branch.
            return "select({}, {}, {})".format(fallback, self.name(inner), " && ".join(conditions))
        short = "v_{}".format(value.id)
        self.line("var {}: {} = {};".format(short, value.type, fallback))
        self.open("if ({}) {{".format(" && ".join(conditions)))
        self.line("{} = {};".format(short, self.name(inner)))
        self.close()
        return None

    def _choose(self, value):
        index, starts = value.attr
        at = self.index(index)
        short = "v_{}".format(value.id)
        self.line("var {}: {};".format(short, value.type))
        last = len(value.args) - 1
        for i in range(last + 1):
            condition = "if ({} < {}u) {{".format(at, starts[i + 1]) if i < last else "{"
            if i:
                self.depth -= 1
                self.scopes.pop()
                self.atoms.pop()
                condition = "} else " + condition
            self.open(condition)
            self.line("{} = {};".format(short, self.name(value.args[i])))
        self.close()
        return None

    def element_of(self, value):
        """The text of a value as an element of the result: a bool as 0 or 1."""
        name = self.name(value)
        if value.type == "bool":
            return "select(0u, 1u, {})".format(name)
        if self.slots.result.word != "f16":
            return name
        if value.op == "const":
            name = self.temporary("const {}".format(name), name)  # a literal would have to fit f16
        return "f16({})".format(name)

    def store(self, index, value):
        """`out[index] = value`."""
        text = self.element_of(value)
        self._assign(index, text)

    def store_all(self, cells, in_fours):
        """Store (Value, Index) cells; in_fours: each four as one vector."""
        for at in range(0, len(cells), 4 if in_fours else 1):
            if in_fours:
                self.store_four(cells[at : at + 4])
            else:
                self.store(cells[at][1], cells[at][0])

    def store_four(self, cells, slot=RESULT):
        """Four neighboring (Value, Index) as one vector."""
        word = self.slots.node(slot).word
        names = ", ".join([self.element_of(v) for v, _ in cells])
        if word in ("i8", "u8"):
            whole = "pack_four(vec4<u32>(vec4<{}32>({})))".format(word[0], names)
        else:
            whole = "vec4<{}>({})".format(word, names)
        at = cells[0][1]
        self._assign(ix.quarter(at) if ix.fours(at) else ix.floordiv(at, 4), whole, slot)

    def whole(self, four):
        """The name of the vector whose components four Values are; None if there is none."""
        first = four[0]
        if first.op == "component" and first.attr == 0:
            if all(v.op == "component" and v.args[0] is first.args[0] for v in four):
                return self.name(first.args[0])
        return None

    def four(self, values):
        """The text of four Values as a vector."""
        return self.whole(values) or "vec4<f32>({})".format(", ".join([self.name(v) for v in values]))

    def stored(self, index):
        """What the result holds at `index`, read back."""
        return self._element(RESULT, index)

    def _assign(self, index, text, slot=RESULT):
        self.slots.uses(slot, _constant(index))
        self.line(arrays.assignment(self.slots, self.index(index), text, slot))


def finish(text, accessors="", half=False):
    """`text` with the library functions it calls and `accessors` put in front of its entry point; half: whether any
    array is of f16."""
    functions = "\n\n".join([part for part in (template.library(text), accessors) if part])
    if functions:
        at = max(0, text.find("@compute"))  # a text of one's own without it is refused when it is compiled
        text = text[:at] + functions + "\n\n" + text[at:]
    # A directive comes before everything else.
    if "subgroupBroadcast(" in text:
        text = "enable subgroups;\n\n" + text
    return "enable f16;\n\n" + text if half else text
