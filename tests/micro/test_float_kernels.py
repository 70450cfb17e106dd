"""Float32 kernels on MicroPython compute NumPy's results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.microcontrollers.float_layers import float_cases, float_program, function_cases

from tools.microcontrollers.running import run_program
from tools.micropython import Port


@pytest.mark.parametrize("port_name", ["unix_port", "armhf_port"])
def test_layers_and_functions(port_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    port: Port = request.getfixturevalue(port_name)
    made = [*float_cases(1, 390), *function_cases()]
    program, arena, due = float_program(made)
    found = run_program(port, program, "float32", arena, tmp_path)
    for case, (at, expected) in zip(made, due, strict=True):
        y = found[at : at + expected.size].reshape(expected.shape)
        np.testing.assert_allclose(y, expected, rtol=2e-4, atol=2e-5, err_msg=case.layer.name)
