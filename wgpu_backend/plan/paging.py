"""Tensors larger than one binding may be: kernels see them as pages, each a buffer of its own.

A finished kernel is rewritten: `in0[i]` becomes `load_in0(i)`, which picks the page, and `out[i] = v` becomes
`store_out(i, v)`. Kernels whose tensors fit, all of them on most devices, stay as they are.
"""

from emberlet.errors import UnsupportedError

from ..kernels.loop import Kernel


def pages(nbytes, page_bytes):
    """How many pages a tensor of nbytes takes."""
    return max(1, (nbytes + page_bytes - 1) // page_bytes)


def paged(kernel, sizes, page_bytes, max_bindings):
    """`kernel` over pages of `page_bytes`; sizes: bytes of each tensor it binds, in order, the output last.

    Raises UnsupportedError where it then binds more than `max_bindings` buffers.
    """
    counts = [pages(n, page_bytes) for n in sizes]
    if max(counts) == 1:
        return kernel
    if sum(counts) > max_bindings:
        raise UnsupportedError(
            "kernel {} needs {} bindings for tensors of {} bytes, and this device allows {} of {} bytes each".format(
                kernel.name, sum(counts), max(sizes), max_bindings, page_bytes
            )
        )
    lines = []
    functions = []
    binding = 0
    slot = 0
    names = []
    for line in kernel.source.split("\n"):
        if not line.startswith("@group(0) @binding("):
            lines.append(line)
            continue
        access, rest = line[line.index("<") + 1 :].split("> ", 1)
        name, element = rest.split(": array<", 1)
        element = element[: element.rindex(">")]
        count = counts[slot]
        slot += 1
        for page in range(count):
            label = name if count == 1 else "{}_{}".format(name, page)
            lines.append("@group(0) @binding({}) var<{}> {}: array<{}>;".format(binding, access, label, element))
            binding += 1
        if count > 1:
            names.append(name)
            functions.append(_accessors(name, element, count, page_bytes // element_size(element)))
    source = "\n".join(lines)
    at = source.index("@compute")
    body = source[at:]
    for name in names:
        body = _rewritten(body, name)
    return Kernel(kernel.name, source[:at] + "\n\n".join(functions) + "\n\n" + body, kernel.inputs, kernel.groups)


def element_size(element):
    """Bytes of an element of WGSL's array<element>."""
    return (2 if "f16" in element else 4) * (4 if "vec4" in element else 1)


def _accessors(name, element, count, length):
    load = ["fn load_{}(i: u32) -> {} {{".format(name, element)]
    store = ["fn store_{}(i: u32, value: {}) {{".format(name, element)]
    for page in range(count):
        # A last page takes what is left, a wrapped negative index included: it is discarded where it is read.
        test = "    if (i < {}u) {{ ".format((page + 1) * length) if page < count - 1 else "    "
        end = " }" if page < count - 1 else ""
        place = "{}_{}[i - {}u]".format(name, page, page * length)
        load.append("{}return {};{}".format(test, place, end))
        store.append("{}{} = value;{}{}".format(test, place, " return;" if end else "", end))
    text = "\n".join(load) + "\n}"
    if name == "out":
        text += "\n\n" + "\n".join(store) + "\n}"
    return text


def _rewritten(body, name):
    """`name[i]` as load_name(i), and as store_name(i, v) where it is assigned to."""
    out = []
    at = 0
    key = name + "["
    while True:
        found = body.find(key, at)
        if found < 0:
            out.append(body[at:])
            return "".join(out)
        if found and (body[found - 1].isalpha() or body[found - 1].isdigit() or body[found - 1] == "_"):
            out.append(body[at : found + len(key)])
            at = found + len(key)
            continue
        end = _closing(body, found + len(name))
        inner = _rewritten(body[found + len(key) : end], name)
        out.append(body[at:found])
        if body[end + 1 : end + 4] == " = ":
            stop = body.index(";", end)
            out.append("store_{}({}, {})".format(name, inner, body[end + 4 : stop]))
            at = stop
        else:
            out.append("load_{}({})".format(name, inner))
            at = end + 1


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
