"""Coverage-guided fuzzing of the ONNX importer: python tests/fuzz/fuzz_reader.py [-max_total_time=60].

Needs atheris. For any file the importer writes Python that compiles, or raises EmberletError on purpose and not because
of another error. Inputs are changed as bytes and now and then as models, in one of the ways in which a file may lie
(support/onnx_mutations.py).
"""

import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fuzz import harness, multiplied  # noqa: E402

harness.instrument("emberlet.codegen")

from emberlet.codegen.generation import translate  # noqa: E402
from emberlet.errors import EmberletError  # noqa: E402
from onnx import ModelProto  # noqa: E402
from support import hostile_models, machine_learning  # noqa: E402
from support.onnx_mutations import mutated  # noqa: E402

LARGEST = 4096
FOLDER = pathlib.Path(harness.scratch())  # of external data
(FOLDER / "x").write_bytes(bytes(4096))
MEGABYTES = 384  # what evaluating constants may take, and what is written of them


def read(data: bytes) -> None:
    try:
        written = translate(data, folder=FOLDER)[1]
    except EmberletError as error:
        assert error.__cause__ is None or isinstance(error.__cause__, EmberletError), repr(error.__cause__)
        return
    compile(written.source, "generated", "exec")


def change(data: bytes, largest: int, seed: int) -> bytes:
    """A mutation of the bytes, or of the model that they encode."""
    model = ModelProto()
    if seed % 4:
        try:
            model.ParseFromString(data)
            if len(model.graph.node):
                return mutated(model, seed).SerializeToString()[:largest]
        except Exception:  # not a model, or no longer one: change its bytes
            pass
    return harness.changed(data, largest, seed)


def seeds(count: int = 200) -> dict[str, bytes]:
    """Cases of ONNX's, the smallest exports, operators of ai.onnx.ml, and models that ask for too much."""
    from conformance.cases import node_cases

    names = random.Random(0).sample(sorted(node_cases()), count)
    files = [f for f in sorted((ROOT / "tests" / "models").rglob("*.onnx")) if f.stat().st_size < LARGEST]
    models = {n: node_cases()[n].model.SerializeToString() for n in names}
    models.update({m.graph.node[0].op_type: m.SerializeToString() for m in machine_learning.models()})
    models.update({name: case().SerializeToString() for name, case in hostile_models.CASES.items()})
    return {**models, **{f.parent.name: f.read_bytes() for f in files}}


if __name__ == "__main__":
    harness.run(read, seeds(), LARGEST, MEGABYTES, change, multiplied.onnx)
