"""The command line, run in this process, and small models for it."""

import dataclasses
import pathlib

import numpy as np
import pytest
from emberlet.host.cli import main

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


@dataclasses.dataclass
class Said:
    status: int
    out: str
    err: str


@pytest.fixture
def emberlet(capsys):
    """emberlet("run", path, …) -> exit status, stdout, stderr."""

    def call(*arguments):
        capsys.readouterr()
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as ended:  # argparse's own
            status = ended.code
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return call


@pytest.fixture
def digits():
    return DIGITS


@pytest.fixture
def images(tmp_path):
    """A file with two inputs of the digits model."""
    path = tmp_path / "images.npy"
    np.save(path, np.random.default_rng(0).random((2, 1, 8, 8), np.float32))
    return path
