"""What pyproject.toml cannot say.

The README gets absolute links, since an index shows it far from the repository. `pip install -e .` makes a folder of
links that type checkers read (setuptools' mode "strict"), since its usual import hook says nothing to them. The links
lead to whole folders, so that a file that is added later is found at once; only one directly in `core` needs another
`pip install -e .`. `dev.py` installs in the mode "lenient", which needs none.
"""

import re
import shutil
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

    def run(self) -> None:
        super().run()
        for made in ROOT.glob("build/__editable__.emberlet-*/emberlet"):
            for folder in [p for p in made.iterdir() if p.is_dir() and not p.is_symlink()]:
                beside = ROOT / folder.name  # codegen, micro, wgpu_backend
                link_folder(folder, beside if (beside / "__init__.py").exists() else ROOT / "core" / folder.name)


def link_folder(folder: Path, source: Path) -> None:
    """Put a link to `source` in the place of a folder of links to its files; where links need a privilege, nothing."""
    link = folder.with_name(folder.name + ".link")
    try:
        link.symlink_to(source, target_is_directory=True)
    except OSError:
        return
    shutil.rmtree(folder)
    link.rename(folder)


setup(
    cmdclass={"editable_wheel": EditableWheel},
    long_description=long_description(),
    long_description_content_type="text/markdown",
)
