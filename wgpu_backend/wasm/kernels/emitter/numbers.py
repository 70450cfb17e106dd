"""Code that computes indices, addresses and single numbers."""

from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open, least

from ....lower import index as ix
from ...assembler import f32, i32, memory, op, select
from .. import operations
from .places import Places

LOADS = {"i8": "i32.load8_s", "u8": "i32.load8_u", "f32": "f32.load", "i32": "i32.load", "u32": "i32.load"}
NO_OPERATION = ("const", "variable", "reduced", "load", "index", "guard", "choose")


def size(word):
    """Bytes of an element stored as `word`."""
    return 1 if word in ("i8", "u8") else 4


def total(terms):
    """The sum of i32 expressions."""
    out = None
    for t in terms:
        out = t if out is None else op("i32.add", out, t)
    return i32(0) if out is None else out


def every(conditions):
    """The conjunction of conditions."""
    out = None
    for c in conditions:
        out = c if out is None else op("i32.and", out, c)
    return i32(1) if out is None else out


class Numbers(Places):
    """Places that Values are computed in, one number at a time."""

    # -- indices --------------------------------------------------------------------------------------------------

    def _atom(self, atom):
        if atom.kind != "digit":
            return self.scalar(atom.payload)
        base, _, div, mod = atom.payload

        def make():
            out = self.counters[base][0] if isinstance(base, str) else self.index(base)
            if not known_equal(div, 1):
                out = op("i32.div_u", out, _divisor(div))
            return out if known_equal(mod, 0) else op("i32.rem_u", out, _divisor(mod))

        return self.keep(atom.key, self._level_atom(atom), make)

    def index(self, index, scale=1, base=None, constant=True):
        """The expression of index * scale (+ base); constant: whether it includes the index's constant part."""
        groups = {}
        barrier = self.barrier
        for c, atom in index.terms:
            level = self._level_atom(atom)
            if self._atom_loads(atom):
                level = max(level, barrier)
            groups.setdefault(level, []).append((c, atom))
        out, key = base, "" if base is None else repr(base.code)
        if constant and not known_equal(index.const, 0):
            out = total([i32(index.const * scale)] + ([] if base is None else [base]))
            key += "k{}".format(index.const)
        for level in sorted(groups):
            key += "+" + ",".join(["{}{}".format(c, a.key) for c, a in groups[level]])

            def make(terms=groups[level], sofar=out):
                parts = [] if sofar is None else [sofar]
                for c, atom in terms:
                    e = self._atom(atom)
                    c = c * scale
                    power = len(bin(c)) - 3 if not is_open(c) and c > 0 else 0  # MicroPython has no bit_length
                    if known_equal(c, 1 << power):
                        parts.append(op("i32.shl", e, i32(power)) if power else e)
                    else:
                        parts.append(op("i32.mul", e, i32(c)))
                return total(parts)

            out = self.keep("{}*{}".format(scale, key), level, make)
        return i32(0) if out is None else out

    def address(self, slot, index, word, further=0):
        """(expression, offset) of the element of a slot at index + further."""
        n = size(word)
        const = (index.const + further) * n
        bare = ix.Index(index.terms, 0)
        if not is_open(const) and const >= 0 and least(bare.lo) >= 0:
            return self.index(bare, n, self.addresses[slot]), const
        return self.index(ix.Index(index.terms, index.const + further), n, self.addresses[slot]), 0

    # -- one number -----------------------------------------------------------------------------------------------

    def scalar(self, value):
        """The expression of a Value at the position of the counters."""
        if value.op == "const":
            return const(value)
        if value.op in ("variable", "reduced"):
            return self.variables["reduced" if value.op == "reduced" else value.attr][0]
        if self._is_new(value):
            self._operands_first(value, self.scalar, self._is_new, self._kept_scalar, False)
        return self._kept_scalar(value)

    def _kept_scalar(self, value):
        return self.keep(value.id, self.level(value), lambda: self._scalar(value))

    def _is_new(self, value):
        """Whether a Value is an operation on others that has no `scalar` yet."""
        return value.op not in NO_OPERATION and value.id not in self.scopes[self.level(value)].values

    def _operands_first(self, value, evaluate, is_new, operate, vector):
        """Compute the operands of a new operation, and theirs before them, in the order in which it asks for them. A
        long chain then needs no deep stack, which MicroPython does not have.
        """
        from ..levels import operands

        waiting = [(value, iter(operands(self, value, vector)))]
        while waiting:
            operation, left = waiting[-1]
            for a in left:
                if is_new(a):
                    waiting.append((a, iter(operands(self, a, vector))))
                    break
                evaluate(a)
            else:
                waiting.pop()
                if waiting:
                    operate(operation)

    def _scalar(self, value):
        name = value.op
        if name == "load":
            slot, index = value.attr
            word = self._word(slot)
            at, offset = self.address(slot, index, word)
            out = memory(LOADS[word], at, offset=offset)
            return op("i32.ne", out, i32(0)) if value.type == "bool" else out
        if name == "index":
            at = self.index(value.attr)
            return op("f32.convert_i32_s", at) if value.type == "f32" else at
        if name == "guard":
            return self._guard(value, self.scalar, _local_type(value.type), self.inside(value.attr))
        if name == "choose":
            return self._choose(value, self.scalar, _local_type(value.type))
        if name == "function":
            return self._function(value)
        if name in ("cast", "sub") and value.type == "f32":
            from ..levels import numbers

            out = numbers(self, value, True)
            if out is not None:
                return out
        args = [self.scalar(a) for a in value.args]
        if name == "where":
            return select(*args)
        if name == "cast":
            return operations.cast(operations.ONE, args[0], value.args[0].type, value.type)
        if name == "bitcast":
            return _bitcast(args[0], value.args[0].type, value.type)
        small = self._small_power(value, args[0]) if name == "pow" and value.type == "f32" else None
        return operations.scalar(name, value.args[0].type, args) if small is None else small

    def _function(self, value):
        if value.attr[0] in ("to_i32", "to_u32"):
            from ..levels import level

            out = level(self, value)
            if out is not None:
                return out
        return operations.function(value.attr, value.type, [self.scalar(a) for a in value.args])

    def _small_power(self, value, a):
        exponent = value.args[1]
        if exponent.op == "const" and not is_open(exponent.attr) and exponent.attr in (1, 2, 3):
            return a if exponent.attr == 1 else a * a if exponent.attr == 2 else a * a * a
        return None

    def inside(self, conditions, further=0):
        """Whether 0 <= index + further < limit for every (index, limit)."""
        out = []
        for index, limit in conditions:
            at = self.index(ix.Index(index.terms, index.const + further))
            out.append(op("i32.lt_u", at, i32(limit)))
        return every(out)

    def _guard(self, value, evaluate, type, condition):
        inner, otherwise = value.args
        f = self.f
        if not self.loads(inner) and type != "v128":
            return select(condition, evaluate(inner), evaluate(otherwise))
        out = f.local(type)
        f.set(out, evaluate(otherwise))
        self.within(condition, lambda: f.set(out, evaluate(inner)))
        return f.get(out)

    def within(self, condition, write):
        """Run the code that `write()` emits, loads included, only if `condition` holds."""
        self.branch(condition)
        barrier, self.barrier = self.barrier, len(self.scopes) - 1
        write()
        self.barrier = barrier
        self.close()

    def _choose(self, value, evaluate, type):
        index, starts = value.attr
        f = self.f
        at = f.let(self.index(index))
        out = f.local(type)
        last = len(value.args) - 1
        for i in range(last + 1):
            inside = []
            if i:
                inside.append(op("i32.ge_u", at, i32(starts[i])))
            if i < last:
                inside.append(op("i32.lt_u", at, i32(starts[i + 1])))
            self.within(every(inside), lambda i=i: f.set(out, evaluate(value.args[i])))
        return f.get(out)

    def _word(self, slot):
        return self.slots.types[slot]


def _divisor(n):
    """A number to divide by. An open size that may be 0 counts as 1, as dividing by 0 would stop the module."""
    return i32(n) if least(n) > 0 else op("i32.or", i32(n), op("i32.eqz", i32(n)))


def const(value):
    if is_open(value.attr):
        return op("f32.convert_i32_s", i32(value.attr)) if value.type == "f32" else i32(value.attr)
    if value.type == "f32":
        return f32(float(value.attr))
    return i32(int(bool(value.attr)) if value.type == "bool" else int(value.attr))


def _local_type(type):
    return "f32" if type == "f32" else "i32"


def _bitcast(a, source, target):
    if source == target or (source != "f32" and target != "f32"):
        return a
    return op("f32.reinterpret_i32" if target == "f32" else "i32.reinterpret_f32", a)
