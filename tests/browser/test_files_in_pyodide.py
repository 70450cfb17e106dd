"""Files under Pyodide, whose Python lacks some calls of Linux's."""

from support.browser.in_pyodide import in_pyodide


@in_pyodide
def test_a_large_tensor_is_read_from_a_file():
    from emberlet.host.files import LARGE, FileBytes

    content = bytes(range(256)) * (LARGE // 256 + 1)
    with open("/large.bpk", "wb") as file:
        file.write(content)
    assert bytes(FileBytes("/large.bpk")[7 : LARGE + 50]) == content[7 : LARGE + 50]
