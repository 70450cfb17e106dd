"""The local server: which requests it answers, and for whom. Needs no browser."""

from __future__ import annotations

import gzip
import http.client
import os
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.ray_processes import wait_until

from tools.components import require
from tools.paths import WEB

sys.path.append(str(WEB))
import serve


@pytest.fixture
def server(tmp_path: Path) -> Iterator[serve.Server]:
    require("symlinks")
    root, mounted = tmp_path / "root", tmp_path / "mounted"
    for folder in (root, root / "inner", mounted, tmp_path / "elsewhere"):
        folder.mkdir()
        (folder / "a.txt").write_text(folder.name, encoding="utf-8")
    for folder in (root, mounted):
        (folder / "out.txt").symlink_to(tmp_path / "elsewhere" / "a.txt")
        (folder / "away").symlink_to(tmp_path / "elsewhere")
    (root / "within.txt").symlink_to(root / "inner" / "a.txt")
    started = serve.start_server(root, mounts={"/m/": mounted}, policy=serve.PAGE_POLICY)
    yield started
    started.shutdown()
    started.server_close()


def _get(server: serve.Server, path: str, host: str | None = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("localhost", server.server_port, timeout=10)
    connection.putrequest("GET", path, skip_host=host is not None)
    if host:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    answer.body = answer.read()  # type: ignore[attr-defined]
    connection.close()
    return answer


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/a.txt", 200),
        ("/within.txt", 200),
        ("/m/a.txt", 200),
        ("/out.txt", 404),
        ("/away/a.txt", 404),
        ("/away/", 404),
        ("/m/out.txt", 404),
        ("/m/../elsewhere/a.txt", 404),
        ("/%2e%2e/elsewhere/a.txt", 404),
        ("/m/%2e%2e/elsewhere/a.txt", 404),
        ("/inner/", 404),
    ],
)
def test_only_what_lies_below_the_roots_is_served(server: serve.Server, path: str, status: int) -> None:
    assert _get(server, path).status == status


@pytest.mark.parametrize("host", ["localhost", "localhost:80", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000"])
def test_this_machine_by_any_name_is_answered(server: serve.Server, host: str) -> None:
    assert _get(server, "/a.txt", host).status == 200


@pytest.mark.parametrize("host", ["", "evil.example", "evil.example:8000", "localhost.evil.example", "10.0.0.1", "::1"])
def test_a_request_for_another_host_is_refused(server: serve.Server, host: str) -> None:
    assert _get(server, "/a.txt", host).status == 421


def test_headers_isolate_the_page(server: serve.Server) -> None:
    for path in ("/a.txt", "/nothing"):
        headers = _get(server, path).headers
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert "Content-Security-Policy" not in _get(server, "/m/a.txt").headers


@pytest.mark.parametrize("begun", [b"", b"GET /a.txt HTT"])
def test_clients_that_send_no_request_shut_nobody_out(server: serve.Server, begun: bytes) -> None:
    idle = []
    for _ in range(2 * serve.MOST_CONNECTIONS):
        connection = socket.create_connection(("localhost", server.server_port), 10)
        connection.sendall(begun)
        idle.append(connection)
    start = time.monotonic()
    assert [_get(server, "/a.txt").status for _ in range(3)] == [200] * 3
    assert time.monotonic() - start < 5
    for connection in idle:
        connection.close()


def test_connections_with_requests_are_bounded(
    server: serve.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, end = threading.Semaphore(0), threading.Event()

    def slow(self: serve.Handler) -> None:
        begun.release()
        end.wait(20)

    monkeypatch.setattr(serve.Handler, "do_POST", slow, raising=False)
    busy = []
    for _ in range(serve.MOST_CONNECTIONS):
        connection = socket.create_connection(("localhost", server.server_port), 10)
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        busy.append(connection)
        assert begun.acquire(timeout=300)
    try:
        assert _get(server, "/a.txt").status == 503
    finally:
        end.set()
        for connection in busy:
            connection.close()


def test_clients_that_take_no_answer_shut_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(serve, "PATIENCE", 0.2)
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    (tmp_path / "large.zip").write_bytes(b"")
    os.truncate(tmp_path / "large.zip", 1 << 26)  # more than the system takes for a client that does not read
    server = serve.start_server(tmp_path)
    deaf = []
    for _ in range(4):
        connection = socket.create_connection(("localhost", server.server_port), 10)
        connection.sendall(b"GET /large.zip HTTP/1.1\r\nHost: localhost\r\n\r\n")
        deaf.append(connection)
    try:
        wait_until(
            lambda: len([t for t in list(server.sending.values()) if time.monotonic() - t > serve.PATIENCE]) == 4,
            "clients that read nothing",
        )
        assert [_get(server, "/a.txt").status for _ in range(3)] == [200] * 3
    finally:
        for connection in deaf:
            connection.close()
        server.shutdown()
        server.server_close()


def test_a_request_that_takes_too_long_is_cut_off(server: serve.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve.Handler, "request_timeout", 0.2)
    with socket.create_connection(("localhost", server.server_port), 10) as connection:
        connection.sendall(b"GET /a.txt HTTP/1.1\r\nHost: local")
        assert connection.recv(100) == b""


def test_a_body_that_comes_slowly_is_cut_off(server: serve.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve.Handler, "request_timeout", 0.2)
    with socket.create_connection(("localhost", server.server_port), 10) as connection:
        connection.sendall(b"GET /a.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nx")
        while connection.recv(1000):  # the answer, and then the end
            pass


@pytest.mark.parametrize(
    "headers",
    [b"X: " + b"x" * 70_000, b"".join(b"X%d: y\r\n" % i for i in range(200)), b"X: y" + b"\r\n z" * 90,
     b"\x00\xff: \x1b[2J", b": x", b"Host: elsewhere", b"Transfer-Encoding: chunked", b"Content-Length: -1",
     b"Range: bytes=" + b"0-1," * 9000, b"If-Modified-Since: \xff", b"Accept-Encoding: " + b"gzip," * 9000],
    ids=lambda headers: repr(headers[:20]),
)  # fmt: skip
def test_every_header_is_answered(server: serve.Server, headers: bytes) -> None:
    with socket.create_connection(("localhost", server.server_port), 10) as connection:
        connection.sendall(b"GET /a.txt HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1000).split(b" ")[1][:1] in (b"2", b"4")


@pytest.mark.parametrize(
    "path", ["/%00", "/a%00.txt", "/m/%00", "/%ED%A0%80", "/" + "x" * 5000, "/%FF", "//", "/?%00", "/" + "a/" * 3000]
)
def test_every_path_is_answered(server: serve.Server, path: str) -> None:
    assert _get(server, path).status in (301, 404)


@pytest.mark.parametrize(
    "line", [b"x", b"GET", b"GET / HTTP/9.9.9", b"GET / HTTP/2.0", b"\xff\xfe", b"x" * 70_000, b"PUT / HTTP/1.1"]
)
def test_every_first_line_is_answered(server: serve.Server, line: bytes) -> None:
    with socket.create_connection(("localhost", server.server_port), 10) as connection:
        connection.sendall(line + b"\r\nHost: localhost\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert b" 4" in (said := connection.recv(1000)) or b" 5" in said


def test_the_pages_policy_allows_webassembly_and_no_eval() -> None:
    assert "'wasm-unsafe-eval'" in serve.PAGE_POLICY and " 'unsafe-eval'" not in serve.PAGE_POLICY
    assert "'unsafe-inline'" not in serve.PAGE_POLICY


def test_text_and_wasm_are_sent_compressed(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"[" + b"1, " * 5000 + b"1]")
    (tmp_path / "a.zip").write_bytes(bytes(5000))
    server = serve.start_server(tmp_path)
    try:
        wanted = [("a.json", "gzip", "gzip"), ("a.json", "identity", None), ("a.zip", "gzip", None)]
        for name, accepted, encoding in wanted:
            request = urllib.request.Request(server.url + name, headers={"Accept-Encoding": accepted})
            with urllib.request.urlopen(request, timeout=20) as answer:
                data = answer.read()
            assert answer.headers["Content-Encoding"] == encoding
            assert int(answer.headers["Content-Length"]) == len(data)
            assert (gzip.decompress(data) if encoding else data) == (tmp_path / name).read_bytes()
    finally:
        server.shutdown()


def test_what_the_browser_has_already_is_not_sent_again(server: serve.Server, tmp_path: Path) -> None:
    page = tmp_path / "root" / "page.html"
    page.write_text("one" * 1000, encoding="utf-8")

    def ask(**headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("localhost", server.server_port, timeout=10)
        connection.request("GET", "/page.html", headers={"Accept-Encoding": "gzip", **headers})
        return connection.getresponse()

    first = ask()
    etag = first.getheader("ETag")
    assert first.status == 200 and etag and gzip.decompress(first.read()) == b"one" * 1000
    again = ask(**{"If-None-Match": etag})
    assert (again.status, again.read()) == (304, b"")
    before = server.sent
    assert 0 < len(ask().read()) < server.sent - before, "headers are counted"
    os.utime(page, ns=(1, 1))
    assert ask(**{"If-None-Match": etag}).status == 200
