"""Every form of statement, a little shorter and a little longer than its lines may be, is laid out as recorded.

`UPDATE_SNAPSHOTS=1 pytest FILE` records it again after a deliberate change; `lines(form, length)` is one of them.
"""

from __future__ import annotations

import hashlib
from itertools import groupby
from pathlib import Path

import pytest
from emberlet.codegen.emit.expression import WIDTH
from emberlet.codegen.emit.layout import laid_out
from emberlet.codegen.emit.module import defined, docstring
from emberlet.codegen.emit.statement import render
from support.expressions import block
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "snapshots" / "line_lengths.txt"

FORMS = """
x = f(A, BB)
x = f(key=A, other=B)
x = f(g(A, B), key=B)
x = f.a.b(A).c(B)
x = f(A)[0].c(B, 1)
x = A[B]
x = A[B, :, 1]
x = f(A)[B, 0]
x = A[f(B, A), g(B, key=A)]
x = A[f(B, A):, 1]
x = A[f(B):]
x = A[:f(B)]
x = A[f(B):g(A):2]
x = A + B
x = f(A) + g(B)
x = f(A, B) @ g(B)
x = f(A) * (g(B) + A)
x = -f(A, B)
x = -(A + f(B))
x = A if f(B) else f(A)
x = f(A, B) if A else B
self.a = f(A, B) if p else None
self.a = f(A, B)
x = (f(A), B)
x = [f(A), B]
x = [f(A), B] + [f(B)]
x = [f(A, B)] + [f(A) for n in range(B)]
x = [f(n, A) for n in g(B)]
x = tuple(f(n, A) for n in g(B))
x, y = f(A), B
x, y = f(A, B)
x += f(A, B)
x = f(A).shape[0]
x = f(A < B, g(A)).attribute
x = {1: f(A), 2: B}
self.a = {1: f(A), 2: g(A, B)}
x = "A"
f(A, B)
f(A).append(g(B))
return f(A, B)
return f(A), B
return f(A), g(B), A
return A + f(B)
return [f(A, B)] + [f(B)]
f([g(A)] + [f(B), A])
x = [f(A)] + [B, A] + [f(B)]
if f(A, B): y = 1
if A < f(B): y = f(B)
while A: x = f(A, B)
for n in f(A, B): x = n
for n, m in zip(f(A), B): x = g(n, A, B)
def g(p): return f(A, B)
del a
""".strip().splitlines()
BLOCKS = {  # a form in a block
    "plain": "{}", "then": "if p:\n    {}\n    y = p", "otherwise": "if p:\n    y = p\nelse:\n    {}",
    "loop": "for q in p:\n    {}", "while": "while p:\n    {}", "inner": "def h(q):\n    {}",
    "deep": "for q in p:\n    if q:\n        {}",
}  # fmt: skip


def lines(form: str, length: int, around: str = "plain", indent: int = 8) -> list[str]:
    """The lines of a form whose names are so long that it would take a line of this length."""
    room = length - indent - len(form) + form.count("A") + form.count("B")
    for long in range(1, WIDTH):
        text = form.replace("A", "a" * long).replace("B", "b" * max(1, long // 2))
        if len(text) - len(form) + form.count("A") + form.count("B") >= room:
            break
    source = BLOCKS[around].replace("{}", text)
    return render(laid_out(block(source), indent), indent)


def digests(made: list[tuple[int, list[str]]]) -> str:
    """The lengths for which the same number of lines was made, and a digest of all of them."""
    out = []
    for count, group in groupby(made, key=lambda pair: len(pair[1])):
        held = list(group)
        text = "\n".join(line for _, found in held for line in found)
        out.append(f"{held[0][0]}: {count} ({hashlib.sha256(text.encode()).hexdigest()[:6]})")
    return ", ".join(out)


@pytest.mark.parametrize("around", BLOCKS)
def test_statements_are_laid_out_as_recorded(around: str) -> None:
    said = []
    for form in FORMS:
        if around != "plain" and form.startswith("def"):
            continue
        more = range(WIDTH + 6, 240, 3 if around == "plain" else 30)
        made = [(n, lines(form, n, around)) for n in (*range(WIDTH - 14, WIDTH + 6), *more)]
        said.append(f"{form}: {digests(made)}")
    assert_recorded(RECORDED, around, "\n".join(said))


def test_heads_of_methods_and_docstrings_are_laid_out_as_recorded() -> None:
    said = []
    for count in (1, 2, 7):
        made = [(n, defined("forward", ["self", *(["x" * ((n - 20) // count)] * count)])) for n in range(60, 100)]
        said.append(f"{count} parameters: {digests(made)}")
    texts = [["a"], ['"a"'], ["a\\"], ["a", "b"], ['"a', 'b"'], ["", "a"], ["a", "", "b"]]
    said += [f"{text}: {docstring(text, 4)}" for text in texts]
    assert_recorded(RECORDED, "heads and docstrings", "\n".join(said))
