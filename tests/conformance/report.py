"""Run every node case on every backend and write docs/operators.md.

python -m tests.conformance.report [--backends numpy,python] [--check | --count]: prints the counts and every failure;
with --check, writes nothing and exits with 1 if the page does not agree with the results; with --count, writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import onnx
from emberlet.codegen.ops import REGISTRY
from emberlet.errors import BackendError

from .cases import SLOW_IN_PYTHON, node_cases, operators, run_case

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
Outcome = dict[str, dict[str, str]]  # backend -> case -> "" where it passed, else why not


def run(backends: list[str]) -> Outcome:
    """Every case on every backend that this machine has."""
    from emberlet.backend import get_backend

    results: Outcome = {}
    for backend in backends:
        try:
            get_backend(backend)
        except BackendError as error:
            print(f"{backend}: left out, {error}")
            continue
        results[backend] = {}
        for name in sorted(node_cases()):
            if backend == "python" and name in SLOW_IN_PYTHON:
                continue
            try:
                run_case(name, backend)
                results[backend][name] = ""
            except Exception as error:
                lines = str(error).strip().splitlines()
                results[backend][name] = f"{type(error).__name__}: {lines[0] if lines else ''}"
    return results


def page(results: Outcome) -> str:
    """The page's text."""
    backends = list(results)
    cases: dict[tuple[str, str], list[str]] = {}
    for name, case in node_cases().items():
        for operator in operators(case.model):
            cases.setdefault(operator, []).append(name)
    lines = [
        "# Operators",
        "",
        f"Written by `python -m tests.conformance.report` from a run of ONNX {onnx.__version__}'s node cases. A cell",
        "is the number of cases that pass of those in which the operator occurs. *by its definition*: the operator has",
        "no class of its own; the importer reads the function by which ONNX defines it. *no case*: ONNX has none;",
        "`tests/codegen/ops` compares the operator with onnxruntime or, where that lacks it, with its formula.",
        "",
        "| backend | cases that pass |",
        "|---|---|",
        *(f"| {b} | {sum(not why for why in results[b].values())} of {len(results[b])} |" for b in backends),
        "",
        "| operator | opsets | " + " | ".join(backends) + " |",
        "|---|---|" + "---|" * len(backends),
    ]
    for operator in sorted(set(cases) | {o for o in REGISTRY if o[0] != "emberlet"}):
        domain, op = operator
        name = f"{domain}.{op}" if domain else op
        cells = []
        for b in backends:
            ran = [c for c in cases.get(operator, []) if c in results[b]]
            cells.append(f"{sum(not results[b][c] for c in ran)} of {len(ran)}" if ran else "no case")
        found = REGISTRY.get(operator)
        opsets = ", ".join(map(str, found.since)) if found else "by its definition"
        lines.append(f"| {name} | {opsets} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backends", default="numpy,python")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    results = run(options.backends.split(","))
    for backend, outcomes in results.items():
        failures = {name: why for name, why in outcomes.items() if why}
        print(f"{backend}: {len(outcomes) - len(failures)} of {len(outcomes)} pass")
        for name, why in failures.items():
            print(f"  {name}: {why}")
    if options.count:
        return 0
    text = page(results)
    if options.check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
