"""Shader templates: WGSL files with `{{ name }}` placeholders, and the library of functions they may call.

The same few lines serve the library's kernels and yours: `render(text, {"count": 64})` replaces every placeholder,
`library(text)` returns the functions of shaders/math.wgsl that a text calls.
"""

from emberlet.errors import BackendError

_texts = {}
_library = []  # one dict, once it is whole: threads may ask for it together


def folder():
    """The folder of the library's own shaders."""
    here = __file__
    cut = max(here.rfind("/"), here.rfind("\\"))
    return (here[:cut] if cut >= 0 else ".") + "/shaders/"


def read(name):
    """The text of a shader: a path to a .wgsl file, or the bare name of one in shaders/. Read once."""
    found = _texts.get(name)
    if found is None:
        own = not ("/" in name or "\\" in name)
        path = folder() + name if own else name
        # The importer can read files from an archive. MicroPython has neither importers nor archives.
        loader = globals().get("__loader__") if own else None
        try:
            if hasattr(loader, "get_data"):
                found = _texts[name] = str(loader.get_data(path), "utf-8")
            else:
                with open(path, encoding="utf-8") as file:
                    found = _texts[name] = file.read()
        except OSError as error:
            raise BackendError("the shader {} cannot be read: {}".format(path, error))
    return found


def render(text, values):
    """`text` with each `{{ name }}` replaced by values[name]. Raises BackendError for a name that is not given."""
    out = []
    at = 0
    while True:
        start = text.find("{{", at)
        if start < 0:
            out.append(text[at:])
            return "".join(out)
        end = text.find("}}", start)
        if end < 0:
            raise BackendError("a placeholder is not closed: {}".format(text[start : start + 40]))
        name = text[start + 2 : end].strip()
        if name not in values:
            raise BackendError(
                "the shader wants {{{{ {} }}}}; the values given are {}".format(name, ", ".join(sorted(values)))
            )
        value = str(values[name])
        if "\n" in value:
            # A block keeps the indentation of its placeholder.
            line = text.rfind("\n", 0, start) + 1
            indent = text[line:start]
            if not indent.strip():
                value = value.replace("\n", "\n" + indent)
        out.append(text[at:start])
        out.append(value)
        at = end + 2


def _read_library():
    """name -> (its place, its WGSL, the names that it calls) of each function of shaders/math.wgsl."""
    functions = {}
    name = None
    body = []
    for line in read("math.wgsl").split("\n"):
        if line.startswith("fn "):
            name = line[3 : line.index("(")]
            body = []
        if name:
            body.append(line)
            if line == "}":
                text = "\n".join(body)
                functions[name] = (len(functions), text, called(text, name))
                name = None
    return functions


def _is_name(character):
    return character.isalpha() or character.isdigit() or character == "_"


def called(text, but=None):
    """Names that `text` calls: every identifier directly before a parenthesis."""
    out = []
    at = text.find("(")
    while at >= 0:
        start = at
        while start > 0 and _is_name(text[start - 1]):
            start -= 1
        name = text[start:at]
        if name and name != but and name not in out:
            out.append(name)
        at = text.find("(", at + 1)
    return out


def library(text):
    """The functions of shaders/math.wgsl that `text` calls, with those they call, as WGSL text."""
    if not _library:
        _library.append(_read_library())
    functions = _library[0]
    wanted = {}
    stack = called(text)
    while stack:
        name = stack.pop()
        if name in functions and name not in wanted:
            wanted[name] = functions[name]
            stack.extend(functions[name][2])
    return "\n\n".join([found[1] for found in sorted(wanted.values())])
