"""What pyproject.toml cannot say.

The README gets absolute links, since an index shows it far from the repository. `pip install -e .` makes a folder of
links that type checkers read (setuptools' mode "strict"), since its usual import hook says nothing to them. A file that
is added later needs another `pip install -e .`; `dev.py` installs in the mode "lenient", which sees it at once.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.editable_wheel import editable_wheel

ROOT = Path(__file__).resolve().parent


def long_description() -> str:
    """README.md; each relative link points into the repository that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = project["urls"]["Source"].rstrip("/") + "/blob/main/"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"(\]\()(?!https?:|#|mailto:)([^)\s]+)(\))", rf"\g<1>{base}\g<2>\g<3>", text)


class EditableWheel(editable_wheel):
    def finalize_options(self) -> None:
        self.mode = self.mode or "strict"
        super().finalize_options()


setup(
    cmdclass={"editable_wheel": EditableWheel},
    long_description=long_description(),
    long_description_content_type="text/markdown",
)
