"""A server of grpcio in a process of its own, for clients of both packages.

It prints its port without and with TLS, and ends with its stdin.
"""

import sys
import threading
import time
from concurrent import futures
from pathlib import Path

import grpc

#: Time in seconds after which a handler gives up.
_PATIENCE = 30


class _Handlers(grpc.GenericRpcHandler):
    """The methods of `/test.Client`. Messages are bytes."""

    def __init__(self):
        self._lock = threading.Lock()
        self._active = 0

    def service(self, handler_call_details):
        name = handler_call_details.method.rpartition("/")[2]
        kinds = {
            "echo": grpc.unary_unary_rpc_method_handler,
            "fail": grpc.unary_unary_rpc_method_handler,
            "sleep": grpc.unary_unary_rpc_method_handler,
            "active": grpc.unary_unary_rpc_method_handler,
            "metadata": grpc.unary_unary_rpc_method_handler,
            "count": grpc.unary_stream_rpc_method_handler,
            "forever": grpc.unary_stream_rpc_method_handler,
            "break_off": grpc.unary_stream_rpc_method_handler,
            "sum": grpc.stream_unary_rpc_method_handler,
            "first": grpc.stream_unary_rpc_method_handler,
            "chat": grpc.stream_stream_rpc_method_handler,
        }
        kind = kinds.get(name.lower())
        return None if kind is None else kind(getattr(self, name.lower()))

    def echo(self, request, context):
        """Returns the request, and metadata `x-...` as initial and trailing metadata."""
        received = tuple((key, value) for key, value in context.invocation_metadata() if key.startswith("x-"))
        if received:
            context.send_initial_metadata(received)
            context.set_trailing_metadata(received)
        return request

    def metadata(self, request, context):
        """Returns the values of the metadata with the request as key."""
        return repr([value for key, value in context.invocation_metadata() if key == request.decode()]).encode()

    def fail(self, request, context):
        context.set_trailing_metadata((("x-reason", "asked"), ("x-reason-bin", b"\0\xff")))
        context.abort(grpc.StatusCode[request.decode()], "asked to fail")

    def sleep(self, request, context):
        with self._running(context) as is_over:
            is_over.wait(float(request))
        return request

    def active(self, request, context):
        """Returns the number of running `Sleep` and `Forever`."""
        with self._lock:
            return str(self._active).encode()

    def count(self, request, context):
        for number in range(int(request)):
            yield str(number).encode()

    def break_off(self, request, context):
        for number in range(int(request)):
            yield str(number).encode()
        context.abort(grpc.StatusCode.DATA_LOSS, "broken off")

    def forever(self, request, context):
        with self._running(context) as is_over:
            while not is_over.wait(float(request)):
                yield b"again"

    def sum(self, request_iterator, context):
        requests = [len(request) for request in request_iterator]
        return f"{len(requests)} {sum(requests)}".encode()

    def first(self, request_iterator, context):
        return next(request_iterator)

    def chat(self, request_iterator, context):
        for request in request_iterator:
            yield request

    def _running(self, context):
        return _Running(self, context)

    def add_active(self, count):
        with self._lock:
            self._active += count


class _Running:
    """A handler that waits; the event is set when its call is over."""

    def __init__(self, handlers, context):
        self._handlers = handlers
        self._is_over = threading.Event()
        self._started = time.monotonic()
        context.add_callback(self._is_over.set)

    def __enter__(self):
        self._handlers.add_active(1)
        return self

    def wait(self, seconds):
        return self._is_over.wait(min(seconds, _PATIENCE)) or time.monotonic() - self._started > _PATIENCE

    def __exit__(self, *_):
        self._handlers.add_active(-1)


def main():
    options = (("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0))
    server = grpc.server(futures.ThreadPoolExecutor(150), options=options)
    server.add_generic_rpc_handlers((_Handlers(),))
    port = server.add_insecure_port(f"127.0.0.1:{sys.argv[1] if len(sys.argv) > 1 else 0}")
    certificates = Path(__file__).resolve().parent.parent / "certificates"
    identity = tuple((certificates / name).read_bytes() for name in ("server.key", "server.pem"))
    secure_port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([identity]))
    server.start()
    print(port, secure_port, flush=True)
    sys.stdin.read()
    server.stop(None).wait()


if __name__ == "__main__":
    main()
