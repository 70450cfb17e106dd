"""What `emberlet inspect` prints of a store."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet import dtypes
from emberlet.errors import EmberletError
from emberlet.host.cli import inspect
from emberlet.param.identity import ParamId


def stored(**changed: Any) -> Any:
    fields: dict[str, Any] = {
        "dtype": dtypes.float32, "shape": (2, 3), "nbytes": 24, "param_id": None, "stored": "float32", "original": "a"
    }  # fmt: skip
    return SimpleNamespace(**{**fields, **changed})


class Store(dict[str, Any]):
    format, layout, nbytes = "npz", "torch", 48
    metadata: dict[str, str] = {}  # noqa: RUF012
    scalars: dict[str, Any] = {}  # noqa: RUF012
    extras: dict[str, Any] = {}  # noqa: RUF012


def test_a_store_is_a_table_with_the_columns_that_hold_something() -> None:
    made: Any = Store(b=stored(shape=(1000,)), a=stored())
    assert inspect.describe(made).splitlines() == [
        "tensor  dtype    shape    bytes",
        "a       float32  (2, 3)   24",
        "b       float32  (1000,)  24",
        "2 tensors, 48 bytes",
    ]
    made["a"].param_id = 7
    made["b"].stored = "Q4_0"
    made.metadata, made.scalars = {"z": "1", "y": "a" * 500}, {"s": 2}
    made.extras = {"e": [1, 2]}
    lines = inspect.describe(made).splitlines()
    assert lines[0].split("  ")[-2:] == [" param id", "stored as"] or lines[0].endswith("stored as")
    assert lines[1].rstrip().endswith(str(ParamId(7)))
    assert lines[2].endswith("Q4_0")
    assert lines[4] == "metadata y: " + "a" * 400 + "… (500 characters)"
    assert lines[5:] == ["metadata z: 1", "scalar s: 2", "extra e: [1, 2]"]


def test_a_store_as_json_has_identities_and_names_that_changed() -> None:
    made: Any = Store(a=stored(), b=stored(param_id=7, original="b.old"))
    made.scalars = {"one": 1.5, "inf": math.inf, "low": -math.inf, "nan": math.nan}
    made.extras = {"e": [1] * 9}
    found = json.loads(json.dumps(inspect.as_json(made), allow_nan=False))
    plain = {"dtype": "float32", "shape": [2, 3], "bytes": 24, "stored": "float32"}
    assert found["tensors"] == {"a": plain, "b": {**plain, "param_id": str(ParamId(7)), "original": "b.old"}}
    assert found["scalars"] == {"one": 1.5, "inf": "inf", "low": "-inf", "nan": "nan"}
    assert (found["format"], found["layout"]) == ("npz", "torch")
    assert found["extras"] == {"e": "[1, 1, 1, 1, …] (9)"}


def test_a_tree_is_text_only() -> None:
    with pytest.raises(EmberletError, match=r"--tree.*--json.*--tree"):
        inspect.run(SimpleNamespace(tree=True, json=True))  # type: ignore[arg-type]
