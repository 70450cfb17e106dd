"""Every one of ONNX's node cases, on every backend: from the model to the outputs of its generated code.

`pytest tests/conformance -k lrn` runs the cases whose name, or one of whose operators, holds "lrn", each as a test.
"""

from __future__ import annotations

import re

import onnx
import pytest
from emberlet.codegen.ops import REGISTRY
from support.draws import draw, share
from support.every_backend import WGPU

from tools.paths import ROOT

from .cases import SLOW_IN_PYTHON, node_cases, operators, run_case

CHUNK = 48  # cases to a test: one test each would cost pytest more than the cases take
# A run has one of so many cases of a chunk, others each time.
SHARES = {"numpy": 1, "numpy compiled": 4, "python": 4, "wasm": 6, "native": 6, "wgpu": 8}
BACKENDS = [*list(SHARES)[:-1], WGPU]
NAMES = sorted(node_cases())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The cases in chunks; one by one, with their operators in their ids, where `-k` chooses among them."""
    if "names" in metafunc.fixturenames:
        if metafunc.config.getoption("keyword"):
            chosen = [[name] for name in NAMES]
            ids = [f"{name.removeprefix('test_')}-{_operators(name)}" for name in NAMES]
        else:
            chosen = [NAMES[i : i + CHUNK] for i in range(0, len(NAMES), CHUNK)]
            ids = [names[0].removeprefix("test_") for names in chosen]
        metafunc.parametrize("names", chosen, ids=ids)


def _operators(name: str) -> str:
    """The operators of a case in lower case, those of ONNX's functions aside where the case is of one operator."""
    return "-".join(sorted({operator.lower() for _, operator in operators(node_cases()[name].model)}))


@pytest.mark.parametrize("backend", BACKENDS)
def test_node_cases_give_the_expected_outputs(names: list[str], backend: str) -> None:
    if backend in ("wasm", "native"):
        pytest.importorskip({"wasm": "wasmtime", "native": "llvmlite"}[backend])
    if len(names) > 1:
        step = share(SHARES[backend])
        names = names[draw(names[0], backend).randrange(step) :: step]
    failures = []
    for name in names:
        if backend == "python" and name in SLOW_IN_PYTHON:
            continue
        try:
            run_case(name, backend)
        except Exception as error:  # every failure of the chunk is reported, whatever it is
            first = str(error).strip().splitlines()
            failures.append(f"{name}: {type(error).__name__}: {first[0] if first else ''}")
    assert not failures, f"{len(failures)} cases fail on {backend}:\n" + "\n".join(failures)


def test_all_node_cases_of_onnx_are_collected() -> None:
    # ONNX 1.22 has 1765 of them, 1.23 has 1884.
    newest = tuple(int(n) for n in onnx.__version__.split(".")[:2]) >= (1, 23)
    assert len(NAMES) >= (1884 if newest else 1765)


def _rows(page: str) -> set[str]:
    """The operators of the table in a page of docs/."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return set(re.findall(r"^\| ([\w.]+) \|", text, re.MULTILINE))


def test_every_operator_has_a_case_or_a_test_and_a_row_in_the_documents() -> None:
    in_cases = {pair for case in node_cases().values() for pair in operators(case.model)}
    files = [*(ROOT / "tests/codegen").rglob("test_*.py"), *(ROOT / "tests/models/recipes").glob("*.py")]
    tested = set(re.findall(r"\w+", "\n".join(f.read_text(encoding="utf-8") for f in files)))
    rows = _rows("operators.md") | {f"com.microsoft.{name}" for name in _rows("contrib-operators.md")}
    for domain, name in REGISTRY:
        if domain == "emberlet":
            continue  # made by passes, never read from a model
        full = f"{domain}.{name}" if domain else name
        assert (domain, name) in in_cases or name in tested, f"{full} has no case and no test"
        assert full in rows, f"{full} has no row in docs/operators.md or docs/contrib-operators.md"
