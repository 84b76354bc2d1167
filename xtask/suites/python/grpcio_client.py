"""gRPC's C core as the client: the four call types of grpc.testing.TestService at every size.

usage: client.py HOST:PORT [gzip|deflate]
"""

import sys

import grpc

from messages import bytes_field, fields, number_field, payload, payload_size
from sizes import COMPRESSION, SIZES

TIMEOUT_S = 30
MESSAGES_PER_STREAM = 5


def identity(message: bytes) -> bytes:
    return message


def simple_request(size: int) -> bytes:
    return number_field(2, size) + payload(size, 3)


def output_request(sizes: list[int]) -> bytes:
    # response_parameters (2) is repeated, and an empty one asks for an empty response.
    parameters = b"".join(bytes_field(2, number_field(1, size)) for size in sizes)
    return parameters + payload(sizes[0], 3)


class TestService:
    """The called methods, as functions from bytes to bytes."""

    def __init__(self, channel: grpc.Channel):
        path = "/grpc.testing.TestService/"
        self.unary = channel.unary_unary(path + "UnaryCall", identity, identity)
        self.client_stream = channel.stream_unary(path + "StreamingInputCall", identity, identity)
        self.server_stream = channel.unary_stream(path + "StreamingOutputCall", identity, identity)
        self.bidi_stream = channel.stream_stream(path + "FullDuplexCall", identity, identity)


def check(what: str, found, expected) -> None:
    if found != expected:
        raise AssertionError(f"{what}: {found}, expected {expected}")


def unary(service: TestService, size: int) -> None:
    response = service.unary(simple_request(size), timeout=TIMEOUT_S)
    check("payload of the response", payload_size(response, 1), size)


def client_stream(service: TestService, size: int) -> None:
    requests = (payload(size, 1) for _ in range(MESSAGES_PER_STREAM))
    response = service.client_stream(requests, timeout=TIMEOUT_S)
    check("bytes that the server counted", fields(response).get(1, 0), MESSAGES_PER_STREAM * size)


def server_stream(service: TestService, size: int) -> None:
    responses = service.server_stream(output_request([size] * MESSAGES_PER_STREAM), timeout=TIMEOUT_S)
    check("payloads", [payload_size(response, 1) for response in responses], [size] * MESSAGES_PER_STREAM)


def bidi_stream(service: TestService, size: int) -> None:
    requests = (output_request([size]) for _ in range(MESSAGES_PER_STREAM))
    responses = service.bidi_stream(requests, timeout=TIMEOUT_S)
    check("payloads", [payload_size(response, 1) for response in responses], [size] * MESSAGES_PER_STREAM)


def main() -> int:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    failed = 0
    compression = COMPRESSION[sys.argv[2]] if len(sys.argv) > 2 else None
    with grpc.insecure_channel(sys.argv[1], options, compression) as channel:
        service = TestService(channel)
        for call in (unary, client_stream, server_stream, bidi_stream):
            for size in SIZES:
                try:
                    call(service, size)
                    print(f"ok    {call.__name__} {size}", flush=True)
                except (AssertionError, ValueError, grpc.RpcError) as error:
                    failed += 1
                    print(f"FAIL  {call.__name__} {size}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
