"""What docs/modules.md shows is what happens."""

import re

from emberlet.config import Config

from tools.paths import ROOT


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "modules.md").read_text(encoding="utf-8")
    first, config = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {"__name__": "example"}
    exec(first, names)
    assert names["model"].num_params() == 552
    printed = re.search(r"```\n>>> model\n(.*?)\n```", text, re.DOTALL)[1]
    assert repr(names["model"]) == printed
    names = {"Config": Config, "__name__": "example"}
    exec(config, names)
    assert names["FeedForwardConfig"].load("config.json") == names["config"]
