"""The imports of `emberlet run`, which dominate its start. No other test would notice an extra one."""

import numpy as np
import pytest
from support.processes import python

# package -> its modules; each module that `emberlet run` imports needs a reason to be here.
IMPORTED = """
emberlet: backend burnpack codegen dtypes errors functional host lookup model module names nn param shapes sizes
emberlet: tensor
emberlet.backend: protocol
emberlet.codegen: budget checkpoint_names emit evaluation generation hierarchy ir ops passes protobuf reader records
emberlet.codegen: weights
emberlet.codegen.emit: block contract emitter expression handing_on instance layout module names polish statement
emberlet.codegen.emit: traversal variables words
emberlet.codegen.hierarchy: caches classes invoke lists moving options ordering region_graph region_writer regions
emberlet.codegen.hierarchy: repetition roles runs scopes templates words writer
emberlet.codegen.hierarchy.repetition: block_names patterns sequence
emberlet.codegen.ir: argument choices graph keys problem sizes types value
emberlet.codegen.ops: activations arithmetic attributes base constant convolution elementwise expansion internal joining
emberlet.codegen.ops: linear_algebra movement normalization places pooling recurrent recurrent_layers reduction slicing
emberlet.codegen.ops: softmax windows
emberlet.codegen.passes: common dead fold idempotent identity linear moves recurrent rewriting sizes
emberlet.codegen.protobuf: message messages wire
emberlet.codegen.reader: freezing gradient graphs modules order parsing schema scope texts values
emberlet.dtypes: decimal narrow
emberlet.functional: arrays convolution dense max_pooling operands rectifiers reshaping
emberlet.host: blas_kernels cli counts digests extras folders interface listing memory models npy numpy_backend
emberlet.host: onnx_types other_formats public sharing streams
emberlet.host.interface: documenting elsewhere examples guarding keywords module_gate python_numbers
emberlet.host.interface.elsewhere: burn calls functions names params
emberlet.host.models: calls inputs
emberlet.module: narrowing
emberlet.host.folders: folder outputs
emberlet.host.cli: model options plain progress results run
emberlet.host.numpy_backend: assignment attention backend block_weights composites convolution elementwise integers
emberlet.host.numpy_backend: quantized_recurrent recurrent storage windows
emberlet.host.sharing: fields protocols
emberlet.module: layouts loading methods
emberlet.nn: conv linear names params
emberlet.param: methods
emberlet.sizes: arithmetic
"""
# Modules of the standard library and of others that take long to import.
NOT_NEEDED = (
    "asyncio bz2 concurrent.futures ctypes difflib hashlib importlib.resources logging lzma ml_dtypes multiprocessing "
    "onnx onnxruntime pkgutil random shutil subprocess tempfile threading wgpu zipfile"
).split()
SCRIPT = """
import sys
{before}
known = set(sys.modules)
from emberlet.host.cli import main
assert main(["run", {model!r}, "--input", "image=" + {image!r}, "--backend", {backend!r}]) == 0
print(*sorted(set(sys.modules) - known))
"""


def modules(folder, digits, backend: str, before: str) -> set[str]:
    """The modules that a process imports to run digits, without those of `before`."""
    image = folder / "image.npy"
    np.save(image, np.zeros((1, 1, 8, 8), np.float32))
    script = SCRIPT.format(model=str(digits), image=str(image), backend=backend, before=before)
    done = python("-c", script)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_run_imports_these_modules_and_no_others(tmp_path, digits):
    wanted = {"emberlet"}
    for line in IMPORTED.split("\n"):
        package, _, names = line.partition(": ")
        wanted |= {f"{package}.{name}" for name in names.split()}
    found = modules(tmp_path, digits, "numpy", "import numpy")
    assert {m for m in found if m.partition(".")[0] == "emberlet"} == wanted
    assert not found.intersection(NOT_NEEDED)


@pytest.mark.needs("gpu-driver")
def test_run_on_a_gpu_imports_no_numpy(tmp_path, digits):
    assert "numpy" not in modules(tmp_path, digits, "wgpu", "")


def test_the_version_is_said_without_importing_anything(tmp_path):
    script = "import sys\nfrom emberlet.host.cli import main\nmain(['--version'])\nprint(*sys.modules)"
    done = python("-c", script, check=True)
    assert not {"argparse", "numpy", "json", "inspect", "dataclasses"} & set(done.stdout.splitlines()[-1].split())


def test_the_command_line_runs_in_any_thread():
    code = """import sys, threading
from emberlet.host.cli import main
sys.argv = ["emberlet", "--version"]
thread = threading.Thread(target=lambda: print("status", main()))
thread.start()
thread.join()
"""
    said = python("-c", code, check=True)
    assert "status 0" in said.stdout, said.stderr
