"""Every command with each of its options over small files does its work, or says why not and writes nothing."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet import store
from support.onnx_models import with_constants


def models(folder: Path) -> None:
    """m.onnx: y = a * b + w, z = a + 1; of.onnx: a float model with a fixed shape and an output without rows."""
    m = with_constants(
        """m (int32[rows, 3] a, int32[3] b) => (int32[] y, int32[] z)
        { ab = Mul(a, b)  y = Add(ab, w)  z = Add(a, one) }""",
        18, w=np.int32([[1, 2, 3]]), one=np.array(1, np.int32),
    )  # fmt: skip
    f = with_constants(
        """f (float[2, 4] "x.in", int64[unknown] k, string[1] t) => (float[] y, string[1] u)
        { h = MatMul("x.in", w)  r = Relu(h)  y = Gather<axis = 1>(r, k)  u = Identity(t) }""",
        18, w=np.arange(12, dtype=np.float32).reshape(4, 3),
    )  # fmt: skip
    f.graph.input[1].type.tensor_type.shape.dim[0].Clear()
    draw = np.random.default_rng(0).normal
    shapes = {"fc.weight": (6, 8), "fc.bias": (8,), "out.weight": (8, 3)}
    d = with_constants(
        """d (float[rows, 6] x) => (float[rows, 3] logits)
        { h = Gemm(x, "fc.weight", "fc.bias")  r = Relu(h)  logits = MatMul(r, "out.weight") }""",
        18, **{name: draw(size=shape).astype(np.float32) for name, shape in shapes.items()},
    )  # fmt: skip
    for name, model in (("m", m), ("f", f), ("d", d)):
        onnx.save(model, folder / f"{name}.onnx")


def arrays(folder: Path) -> None:
    np.save(folder / "a.npy", np.arange(6, dtype=np.int32).reshape(2, 3))
    np.save(folder / "b.npy", np.int32([1, -1, 2]))
    np.save(folder / "long.npy", np.arange(30, dtype=np.int32).reshape(10, 3))
    np.save(folder / "wide.npy", np.int32([1, -1, 2, 5]))
    np.save(folder / "wrong.npy", np.float32([1, -1, 2]))
    np.savez(folder / "both.npz", a=np.ones((1, 3), np.int32), b=np.int32([4, 5, 6]))
    np.save(folder / "x.npy", np.float32([[1, 2, 3, 4], [np.nan, np.inf, 0, 0]]))
    np.save(folder / "k.npy", np.int64([2, 0]))
    np.save(folder / "t.npy", np.array(["text"]))
    x = np.random.default_rng(1).normal(size=(30, 6)).astype(np.float32)
    np.savez(folder / "d.npz", x=x, y=np.arange(30) % 3)
    np.savez(folder / "nan.npz", x=np.where(x > 1, np.nan, x))


def weights(folder: Path) -> None:
    first = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "a.bias": np.float32([1, 2, 3]),
             "n": np.int64([7]), "wide": np.float64([0.5])}  # fmt: skip
    other = {"a.weight": first["a.weight"] + 2, "a.bias": np.float32([1, 2]), "n": np.int32([7]),
             "b": np.float32([np.inf])}  # fmt: skip
    store.save(store.store_of(first), folder / "one.safetensors", metadata={"by": "me"})
    store.save(store.store_of(other), folder / "two.bpk")
    store.save(store.store_of({**first, "a.bias": first["a.bias"] + 1}), folder / "near.npz")
    store.save(store.store_of({"w": np.ones((4, 8), np.float32)}).quantize(bits=8, level=4), folder / "packed.bpk")
    (folder / "text.pt").write_bytes(b"no weights")
    (folder / "there.safetensors.index.json").write_bytes(b"{}")
    (folder / "part-00002-of-00003.safetensors").write_bytes(b"")


RUN = "run m.onnx --input a=a.npy --input b=b.npy"
FLOATS = "--input x.in=x.npy --input k=k.npy --input t=t.npy"
COMMANDS = [
    RUN, f"{RUN} --backend python", f"{RUN} --out out.npz", f"{RUN} --out out/there.npz", f"{RUN} --repeat 3",
    f"{RUN} --repeat 1", f"{RUN} --repeat 0", f"{RUN} --json", f"{RUN} --json --out out.npz --repeat 2",
    "run m.onnx --input both.npz", "run m.onnx --input both.npz --input a=a.npy", "run m.onnx --input a=a.npy",
    "run m.onnx", "run m.onnx --input a.npy", "run m.onnx --input a=a.npy --input a=a.npy",
    "run m.onnx --input c=a.npy", "run m.onnx --input a=long.npy --input b=b.npy",
    "run m.onnx --input a=a.npy --input b=wide.npy", "run m.onnx --input a=a.npy --input b=wrong.npy",
    "run m.onnx --input a=gone.npy --input b=b.npy", "run m.onnx --input a=a.npy --freeze b=[1,2,3]",
    "run m.onnx --input a=a.npy --freeze b=b.npy", f"{RUN} --freeze b=[1,2,3]",
    "run m.onnx --input a=a.npy --freeze c=1", "run m.onnx --input a=a.npy --freeze b",
    "run m.onnx --input a=a.npy --freeze b=[1,2]", f"run f.onnx {FLOATS}",
    f"run f.onnx {FLOATS} --json", f"run f.onnx {FLOATS} --out out.npz --backend python",
    f"run f.onnx {FLOATS} --freeze k=[1]", "run f.onnx --input x_in=x.npy --input k=k.npy --freeze t=word",
    "run one.safetensors", "run gone.onnx", "run gone.py", "verify m.onnx", "verify m.onnx --dim rows=4",
    "verify m.onnx --dim rows=0", "verify m.onnx --dim b:0=4", "verify m.onnx --dim a:0=5 --json",
    "verify m.onnx --seed -1", "verify m.onnx --atol -1", "verify m.onnx --rtol nan",
    "verify m.onnx --input a=a.npy --input b=b.npy", "verify m.onnx --input both.npz --bisect",
    "verify m.onnx --bisect --json", "verify m.onnx --freeze b=[1,2,3]", "verify m.onnx --freeze b=[1,2,3] --json",
    "verify m.onnx --reference onnx", "verify m.onnx --reference onnxruntime --idioms",
    "verify m.onnx --idioms --json", "verify f.onnx", "verify f.onnx --freeze t=word --freeze k=[0]",
    "verify f.onnx --dim k:0=2 --freeze t=word", f"verify f.onnx {FLOATS}", "verify one.safetensors",
    "verify m.onnx --dim rows", "verify m.onnx --backend python", "inspect m.onnx --weights",
    "inspect m.onnx --weights --json", "inspect m.onnx --tree", "inspect m.onnx --tree --json",
    "inspect one.safetensors", "inspect one.safetensors --json", "inspect two.bpk", "inspect packed.bpk",
    "inspect near.npz", "inspect gone", "inspect text.pt", "inspect one.safetensors --key a",
    "diff one.safetensors two.bpk", "diff two.bpk one.safetensors", "diff one.safetensors one.safetensors",
    "diff one.safetensors near.npz", "diff one.safetensors near.npz --json", "diff one.safetensors near.npz --atol 1",
    "diff one.safetensors near.npz --atol 0.5", "diff one.safetensors two.bpk --json",
    "diff one.safetensors two.bpk --rename n=m", "diff one.safetensors two.bpk --rename n",
    "diff one.safetensors gone", "convert one.safetensors out.npz", "convert one.safetensors out.bpk",
    "convert one.safetensors out.safetensors", "convert one.safetensors out",
    "convert one.safetensors one.safetensors", "convert one.safetensors two.bpk",
    "convert one.safetensors two.bpk --overwrite", "convert one.safetensors out.bpk --half",
    "convert one.safetensors out.bpk --filter ^a", "convert one.safetensors out.bpk --filter ^a --filter n",
    "convert one.safetensors out.bpk --filter none", "convert one.safetensors out.bpk --rename a.=b.",
    "convert one.safetensors out.bpk --rename a --overwrite", "convert one.safetensors out.safetensors --shard 24",
    "convert one.safetensors out.safetensors --shard 12", "convert one.safetensors out.safetensors --shard 0",
    "convert one.safetensors out.safetensors --shard 1k", "convert one.safetensors out.safetensors --shard K",
    "convert one.safetensors out.bpk --shard 1M", "convert m.onnx out.npz", "convert packed.bpk out.safetensors",
"convert one.safetensors there.safetensors --shard 24",
    "convert one.safetensors part.safetensors --shard 24",
    "convert one.safetensors part.safetensors --shard 24 --overwrite",
    "convert packed.bpk out.bpk", "convert one.safetensors out.pt", "graph m.onnx --out g.svg",
    "graph m.onnx --out g.html", "graph m.onnx --out g.txt", "graph m.onnx --out g.png",
    "graph m.onnx --out G.TXT --depth 0", "graph m.onnx --out g.txt --depth -1",
    "graph m.onnx --out g.txt --dim rows=2", "graph m.onnx --out g.txt --dim rows",
    "graph m.onnx --out g.txt --dim =2", "codegen m.onnx", "codegen m.onnx --out out --name Other",
    "codegen m.onnx --embed", "codegen m.onnx --explain", "codegen m.onnx --passes none --explain",
    "codegen m.onnx --passes none", "codegen m.onnx --passes nothing", "codegen m.onnx --state none",
    "codegen m.onnx --state a=y", "codegen m.onnx --freeze b=[1,2,3]", "codegen m.onnx --half",
    "codegen m.onnx --flat --comment hello", "codegen gone.onnx", "compile m.onnx",
    "compile m.onnx --out p.plan --dim rows=4", "compile m.onnx --dim rows=1..9", "compile m.onnx --dim rows=4..16:4",
    "compile m.onnx --dim rows=9..1", "compile m.onnx --dim b:0=1..2", "compile m.onnx --dim rows=2..2",
    "compile m.onnx --dim a:0=10..30:10", "compile f.onnx", "compile m.onnx --dim n=3",
    "compile m.onnx --freeze b=[1,2,3]",
    *(f"quantize d.onnx --calibration d.npz --out out --time none {options}".rstrip() for options in (
        "", "--bits 4", "--bits 2 --scheme affine", "--scheme tensor", "--bits 4 --scheme affine,2",
        "--bits 4 --scheme 3",
        "--scheme odd", "--scheme 0", "--activations", "--activations dynamic", "--activations odd",
        "--activations dynamic --method mse", "--activations --method entropy", "--activations --method mse",
        "--activations --method percentile --percentile 99", "--percentile 50", "--activations --bits 4", "--keep fc",
        "--keep none", "--keep-worst 1", "--keep-worst -1", "--labels y", "--labels z", "--samples 2", "--samples 0",
        "--input x=x", "--input x=z", "--input x", "--name other", "--preprocess none:none", "--fail-below 0.1",
        "--fail-below 1.5", "--fail-below 1 --bits 2", "--json", "--force", "--time python", "--time odd",
        "--onnx qdq", "--onnx nbits --bits 4 --scheme 2", "--onnx odd", "--onnx qdq --scheme ue4m3",
        "--onnx nbits --activations", "--onnx qoperator", "--onnx qoperator --activations",
        "--bits 4 --scheme nf4", "--scheme nf4", "--scheme 2x2", "--scheme 2x3",
        "--scheme 0x0", "--scheme 2x2,affine",
    )),
    "quantize m.onnx --calibration both.npz --out out", "quantize d.onnx --calibration x.npy --out out --time none",
    "quantize d.onnx --calibration gone.npz --out out", "quantize one.safetensors --calibration d.npz --out out",
    "quantize gone.onnx --calibration d.npz --out out", "quantize d.onnx --calibration nan.npz --out out",
    "quantize d.onnx --calibration text.pt --out out", "quantize d.onnx --calibration d.npz --out d.npz",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for make in (models, arrays, weights):
        make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


VERBS = sorted({command.split()[0] for command in COMMANDS})


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_does_its_work_or_says_why_not_and_writes_nothing(verb: str, folder: Path, emberlet: Any) -> None:
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    ended: Counter[int] = Counter()
    for command in [c for c in COMMANDS if c.split()[0] == verb]:
        said = emberlet(*command.split())
        ended[said.status] += 1
        assert said.status in (0, 1, 2) and "Traceback" not in said.err, command
        files = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
        if said.status == 2:
            assert said.err.strip(), command
            assert files == before, command
        if "--json" in command and said.status == 0:
            json.loads(said.out)
        for path in [p for p in folder.rglob("*") if p.name not in before]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for name, content in before.items():
            (folder / name).write_bytes(content)
    assert ended[0] and ended[2], ended
