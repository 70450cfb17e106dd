"""Every one of ONNX's node cases, on every backend: from the model to the outputs of its generated code."""

from __future__ import annotations

import pytest

from .cases import SLOW_IN_PYTHON, node_cases, run_case

CHUNK = 48  # cases to a test: one test each would cost pytest more than the cases take
BACKENDS = ("numpy", "python")
NAMES = sorted(node_cases())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("start", range(0, len(NAMES), CHUNK), ids=lambda i: NAMES[i].removeprefix("test_"))
def test_node_cases_give_the_expected_outputs(start: int, backend: str) -> None:
    failures = []
    for name in NAMES[start : start + CHUNK]:
        if backend == "python" and name in SLOW_IN_PYTHON:
            continue
        try:
            run_case(name, backend)
        except Exception as error:  # every failure of the chunk is reported, whatever it is
            first = str(error).strip().splitlines()
            failures.append(f"{name}: {type(error).__name__}: {first[0] if first else ''}")
    assert not failures, f"{len(failures)} cases fail on {backend}:\n" + "\n".join(failures)


def test_all_node_cases_of_onnx_are_collected() -> None:
    assert len(NAMES) >= 1884
