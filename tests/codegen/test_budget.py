"""Small files that describe huge models: generating code takes little memory or is refused with a clear message.

Memory is the process's, which takes no time to measure. Time is bounded by the same counts; a case that hangs fails.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import budget, generate, inspect, load
from emberlet.codegen.emit import polish, traversal
from emberlet.codegen.generation import translate
from emberlet.errors import EmberletError, ModelError
from fuzz.harness import Memory
from onnx import helper
from support.hostile_models import CASES, FLOAT, N, computing, model, sparse, with_external
from support.onnx_models import parse

MEGABYTES = 160


@pytest.mark.parametrize("case", CASES)
def test_little_that_asks_for_much_takes_little(case: str, tmp_path: Path) -> None:
    source = CASES[case]().SerializeToString()
    gc.collect()
    memory = Memory()
    before = memory.begin()
    try:
        generate(source, tmp_path)
    except ModelError as error:
        assert error.__cause__ is None or isinstance(error.__cause__, EmberletError), error
        assert len(str(error)) < 4000
    assert memory.peak() - before < MEGABYTES
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) < 1 << 20


def test_what_exceeds_the_budget_stays_a_node() -> None:
    source = translate(CASES["padding of a convolution"]())[1].source
    assert "8192" in source
    assert "regex_full_match" in translate(CASES["a regular expression"]())[1].source


def test_all_evaluations_of_a_model_share_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [N("Add", ["a", "b"], ["t0"]), *(N("Neg", [f"t{i}"], [f"t{i + 1}"]) for i in range(20))]
    made = model([*nodes, N("Identity", ["t20"], ["y"])], {"a": np.float32([1]), "b": np.float32([2])})
    assert "-" not in forward(made)
    monkeypatch.setattr(budget, "MODEL", 5 * budget.EACH)
    assert "-" in forward(made)  # the rest is computed when the model runs
    np.testing.assert_allclose(np.asarray(load(made, "numpy")()), [3.0])


def test_what_inlined_functions_compute_alike_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.codegen import evaluation

    counted = []
    whole = evaluation._evaluate
    monkeypatch.setattr(evaluation, "_evaluate", lambda *a: counted.append(a) or whole(*a))
    made = CASES["a function that computes the same a thousand times"]()
    translate(made)
    assert 1 <= len(counted) < 20
    del made.functions[:-2]
    del made.graph.node[:]
    made.graph.node.append(helper.make_node(made.functions[0].name, ["x"], ["y"], domain="d"))
    x = np.float32([3, 5])
    found = np.asarray(load(made, "numpy")(x))
    for _ in range(2):
        x = x + x[np.arange(300) % 2].sum()
    np.testing.assert_allclose(found, x)


def forward(made: onnx.ModelProto) -> str:
    return translate(made)[1].source.split('"""')[-1]


def test_every_primitive_has_a_cost() -> None:
    assert budget.PRIMITIVES == set(budget.COSTS) | set(budget.FREE)


def test_sparse_tensors_share_a_limit() -> None:
    few = [sparse(k, 1 << 20) for k in range(3)]
    translate(model([N("Sum", ["x", "w0", "w1", "w2"], ["y"])], inputs=[("x", ["n"])], sparse=few))
    many = [sparse(k, 1 << 26) for k in range(8)]
    with pytest.raises(ModelError, match="too large to be made dense"):
        translate(model([N("Sum", ["x", *(f"w{k}" for k in range(8))], ["y"])], inputs=[("x", ["n"])], sparse=many))


@pytest.mark.parametrize("kind", ["shape", "scalar"])
@pytest.mark.parametrize("count", [40, 2000])
def test_long_chains_of_arithmetic_on_sizes(kind: str, count: int) -> None:
    first = [N("Shape", ["x"], ["s0"])] if kind == "shape" else [N("Size", ["x"], ["s0"])]
    nodes = [*first, *(N("Add", [f"s{i}", "one"], [f"s{i + 1}"]) for i in range(count))]
    one = np.int64([1]) if kind == "shape" else np.int64(1)
    made = model([*nodes, N("Cast", [f"s{count}"], ["y"], to=FLOAT)], {"one": one}, [("x", ["n"])])
    y = load(made, "numpy")(np_tensor(np.zeros(3, np.float32)))
    assert float(np.asarray(y).reshape(())) == 3 + count


def np_tensor(array: np.ndarray):  # type: ignore[no-untyped-def]
    import emberlet

    return emberlet.asarray(array, backend="numpy")


# -- one place for what may go wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [ValueError, OverflowError, ZeroDivisionError, MemoryError, RecursionError, RuntimeError]
)
@pytest.mark.parametrize("where", ["read", "pass", "emit", "weights"])
@pytest.mark.filterwarnings("ignore:a bug of emberlet")  # first the modules are not found, then nothing can be written
def test_any_error_on_the_way_becomes_a_model_error(
    where: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emberlet.codegen import generation, reader, weights

    def fails(*arguments: object, **named: object) -> None:
        raise error("deep inside")

    place = {
        "read": (reader, "broken_text"), "pass": (generation, "run_passes"), "emit": (generation.ModuleWriter, "write"),
        "weights": (weights, "save"),
    }[where]  # fmt: skip
    monkeypatch.setattr(*place, fails)
    source = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    with pytest.raises(ModelError) as caught:
        generate(source, tmp_path / "out")
    assert isinstance(caught.value.__cause__, error)
    assert not (tmp_path / "out").exists()
    if where == "read":
        with pytest.raises(ModelError):
            inspect(source)


@pytest.mark.needs("symlinks")
def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.data").symlink_to("b.data")
    (tmp_path / "b.data").symlink_to("a.data")
    with pytest.raises(ModelError, match="initializer 'w': its data file"):
        load(with_external(tmp_path, location="a.data"))
    with pytest.raises(ModelError, match="initializer 'w': its data file"):
        load(with_external(tmp_path, location="x" * 5000))


def test_the_work_of_joining_statements_grows_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = traversal.count
    calls = [0]

    def count(*arguments: Any) -> None:
        calls[0] += 1
        counted(*arguments)

    for module in (polish, traversal):
        monkeypatch.setattr(module, "count", count)
    taken = []
    for levels in (6, 8):  # four times as many statements
        calls[0] = 0
        translate(computing(levels).SerializeToString())
        taken.append(calls[0])
    assert taken[1] < 6 * taken[0]
