"""Serves the greeter of `python/tests/protos` on a stack: `server.py aio|threads PORT`. It ends with SIGTERM."""

import asyncio
import concurrent.futures
import sys

import stack

import helloworld_pb2

REPLY = helloworld_pb2.HelloReply


def threads(port):
    import grpc
    import helloworld_pb2_grpc

    class Greeter(helloworld_pb2_grpc.GreeterServicer):
        def SayHello(self, request, context):
            return REPLY(message=request.name)

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=16), options=stack.LARGE)
    helloworld_pb2_grpc.add_GreeterServicer_to_server(Greeter(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


async def aio(port):
    import grpc
    import helloworld_pb2_grpc

    class Greeter(helloworld_pb2_grpc.GreeterServicer):
        async def SayHello(self, request, context):
            return REPLY(message=request.name)

        async def SayHelloStreamReply(self, request, context):
            # The name says how many replies of 100 bytes there are.
            reply = REPLY(message="x" * 98)
            for _ in range(int(request.name)):
                yield reply

        async def SayHelloBidiStream(self, request_iterator, context):
            count = 0
            async for _ in request_iterator:
                count += 1
            yield REPLY(message=str(count))

    server = grpc.aio.server(options=stack.LARGE)
    helloworld_pb2_grpc.add_GreeterServicer_to_server(Greeter(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


async def grpclib(port):
    from grpclib.const import Cardinality, Handler
    from grpclib.server import Server

    class Greeter:
        async def say_hello(self, stream):
            request = await stream.recv_message()
            await stream.send_message(REPLY(message=request.name))

        async def say_hellos(self, stream):
            request = await stream.recv_message()
            for _ in range(int(request.name)):
                await stream.send_message(REPLY(message="x" * 98))

        async def count(self, stream):
            count = 0
            async for _ in stream:
                count += 1
            await stream.send_message(REPLY(message=str(count)))

        def __mapping__(self):
            request = helloworld_pb2.HelloRequest
            path = "/helloworld.Greeter/"
            return {
                path + "SayHello": Handler(self.say_hello, Cardinality.UNARY_UNARY, request, REPLY),
                path + "SayHelloStreamReply": Handler(self.say_hellos, Cardinality.UNARY_STREAM, request, REPLY),
                path + "SayHelloBidiStream": Handler(self.count, Cardinality.STREAM_STREAM, request, REPLY),
            }

    server = Server([Greeter()])
    await server.start("127.0.0.1", port)
    await server.wait_closed()


if __name__ == "__main__":
    interface, port = sys.argv[1], int(sys.argv[2])
    if stack.STACK == "grpclib":
        asyncio.run(grpclib(port))
    elif interface == "aio":
        asyncio.run(aio(port))
    else:
        threads(port)
