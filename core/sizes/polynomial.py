"""Polynomials in a plan's open sizes, and their values in a call.

A saved plan needs nothing else of this package, so this file is small: it also runs under Pyodide and MicroPython.
"""


class Polynomial:
    """An immutable polynomial. terms: {atoms, as a sorted tuple: integer coefficient}, none of them 0."""

    __slots__ = ("terms",)

    def __init__(self, terms):
        self.terms = terms

    def at(self, values):
        """Its value, given those of the atoms."""
        total = 0
        for atoms, c in self.terms.items():
            for a in atoms:
                c *= values[a]
            total += c
        return total


def at(n, values):
    """The value of a number or a Polynomial, given those of the atoms."""
    return n if type(n) is int else n.at(values)


def atom_values(atoms, numbers):
    """The values of atoms. atoms: for each a key of `numbers`, or ("//" or "max", a, b) of Polynomials in earlier ones.
    A quotient by 0 is 0."""
    out = []
    for atom in atoms:
        if type(atom) is not tuple:
            out.append(numbers[atom])
            continue
        a, b = at(atom[1], out), at(atom[2], out)
        out.append(max(a, b) if atom[0] == "max" else a // b if b else 0)
    return out


def broken(guards, values):
    """The first guard that does not hold for these values of the atoms; None if all hold. guards: list of (Polynomial,
    relation, answer, why): `polynomial < 0` or `polynomial == 0` has to be `answer`."""
    for guard in guards:
        value = guard[0].at(values)
        if (value < 0 if guard[1] == "<" else value == 0) != guard[2]:
            return guard
    return None
