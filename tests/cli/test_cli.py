"""What all commands share: help, version, errors, and starting without NumPy or onnx."""

import json
import subprocess
import sys

import pytest
from emberlet import __version__
from emberlet.host import cli


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


def test_version(emberlet):
    assert emberlet("--version").out == __version__ + "\n"


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


def test_an_interrupt_is_no_traceback(emberlet, monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", interrupted)
    said = emberlet("devices")
    assert (said.status, said.err) == (130, "emberlet: interrupted\n")


def test_devices_lists_the_backends(emberlet):
    found = json.loads(emberlet("devices", "--json").out)
    assert [d["backend"].partition(":")[0] for d in found][:3] == ["python", "numpy", "wgpu"]
    assert emberlet("devices").out.startswith("python: CPython ")


def test_devices_names_what_was_measured_and_forgets_it(emberlet, tmp_path, monkeypatch):
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path))
    path = tmp_path / "tiles.json"
    assert str(path) not in emberlet("devices").out
    assert not any("tuning" in d for d in json.loads(emberlet("devices", "--json").out))
    said = emberlet("devices", "--forget-tuning")
    assert (said.status, said.out) == (0, f"nothing to forget: there is no {path}\n")
    path.write_text("{}")
    assert f"  tuning: {path}\n" in emberlet("devices").out
    found = json.loads(emberlet("devices", "--json").out)
    assert [d.get("tuning") for d in found[:3]] == [None, None, str(path)]
    said = emberlet("devices", "--forget-tuning")
    assert (said.status, said.out) == (0, f"deleted {path}\n")
    assert not path.exists()


def test_every_command_that_takes_inputs_says_which_files(emberlet):
    for command in ("run", "verify", "profile"):
        assert "an input from an .npy file, or all from an .npz" in " ".join(emberlet(command, "--help").out.split())


def test_the_command_line_starts_without_any_dependency():
    script = (
        "import sys\n"
        "for name in ('numpy', 'onnx', 'cbor2', 'wgpu', 'ml_dtypes'):\n"
        "    sys.modules[name] = None\n"
        "from emberlet.host.cli import main\n"
        "assert main(['devices']) == 0\n"
        "assert main(['codegen', 'x.onnx']) == 2\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "numpy: not installed: pip install emberlet[numpy]" in ended.stdout
    assert ended.stderr == "emberlet: this needs onnx: pip install emberlet[onnx]\n"


def test_it_runs_as_a_program():
    ended = subprocess.run([sys.executable, "-m", "emberlet.host.cli", "--version"], capture_output=True, text=True)
    assert ended.stdout == __version__ + "\n"
