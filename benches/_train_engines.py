"""The engines of `bench train`. Each trains a network of _train_networks.py in a process of its own, which prints one
line of JSON: steps a second, the most memory, the losses of the first steps.

    python _train_engines.py ENGINE NETWORK SECONDS
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from _train_networks import HEADS, LAYERS, NETWORKS, RATE, UNITS, WIDTH, start

FIRST = 10  # steps whose losses are compared


# -- emberlet ---------------------------------------------------------------------------------------------------------


def _heads(x: Any) -> Any:
    return x.reshape((x.shape[0], x.shape[1], HEADS, WIDTH // HEADS)).permute_dims((0, 2, 1, 3))


def own_digits(p: Any, x: Any) -> Any:
    from emberlet import functional as F

    x = F.relu(F.conv(x, p["conv1"], p["bias1"], padding=1))
    x = F.max_pool(F.relu(F.conv(x, p["conv2"], p["bias2"], padding=1)), 2)
    x = F.relu(F.linear(x.reshape((x.shape[0], 256)), p["fc1"], p["bias3"]))
    return F.linear(x, p["fc2"], p["bias4"])


def own_encoder(p: Any, x: Any) -> Any:
    from emberlet import functional as F

    for i in range(LAYERS):
        w = {k.partition(".")[2]: v for k, v in p.items() if k.startswith(f"{i}.")}
        qkv = F.layer_norm(x, w["norm1"]) @ w["qkv"]
        seen = F.attention(*[_heads(part) for part in F.split(qkv, 3, axis=2)])
        x = x + seen.permute_dims((0, 2, 1, 3)).reshape(x.shape) @ w["out"]
        x = x + F.gelu(F.linear(F.layer_norm(x, w["norm2"]), w["up"], w["bias"])) @ w["down"]
    return x.mean(1) @ p["head"]


def own_lstm(p: Any, x: Any) -> Any:
    from emberlet import functional as F

    def turned(v: Any) -> Any:  # ONNX's gates are i o f c
        return F.concat([v[UNITS * g : UNITS * (g + 1)] for g in (0, 3, 1, 2)], axis=0)[None]

    bias = turned(p["bias"])
    return F.lstm(x, turned(p["w"]), turned(p["r"]), F.concat([bias, bias * 0.0], axis=1))[1][0] @ p["head"]


def own_unet(p: Any, x: Any) -> Any:
    from emberlet import functional as F

    first = F.silu(F.group_norm(F.conv(x, p["down1"], padding=1), 4, p["norm"], p["shift"]))
    second = F.silu(F.conv(F.max_pool(first, 2), p["down2"], padding=1))
    up = F.conv_transpose(second, p["up"], stride=2)
    return F.conv(F.concat([first, up], axis=1), p["last"], padding=1)


def own_model(name: str, backend: str) -> tuple[Any, Callable[..., Any], Any]:
    """(the model, its loss, Adam)."""
    import emberlet
    from emberlet import functional as F
    from emberlet import optim
    from emberlet.module import Module

    class Net(Module):
        def __init__(self, weights: Any) -> None:
            self.weights = {k: emberlet.Param(emberlet.asarray(v, backend=backend)) for k, v in weights.items()}

        def forward(self, x: Any) -> Any:
            return globals()["own_" + name]({k: p.val() for k, p in self.weights.items()}, x)

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        out = model(x)
        return ((out - y) ** 2).mean() if name == "unet" else F.cross_entropy(out, y)

    return Net(start(name)[0]).train(), loss_of, optim.AdamConfig(epsilon=1e-8).init()


def compiled_step(name: str, backend: str) -> Any:
    model, loss_of, optimizer = own_model(name, backend)
    return model.compile_step(loss_of, optimizer)


def emberlet_step(name: str, backend: str, compiled: bool) -> Callable[[], Any]:
    import emberlet
    from emberlet import optim

    batch = start(name)[1:]
    if compiled:
        whole = compiled_step(name, backend)
        given = [emberlet.asarray(v, backend=backend) for v in batch]
        return lambda: whole(RATE, *given)
    model, loss_of, optimizer = own_model(name, backend)
    x, y = (emberlet.asarray(v, backend="autodiff:" + backend) for v in batch)

    def step() -> Any:
        loss = loss_of(model, x, y)
        optimizer.step(RATE, model, optim.GradientsParams.from_grads(loss.backward(), model))
        return loss

    return step


# -- PyTorch ----------------------------------------------------------------------------------------------------------


def torch_step(name: str, threads: int) -> Callable[[], Any]:
    import torch
    from torch.func import functional_call
    from torch.nn import functional as F

    torch.set_num_threads(threads)
    layer = torch.nn.LSTM(28, UNITS)

    def digits(p: Any, x: Any) -> Any:
        x = F.relu(F.conv2d(x, p["conv1"], p["bias1"], padding=1))
        x = F.max_pool2d(F.relu(F.conv2d(x, p["conv2"], p["bias2"], padding=1)), 2)
        return F.relu(x.flatten(1) @ p["fc1"] + p["bias3"]) @ p["fc2"] + p["bias4"]

    def encoder(p: Any, x: Any) -> Any:
        for i in range(LAYERS):
            w = {k.partition(".")[2]: v for k, v in p.items() if k.startswith(f"{i}.")}
            heads = (F.layer_norm(x, (WIDTH,), w["norm1"]) @ w["qkv"]).reshape(*x.shape[:2], 3, HEADS, -1)
            seen = F.scaled_dot_product_attention(*heads.permute(2, 0, 3, 1, 4))
            x = x + seen.transpose(1, 2).reshape(x.shape) @ w["out"]
            x = x + F.gelu(F.layer_norm(x, (WIDTH,), w["norm2"]) @ w["up"] + w["bias"]) @ w["down"]
        return x.mean(1) @ p["head"]

    def lstm(p: Any, x: Any) -> Any:
        names = {"weight_ih_l0": p["w"], "weight_hh_l0": p["r"], "bias_ih_l0": p["bias"]}
        names["bias_hh_l0"] = torch.zeros_like(p["bias"])
        return functional_call(layer, names, (x,))[1][0][0] @ p["head"]

    def unet(p: Any, x: Any) -> Any:
        first = F.silu(F.group_norm(F.conv2d(x, p["down1"], padding=1), 4, p["norm"], p["shift"]))
        second = F.silu(F.conv2d(F.max_pool2d(first, 2), p["down2"], padding=1))
        up = F.conv_transpose2d(second, p["up"], stride=2)
        return F.conv2d(torch.cat([first, up], 1), p["last"], padding=1)

    network = {"digits": digits, "encoder": encoder, "lstm": lstm, "unet": unet}[name]
    weights, x, y = start(name)
    p = {k: torch.from_numpy(v).requires_grad_() for k, v in weights.items()}
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    optimizer = torch.optim.Adam(p.values(), lr=RATE)

    def step() -> Any:
        out = network(p, x)
        loss = F.mse_loss(out, y) if name == "unet" else F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


# -- tinygrad ---------------------------------------------------------------------------------------------------------


def tinygrad_step(name: str) -> Callable[[], Any]:
    from tinygrad import Context, Tensor, TinyJit  # type: ignore[attr-defined]
    from tinygrad.nn.optim import Adam

    def norm(x: Any, w: Any) -> Any:
        return x.layernorm(eps=1e-5) * w

    def digits(p: Any, x: Any) -> Any:
        x = x.conv2d(p["conv1"], p["bias1"], padding=1).relu()
        x = x.conv2d(p["conv2"], p["bias2"], padding=1).relu().max_pool2d((2, 2))
        return (x.flatten(1) @ p["fc1"] + p["bias3"]).relu() @ p["fc2"] + p["bias4"]

    def encoder(p: Any, x: Any) -> Any:
        for i in range(LAYERS):
            w = {k.partition(".")[2]: v for k, v in p.items() if k.startswith(f"{i}.")}
            heads = (norm(x, w["norm1"]) @ w["qkv"]).reshape(x.shape[0], x.shape[1], 3, HEADS, -1)
            q, k, v = heads.permute(2, 0, 3, 1, 4)
            seen = Tensor.scaled_dot_product_attention(q, k, v)
            x = x + seen.transpose(1, 2).reshape(x.shape) @ w["out"]
            inside = norm(x, w["norm2"]) @ w["up"] + w["bias"]
            x = x + (inside * 0.5 * (1 + (inside * 0.5**0.5).erf())) @ w["down"]
        return x.mean(1) @ p["head"]

    def lstm(p: Any, x: Any) -> Any:
        h = c = Tensor.zeros(x.shape[1], UNITS)
        part = x @ p["w"].T + p["bias"]
        for t in range(x.shape[0]):
            i, f, g, o = (part[t] + h @ p["r"].T).split(UNITS, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h @ p["head"]

    def unet(p: Any, x: Any) -> Any:
        first = x.conv2d(p["down1"], padding=1)
        groups = first.reshape(x.shape[0], 4, -1).layernorm(eps=1e-5).reshape(first.shape)
        first = (groups * p["norm"].reshape(1, -1, 1, 1) + p["shift"].reshape(1, -1, 1, 1)).silu()
        second = first.max_pool2d((2, 2)).conv2d(p["down2"], padding=1).silu()
        up = second.conv_transpose2d(p["up"], stride=2)
        return first.cat(up, dim=1).conv2d(p["last"], padding=1)

    network = {"digits": digits, "encoder": encoder, "lstm": lstm, "unet": unet}[name]
    weights, x, y = start(name)
    p = {k: Tensor(v).realize() for k, v in weights.items()}
    given, wanted = Tensor(x).realize(), Tensor(y).realize()
    optimizer = Adam(list(p.values()), lr=RATE)

    @TinyJit
    def step() -> Any:
        out = network(p, given)
        loss = ((out - wanted) ** 2).mean() if name == "unet" else out.sparse_categorical_crossentropy(wanted)
        optimizer.zero_grad()
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    def trained() -> Any:
        with Context(TRAINING=1):
            return step()

    return trained


ENGINES: dict[str, Callable[[str], Callable[[], Any]]] = {
    "emberlet, numpy": lambda name: emberlet_step(name, "numpy", False),
    "emberlet, numpy, compiled": lambda name: emberlet_step(name, "numpy", True),
    "emberlet, wasm, compiled": lambda name: emberlet_step(name, "wasm", True),
    "emberlet, wgpu": lambda name: emberlet_step(name, "wgpu", False),
    "emberlet, wgpu, compiled": lambda name: emberlet_step(name, "wgpu", True),
    "PyTorch, CPU, 1 thread": lambda name: torch_step(name, 1),
    "PyTorch, CPU, 2 threads": lambda name: torch_step(name, 2),
    "tinygrad, WebGPU": tinygrad_step,
}
CHROMIUM = ", Chromium"
IN_CHROMIUM = ["emberlet, MicroPython" + CHROMIUM, "jax-js" + CHROMIUM, "borch" + CHROMIUM]  # on WebGPU, all three


def in_chromium(engine: str, network: str, seconds: float) -> dict[str, Any]:
    """{"rate", "losses"} of an engine of benches/web/train.html."""
    from tempfile import TemporaryDirectory

    from _browser_peers import ROOT, opened

    sys.path.append(str(ROOT / "web"))
    import build_page

    from tools import borch

    weights, x, y = start(network)

    def told(array: Any) -> dict[str, Any]:
        whole = array.dtype.kind == "i"
        return {"shape": list(array.shape), "values": array.ravel().tolist(), "whole": whole}

    with TemporaryDirectory() as folder:
        work = Path(folder)
        content = {"weights": {k: told(v) for k, v in weights.items()}, "x": told(x), "y": told(y)}
        (work / "start.json").write_text(json.dumps(content), encoding="utf-8")
        site = work / "site"
        site.mkdir()
        if engine.startswith("emberlet"):
            from emberlet.wgpu_backend import plan_file

            build_page.build_runtimes(site)
            build_page.build_packages(site / "packages")
            plan_file.save(str(work / "step.plan"), compiled_step(network, "numpy"), x, y)
        mounts = {"/borch/": borch.fetched()} if engine.startswith("borch") else {}
        name = engine.partition(",")[0].replace("-js", "")
        job = {"engine": name, "network": network, "seconds": seconds, "first": FIRST}
        job |= {"plan": "/work/step.plan", "start": "/work/start.json"}
        with opened("train.html", site, work, mounts) as (_, page):
            found: dict[str, Any] = page.evaluate("(x) => train(x)", job, timeout=600_000)
    return found


def number(loss: Any) -> float:
    return float(loss.item())


def main(engine: str, network: str, seconds: float) -> None:
    assert network in NETWORKS
    if engine.endswith(CHROMIUM):
        print(json.dumps(in_chromium(engine, network, seconds)))
        return
    step = ENGINES[engine](network)
    losses = [number(step()) for _ in range(FIRST)]
    best, count = float("inf"), 1
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:  # several steps between two readings of the loss, as a training loop has them
        begin = time.perf_counter()
        for _ in range(count):
            loss = step()
        number(loss)
        taken = time.perf_counter() - begin
        best = min(best, taken / count)
        count = max(1, min(50, int(0.2 / best)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform == "linux" else 1024)
    print(json.dumps({"rate": 1 / best, "peak": peak / 1024, "losses": losses}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
