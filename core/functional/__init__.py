"""The functions of emberlet: those of the array API standard, and those of neural networks (`F.relu`, `F.conv`, …).

Each is written once, from the backend's primitives, in a small file per family; `emberlet.names` maps each function to
its family. A family is imported when one of its functions is first used. Families are grouped into packages by concept
(elementwise/, windows/, …). The few that small networks need are in this folder itself, because on a microcontroller
every package costs memory.
"""


def __getattr__(name):
    from ..lookup import absent, function

    found = function(name)
    if found is None:
        found = absent("emberlet.functional", name)
    globals()[name] = found
    return found


def __dir__():
    from ..names import all_names

    return all_names()
