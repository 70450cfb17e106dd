"""codegen/ops/places.py: which file of codegen/ops holds which operator."""

from __future__ import annotations

import sys

from .paths import ROOT

TABLE = ROOT / "codegen" / "ops" / "places.py"


def table() -> str:
    """The source of the file."""
    from emberlet.codegen.ops import REGISTRY

    places: dict[str, dict[str, str]] = {}
    for (domain, name), operator in sorted(REGISTRY.items()):
        places.setdefault(domain, {})[name] = operator.__module__.rpartition(".")[2]
    lines = [
        '"""Which file of this folder holds which operator: by domain. `dev.py check --fix` writes it."""',
        "",
        "PLACES: dict[str, dict[str, str]] = {",
    ]
    for domain, operators in places.items():
        lines += [
            f'    "{domain}": {{',
            *(f'        "{name}": "{file}",' for name, file in operators.items()),
            "    },",
        ]
    return "\n".join([*lines, "}", ""])


def main(arguments: list[str]) -> int:
    """Say whether the table is out of date; with `--fix` write it."""
    wanted = table()
    if TABLE.is_file() and TABLE.read_text(encoding="utf-8") == wanted:
        return 0
    if "--fix" in arguments:
        TABLE.write_text(wanted, encoding="utf-8", newline="\n")
        return 0
    print(f"{TABLE.relative_to(ROOT)} is out of date; run `python3 dev.py check --fix`")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
