"""Kernels of your own over tensors larger than the limit of a binding: their text is rewritten to use pages.

The library's kernels are rendered for pages directly (render/arrays.py). Of yours there is only the text: each binding
must be declared on its own line, as emberlet declares it, and its array read as `in0[i]` and written as `out[i] = v;`
or `out[i] += v;`.
"""

from emberlet.errors import UnsupportedError

from ..render.arrays import accessors, declaration, labels


def over_pages(name, source, counts, page_bytes):
    """The text, rewritten for pages of `page_bytes`. counts: the pages of each bound tensor, in order, the result last.

    Raises UnsupportedError if the text declares its bindings differently.
    """
    lines = []
    functions = []
    paged = []
    binding = slot = 0
    for line in source.split("\n"):
        if not line.startswith("@group(0) @binding(") or slot == len(counts):
            lines.append(line)
            continue
        access, rest = line[line.index("<") + 1 :].split("> ", 1)
        label, element = rest.split(": array<", 1)
        element = element[: element.rindex(">")]
        for page in labels(label, counts[slot]):
            lines.append(declaration(binding, access.split(",")[-1].strip(), page, element))
            binding += 1
        if counts[slot] > 1:
            paged.append(label)
            functions.append(accessors(label, element, counts[slot], page_bytes, "write" in access))
        slot += 1
    if slot != len(counts):
        raise UnsupportedError(
            "kernel {} takes tensors of more than {} bytes, which this device binds in pages, but emberlet finds only "
            "{} of its {} bindings: declare each on its own line, or use {{{{ bindings }}}}".format(
                name, page_bytes, slot, len(counts)
            )
        )
    source = "\n".join(lines)
    at = max(0, source.find("@compute"))  # what is wrong with the text is left to its compiler
    body = source[at:]
    for label in paged:
        body = _rewritten(body, label)
    return source[:at] + "\n\n".join(functions) + "\n\n" + body


def _rewritten(body, label):
    """The body with `label[i]` replaced by load_label(i), or by store_label(i, v) if it is assigned to."""
    out = []
    at = 0
    key = label + "["
    while True:
        found = body.find(key, at)
        if found < 0:
            out.append(body[at:])
            return "".join(out)
        if found and (body[found - 1].isalpha() or body[found - 1].isdigit() or body[found - 1] == "_"):
            out.append(body[at : found + len(key)])
            at = found + len(key)
            continue
        end = _closing(body, found + len(label))
        inner = _rewritten(body[found + len(key) : end], label)
        out.append(body[at:found])
        operator = _assigned(body, end + 1)
        if operator is None:
            out.append("load_{}({})".format(label, inner))
            at = end + 1
            continue
        stop = body.find(";", end)
        if stop < 0:
            stop = len(body)
        value = _rewritten(body[body.index("=", end) + 1 : stop].strip(), label)
        if operator:
            value = "load_{}({}) {} ({})".format(label, inner, operator, value)
        out.append("store_{}({}, {})".format(label, inner, value))
        at = stop


def _assigned(body, at):
    """The operator before the `=` of an assignment at `at`: "" for plain assignment; None if there is no assignment."""
    rest = body[at : at + 8].lstrip()
    if rest[:1] == "=" and rest[1:2] != "=":
        return ""
    for operator in ("<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^"):
        if rest.startswith(operator + "="):
            return operator
    return None


def _closing(text, at):
    depth = 0
    for i in range(at, len(text)):
        if text[i] == "[":
            depth += 1
        elif text[i] == "]":
            depth -= 1
            if depth == 0:
                return i
    return len(text)
