"""The Python that worker.mjs calls: one ONNX file or Python module to one compiled model."""

import json
import os
import sys
import traceback

from emberlet.errors import EmberletError
from emberlet.host.cli.compile import Branches, write

sys.dont_write_bytecode = True  # a later module may have the name, the size and the second of an earlier one


def compile(path, out, options):
    """Write the compiled model to `out`; returns JSON: {"chosen": sizes that nobody gave}, or {"error", "details"},
    with "branchesOn" if the model's control flow depends on the input of that name.

    options: JSON of {"dim", "freeze"}, the words of these options of the command.
    """
    given = json.loads(options)
    name = os.path.basename(path)
    try:
        _, _, chosen = write(path, out, given["dim"], given["freeze"], None)
    except (EmberletError, OSError) as error:
        more = {"branchesOn": error.input} if isinstance(error, Branches) else {}
        return _told(str(error).replace(os.path.dirname(path) + "/", ""), **more)
    except MemoryError:
        return _told(f"compiling {name} takes more memory than this browser gives")
    except Exception as error:
        return _told(f"{name} could not be compiled, which is a bug of emberlet: {type(error).__name__}: {error}")
    return json.dumps({"chosen": chosen})


def _told(message, **more):
    return json.dumps({"error": message, "details": traceback.format_exc(), **more})
