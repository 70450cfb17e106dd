"""Small networks on images and on sequences: convolutions, poolings, norms, recurrences and attention with their
options, between concatenations, residual sums, masks, slices and transposes; on every way, as in modules.py.

Functions that jump are drawn of the input alone: of a value that was rounded, a last digit decides where they jump."""

from __future__ import annotations

import random

from .modules import Drawn, difference, program, simpler

NEEDS: tuple[str, ...] = ()
__all__ = ["NEEDS", "difference", "draw", "program", "simpler"]

# (line of __init__ or "", line of forward); {c} the channels, {g} the groups, {n} the batch, {v} and {w} values of the
# same shape, {x} the input, which has that shape as well
SAME = [
    ("", "{v} + {w}"),
    ("", "{v} * 0.5 - {w}"),
    ("", "F.where({v} > {w}, {v} * 0.5, {v} - {w} * 0.5)"),
    ("", "F.relu({v})"),
    ("", "F.leaky_relu({v}, 0.1)"),
    ("", "F.clip({v}, None, 0.5)"),
    ("", "F.clip({v}, -0.5, None)"),
    ("", "F.gelu({v})"),
    ("", "F.silu({v})"),
    ("", "F.hard_swish({v})"),
    ("", "F.minimum({v}, {w}) + F.max({v}, axis=1, keepdims=True)"),
    ("", "{v} / (F.max(F.abs({v})) + 1.0) + 1.0"),
    ("", "F.astype({x} > 0, D.float32) * {w}"),
    ("", "F.astype({v} > 0, D.float32) * {v} - {w}"),
    ("", "F.astype(F.astype({x} * 4.0, D.int32), D.float32) * 0.25 + {w}"),
    ("", "F.softmax({v}, axis=1)"),
    ("", "F.softmax({v} * 2.0, axis=-1)"),
    ("", "F.flip({v}, -1) - {w}"),
    ("", "F.tanh({v}) * F.sigmoid({w})"),
    ("", "F.full({v}.shape, 0.5, dtype=D.float32, device={v}.backend)"),
    ("", "F.exp({v} - F.max({v}, axis=-1, keepdims=True))"),
    ("", "F.log_softmax({v}, axis=-1)"),
    ("", "{v} / (F.sum(F.abs({v}), axis=-1, keepdims=True) + 0.5)"),
    ("", "{v} * F.rsqrt(F.mean({v} * {v}, axis=1, keepdims=True) + 0.01)"),
    ("", "((r := F.sum({v}, axis=1, keepdims=True) * 0.1) + {w}) * F.tanh(r)"),
    ("", "F.reshape(F.tanh(F.reshape({v} * 2.0, (-1,))) + 1.0, {v}.shape)"),
    ("", "F.reshape(F.reshape({v} + 1.0, (-1, {v}.shape[-1])) * 0.5, {v}.shape) - {w}"),
]
IMAGES = [
    *SAME,
    ("self.a{i} = nn.BatchNorm2d({c}, backend=B)", "self.a{i}({v})"),
    ("self.a{i} = nn.GroupNorm({g}, {c}, backend=B)", "self.a{i}({v})"),
    ("self.a{i} = nn.Conv2d({c}, {c}, 1, bias={b}, backend=B)", "self.a{i}({v}) + {w}"),
    ("self.a{i} = nn.Conv2d({c}, {c}, 3, padding=1, bias={b}, backend=B)", "F.relu(self.a{i}({v}))"),
    ("self.a{i} = nn.Conv2d({c}, {c}, 3, padding=1, groups={g}, bias={b}, backend=B)", "self.a{i}({v}) + {w}"),
    ("self.a{i} = nn.Conv2d({c}, {c}, 3, padding=1, groups={c}, bias={b}, backend=B)",
     "F.clip(self.a{i}({v}), 0.0, 6.0)"),
    ("self.a{i} = nn.Conv2d({c}, {c}, (3, 1), padding=(2, 0), dilation=(2, 1), backend=B)", "self.a{i}({v})"),
    ("self.a{i} = nn.Conv2d(2 * {c}, {c}, 1, backend=B)", "self.a{i}(F.concat([F.relu({v}), F.relu({w})], axis=1))"),
    ("", "F.concat([{v}, {w} * 2.0, {v}], axis=1)[:, {k} : {k} + {c}]"),
    ("", "F.concat([F.relu({v}), {w}], axis=1)[:, {k} // 2 : {k} // 2 + {c}]"),
    ("", "(r := F.relu({v})) - F.concat([r, F.relu({w})], axis=1)[:, {k} // 2 : {k} // 2 + {c}]"),
    ("", "F.avg_pool2d(F.relu({v}), 3, 1, 1)"),
    ("self.a{i} = nn.Conv2d({c}, {c}, 3, padding=1, bias={b}, backend=B)",
     "F.concat([{w}, self.a{i}({v}), F.avg_pool2d({w}, 3, 1, 1)], axis=1)[:, {k} : {k} + {c}]"),
    ("self.a{i} = nn.Conv2d({c}, {c}, 1, bias={b}, backend=B)",
     "F.concat([self.a{i}({v}), F.max_pool2d({w}, 3, 1, 1)], axis=2)[:, :, 1 : {v}.shape[2] + 1]"),
    ("", "F.max_pool2d({v}, 3, 1, 1)"),
    ("", "F.relu(F.avg_pool2d({v}, 3, 1, 1))"),
    ("", "F.max_pool2d(F.relu({v}), 3, 1, 2, 2)"),
    ("", "{v} * F.sigmoid(F.mean({v}, axis=(2, 3), keepdims=True))"),
    ("", "F.permute_dims(F.permute_dims({v}, (0, 2, 3, 1)) * 2.0, (0, 3, 1, 2))"),
    ("", "F.permute_dims(F.permute_dims({v} * 2.0, (0, 1, 3, 2)) + 1.0, (0, 1, 3, 2)) - {w}"),
    ("", "F.permute_dims(F.layer_norm(F.permute_dims({v}, (0, 2, 3, 1))), (0, 3, 1, 2))"),
    ("", "F.reshape(F.softmax(F.reshape({v}, ({v}.shape[0], {c}, -1)), -1), {v}.shape) + {w}"),
    ("self.a{i} = F.reshape(F.arange({c}, dtype=D.float32, device=B), ({c}, 1, 1)) / 4", "{v} * self.a{i}"),
    ("", "F.pad({v}, ((0, 0), (0, 0), (1, 2), (2, 1)))[:, :, 1:-2, 2:-1]"),
]  # fmt: skip
# Those of them that change the height and the width: (.., .., a function of a length, or of the two)
SMALLER = [
    ("self.a{i} = nn.Conv2d({c}, {c}, 3, stride=(2, 1), padding=(1, 1), bias={b}, backend=B)", "self.a{i}({v})",
     lambda h, w: ((h - 1) // 2 + 1, w)),
    ("self.a{i} = nn.Conv2d({c}, {c}, 3, stride=2, padding=1, groups={c}, backend=B)", "F.relu(self.a{i}({v}))",
     lambda h, w: ((h - 1) // 2 + 1, (w - 1) // 2 + 1)),
    ("self.a{i} = nn.Conv2d({c}, {c}, (2, 3), padding=(0, 1), backend=B)", "self.a{i}({v})", lambda h, w: (h - 1, w)),
    ("self.a{i} = nn.Conv2d({c}, {c}, 1, stride=(2, 1), bias={b}, backend=B)", "self.a{i}({v})",
     lambda h, w: ((h + 1) // 2, w)),
    ("", "F.max_pool2d({v}, 2, (1, 2), 0)", lambda h, w: (h - 1, (w - 2) // 2 + 1)),
    ("", "F.relu(F.max_pool2d({v}, (3, 2), 1, (1, 0), 1))", lambda h, w: (h, w - 1)),
    ("", "F.avg_pool2d({v}, (1, 2), 1, 0)", lambda h, w: (h, w - 1)),
    ("", "{v}[:, :, ::-1, 1:]", lambda h, w: (h, w - 1)),
    ("", "{v}[:, :, :, ::2] * 2.0", lambda h, w: (h, (w + 1) // 2)),
    ("", "F.interpolate({v}, scale_factor=2)[:, :, : {v}.shape[2] + 1, : {v}.shape[3]]", lambda h, w: (h + 1, w)),
]  # fmt: skip
SEQUENCES = [
    *SAME,
    ("self.a{i} = nn.Lstm({c}, {c}, bias={b}, reverse={r}, backend=B)", "self.a{i}({v})[0]"),
    ("self.a{i} = nn.Lstm({c}, {c}, bias={b}, reverse={r}, backend=B)",
     "self.a{i}({v}, nn.LstmState({v}[:, 0], {w}[:, -1]))[0]"),
    ("self.a{i}, self.s{i} = nn.Lstm({c}, {c}, backend=B), F.ones(({n}, {c}), device=B) / 2",
     "self.a{i}({v}, nn.LstmState(self.s{i}, self.s{i}))[0]"),
    ("self.a{i} = nn.Gru({c}, {c}, bias={b}, backend=B)", "self.a{i}({v}, {w}[:, 0])[0]"),
    ("self.a{i} = nn.Gru({c}, {c}, bias={b}, reset_after={r}, backend=B)", "self.a{i}({v})[0]"),
    ("self.a{i} = nn.Gru({c}, {c}, bias={b}, reverse=True, backend=B)", "self.a{i}({v})[0]"),
    ("self.a{i} = nn.Rnn({c}, {c}, reverse={r}, backend=B)", "self.a{i}({v})[0]"),
    ("self.a{i} = nn.MultiHeadAttention({c}, {g}, backend=B)",
     "self.a{i}({v}, {w}, {w}, mask_attn=nn.causal_mask(*[{v}.shape[1]] * 2, backend={v}.backend)).context"),
    ("self.a{i} = nn.MultiHeadAttention({c}, {g}, quiet_softmax={r}, backend=B)",
     "self.a{i}({v}, {w}, {w}, mask_attn=~nn.causal_mask(*[{v}.shape[1]] * 2, backend={v}.backend)).context"),
    ("", "F.attention({v}[:, None], {w}[:, None], {w}[:, None])[:, 0] - {v}"),
    ("", "F.attention({v}[:, None], {w}[:, None], {v}[:, None], F.where({x}[:, None, :, :1] > 0.5, -inf, 0.0))[:, 0]"),
    ("self.a{i} = nn.Linear({c}, {c}, bias={b}, backend=B)", "self.a{i}({v}) + {w}"),
    ("self.a{i} = nn.Linear(2 * {c}, {c}, bias={b}, backend=B)", "F.gelu(self.a{i}(F.concat([{v}, {w}], axis=-1)))"),
    ("self.a{i} = nn.Linear({c}, {c}, bias={b}, backend=B)",
     "F.concat([{w}, self.a{i}({v})], axis=-1)[..., 1 : {c} + 1]"),
    ("self.a{i} = nn.LayerNorm({c}, backend=B)", "self.a{i}({v} + {w})"),
    ("self.a{i} = nn.RmsNorm({c}, backend=B)", "self.a{i}({v})"),
    ("self.a{i} = nn.Conv1d({c}, {c}, 3, padding=1, bias={b}, backend=B)",
     "F.permute_dims(self.a{i}(F.permute_dims({v}, (0, 2, 1))), (0, 2, 1))"),
    ("", "F.tanh(F.matmul({v}, F.matmul(F.permute_dims({v}, (0, 2, 1)), {w})) * 0.1)"),
    ("", "F.matmul(F.softmax(F.matmul({v}, F.permute_dims({w}, (0, 2, 1))), -1), {v})"),
    ("", "F.cumulative_sum({v}, axis=1) * 0.25"),
    ("", "{v} * (1.0 / {v}.shape[1]) + {w}"),
    ("", "F.concat([{v}[:, {v}.shape[1] // 2 :], {w}[:, : {v}.shape[1] // 2]], axis=1)"),
    ("", "F.take({v}, F.argmax({x}, axis=1)[0] % {v}.shape[1], 1)[:, :1] + {w}"),
    ("", "F.take_along_axis({v}, F.argsort({x}, axis=1), 1)"),
    ("", "F.concat([{v}[:, 1:], {w}[:, :1]], axis=1)"),
    ("", "F.concat([{v}, F.ones(({v}.shape[0], 1, {c}), dtype=D.float32, device={v}.backend)], axis=1)[:, 1:]"),
    ("", "F.max({v}, axis=1, keepdims=True) - {w}"),
    ("", "{v} - F.mean({w}, axis=(0, 2), keepdims=True)"),
    ("", "F.reshape(F.reshape({v}, (-1, {c})) * 2.0, {v}.shape)"),
]  # fmt: skip


def draw(choose: random.Random) -> Drawn | None:
    images = choose.random() < 0.6
    c = choose.choice([1, 2, 4, 6]) if images else choose.choice([2, 4, 6])
    groups = choose.choice([g for g in (1, 2, 3) if c % g == 0])
    size = (choose.randint(3, 9), choose.randint(3, 9)) if images else (choose.choice([*range(1, 10), 15, 22]), c)
    shape = (choose.choice([1, 1, 2, 3]), c, *size) if images else (choose.choice([1, 1, 2, 3]), *size)
    sizes = [size]
    made: list[str] = []
    lines: list[str] = []
    for i in range(choose.randint(2, 7)):
        at = choose.randint(max(0, i - 1), i)
        size = sizes[at]
        if images and min(size) > 2 and choose.random() < 0.25:
            init, forward, change = choose.choice(SMALLER)
            size = change(*size)
        else:
            fitting = [s for s in (IMAGES if images else SEQUENCES) if size == sizes[0] or "{x}" not in s[1]]
            init, forward = choose.choice(fitting)
        alike = [k for k in range(i + 1) if sizes[k] == sizes[at]]
        values = {"i": i, "c": c, "n": shape[0], "g": groups, "k": choose.randint(0, 2 * c), "b": choose.random() < 0.7,
                  "r": choose.random() < 0.5, "x": "v0", "v": f"v{at}", "w": f"v{choose.choice(alike)}"}  # fmt: skip
        made.append(init.format(**values))
        lines.append(forward.format(**values))
        sizes.append(size)
    returned = (len(lines), *(choose.randint(1, len(lines)) for _ in range(choose.choice([0, 0, 1, 2]))))
    return Drawn(tuple(made), tuple(lines), returned, shape, choose.randrange(1 << 30))
