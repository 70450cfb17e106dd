"""The names of all backends as parameters of a test; that of the GPU is skipped where there is no driver."""

import pytest

from .backends import NAMES

EVERY = [*NAMES, pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))]
