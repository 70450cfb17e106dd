# Runs functions on the python backend under MicroPython. Each line of the input is a job of
# tests/contract/runtimes/__init__.py, each line of the output its answer.
import binascii
import gc
import json
import sys

import emberlet
from emberlet import dtypes as D
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import EmberletError
from emberlet.tensor import Tensor

backend = emberlet.get_backend("python")
models = {}


def flat(result):
    if isinstance(result, (list, tuple)):
        return [x for part in result for x in flat(part)]
    if not isinstance(result, Tensor):
        raise ImportError("a result that is no tensor")
    data = binascii.b2a_base64(result.backend.to_bytes(result)).decode().strip()
    return [{"dtype": result.dtype.name, "shape": result.shape, "data": data}]


def tensor(x):
    return backend.from_bytes(binascii.a2b_base64(x["data"]), D.dtype(x["dtype"]), tuple(x["shape"]))


def answer(job):
    key = job["key"]
    if "source" in job:
        scope = {"emberlet": emberlet, "F": F, "nn": nn, "D": D, "nan": float("nan"), "inf": float("inf")}
        exec(job["source"], scope)
        models.clear()
        gc.collect()
        models[key] = scope["make"](backend)
        if hasattr(models[key], "load_record"):
            models[key].load_record({name: tensor(x) for name, x in job["weights"].items()}, layout="burn")
        return {}
    return {"outputs": flat(models[key](*[tensor(x) for x in job["inputs"]]))}


while True:
    line = sys.stdin.readline()
    if not line:
        break
    job = json.loads(line)
    try:
        found = answer(job)
    except EmberletError as error:
        found = {"error": type(error).__name__, "words": str(error)}
    except Exception as error:
        found = {"error": type(error).__name__, "words": str(error)}
    found["number"] = job["number"]
    print(json.dumps(found))
