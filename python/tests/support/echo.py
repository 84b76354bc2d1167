"""A server that returns its requests and keeps what it knew of the last one, and calls to it."""

import contextlib
import socket
import threading
from concurrent import futures

import chosen  # noqa: F401: in a process that is not made by `fork`, too
import grpc

METHOD = "/test.Echo/Echo"


class Seen:
    """What the server knew of the last call."""

    def __init__(self):
        self.calls = 0
        self.metadata = ()
        self.auth_context = {}
        self.peer = ""
        self.peer_identity_key = None
        self.peer_identities = None

    def value(self, key):
        """Returns the only value of a key of metadata; None if there is none."""
        values = [value for name, value in self.metadata if name == key]
        assert len(values) <= 1, values
        return values[0] if values else None


@contextlib.contextmanager
def serving(credentials=None, address="127.0.0.1:0", behavior=None, **keywords):
    """Serves until the block ends. Yields the server's address and what it sees.

    Args:
        credentials: Credentials of the port, or None.
        address: Where to listen.
        behavior: Called with the request and the context in place of returning the request.
        **keywords: Further arguments of `grpc.server`.
    """
    seen = Seen()

    def echo(request, context):
        seen.calls += 1
        seen.metadata = context.invocation_metadata()
        seen.auth_context = context.auth_context()
        seen.peer = context.peer()
        seen.peer_identity_key = context.peer_identity_key()
        identities = context.peer_identities()
        seen.peer_identities = None if identities is None else list(identities)
        return request if behavior is None else behavior(request, context)

    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    server = grpc.server(
        futures.ThreadPoolExecutor(4), handlers=[grpc.method_handlers_generic_handler("test.Echo", handlers)], **keywords
    )
    if credentials is None:
        port = server.add_insecure_port(address)
    else:
        port = server.add_secure_port(address, credentials)
    server.start()
    try:
        yield address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}", seen
    finally:
        server.stop(None).wait(10)


def call(channel, request=b"request", timeout=10, **keywords):
    """Calls the server and returns the response."""
    return channel.unary_unary(METHOD)(request, timeout=timeout, **keywords)


def failure(channel, *arguments, **keywords):
    """Returns code and details of a call that fails."""
    try:
        response = call(channel, *arguments, **keywords)
    except grpc.RpcError as error:
        return error.code(), error.details()
    raise AssertionError(f"the call returned {response!r}")


class Relay:
    """Passes on bytes between clients and a server, and counts them."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.to_server = 0
        self.to_client = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for pair in ((client, server, "to_server"), (server, client, "to_client")):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source, target, counter):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                setattr(self, counter, getattr(self, counter) + len(data))
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def worker(address, results):
    """Calls the server with a channel of its own. Runs in a process of multiprocessing."""
    with grpc.insecure_channel(address) as channel:
        results.put((call(channel, b"from a worker"), grpc.__name__))
