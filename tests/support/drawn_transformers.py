"""Random small transformers as exporters write them: embeddings, masks, positions, attention, feed-forward layers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS = 11
WIDTH = 8
HEADS = 2
LONGEST = 16
FORMS = [  # the names of caches before and after
    ("past_key_values.{n}.{p}", "present.{n}.{p}"), ("past_{p}_{n}", "present_{p}_{n}"), ("cache_{k}", "cache_{k}_out"),
    ("{p}_in_{n}", "{p}_out_{n}"),
]  # fmt: skip


class DrawnTransformer:
    """ids (batch, length), and sometimes a mask and features (batch, length, 8), to logits. Its layers attend to the
    sequence, and some to the features; the code has a class for each kind of layer. cached: each layer takes and
    returns keys and values, in one of several forms."""

    def __init__(self, seed: int, cached: bool = False) -> None:
        self.random = random.Random(seed)
        self.values = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.held: dict[str, np.ndarray] = {}
        choose = self.random.choice
        self.norm_kind = choose(["layer", "rms"])
        self.joined = choose([True, False])  # one product for query, key and value
        self.gated = choose([True, False])
        self.first = choose([True, False])  # the normalization comes before a layer
        self.position = choose(["table", "rotary", "bias", "none"])
        self.mask = choose(["causal", "given", "none"])
        self.bias = choose([True, False])
        self.crosses = choose([True, False, False])
        self.tied = choose([True, False])
        self.cached = cached
        self.form = choose(FORMS) if cached else ("", "")
        self.kept: list[str] = []
        if cached:
            self.mask, self.position = "none", choose(["table", "rotary", "none"])
        self.inputs: list[tuple[str, int, list[Any]]] = [("ids", TensorProto.INT64, ["batch", "length"])]
        if self.mask == "given":
            self.inputs.append(("attention_mask", TensorProto.BOOL, ["batch", "length"]))
        if self.crosses:
            self.inputs.append(("features", TensorProto.FLOAT, ["batch", "width", WIDTH]))
        self.outputs: list[str] = []
        x = self.embedded()
        shared = self.shared(x)
        layers = self.random.randint(2, 4)
        for n in range(layers):
            x = self.layer(x, ("model", "layers", str(n)), shared)
            if self.random.random() < 0.15 and n < layers - 1:
                self.outputs.append(x)
        if self.first:
            x = self.norm(x, ("model", "norm"))
        if choose([True, False, False]):
            x = self.node("Gather", [x, self.constant(np.int64(0))], ("pooler",), axis=1)
            x = self.node("Tanh", [self.linear(x, WIDTH, WIDTH, ("pooler", "dense"))], ("pooler",))
        table = "model.embed_tokens.weight" if self.tied else self.weight(("lm_head",), "weight", WORDS, WIDTH)
        x = self.node("MatMul", [x, self.node("Transpose", [table], ("lm_head",), perm=[1, 0])], ("lm_head",))
        self.outputs.insert(0, x)
        if cached and choose([True, False, False]):  # the caches come first
            self.outputs = [*self.kept, *self.outputs]
            self.inputs = [*self.inputs[-len(self.kept) :], *self.inputs[: -len(self.kept)]]
        else:
            self.outputs += self.kept

    def embedded(self) -> str:
        here = ("model",)
        table = self.weight((*here, "embed_tokens"), "weight", WORDS, WIDTH)
        x = self.node("Gather", [table, "ids"], (*here, "embed_tokens"))
        if self.position == "table":
            long = self.weight((*here, "embed_positions"), "weight", LONGEST, WIDTH)
            at = self.node("Gather", [long, self.range("ids", here)], (*here, "embed_positions"))
            x = self.node("Add", [x, at], here)
        return self.norm(x, (*here, "embed_norm")) if not self.first else x

    def size(self, x: str, axis: int, path: Any) -> str:
        return self.node("Gather", [self.node("Shape", [x], path), self.constant(np.int64(axis))], path)

    def range(self, x: str, path: Any) -> str:
        zero, one = self.constant(np.int64(0)), self.constant(np.int64(1))
        return self.node("Range", [zero, self.size(x, 1, path), one], path)

    def shared(self, x: str) -> dict[str, str]:
        """What all layers read: a mask that is added to the scores, a position bias, cosines and sines."""
        out: dict[str, str] = {}
        here = ("model",)
        if self.mask == "causal":
            at = self.range("ids", here)
            rows = self.node("Unsqueeze", [at, self.ints(1)], here)
            before = self.node("LessOrEqual", [at, rows], here)
            out["mask"] = self.node("Where", [before, self.number(0.0), self.number(-1e9)], here)
        elif self.mask == "given":
            wide = self.node("Unsqueeze", ["attention_mask", self.ints(1, 2)], here)
            out["mask"] = self.node("Where", [wide, self.number(0.0), self.number(-1e9)], here)
        if self.position == "bias":
            table = self.weight(("model", "relative_bias"), "weight", LONGEST, HEADS)
            at = self.range("ids", ("model", "relative_bias"))
            apart = self.node(
                "Abs", [self.node("Sub", [self.node("Unsqueeze", [at, self.ints(1)], here), at], here)], here
            )
            found = self.node("Gather", [table, apart], ("model", "relative_bias"))
            out["bias"] = self.node("Transpose", [found], ("model", "relative_bias"), perm=[2, 0, 1])
        elif self.position == "rotary":
            at = self.node("Cast", [self.range("ids", here)], here, to=TensorProto.FLOAT)
            rows = self.node("Unsqueeze", [at, self.ints(1)], here)
            angles = self.node("Mul", [rows, self.constant(np.array([1.0, 0.1], np.float32))], ("model", "rotary"))
            angles = self.node("Concat", [angles, angles], ("model", "rotary"), axis=-1)
            out["cos"] = self.node("Cos", [angles], ("model", "rotary"))
            out["sin"] = self.node("Sin", [angles], ("model", "rotary"))
        return out

    def layer(self, x: str, path: Any, shared: dict[str, str]) -> str:
        for name, part in (("self_attn", "attention"), ("cross_attn", "cross"), ("mlp", "mlp")):
            if part == "cross" and not self.crosses:
                continue
            y = self.norm(x, (*path, f"{name}_norm")) if self.first else x
            if part == "mlp":
                y = self.mlp(y, (*path, name))
            else:
                y = self.attention(y, "features" if part == "cross" else y, (*path, name), shared, part == "cross")
            x = self.node("Add", [x, y], path)
            x = x if self.first else self.norm(x, (*path, f"{name}_norm"))
        return x

    def attention(self, x: str, other: str, path: Any, shared: dict[str, str], cross: bool) -> str:
        if self.joined and not cross:
            whole = self.linear(x, WIDTH, 3 * WIDTH, (*path, "qkv"))
            parts = [f"{whole}q", f"{whole}k", f"{whole}v"]
            self.nodes.append(
                helper.make_node("Split", [whole], parts, self.name("Split", path), axis=-1, num_outputs=3)
            )
        else:
            parts = [
                self.linear(s, WIDTH, WIDTH, (*path, n))
                for s, n in ((x, "q_proj"), (other, "k_proj"), (other, "v_proj"))
            ]
        query, key, value = (self.apart(p, s, path) for p, s in zip(parts, (x, other, other), strict=True))
        if "cos" in shared and not cross:
            query, key = (self.turned(p, shared, path) for p in (query, key))
        if self.cached and not cross:
            key, value = (self.appended(p, part, path) for p, part in ((key, "key"), (value, "value")))
        scores = self.node("MatMul", [query, self.node("Transpose", [key], path, perm=[0, 1, 3, 2])], path)
        scores = self.node("Div", [scores, self.number(2.0)], path)
        for word in ("bias", "mask") if not cross else ():
            if word in shared:
                scores = self.node("Add", [scores, shared[word]], path)
        y = self.node("MatMul", [self.node("Softmax", [scores], path, axis=-1), value], path)
        y = self.node("Transpose", [y], path, perm=[0, 2, 1, 3])
        y = self.node("Reshape", [y, self.shape(x, (WIDTH,), path)], path)
        return self.linear(y, WIDTH, WIDTH, (*path, "out_proj"))

    def appended(self, x: str, part: str, path: Any) -> str:
        number = int(path[2])
        past, made = (form.format(n=number, p=part, k=2 * number + (part == "value")) for form in self.form)
        self.inputs.append((past, TensorProto.FLOAT, ["batch", HEADS, "past", WIDTH // HEADS]))
        name = self.name("Concat", path)
        self.nodes.append(helper.make_node("Concat", [past, x], [made], name, axis=2))
        self.kept.append(made)
        return made

    def shape(self, x: str, last: tuple[int, ...], path: Any) -> str:
        sizes = [self.node("Unsqueeze", [self.size(x, n, path), self.ints(0)], path) for n in range(2)]
        return self.node("Concat", [*sizes, self.ints(*last)], path, axis=0)

    def apart(self, y: str, x: str, path: Any) -> str:
        """(batch, heads, length, width of a head)"""
        y = self.node("Reshape", [y, self.shape(x, (HEADS, WIDTH // HEADS), path)], path)
        return self.node("Transpose", [y], path, perm=[0, 2, 1, 3])

    def turned(self, x: str, shared: dict[str, str], path: Any) -> str:
        half = WIDTH // HEADS // 2
        low = self.node("Slice", [x, self.ints(0), self.ints(half), self.ints(-1)], path)
        high = self.node("Slice", [x, self.ints(half), self.ints(2 * half), self.ints(-1)], path)
        other = self.node("Concat", [self.node("Neg", [high], path), low], path, axis=-1)
        return self.node(
            "Add", [self.node("Mul", [x, shared["cos"]], path), self.node("Mul", [other, shared["sin"]], path)], path
        )

    def mlp(self, x: str, path: Any) -> str:
        if self.gated:
            gate = self.linear(x, WIDTH, 12, (*path, "gate_proj"))
            gate = self.node("Mul", [gate, self.node("Sigmoid", [gate], (*path, "act"))], (*path, "act"))
            y = self.node("Mul", [gate, self.linear(x, WIDTH, 12, (*path, "up_proj"))], path)
            return self.linear(y, 12, WIDTH, (*path, "down_proj"))
        y = self.linear(x, WIDTH, 12, (*path, "fc1"))
        return self.linear(self.node("Gelu", [y], (*path, "act")), 12, WIDTH, (*path, "fc2"))

    def norm(self, x: str, path: Any) -> str:
        weight = self.weight(path, "weight", WIDTH)
        if self.norm_kind == "layer":
            return self.node("LayerNormalization", [x, weight, self.weight(path, "bias", WIDTH)], path, axis=-1)
        mean = self.node("ReduceMean", [self.node("Pow", [x, self.number(2.0)], path), self.ints(-1)], path)
        root = self.node("Sqrt", [self.node("Add", [mean, self.number(1e-6)], path)], path)
        return self.node("Mul", [self.node("Div", [x, root], path), weight], path)

    def linear(self, x: str, width: int, new: int, path: Any) -> str:
        x = self.node("MatMul", [x, self.weight(path, "weight", width, new)], path)
        return self.node("Add", [x, self.weight(path, "bias", new)], path) if self.bias else x

    def name(self, op: str, path: Any) -> str:
        return f"/{'/'.join([*path, op])}_{len(self.nodes)}"

    def node(self, op: str, inputs: list[str], path: Any, **attributes: Any) -> str:
        self.nodes.append(
            helper.make_node(op, inputs, [made := f"v{len(self.nodes)}"], self.name(op, path), **attributes)
        )
        return made

    def weight(self, path: Any, word: str, *shape: int) -> str:
        name = ".".join([*path, word])
        self.held[name] = np.abs(self.values.standard_normal(shape)).astype(np.float32) / 2
        return name

    def constant(self, value: Any) -> str:
        self.held[name := f"n{len(self.held)}"] = np.asarray(value)
        return name

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def model(self) -> onnx.ModelProto:
        given = [helper.make_tensor_value_info(*i) for i in self.inputs]
        made = [onnx.ValueInfoProto(name=o) for o in dict.fromkeys(self.outputs)]
        held = [numpy_helper.from_array(array, name) for name, array in self.held.items()]
        graph = helper.make_graph(self.nodes, "g", given, made, held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    def arrays(self) -> list[np.ndarray]:
        """Values for its inputs."""
        arrays = [self.values.integers(0, WORDS, (2, 5))]
        if self.mask == "given":
            arrays.append(np.array([[True] * 5, [True, True, False, True, False]]))
        if self.crosses:
            arrays.append(self.values.standard_normal((2, 3, WIDTH)).astype(np.float32))
        shape = (2, HEADS, 4, WIDTH // HEADS)
        past = [self.values.standard_normal(shape).astype(np.float32) for _ in self.kept]
        return [*past, *arrays] if self.kept and self.inputs[0][0] != "ids" else [*arrays, *past]
