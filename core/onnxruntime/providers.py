"""Execution providers: the backend of each, the available ones, and those that a session uses."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ..host.extras import missing

CPU, WEBGPU = "CPUExecutionProvider", "WebGPUExecutionProvider"
PROVIDERS = (WEBGPU, CPU)

_preferred: list[str] | None = None


def prefer(providers: Sequence[str] | None) -> None:
    """Make every session use these providers instead of its own; None undoes it. Raises ValueError for unknown
    names."""
    global _preferred
    for name in providers or ():
        if name not in PROVIDERS:
            raise ValueError(f"unknown provider {name!r}; known are {', '.join(PROVIDERS)}")
    _preferred = None if providers is None else list(providers)


def get_all_providers() -> list[str]:
    """The providers this module knows, the fastest first."""
    return list(PROVIDERS)


def get_available_providers() -> list[str]:
    """The providers whose library is installed, the fastest first. A GPU is only opened by a session."""
    return [WEBGPU, CPU] if _has_webgpu() else [CPU]


def get_device() -> str:
    """ "GPU" if WebGPU may be available, else "CPU"."""
    return "GPU" if _has_webgpu() else "CPU"


def backend_of(provider: str) -> str:
    """The name of a provider's backend. In a tab without NumPy the CPU provider is WebAssembly."""
    if provider == WEBGPU:
        return "wgpu"
    if not missing(["numpy"]):
        return "numpy"
    return "wasm" if sys.platform == "emscripten" and _has_vectors() else "python"


def _has_vectors() -> bool:
    from ..backend import get_backend
    from ..errors import BackendError

    try:
        get_backend("wasm")
    except BackendError:
        return False
    return True


def _has_webgpu() -> bool:
    if missing(["wgpu"]):
        return False
    if sys.platform != "emscripten":
        return True
    import js

    return bool(getattr(js.navigator, "gpu", None))


def chosen(providers: Any, options: Any) -> tuple[list[str], dict[str, dict[str, str]]]:
    """(the providers of a session, the options of each) for the arguments of `InferenceSession`.

    Unavailable names are dropped with a warning; the CPU comes last. Raises ValueError for other values.
    """
    if _preferred is not None:
        providers, options = _preferred, None
    if providers is None:
        providers = [CPU]
    if isinstance(providers, str) or not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if options is not None and (not isinstance(options, Sequence) or len(options) != len(providers)):
        raise ValueError("'providers' and 'provider_options' should be sequences of the same length.")
    found: dict[str, dict[str, str]] = {}
    for i, entry in enumerate(providers):
        pair = (entry, options[i] if options is not None else {}) if isinstance(entry, str) else entry
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], dict)):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        name, given = pair
        if name not in get_available_providers():
            known = ", ".join(get_available_providers())
            warnings.warn(f"Specified provider '{name}' is not available. Available providers: '{known}'", stacklevel=4)
        elif name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
        else:
            found[name] = {str(k): str(v) for k, v in given.items()}
    found.setdefault(CPU, {})
    return list(found), found
