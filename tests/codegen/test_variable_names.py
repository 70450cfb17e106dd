"""The names of a function's variables, which follow from the operations that compute and use them; and values without a
variable."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.codegen.emit.polish import polished
from emberlet.codegen.emit.statement import render
from emberlet.codegen.emit.variables import Hints
from support.expressions import block, statements
from support.rows import every

# what it shows, parameters; statements in which every value has a variable, and the same with names
CASES = [
    ("attention arguments", "p1 p2",
     "v1 = self.a(p1); v2 = self.b(v1); v3 = self.c(v2); v4 = F.attention(v1, v2, v3, p2); F.add(v4, v1, v2, v3)",
     "query = self.a(x); key = self.b(query); value = self.c(key); x = F.attention(query, key, value, mask); "
     "return F.add(x, query, key, value)"),
    ("softmax scores", "p1",
     "v1 = self.a(p1); v2 = self.b(p1); v3 = v1 @ v2; v4 = v3 / 8.0; v5 = F.softmax(v4); v6 = self.c(p1); "
     "v7 = v5 @ v6; F.add(v7, v1, v2, v3, v5, v6)",
     "query = self.a(x); key = self.b(x); scores = query @ key; weights = F.softmax(scores / 8.0); value = self.c(x); "
     "return F.add(weights @ value, query, key, scores, weights, value)"),
    ("softmax masked", "p1 p2",
     "v1 = self.a(p1); v2 = self.b(p1); v3 = v1 @ v2; v4 = F.where(p2, v3, 0.0); v5 = F.softmax(v4); "
     "F.add(v1, v2, v3, v4, v5)",
     "query = self.a(x); key = self.b(x); scores = query @ key; x = F.where(other, scores, 0.0); "
     "return F.add(query, key, scores, x, F.softmax(x))"),
    ("query reshaped", "p1",
     "v1 = self.a(p1); v2 = v1.reshape(1, 2); v3 = F.expand_dims(v2, 0); v4 = F.attention(v3, v3, v3); "
     "F.add(v1, v2, v3, v4)",
     "query = self.a(x); query2 = query.reshape(1, 2); query3 = F.expand_dims(query2, 0); "
     "return F.add(query, query2, query3, F.attention(query3, query3, query3))"),
    ("rotary", "p1 p2 p3 p4",
     "v1 = self.a(p1); v2 = F.rotary_embedding(v1, p2, p3); v3 = F.concat((p4, v2)); v4 = F.attention(v3, v3, v3); "
     "F.add(v1, v2, v3, v4)",
     "query = self.a(x); query2 = F.rotary_embedding(query, cos, sin); query3 = F.concat((skip, query2)); "
     "return F.add(query, query2, query3, F.attention(query3, query3, query3))"),
    ("gate used", "p1",
     "v1 = F.silu(self.a(p1)); v2 = v1 * self.b(p1); F.add(v1, v2)",
     "gate = F.silu(self.a(x)); return F.add(gate, gate * self.b(x))"),
    ("gate unused", "p1",
     "v1 = F.silu(self.a(p1)); v2 = self.b(v1); F.add(v1, v2)",
     "x = F.silu(self.a(x)); return F.add(x, self.b(x))"),
    ("sigmoid", "p1",
     "v1 = F.sigmoid(p1); v2 = self.b(v1); F.add(v1, v2)",
     "x = F.sigmoid(x); return F.add(x, self.b(x))"),
    ("residual parameter", "p1 p2",
     "v1 = self.a(p1) + p2; F.add(v1, p1, p2)",
     "return F.add(self.a(x) + residual, x, residual)"),
    ("residual first", "p1 p2",
     "v1 = self.a(p1) + p1; F.add(v1, p1, p2)",
     "return F.add(self.a(x) + x, x, other)"),
    ("ids", "p1 p2 p3",
     "v1 = self.word_embeddings(p1); v2 = self.position_embedding(p2); v3 = self.patch_embeddings(p3); "
     "F.add(v1, v2, v3, p1, p2, p3)",
     "word_embeddings = self.word_embeddings(words); hidden = self.position_embedding(positions); "
     "patch_embeddings = self.patch_embeddings(x); "
     "return F.add(word_embeddings, hidden, patch_embeddings, words, positions, x)"),
    ("boxes", "p1",
     "v1 = F.split(p1, 2); v2 = F.relu(p1); v3 = F.concat((v1 - v2, v1 + v2)); F.add(v3, v1, v2)",
     "center = F.split(x, 2); half_size = F.relu(x); "
     "return F.add(F.concat((center - half_size, center + half_size)), center, half_size)"),
    ("no boxes", "p1",
     "v1 = F.split(p1, 2); v2 = F.relu(p1); v3 = F.concat((v1 - v2, v2 + v1)); F.add(v3, v1, v2)",
     "part = F.split(x, 2); x = F.relu(x); return F.add(F.concat((part - x, x + part)), part, x)"),
    ("lengths", "p1",
     "v1 = self.a(p1); v2 = F.attention(p1, p1, p1, kv_lengths=v1); F.add(v1, v2)",
     "lengths = self.a(query); return F.add(lengths, F.attention(query, query, query, kv_lengths=lengths))"),
    ("angles", "p1",
     "v1 = self.a(p1); v2 = F.cos(v1); v3 = F.sin(v1); F.add(v1, v2, v3)",
     "angles = self.a(x); return F.add(angles, F.cos(angles), F.sin(angles))"),
    ("boxes scores", "p1",
     "v1 = self.a(p1); v2 = self.b(p1); v3 = F.non_max_suppression(v1, v2); F.add(v1, v2, v3)",
     "boxes = self.a(x); scores = self.b(x); return F.add(boxes, scores, F.non_max_suppression(boxes, scores))"),
    ("skip", "p1",
     "v1 = self.a(p1); v2 = self.b(v1); v3 = F.relu(v2); v4 = self.c(v3); v5 = F.relu(v4); v6 = F.concat((v1, v5)); "
     "F.add(v6, v6)",
     "a = self.a(x); x = F.relu(self.b(a)); joined = F.concat((a, F.relu(self.c(x)))); return F.add(joined, joined)"),
    ("no skip", "p1",
     "v1 = self.a(p1); v2 = self.b(v1); v6 = F.concat((v1, v2)); F.add(v6, v6)",
     "a = self.a(x); joined = F.concat((a, self.b(a))); return F.add(joined, joined)"),
    ("aside", "p1",
     "v1 = self.a(p1); v2 = self.deltas(p1); v3 = self.fc2(p1); F.add(v1, v2, v3, p1)",
     "return F.add(self.a(x), self.deltas(x), self.fc2(x), x)"),
    ("builtin", "p1",
     "v1 = self.len(p1); v2 = self.max(p1); F.add(v1, v2, v1, v2)",
     "len_value = self.len(x); x = self.max(x); return F.add(len_value, x, len_value, x)"),
    ("where scores", "p1 p2",
     'v1 = self.a(p1); v2 = v1 @ p1; v3 = F.where(p2, float("-inf"), v2); v4 = F.softmax(v3); F.add(v1, v2, v3, v4)',
     'query = self.a(key); scores = query @ key; scores2 = F.where(x, float("-inf"), scores); '
     "return F.add(query, scores, scores2, F.softmax(scores2))"),
    ("topk", "p1",
     "v1, v2 = F.topk(p1, 3); F.add(v1, v2, v1, v2)",
     "x, hidden = F.topk(x, 3); return F.add(x, hidden, x, hidden)"),
    ("mean var", "p1",
     "v1 = F.mean(p1); v2 = F.var(p1); v3 = (p1 - v1) * v2; F.add(v1, v2, v3)",
     "mean = F.mean(x); variance = F.var(x); return F.add(mean, variance, (x - mean) * variance)"),
    ("stack", "p1",
     "v1 = F.stack((p1, p1)); v2 = F.attention(v1, v1, v1); F.add(v1, v2)",
     "query = F.stack((x, x)); return F.add(query, F.attention(query, query, query))"),
    ("stack alone", "p1",
     "v1 = F.stack((p1, p1)); F.add(v1, v1)",
     "stacked = F.stack((x, x)); return F.add(stacked, stacked)"),
    ("numbers", "p1",
     "v1 = self.q1(p1); v2 = F.cos(p1); v3 = F.cos(v2); v4 = F.cos(v3); F.add(v1, v2, v3, v4)",
     "cos = F.cos(angles); cos2 = F.cos(cos); return F.add(self.q1(angles), cos, cos2, F.cos(cos2))"),
    ("sizes", "p1",
     "v1 = p1.shape[0]; v2 = p1.shape[2]; F.add(v1, v2, v1, v2)",
     "hidden = x.shape[0]; x = x.shape[2]; return F.add(hidden, x, hidden, x)"),
    ("sizes of two", "p1 p2",
     "v1 = p1.shape[0]; v2 = p2.shape[1]; F.add(v1, v2, v1, v2)",
     "x = x.shape[0]; hidden = other.shape[1]; return F.add(x, hidden, x, hidden)"),
    ("unread size", "p1",
     "v1 = p1.shape[0]; F.add(p1, p1)",
     "return F.add(x, x)"),
    ("three sizes", "p1",
     "v1 = p1.shape[0]; v2 = p1.shape[1]; v3 = p1.shape[2]; F.add(v1, v2, v1, v2, v3, v3)",
     "hidden, hidden2 = x.shape[:2]; x = x.shape[2]; return F.add(hidden, hidden2, hidden, hidden2, x, x)"),
    ("size of itself", "p1",
     "v1 = p1.shape[0]; v2 = v1.shape[1]; F.add(v1, v2, v1, v2)",
     "x = x.shape[0]; hidden = x.shape[1]; return F.add(x, hidden, x, hidden)"),
    ("layer ends a line", "p1",
     "v1 = F.relu(self.a(p1)); v2 = self.b(v1); F.add(v2, v2)",
     "x = F.relu(self.a(x)); x = self.b(x); return F.add(x, x)"),
    ("no layer", "p1",
     "v1 = F.relu(p1); v2 = F.tanh(v1); F.add(v2, v2)",
     "x = F.tanh(F.relu(x)); return F.add(x, x)"),
    ("deep", "p1",
     "v1 = F.a(F.b(F.c(p1))); v2 = F.d(v1); F.add(v2, v2)",
     "x = F.a(F.b(F.c(x))); x = F.d(x); return F.add(x, x)"),
    ("deeper", "p1",
     "v1 = F.a(F.b(p1)); v2 = F.d(v1); F.add(v2, v2)",
     "x = F.d(F.a(F.b(x))); return F.add(x, x)"),
    ("returned", "p1",
     "v1 = F.a(F.b(F.c(p1))); F.d(v1)",
     "return F.d(F.a(F.b(F.c(x))))"),
    ("sum once", "p1",
     "v1 = p1 + p1; v2 = v1 + p1; v3 = v2 + p1; v4 = v3 + p1; F.add(v4, v4)",
     "x = x + x + x + x + x; return F.add(x, x)"),
    ("sum right", "p1",
     "v1 = p1 + p1; v2 = p1 + v1; v3 = p1 + v2; v4 = p1 + v3; F.add(v4, v4)",
     "hidden = x + (x + (x + x)); x = x + hidden; return F.add(x, x)"),
    ("read twice", "p1",
     "v1 = F.relu(p1); v2 = v1 + v1; F.add(v2, v2)",
     "x = F.relu(x); x = x + x; return F.add(x, x)"),
    ("two results", "p1",
     "v1 = F.relu(p1); v1, p1",
     "return F.relu(x), x"),
    ("two computed", "p1",
     "v1 = F.relu(p1); v2 = F.tanh(p1); v1, v2",
     "hidden = F.relu(x); return hidden, F.tanh(x)"),
    ("constants go in", "p1",
     "v1 = F.zeros(3); v2 = F.relu(p1); v3 = F.tanh(p1); v4 = F.add(v2, v3, v1); F.add(v4, v4, v2, v3)",
     "hidden = F.relu(x); x = F.tanh(x); hidden2 = F.add(hidden, x, F.zeros(3)); "
     "return F.add(hidden2, hidden2, hidden, x)"),
]  # fmt: skip


@every(("about", "parameters", "source", "wanted"), CASES)
def test_variables_are_named_by_their_use(about: str, parameters: str, source: str, wanted: str) -> None:
    _, body = polished(parameters.split(), statements(source.replace("; ", "\n")), Hints())
    assert render(body, 0) == wanted.split("; ")


# A program in which a variable that an inner function reads would be called what that function calls something else.
INNER = [
    ("a parameter", """
        def step(x):
            return F.add(x, p1)
        return F.add(step(self.a(p1)), p1)
     """),
    ("a variable", """
        v1 = self.q_proj(p1)
        def step(y):
            query = F.tanh(y)
            return F.add(query, query, v1)
        return F.add(step(p1), v1, v1)
     """),
    ("its name", """
        v1 = self.k_proj(p1)
        def key(y):
            return F.add(y, v1)
        return F.add(key(p1), key(v1), v1)
     """),
]  # fmt: skip


@pytest.mark.parametrize(("about", "source"), INNER, ids=[about for about, _ in INNER])
def test_an_inner_function_reads_the_variables_that_it_read(about: str, source: str) -> None:
    layer = SimpleNamespace(a=lambda x: 3 * x, q_proj=lambda x: 5 * x, k_proj=lambda x: 7 * x)
    functions = SimpleNamespace(add=lambda *xs: sum(xs), tanh=lambda x: 11 * x)
    program = block(textwrap.dedent(source))

    def result(parameters: Any, body: Any) -> Any:
        scope: dict[str, Any] = {"F": functions}
        exec(f"def run(self, {', '.join(parameters)}):\n" + "\n".join(render(body, 4)), scope)
        return scope["run"](layer, 1)

    assert result(*polished(["p1"], program, Hints())) == result(["p1"], program)
