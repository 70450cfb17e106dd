"""Differential fuzzing: random cases on which several implementations must agree; a difference is shrunk to a short
program.

    python3 dev.py fuzz                          every kind, one after the other, for ten minutes
    python3 dev.py fuzz models --minutes 60      one kind for an hour
    python3 dev.py fuzz models --seed 7 --first 123 --count 1     one case again, by the numbers that were printed

**To add a kind**, put a module into kinds/, named as the kind; the first line of its docstring says what it compares.
It defines

    NEEDS = ("gpu-driver",)              names of tools.components without which it cannot run; may be empty
    def draw(choose): ...                a random case, from a random.Random and nothing else; None: draw again
    def difference(case): ...            "" where all implementations agree, else one paragraph: which gives what def
    simpler(case): ...               an iterable of simpler cases, the boldest first; they need not be valid
    def program(case): ...               a short Python program that shows the difference, as text

A case is any object. `draw` depends on no clock, hash or set order, so that a seed identifies a case. `difference`
turns what an implementation raises into a difference (or into "" where raising is right), and raises itself only for a
mistake of its own. Shrinking keeps a simpler case whose difference is not "".

Each kind's own docstring says what is compared and how tolerances are chosen.
"""
