"""Names of variables, and lines that are too long, statement by statement."""

from __future__ import annotations

import pytest
from emberlet.codegen.emit.polish import polished
from emberlet.codegen.emit.statement import render
from emberlet.codegen.emit.variables import Hints
from support.expressions import statements
from support.rows import every


def named(source: str, *parameters: str) -> list[str]:
    """The polished lines of a function with these parameters, in which every value had its own variable."""
    _, body = polished(parameters or ("p1",), statements(source), Hints())
    return render(body, 0)


@every(
    ("value", "name"),
    [
        ("self.q_proj(p1)", "query"),
        ("self.wk(p1)", "key"),
        ("self.v_lin(p1)", "value"),
        ("self.c_attn(p1)", "qkv"),
        ("F.softmax(p1)", "weights"),
        ("F.mean(p1)", "mean"),
        ("F.arange(4)", "positions"),
        ("F.logical_and(p1, p1)", "mask"),
        ("p1 == 3", "mask"),
        ("F.where(p1 == 3, 0.0, p1)", "mask"),
        ("F.expand_dims(F.arange(4), 0) >= F.expand_dims(F.arange(4), 1)", "causal"),
        ("self.q_proj(p1) @ p1", "x"),
        ("F.cos(p1)", "cos"),
        ("F.where(p1, float('-inf'), p1)", "mask"),
        ("F.where(p1 < 3, 1.0, p1)", "mask"),
        ("F.where(p1, 1.0, p1)", "x"),
        ("F.logical_not(p1)", "mask"),
        ("F.logical_or(p1, p1)", "mask"),
        ("p1 & p1", "mask"),
        ("p1 | p1", "mask"),
        ("-(p1 == 3)", "mask"),
        ("F.arange(4) + 1 >= F.expand_dims(F.arange(4), 1)", "causal"),
        ("F.arange(4) >= p1", "mask"),
        ("p1 >= F.arange(4)", "mask"),
        ("F.arange(4) < F.arange(4)", "mask"),
        ("F.arange(4) + p1", "positions"),
        ("-self.q_proj(p1)", "query"),
        ("self.q_proj(p1) * 0.5", "query"),
        ("0.5 * self.k_proj(p1)", "key"),
        ("self.v_proj(p1) + p1", "value"),
        ("self.v_proj(p1) / p1", "value"),
        ("F.silu(p1)", "x"),
        ("F.split(p1, 2)", "part"),
        # a view of a value has its name
        ("self.q_proj(p1)[:, :2]", "query"),
        ("self.q_proj(p1)[0]", "x"),
        ("self.q_proj(p1).take(3)", "x"),
        ("self.q_proj(p1).reshape(1, 2, 3)", "query"),
        ("F.expand_dims(self.k_proj(p1), 0)", "key"),
        ("F.rotary_embedding(self.q_proj(p1), p1, p1)", "query"),
        ("F.softmax(p1).permute(1, 0)[:, :2]", "weights"),
        ("F.arange(4).reshape(2, 2)", "positions"),
        ("F.expand_dims(F.arange(4), 0)", "positions"),
        # but a view of a mean, of parts or of several joined values does not have their names
        ("F.mean(p1).reshape(4)", "x"),
        ("F.expand_dims(F.mean(p1), 0)", "x"),
        ("F.concat([p1, p1]).reshape(4)", "x"),
        ("F.split(p1, 2).reshape(4)", "x"),
    ],
)
def test_a_variable_is_called_what_it_holds(value: str, name: str) -> None:
    lines = named(f"v1 = {value}\nv2 = self.other(v1)\nF.add(v1, v2)")
    assert lines[0].partition(" = ")[0] == name


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (  # a view of positions that have a variable is none of them
            "v1 = F.arange(4)\nv2 = v1.reshape(2, 2)\nv3 = F.add(v1, v2)\nF.mul(v3, v2)",
            ["positions = F.arange(4)", "x = positions.reshape(2, 2)", "return F.mul(F.add(positions, x), x)"],
        ),
        (  # a value that is read once, by the next statement, needs no variable
            "v1 = F.relu(p1)\nv2 = self.out(v1)\nF.add(v2, v2)",
            ["x = self.out(F.relu(x))", "return F.add(x, x)"],
        ),
        (  # sizes are read together
            "v1 = p1.shape[0]\nv2 = p1.shape[1]\nF.add(F.add(v1, v2, v1), F.add(v2, p1))",
            ["hidden, hidden2 = x.shape[:2]", "return F.add(F.add(hidden, hidden2, hidden), F.add(hidden2, x))"],
        ),
    ],
)
def test_statements_are_written_as_a_person_would(source: str, lines: list[str]) -> None:
    assert named(source) == lines
