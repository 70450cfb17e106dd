"""One model on every target this machine has: `python3 dev.py demo`.

Generates Python from digits.onnx, lets every target classify the same held-out images with that one file, and compares
the results with onnxruntime's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
for folder in (HERE, ROOT):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from show import Table, milliseconds, side_by_side, size  # noqa: E402
from targets import ALL, Answer, Kit, Target, TargetError  # noqa: E402

MODEL = HERE / "digits.onnx"
TOLERANCE = 1e-4
OUT = ROOT / "out" / "digits"


def generate(folder: Path) -> tuple[Path, Path]:
    """Write the model to `folder`, with its weights beside it and with them inside; returns the two folders."""
    from emberlet.codegen import generate

    beside, inside = folder / "file", folder / "embedded"
    generate(MODEL, beside, force=True)
    generate(MODEL, inside, embed=True, force=True)
    return beside, inside


def held_out(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `count` images (count, 8, 8) uint8 that the model has not seen, and their labels."""
    with np.load(HERE / "heldout.npz") as data:
        return data["images"][:count], data["labels"][:count]


def expected(images: np.ndarray) -> np.ndarray:
    """onnxruntime's logits, (count, 10) float32."""
    import onnxruntime

    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    logits: np.ndarray = session.run(["logits"], {"image": images[:, None].astype(np.float32) / 16})[0]
    return logits


def show_digits(images: np.ndarray, labels: np.ndarray, logits: np.ndarray) -> None:
    """Show four of the images, including one that the model gets wrong, if there is one."""
    said = logits.argmax(1)
    chance = np.exp(logits - logits.max(1, keepdims=True))
    chance = chance.max(1) / chance.sum(1)
    wrong = np.flatnonzero(said != labels)[:1]
    chosen = [*np.flatnonzero(said == labels)[: 4 - len(wrong)], *wrong]
    captions = [
        f"{said[i]} ({chance[i]:.0%})" if said[i] == labels[i] else f"{said[i]}? it is a {labels[i]}" for i in chosen
    ]
    print(side_by_side([images[i] for i in chosen], captions) + "\n")


def row(target: Target, answer: Answer, logits: np.ndarray, labels: np.ndarray) -> list[str]:
    right = int((answer.logits.argmax(1) == labels).sum())
    return [
        target.name,
        f"{right / len(labels):.1%}",
        f"{np.abs(answer.logits - logits).max():.1e}",
        milliseconds(answer.first),
        milliseconds(answer.steady),
        size(answer.memory),
        size(answer.shipped),
    ]


def agrees(answer: Answer, logits: np.ndarray) -> bool:
    return answer.logits.shape == logits.shape and float(np.abs(answer.logits - logits).max()) <= TOLERANCE


def choose(only: list[str]) -> list[Target]:
    known = {target.key: target for target in ALL}
    if unknown := [key for key in only if key not in known]:
        raise SystemExit(f"demo: no target {', '.join(unknown)}; there are {', '.join(known)}")
    return [target for target in ALL if not only or target.key in only]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="dev.py demo", description="One model on every target this machine has.")
    parser.add_argument("--images", type=int, default=100, metavar="N", help="how many to classify (default 100)")
    parser.add_argument("--only", nargs="+", default=[], metavar="TARGET", help="; ".join(t.key for t in ALL))
    options = parser.parse_args(arguments)
    if options.images < 1:
        raise SystemExit(f"demo: --images is {options.images}, expected 1 or more")
    targets = choose(options.only)

    start = time.monotonic()
    folder, embedded = generate(OUT)
    images, labels = held_out(options.images)
    logits = expected(images)
    print(f"\ndigits.onnx became {(folder / 'digits.py').relative_to(ROOT)}, in {time.monotonic() - start:.1f} s.")
    right = int((logits.argmax(1) == labels).sum())
    print(f"onnxruntime reads {right} of {len(labels)} handwritten digits that it has never seen; such as these:\n")
    show_digits(images, labels, logits)

    table = Table(
        ["target", "right", "differs", "first ms", "then ms", "memory", "shipped"],
        [max(len(target.name) for target in targets), 6, 7, 8, 8, 7, 7],
    )
    adapters: list[str] = []
    missing: list[str] = []
    apart: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        kit = Kit(folder, embedded, Path(scratch, "images.bin"), len(images), Path(scratch))
        kit.images.write_bytes(images.tobytes())
        for target in targets:
            if told := target.missing():
                missing.append(f"{target.name}: {told}")
                continue
            table.working(target.name)
            try:
                answer = target.run(kit)
            except (TargetError, subprocess.TimeoutExpired) as error:
                table.line(f"{target.name}: failed")
                apart.append(f"{target.name} failed:\n{error}")
                continue
            table.row(row(target, answer, logits, labels))
            if answer.adapter:
                adapters.append(f"{target.name}: {answer.adapter}")
            if not agrees(answer, logits):
                apart.append(f"{target.name} differs from onnxruntime by more than {TOLERANCE:g}")
    report(adapters, missing, apart)
    return 1 if apart else 0


def report(adapters: list[str], missing: list[str], apart: list[str]) -> None:
    print(
        "\ndiffers   the largest difference of a logit from onnxruntime's"
        "\nfirst ms  from importing the model to the first answer; then ms: the median of the images after it"
        "\nmemory    CPython: of the whole process; MicroPython: the smallest heap in which it works;"
        "\n          MicroPython's Wasm, which collects between calls only: what a call fills; Pyodide: all Wasm memory"
        "\nshipped   the model, its weights and those files of emberlet (in a browser, of wgpu-py too) that it loads"
    )
    for heading, lines in (("GPUs", adapters), ("Not on this machine", missing), ("Wrong", apart)):
        if lines:
            print(f"\n{heading}")
            for line in lines:
                print(f"  {line}")
    print(
        "\nWhat to try next\n"
        "  read the model          out/digits/file/digits.py\n"
        "  draw a digit            python3 dev.py web\n"
        "  a model of your own     .venv/bin/emberlet codegen MODEL.onnx --out out/\n"
        "  is it the same?         .venv/bin/emberlet verify MODEL.onnx --backend numpy\n"
        "  which GPUs are there?   .venv/bin/emberlet devices"
    )


if __name__ == "__main__":
    sys.exit(main())
