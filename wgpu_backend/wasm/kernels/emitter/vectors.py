"""Code that computes four neighboring positions at once, and stores. Where vectors have more lanes, as many positions
take the place of four."""

from emberlet.sizes.size import is_open, least, surely_less

from ...assembler import bits, call, f32x4, i32, i32x4, lane, memory, op
from .. import operations
from .numbers import LOADS, NO_OPERATION, Numbers, const, every, size

_EDGE = 64  # words of a memory that lie before its first tensor (../../addresses.py), and bytes behind its last one
_REVERSE = bytes((12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3))
_EVEN = bytes((0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27))
_FIRST_BYTES = bytes((0, 4, 8, 12)) + bytes(12)


class Emitter(Numbers):
    """Places that Values are computed and stored in, one number or a vector at a time."""

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
        if value.op in NO_OPERATION or not self.depends(value, self.lane):
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
            from .. import levels

            if value.attr[0] in ("to_i32", "to_u32"):
                out = levels.levels(self, value)
                if out is not None:
                    return out
            elif levels.is_wrapped(value):
                return self.vector(value.args[0])
        if name in ("cast", "sub") and value.type == "f32":
            from ..levels import numbers

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
        elif c == 0:  # of a digit that does not change within a vector
            out = splat(self.scalar(value), value.type)
        elif c == 2:  # the last element is read and not used; every memory ends with room for it
            at, offset = self.address(slot, index, word)
            out = self.every_second(word, self.f.let(at), offset)
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
            return replace(vector, n, memory(LOADS[word], at, offset=offset), "i32")
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

    def every_second(self, word, at, offset):
        """Four elements, of which an address has the first and each other lies two behind the one before. One more is
        read behind the last."""
        if size(word) == 1:
            pairs = memory("v128.load16x4_u", at, offset=offset)
            if word == "u8":
                return op("v128.and", pairs, i32x4(0xFF))
            return op("i32x4.shr_s", op("i32x4.shl", pairs, i32(24)), i32(24))
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
        """Whether a guarded value is a load of neighbors that begins, at an edge, at most _EDGE elements before its
        tensor. Bytes are loaded without a mask, so that they also end near it, in the memory of a plan."""
        if inner.op != "load" or inner.type == "bool":
            return False
        slot, index = inner.attr
        if self.coefficient(index) != 1 or least(index.lo) < -_EDGE or self._index_loads(index):
            return False
        node = self.slots.nodes[slot]
        return size(self._word(slot)) == 4 or (node.op != "data" and surely_less(index.hi, node.count + _EDGE))

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
        word = self._word(slot)
        at = self.index(index, size(word), self.addresses[slot])
        found = memory("v128.load_masked", at, mask) if size(word) == 4 else self.four_at(word, at, 0)
        return bits(mask, found, self.vector(otherwise))

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
        if self.coefficient(index) == 1:
            self.put([self.ready(index, value, word)])
        else:
            self._store_one_by_one(index, value, word)

    def ready(self, index, value, word):
        """(instruction, address, offset, vector) that store a Value at neighboring positions."""
        e, how = None, "v128.store"
        if size(word) == 1:
            how = "v128.store_8"
            if self.lanes != 4:
                from ..levels import saturating

                e = saturating(self, value, word)
                how = how if e is None else "v128.store_" + word
        if e is None:
            e = self.vector(value)
        if value.type == "bool":
            e = op("v128.and", e, i32x4(1))
        at, offset = self.address("out", index, word)
        return how, at, offset, self.f.let(e)

    def put(self, stores):
        """Write what some calls of `ready` gave for vectors that follow each other."""
        first = stores[0]
        if len(stores) == 2 and first[0] in ("v128.store_i8", "v128.store_u8"):
            stores = [("v128.store_two_" + first[0][-2:], first[1], first[2], first[3], stores[1][3])]
        for how, at, offset, *vectors in stores:
            if how == "v128.store_8" and self.lanes == 4:
                packed = op("i8x16.shuffle", vectors[0], vectors[0], imm=_FIRST_BYTES)
                self.f.do(memory("v128.store32_lane", at, packed, offset=offset, lane=0))
            else:
                self.f.do(memory(how, at, *vectors, offset=offset))

    def _store_one_by_one(self, index, value, word):
        e = self.vector(value)
        if value.type == "bool":
            e = op("v128.and", e, i32x4(1))
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


def _const_four(value):
    if is_open(value.attr):
        return splat(const(value), value.type)
    if value.type == "f32":
        return f32x4(float(value.attr))
    return i32x4((-1 if value.attr else 0) if value.type == "bool" else int(value.attr))


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
