"""gRPC's C core as the server: grpc.testing.BenchmarkService, until SIGTERM.

usage: server.py PORT [gzip|deflate]
"""

import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc

from messages import fields, payload, payload_size
from sizes import COMPRESSION


def identity(message: bytes) -> bytes:
    return message


def response_to(request: bytes) -> bytes:
    # The request must have arrived completely before the response is sent.
    payload_size(request, 3)
    return payload(fields(request).get(2, 0), 1)


def unary_call(request, _context):
    return response_to(request)


def streaming_call(requests, _context):
    for request in requests:
        yield response_to(request)


def streaming_from_client(requests, _context):
    response = b""
    for request in requests:
        response = response_to(request)
    return response


def streaming_from_server(request, context):
    response = response_to(request)
    while context.is_active():
        yield response


HANDLERS = {
    "UnaryCall": grpc.unary_unary_rpc_method_handler(unary_call, identity, identity),
    "StreamingCall": grpc.stream_stream_rpc_method_handler(streaming_call, identity, identity),
    "StreamingFromClient": grpc.stream_unary_rpc_method_handler(streaming_from_client, identity, identity),
    "StreamingFromServer": grpc.unary_stream_rpc_method_handler(streaming_from_server, identity, identity),
}


def main() -> None:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    compression = COMPRESSION[sys.argv[2]] if len(sys.argv) > 2 else None
    server = grpc.server(ThreadPoolExecutor(max_workers=16), options=options, compression=compression)
    service = grpc.method_handlers_generic_handler("grpc.testing.BenchmarkService", HANDLERS)
    server.add_generic_rpc_handlers((service,))
    server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
    server.start()
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    server.stop(grace=1).wait()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    main()
