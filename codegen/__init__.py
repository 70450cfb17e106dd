"""The ONNX importer: `generate` writes readable Python and a burnpack, `load` gives a model ready to run, `quantize`
a smaller one and what that costs, `parse` the typed IR and `inspect` its text. It needs no library; `onnx`, if
installed, reads large files. docs/codegen.md explains how it works.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emberlet.host.cli.quantize.library import Quantized, quantize

    from .generation import Generated, generate, load
    from .inspection import inspect
    from .ir import read as parse
    from .overwriting import OverwriteError

__all__ = ["Generated", "OverwriteError", "Quantized", "generate", "inspect", "load", "parse", "quantize"]
QUANTIZING = "emberlet.host.cli.quantize.library"  # by name, because it is built on this package


def __dir__() -> list[str]:
    return [*__all__, "onnx_backend"]


def __getattr__(name: str) -> Any:
    if name in ("Generated", "generate", "load"):
        from . import generation

        found = getattr(generation, name)
    elif name == "inspect":
        from .inspection import inspect as found
    elif name == "parse":
        from .ir import read as found
    elif name == "OverwriteError":
        from .overwriting import OverwriteError as found
    elif name in ("Quantized", "quantize"):
        from emberlet.host.extras import require

        require("codegen.quantize", "numpy")
        found = getattr(import_module(QUANTIZING), name)
    elif name in ("ModelGen", "RecordType"):  # Burn's
        from emberlet.host.interface.elsewhere import classes

        found = getattr(classes, name)
    elif name == "onnx_backend":
        found = import_module(f"{__name__}.onnx_backend")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
