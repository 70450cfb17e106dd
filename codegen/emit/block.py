"""Block: the statements of one graph, and the assignment of values to variables.

A chain of layers reads `x = …` line after line: a value takes over the variable of an input that is not read again.
Meaningful names from the model are kept. Host values (shapes, scalars) that are used once are written where they are
used.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.argument import Argument
from ..ir.graph import Graph, Node
from ..ir.problem import MALFORMED, Problem, failed, quoted
from ..ir.types import ScalarType, ShapeType, TensorType, as_tensor, describe_shape
from .emitter import Emitter
from .expression import Attribute, Call, Expr, Literal, Name, Tuple, flat
from .names import MAX_LOCAL, identifier, informative, module_path, snake
from .statement import Assign, Delete, Statement

if TYPE_CHECKING:
    from .module import ModuleWriter

_TENSORS = ("x", "y", "z", "u", "v", "w")
_SCALARS = ("n", "m", "k")
_SHAPES = ("shape",)
_ROLES = {
    "slice": "part",
    "pow": "power",
    "round": "rounded",
    "abs": "size",
    "sum": "total",
    "max": "larger",
    "min": "smaller",
}
MAX_NESTED = 16  # depth of nested expressions
WORTH_DELETING = 1 << 14


class Block:
    """Emits one graph. `busy`: the variables that the surrounding code still needs."""

    def __init__(self, module: ModuleWriter, graph: Graph, busy: set[str], outer: Block | None = None) -> None:
        self.module = module
        self.graph = graph
        self.outer = outer
        self.statements: list[Statement] = []
        self.bound: dict[str, Expr] = {} if outer is None else outer.bound
        self.busy = set(busy)
        self._numbers: dict[str, int] = {}  # name -> the least number that may be free
        self.kept: set[str] = set()
        self.preferred: dict[str, str] = {}
        self._chosen: dict[str, tuple[Expr, ...]] = {}
        self._dying: set[str] = set()

    # -- the whole graph ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Emit every node."""
        nodes = self.graph.nodes
        inlined = self._inlined()
        last = self._last_uses(inlined)
        released: dict[int, list[str]] = {}
        for name, at in last.items():
            released.setdefault(at, []).append(name)
        for i, node in enumerate(nodes):
            mine = released.get(i, [])
            self._dying = {v for name in mine for v in self._variables(name)}
            self.node(node, i in inlined)
            self._release(node, mine, i)
        self.statements = tidy(self.statements)

    def _variables(self, value: str) -> set[str]:
        """The local variable of a value, if this block may reuse it."""
        if self.module.separate:
            return set()
        held = self.bound.get(value)
        return {held.id} if isinstance(held, Name) and held.id in self.kept else set()

    def _release(self, node: Node[Any], names: list[str], i: int) -> None:
        if self.module.separate:
            return
        outputs = {v for o in node.outputs for v in self._variables(o.name)}
        gone = []
        for name in names:
            for variable in self._variables(name) - outputs:
                self.busy.discard(variable)
                self._numbers.clear()
                self.kept.discard(variable)
                if self.module.sizes.get(name, 0) >= WORTH_DELETING:
                    gone.append(variable)
        if gone and i < len(self.graph.nodes) - 2:
            self.statements.append(Delete(tuple(sorted(gone))))

    def _inlined(self) -> dict[int, int]:
        """Nodes whose only output is a host value used once: index of the node -> index of its user."""
        users: dict[str, list[int]] = {}
        nested: set[str] = {a.name for a in self.graph.outputs}
        last: dict[str, int] = {}
        anywhere: dict[str, list[int]] = {a.name: [len(self.graph.nodes)] for a in self.graph.outputs}
        for i, node in enumerate(self.graph.nodes):
            inputs = {a.name for a in node.inputs}
            for a in node.uses():
                anywhere.setdefault(a.name, []).append(i)
            for a in node.inputs:
                users.setdefault(a.name, []).append(i)
            for a in node.uses():
                last[a.name] = i
                if a.name not in inputs:
                    nested.add(a.name)
        mine = {a.name for a in self.graph.inputs}
        out: dict[int, int] = {}
        depth: dict[int, int] = {}
        for i in range(len(self.graph.nodes) - 1, -1, -1):
            node = self.graph.nodes[i]
            if len(node.outputs) != 1 or not isinstance(node.outputs[0].type, ScalarType | ShapeType) or node.graphs():
                continue
            name = node.outputs[0].name
            at = users.get(name, [])
            if node.repeated:
                out[i] = max((out.get(u, u) for u in anywhere.get(name, [i])), default=i)
                continue
            if len(at) != 1 or name in nested or self.graph.nodes[at[0]].graphs():
                continue
            where = out.get(at[0], at[0])
            if depth.get(at[0], 0) >= MAX_NESTED:
                continue
            # Moving the expression must not extend a tensor's lifetime.
            if all(
                a.value is not None
                or a.name in mine
                or isinstance(a.type, ScalarType | ShapeType)
                or last.get(a.name, 0) >= where
                or a.name in nested
                for a in node.inputs
            ):
                out[i] = where
                depth[i] = depth.get(at[0], 0) + 1
        return out

    def _last_uses(self, inlined: dict[int, int]) -> dict[str, int]:
        last: dict[str, int] = {}
        for i, node in enumerate(self.graph.nodes):
            for o in node.outputs:
                last[o.name] = max(last.get(o.name, 0), i)  # an unused output is not live afterwards
            for a in node.uses():
                last[a.name] = max(last.get(a.name, 0), inlined.get(i, i))
        for a in self.graph.outputs:
            last.pop(a.name, None)
        return last

    # -- one node -----------------------------------------------------------------------------------------------------

    def node(self, node: Node[Any], inline: bool) -> None:
        try:
            emission = node.emit(Emitter(self, node))
        except MALFORMED as error:
            self.module.problems.append(f"node {quoted(node.name)} ({node.op()}): {failed(error)}")
            emission = tuple(Literal("None") for _ in node.outputs)
        if isinstance(emission, tuple) and len(emission) > 1:
            self._dying = set()  # a later expression may still read what an earlier one would overwrite
        present = [o for o in node.outputs if o.present]
        if inline and isinstance(emission, Expr):
            self.bound[present[0].name] = emission
            return
        values = emission if isinstance(emission, tuple) else (emission,)
        targets = self.targets(node)
        if len(values) == len(node.outputs) and (len(values) == 1 or isinstance(emission, tuple)):
            for output, target, value in zip(node.outputs, targets, values, strict=True):
                if output.present and isinstance(target, Name) and target.id != "_" and value != target:
                    comment = self._comment(node, output)
                    said = bool(comment) and (comment in flat(value) or _says_its_shape(value))
                    self.statements.append(Assign((target.id,), value, "" if said else comment))
        else:
            names = tuple(t.id if isinstance(t, Name) else "_" for t in targets)
            self.statements.append(Assign(names, values[0]))

    def settle(self, node: Node[Any], held: tuple[Expr, ...]) -> None:
        """Represent the node's outputs by these expressions, without assignments."""
        for o, value in zip(node.outputs, held, strict=True):
            self.bound[o.name] = value
        self._chosen[node.name] = held

    def early_targets(self, node: Node[Any]) -> tuple[Expr, ...]:
        """The outputs' variables, chosen before the node's code is complete, so distinct from those of its inputs."""
        self._dying = set()
        return self.targets(node)

    def targets(self, node: Node[Any]) -> tuple[Expr, ...]:
        """The variable of each output; "_" for omitted or unused ones."""
        if node.name in self._chosen:
            return self._chosen[node.name]
        chosen: list[Expr] = []
        for output in node.outputs:
            if not output.present or (len(node.outputs) > 1 and output.name not in self.module.used):
                chosen.append(Name("_"))
                continue
            variable = self.preferred.get(output.name) or self._choose(output, node)
            self.busy.add(variable)
            self.kept.add(variable)
            self._dying.discard(variable)
            chosen.append(Name(variable))
        for output, target in zip(node.outputs, chosen, strict=True):
            if output.present:
                self.bound[output.name] = target
        self._chosen[node.name] = tuple(chosen)
        return tuple(chosen)

    def _choose(self, output: Argument, node: Node[Any]) -> str:
        if self.module.separate:
            return self.module.variable(output, node)
        free = lambda v: v not in self.busy or v in self._dying  # noqa: E731
        if node.named or informative(output.name, node.op()):
            name = identifier(output.name, limit=MAX_LOCAL)
            if free(name) and not hasattr(builtins, name) and (node.named or informative(name, node.op())):
                return name
        pool = (
            _SCALARS
            if isinstance(output.type, ScalarType)
            else _SHAPES
            if isinstance(output.type, ShapeType)
            else _TENSORS
        )
        for a in node.inputs:
            for v in self._variables(a.name) & self._dying:
                if v in pool:
                    return v
        for v in pool:
            if free(v):
                return v
        name = identifier(module_path(output.name).rpartition(".")[2] or snake(node.op()))
        plain = name.rstrip("_")
        return self._numbered(_ROLES.get(plain, f"{plain}_value") if hasattr(builtins, plain) else name)

    def _numbered(self, name: str) -> str:
        n = self._numbers.get(name, 1)  # what is below is busy; counting from 1 would take a square of the results
        candidate = name if n == 1 else f"{name}_{n}"
        while candidate in self.busy:
            n += 1
            candidate = f"{name}_{n}"
        self._numbers[name] = n
        return candidate

    def _comment(self, node: Node[Any], output: Argument) -> str:
        """A comment with the shape, if it is known and differs from the first input's."""
        t = output.type
        if not isinstance(t, TensorType) or t.shape is None or all(d is None for d in t.shape):
            return ""
        first = node.inputs[0].type if node.inputs else None
        if isinstance(first, TensorType) and first.shape == t.shape:
            return ""
        return describe_shape(t.shape)

    # -- what the Emitter asks for ------------------------------------------------------------------------------------

    def held(self, a: Argument) -> Expr:
        """An argument in the form in which the code holds it."""
        if a.value is not None:
            return self.constant(a)
        if a.name not in self.bound:
            raise Problem(f"{a.name!r} is used before it is produced")
        return self.bound[a.name]

    def constant(self, a: Argument) -> Expr:
        assert a.value is not None
        return self.module.parameter(a.name, a.value)

    def fresh(self, hint: str) -> str:
        variable = self._numbered(identifier(hint))
        self.busy.add(variable)
        return variable

    def local(self, hint: str, value: Expr) -> Expr:
        variable = self.fresh(hint)
        self.statements.append(Assign((variable,), value))
        return Name(variable)

    def nested(
        self, graph: Graph, inputs: Sequence[Expr | None], targets: Sequence[str] = ()
    ) -> tuple[list[Statement], tuple[Expr, ...]]:
        """A subgraph in its own block; `targets`: variables for its outputs, which nothing in it reads."""
        inner = Block(self.module, graph, self.busy, self)
        for a, target in zip(graph.outputs, targets, strict=False):
            if target != "_":
                inner.preferred.setdefault(a.name, target)
        for a, expr in zip(graph.inputs, inputs, strict=False):
            if expr is not None:
                self.bound[a.name] = expr
                if isinstance(expr, Name):
                    inner.busy.add(expr.id)
        inner.run()
        return inner.statements, inner.outputs()

    def outputs(self) -> tuple[Expr, ...]:
        """The graph's outputs, shapes and scalars as tensors."""
        out = []
        for a in self.graph.outputs:
            held = self.constant(a) if a.value is not None else self.bound.get(a.name)
            if held is None:
                raise Problem(f"nothing produces the output {a.name!r}")
            if isinstance(a.type, ScalarType | ShapeType) and a.value is None:
                held = self.module.tensor_of(held, as_tensor(a.type).dtype)
            out.append(held)
        return tuple(out)


def _says_its_shape(e: Expr) -> bool:
    """Whether an expression names every size of its result."""
    if not isinstance(e, Call) or not isinstance(e.function, Attribute):
        return False
    whole = e.function.name in ("reshape", "expand") and len(e.args) == 1 and isinstance(e.args[0], Tuple)
    return e.function.name in ("zeros", "ones", "full") or (whole and "-1" not in flat(e.args[0]))


def tidy(statements: list[Statement]) -> list[Statement]:
    """Drop the `del` of a variable that is reassigned within two lines."""
    out: list[Statement] = []
    for i, s in enumerate(statements):
        if isinstance(s, Delete):
            soon = {t for n in statements[i + 1 : i + 3] if isinstance(n, Assign) for t in n.targets}
            names = tuple(n for n in s.names if n not in soon)
            if names:
                out.append(Delete(names))
        else:
            out.append(s)
    return out
