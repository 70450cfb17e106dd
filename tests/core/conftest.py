"""The backends that every tensor test runs on, and conversions between tensors and NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from emberlet.backend import Backend, get_backend, set_default_backend
from support.backends import NAMES


@pytest.fixture(params=NAMES)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Each backend in turn, made the default for the length of the test."""
    chosen = get_backend(request.param)
    set_default_backend(chosen)
    yield chosen
    set_default_backend(None)
