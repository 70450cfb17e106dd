"""Node cases with every axis open: one plan serves their sizes and others. `python -m tests.conformance.open_axes` runs
all of them."""

from __future__ import annotations

import pytest

from .open_axes import model_case, node_case

pytestmark = pytest.mark.needs("gpu-driver")
OPEN = (
    "add_bcast", "averagepool_1d_default", "batchnorm_epsilon_training_mode", "concat_2d_axis_1", "convtranspose_1d",
    "depthtospace_example", "gather_0", "gemm_all_attributes", "instancenorm_epsilon",
    "layer_normalization_2d_axis1", "matmul_3d", "maxpool_2d_default", "softmax_axis_1", "sub_bcast",
    "transpose_all_permutations_1", "where_example",
)  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_one_plan_serves_every_size(name: str) -> None:
    found = node_case(f"test_{name}")
    assert (found.kind, found.why) == ("open", "")
    assert found.sizes == 3


@pytest.mark.parametrize(
    "name, kinds, why",
    [
        ("gru_seq_length", ("own", "partly"), "by recurrent_steps in"),
        ("bernoulli_expanded", ("cut",), "the model draws random numbers"),
    ],
)
def test_what_cannot_be_left_open_is_named_and_right(name: str, kinds: tuple[str, ...], why: str) -> None:
    found = node_case(f"test_{name}")
    assert found.kind in kinds
    assert why in found.why


def test_a_text_encoder_runs_at_other_sizes() -> None:
    from models.index import cases

    case = next(c for c in cases() if c.name == "bert_traced")
    found = model_case(case)
    assert found.kind in ("open", "partly"), found
