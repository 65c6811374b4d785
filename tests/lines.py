"""Lines to servers, that can be cut."""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress
from urllib.parse import urlsplit

DEADLINE = 30.0


class Line(socketserver.ThreadingTCPServer):
    """A line to a server, that can be cut."""

    daemon_threads = True

    def __init__(self, url):
        self.far = urlsplit(url)
        self.refused, self.connections, self.lock = 0, set(), threading.Lock()
        super().__init__(("127.0.0.1", 0), Connection)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def cut(self, n):
        """Closes all connections, and the next n as soon as they are made."""
        with self.lock:
            self.refused = n
            for connection in self.connections:
                with suppress(OSError):  # the other end was faster
                    connection.shutdown(socket.SHUT_RDWR)


class Connection(socketserver.BaseRequestHandler):
    def handle(self):
        with self.server.lock:
            if self.server.refused:
                self.server.refused -= 1
                return
            self.server.connections.add(self.request)
        with socket.create_connection(
            (self.server.far.hostname, self.server.far.port), timeout=DEADLINE
        ) as far:
            back = threading.Thread(target=self._forward, args=(far, self.request), daemon=True)
            back.start()
            self._forward(self.request, far)
            with suppress(OSError):
                far.shutdown(socket.SHUT_RDWR)
            back.join(DEADLINE)
        with self.server.lock:
            self.server.connections.discard(self.request)

    @staticmethod
    def _forward(source, target):
        with suppress(OSError):
            while data := source.recv(2**16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
