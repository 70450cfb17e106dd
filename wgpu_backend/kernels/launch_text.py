"""What the text of a kernel of your own says: its bindings, which one it writes, and whether it writes all of it."""

from emberlet.errors import BackendError

from ..render.arrays import declaration

_OPERATORS = ("<<=", ">>=")
_COMPOUND = ("++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=")
_PAIRS = _COMPOUND + ("==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "->")
_ASSIGN = _COMPOUND + _OPERATORS + ("=",)
_READERS = ("arrayLength", "atomicLoad")  # functions that take a pointer and do not write through it


def is_name(character):
    """Whether the character belongs to an identifier."""
    return character.isalpha() or character.isdigit() or character == "_"


def tokens(text):
    """The tokens of a WGSL text without its comments: (token, start)."""
    out = []
    at = 0
    while at < len(text):
        character = text[at]
        if text[at : at + 2] == "//":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text[at : at + 2] == "/*":
            at = _comment(text, at)
        elif character in " \t\r\n":
            at += 1
        else:
            end = at + 1
            if is_name(character):
                while end < len(text) and is_name(text[end]):
                    end += 1
            elif text[at : at + 3] in _OPERATORS:
                end = at + 3
            elif text[at : at + 2] in _PAIRS:
                end = at + 2
            out.append((text[at:end], at))
            at = end
    return out


def _comment(text, at):
    """Where a block comment at `at` ends; they nest."""
    depth = 0
    while at < len(text):
        two = text[at : at + 2]
        depth += 1 if two == "/*" else -1 if two == "*/" else 0
        at += 2 if two in ("/*", "*/") else 1
        if not depth:
            break
    return at


class Binding:
    """A declared array: group and binding as in the text, access, name, type, and the part of the text."""

    def __init__(self, place, access, name, type, start, end):
        self.place = place
        self.access = access
        self.name = name
        self.type = type
        self.start = start
        self.end = end


def bindings(kernel, text, words):
    """The Bindings of a text, in the order of their numbers. Raises BackendError for resources that are no storage
    buffers of group 0. words: its tokens."""
    found = []
    depth = 0
    start = None  # of the attributes before a declaration
    for i in range(len(words)):
        word = words[i][0]
        depth += 1 if word == "{" else -1 if word == "}" else 0
        if depth:
            start = None
        elif word == "@":
            start = i if start is None else start
        elif word in (";", "fn"):
            start = None
        elif word == "var" and start is not None:
            found.append(_binding(kernel, text, words, start, i))
            start = None
    return sorted(found, key=lambda b: b.place)


def _binding(kernel, text, words, start, at):
    place = [None, None]
    for i in range(start, at - 3):
        if words[i][0] == "@" and words[i + 1][0] in ("group", "binding"):
            place[words[i + 1][0] == "binding"] = int(words[i + 3][0].rstrip("iu"))
    i = at + 1
    kind = []
    while words[i][0] != ">":
        if words[i][0] not in "<,":
            kind.append(words[i][0])
        i += 1
    name = words[i + 1][0]
    end = i
    while words[end][0] != ";":
        end += 1
    if place[0] != 0 or place[1] is None or not kind or kind[0] != "storage":
        raise BackendError(
            "kernel {} declares {}, which is no storage buffer of group 0: pass numbers in a tensor".format(
                kernel, name
            )
        )
    type = text[words[i + 3][1] : words[end][1]].strip()
    access = kind[1] if len(kind) > 1 else "read"
    return Binding(place[1], access, name, type, words[start][1], words[end][1] + 1)


def written(words, names):
    """Those of the names that the text may write to."""
    found = []
    for i in range(len(words)):
        name = words[i][0]
        if name in names and name not in found and (_is_assigned(words, i) or _is_lent(words, i)):
            found.append(name)
    return found


def _is_assigned(words, at):
    """Whether an assignment's left side begins at `at`: a name with indices and members."""
    at += 1
    while at < len(words):
        word = words[at][0]
        if word == ".":
            at += 2
        elif word == "[":
            depth = 1
            while depth:
                at += 1
                depth += {"[": 1, "]": -1}.get(words[at][0], 0)
            at += 1
        else:
            return word in _ASSIGN
    return False


def _is_lent(words, at):
    """Whether a pointer to the name at `at` is given to something that may write through it."""
    while at and words[at - 1][0] == "(":
        at -= 1
    if at < 2 or words[at - 1][0] != "&":
        return False
    before = words[at - 2][0]
    if before in (")", "]") or (is_name(before[0]) and before != "return"):
        return False  # the operator "and"
    return not (before == "(" and at > 2 and words[at - 3][0] in _READERS)


def arranged(kernel, text, count, result=None):
    """(the text with its bindings renumbered: the `count` inputs in their order, then the result; the result's name).

    The result is the binding that the kernel writes to. Inputs, which other tensors may share, become read-only. Raises
    BackendError if the kernel writes to an input or to nothing, or declares another number of bindings. result: its
    name, if known.
    """
    words = tokens(text)
    found = bindings(kernel, text, words)
    names = [b.name for b in found]
    for name in names:
        if len([w for w, _ in words if w == name]) < 2:
            raise BackendError(
                "kernel {} declares {} but does not use it, so WebGPU has no place to bind it".format(kernel, name)
            )
    if len(names) != count + 1:
        raise BackendError(
            "kernel {} declares {} bindings; it has {} inputs and a result".format(kernel, len(names), count)
        )
    writes = written(words, names)
    if not writes:
        raise BackendError("kernel {} writes no result: it assigns to none of {}".format(kernel, ", ".join(names)))
    if len(writes) > 1 or (result is not None and writes != [result]):
        raise BackendError(
            "kernel {} writes to {}; it may write to its result alone, since other tensors may share its inputs".format(
                kernel, " and ".join(writes)
            )
        )
    order = [b for b in found if b.name != writes[0]] + [b for b in found if b.name == writes[0]]
    for b in sorted(found, key=lambda b: -b.start):
        atomic = b.name == writes[0] or "atomic" in b.type
        text = text[: b.start] + _declared(b, order.index(b), atomic, text) + text[b.end :]
    return text, writes[0]


def _declared(b, number, writable, text):
    access = "read_write" if writable else "read"
    element = b.type[b.type.find("<") + 1 : b.type.rfind(">")].strip()
    line = declaration(number, access, b.name, element)
    if not b.type.startswith("array"):
        line = line[: line.index(": array<")] + ": " + b.type + ";"
    return line + "\n" * text[b.start : b.end].count("\n")  # later lines keep their numbers in messages


def covers(text, result, flat, count):
    """Whether the text shows that every element of the result is assigned: invocation `i`, numbered by the text `flat`,
    assigns to result[i] if i < `count` or more, with no way around it."""
    words = [w for w, _ in tokens(text)]
    let = ["let", None, "="] + [w for w, _ in tokens(flat)] + [";"]
    start = _find(words, ["fn", "main"], 0)
    if start < 0 or "{" not in words[start:]:
        return False
    at = words.index("{", start) + 1
    i = words[at + 1] if at + 1 < len(words) else ""
    let[1] = i
    if words[at : at + len(let)] != let:
        return False
    at += len(let)
    test = words[at : at + 6]  # if ( i < 8u )
    inside = test[:4] == ["if", "(", i, "<"]
    if (not inside and test[:4] != ["if", "(", i, ">="]) or test[5:] != [")"] or not _reaches(test[4], count):
        return False
    at += 6
    if not inside:
        if words[at : at + 4] != ["{", "return", ";", "}"]:
            return False
        at += 4
    elif words[at] != "{":
        return False
    else:
        at += 1
    return _assigns(words, at, [result, "[", i, "]", "="])


def _reaches(number, count):
    digits = number.rstrip("iu")
    return digits.isdigit() and int(digits) >= count


def _assigns(words, at, assignment):
    """Whether the block at `at` holds the assignment as a statement of its own, which nothing skips."""
    depth = 0
    while at < len(words) and depth >= 0:
        word = words[at]
        if word in ("return", "discard"):
            return False
        if not depth and words[at : at + len(assignment)] == assignment and words[at - 1] in ("{", "}", ";"):
            return True
        depth += 1 if word == "{" else -1 if word == "}" else 0
        at += 1
    return False


def _find(words, part, at):
    for i in range(at, len(words) - len(part) + 1):
        if words[i : i + len(part)] == part:
            return i
    return -1
