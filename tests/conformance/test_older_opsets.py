"""Every operator at every opset at which it changed, as far as ONNX's cases can be rewritten for it.

tests/codegen/ops/test_older.py tests the rest.
"""

from __future__ import annotations

import warnings

import pytest
from emberlet.backend import get_backend
from emberlet.codegen import load
from emberlet.codegen.ops import REGISTRY
from onnx import defs

from .cases import _run, compare
from .older import right, told, versions

# Cases whose own results count, since onnxruntime's differ; and a case that says nothing about older opsets.
CASES_HOLD = (
    "test_dft",
    "test_maxunpool_export_with_output_shape",
    "test_resize_downsample_scales_cubic_align_corners",
)
NOT_THEN = {("PRelu", 1): "test_prelu_broadcast", ("PRelu", 6): "test_prelu_broadcast"}  # a slope was one per channel

OPERATORS = sorted(k for k in REGISTRY if k in versions())
CHUNK = 24


def test_since_names_the_opsets_at_which_each_operator_changed() -> None:
    """The opset that removed an operator may be listed or not."""
    changed: dict[tuple[str, str], set[int]] = {}
    removed: dict[tuple[str, str], set[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        versions = removed if schema.deprecated else changed
        versions.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
    said = {key: {*REGISTRY[key].since} for key in changed if key in REGISTRY}
    assert {k: said[k] for k in said if said[k] - removed.get(k, set()) != changed[k]} == {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", range(0, len(OPERATORS), CHUNK), ids=lambda i: OPERATORS[i][1])
def test_older_opsets_give_the_outputs_of_onnxruntime(start: int) -> None:
    failures, backend = [], get_backend("numpy")
    for domain, op in OPERATORS[start : start + CHUNK]:
        for version in versions()[domain, op][:-1]:
            for name, model, inputs, outputs in told(domain, op, version):
                if NOT_THEN.get((op, version)) == name:
                    continue
                want = outputs if name.startswith(CASES_HOLD) else right(model, inputs, outputs)
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        got = _run(load(model, backend), inputs, backend)
                    for g, w in zip(got, want, strict=True):
                        compare(name, g, w, 1e-3, 1e-5)
                except Exception as error:  # every failure of the chunk is reported, whatever it is
                    failures.append(f"{op} of opset {version}, {name}: {error}")
    assert not failures, "\n".join(failures)
