"""Functions drawn at random are written as Python within the width. `written(seed)` is the code of one."""

from __future__ import annotations

import ast
import random

from emberlet.codegen.emit.expression import WIDTH
from emberlet.codegen.emit.handing_on import hand_on
from emberlet.codegen.emit.layout import laid_out
from emberlet.codegen.emit.polish import polished
from emberlet.codegen.emit.statement import Assign, fold_return, render
from emberlet.codegen.emit.variables import Hints
from support.expressions import block

VALUES = """
self.q_proj(A)|self.key(A)|self.to_v(A)|self.qkv(A)|self.conv1(A)|self.layers[0].mlp.fc1(A)|self.norm(A)|self.head(A)
self.word_embeddings(A)|self.patch_embedding(A)|self.position_embeddings(A)|self.attention(A, B)|self.block(A, B)
self.gamma.val()|self.norm.weight.val()|self.scores(A)|self.encoder(A)|self.aux_classifier(A)
A + B|A + B|A - B|A * B|A * B|A / 8.0|A @ B|A @ B|A @ B.permute((0, 2, 1))|A == B|A >= B|A < 3|A & B|-A|0.5 * A
self.conv2(A) + B|A + self.proj(B)|F.relu(A) * B|F.softmax(A, axis=-1) @ B|F.softmax(A @ B / 8.0, axis=-1)
F.relu(self.fc1(A))|F.relu(A)|F.silu(A)|F.sigmoid(A)|F.tanh(self.gate(A))|F.softmax(A, axis=-1)|F.cos(A)|F.sin(A)
F.mean(A, axis=1, keepdims=True)|F.var(A)|F.topk(A, 3)|F.argmax(A, 1)|F.one_hot(A, 3)|F.logical_and(A, B)
F.logical_not(A)|F.where(A, B, C)|F.where(A, 0.0, float("-inf"))|F.where(A, float("-inf"), B)|F.where(A, 1.0, B)
F.arange(0, 5, backend=backend)|F.arange(A.shape[1])|F.expand_dims(A, 1)|F.expand_dims(F.arange(4), 0)
F.arange(4) >= F.expand_dims(F.arange(4), 1)|F.arange(4) + A
F.concat((A, B), axis=1)|F.concat((A - B, A + B), axis=-1)|F.concat((A, B, C), axis=1)|F.concat((-A, B), axis=-1)
F.stack((A, B))|F.rotary_embedding(A, B, C)|F.attention(A, B, C, D)|F.attention(A, B, C, kv_lengths=D)
F.non_max_suppression(A, B, 10)|F.max_pool(F.relu(self.conv3(A)), 2)|F.pad(F.clip(A, 0.0, 6.0), ((0, 0), (1, 1)))
A.take(B, 0)|A.sum(-1)|F.reshape(A, (2, 3))|F.squeeze(A, 1)|A.max(1)|layer(A)|self.layers[0].norm.weight.val() * A
A.reshape((2, -1))|A.reshape((B, -1, 64))|A.permute((0, 2, 1))|A.astype(emberlet.float32)|A.squeeze(1)|A.flatten(1)
A|A|A.expand((2, 3))|A.shape[0]|A.shape[0]|A.shape[1]|A.shape[1]|A.shape[2]|A.shape|A[:, 0]|A[:, :3]|A[0]|A[1:, B]
F.split(A, 2, axis=1)[0]|(A, B)|[A, B]|F.add(A, hidden)|F.add(mask, A)|F.full((2, 3), 1.0, backend=backend)
F.zeros((A, 3), backend=backend)|A if B else C
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
PAIRS = ["F.split(A, 2, axis=-1)", "F.lstm(A, B, C)", "self.rnn(A)", "self.attn(A, B)", "F.topk(A, 2)"]
LOOPS = [
    "for T in self.layers:\n    R = T(A, B)\n    N = R + A",
    "for T in self.blocks[1:]:\n    A = T(A)",
    "for T, N in zip(self.layers, B):\n    A, R = T(A, N)\n    L.append(R)",
    "if C:\n    N = self.shortcut(A)\nelse:\n    N = F.relu(A)",
    "while C:\n    A = self.step(A)\n    C = A < B",
    "def N(R):\n    T = R + A\n    return T @ B",
]


def written(seed: int) -> str:
    draw = random.Random(seed)
    known = [f"p{n}" for n in range(draw.randint(1, 4))]
    parameters = list(known)
    lines: list[str] = []

    def new() -> str:
        return f"v{len(lines)}_{len(known)}".replace("_", "0")

    def filled(text: str, **others: str) -> str:
        words = {**{letter: draw.choice(known[-6:]) for letter in "ABCD"}, **others}
        out, word = "", ""
        for c in text + " ":  # whole words only
            if c.isalnum() or c in "_.":
                word += c
                continue
            head, dot, rest = word.partition(".")
            out, word = out + words.get(head, head) + dot + rest + c, ""
        return out[:-1]

    for _ in range(draw.randint(3, 12)):
        name = new()
        if draw.random() < 0.08:
            made = [f"v{len(lines)}{n}9" for n in range(4)]
            lines.append(filled(draw.choice(LOOPS), T=made[0], R=made[1], N=made[2], L=known[0]))
            known.append(known[-1] if "N =" not in lines[-1] else made[2])
        elif draw.random() < 0.1:
            lines.append(f"{name}, {name}5 = {filled(draw.choice(PAIRS))}")
            known += [name, f"{name}5"]
        else:
            lines.append(f"{name} = {filled(draw.choice(VALUES))}")
            known.append(name)
    lines.append("return " + ", ".join(dict.fromkeys([known[-1], *draw.sample(known, draw.choice([0, 0, 1, 2]))])))
    body = block("\n".join(lines))
    for s in body:
        if isinstance(s, Assign) and draw.random() < 0.2:
            s.comment = draw.choice(["(batch, 3)", "(batch, length, 64)", "2, axis=-1"])
    hints = Hints()
    for name in known:
        if draw.random() < 0.08:
            hints.words[name] = draw.choice(["logits", "cache", "batch", "sum", "mask", "n2", "lambda"])
        if draw.random() < 0.06:
            hints.fixed.add(name)
        if draw.random() < 0.15:
            hints.kinds[name] = draw.choice(["scalar", "shape", "bool"])
    hints.callees = {"self.block": ["x", "mask"], "self.attn": ["hidden", "cos"], "self.layers[0]": ["x", "states"]}
    names, body = polished(parameters, body, hints)
    text = "\n".join(render(laid_out(hand_on(fold_return(body)), 8), 8))
    return f"({', '.join(names)})\n{text}"


def test_drawn_functions_are_python_within_the_width() -> None:
    for seed in range(480):
        source = written(seed)
        ast.parse("def forward" + source.replace("\n", ":\n", 1))
        assert all(len(line) <= WIDTH for line in source.splitlines()[1:])
