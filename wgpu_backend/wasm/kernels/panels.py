"""The order in which a file holds the weights of integer products (../writer.py), as integers.py reads them."""

WIDTH = 8  # columns of a panel: two vectors of 32-bit sums
ORDER = (1, 3, 0, 2)  # from (panels, pairs, WIDTH, 2) to (pairs, 2, panels, WIDTH), which is (terms, columns)


def panels_of(weight):
    """The node of the panels, of which the right operand of a product is a view and a cast of 8-bit integers to wider
    ones; None for other operands."""
    while weight.op == "cast" and weight.dtype.bits > 8:
        weight = weight.srcs[0]
    if weight.op != "reshape" or weight.srcs[0].op != "permute" or weight.srcs[0].arg != ORDER:
        return None
    stored = weight.srcs[0].srcs[0]
    if stored.op != "data" or stored.word not in ("i8", "u8") or stored.shape[2:] != (WIDTH, 2):
        return None
    panels, pairs = stored.shape[:2]
    return stored if weight.shape == (2 * pairs, panels * WIDTH) else None
