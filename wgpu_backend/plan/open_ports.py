"""The open sizes of a saved plan: how the file describes them, and how a call's inputs determine them.

In the file, a number that depends on them is a list of terms, [[coefficient, atom, …], …] (counts.py). The entry
"sizes" holds "symbols", [[name, lowest, highest]]; "atoms", each the index of a symbol or ["//" or "max", number,
number]; "block", the numbers that kernels read; and "guards", [[number, "<" or "==", answer]], where an
assumed answer is followed by the function that assumes it.
"""

from emberlet.sizes.arithmetic import plus, scaled, times
from emberlet.sizes.polynomial import Polynomial, at

from .counts import Counts
from .port import MAX_BYTES, Port, called

MAX_SYMBOLS = 64
MAX_TERMS = 64
MAX_FACTOR = 1 << 40
MAX_VALUE = 1 << 128  # that a size may have in a call: without a limit, atoms of atoms grow without end


class OpenPort:
    """An input or output with open axes. lengths: numbers and Polynomials; shape: the same, with texts for
    Polynomials."""

    def __init__(self, name, dtype, lengths, buffer, counts):
        self.name = name
        self.dtype = dtype
        self.lengths = lengths
        self.shape = tuple([d if type(d) is int else as_text(d, counts) for d in lengths])
        self.buffer = buffer
        self.length = None

    def closed(self, values):
        """The Port with these values of the atoms."""
        port = Port(self.name, self.dtype, tuple([at(d, values) for d in self.lengths]), self.buffer)
        if self.length is not None:
            port.length = at(self.length, values)
        return port

    def words(self):
        """Bytes of the elements, one per word, as a Polynomial."""
        terms = {(): 4}
        for d in self.lengths:
            terms = scaled(terms, d) if type(d) is int else times(terms, d.terms)
        return Polynomial(terms)

    def __repr__(self):
        return "{}: {} ({}{})".format(
            self.name, self.dtype, ", ".join([str(d) for d in self.shape]), "," if len(self.shape) == 1 else ""
        )


def closed(port, values):
    """The Port of a call with these values of the atoms. One without open axes may index an open one."""
    if hasattr(port, "closed"):
        return port.closed(values)
    if port.length is None or type(port.length) is int:
        return port
    found = Port(port.name, port.dtype, port.shape, port.buffer)
    found.length = at(port.length, values)
    return found


def as_text(count, counts, left=None):
    """A Polynomial in words: "past + 1". left: [how many terms are still written, those of atoms included]."""
    parts = []
    left = left or [MAX_TERMS]
    for term in sorted(count.terms, key=lambda atoms: (-len(atoms), atoms)):
        if not left[0]:
            parts.append("…")
            break
        left[0] -= 1
        c = count.terms[term]
        names = [] if c == 1 and term else [str(c)]
        for a in term:
            atom = counts.atoms[a]
            if type(atom) is not int and atom[0] == "//" and atom[2] == c and type(atom[1]) is not int:
                names = [as_text(atom[1], counts, left)]  # 64 * (length // 64), for a length that is a multiple of 64
                continue
            names.append(counts.symbols[atom][0] if type(atom) is int else "…")
        parts.append(" * ".join(names))
    return " + ".join(parts)


# -- reading ------------------------------------------------------------------------------------------------------


def read_counts(content):
    """The Counts of a plan's "sizes". Raises ValueError if they are malformed."""
    if not isinstance(content, dict):
        raise ValueError("the sizes are not an object")
    symbols = [_symbol(found) for found in _list(content.get("symbols"), MAX_SYMBOLS)]
    counts = Counts(symbols, [], [], [])
    counts.most = []  # the largest magnitude of each atom
    for found in _list(content.get("atoms")):
        if _is_whole(found) and 0 <= found < len(symbols):
            counts.atoms.append(found)
            counts.most.append(symbols[found][2])
        elif isinstance(found, list) and len(found) == 3 and found[0] in ("//", "max"):
            atom = (found[0], read_number(found[1], counts), read_number(found[2], counts))
            counts.atoms.append(atom)
            most, other = _most(atom[1], counts), _most(atom[2], counts)
            if atom[0] == "//":
                most = most // abs(atom[2]) + 1 if type(atom[2]) is int and atom[2] else most
            counts.most.append(max(most, other) if atom[0] == "max" else most)
        else:
            raise ValueError("a size has an atom that is no symbol, quotient or maximum")
    if [a for a in counts.atoms if type(a) is int] != list(range(len(symbols))) or not symbols:
        raise ValueError("each symbol must occur exactly once among the atoms")
    counts.block = [read_number(n, counts) for n in _list(content.get("block"))]
    counts.guards = [_guard(found, counts) for found in _list(content.get("guards"))]
    return counts


def _symbol(found):
    """The (name, lowest, highest) of an open size."""
    if not isinstance(found, list) or len(found) != 3 or not isinstance(found[0], str):
        raise ValueError("a symbol is not a name and two numbers")
    name, low, high = found
    if not _is_whole(low) or not _is_whole(high) or not 0 <= low <= high <= MAX_BYTES:
        raise ValueError("the size {!r} cannot range from {} to {}".format(name, low, high))
    return name, low, high


def _guard(found, counts):
    """The (number, relation to 0, its answer, why) of a guard."""
    if not isinstance(found, list) or len(found) not in (3, 4):
        raise ValueError("a guard is not a number, a relation and an answer")
    why = found[3] if len(found) == 4 else ""
    if found[1] not in ("<", "==") or type(found[2]) is not bool or not isinstance(why, str):
        raise ValueError("a guard is not a number, a relation and an answer")
    guarded = read_number(found[0], counts)
    if type(guarded) is int:
        raise ValueError("a guard depends on no size")
    return guarded, found[1], found[2], why


def read_number(found, counts):
    """A number, or a Polynomial in the atoms read so far."""
    if _is_whole(found):
        return found
    terms = {}
    for term in _list(found, MAX_TERMS):
        if not isinstance(term, list) or not 1 <= len(term) <= 9 or not _is_whole(term[0]):
            raise ValueError("a term of a size is not a list of numbers")
        for a in term[1:]:
            if not _is_whole(a) or not 0 <= a < len(counts.atoms):
                raise ValueError("a size depends on an unknown atom {!r}".format(a))
        terms = plus(terms, {tuple(sorted(term[1:])): term[0]})
    number = Polynomial(terms)
    if _most(number, counts) > MAX_VALUE:
        raise ValueError("a size may become larger than any")
    return number


def _most(number, counts):
    """What a number's magnitude is at most."""
    if type(number) is int:
        return abs(number)
    total = 0
    for term in number.terms:
        c = abs(number.terms[term])
        for a in term:
            c *= counts.most[a]
        total += c
    return total


def _is_whole(n):
    return isinstance(n, int) and not isinstance(n, bool) and -MAX_FACTOR <= n <= MAX_FACTOR


def _list(found, most=100000):
    if not isinstance(found, list) or len(found) > most:
        raise ValueError("the plan's sizes contain something other than a list, or a list that is too long")
    return found


# -- the sizes of a call ------------------------------------------------------------------------------------------


class OtherSizes(ValueError):
    """The plan does not serve the sizes of a call."""


def sizes_of(counts, ports, given, last=None):
    """The values of the symbols, as a tuple, from the inputs of a call: arrays with a shape, or bytes. last: those of
    the previous call, whose inputs are reused where None is given. Raises ValueError if the inputs do not fit,
    OtherSizes if the plan does not serve their sizes."""
    equations = _equations(ports, given)
    known = _known(counts, [e for e in equations if type(e[0]) is not int])
    for i in range(len(last or ())):
        known.setdefault(i, last[i])
    missing = [counts.symbols[i][0] for i in range(len(counts.symbols)) if i not in known]
    if missing:
        raise ValueError("needs an input that determines {}".format(missing[0]))
    sizes = tuple([known[i] for i in range(len(counts.symbols))])
    if last is not None and sizes != last:
        for i in range(len(ports)):
            if given[i] is None and hasattr(ports[i], "lengths"):
                raise ValueError("kept {} from a call with other sizes; pass it again".format(ports[i]))
    values = counts.values(sizes)
    refusal = counts.refusal(sizes, values)
    if refusal:
        raise OtherSizes("was made for other sizes: " + refusal)
    for count, wanted, port in equations:
        if at(count, values) != wanted:
            port = closed(port, values)
            raise ValueError("takes {} where {}".format(port, _named(counts, sizes)))
    return sizes


def _equations(ports, given):
    """[(a number or Polynomial, its value, the port)] of a call's inputs."""
    out = []
    for i in range(len(ports)):
        if given[i] is None:
            continue
        port = ports[i]
        lengths = getattr(port, "lengths", None) or port.shape
        shape = getattr(given[i], "shape", None)
        if shape is not None and len(shape) == len(lengths):
            out.extend([(lengths[k], shape[k], port) for k in range(len(shape))])
        elif hasattr(port, "lengths"):
            n = bytes_of(given[i], port) if shape is None else shape[0]
            if shape is None:
                n = n * 8 // port.dtype.bits
            out.append((port.words(), 4 * n, port))
    return out


def _known(counts, waiting):
    """{symbol: its value}, where equations of one unknown symbol each tell it."""
    known = {}
    while waiting:
        left = []
        for count, wanted, port in waiting:
            unknown = [s for s in counts.depends(count) if s not in known]
            if len(unknown) == 1:
                known[unknown[0]] = _solved(counts, count, wanted, unknown[0], known, port)
            elif unknown:
                left.append((count, wanted, port))
        if len(left) == len(waiting):
            raise ValueError("cannot tell the shape of {} from bytes: pass an array".format(left[0][2]))
        waiting = left
    return known


def bytes_of(data, port):
    """The number of bytes of an input. Raises ValueError if it is neither an array nor bytes."""
    try:
        return len(memoryview(data))
    except TypeError:
        raise ValueError("takes an array or bytes for {}, but got {}".format(port, called(data)))


def _named(counts, sizes):
    return " and ".join(["{} is {}".format(counts.symbols[i][0], sizes[i]) for i in range(len(sizes))])


def _solved(counts, count, wanted, symbol, known, port):
    """The value of a symbol for which a Polynomial, which grows with it, equals `wanted`."""
    name, low, high = counts.symbols[symbol]
    first, last = low, high
    while low < high:
        middle = (low + high) // 2
        trial = [known.get(i, 0) for i in range(len(counts.symbols))]
        trial[symbol] = middle
        if count.at(counts.values(tuple(trial))) < wanted:
            low = middle + 1
        else:
            high = middle
    trial = [known.get(i, 0) for i in range(len(counts.symbols))]
    trial[symbol] = low
    if count.at(counts.values(tuple(trial))) != wanted:
        raise ValueError("takes {} with {} between {} and {}, but got another size".format(port, name, first, last))
    return low
