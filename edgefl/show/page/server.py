"""Serves the page of runs in progress to browsers on this machine, and to nobody else."""

from __future__ import annotations

import gzip
import hmac
import re
import secrets
import socketserver
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from edgefl.core.errors import UserError
from edgefl.show.page.following import Follower, Version
from edgefl.show.page.html import policy

_ADDRESS = "127.0.0.1"
# By which a browser may call this machine. Any other name was made to lead here: DNS rebinding.
_NAMES = {_ADDRESS, "localhost", "[::1]"}
# After that long an end is noticed.
_POLL_S = 0.1
# A browser opens six. Each takes a thread and a file descriptor, of which the run needs some itself.
_MOST_CONNECTIONS = 32
_PORT = re.compile(r":\d+$")
_TOKEN_BYTES = 24
# A client that asked for data so recently is still there, and is given the time to ask once more.
_THERE_S, _PATIENCE_S = 10.0, 5.0
_WAITING = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="color-scheme" content="light dark"><title>edgefl</title></head>
<body><main><h1>No run yet</h1><p>The runs are being planned; this page begins with the first.</p></main>
</body></html>
"""


class Server(ThreadingHTTPServer):
    """An HTTP server on 127.0.0.1, in a thread of its own, below a path that nobody can guess.

    Attributes:
        url: of the page.
    """

    daemon_threads = True

    def __init__(self, follower: Follower, port: int = 0) -> None:
        """Listens.

        Args:
            follower: makes the page.
            port: 0 for any that is free.

        Raises:
            UserError: the port cannot be had.
        """
        self.follower = follower
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.asked_s = -_THERE_S
        self.given = ""
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        try:
            super().__init__((_ADDRESS, port), _Handler)
        except OSError as error:
            what = f"cannot listen on {_ADDRESS}:{port}: {error.strerror}"
            raise UserError(what, where="--watch", hint="choose another --watch-port") from error
        self.url = f"http://{_ADDRESS}:{self.server_port}/{self.token}/"
        threading.Thread(target=self.serve_forever, args=(_POLL_S,), name="edgefl watch", daemon=True).start()

    def server_bind(self) -> None:
        """Binds without asking for the machine's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = _ADDRESS, self.socket.getsockname()[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a thread of its own; where there are too many, hangs up."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # No thread could be started.
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers until the connection ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a browser that leaves is no error, and nothing here is the run's."""

    def finish(self) -> None:
        """Gives the last page to a browser that is there, for some seconds at most."""
        self.follower.over()
        until_s = time.monotonic() + _PATIENCE_S
        last = self.follower.tag
        while time.monotonic() < min(until_s, self.asked_s + _THERE_S) and self.given != last:
            time.sleep(0.05)

    def close(self) -> None:
        """Ends."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 30
    routes: ClassVar = {"": "_page", "data": "_data"}

    def do_GET(self) -> None:
        """Answers, below the token alone."""
        host = self.headers.get("Host", "").lower()
        if _PORT.sub("", host) not in _NAMES:
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        _, token, name = [*self.path.partition("?")[0].split("/", 2), "nothing"][:3]
        given = hmac.compare_digest(token.encode(), self.server.token.encode())
        route = self.routes.get(name) if given else None
        if route is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        getattr(self, route)(self.server.follower.version())

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def _page(self, version: Version | None) -> None:
        if version is None:
            self._send(gzip.compress(_WAITING, mtime=0), "text/html; charset=utf-8")
        else:
            self._send(version.html, "text/html; charset=utf-8")

    def _data(self, version: Version | None) -> None:
        self.server.asked_s = time.monotonic()
        if version is None:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        if f'"{version.tag}"' in self.headers.get("If-None-Match", ""):
            self._begin(HTTPStatus.NOT_MODIFIED, version.tag)
            self.end_headers()
        else:
            self._send(version.data, "application/json", version.tag)
        self.server.given = version.tag

    def _send(self, packed: bytes, kind: str, tag: str = "") -> None:
        """An answer that is compressed, or not for who does not know gzip."""
        takes = "gzip" in self.headers.get("Accept-Encoding", "")
        body = packed if takes else gzip.decompress(packed)
        self._begin(HTTPStatus.OK, tag)
        self.send_header("Content-Type", kind)
        if takes:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _begin(self, status: HTTPStatus, tag: str = "") -> None:
        self.send_response(status)
        if tag:
            # Weak: the same data whether compressed or not.
            self.send_header("ETag", f'W/"{tag}"')
            self.send_header("Vary", "Accept-Encoding")
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", f"{policy(live=True)}; frame-ancestors 'none'")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """An answer without a page; a method that nobody knows is one that is not allowed."""
        del message, explain
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        body = f"{status.value} {status.phrase}\n".encode()
        # What it may have sent along is not read.
        self.close_connection = True
        self.send_response(status)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            with suppress(OSError):
                self.wfile.write(body)

    def version_string(self) -> str:
        """The server's name, without Python's version."""
        return "edgefl"

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""


_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
