"""A web server on this machine that behaves as told: whole files, ranges, cuts, errors, other addresses."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Site:
    """Files and behavior of a server, and the requests that it received."""

    files: dict[str, bytes]
    ranges: bool = True
    versions: bool = True
    says_length: bool = True
    cuts: list[int] = field(default_factory=list)
    """Bytes after which the connection of the next request ends, of the one after it, …; then none does."""
    statuses: list[int] = field(default_factory=list)
    """Status codes of the next responses, in place of a file."""
    moved: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Path and range of every request."""
    url: str = ""

    def version_of(self, path: str) -> str:
        return f'"{hashlib.md5(self.files[path]).hexdigest()}"'


@contextmanager
def served(site: Site) -> Iterator[Site]:
    """The site at an address of its own, ``site.url``, while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            byte_range = self.headers.get("Range", "")
            site.requests.append((self.path, byte_range))
            if site.statuses:
                self.send_error(site.statuses.pop(0))
                return
            if self.path in site.moved:
                self.send_response(302)
                self.send_header("Location", site.moved[self.path])
                self.end_headers()
                return
            if self.path not in site.files:
                self.send_error(404)
                return
            content = site.files[self.path]
            fits = self.headers.get("If-Range") == site.version_of(self.path)
            begin = (
                int(byte_range.removeprefix("bytes=").rstrip("-"))
                if byte_range and site.ranges and fits
                else 0
            )
            if begin and begin >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
            if site.says_length:
                self.send_header("Content-Length", str(len(content) - begin))
            if site.versions:
                self.send_header("ETag", site.version_of(self.path))
            self.end_headers()
            end = begin + site.cuts.pop(0) if site.cuts else len(content)
            self.wfile.write(content[begin:end])

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
