"""The report of a training, and what renderers show while it goes on."""

from __future__ import annotations

import io
import json
import math
import os
import random
import re
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from emberlet.errors import FormatError
from emberlet.train import Dashboard, Interrupter, NotebookRenderer, PlainRenderer
from emberlet.train.learner.renderers.braille import drawn
from emberlet.train.learner.report import chart, page
from emberlet.train.learner.report.reading import read
from emberlet.train.metric import AccuracyMetric, LossMetric
from support.small_training import Batches, fit, learner

from tools.paths import ROOT


def test_the_report_holds_every_epoch_and_refers_to_nothing_outside(tmp_path: Path) -> None:
    made = learner(tmp_path / "run & <1>", 3)
    made.fit(Batches(200, 32), Batches(50, 32))
    text = page.as_html(read(made.directory), "run & <1>")
    assert "run &amp; &lt;1&gt;" in text
    assert "3 of 3 epochs" in text
    assert not re.findall(r"(?:src|href)=|url\(|@import|<script|https?:", text)
    for drawing in re.findall(r"<svg.*?</svg>", text):
        ET.fromstring(drawing)
    for epoch, loss in made.history.of("valid", "Loss").items():
        assert f"epoch {epoch}, valid: {loss:.4g}" in text


def test_it_reads_the_logs_of_a_folder_without_events(tmp_path: Path) -> None:
    made = learner(tmp_path, 2)
    made.fit(Batches(200, 32))
    (tmp_path / "events.jsonl").unlink()
    run = read(tmp_path)
    assert run.metrics == ["Accuracy", "Loss"]
    for name in run.metrics:
        for epoch, value in made.history.of("train", name).items():
            assert math.isclose(run.history.of("train", name)[epoch], value, rel_tol=1e-6)
    assert [x for x, _ in run.steps["Loss"]] == pytest.approx([(i + 1) / 7 for i in range(14)])


def test_half_a_line_at_the_end_is_left_out(tmp_path: Path) -> None:
    fit(tmp_path, 2)
    for path in (tmp_path / "events.jsonl", tmp_path / "train/epoch-2/Loss.log"):
        path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    assert read(tmp_path).metrics == ["Loss", "Accuracy"]


ODD = [None, True, -1, 0, 10**400, 1e308, -1e308, 5e-324, float("nan"), float("inf"), "<script>", "train", [], {}, [[]],
       {"Loss": 1}, {"Loss": 1e308, "<b>": -1e308}, {"a": "x"}]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_a_folder_of_junk_is_drawn_or_refused(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    fit(tmp_path, 2)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    (tmp_path / "train" / f"epoch-{10**200}").mkdir()
    logs = [tmp_path / "train" / name / "Loss.log" for name in ("epoch-1", "epoch-999999999")]
    logs[1].parent.mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(logs[1].with_name("pipe.log"))
    for _ in range(60):
        lines = []
        for event in r.choices(events, k=5):
            changed = dict(event)
            for key in r.sample(sorted(changed), r.randrange(3)):
                changed[key] = r.choice(ODD)
            lines.append(json.dumps(r.choice([changed, changed, changed, "x", 3, [event]])))
        text = "\n".join([*lines, "[" * 100_000])
        (tmp_path / "events.jsonl").write_text(text, encoding="utf-8")
        for log in logs:
            numbers = [f"{r.choice(ODD)!r},{r.choice([1, 0, -1, 10**400, 1 << 60])}\n" for _ in range(5)]
            log.write_text("".join(numbers), encoding="utf-8")
        try:
            found = page.as_html(read(tmp_path), "junk")
        except FormatError:
            continue
        assert "<script" not in found and "<b>:" not in found


@pytest.mark.parametrize(
    "lines", ["1e308,1\n-1e308,1\n", "1e308,1\n" * 1000, f"1e291,{2**53 - 1}\n" * 3, "9e283,1\n-9e283,1\n"]
)
def test_values_near_the_largest_float_are_drawn_or_left_out(lines: str, tmp_path: Path) -> None:
    for name, text in (("Loss", lines), ("Accuracy", "0.5,1\n")):
        path = tmp_path / "train/epoch-1" / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = page.as_html(read(tmp_path), "large")
    assert not re.search(r"[\d\"=, ](nan|inf)", found)


def test_many_steps_are_drawn_as_a_few_means(tmp_path: Path) -> None:
    folder = tmp_path / "train/epoch-1"
    folder.mkdir(parents=True)
    (folder / "Loss.log").write_text("".join(f"{i},1\n" for i in range(10_000)), encoding="utf-8")
    points = read(tmp_path).steps["Loss"]
    assert len(points) <= 400
    assert points[0][1] == pytest.approx(12)


def test_a_folder_without_a_training_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not the folder of a training"):
        read(tmp_path)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.12, 0.13), (-3.0, 1e6), (99.0, 100.0), (5.0, 5.0)])
def test_the_marks_of_an_axis_are_round_and_hold_the_values(low: float, high: float) -> None:
    marks = chart.ticks(low, high)
    assert marks == sorted(marks)
    assert marks[0] <= low
    assert marks[-1] >= high
    assert 1 <= len(marks) <= 7
    assert all(len(f"{mark:.4g}") <= 8 for mark in marks)


def test_a_chart_without_values_is_empty() -> None:
    assert chart.svg("Loss", {}, {1: math.nan}, [], None) == ""


def test_plain_lines_tell_each_epoch_and_the_summary(tmp_path: Path) -> None:
    said = io.StringIO()
    made = learner(tmp_path, 2, renderer=PlainRenderer(said, every=0.0))
    made.fit(Batches(200, 32), Batches(50, 32))
    lines = said.getvalue().splitlines()
    assert sum(line.startswith("epoch 2/2 train, step ") for line in lines) == 7
    (valid,) = [line for line in lines if line.startswith("epoch 2/2 valid: ")]
    assert valid.startswith(f"epoch 2/2 valid: Loss {made.history.of('valid', 'Loss')[2]:.4g}, Accuracy ")
    assert any(line.split()[:2] == ["train", "Loss"] for line in lines)


def test_the_summary_can_be_left_out(tmp_path: Path) -> None:
    said = io.StringIO()
    fit(tmp_path, 1, renderer=PlainRenderer(said), summary=False)
    assert "lowest" not in said.getvalue()


def dashboard() -> tuple[Any, Any]:
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), width=90, height=30, force_terminal=True)
    return Dashboard(console), console


def test_the_dashboard_shows_curves_and_the_state(tmp_path: Path) -> None:
    shown, console = dashboard()
    made = learner(tmp_path, 2, renderer=shown)
    made.fit(Batches(200, 32), Batches(50, 32))
    with console.capture() as captured:
        console.print(shown.view())
    text = re.sub(r"\x1b\[[0-9;]*m", "", captured.get())
    assert "epoch 2/2  validation  step 2/2" in text
    assert f"{made.history.of('valid', 'Loss')[2]:.4g}" in text
    assert re.search(r"Loss +\S+ +\S+ +\S+ \(epoch \d\)", text)
    assert any("⠁" <= character <= "⣿" for character in text)
    assert all(len(line) <= 90 for line in text.splitlines())


def test_keys_stop_the_training_and_lower_the_rate(tmp_path: Path) -> None:
    shown, _ = dashboard()
    made = learner(tmp_path, 2, renderer=shown)
    shown.begin(made, 1)
    shown.key("l")
    shown.key("q")
    assert made.rate_factor == 0.5
    assert made.interrupter.stopped == "by the key q"
    with pytest.raises(KeyboardInterrupt):
        shown.key("q")
    shown.close()


def test_a_notebook_has_a_cell_of_charts(tmp_path: Path) -> None:
    shown = NotebookRenderer()
    assert "waiting" in shown._repr_html_()
    fit(tmp_path, 2, renderer=shown)
    text = shown._repr_html_()
    assert text.count("<svg") == 2
    assert "epoch 2/2" in text
    assert "ended" in text


@pytest.mark.skipif(not find_spec("nbclient"), reason="nbclient is not installed: the tests' environment has none")
def test_the_cell_of_a_kernel_is_shown_once_and_updated(tmp_path: Path) -> None:
    """In a process of IPython's kernel, as a notebook has it: `renderer="auto"` finds it."""
    nbclient = pytest.importorskip("nbclient", reason="a notebook needs nbclient and ipykernel")
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    said: list[tuple[str, Any]] = []

    class Client(nbclient.NotebookClient):  # type: ignore[name-defined, misc]
        def process_message(self, message: Any, *given: Any) -> Any:
            said.append((message["msg_type"], message["content"].get("transient")))
            return super().process_message(message, *given)

    code = (
        f"import sys; sys.path[:0] = [{str(ROOT / 'tests')!r}, {str(ROOT)!r}]\n"
        "from support.small_training import Batches, learner\n"
        f"learner({str(tmp_path / 'run')!r}, 3, renderer='auto').fit(Batches(200, 32), Batches(50, 32))"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    Client(notebook, timeout=600, kernel_name="python3").execute()
    shown = [display for kind, display in said if kind == "display_data"]
    updated = [display for kind, display in said if kind == "update_display_data"]
    assert len(shown) == 1 and len(updated) >= 3 and all(display == shown[0] for display in updated)
    kept = [output["data"]["text/html"] for output in notebook.cells[0].outputs if output.output_type == "display_data"]
    assert len(kept) == 1 and "epoch 3/3" in kept[0] and "ended" in kept[0] and kept[0].count("<svg") == 2


def test_a_curve_of_dots_goes_from_corner_to_corner() -> None:
    grid = drawn([[(0.0, 0.0), (1.0, 1.0)]], 4, 2, 0.0, 1.0, 0.0, 1.0)
    assert "".join(character for character, _ in grid[0]) == "⠀⠀⡠⠊"
    assert "".join(character for character, _ in grid[1]) == "⡠⠊⠀⠀"
    assert grid[1][0][1] == 0


def test_curves_that_meet_are_all_seen_before_the_first_one() -> None:
    flat = [(0.0, 0.5), (1.0, 0.5)]
    (row,) = drawn([flat, flat, flat], 6, 1, 0.0, 1.0, 0.0, 1.0)
    assert [curve for _, curve in row] == [1, 2, 1, 2, 1, 2]
    assert len({character for character, _ in row}) == 1
    assert [curve for _, curve in drawn([flat, []], 2, 1, 0.0, 1.0, 0.0, 1.0)[0]] == [0, 0]


def test_a_few_steps_that_are_far_off_do_not_flatten_a_chart() -> None:
    steps = [(i / 200, 1e6 if i == 0 else 0.5) for i in range(200)]
    assert chart.limits(steps, [0.4, 0.6]) == (0.4, 0.6)
    assert chart.limits(steps, [2e6]) == (0.5, 2e6)
    assert chart.limits(steps[:20], [0.4]) == (0.4, 1e6)


def test_the_directions_of_the_metrics_are_noted(tmp_path: Path) -> None:
    made = learner(tmp_path, 1, metrics=[LossMetric(), AccuracyMetric()], interrupter=Interrupter())
    made.fit(Batches(64, 32))
    begin = json.loads((tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert begin["directions"] == {"Loss": "lowest", "Accuracy": "highest"}


def test_event_files_for_tensorboard_hold_the_values(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from emberlet.train import TensorBoardLogger

    fit(tmp_path, 2, loggers=[TensorBoardLogger(tmp_path / "tensorboard")])
    (file,) = (tmp_path / "tensorboard").iterdir()
    data = file.read_bytes()
    for tag in (b"Loss/train", b"Loss/valid", b"Accuracy/valid", b"Loss/train_step"):
        assert tag in data


def test_steps_for_tensorboard_go_on_where_a_training_ended(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from emberlet.train import TensorBoardLogger

    def steps(epochs: int, **options: Any) -> list[int]:
        logger, found = TensorBoardLogger(tmp_path / "tensorboard"), []

        class Writer:
            def add_scalar(self, tag: str, value: float, step: int) -> None:
                found.extend([step] if tag == "Loss/train_step" else [])

            def close(self) -> None:
                pass

        logger._writer = Writer()
        fit(tmp_path, epochs, loggers=[logger], **options)
        return found

    assert steps(1) == list(range(7))
    assert steps(2, resume=True) == list(range(7, 14))
