"""Names that a module does not have; loaded only when one is asked for."""

#: packages of emberlet that are not on devices, and what to do there
_ELSEWHERE = {
    "batch": "call the model itself",
    "codegen": "write the model's module on a computer and copy it to the device (docs/codegen.md)",
    "onnxruntime": "write the model's module on a computer and copy it to the device (docs/codegen.md)",
    "store": "convert the weights to a burnpack on a computer and read that with load_file (docs/store.md)",
}


def find(where, name):
    """What the module `where` has under another name than `name`, on CPython. Raises AttributeError."""
    if hasattr(memoryview, "cast"):
        # By name, because the errors are below everything else.
        return __import__("emberlet.host.public", None, None, ("find",)).find(where, name)
    if where == "emberlet" and name in _ELSEWHERE:
        raise AttributeError("emberlet.{} does not run on MicroPython: {}".format(name, _ELSEWHERE[name]))
    raise AttributeError("{} has no attribute {!r}".format(where, name))
