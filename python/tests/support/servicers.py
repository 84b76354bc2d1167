"""Handlers of `calls.proto` and `helloworld.proto`, for servers of both interfaces."""

import asyncio
import time

import calls_pb2
import calls_pb2_grpc
import grpc
import helloworld_pb2
import helloworld_pb2_grpc

#: Keys of metadata that the handlers send back.
ECHO_INITIAL = "echo-initial"
ECHO_TRAILING = "echo-trailing-bin"


def _picked(context, key):
    """Returns the pairs of the request's metadata that have this key."""
    return tuple((name, value) for name, value in context.invocation_metadata() if name == key)


def _status(code):
    return next(it for it in grpc.StatusCode if it.value[0] == code)


class _Tally:
    """Adds up the requests of a call."""

    def __init__(self):
        self.requests = 0
        self.bytes_read = 0
        self.last = calls_pb2.Request()

    def add(self, request):
        self.requests += 1
        self.bytes_read += len(request.payload)
        self.last = request

    def response(self):
        return calls_pb2.Response(
            text=self.last.text,
            payload=bytes(self.last.response_size),
            requests=self.requests,
            bytes_read=self.bytes_read,
        )


class Calls(calls_pb2_grpc.CallsServicer):
    """Handlers of threads."""

    def _start(self, context):
        initial, trailing = _picked(context, ECHO_INITIAL), _picked(context, ECHO_TRAILING)
        if initial:
            context.send_initial_metadata(initial)
        context.set_trailing_metadata(trailing)

    def _end(self, request, context):
        if request.exception:
            raise ValueError(request.exception)
        if request.code:
            context.abort(_status(request.code), request.details)

    def Unary(self, request, context):
        self._start(context)
        time.sleep(request.sleep_ms / 1000)
        self._end(request, context)
        tally = _Tally()
        tally.add(request)
        return tally.response()

    def ServerStream(self, request, context):
        self._start(context)
        tally = _Tally()
        tally.add(request)
        yield from self._responses(request, tally)
        self._end(request, context)

    def ClientStream(self, request_iterator, context):
        self._start(context)
        tally = _Tally()
        for request in request_iterator:
            tally.add(request)
        time.sleep(tally.last.sleep_ms / 1000)
        self._end(tally.last, context)
        return tally.response()

    def BidiStream(self, request_iterator, context):
        self._start(context)
        tally = _Tally()
        for request in request_iterator:
            tally.add(request)
            yield from self._responses(request, tally)
            self._end(request, context)

    def _responses(self, request, tally):
        for _ in range(request.responses):
            time.sleep(request.sleep_ms / 1000)
            yield tally.response()
        if not request.responses:
            time.sleep(request.sleep_ms / 1000)


class AioCalls(calls_pb2_grpc.CallsServicer):
    """Handlers that are coroutines."""

    async def _start(self, context):
        initial, trailing = _picked(context, ECHO_INITIAL), _picked(context, ECHO_TRAILING)
        if initial:
            await context.send_initial_metadata(initial)
        context.set_trailing_metadata(trailing)

    async def _end(self, request, context):
        if request.exception:
            raise ValueError(request.exception)
        if request.code:
            await context.abort(_status(request.code), request.details)

    async def Unary(self, request, context):
        await self._start(context)
        if request.sleep_ms:
            await asyncio.sleep(request.sleep_ms / 1000)
        await self._end(request, context)
        tally = _Tally()
        tally.add(request)
        return tally.response()

    async def ServerStream(self, request, context):
        await self._start(context)
        tally = _Tally()
        tally.add(request)
        async for response in self._responses(request, tally):
            yield response
        await self._end(request, context)

    async def ClientStream(self, request_iterator, context):
        await self._start(context)
        tally = _Tally()
        async for request in request_iterator:
            tally.add(request)
        await asyncio.sleep(tally.last.sleep_ms / 1000)
        await self._end(tally.last, context)
        return tally.response()

    async def BidiStream(self, request_iterator, context):
        await self._start(context)
        tally = _Tally()
        async for request in request_iterator:
            tally.add(request)
            async for response in self._responses(request, tally):
                yield response
            await self._end(request, context)

    async def _responses(self, request, tally):
        for _ in range(request.responses):
            if request.sleep_ms:
                await asyncio.sleep(request.sleep_ms / 1000)
            yield tally.response()
        if not request.responses:
            await asyncio.sleep(request.sleep_ms / 1000)


class Greeter(helloworld_pb2_grpc.GreeterServicer):
    """Handlers of threads."""

    def SayHello(self, request, context):
        return helloworld_pb2.HelloReply(message=f"Hello, {request.name}!")

    def SayHelloStreamReply(self, request, context):
        for number in range(3):
            yield helloworld_pb2.HelloReply(message=f"{number}: Hello, {request.name}!")

    def SayHelloBidiStream(self, request_iterator, context):
        for request in request_iterator:
            yield helloworld_pb2.HelloReply(message=f"Hello, {request.name}!")


class AioGreeter(helloworld_pb2_grpc.GreeterServicer):
    """Handlers that are coroutines."""

    async def SayHello(self, request, context):
        return helloworld_pb2.HelloReply(message=f"Hello, {request.name}!")

    async def SayHelloStreamReply(self, request, context):
        for number in range(3):
            yield helloworld_pb2.HelloReply(message=f"{number}: Hello, {request.name}!")

    async def SayHelloBidiStream(self, request_iterator, context):
        async for request in request_iterator:
            yield helloworld_pb2.HelloReply(message=f"Hello, {request.name}!")


def add_blocking(server):
    """Adds the handlers of threads to a server of the blocking interface."""
    calls_pb2_grpc.add_CallsServicer_to_server(Calls(), server)
    helloworld_pb2_grpc.add_GreeterServicer_to_server(Greeter(), server)


def add_aio(server):
    """Adds the coroutines to a server of the asyncio interface."""
    calls_pb2_grpc.add_CallsServicer_to_server(AioCalls(), server)
    helloworld_pb2_grpc.add_GreeterServicer_to_server(AioGreeter(), server)
