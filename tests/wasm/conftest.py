"""WebAssembly runs in wasmtime here; without it these tests are skipped."""

import pytest

pytest.importorskip("wasmtime")
