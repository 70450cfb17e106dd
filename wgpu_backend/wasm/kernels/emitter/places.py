"""The loops, blocks and branches that code is written into, and the outermost of them in which something can be
computed."""

from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open, least

from ...assembler import E, alternating, i32, op, unsigned_min


class Scope:
    """values: what has been computed in one loop, block or branch; end: the function that closes it, or None."""

    def __init__(self, end):
        self.values = {}
        self.end = end


class Places:
    """Writes into a Function whose parameters are the addresses of `slots` and of the result.

    addresses: slot number -> expression of its tensor's address. lane: the name of the lane counter, or None. lanes:
    the numbers in a vector; aligned: whether the lane counter is a multiple of these; by_one: whether some code
    computes them one by one.
    """

    def __init__(self, function, slots):
        self.f = function
        self.slots = slots
        self.addresses = {}
        self.counters = {}  # name -> (expression, number of its scope)
        self.variables = {}  # name -> (expression, number of its scope, whether it is a vector)
        self.lane = None
        self.lanes = function.lanes
        self.aligned = False
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

    def beside(self, writes):
        """Call each of some functions in a block of its own. With vectors longer than four, what these wrote alternates
        step by step, so that a processor has several chains of operations at once within the few that it looks at."""
        parts = []
        for write in writes:
            self._open(parts.append)
            write()
            self.close()
        self.f.code.extend(alternating(parts) if self.lanes > 4 else [c for part in parts for c in part])

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
        return Places._At(self, level)

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
                step = self._step(atom, name)
                if step is None:
                    return None
                out += step * c
        return out

    def _step(self, atom, name):
        """By how much an atom grows with a step of a counter, 0 or 1; None if that is not the same for all steps, those
        within a vector if the counter is a multiple of its length."""
        if atom.kind != "digit":
            return None
        base, _, div, mod = atom.payload
        if known_equal((div, mod), (1, 0)):
            return 1
        if not self.aligned or base != name or name != self.lane or is_open(div) or is_open(mod):
            return None
        if div % self.lanes == 0:
            return 0
        return 1 if div == 1 and mod % self.lanes == 0 else None


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
