"""Every layer has a Config that builds it, and the values of Configs are checked when they are made."""

from __future__ import annotations

import enum
import pickle
from typing import Any, Literal

import emberlet
import pytest
from emberlet import Config, nn
from emberlet.errors import EmberletError, FormatError
from support.rows import every

from .test_burn_names import names
from .test_default_layers import LAYERS, content

# Burn's names of what is no layer here (docs/burn.md says what to write), or a layer of another name.
OTHERS = {"ActivationConfig", "CrossAttentionConfig", "InitializerConfig", "NormalizationConfig"}


@every("name", sorted(n for n in names()["nn"] if n.endswith("Config") and n not in OTHERS))
def test_burns_configs_are_here(name: str) -> None:
    config = getattr(nn, name)
    assert issubclass(config, Config) and getattr(nn, name) is config


@every("call", [c for c in LAYERS if hasattr(getattr(nn, c.split("(")[0]), "forward")])
def test_a_config_builds_what_the_constructor_builds(call: str) -> None:
    name, arguments = call.split("(", 1)
    found = []
    for text in (f"nn.{call}", f"nn.{name}Config({arguments}.init()"):
        emberlet.functional.manual_seed(3)
        found.append(content(eval(text)))
    assert found[0] == found[1]


class Side(enum.Enum):
    LEFT = 1
    RIGHT = 2


class Net(Config):
    inner: nn.LinearConfig  # type: ignore[name-defined]
    outer: nn.LinearConfig  # type: ignore[name-defined]
    mode: Literal["mean", "sum"] = "mean"
    side: Side = Side.LEFT
    rates: tuple[float, ...] = (0.1,)
    name: str | None = None


Net.__annotations__ |= {"inner": nn.LinearConfig, "outer": nn.LinearConfig}


def test_a_whole_architecture_is_json() -> None:
    net = Net(nn.LinearConfig(8, 16), nn.LinearConfig(16, 4).with_bias(False), side=Side.RIGHT)
    again = Net.from_json(net.to_json())
    assert again == net and again.side is Side.RIGHT and again.outer.bias is False
    layer = again.outer.init("python")
    assert (layer.d_input, layer.d_output, layer.bias) == (16, 4, None)
    assert layer.weight.val().backend.name == "python"
    assert pickle.loads(pickle.dumps(nn.LinearConfig(2, 3))) == nn.LinearConfig(2, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.LinearConfig("8", 16), r"LinearConfig\.d_input: expected int, found '8'"),
        (lambda: nn.LinearConfig(8, 16, bias=1), "bias: expected bool, found 1"),
        (lambda: nn.LinearConfig(8), "needs d_output"),
        (lambda: nn.LinearConfig(8, 2, units=3), "has no field units"),
        (lambda: nn.DropoutConfig(True), "prob: expected float, found True"),
        (lambda: Net(nn.LinearConfig(1, 1), 3), "outer: expected LinearConfig, found 3"),
        (lambda: Net(nn.LinearConfig(1, 1), nn.LinearConfig(1, 1), "max"), "mode: expected one of 'mean', 'sum'"),
        (lambda: Net(nn.LinearConfig(1, 1), nn.LinearConfig(1, 1), side=1), r"side: expected one of Side\.LEFT"),
        (lambda: Net(nn.LinearConfig(1, 1), nn.LinearConfig(1, 1), rates=("a",)), "rates: expected a tuple of float"),
        (lambda: Net(nn.LinearConfig(1, 1), nn.LinearConfig(1, 1), name=3), "name: expected str or None, found 3"),
    ],
)
def test_a_value_of_another_type_is_refused(make: Any, words: str) -> None:
    with pytest.raises(EmberletError, match=words):
        make()


def test_json_that_does_not_fit_is_refused() -> None:
    with pytest.raises(FormatError, match="'d_input' occurs twice"):
        nn.LinearConfig.from_json('{"d_input": 1, "d_input": 2, "d_output": 3}')
    with pytest.raises(FormatError, match="'units'"):
        nn.LinearConfig.from_json('{"d_input": 1, "d_output": 3, "units": 4}')
    assert nn.LinearConfig.from_json('{"d_input": 1, "d_output": 3, "u": 4}', ignore_unknown=True).d_output == 3
    text = Net(nn.LinearConfig(1, 1), nn.LinearConfig(1, 1)).to_json()
    with pytest.raises(FormatError, match=r"LEFT, RIGHT.*'UP'"):
        Net.from_json(text.replace("LEFT", "UP"))
    with pytest.raises(FormatError, match=r"LEFT, RIGHT.*\["):
        Net.from_json(text.replace('"LEFT"', '["LEFT"]'))
    with pytest.raises(FormatError, match="mode: expected one of"):
        Net.from_json(text.replace("mean", "max"))
