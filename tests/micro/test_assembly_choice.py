"""Which models run in assembly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.emit.kernels import kernels_source, machine_code
from emberlet.micro.builder.kernels.move import Copy
from support.rows import every

from tools.microcontrollers.random_layers import Case, program_of


@every("arch", ["armv7em", "armv6m", "rv32imc"])
def test_a_model_with_too_many_calls_is_refused_in_assembly_and_built_in_viper(arch: str) -> None:
    """A kernel's place has 16 bits in the table, which half of these steps fit."""
    made, _, _ = program_of([Case(Copy("copy", ("x",), "y", (8,)), (np.arange(8, dtype=np.uint8),), (8,))])
    assert machine_code(replace(made, steps=made.steps * 8000), arch)
    large = replace(made, steps=made.steps * 16400)
    with pytest.raises(UnsupportedError, match="--kernels viper"):
        machine_code(large, arch)
    assert kernels_source(large, "viper").count("(a, w, t, l") == 0
