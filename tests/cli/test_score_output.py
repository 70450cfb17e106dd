"""`emberlet score` without its work: what it asks of the scoring for each option, and what it prints of the result."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.batch import ray_cluster, scoring
from emberlet.host.cli import score

FEW = [("a.csv", 3, "no number"), ("b.csv", 0, "damaged"), ("c.csv", -1, "gone")]
MANY = [("a.csv", i, "no number") for i in range(21)]
OPTIONS: dict[str, tuple[list[Any], bool]] = {  # -> (the rows that are skipped, whether an earlier run was done)
    "": ([], False), "--workers 1 --cpus 0 --gpus 0": ([], False), "--workers 0": ([], False), "--cpus -1": ([], False),
    "--gpus -0.5": ([], False), "--gpus nan": ([], False), "--workers 3 --cpus 0.5 --gpus 1": ([], False),
    "--input x=a,b --input y=c": ([], False), "--input x": ([], False), "--input x=": ([], False),
    "--input =a": ([], False), "--input x=a --input x=b": ([], False), "--output p --output q=r": ([], False),
    "--output p=": ([], False), "--output =r": ([], False), "--output p --output p": ([], False),
    "--keep id --keep name --preprocess m:f --backend numpy": ([], False),
    "--batch-size 4 --rows-per-file 9": ([], False),
    "--ray auto --resume": ([], True), "--resume --skip-bad": (FEW, True), "--skip-bad": (FEW, False),
    "--skip-bad --json": (FEW, False), "--json": ([], False), "--json --resume": ([], True),
    "--skip-bad --workers 2": (MANY[:20], False), "--skip-bad --cpus 2": (MANY, False),
}  # fmt: skip


REFUSED = {
    "--workers 0", "--cpus -1", "--gpus -0.5", "--gpus nan", "--input x", "--input x=", "--input =a",
    "--input x=a --input x=b", "--output p=", "--output =r", "--output p --output p",
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
def test_options_reach_the_scoring_and_its_result_is_printed(
    options: str, emberlet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    skipped, done = OPTIONS[options]
    asked: list[str] = []

    def prepare(*arguments: Any, **more: Any) -> Any:
        asked.append(f"prepare {arguments} {more}")
        return SimpleNamespace(done=done)

    def run(job: Any, *, report: Any, workers: int | None, **more: Any) -> Any:
        asked.append(f"run workers={workers} {more}")
        print("a worker died")
        report(5, 10, 0)
        return scoring.Summary(10, 2, 1.25, workers or 1, skipped)

    monkeypatch.setattr(scoring, "prepare", prepare)
    monkeypatch.setattr(scoring, "run", run)
    monkeypatch.setattr(ray_cluster, "check", lambda address: asked.append(f"check {address}"))
    monkeypatch.setattr(score, "require", lambda *names: asked.append(f"require {names}"))
    said = emberlet("score", "m.onnx", "one.csv", "two.csv", "--out", "there", *options.split())
    if options in REFUSED:
        assert said.status == 2 and not [line for line in asked if line.startswith("run")], said
        return
    assert said.status == 0 and [line for line in asked if line.startswith("run")]
    if "--json" in options:
        found = json.loads(said.out)
        assert len(found["skipped"]) == len(skipped)
    else:
        assert "10" in said.out and all(path in said.out + said.err for path, _, _ in skipped)
