"""The server's half of gRPC's interoperability tests, for both interfaces, by the published description of the cases."""

import asyncio
import time

import grpc
import interop_empty_pb2 as empty_pb2
import interop_messages_pb2 as messages_pb2
import interop_test_pb2_grpc as test_pb2_grpc

INITIAL = "x-grpc-test-echo-initial"
TRAILING = "x-grpc-test-echo-trailing-bin"


def _echoed(context):
    pairs = tuple(context.invocation_metadata())
    return [tuple((name, value) for name, value in pairs if name == key) for key in (INITIAL, TRAILING)]


def _payload(size):
    return messages_pb2.Payload(body=bytes(size))


def _status(code):
    return next(it for it in grpc.StatusCode if it.value[0] == code)


class Blocking(test_pb2_grpc.TestServiceServicer):
    """Handlers of threads."""

    def _start(self, context):
        initial, trailing = _echoed(context)
        if initial:
            context.send_initial_metadata(initial)
        if trailing:
            context.set_trailing_metadata(trailing)

    def _check_status(self, request, context):
        if request.HasField("response_status"):
            context.abort(_status(request.response_status.code), request.response_status.message)

    def EmptyCall(self, request, context):
        return empty_pb2.Empty()

    def UnaryCall(self, request, context):
        self._start(context)
        self._check_status(request, context)
        return messages_pb2.SimpleResponse(payload=_payload(request.response_size))

    def StreamingOutputCall(self, request, context):
        self._start(context)
        self._check_status(request, context)
        yield from self._outputs(request)

    def StreamingInputCall(self, request_iterator, context):
        size = sum(len(request.payload.body) for request in request_iterator)
        return messages_pb2.StreamingInputCallResponse(aggregated_payload_size=size)

    def FullDuplexCall(self, request_iterator, context):
        self._start(context)
        for request in request_iterator:
            self._check_status(request, context)
            yield from self._outputs(request)

    def _outputs(self, request):
        for parameters in request.response_parameters:
            time.sleep(parameters.interval_us / 1e6)
            yield messages_pb2.StreamingOutputCallResponse(payload=_payload(parameters.size))


class Aio(test_pb2_grpc.TestServiceServicer):
    """Handlers that are coroutines."""

    async def _start(self, context):
        initial, trailing = _echoed(context)
        if initial:
            await context.send_initial_metadata(initial)
        if trailing:
            context.set_trailing_metadata(trailing)

    async def _check_status(self, request, context):
        if request.HasField("response_status"):
            await context.abort(_status(request.response_status.code), request.response_status.message)

    async def EmptyCall(self, request, context):
        return empty_pb2.Empty()

    async def UnaryCall(self, request, context):
        await self._start(context)
        await self._check_status(request, context)
        return messages_pb2.SimpleResponse(payload=_payload(request.response_size))

    async def StreamingOutputCall(self, request, context):
        await self._start(context)
        await self._check_status(request, context)
        async for response in self._outputs(request):
            yield response

    async def StreamingInputCall(self, request_iterator, context):
        size = 0
        async for request in request_iterator:
            size += len(request.payload.body)
        return messages_pb2.StreamingInputCallResponse(aggregated_payload_size=size)

    async def FullDuplexCall(self, request_iterator, context):
        await self._start(context)
        async for request in request_iterator:
            await self._check_status(request, context)
            async for response in self._outputs(request):
                yield response

    async def _outputs(self, request):
        for parameters in request.response_parameters:
            await asyncio.sleep(parameters.interval_us / 1e6)
            yield messages_pb2.StreamingOutputCallResponse(payload=_payload(parameters.size))


def add_blocking(server):
    test_pb2_grpc.add_TestServiceServicer_to_server(Blocking(), server)


def add_aio(server):
    test_pb2_grpc.add_TestServiceServicer_to_server(Aio(), server)
