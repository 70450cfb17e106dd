"""Statements of generated code (codegen/emit) from Python source, for tests of how they are named and laid out."""

from __future__ import annotations

import ast

from emberlet.codegen.emit import expression as out
from emberlet.codegen.emit.statement import Assign, Break, Def, Delete, Do, For, If, Return, Statement, While

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.GtE: ">=", ast.Eq: "==", ast.Lt: "<",
    ast.BitAnd: "&", ast.BitOr: "|", ast.Pow: "**",
}  # fmt: skip


def statements(source: str) -> list[Statement]:
    """Assignments, and a return at the end."""
    made: list[Statement] = []
    for line in ast.parse(source).body:
        if isinstance(line, ast.Assign):
            target = line.targets[0]
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            made.append(Assign(tuple(ast.unparse(name) for name in names), expression(line.value)))
        else:
            assert isinstance(line, ast.Expr)
            values = line.value.elts if isinstance(line.value, ast.Tuple) else [line.value]
            made.append(Return(tuple(expression(value) for value in values)))
    return made


def expression(e: ast.expr) -> out.Expr:
    match e:
        case ast.Name(name):
            return out.Name(name)
        case ast.Constant(value):
            return out.Literal(out.string_literal(value) if isinstance(value, str) else repr(value))
        case ast.Attribute(base, name):
            return out.Attribute(expression(base), name)
        case ast.Subscript(base, key):
            return out.Index(expression(base), expression(key))
        case ast.Slice(start, stop, step):
            return out.SliceKey(*(None if part is None else expression(part) for part in (start, stop, step)))
        case ast.Call(function, args, kwargs):
            given = tuple((str(k.arg), expression(k.value)) for k in kwargs)
            return out.Call(expression(function), tuple(map(expression, args)), given)
        case ast.Tuple(items):
            return out.Tuple(tuple(map(expression, items)))
        case ast.List(items):
            return out.List(tuple(map(expression, items)))
        case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]):
            return out.Binary(OPERATORS[type(op)], expression(left), expression(right))
        case ast.UnaryOp(ast.USub(), operand):
            return out.Unary("-", expression(operand))
        case ast.IfExp(test, then, otherwise):
            return out.Conditional(expression(test), expression(then), expression(otherwise))
        case ast.ListComp(item, [loop]) | ast.GeneratorExp(item, [loop]):
            return out.Comprehension(expression(item), ast.unparse(loop.target).strip("()"), expression(loop.iter))
        case ast.Dict(keys, values):
            pairs = zip(keys, values, strict=True)
            return out.Dict(tuple((expression(k), expression(v)) for k, v in pairs if k is not None))
        case _:
            raise AssertionError(ast.dump(e))


def block(source: str) -> list[Statement]:
    """Any statements that generated code has."""
    return [_statement(s) for s in ast.parse(source).body]


def _statement(s: ast.stmt) -> Statement:
    match s:
        case ast.Assign([target], value):
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            return Assign(tuple(map(ast.unparse, names)), expression(value))
        case ast.AugAssign(target, _, value):
            return Assign((ast.unparse(target),), expression(value), grows=True)
        case ast.Expr(value):
            return Do(expression(value))
        case ast.If(test, then, otherwise):
            return If(expression(test), [*map(_statement, then)], [*map(_statement, otherwise)])
        case ast.For(target, iterable, body):
            return For(ast.unparse(target).strip("()"), expression(iterable), [*map(_statement, body)])
        case ast.While(test, body):
            return While(expression(test), [*map(_statement, body)])
        case ast.FunctionDef(name, args, body):
            return Def(name, tuple(a.arg for a in args.args), [*map(_statement, body)])
        case ast.Return(ast.Tuple(values)):
            return Return(tuple(map(expression, values)))
        case ast.Return(value):
            assert value is not None
            return Return((expression(value),))
        case ast.Delete(names):
            return Delete(tuple(map(ast.unparse, names)))
        case ast.Break():
            return Break()
    raise AssertionError(ast.dump(s))
