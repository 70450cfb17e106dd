"""Calls of the public functions and layers, each changed by one thing at a time: a length, an axis, a dtype, a word, an
argument left out or added. Plain Python and NumPy compute the same, or refuse by errors of the same class, which is one
of emberlet's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import emberlet
import pytest
from emberlet.errors import EmberletError
from support.neighboring_calls import difference, neighbors, outcome

FOLDER = Path(__file__).parent / "calls"
TOPICS = sorted(file.stem for file in FOLDER.glob("*.txt"))
# What one of the two refuses or computes otherwise, as the beginning of the calls.
KNOWN = {
    "negative lengths, which plain Python takes for 0": (
        "nn.Linear(3, -2", "nn.QuantizedLinear(32, -", "nn.Constant(2.5)((-2, 3))", "nn.Constant(2.5)((2, -3))",
        "nn.Ones()((-2, 3)", "nn.Ones()((2, -3)", "nn.Zeros()(-3)",
    ),
    "zero points, scales and biases that are neither the integers nor the floats they should be": (
        "dequantize_linear(X(2, 3, dtype=\"uint8\"), P(3), X(3, dtype='float", "matmul_integer_to_float(X(2, 3, d",
        "dequantize_linear(X(2, 4, dtype=\"int8\"), P(2, 2), X(2, 2, dtype='float", "qgemm(", "qlinear_conv(",
    ),
    "masks with more batches or heads than the queries, and a softmax in integers": (
        "nn.MultiHeadAttention(4, 2, quiet_softmax=True)(X(", "attention(X(1, 4, 1, 2)", "attention(X(1, 1, 4)",
        "attention(X(1, 0, 4)", "attention(X(2, 1, 2, 2), X(2, 1, 3, 2), X(2, 1, 3, 2), kv_lengths=V([2, 3]), s",
        "multi_head_attention(X(1, ", "self_attention(X(1, 2, 3), X(3, 12), None, V([[1, 0, 1]]), X(2, 1, 2, 1, 2)",
        "group_query_attention(X(2, 1, 4), X(2, 1, 4), X(2, 1, 4), X(2, 2, 2, 2), X(2, 2, 2, 2), V([1, 2]), 3",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def default_backend() -> Iterator[None]:
    yield
    emberlet.set_default_backend(None)


def calls(topic: str) -> list[str]:
    lines = (FOLDER / f"{topic}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def on_both(call: str) -> list[object]:
    found: list[object] = []
    for backend in ("python", "numpy"):
        emberlet.set_default_backend(backend)
        found.append(outcome(call))
    return found


def changed(call: str) -> list[str]:
    """The neighbors of a call. tests/core/test_wrong_arguments.py has None and strings in place of numbers."""
    found = dict.fromkeys(new for _, new in neighbors(call) if new.count("None") <= call.count("None"))
    return [new for new in found if new.count("string") <= call.count("string")]


@pytest.mark.parametrize("topic", TOPICS)
def test_a_call_and_its_neighbors_compute_the_same_in_plain_python_and_on_numpy(topic: str) -> None:
    found: list[str] = []
    starts = tuple(start for known in KNOWN.values() for start in known)
    for call in calls(topic):
        for text in (call, *changed(call)):
            here, there = on_both(text)
            least = 0.03 if "float16" in text else 1e-5
            if not text.startswith(starts) and (said := difference(here, there, least)):
                found.append(f"{text}: {said}")
            if not text.startswith("nn.") and isinstance(here, Exception) and not isinstance(here, EmberletError):
                found.append(f"{text}: {type(here).__name__} is an error of Python")
    assert found == []
