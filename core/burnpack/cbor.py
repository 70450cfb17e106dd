"""A strict CBOR decoder (RFC 8949), as small as reading a burnpack needs.

Accepted: integers, byte and text strings, arrays, maps with text keys, floats of every width, booleans, null and
undefined; definite and indefinite lengths; lengths in a longer form than needed. A tag is skipped: it only annotates
what follows. Everything else raises a FormatError that gives the byte offset, and so does data that would take more
than 40 times its size in memory: an empty map takes one byte in the file and 64 in memory. The decoder keeps its own
stack instead of recursing, so that deep nesting fails with the same message on a microcontroller as on a desktop.
"""

MAX_DEPTH = 128

# The maximum memory of an item in bytes, by its major type, including its slot in the enclosing container.
_COST = b"\x29\x29\x60\x60\x60\xc8\x00\x29"


def bad(what, at, problem, *found):
    """Refuse the bytes. The message is loaded only now, so that it takes no memory on a device unless a file is bad."""
    from .cbor_extended import refuse

    refuse(what, at, problem, found)


def text(raw, what, at):
    """The bytes `raw` as text."""
    try:
        found = str(raw, "utf-8")
    except (UnicodeError, ValueError):
        found = ""
    if len(found) != len(raw):
        from .cbor_extended import is_utf8

        if not is_utf8(raw, found):
            bad(what, at, "utf8")
    return found


def decode(data, at, what):  # noqa: C901
    """The single value in data[at:], as Python int, float, str, bytes, bool, None, list and dict.

    data: bytes, bytearray or a memoryview of bytes. Raises FormatError, whose message begins with `what` and counts
    bytes from the beginning of `data`, if the bytes are not a valid value, end early, continue after it, or would take
    more memory than 40 times their size plus 64 KB.
    """
    data = memoryview(data)
    end = len(data)
    stack = []  # [container, items left or -1, the key waiting for its value or None]
    tagged = False
    memory = -65536
    while True:
        begin = at
        if at >= end:
            bad(what, at, "cut")
        major = data[at] >> 5
        info = data[at] & 31
        at += 1
        memory += _COST[major]
        if memory > 40 * at:
            bad(what, begin, "memory")
        if info < 24:
            argument = info
            width = 0
        elif info < 28:
            width = 1 << (info - 24)
            if width > end - at:
                bad(what, begin, "cut")
            argument = int.from_bytes(data[at : at + width], "big")
            at += width
        elif info == 31 and major in (2, 3, 4, 5, 7):
            argument = -1
        else:
            bad(what, begin, "reserved", data[begin])

        if major == 0:
            value = argument
        elif major == 1:
            value = -1 - argument
        elif major == 2 or major == 3:
            if argument < 0:
                from .cbor_extended import chunks

                value, at = chunks(data, at, end, major, what, text)
            elif argument > end - at:
                bad(what, begin, "string", argument, end - at)
            else:
                value = bytes(data[at : at + argument])
                at += argument
            if major == 3:
                value = text(value, what, begin)
        elif major == 4 or major == 5:
            if len(stack) >= MAX_DEPTH:
                bad(what, begin, "deep", MAX_DEPTH)
            if argument > 0:
                argument *= major - 3  # a map's items are keys and values
            if argument > end - at:
                bad(what, begin, "container", argument, end - at)
            value = [] if major == 4 else {}
            if argument:
                stack.append([value, argument, None])
                tagged = False
                continue
        elif major == 6:
            tagged = True
            continue
        elif argument == -1:
            if tagged or not stack or stack[-1][1] != -1 or stack[-1][2] is not None:
                bad(what, begin, "break")
            value = stack.pop()[0]
        elif width > 1:
            from .cbor_extended import floating

            value = floating(data[begin + 1 : at])
        elif width == 0 and 20 <= argument < 24:
            value = (False, True, None, None)[argument - 20]
        else:
            bad(what, begin, "simple", argument)
        tagged = False

        # Put the value into its container; a container that this completes goes into its own.
        while stack:
            top = stack[-1]
            container = top[0]
            if isinstance(container, list):
                container.append(value)
            elif top[2] is None:
                if not isinstance(value, str):
                    bad(what, begin, "key")
                if value in container:
                    bad(what, begin, "twice", value)
                top[2] = value
            else:
                container[top[2]] = value
                top[2] = None
            if top[1] > 0:
                top[1] -= 1
            if top[1]:
                break
            value = stack.pop()[0]
        if not stack:
            if at != end:
                bad(what, at, "behind", end - at)
            return value
