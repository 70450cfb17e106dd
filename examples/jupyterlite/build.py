"""Build a JupyterLite site with the notebook digits.ipynb, from the package registries alone: no file comes from a CDN.

python3 examples/jupyterlite/build.py --out out/jupyterlite          builds it
python3 examples/jupyterlite/build.py --out out/jupyterlite --check  and runs the notebook in Chromium
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYODIDE = ROOT / "web" / "node_modules" / "pyodide"
JUPYTERLITE = ("jupyterlite-core==0.8.6", "jupyterlite-pyodide-kernel==0.8.6", "jupyter-server")
# The packages that the kernel loads from Pyodide's index: package -> those of the others that it needs.
KERNEL = {
    "micropip": ["packaging"],
    "ipython": [
        "decorator",
        "ipython-pygments-lexers",
        "jedi",
        "matplotlib-inline",
        "pexpect",
        "prompt-toolkit",
        "pygments",
        "stack-data",
        "traitlets",
        "typing-extensions",
    ],
    "stack-data": ["asttokens", "executing", "pure-eval"],
    "jedi": ["parso"],
    "matplotlib-inline": ["traitlets"],
    "pexpect": ["ptyprocess"],
    "prompt-toolkit": ["wcwidth"],
    "comm": ["traitlets"],
}
OLDER = {"wcwidth": "wcwidth<0.3"}  # the last release in plain Python


def pip(python: Path, *arguments: str) -> None:
    subprocess.run([str(python), "-m", "pip", "--quiet", *arguments], check=True)


def build(out: Path) -> None:
    """Write the site to the folder `out`."""
    if not PYODIDE.is_dir():
        raise SystemExit("Pyodide is missing: run `npm ci` in web/")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        pip(python, "install", *JUPYTERLITE)
        names = sorted({*KERNEL, *(name for needed in KERNEL.values() for name in needed)})
        wanted = [OLDER.get(name, name) for name in names]
        # For Pyodide's Python, not for the one that runs this script, which would get older releases if it is older.
        lock = json.loads((PYODIDE / "pyodide-lock.json").read_text(encoding="utf-8"))
        options = ["--no-deps", "--only-binary=:all:", "--python-version", lock["info"]["python"]]
        pip(python, "download", *options, "--dest", str(folder / "wheels"), *wanted)
        pip(python, "wheel", "--no-deps", str(ROOT), "--wheel-dir", str(folder / "own"))
        archive = pyodide(folder)
        contents = folder / "notebooks"
        contents.mkdir()
        for source in (HERE / "digits.ipynb", ROOT / "examples" / "digits" / "digits.onnx"):
            shutil.copy(source, contents)
        own = next((folder / "own").glob("emberlet-*.whl"))
        comm = next((folder / "wheels").glob("comm-*.whl"))
        command = [
            str(python),
            "-m",
            "jupyterlite_core",
            "build",
            "--contents",
            str(contents),
            "--output-dir",
            str(out),
        ]
        command += ["--piplite-wheels", str(own), "--piplite-wheels", str(comm), "--pyodide", str(archive)]
        subprocess.run(command, check=True, cwd=folder)


def pyodide(folder: Path) -> Path:
    """An archive of npm's pyodide, the kernel's wheels and a lock file that lists only these."""
    target = folder / "pyodide"
    shutil.copytree(PYODIDE, target, ignore=shutil.ignore_patterns("node_modules", "*.map"))
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text(encoding="utf-8"))
    lock["packages"] = {}
    for wheel in sorted((folder / "wheels").glob("*.whl")):
        project, version, *_ = wheel.name.split("-")
        name = project.lower().replace("_", "-")
        with zipfile.ZipFile(wheel) as files:
            tops = {path.split("/")[0].removesuffix(".py") for path in files.namelist() if path.endswith(".py")}
        shutil.copy(wheel, target)
        lock["packages"][name] = {
            "name": name,
            "version": version,
            "file_name": wheel.name,
            "install_dir": "site",
            "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
            "package_type": "package",
            "imports": sorted(top for top in tops if not top.endswith(".data")),
            "depends": KERNEL.get(name, []),
            "unvendored_tests": False,
        }
    (target / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    archive = folder / "pyodide.tar.bz2"
    with tarfile.open(archive, "w:bz2", compresslevel=1) as tar:
        tar.add(target, "pyodide")
    return archive


def check(site: Path) -> list[str]:
    """The outputs of the notebook's cells, run in Chromium."""
    sys.path[:0] = [str(ROOT), str(ROOT / "web")]
    from serve import start_server

    from tools.chromium import Browser

    settings = site / "jupyter-lite.json"
    content = json.loads(settings.read_text(encoding="utf-8"))
    content["jupyter-config-data"]["exposeAppInBrowser"] = True
    settings.write_text(json.dumps(content), encoding="utf-8")
    notebook = "globalThis.jupyterapp?.shell?.currentWidget"
    server = start_server(site)
    with Browser() as browser:
        page = browser.open(server.url + "lab/index.html?path=digits.ipynb")
        page.wait(f"() => {notebook}?.content?.widgets?.length >= 5", timeout=120000)
        page.evaluate(f"async () => {{ await jupyterapp.restored; await {notebook}.context.ready; }}")
        page.wait(f"() => {notebook}.sessionContext.session?.kernel?.status === 'idle'", timeout=120000)
        page.evaluate("() => void jupyterapp.commands.execute('notebook:run-all-cells')")
        outputs = "[...document.querySelectorAll('.jp-OutputArea-output')].map((one) => one.textContent.trim())"
        page.wait(f"() => {outputs}.some((text) => /^It reads|Error/.test(text))", timeout=120000)
        found: list[str] = page.evaluate(f"() => {outputs}")
        hosts = {url.split("/")[2] for url in page.requests() if url.startswith("http")}
    server.shutdown()
    if len(hosts) != 1:
        raise SystemExit(f"something was fetched from elsewhere: {', '.join(sorted(hosts))}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="A JupyterLite site in which a notebook reads a digit.")
    parser.add_argument("--out", type=Path, default=Path("out/jupyterlite"), help="folder to write")
    parser.add_argument("--check", action="store_true", help="run the notebook in Chromium and print its outputs")
    options = parser.parse_args()
    out = options.out.resolve()
    build(out)
    print(f"wrote {options.out}; to see it: python3 -m http.server --directory {options.out} --bind localhost 8000")
    if not options.check:
        return 0
    found = check(out)
    print("\n".join(found))
    return 0 if found[-1:] == ["It reads 7"] else 1


if __name__ == "__main__":
    sys.exit(main())
