"""Which functional family holds which function: the one table that makes every look-up lazy.

`emberlet.exp`, `emberlet.functional.exp` and `Tensor.exp` are the same function. Adding one: write it in its family's
file under core/functional/ and add its name here (a test compares the two).
"""

# family -> (functions that are also Tensor methods, functions that are not)
FAMILIES = {
    "creation": (
        "full_like zeros_like ones_like empty_like tril triu",
        "asarray full zeros ones empty arange eye linspace meshgrid from_dlpack",
    ),
}

_family_of = {}
_functions = {}


def _index():
    for family in FAMILIES:
        methods, functions = FAMILIES[family]
        for name in methods.split():
            _family_of[name] = (family, True)
        for name in functions.split():
            _family_of[name] = (family, False)


def function(name):
    """The function called `name`, imported from its family on first use. None where there is no such function."""
    found = _functions.get(name)
    if found is None:
        if not _family_of:
            _index()
        where = _family_of.get(name)
        if where is None:
            return None
        module = __import__("emberlet.functional." + where[0], None, None, ("*",))
        found = _functions[name] = getattr(module, name)
    return found


def method(name):
    """The function behind the Tensor method `name`, or None."""
    if not _family_of:
        _index()
    where = _family_of.get(name)
    if where is None or not where[1]:
        return None
    return function(name)


def all_names():
    """Every public functional name, sorted."""
    if not _family_of:
        _index()
    return sorted([n for n in _family_of if not n.startswith("_")])
