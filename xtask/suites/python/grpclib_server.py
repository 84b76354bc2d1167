"""grpclib, on hyper-h2, as the server: grpc.testing.BenchmarkService, until SIGTERM.

usage: grpclib_server.py PORT
"""

import asyncio
import sys

from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import CodecBase
from grpclib.server import Server
from grpclib.utils import graceful_exit

from messages import fields, payload, payload_size


class Raw(CodecBase):
    """Messages are their bytes."""

    __content_subtype__ = "proto"

    def encode(self, message, _message_type):
        return message

    def decode(self, data, _message_type):
        return data


def response_to(request: bytes) -> bytes:
    # Raises if the client's payload is not whole.
    payload_size(request, 3)
    return payload(fields(request).get(2, 0), 1)


class BenchmarkService:
    async def unary_call(self, stream):
        await stream.send_message(response_to(await stream.recv_message()))

    async def streaming_call(self, stream):
        # The client reads the response headers before it sends its first message.
        await stream.send_initial_metadata()
        async for request in stream:
            await stream.send_message(response_to(request))

    async def streaming_from_client(self, stream):
        response = b""
        async for request in stream:
            response = response_to(request)
        await stream.send_message(response)

    async def streaming_from_server(self, stream):
        response = response_to(await stream.recv_message())
        while True:
            await stream.send_message(response)
            # Sending does not return to the event loop while there is window, so it would not notice that the client
            # has left.
            await asyncio.sleep(0)

    def __mapping__(self):
        handlers = {
            "UnaryCall": (self.unary_call, Cardinality.UNARY_UNARY),
            "StreamingCall": (self.streaming_call, Cardinality.STREAM_STREAM),
            "StreamingFromClient": (self.streaming_from_client, Cardinality.STREAM_UNARY),
            "StreamingFromServer": (self.streaming_from_server, Cardinality.UNARY_STREAM),
        }
        return {
            f"/grpc.testing.BenchmarkService/{name}": Handler(handler, cardinality, bytes, bytes)
            for name, (handler, cardinality) in handlers.items()
        }


async def main() -> None:
    server = Server([BenchmarkService()], codec=Raw())
    with graceful_exit([server]):
        await server.start("127.0.0.1", int(sys.argv[1]))
        await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(main())
