"""ONNX's stored cases: from the file to the outputs of its generated code."""

from __future__ import annotations

import pytest
from support.rows import every

from .data_cases import run_stored_case, stored_cases


@pytest.mark.parametrize("backend", ["numpy", "python"])
@every("name", stored_cases())
def test_stored_cases_give_the_expected_outputs(name: str, backend: str) -> None:
    run_stored_case(name, backend)


def test_all_of_onnxs_files_are_collected() -> None:
    assert len(stored_cases()) >= 140
