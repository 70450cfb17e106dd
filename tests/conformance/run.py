"""Run node cases by operator or by name: python -m tests.conformance.run PATTERN [--backends numpy,python] [--source].

PATTERN is an operator's exact name (LRN, ai.onnx.ml.LabelEncoder) or a part of a case's name.
"""

from __future__ import annotations

import argparse
import sys
import traceback

from emberlet.codegen.generation import translate

from .cases import node_cases, operators, run_case


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern")
    parser.add_argument("--backends", default="numpy,python")
    parser.add_argument("--source", action="store_true", help="print the generated code")
    parser.add_argument("--trace", action="store_true", help="print tracebacks")
    options = parser.parse_args()
    wanted = options.pattern
    chosen = []
    for name, case in node_cases().items():
        names = {f"{d}.{op}" if d else op for d, op in operators(case.model)}
        if wanted in names or wanted in name:
            chosen.append(name)
    failed = 0
    for name in chosen:
        for backend in options.backends.split(","):
            try:
                run_case(name, backend)
            except Exception as error:
                failed += 1
                print(f"{name} on {backend}: {type(error).__name__}: {str(error).strip()[:400]}")
                if options.trace:
                    traceback.print_exception(error)
        if options.source:
            print(translate(node_cases()[name].model, name)[1].source)
    print(f"{len(chosen)} cases, {failed} failures")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
