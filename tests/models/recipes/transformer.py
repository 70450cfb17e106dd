"""Transformers: encoders with a mask, a decoder with a key/value cache, GPT-style and Llama-style decoders."""

import math
from collections.abc import Mapping

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .recipe import Inputs, Recipe, export, export_traced, normal, seeded, tokens


class Encoder(nn.Module):
    """Token embedding, fixed sine positions, two post-norm layers; padded keys are masked out."""

    def __init__(self, vocabulary: int = 60, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        at = torch.arange(64).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        self.register_buffer("position", torch.cat([torch.sin(at * rate), torch.cos(at * rate)], dim=1))
        layer = nn.TransformerEncoderLayer(width, 4, 64, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.pooler = nn.Linear(width, 8)

    def forward(self, tokens: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embedding(tokens) * math.sqrt(32) + self.position[: tokens.shape[1]]
        x = self.layers(x, src_key_padding_mask=padding)
        keep = (~padding).unsqueeze(-1).to(x.dtype)
        pooled = (x * keep).sum(1) / keep.sum(1).clamp(min=1)
        return x, torch.tanh(self.pooler(pooled))


class Attention(nn.Module):
    """Multi-head attention with separate projections; keys and values may come from elsewhere and from a cache."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def join(self, x: Tensor) -> Tensor:
        return self.out_proj(x.transpose(1, 2).flatten(2))


class Bert(nn.Module):
    """Word, position and segment embeddings, one post-norm layer, the mask as a number added to the scores."""

    def __init__(self, vocabulary: int = 60, width: int = 32) -> None:
        super().__init__()
        self.word_embeddings, self.position_embeddings = nn.Embedding(vocabulary, width), nn.Embedding(64, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.embedding_norm = nn.LayerNorm(width)
        self.attention = Attention(width, 4)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, 64), nn.Linear(64, width)
        self.pooler = nn.Linear(width, 8)
        self.register_buffer("position_ids", torch.arange(64).unsqueeze(0))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        position = self.position_embeddings(self.position_ids[:, : input_ids.shape[1]])
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids) + position
        x, attn = self.embedding_norm(x), self.attention
        bias = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        q, k, v = attn.split(attn.q_proj(x)), attn.split(attn.k_proj(x)), attn.split(attn.v_proj(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1]) + bias
        x = self.norm1(x + attn.join(torch.matmul(scores.softmax(-1), v)))
        x = self.norm2(x + self.fc2(F.gelu(self.fc1(x))))
        return x, torch.tanh(self.pooler(x[:, 0]))


class DecoderLayer(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.self_attn = Attention(width, heads)
        self.cross_attn = Attention(width, heads)
        self.fc1, self.fc2 = nn.Linear(width, 64), nn.Linear(64, width)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor, memory: Tensor, past_key: Tensor, past_value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, attn = self.norm1(x), self.self_attn
        key = torch.cat([past_key, attn.split(attn.k_proj(y))], dim=2)
        value = torch.cat([past_value, attn.split(attn.v_proj(y))], dim=2)
        new, total = x.shape[1], key.shape[2]
        at = torch.arange(new).unsqueeze(1) + (total - new)
        mask = torch.arange(total).unsqueeze(0) <= at
        x = x + attn.join(F.scaled_dot_product_attention(attn.split(attn.q_proj(y)), key, value, attn_mask=mask))
        y, attn = self.norm2(x), self.cross_attn
        seen = F.scaled_dot_product_attention(
            attn.split(attn.q_proj(y)), attn.split(attn.k_proj(memory)), attn.split(attn.v_proj(memory))
        )
        x = x + attn.join(seen)
        return x + self.fc2(F.gelu(self.fc1(self.norm3(x)))), key, value


class Decoder(nn.Module):
    """Two layers, each of which gets the cache that it returned from the previous call."""

    def __init__(self, vocabulary: int = 60, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(64, width)
        self.layers = nn.ModuleList([DecoderLayer(), DecoderLayer()])
        self.norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(
        self, tokens: Tensor, memory: Tensor, key0: Tensor, value0: Tensor, key1: Tensor, value1: Tensor
    ) -> tuple[Tensor, ...]:
        x = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1]) + key0.shape[2])
        x, key0, value0 = self.layers[0](x, memory, key0, value0)
        x, key1, value1 = self.layers[1](x, memory, key1, value1)
        return self.lm_head(self.norm(x)), key0, value0, key1, value1


class GPTBlock(nn.Module):
    """Pre-norm, one projection for query, key and value, tanh-approximated GELU: GPT-2's block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.c_attn(self.ln_1(x)).split(x.shape[-1], dim=-1)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        x = x + self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    """The head shares the embedding's weight, as in GPT-2; so does the file."""

    def __init__(self, vocabulary: int = 96, width: int = 32, context: int = 32) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h = nn.ModuleList([GPTBlock(width, 4), GPTBlock(width, 4)])
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight
        self.register_buffer("causal", torch.ones(context, context, dtype=torch.bool).tril())

    def forward(self, tokens: Tensor) -> Tensor:
        n = tokens.shape[1]
        x = self.wte(tokens) + self.wpe(torch.arange(n))
        for block in self.h:
            x = block(x, self.causal[:n, :n])
        return self.lm_head(self.ln_f(x))


class LlamaBlock(nn.Module):
    """RMS norm, rotary positions, eight query heads on four key heads, SwiGLU: Llama's block with its cache."""

    def __init__(self, width: int, heads: int, shared: int) -> None:
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.input_norm, self.post_norm = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, shared * self.size, bias=False)
        self.v_proj = nn.Linear(width, shared * self.size, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)
        self.gate_proj = nn.Linear(width, 96, bias=False)
        self.up_proj = nn.Linear(width, 96, bias=False)
        self.down_proj = nn.Linear(96, width, bias=False)

    @staticmethod
    def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * sin

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, past_key: Tensor, past_value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        y = self.input_norm(x)
        q = self.rotate(self.q_proj(y).unflatten(-1, (self.heads, self.size)).transpose(1, 2), cos, sin)
        k = self.rotate(self.k_proj(y).unflatten(-1, (self.shared, self.size)).transpose(1, 2), cos, sin)
        v = self.v_proj(y).unflatten(-1, (self.shared, self.size)).transpose(1, 2)
        key, value = torch.cat([past_key, k], dim=2), torch.cat([past_value, v], dim=2)
        seen = F.scaled_dot_product_attention(q, key, value, attn_mask=mask, enable_gqa=True)
        x = x + self.o_proj(seen.transpose(1, 2).flatten(2))
        y = self.post_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y)), key, value


class Llama(nn.Module):
    def __init__(self, vocabulary: int = 80, width: int = 32, heads: int = 8, shared: int = 4) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList([LlamaBlock(width, heads, shared), LlamaBlock(width, heads, shared)])
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        size = width // heads
        self.register_buffer("inv_freq", 1.0 / (10000.0 ** (torch.arange(0, size, 2).float() / size)))

    def forward(self, tokens: Tensor, key0: Tensor, value0: Tensor, key1: Tensor, value1: Tensor) -> tuple[Tensor, ...]:
        past, new = key0.shape[2], tokens.shape[1]
        at = torch.arange(new) + past
        angle = torch.outer(at.float(), self.inv_freq)
        angle = torch.cat([angle, angle], dim=-1)
        cos, sin = angle.cos(), angle.sin()
        allowed = torch.arange(past + new).unsqueeze(0) <= at.unsqueeze(1)
        mask = torch.where(allowed, 0.0, float("-inf"))
        x, key0, value0 = self.layers[0](self.embed_tokens(tokens), cos, sin, mask, key0, value0)
        x, key1, value1 = self.layers[1](x, cos, sin, mask, key1, value1)
        return self.lm_head(self.norm(x)), key0, value0, key1, value1


BERT_INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
CACHE = ["key0", "value0", "key1", "value1"]


def _cache_inputs(seed: int, batch: int, heads: int, past: int, size: int) -> dict[str, np.ndarray]:
    return {name: normal(seed + i, batch, heads, past, size) for i, name in enumerate(CACHE)}


def _encoder_inputs() -> Mapping[str, Inputs]:
    cases = {}
    for batch, length in ((1, 5), (3, 12)):
        padding = np.arange(length) >= np.array([length, length - 2, length // 2])[:batch, None]
        cases[f"batch{batch}_length{length}"] = {"tokens": tokens(length, 60, batch, length), "padding": padding}
    return cases


def _bert_inputs() -> Mapping[str, Inputs]:
    return {
        label: {
            "input_ids": case["tokens"],
            "attention_mask": (~case["padding"]).astype(np.int64),
            "token_type_ids": (np.arange(case["tokens"].shape[1]) > 2).astype(np.int64) * np.ones_like(case["tokens"]),
        }
        for label, case in _encoder_inputs().items()
    }


def _decoder_inputs() -> Mapping[str, Inputs]:
    return {
        f"batch{batch}_past{past}_new{new}": {
            "tokens": tokens(past, 60, batch, new),
            "memory": normal(past, batch, source, 32),
            **_cache_inputs(10 + past, batch, 4, past, 8),
        }
        for batch, source, past, new in ((1, 4, 0, 3), (2, 7, 3, 1), (2, 6, 5, 2))
    }


def _llama_inputs() -> Mapping[str, Inputs]:
    return {
        f"batch{batch}_past{past}_new{new}": {
            "tokens": tokens(past, 80, batch, new),
            **_cache_inputs(10 + past, batch, 4, past, 4),
        }
        for batch, past, new in ((1, 0, 6), (2, 4, 1), (1, 3, 2))
    }


def _gpt_inputs() -> Mapping[str, Inputs]:
    return {f"batch{n}_length{t}": {"tokens": tokens(t, 96, n, t)} for n, t in ((1, 3), (2, 10))}


def _decoder_args() -> tuple[Tensor, ...]:
    cache = [torch.zeros(2, 4, 5, 8) for _ in CACHE]
    return (torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 6, 32), *cache)


def _llama_args() -> tuple[Tensor, ...]:
    return (torch.zeros(2, 3, dtype=torch.int64), *[torch.zeros(2, 4, 5, 4) for _ in CACHE])


def bert(opset: int) -> onnx.ModelProto:
    return export_traced(
        seeded(Bert),
        tuple(torch.ones(2, 7, dtype=torch.int64) for _ in BERT_INPUTS),
        inputs=BERT_INPUTS,
        outputs=["states", "pooled"],
        dynamic={name: {0: "batch", 1: "length"} for name in BERT_INPUTS},
        opset=opset,
    )


LLAMA_DYNAMIC = [{0: "batch", 1: "new"}, *[{0: "batch", 2: "past"}] * 4]

RECIPES = [
    Recipe(
        "transformer_encoder",
        "post-norm encoder with a padding mask, dynamic batch and length",
        lambda: export(
            seeded(Encoder), (torch.zeros(2, 7, dtype=torch.int64), torch.zeros(2, 7, dtype=torch.bool)),
            inputs=["tokens", "padding"], outputs=["states", "pooled"], dynamic=[{0: "batch", 1: "length"}] * 2,
            opset=18,
        ),
        _encoder_inputs,
    ),
    Recipe(
        "bert_traced",
        "BERT-style encoder from the TorchScript exporter, opset 14: shapes computed by chains of small nodes",
        lambda: bert(opset=14),
        _bert_inputs,
    ),
    Recipe(
        "transformer_decoder",
        "decoder with a key/value cache and cross-attention; dynamic batch, source, past and new length",
        lambda: export(
            seeded(Decoder),
            _decoder_args(),
            inputs=["tokens", "memory", *CACHE],
            outputs=["logits", *[f"{name}_out" for name in CACHE]],
            dynamic=[{0: "batch", 1: "new"}, {0: "batch", 1: "source"}, *[{0: "batch", 2: "past"}] * 4],
            opset=18,
        ),
        _decoder_inputs,
    ),
    Recipe(
        "gpt",
        "GPT-2-style decoder, causal, embedding and head share one weight; dynamic batch and length",
        lambda: export(
            seeded(GPT), (torch.zeros(2, 7, dtype=torch.int64),), inputs=["tokens"], outputs=["logits"],
            dynamic=[{0: "batch", 1: "length"}], opset=20,
        ),
        _gpt_inputs,
    ),
    Recipe(
        "gpt_traced",
        "the same decoder from the TorchScript exporter, opset 17",
        lambda: export_traced(
            seeded(GPT), (torch.zeros(2, 7, dtype=torch.int64),), inputs=["tokens"], outputs=["logits"],
            dynamic={"tokens": {0: "batch", 1: "length"}}, opset=17,
        ),
        _gpt_inputs,
    ),
    Recipe(
        "llama",
        "Llama-style decoder: RMS norm, rotary positions, grouped-query attention, SwiGLU, cache; opset 18",
        lambda: export(
            seeded(Llama), _llama_args(), inputs=["tokens", *CACHE],
            outputs=["logits", *[f"{name}_out" for name in CACHE]], dynamic=LLAMA_DYNAMIC, opset=18,
        ),
        _llama_inputs,
    ),
    Recipe(
        "llama_opset23",
        "the same decoder at opset 23, which has Attention and RMSNormalization as operators",
        lambda: export(
            seeded(Llama),
            _llama_args(),
            inputs=["tokens", *CACHE],
            outputs=["logits", *[f"{name}_out" for name in CACHE]],
            dynamic=LLAMA_DYNAMIC,
            opset=23,
        ),
        _llama_inputs,
    ),
]  # fmt: skip
