"""Serve a static folder on http://localhost: WebGPU asks for a secure context, which a plain file:// page is not.

python3 web/serve.py            builds web/dist and serves it until interrupted
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

WEB = Path(__file__).resolve().parent


class Handler(SimpleHTTPRequestHandler):
    """Files of `root`, and of other folders under the URL prefixes of `mounts` ("/tests/": folder)."""

    protocol_version = "HTTP/1.1"
    extensions_map = {  # noqa: RUF012  (so the base class has it)
        **SimpleHTTPRequestHandler.extensions_map,
        # Browsers refuse a module with another type, and compile Wasm while it arrives only with this one.
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".py": "text/plain",  # to be read, not downloaded
    }

    def __init__(
        self, *args: object, root: Path, mounts: Mapping[str, Path], verbose: bool = False, **kwargs: object
    ) -> None:
        self.mounts = mounts
        self.verbose = verbose
        super().__init__(*args, directory=str(root), **kwargs)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        clean = unquote(urlsplit(path).path)
        for prefix, folder in self.mounts.items():
            if clean.startswith(prefix):
                target = (folder / clean[len(prefix) :]).resolve()
                inside = target == folder.resolve() or folder.resolve() in target.parents
                return str(target) if inside else str(folder / "outside")  # a name that is not there: 404
        return super().translate_path(path)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # ask again, so that an edited file shows at once
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        if self.verbose:
            super().log_message(format, *args)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://localhost:{self.server_port}/"


def make_server(root: Path, port: int = 0, mounts: Mapping[str, Path] | None = None, verbose: bool = False) -> Server:
    """A server bound to localhost (port 0: any free one), not yet serving.

    Raises OSError when the port is taken.
    """
    return Server(("localhost", port), partial(Handler, root=root, mounts=mounts or {}, verbose=verbose))


def start_server(root: Path, port: int = 0, mounts: Mapping[str, Path] | None = None) -> Server:
    """The same, serving in a thread that ends with the process; `shutdown()` ends it earlier."""
    server = make_server(root, port, mounts)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="dev.py web", description="Build emberlet's page and serve it on localhost.")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000; 0 takes any free one)")
    parser.add_argument("--no-build", action="store_true", help="serve web/dist as it is")
    parser.add_argument("--verbose", action="store_true", help="print every request")
    options = parser.parse_args(arguments)
    if not options.no_build:
        from build_page import BuildError, build

        try:
            build(WEB / "dist")
        except BuildError as error:
            print(f"cannot build the page: {error}", file=sys.stderr)
            return 1
    try:
        server = make_server(WEB / "dist", options.port, verbose=options.verbose)
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
