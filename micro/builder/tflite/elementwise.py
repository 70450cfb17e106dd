"""Converters of functions of each element, and of softmax and normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberlet.codegen.ir.argument import ABSENT, Argument
from emberlet.codegen.ir.problem import Problem

from .reading import FileOperator
from .table import Inputs, converts

if TYPE_CHECKING:
    from .importing import Converting


PAIRS = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div"}


@converts(*PAIRS)
def pair(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.activated(t.node(PAIRS[op.kind], given), merged=True)


PLAIN = {
    "RELU": "Relu",
    "LOGISTIC": "Sigmoid",
    "TANH": "Tanh",
    "HARD_SWISH": "HardSwish",
    "EXP": "Exp",
    "LOG": "Log",
    "SQRT": "Sqrt",
    "ABS": "Abs",
    "NEG": "Neg",
    "SIN": "Sin",
    "COS": "Cos",
    "FLOOR": "Floor",
    "CEIL": "Ceil",
    "SIGN": "Sign",
    "MAXIMUM": "Max",
    "MINIMUM": "Min",
    "POW": "Pow",
    "SHAPE": "Shape",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
    "EQUAL": "Equal",
    "LOGICAL_AND": "And",
    "LOGICAL_OR": "Or",
    "LOGICAL_NOT": "Not",
    "LOG_SOFTMAX": "LogSoftmax",
    "TILE": "Tile",
    "BROADCAST_TO": "Expand",
}


@converts(*PLAIN)
def plain(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node(PLAIN[op.kind], given)


@converts("NOT_EQUAL")
def not_equal(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.node("Not", [t.node("Equal", given)])


@converts("ELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "RSQRT", "SQUARE", "LEAKY_RELU", "GELU", "SQUARED_DIFFERENCE")
def made_of_others(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    x = given[0]
    bounds = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}
    if op.kind in bounds:
        out = t.node("Clip", [x, *(t.real_constant(b) for b in bounds[op.kind])])
    elif op.kind == "RSQRT":
        out = t.node("Reciprocal", [t.node("Sqrt", [x])])
    elif op.kind == "SQUARE":
        out = t.node("Mul", [x, x])
    elif op.kind == "SQUARED_DIFFERENCE":
        if t.is_quantized:
            raise Problem("quantized squared differences are not supported")
        difference = t.node("Sub", given)
        out = t.node("Mul", [difference, difference])
    elif op.kind == "LEAKY_RELU":
        out = t.node("LeakyRelu", [x], alpha=float(op.options.get("Alpha", 0.0)))  # type: ignore[arg-type]
    elif op.kind == "GELU":
        out = t.node("Gelu", [x], approximate="tanh" if op.options.get("Approximate") else "none")
    else:
        out = t.node("Elu", [x])
    return out


@converts("PRELU")
def prelu(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    """Of quantized tensors both sides lie on the output's grid, so that only one rounding is left of each."""
    x, out = (t.grid(t.file.tensors[n]) for n in (op.inputs[0], op.outputs[0]))
    if x is None or out is None:
        return t.node("PRelu", given)
    zero = t.real_constant(0.0)
    positive, negative = t.node("Clip", [given[0], zero]), t.node("Clip", [given[0], ABSENT, zero])
    scaled = t.node("Mul", [negative, given[1]])
    for part, grid in ((positive, out), (negative, x), (scaled, out)):
        t.on_grid(part.name, grid)
    return t.node("Add", [positive, scaled])


@converts("SOFTMAX")
def softmax(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    beta = float(op.options.get("Beta", 1.0))  # type: ignore[arg-type]
    if beta != 1:
        if t.is_quantized:
            raise Problem(f"a softmax with beta {beta} is not supported; beta must be 1")
        return t.node("Softmax", [t.node("Mul", [given[0], t.real_constant(beta)])])
    return t.node("Softmax", given)


@converts("L2_NORMALIZATION")
def l2_normalization(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    return t.activated(t.node("LpNormalization", given, axis=-1, p=2))


@converts("QUANTIZE", "DEQUANTIZE", "CAST")
def requantize(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    """The result's grid determines the conversion; none is needed if it is the same."""
    source, target = t.file.tensors[op.inputs[0]], t.file.tensors[op.outputs[0]]
    if op.kind == "CAST" and not (source.dtype.startswith("FLOAT") and target.dtype.startswith("FLOAT")):
        raise Problem(f"a cast from {source.dtype} to {target.dtype} is not supported")
    return t.node("Identity", given)
