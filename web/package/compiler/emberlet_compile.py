"""The Python that worker.mjs calls: one ONNX file or Python module to one compiled model."""

import json
import os
import sys
import traceback
from importlib.machinery import PathFinder

from emberlet.errors import EmberletError
from emberlet.host.cli.compile import Branches, write
from emberlet.host.cli.options import Named

sys.dont_write_bytecode = True  # a later module may have the name, the size and the second of an earlier one


_sessions = {}  # of models that run step by step, by number


class _Late:
    """Fetches the files of Python's own library when a module of it is imported that the image of the memory does not
    have (web/image.mjs)."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | {"pyodide", "_pyodide"}:
            return
        import js
        from pyodide.ffi import JsException

        try:
            js.fetchLibrary()
        except JsException as error:
            raise ImportError(error.message) from error
        sys.meta_path.remove(self)


def late():
    """From now on imports find their files by `_Late`."""
    sys.meta_path.insert(sys.meta_path.index(PathFinder), _Late())


def compile(path, out, options):
    """Write the compiled model to `out`; returns JSON: {"chosen": sizes that nobody gave}, or {"error", "details"},
    with "branchesOn" if the model's control flow depends on the input of that name.

    options: JSON of {"dim", "freeze"}, the words of these options of the command; "relaxed", whether this browser has
    relaxed SIMD; without it, a .wasm file has the code for both; and "classes" of devices that a plan is for; without
    it, all.
    """
    given = json.loads(options)
    name = os.path.basename(path)
    try:
        limits = given.get("relaxed"), given.get("classes")
        _, _, chosen = write(path, out, given["dim"], given["freeze"], None, *limits)
    except (EmberletError, OSError) as error:
        more = {"branchesOn": error.input} if isinstance(error, Branches) else {}
        return _told(_said(error).replace(os.path.dirname(path) + "/", ""), **more)
    except MemoryError:
        return _told(f"compiling {name} takes more memory than this browser gives")
    except Exception as error:
        return _told(f"{name} could not be compiled, which is a bug of emberlet: {type(error).__name__}: {error}")
    return json.dumps({"chosen": chosen})


def steps(number, path, feeds):
    """Run the model of a session operation by operation. Returns {"outputs": [(name, dtype, shape, bytes), …]}, or
    {"error", "details"}. `path` is the ONNX file of a session that is not open yet; if it is empty, and for the end of
    a session, the answer is {}.

    feeds: (name, dtype, shape, bytes) of each input; None ends the session.
    """
    if feeds is None:
        _sessions.pop(number, None)
        return {}
    from emberlet import dtypes, get_backend, onnxruntime

    try:
        if number not in _sessions:
            if not path:
                return {}
            _sessions[number] = onnxruntime.InferenceSession(path)
        session, backend = _sessions[number], get_backend("python")
        given = {n: backend.from_bytes(bytes(b), getattr(dtypes, d), tuple(s)) for n, d, s, b in feeds}
        found = session.run(None, given)
        names = [output.name for output in session.get_outputs()]
        outputs = [(n, t.dtype.name, t.shape, bytes(backend.to_bytes(t))) for n, t in zip(names, found, strict=True)]
        return {"outputs": outputs}
    except (EmberletError, ValueError) as error:
        return json.loads(_told(str(error)))
    except MemoryError:
        return json.loads(_told("the model takes more memory than this browser gives"))


def _said(error):
    """What an error says, with the options that it names as `load` takes them: --dim n=1..8 is dims: { n: [1, 8] }."""
    message = error.args[0] if error.args else ""
    if not isinstance(message, Named):
        return str(error)
    before, option, words, after = message.parts
    given = ", ".join([_as_property(*word.rpartition("=")) for word in words])
    return before + {"dim": "dims"}.get(option, option) + (f": {{ {given} }}" if given else "") + after


def _as_property(name, _, value):
    low, dots, rest = value.partition("..")
    if dots:
        value = f"[{', '.join([low, *rest.split(':')])}]"
    return f"{name if name.isidentifier() else json.dumps(name)}: {value}"


def _told(message, **more):
    return json.dumps({"error": message, "details": traceback.format_exc(), **more})
