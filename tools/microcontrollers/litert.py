"""Results of LiteRT's reference kernels, run in a separate process, because a failed assertion in them ends it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_SCRIPT = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

folder = sys.argv[1]
inputs = np.load(folder + "/inputs.npz")
answers = {}
for key in inputs.files:
    model = Interpreter(folder + "/" + key + ".tflite", experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    model.allocate_tensors()
    source, target = model.get_input_details()[0], model.get_output_details()[0]
    found = []
    for x in inputs[key]:
        model.set_tensor(source["index"], x.reshape(source["shape"]).astype(source["dtype"]))
        model.invoke()
        found.append(model.get_tensor(target["index"]).reshape(-1))
    answers[key] = np.array(found)
np.savez(folder + "/answers.npz", **answers)
"""


def answers(models: Mapping[str, bytes], inputs: Mapping[str, Array], folder: Path) -> dict[str, Array]:
    """The first output of each model for a sequence of first inputs: (inputs, elements)."""
    for key, data in models.items():
        (folder / f"{key}.tflite").write_bytes(data)
    np.savez(folder / "inputs.npz", **dict(inputs))
    subprocess.run([sys.executable, "-c", _SCRIPT, folder], check=True, capture_output=True, timeout=300)
    with np.load(folder / "answers.npz") as found:
        return {key: found[key] for key in found.files}
