"""Serve a static folder on http://localhost: WebGPU asks for a secure context, which a plain file:// page is not.

python3 web/serve.py            builds web/dist and serves it until interrupted
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from socket import SHUT_RDWR, socket
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore, Lock, Thread, Timer
from time import monotonic
from typing import Any
from urllib.parse import unquote, urlsplit

WEB = Path(__file__).resolve().parent

MOST_CONNECTIONS = 64
"""Connections served at a time; a browser opens six to a host. Beyond them, the one that has waited longest for a
request is closed, or one that has not taken a piece of its answer for PATIENCE."""

PATIENCE = 2.0
"""Seconds in which a client should take 64 KB of an answer where others wait."""

PAGE_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "img-src 'self' data: blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The Content-Security-Policy of emberlet's page: everything comes from this server, no script is inline."""


COMPRESSED = (".html", ".css", ".mjs", ".js", ".json", ".py", ".svg", ".wasm", ".bpk", ".plan", ".onnx")
"""Files that are sent compressed; archives are compressed already."""


class Handler(SimpleHTTPRequestHandler):
    """Files of `root`, and of other folders under the URL prefixes of `mounts` ("/tests/": folder).

    policy: the Content-Security-Policy of the files of `root`, None for none. A link that leads out of its folder is
    not found; a request for another host than this machine is refused, so that no page elsewhere reaches the files by
    a name that it lets point here (DNS rebinding).
    """

    protocol_version = "HTTP/1.1"
    path = ""  # of a request whose first line cannot be read
    timeout = 60  # seconds that a connection may stay silent between requests
    request_timeout = 10.0  # seconds in which a request must have come, once it has begun
    extensions_map = {  # noqa: RUF012  (so the base class has it)
        **SimpleHTTPRequestHandler.extensions_map,
        # Browsers refuse a module with another type, and compile Wasm while it arrives only with this one.
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".py": "text/plain",  # to be read, not downloaded
    }

    def __init__(
        self,
        *args: object,
        root: Path,
        mounts: Mapping[str, Path],
        policy: str | None = None,
        verbose: bool = False,
        **kwargs: object,
    ) -> None:
        self.root = root.resolve()
        self.mounts = mounts
        self.policy = policy
        self.verbose = verbose
        super().__init__(*args, directory=str(root), **kwargs)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        clean = unquote(urlsplit(path).path)
        for prefix, folder in self.mounts.items():
            if clean.startswith(prefix):
                return _inside(folder.resolve(), str(folder / clean[len(prefix) :]))
        return _inside(self.root, super().translate_path(path))

    def setup(self) -> None:
        super().setup()
        self.wfile = _Counted(self.wfile, self.server, self.connection)  # type: ignore[assignment, arg-type]

    def handle_one_request(self) -> None:
        self._waits(True)
        try:
            if not self.rfile.peek(1):  # type: ignore[attr-defined]
                self.close_connection = True
                return
        except OSError:  # silent for too long, or closed for one that has a request
            self.close_connection = True
            return
        # A client that sends a byte a minute is cut off: no read of its own would end.
        end = Timer(self.request_timeout, _cut, (self.connection,))
        end.daemon = True
        end.start()
        self._end_of_request = end.cancel
        try:
            super().handle_one_request()
        except OSError:  # the client is gone
            self.close_connection = True
        finally:
            end.cancel()

    def _waits(self, waiting: bool) -> None:
        self.server.waits(self.connection, waiting)  # type: ignore[attr-defined]

    def parse_request(self) -> bool:
        parsed = super().parse_request()
        self._end_of_request()
        self._waits(False)
        if not parsed:
            return False
        if _names_this_machine(self.headers.get("Host", "")):
            return True
        self.close_connection = True
        self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "this server answers to localhost only")
        return False

    def send_head(self) -> Any:
        """As the base class, but compressed where the browser takes that and it is worth it."""
        try:
            return self._send_head()
        except ConnectionError:
            raise
        except (OSError, ValueError):  # a path that no file system takes: with a NUL, too long, not UTF-8
            self.send_error(HTTPStatus.NOT_FOUND, "File not found")
            return None

    def _send_head(self) -> Any:
        path = Path(self.translate_path(self.path))
        if "gzip" not in self.headers.get("Accept-Encoding", "") or path.suffix not in COMPRESSED or not path.is_file():
            return super().send_head()
        modified = path.stat().st_mtime_ns
        etag = f'"{modified:x}"'
        if self.headers.get("If-None-Match") == etag:
            self.send_response(HTTPStatus.NOT_MODIFIED)
            self.send_header("ETag", etag)
            self.end_headers()
            return None
        data = _gzipped(path, modified)
        self.send_response(HTTPStatus.OK)
        self.send_header("ETag", etag)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        return BytesIO(data)

    def list_directory(self, path: Any) -> None:
        """A folder without an index.html is not listed."""
        self.send_error(HTTPStatus.NOT_FOUND, "File not found")

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # ask again, so that an edited file shows at once
        self.send_header("X-Content-Type-Options", "nosniff")
        # Together they give the page a process of its own (crossOriginIsolated).
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if self.policy is not None and not self.path.startswith(tuple(self.mounts)):
            self.send_header("Content-Security-Policy", self.policy)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        if self.verbose:
            super().log_message(format, *args)


def _cut(connection: socket) -> None:
    with suppress(OSError):
        connection.shutdown(SHUT_RDWR)


class _Counted:
    """The stream of an answer; its bytes count as the server's `sent`."""

    def __init__(self, stream: Any, server: Server, connection: socket) -> None:
        self._stream = stream
        self._server = server
        self._connection = connection

    def write(self, data: Any) -> int:
        server = self._server
        with server.counting:
            server.sent += len(data)
            server.sending[self._connection] = monotonic()
        try:
            return int(self._stream.write(data))
        finally:
            with server.counting:
                server.sending.pop(self._connection, None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@lru_cache(maxsize=64)
def _gzipped(path: Path, modified: int) -> bytes:
    """A file compressed; kept until it changes."""
    return gzip.compress(path.read_bytes(), 6, mtime=0)


def _inside(root: Path, path: str) -> str:
    """`path`, or a name that is not there where it leads out of `root` by links or dots."""
    target = Path(path).resolve()
    return path if target == root or root in target.parents else str(root / "outside")


def _names_this_machine(host: str) -> bool:
    """Whether a Host header names this machine, with any port."""
    name, _, port = host.rpartition(":")
    if not port.isdigit():
        name = host
    return name.lower() in ("localhost", "127.0.0.1", "[::1]")


class Server(ThreadingHTTPServer):
    """Serves at most MOST_CONNECTIONS at a time. One more closes the connection that has waited longest for a request,
    or the one that has taken nothing of its answer for longest; if there is none, it is answered with 503. sent: bytes
    of all answers, with their headers, since the start; sending: when each connection began to send what it sends."""

    daemon_threads = True
    request_queue_size = 128
    sent = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.free = BoundedSemaphore(MOST_CONNECTIONS)
        self.counting = Lock()
        self._waiting: dict[Any, None] = {}  # those without a whole request, the oldest first
        self.sending: dict[Any, float] = {}
        super().__init__(*args, **kwargs)

    def waits(self, connection: Any, waiting: bool) -> None:
        """Note whether a connection waits for the rest of a request."""
        with self.counting:
            self._waiting.pop(connection, None)
            if waiting:
                self._waiting[connection] = None

    def _make_room(self) -> bool:
        """Close the connection that has waited longest, or whose client has; whether its thread ends soon."""
        with self.counting:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                oldest = min(self.sending, key=self.sending.__getitem__, default=None)
                if oldest is None or monotonic() - self.sending[oldest] < PATIENCE:
                    return False
            self._waiting.pop(oldest, None)
        _cut(oldest)
        return True

    def process_request(self, request: Any, client_address: Any) -> None:
        free = self.free.acquire(blocking=False)
        if not free and self._make_room():
            free = self.free.acquire(timeout=1)
        if not free:
            with suppress(OSError):
                request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.waits(request, False)
            self.free.release()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.server_port}/"


def make_server(
    root: Path,
    port: int = 0,
    mounts: Mapping[str, Path] | None = None,
    policy: str | None = None,
    verbose: bool = False,
) -> Server:
    """A server bound to localhost (port 0: any free one), not yet serving.

    Raises OSError when the port is taken.
    """
    handler = partial(Handler, root=root, mounts=mounts or {}, policy=policy, verbose=verbose)
    return Server(("localhost", port), handler)


def start_server(
    root: Path, port: int = 0, mounts: Mapping[str, Path] | None = None, policy: str | None = None
) -> Server:
    """The same, serving in a thread that ends with the process; `shutdown()` ends it earlier."""
    server = make_server(root, port, mounts, policy)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def _pack(out: Path) -> int:
    from build_package import pack, sizes
    from build_page import BuildError

    with TemporaryDirectory() as folder:
        try:
            archive = pack(out, Path(folder))
        except (BuildError, OSError) as error:
            print(f"cannot build the package: {error}", file=sys.stderr)
            return 1
        ours, theirs = sizes(Path(folder))
    size = archive.stat().st_size
    print(f"wrote {archive}: {size:,} bytes; gzipped, plans need {ours:,} of ours and {theirs:,} of MicroPython")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="dev.py web", description="Build emberlet's page and serve it on localhost.")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000; 0 takes any free one)")
    parser.add_argument(
        "--pack",
        nargs="?",
        const="out",
        metavar="FOLDER",
        help="write the npm package to FOLDER (default out), and end",
    )
    parser.add_argument("--no-build", action="store_true", help="serve web/dist as it is")
    parser.add_argument("--verbose", action="store_true", help="print every request")
    options = parser.parse_args(arguments)
    if options.pack:
        return _pack(Path(options.pack))
    if not options.no_build:
        from build_page import BuildError, build

        try:
            build(WEB / "dist", demos=True)
        except BuildError as error:
            print(f"cannot build the page: {error}", file=sys.stderr)
            return 1
    try:
        server = make_server(WEB / "dist", options.port, policy=PAGE_POLICY, verbose=options.verbose)
    except OSError as error:
        print(f"cannot listen on port {options.port} ({error.strerror}); try --port 0", file=sys.stderr)
        return 1
    print(f"emberlet's page: {server.url}   (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
