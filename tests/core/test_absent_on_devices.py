"""On MicroPython a name that emberlet does not have there is answered with what to do."""

import pytest

SCRIPT = """
import emberlet
from emberlet import linalg, nn

for where, name in ((emberlet, "store"), (emberlet, "codegen"), (emberlet, "zeroes"), (nn, "Liner"), (linalg, "tr")):
    print(hasattr(where, name), end=" ")
print()
try:
    from emberlet import {}
except AttributeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("store", "emberlet.store does not run on MicroPython: convert the weights to a burnpack on a computer"),
        ("codegen", "emberlet.codegen does not run on MicroPython: write the model's module on a computer"),
        ("zeroes", "emberlet has no attribute 'zeroes'"),
    ],
)
def test_a_name_that_devices_lack_is_explained(micropython_port, name, said):
    has, error = micropython_port.run(SCRIPT.format(name)).check().stdout.splitlines()
    assert has.split() == ["False"] * 5
    assert error.startswith(said)
