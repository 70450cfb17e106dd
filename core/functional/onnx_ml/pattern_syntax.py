"""RE2's syntax of regular expressions as a program for nfa.py: a list of instructions, the last one MATCH.

(CHAR, negated, ranges of code points), (SPLIT, offset, offset), (JUMP, offset), and assertions.
"""

CHAR, SPLIT, JUMP, MATCH, FIRST, LAST, BEGIN, END, BORDER, NO_BORDER = range(10)
MOST = 10000  # instructions
REPEATS = 1000  # the most that {m,n} may say, as in RE2
DEPTH = 100  # groups within groups
LAST_CODE = 0x10FFFF

_DIGIT = [(48, 57)]
_SPACE = [(9, 10), (12, 13), (32, 32)]
_LOWER, _UPPER = [(97, 122)], [(65, 90)]
_WORD = _DIGIT + _LOWER + _UPPER + [(95, 95)]
_CLASSES = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_POSIX = {
    "alnum": _DIGIT + _LOWER + _UPPER, "alpha": _LOWER + _UPPER, "ascii": [(0, 127)], "blank": [(9, 9), (32, 32)],
    "cntrl": [(0, 31), (127, 127)], "digit": _DIGIT, "graph": [(33, 126)], "lower": _LOWER, "print": [(32, 126)],
    "punct": [(33, 47), (58, 64), (91, 96), (123, 126)], "space": [(9, 13), (32, 32)], "upper": _UPPER, "word": _WORD,
    "xdigit": _DIGIT + [(65, 70), (97, 102)],
}  # fmt: skip
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ASSERTIONS = {"A": FIRST, "z": LAST, "b": BORDER, "B": NO_BORDER}


def program(pattern):
    """The instructions of a pattern. Raises ValueError."""
    parser = _Parser(pattern)
    found = parser.alternatives(0)
    if parser.at < len(pattern):
        raise ValueError("unexpected ): " + pattern[parser.at :][:20])
    return found + [(MATCH,)]


def _complement(ranges):
    out, low = [], 0
    for first, last in sorted(ranges):
        if first > low:
            out.append((low, first - 1))
        low = max(low, last + 1)
    return out + ([(low, LAST_CODE)] if low <= LAST_CODE else [])


class _Parser:
    def __init__(self, pattern):
        self.pattern = pattern
        self.at = 0
        self.flags = ""

    def peek(self):
        return self.pattern[self.at : self.at + 1]

    def take(self):
        c = self.peek()
        if not c:
            raise ValueError("it ends too early")
        self.at += 1
        return c

    def alternatives(self, depth):
        """`a|b|c` up to a closing parenthesis or the end; flags set within end with it."""
        if depth > DEPTH:
            raise ValueError("its groups nest deeper than {}".format(DEPTH))
        before, branches = self.flags, [self.sequence(depth)]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.sequence(depth))
        self.flags = before
        out = branches.pop()
        while branches:
            one = branches.pop()
            out = self.checked([(SPLIT, 1, len(one) + 2)] + one + [(JUMP, len(out) + 1)] + out)
        return out

    def sequence(self, depth):
        parts, size = [], 0
        while self.peek() not in ("", "|", ")"):
            parts += self.atoms(depth)
            if self.peek() in ("*", "+", "?", "{"):
                if parts:
                    parts.append(self.repeated(parts.pop()))
                elif self.peek() != "{":
                    raise ValueError("no argument for the repetition " + self.peek())
            size += len(parts[-1]) if parts else 0
            self.checked([None] * min(size, MOST + 1))
        return [i for part in parts for i in part]

    def checked(self, instructions):
        if len(instructions) > MOST:
            raise ValueError("it takes more than {} steps: pip install google-re2".format(MOST))
        return instructions

    # -- repetition ----------------------------------------------------------------------------------------------------

    def repeated(self, one):
        counted = False
        while True:
            c = self.peek()
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(c, (0, 0))
            if c and c in "*+?":
                self.at += 1
            elif c == "{":
                found = self.counts()
                if found is None:
                    return one
                low, high = found
            else:
                return one
            if counted:
                raise ValueError("a repetition of a repetition")
            if self.peek() == "?":  # lazy or not, the longest match counts
                self.at += 1
            one, counted = self.times(one, low, high), True

    def counts(self):
        """(least, most or None) of "{m}", "{m,}" or "{m,n}" here; None if the brace stands for itself."""
        end = self.pattern.find("}", self.at)
        parts = self.pattern[self.at + 1 : end].split(",") if end > 0 else []
        if (
            not 1 <= len(parts) <= 2
            or not _number(parts[0])
            or (len(parts) == 2 and parts[1] and not _number(parts[1]))
        ):
            return None
        self.at = end + 1
        low = int(parts[0])
        high = low if len(parts) == 1 else int(parts[1]) if parts[1] else None
        if low > REPEATS or (high is not None and not low <= high <= REPEATS):
            raise ValueError("a bad repetition: {" + ",".join(parts) + "}")
        return low, high

    def times(self, one, low, high):
        self.checked([None] * min((len(one) + 1) * max(low, high or 0, 1), MOST + 1))
        out = one * low
        if high is None:
            if low:
                return out + [(SPLIT, -len(one), 1)]
            return [(SPLIT, 1, len(one) + 2)] + one + [(JUMP, -len(one) - 1)]
        rest = (len(one) + 1) * (high - low)
        for i in range(high - low):
            out = out + [(SPLIT, 1, rest - i * (len(one) + 1))] + one
        return out

    # -- atoms ---------------------------------------------------------------------------------------------------------

    def atoms(self, depth):
        """The parts that follow: none of flags, one for each character of a quotation, else one."""
        if self.pattern[self.at : self.at + 2] == "\\Q":
            end = self.pattern.find("\\E", self.at)
            text = self.pattern[self.at + 2 : end if end > 0 else len(self.pattern)]
            self.at = end + 2 if end > 0 else len(self.pattern)
            return [self.characters([(ord(c), ord(c))]) for c in text]
        if self.peek() == "(":
            self.at += 1
            group = self.group(depth)
            return [] if group is None else [group]
        return [self.atom()]

    def atom(self):
        c = self.take()
        if c == "[":
            return self.bracket()
        if c == ".":
            return [(CHAR, False, [(0, LAST_CODE)] if "s" in self.flags else _complement([(10, 10)]))]
        if c == "^":
            return [(BEGIN if "m" in self.flags else FIRST,)]
        if c == "$":
            return [(END if "m" in self.flags else LAST,)]
        if c == "\\":
            return self.escaped()
        if c == "{":
            self.at -= 1
            if self.counts() is None:
                self.at += 1
                return self.characters([(123, 123)])
        if c in "*+?{":
            raise ValueError("no argument for the repetition " + c)
        return self.characters([(ord(c), ord(c))])

    def group(self, depth):
        before = self.flags
        if self.peek() == "?":
            self.at += 1
            if self.peek() in ("P", "<"):
                end = self.pattern.find(">", self.at)
                name = self.pattern[self.at : max(end, 0)]
                name = name[1:] if name[:1] == "P" else name
                if name[:1] != "<" or not name[1:] or not all(c == "_" or c.isalpha() or c.isdigit() for c in name[1:]):
                    raise ValueError("an invalid group: lookaround is not supported")
                self.at = end + 1
            elif not self.flagged():
                return None  # the flags last to the end of the group around
        inner = self.alternatives(depth + 1)
        if self.peek() != ")":
            raise ValueError("a missing )")
        self.at += 1
        self.flags = before
        return inner

    def flagged(self):
        """Set the flags of "(?i)" or "(?i:"; whether a group follows."""
        on = True
        while True:
            c = self.take()
            if c == "-" and on:
                on = False
            elif c in "imsU":
                self.flags = self.flags.replace(c, "") + (c if on else "")
            elif c in ":)":
                return c == ":"
            else:
                raise ValueError("an invalid group: lookaround is not supported")

    def escaped(self):
        if self.peek() in _ASSERTIONS and self.peek():
            return [(_ASSERTIONS[self.take()],)]
        return self.characters(self.escape())

    def escape(self):
        """The ranges that an escape behind its backslash stands for."""
        c = self.take()
        if c in _CLASSES:
            return _CLASSES[c]
        if c.lower() in _CLASSES:
            return _complement(_CLASSES[c.lower()])
        if c == "x":
            digits = self.take()
            if digits == "{":
                end = max(self.pattern.find("}", self.at), self.at)
                digits, self.at = self.pattern[self.at : end], end + 1
            else:
                digits += self.take()
            if not digits or not all(d in "0123456789abcdefABCDEF" for d in digits) or int(digits, 16) > LAST_CODE:
                raise ValueError("an invalid escape \\x")
            return [(int(digits, 16),) * 2]
        if c == "0" or (c in "1234567" and self.peek() and self.peek() in "01234567"):
            digits = c
            while self.peek() and self.peek() in "01234567" and len(digits) < 3:
                digits += self.take()
            return [(int(digits, 8),) * 2]
        if c in _CONTROL:
            return [(_CONTROL[c],) * 2]
        if c.isdigit() or c.isalpha():
            raise ValueError("an escape that is not supported: \\" + c)
        return [(ord(c), ord(c))]

    def bracket(self):
        negated = self.peek() == "^"
        if negated:
            self.at += 1
        ranges, first = [], True
        while first or self.peek() != "]":
            first = False
            if self.pattern[self.at : self.at + 2] == "[:" and self.pattern.find(":]", self.at) > 0:
                ranges += self.posix()
                continue
            low = self.one()
            if len(low) == 1 and low[0][0] == low[0][1] and self.pattern[self.at : self.at + 1] == "-":
                if self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                    self.at += 1
                    high = self.one()
                    if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
                        raise ValueError("a range of characters that is none")
                    low = [(low[0][0], high[0][0])]
            ranges += low
        self.at += 1
        return self.characters(ranges, negated)

    def one(self):
        c = self.take()
        return self.escape() if c == "\\" else [(ord(c), ord(c))]

    def posix(self):
        end = self.pattern.find(":]", self.at)
        name = self.pattern[self.at + 2 : max(end, 0)]
        if name.lstrip("^") not in _POSIX:
            raise ValueError("a class of characters that is none: " + name[:20])
        self.at = end + 2
        found = _POSIX[name.lstrip("^")]
        return _complement(found) if name[:1] == "^" else found

    def characters(self, ranges, negated=False):
        if "i" in self.flags:
            ranges = ranges + _other_cases(ranges)
        return [(CHAR, negated, ranges)]


def _number(text):
    return 0 < len(text) < 5 and all("0" <= c <= "9" for c in text)


def _other_cases(ranges):
    """The upper and lower cases of characters; of long ranges only those in ASCII."""
    out = []
    for low, high in ranges:
        for code in range(low, high + 1 if high - low < 1024 else min(high, 127) + 1):
            for other in (chr(code).lower(), chr(code).upper()):
                if len(other) == 1 and ord(other) != code:
                    out.append((ord(other), ord(other)))
    return out
