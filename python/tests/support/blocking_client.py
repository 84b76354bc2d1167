"""The server of the tests of blocking clients, a proxy, and functions that call the server."""

import contextlib
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import grpc

_FOLDER = Path(__file__).resolve().parent
#: Time in seconds after which a test fails that waits for something.
PATIENCE = 20


@contextlib.contextmanager
def running_server(port=0):
    """The ports, without and with TLS, of a server that runs in a process of its own."""
    command = [sys.executable, str(_FOLDER / "blocking_client_server.py"), str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield tuple(map(int, process.stdout.readline().split()))
    finally:
        process.stdin.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def method(channel, kind, name, **serializers):
    """The callable of a method of the server, by the name of its call type."""
    return getattr(channel, kind)(f"/test.Client/{name}", **serializers)


def call(channel, name, request, **arguments):
    """Calls a method with one request and one response."""
    return method(channel, "unary_unary", name)(request, **arguments)


def until(condition):
    """Waits until `condition()` is true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it does not become true"
        time.sleep(0.01)


def active(channel):
    """The number of handlers of the server that wait."""
    return int(call(channel, "Active", b""))


def failing(*_):
    """A serializer that fails."""
    raise ZeroDivisionError("a bad serializer")


def run(code, *arguments, timeout=60):
    """Runs Python code in a process of its own, with the tested package as `grpc`, and returns the finished process."""
    start = "import thalweg.grpc\nthalweg.grpc.install()\n" if grpc.__name__ == "thalweg.grpc" else ""
    command = [sys.executable, "-c", start + textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, timeout=timeout, capture_output=True, text=True)


class Proxy:
    """A TCP proxy to a port, which counts bytes and can cut connections."""

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.sent = 0
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [client, server]
                for pair, counts in (((client, server), True), ((server, client), False)):
                    threading.Thread(target=self._copy, args=(*pair, counts), daemon=True).start()

    def _copy(self, source, destination, counts):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self.sent += len(data) if counts else 0
                destination.sendall(data)
        self._close(source, destination)

    def cut(self):
        """Closes all connections."""
        sockets, self._sockets = self._sockets, []
        self._close(*sockets)

    def close(self):
        """Closes all connections, and listens no more."""
        self._close(self._listener)
        self.cut()

    @staticmethod
    def _close(*sockets):
        for it in sockets:
            with contextlib.suppress(OSError):
                it.shutdown(socket.SHUT_RDWR)
            it.close()
