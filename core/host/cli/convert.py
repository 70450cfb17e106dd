"""emberlet convert SRC DST: weights from one format to another."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence

from ... import store
from ...errors import EmberletError
from ...store import Store
from ...store.opening import files_of
from ...store.writing import ENDINGS
from ..folders import outputs
from .plain import noted, plain
from .progress import Bytes


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="weights: burnpack, safetensors, PyTorch, GGUF, .npz, or an ONNX model")
    parser.add_argument("target", help="the file to write: .bpk, .safetensors, .npz or .gguf")
    parser.add_argument("--half", action="store_true", help="store floats of 32 and 64 bits as float16")
    parser.add_argument(
        "--filter",
        action="append",
        metavar="REGEX",
        help="keep the tensors whose names match; if repeated, any of them",
    )
    parser.add_argument(
        "--rename", action="append", metavar="REGEX=NAME", help="replace matches in names; if repeated, in order"
    )
    parser.add_argument("--key", help="the part of a PyTorch file to take, such as state_dict")
    parser.add_argument("--shard", metavar="SIZE", help="safetensors files of at most this size each: 500M, 2G")
    parser.add_argument("--overwrite", action="store_true", help="replace the target if it exists")


def run(arguments: argparse.Namespace) -> int:
    shard, target = size_of(arguments.shard), arguments.target
    if not os.path.splitext(target)[1] and not os.path.isdir(target):
        target += ".bpk"
    inputs = [arguments.source, *files_of(arguments.source)]
    overwrite = arguments.overwrite or shard is not None  # the names of shards are checked where they are made
    outputs.check(target, inputs=inputs, endings=[*ENDINGS], overwrite=overwrite, option="the target")
    if shard is not None:
        _check_shards(target, inputs)
    opened = store.open(arguments.source, key=arguments.key)
    if arguments.filter:
        opened = opened.filter(arguments.filter)
    if arguments.rename:
        opened = opened.rename([_pair(text) for text in arguments.rename])
    if arguments.half:
        with noted():
            opened = opened.half()
    written = save(opened, target, arguments.overwrite, shard)
    print(plain(f"{target}: {len(opened)} tensors, {written} bytes"))
    return 0


def _check_shards(target: str, inputs: Sequence[str]) -> None:
    """Raise EmberletError if a file that is read may be one of the shards that are written."""
    stem, ending = os.path.splitext(os.path.realpath(target))
    names = re.escape(stem) + r"-\d{5}-of-\d{5}" + re.escape(ending) + "|" + re.escape(stem + ending) + r"\.index\.json"
    for each in inputs:
        if re.fullmatch(names, os.path.realpath(each), re.IGNORECASE):
            raise EmberletError(f"the target {target} would replace its source {each}; give another name")


def save(opened: Store, target: str, overwrite: bool, shard: int | None) -> int:
    """Write the store, with a progress bar."""
    packed = os.path.splitext(target)[1].lower() not in (".safetensors", ".npz")  # a burnpack keeps quantized bytes
    total = sum(
        s.quantized.nbytes if packed and s.quantized is not None else int(s.dtype.nbytes(s.size))
        for s in opened.values()
    )
    with Bytes(f"writing {target}", total) as progress:
        watched = opened.map(lambda s: s.watched(progress.add))
        return watched.save(target, overwrite=overwrite, shard=shard)


def _pair(text: str) -> tuple[str, str]:
    pattern, equals, name = text.partition("=")
    if not equals:
        raise EmberletError(f"--rename takes REGEX=NAME, found {text!r}")
    return pattern, name


def size_of(text: str | None) -> int | None:
    """The number of bytes in "500M", "2G", "1000"."""
    if text is None:
        return None
    factor = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:].upper(), 1)
    digits = text if factor == 1 else text[:-1]
    if not digits.isascii() or not digits.isdecimal() or not 0 < int(digits) * factor < 1 << 62:
        raise EmberletError(f"--shard takes a size such as 500M or 2G, found {text!r}")
    return int(digits) * factor
