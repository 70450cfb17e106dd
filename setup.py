"""What pyproject.toml cannot say: the README with absolute links, since an index shows it far from the repository."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent


def long_description() -> str:
    """README.md; each relative link points into the repository that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = project["urls"]["Source"].rstrip("/") + "/blob/main/"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"(\]\()(?!https?:|#|mailto:)([^)\s]+)(\))", rf"\g<1>{base}\g<2>\g<3>", text)


setup(long_description=long_description(), long_description_content_type="text/markdown")
