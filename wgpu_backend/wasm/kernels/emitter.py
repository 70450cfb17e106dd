"""Turns Values of the kernel IR into Wasm code inside nested loops, for one position or for four neighboring ones.

Every Value is computed once, in the outermost possible loop. The four positions are those of one counter, the *lane*
counter, which then advances by four. Where vectors have more lanes, as many positions take the place of four. A load
whose index grows by one with it becomes a vector load; values independent of it are computed once; operations without a
vector form are computed lane by lane.
"""

from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open, least

from ...lower import index as ix
from ..assembler import E, bits, call, f32, f32x4, i32, i32x4, lane, memory, op, select, unsigned_min
from . import operations

_LOADS = {"i8": "i32.load8_s", "u8": "i32.load8_u", "f32": "f32.load", "i32": "i32.load", "u32": "i32.load"}
_NO_OPERATION = ("const", "variable", "reduced", "load", "index", "guard", "choose")
_EDGE = 64  # words of a memory that lie before its first tensor (../addresses.py)
_REVERSE = bytes((12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3))
_EVEN = bytes((0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27))
_FIRST_BYTES = bytes((0, 4, 8, 12)) + bytes(12)


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


class Scope:
    """values: what has been computed in one loop, block or branch; end: the function that closes it, or None."""

    def __init__(self, end):
        self.values = {}
        self.end = end


class Emitter:
    """Writes into a Function whose parameters are the addresses of `slots` and of the result.

    addresses: slot number -> expression of its tensor's address. lane: the name of the lane counter, or None. lanes:
    the numbers in a vector; by_one: whether some code computes them one by one.
    """

    def __init__(self, function, slots):
        self.f = function
        self.slots = slots
        self.addresses = {}
        self.counters = {}  # name -> (expression, number of its scope)
        self.variables = {}  # name -> (expression, number of its scope, whether it is a vector)
        self.lane = None
        self.lanes = function.lanes
        self.by_one = False
        self.barrier = 0  # loads must stay inside this scope: outside it their indices may be out of bounds
        self.scopes = [Scope(None)]
        self._levels = {}
        self._depends = {}
        self._loads = {}
        self.reduced = None

    # -- scopes ---------------------------------------------------------------------------------------------------

    def _open(self, end):
        self.f.push()
        self.scopes.append(Scope(end))

    def close(self):
        """End the innermost loop, branch or block."""
        scope = self.scopes.pop()
        scope.end(self.f.pop())

    def block(self):
        """Open a scope that runs once; its bindings and values end with it."""
        self._open(lambda code: self.f.code.extend(code))

    def loop(self, name, extent, step=1, start=0, clamp=None, split=False):
        """Open the loop of a counter from `start` to below `extent` (numbers, sizes or expressions; extent > start, but
        with open sizes the loop may be empty).

        clamp: an upper bound of the counter; the last step then repeats part of the previous one. split: threads share
        the loop, and each runs its own range of the steps (split.py); such a loop has no start.
        """
        f = self.f
        known = not isinstance(extent, E) and not isinstance(start, E)
        if known and not is_open(extent) and not is_open(start) and extent - start <= step:
            self.block()
            self.bind(name, i32(start))
            return
        number = f.local("i32")
        may_be_empty = not split and known and least(extent - start) < 1
        if split:
            f.steps = (extent + step - 1) // step
            first, last = [f.param(n) for n in range(len(f.params) - 2, len(f.params))]
            start, extent = f.let(op("i32.mul", first, i32(step))), f.let(op("i32.mul", last, i32(step)))

        def end(code):
            if split:
                f.begin_if(op("i32.lt_u", first, last))
            elif may_be_empty:
                f.begin_if(op("i32.lt_s", i32(start), i32(extent)))
            f.set(number, start if isinstance(start, E) else i32(start))
            f.begin_loop()
            f.code.extend(code)
            f.set(number, op("i32.add", f.get(number), i32(step)))
            limit = extent if isinstance(extent, E) else i32(extent)
            f.branch_if(op("i32.lt_u", f.get(number), limit), 0)
            f.end()
            if split or may_be_empty:
                f.end()

        self._open(end)
        value = f.get(number)
        if clamp is not None:
            value = f.let(unsigned_min(value, i32(clamp)))
        self.bind(name, value)

    def bind(self, name, value):
        """Bind the counter `name` to `value` in the innermost scope."""
        self.counters[name] = (value, len(self.scopes) - 1)
        self._levels = {}

    def branch(self, condition):
        """Open a scope that runs only if `condition` holds."""
        f = self.f

        def end(code):
            f.begin_if(condition)
            f.code.extend(code)
            f.end()

        self._open(end)

    def define(self, name, value, is_vector=False):
        """Bind the variable `name` to `value`, computed in the innermost scope."""
        self.variables[name] = (value, len(self.scopes) - 1, is_vector)
        self._levels = {}
        self._depends = {}

    class _At:
        def __init__(self, emitter, level):
            self.emitter = emitter
            self.level = level

        def __enter__(self):
            e, keep = self.emitter, self.level + 1
            self.scopes, self.buffers = e.scopes[keep:], e.f.buffers[keep:]
            del e.scopes[keep:]
            del e.f.buffers[keep:]

        def __exit__(self, *error):
            e = self.emitter
            e.scopes += self.scopes
            e.f.buffers += self.buffers
            return False

    def at(self, level):
        """A context manager: code emitted in it goes to the end of scope number `level`."""
        return Emitter._At(self, level)

    def keep(self, key, level, make):
        """The value of `make()`, computed once in scope `level` and cached there under `key`."""
        found = self.scopes[level].values.get(key)
        if found is not None:
            return found
        with self.at(level):
            e = make()
            if len(e.code) == 1 and e.code[0][:1] in (b"\x20", b"\x41", b"\x43"):
                out = e  # a local or a constant
            else:
                out = self.f.let(e)
            self.scopes[-1].values[key] = out
        return out

    # -- where something can be computed --------------------------------------------------------------------------

    def _level_atom(self, atom):
        if atom.kind == "digit":
            base = atom.payload[0]
            return self.counters[base][1] if isinstance(base, str) else self.level_index(base)
        return self.level(atom.payload)

    def level_index(self, index):
        """The number of the outermost scope in which an index can be computed."""
        out = 0
        for _, atom in index.terms:
            out = max(out, self._level_atom(atom))
        return out

    def level(self, value):
        """The number of the outermost scope in which a Value can be computed."""
        found = self._binding(value)
        return max(found, self.barrier) if self.loads(value) else found

    def _binding(self, value):
        """The number of the innermost scope that binds anything a Value depends on."""
        for each in args_first(value, self._levels):
            found = 0
            if each.op == "variable":
                found = self.variables[each.attr][1]
            elif each.op == "reduced":
                found = self.variables["reduced"][1]
            for a in each.args:
                found = max(found, self._levels[a.id])
            for index in indices_of(each):
                found = max(found, self._binding_index(index))
            self._levels[each.id] = found
        return self._levels[value.id]

    def _binding_index(self, index):
        found = 0
        for _, atom in index.terms:
            base = atom.payload[0] if atom.kind == "digit" else None
            if base is None:
                found = max(found, self._binding(atom.payload))
            else:
                found = max(found, self.counters[base][1] if isinstance(base, str) else self._binding_index(base))
        return found

    def loads(self, value):
        """Whether a Value reads memory."""
        for each in args_first(value, self._loads):
            found = each.op == "load"
            for a in each.args:
                found = found or self._loads[a.id]
            for index in indices_of(each):
                for _, atom in index.terms:
                    found = found or self._atom_loads(atom)
            self._loads[each.id] = found
        return self._loads[value.id]

    def _atom_loads(self, atom):
        if atom.kind != "digit":
            return self.loads(atom.payload)
        base = atom.payload[0]
        return not isinstance(base, str) and any(self._atom_loads(a) for _, a in base.terms)

    def index_depends(self, index, name):
        """Whether an index depends on the counter `name`; for the lane counter, also on a vector."""
        for _, atom in index.terms:
            if self._atom_depends(atom, name):
                return True
        return False

    def _atom_depends(self, atom, name):
        if atom.kind == "digit":
            base = atom.payload[0]
            return base == name if isinstance(base, str) else self.index_depends(base, name)
        return self.depends(atom.payload, name)

    def depends(self, value, name):
        """`index_depends` of a Value."""
        known = self._depends.setdefault(name, {})
        for each in args_first(value, known):
            found = False
            if each.op in ("variable", "reduced"):
                variable = self.variables["reduced" if each.op == "reduced" else each.attr]
                found = variable[2] and name == self.lane
            for a in each.args:
                found = found or known[a.id]
            for index in indices_of(each):
                found = found or self.index_depends(index, name)
            known[each.id] = found
        return known[value.id]

    def coefficient(self, index, name=None):
        """`stride`, but None if it is an open size."""
        out = self.stride(index, name or self.lane)
        return None if is_open(out) else out

    def stride(self, index, name):
        """The stride of an index per step of a counter; None if it is not the same for all steps."""
        out = 0
        for c, atom in index.terms:
            if self._atom_depends(atom, name):
                if atom.kind != "digit" or not known_equal(atom.payload[2:], (1, 0)):
                    return None
                out += c
        return out

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
            return _const(value)
        if value.op in ("variable", "reduced"):
            return self.variables["reduced" if value.op == "reduced" else value.attr][0]
        if self._is_new(value):
            self._operands_first(value, self.scalar, self._is_new, self._kept_scalar, False)
        return self._kept_scalar(value)

    def _kept_scalar(self, value):
        return self.keep(value.id, self.level(value), lambda: self._scalar(value))

    def _is_new(self, value):
        """Whether a Value is an operation on others that has no `scalar` yet."""
        return value.op not in _NO_OPERATION and value.id not in self.scopes[self.level(value)].values

    def _operands_first(self, value, evaluate, is_new, operate, vector):
        """Compute the operands of a new operation, and theirs before them, in the order in which it asks for them. A
        long chain then needs no deep stack, which MicroPython does not have.
        """
        from .levels import operands

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
            out = memory(_LOADS[word], at, offset=offset)
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
            from .levels import numbers

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
            from .levels import level

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

    # -- four numbers ---------------------------------------------------------------------------------------------

    def vector(self, value):
        """The expression of a Value at four neighboring positions of the lane counter; bools are masks."""
        if value.op == "const":
            return _const_four(value)
        if not self.depends(value, self.lane):
            return self.keep((value.id, "4"), self.level(value), lambda: self._splat(value))
        if value.op in ("variable", "reduced"):
            return self.variables["reduced" if value.op == "reduced" else value.attr][0]
        if self._is_new_vector(value):
            self._operands_first(value, self.vector, self._is_new_vector, self._kept_vector, True)
        return self._kept_vector(value)

    def _kept_vector(self, value):
        return self.keep((value.id, "4"), self.level(value), lambda: self._vector(value))

    def _is_new_vector(self, value):
        """Whether a Value is an operation on others that differs by lane and has no `vector` yet."""
        if value.op in _NO_OPERATION or not self.depends(value, self.lane):
            return False
        return (value.id, "4") not in self.scopes[self.level(value)].values

    def _splat(self, value):
        if value.op == "load" and size(self._word(value.attr[0])) == 4 and value.type != "bool":
            at, offset = self.address(value.attr[0], value.attr[1], "f32")
            return memory("v128.load32_splat", at, offset=offset)
        return splat(self.scalar(value), value.type)

    def _vector(self, value):  # noqa: C901
        name = value.op
        if name == "load":
            return self._load_four(value)
        if name == "index":
            c = self.coefficient(value.attr)
            if c is None:
                return self._one_by_one(value)
            whole = op("i32x4.splat", self.index(value.attr))
            steps = i32x4(0, c, 2 * c, 3 * c) if self.lanes == 4 else op("v128.ramp", i32(c))
            whole = op("i32x4.add", whole, steps)
            return op("f32x4.convert_i32x4_s", whole) if value.type == "f32" else whole
        if name == "guard":
            return self._guard_four(value)
        if name == "choose":
            return self._choose_four(value)
        if name == "function":
            from . import levels

            if value.attr[0] in ("to_i32", "to_u32"):
                out = levels.levels(self, value)
                if out is not None:
                    return out
            elif levels.is_wrapped(value):
                return self.vector(value.args[0])
        if name in ("cast", "sub") and value.type == "f32":
            from .levels import numbers

            out = numbers(self, value)
            if out is not None:
                return out
        x = operations.exponent(value)
        if x is not None:
            return f32x4(1.0) + call("exp_normal", "v128", self.vector(x))
        args = [self.vector(a) for a in value.args]
        if name == "where":
            return bits(*args)
        if name == "cast":
            return operations.cast(operations.FOUR, args[0], value.args[0].type, value.type)
        if name == "bitcast":
            return args[0]
        out = None
        if name == "function":
            out = operations.function_of_four(value.attr, args)
        else:
            if name == "pow" and value.type == "f32":
                out = self._small_power(value, args[0])
            if out is None:
                last = value.args[-1]
                plain = last.attr if last.op == "const" and not is_open(last.attr) else None
                out = operations.vector(name, value.args[0].type, args, plain)
        return self._by_lane(value, args) if out is None else out

    def _by_lane(self, value, args):
        """Apply an operation without a vector form lane by lane."""
        out = i32x4(0)
        self.by_one = True
        for n in range(self.lanes):
            numbers = []
            for i in range(len(args)):
                numbers.append(self.f.let(extract(args[i], value.args[i].type, n)))
            if value.op == "function":
                e = operations.function(value.attr, value.type, numbers)
            else:
                e = operations.scalar(value.op, value.args[0].type, numbers)
            out = replace(out, n, e, value.type)
        return out

    def _one_by_one(self, value):
        """A Value at four positions, computed one after the other."""
        out = self.f.local("v128")
        self.by_one = True
        known = self.counters[self.lane]
        for n in range(self.lanes):
            self.block()
            self.bind(self.lane, self.f.let(op("i32.add", known[0], i32(n))))
            self.f.set(out, replace(self.f.get(out), n, self.scalar(value), value.type))
            self.close()
        self.counters[self.lane] = known
        self._levels = {}
        return self.f.get(out)

    def _load_four(self, value):
        slot, index = value.attr
        word = self._word(slot)
        c = self.coefficient(index)
        if c == 1:
            at, offset = self.address(slot, index, word)
            out = self.four_at(word, at, offset)
        elif c == -1:
            at, offset = self.address(slot, index, word, 1 - self.lanes)
            reverse = self.f.let(self.four_at(word, at, offset))
            if self.lanes == 4:
                out = op("i8x16.shuffle", reverse, reverse, imm=_REVERSE)
            else:
                out = op("v128.reverse", reverse)
        elif c == 2 and size(word) == 4:  # the last element is read and not used; every memory ends with room for it
            at, offset = self.address(slot, index, word)
            out = self.every_second(self.f.let(at), offset)
        elif c is None:
            return self._one_by_one(value)
        else:
            out = i32x4(0)
            self.by_one = True
            for n in range(self.lanes):
                at, offset = self.address(slot, index, word, n * c)
                out = self.lane_at(word, at, out, n, offset)
        return op("i32x4.ne", out, i32x4(0)) if value.type == "bool" else out

    def lane_at(self, word, at, vector, n, offset=0):
        """`vector` with lane n loaded from an address; the lanes come in order."""
        if size(word) != 4:
            return replace(vector, n, memory(_LOADS[word], at, offset=offset), "i32")
        if n == 0:
            return memory("v128.load32_zero", at, offset=offset)
        return memory("v128.load32_lane", at, vector, offset=offset, lane=n)

    def four_at(self, word, at, offset):
        if size(word) == 4:
            return memory("v128.load", at, offset=offset)
        if self.lanes != 4:
            return memory("v128.load_" + word, at, offset=offset)
        sign = "s" if word == "i8" else "u"
        out = op("i16x8.extend_low_i8x16_" + sign, memory("v128.load32_zero", at, offset=offset))
        return op("i32x4.extend_low_i16x8_" + sign, out)

    def every_second(self, at, offset):
        """Four words of 32 bits, of which an address has the first and each other lies two behind the one before. One
        more is read behind the last."""
        first, second = [memory("v128.load", at, offset=offset + n) for n in (0, 4 * self.lanes)]
        if self.lanes == 4:
            return op("i8x16.shuffle", first, second, imm=_EVEN)
        return op("v128.even", first, second)

    def _guard_four(self, value):
        f = self.f
        uneven = [c for c in value.attr if self.index_depends(c[0], self.lane)]
        if not uneven:
            return self._guard(value, self.vector, "v128", self.inside(value.attr))
        if [c for c in uneven if self.coefficient(c[0]) is None]:
            return self._one_by_one(value)
        if self.lanes > 4 and self._plain_row(value.args[0]):
            return self._masked(value)
        # Four elements inside are one vector; at an edge they are loaded one by one.
        ends = []
        for index, limit in value.attr:
            further = (self.lanes - 1) * self.coefficient(index)
            ends += [self.inside([(index, limit)]), self.inside([(index, limit)], further)]
        whole = f.let(every(ends))
        out = f.local("v128")
        self.within(whole, lambda: f.set(out, self.vector(value.args[0])))
        self.within(op("i32.eqz", whole), lambda: f.set(out, self._one_by_one(value)))
        return f.get(out)

    def _plain_row(self, inner):
        """Whether a guarded value is a load of neighbors that begins, at an edge, at most _EDGE words before its
        tensor."""
        if inner.op != "load" or inner.type == "bool" or size(self._word(inner.attr[0])) != 4:
            return False
        index = inner.attr[1]
        return self.coefficient(index) == 1 and -_EDGE <= least(index.lo) and not self._index_loads(index)

    def _index_loads(self, index):
        """Whether an index is computed from memory."""
        return any(self._atom_loads(atom) for _, atom in index.terms)

    def _masked(self, value):
        """A guarded load of a vector whose lanes may lie outside."""
        inner, otherwise = value.args
        masks = []
        for index, limit in value.attr:
            at = op("i32x4.splat", self.index(index))
            c = self.coefficient(index)
            if c:
                at = op("i32x4.add", at, op("v128.ramp", i32(c)))
            masks.append(op("i32x4.lt_u", at, op("i32x4.splat", i32(limit))))
        mask = masks[0]
        for m in masks[1:]:
            mask = op("v128.and", mask, m)
        mask = self.f.let(mask)
        slot, index = inner.attr
        at = self.index(index, 4, self.addresses[slot])
        return bits(mask, memory("v128.load_masked", at, mask), self.vector(otherwise))

    def _choose_four(self, value):
        index, starts = value.attr
        if not self.index_depends(index, self.lane):
            return self._choose(value, self.vector, "v128")
        c = self.coefficient(index)
        if c is None or c < 0:
            return self._one_by_one(value)
        f = self.f
        first = f.let(self.index(index))
        final = f.let(op("i32.add", first, i32((self.lanes - 1) * c)))
        out, left = f.local("v128"), f.local("i32")
        f.set(left, i32(1))
        last = len(value.args) - 1
        for i in range(last + 1):
            inside = [op("i32.ge_u", first, i32(starts[i]))]
            if i < last:
                inside.append(op("i32.lt_u", final, i32(starts[i + 1])))

            def write(i=i):
                f.set(out, self.vector(value.args[i]))
                f.set(left, i32(0))

            self.within(every(inside), write)
        self.within(f.get(left), lambda: f.set(out, self._one_by_one(value)))
        return f.get(out)

    # -- stores ---------------------------------------------------------------------------------------------------

    def store(self, index, value, word):
        """Store a Value in the result, as `word`."""
        e = self.scalar(value)
        at, offset = self.address("out", index, word)
        name = "i32.store8" if size(word) == 1 else "f32.store" if word == "f32" else "i32.store"
        self.f.do(memory(name, at, e, offset=offset))

    def store_four(self, index, value, word):
        """`store` at four positions of the lane counter."""
        e = self.vector(value)
        if value.type == "bool":
            e = op("v128.and", e, i32x4(1))
        c = self.coefficient(index)
        if c == 1:
            at, offset = self.address("out", index, word)
            if size(word) == 4:
                self.f.do(memory("v128.store", at, e, offset=offset))
            elif self.lanes != 4:
                self.f.do(memory("v128.store_8", at, e, offset=offset))
            else:
                e = self.f.let(e)
                packed = op("i8x16.shuffle", e, e, imm=_FIRST_BYTES)
                self.f.do(memory("v128.store32_lane", at, packed, offset=offset, lane=0))
            return
        e = self.f.let(e)
        self.by_one = True
        known = self.counters[self.lane]
        for n in range(self.lanes):
            self.block()
            self.bind(self.lane, self.f.let(op("i32.add", known[0], i32(n))))
            at, offset = self.address("out", index, word)
            if size(word) == 4:
                self.f.do(memory("v128.store32_lane", at, e, offset=offset, lane=n))
            else:
                self.f.do(memory("i32.store8", at, lane("i32x4.extract_lane", n, e), offset=offset))
            self.close()
        self.counters[self.lane] = known
        self._levels = {}


def args_first(value, known):
    """The Values whose ids are not in `known`, of `value` and what it is computed of, in such an order that the caller
    can add each to `known` once its arguments are there. Long chains need no deep stack this way."""
    waiting = [] if value.id in known else [value]
    while waiting:
        left = [a for a in waiting[-1].args if a.id not in known]
        if left:
            waiting.extend(left)
        else:
            at = waiting.pop()
            if at.id not in known:
                yield at


def indices_of(value):
    """The indices that a Value reads or compares."""
    if value.op == "load":
        return (value.attr[1],)
    if value.op == "index":
        return (value.attr,)
    if value.op == "guard":
        return [index for index, _ in value.attr]
    return (value.attr[0],) if value.op == "choose" else ()


def _divisor(n):
    """A number to divide by. An open size that may be 0 counts as 1, as dividing by 0 would stop the module."""
    return i32(n) if least(n) > 0 else op("i32.or", i32(n), op("i32.eqz", i32(n)))


def _const(value):
    if is_open(value.attr):
        return op("f32.convert_i32_s", i32(value.attr)) if value.type == "f32" else i32(value.attr)
    if value.type == "f32":
        return f32(float(value.attr))
    return i32(int(bool(value.attr)) if value.type == "bool" else int(value.attr))


def _const_four(value):
    if is_open(value.attr):
        return splat(_const(value), value.type)
    if value.type == "f32":
        return f32x4(float(value.attr))
    return i32x4((-1 if value.attr else 0) if value.type == "bool" else int(value.attr))


def _local_type(type):
    return "f32" if type == "f32" else "i32"


def _bitcast(a, source, target):
    if source == target or (source != "f32" and target != "f32"):
        return a
    return op("f32.reinterpret_i32" if target == "f32" else "i32.reinterpret_f32", a)


def splat(e, type):
    """A number broadcast to a vector; a bool as a mask."""
    if type == "f32":
        return op("f32x4.splat", e)
    return op("i32x4.splat", op("i32.sub", i32(0), e) if type == "bool" else e)


def extract(e, type, n):
    """Lane n of a vector."""
    if type == "f32":
        return lane("f32x4.extract_lane", n, e)
    out = lane("i32x4.extract_lane", n, e)
    return op("i32.and", out, i32(1)) if type == "bool" else out


def replace(e, n, number, type):
    """A vector with lane n replaced."""
    if type == "f32":
        return lane("f32x4.replace_lane", n, e, number)
    return lane("i32x4.replace_lane", n, e, op("i32.sub", i32(0), number) if type == "bool" else number)
