"""The client's half of gRPC's interoperability tests, for both interfaces, by the published description of the cases.

A case is a function of an address. It returns nothing, and raises an exception if it fails.
"""

import asyncio
import contextlib
import time

import grpc
import interop_empty_pb2 as empty_pb2
import interop_messages_pb2 as messages_pb2
import interop_test_pb2_grpc as test_pb2_grpc

LARGE_REQUEST, LARGE_RESPONSE = 271_828, 314_159
REQUEST_SIZES = (27_182, 8, 1_828, 45_904)
RESPONSE_SIZES = (31_415, 9, 2_653, 58_979)
INITIAL = ("x-grpc-test-echo-initial", "test_initial_metadata_value")
TRAILING = ("x-grpc-test-echo-trailing-bin", b"\xab\xab\xab")
SPECIAL = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"


def _payload(size):
    return messages_pb2.Payload(body=bytes(size))


def _large():
    return messages_pb2.SimpleRequest(response_size=LARGE_RESPONSE, payload=_payload(LARGE_REQUEST))


def _ping(response_size, size):
    parameters = [messages_pb2.ResponseParameters(size=response_size)]
    return messages_pb2.StreamingOutputCallRequest(response_parameters=parameters, payload=_payload(size))


def _inputs():
    return [messages_pb2.StreamingInputCallRequest(payload=_payload(size)) for size in REQUEST_SIZES]


def _outputs():
    parameters = [messages_pb2.ResponseParameters(size=size) for size in RESPONSE_SIZES]
    return messages_pb2.StreamingOutputCallRequest(response_parameters=parameters)


def _failing(request_type, message):
    status = messages_pb2.EchoStatus(code=grpc.StatusCode.UNKNOWN.value[0], message=message)
    return request_type(response_status=status)


def _check(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def _check_metadata(initial, trailing):
    assert INITIAL in [tuple(pair) for pair in initial], initial
    assert TRAILING in [tuple(pair) for pair in trailing], trailing


@contextlib.contextmanager
def _fails(code, details=None):
    """Expects an `RpcError` with this code."""
    try:
        yield
    except grpc.RpcError as error:
        _check(error.code(), code)
        if details is not None:
            _check(error.details(), details)
    else:
        raise AssertionError(f"expected {code}, but the call succeeded")


class Blocking:
    """The cases on the blocking interface."""

    def __init__(self, address):
        self.address = address

    def run(self, case):
        with grpc.insecure_channel(self.address) as channel:
            getattr(self, case)(test_pb2_grpc.TestServiceStub(channel), channel)

    def empty_unary(self, stub, channel):
        _check(stub.EmptyCall(empty_pb2.Empty()), empty_pb2.Empty())

    def large_unary(self, stub, channel):
        _check(len(stub.UnaryCall(_large()).payload.body), LARGE_RESPONSE)

    def client_streaming(self, stub, channel):
        _check(stub.StreamingInputCall(iter(_inputs())).aggregated_payload_size, sum(REQUEST_SIZES))

    def server_streaming(self, stub, channel):
        sizes = [len(response.payload.body) for response in stub.StreamingOutputCall(_outputs())]
        _check(sizes, list(RESPONSE_SIZES))

    def ping_pong(self, stub, channel):
        sent = []

        def pings():
            for index, (response_size, size) in enumerate(zip(RESPONSE_SIZES, REQUEST_SIZES)):
                # A ping leaves only after the pong of the one before it.
                while len(sent) < index:
                    time.sleep(0.001)
                yield _ping(response_size, size)

        for response in stub.FullDuplexCall(pings()):
            sent.append(len(response.payload.body))
        _check(sent, list(RESPONSE_SIZES))

    def empty_stream(self, stub, channel):
        _check(list(stub.FullDuplexCall(iter(()))), [])

    def timeout_on_sleeping_server(self, stub, channel):
        with _fails(grpc.StatusCode.DEADLINE_EXCEEDED):
            parameters = [messages_pb2.ResponseParameters(size=9, interval_us=300_000)]
            request = messages_pb2.StreamingOutputCallRequest(response_parameters=parameters)
            list(stub.FullDuplexCall(iter([request]), timeout=0.02))

    def cancel_after_begin(self, stub, channel):
        def none():
            time.sleep(0.2)
            yield from ()

        future = stub.StreamingInputCall.future(none())
        future.cancel()
        assert future.cancelled()
        _check(future.code(), grpc.StatusCode.CANCELLED)

    def cancel_after_first_response(self, stub, channel):
        def pings():
            yield _ping(31_415, 27_182)
            time.sleep(0.2)

        responses = stub.FullDuplexCall(pings())
        _check(len(next(responses).payload.body), 31_415)
        responses.cancel()
        with _fails(grpc.StatusCode.CANCELLED):
            next(responses)
        _check(responses.code(), grpc.StatusCode.CANCELLED)

    def status_code_and_message(self, stub, channel, message="test status message"):
        with _fails(grpc.StatusCode.UNKNOWN, message):
            stub.UnaryCall(_failing(messages_pb2.SimpleRequest, message))
        with _fails(grpc.StatusCode.UNKNOWN, message):
            list(stub.FullDuplexCall(iter([_failing(messages_pb2.StreamingOutputCallRequest, message)])))

    def special_status_message(self, stub, channel):
        with _fails(grpc.StatusCode.UNKNOWN, SPECIAL):
            stub.UnaryCall(_failing(messages_pb2.SimpleRequest, SPECIAL))

    def custom_metadata(self, stub, channel):
        metadata = (INITIAL, TRAILING)
        _, call = stub.UnaryCall.with_call(_large(), metadata=metadata)
        _check_metadata(call.initial_metadata(), call.trailing_metadata())
        responses = stub.FullDuplexCall(iter([_ping(314_159, 271_828)]), metadata=metadata)
        _check(len(list(responses)), 1)
        _check_metadata(responses.initial_metadata(), responses.trailing_metadata())

    def unimplemented_method(self, stub, channel):
        with _fails(grpc.StatusCode.UNIMPLEMENTED):
            stub.UnimplementedCall(empty_pb2.Empty())

    def unimplemented_service(self, stub, channel):
        with _fails(grpc.StatusCode.UNIMPLEMENTED):
            test_pb2_grpc.UnimplementedServiceStub(channel).UnimplementedCall(empty_pb2.Empty())


class Aio:
    """The cases on the asyncio interface."""

    def __init__(self, address):
        self.address = address

    def run(self, case):
        asyncio.run(self.run_async(case))

    async def run_async(self, case):
        async with grpc.aio.insecure_channel(self.address) as channel:
            await getattr(self, case)(test_pb2_grpc.TestServiceStub(channel), channel)

    async def empty_unary(self, stub, channel):
        _check(await stub.EmptyCall(empty_pb2.Empty()), empty_pb2.Empty())

    async def large_unary(self, stub, channel):
        _check(len((await stub.UnaryCall(_large())).payload.body), LARGE_RESPONSE)

    async def client_streaming(self, stub, channel):
        response = await stub.StreamingInputCall(iter(_inputs()))
        _check(response.aggregated_payload_size, sum(REQUEST_SIZES))
        call = stub.StreamingInputCall()
        for request in _inputs():
            await call.write(request)
        await call.done_writing()
        _check((await call).aggregated_payload_size, sum(REQUEST_SIZES))

    async def server_streaming(self, stub, channel):
        sizes = [len(response.payload.body) async for response in stub.StreamingOutputCall(_outputs())]
        _check(sizes, list(RESPONSE_SIZES))

    async def ping_pong(self, stub, channel):
        call = stub.FullDuplexCall()
        for response_size, size in zip(RESPONSE_SIZES, REQUEST_SIZES):
            await call.write(_ping(response_size, size))
            _check(len((await call.read()).payload.body), response_size)
        await call.done_writing()
        _check(await call.read(), grpc.aio.EOF)
        _check(await call.code(), grpc.StatusCode.OK)

    async def empty_stream(self, stub, channel):
        call = stub.FullDuplexCall()
        await call.done_writing()
        _check([response async for response in call], [])

    async def timeout_on_sleeping_server(self, stub, channel):
        parameters = [messages_pb2.ResponseParameters(size=9, interval_us=300_000)]
        call = stub.FullDuplexCall(timeout=0.02)
        with _fails(grpc.StatusCode.DEADLINE_EXCEEDED):
            with contextlib.suppress(asyncio.InvalidStateError):
                await call.write(messages_pb2.StreamingOutputCallRequest(response_parameters=parameters))
            await call.read()

    async def cancel_after_begin(self, stub, channel):
        call = stub.StreamingInputCall()
        assert call.cancel() and not call.cancel()
        _check(await call.code(), grpc.StatusCode.CANCELLED)
        assert call.cancelled()

    async def cancel_after_first_response(self, stub, channel):
        call = stub.FullDuplexCall()
        await call.write(_ping(31_415, 27_182))
        _check(len((await call.read()).payload.body), 31_415)
        assert call.cancel()
        try:
            await call.read()
        except asyncio.CancelledError:
            pass
        else:
            raise AssertionError("read of a cancelled call returned")
        _check(await call.code(), grpc.StatusCode.CANCELLED)

    async def status_code_and_message(self, stub, channel, message="test status message"):
        with _fails(grpc.StatusCode.UNKNOWN, message):
            await stub.UnaryCall(_failing(messages_pb2.SimpleRequest, message))
        call = stub.FullDuplexCall(iter([_failing(messages_pb2.StreamingOutputCallRequest, message)]))
        with _fails(grpc.StatusCode.UNKNOWN, message):
            async for _ in call:
                pass

    async def special_status_message(self, stub, channel):
        with _fails(grpc.StatusCode.UNKNOWN, SPECIAL):
            await stub.UnaryCall(_failing(messages_pb2.SimpleRequest, SPECIAL))

    async def custom_metadata(self, stub, channel):
        metadata = (INITIAL, TRAILING)
        call = stub.UnaryCall(_large(), metadata=metadata)
        await call
        _check_metadata(await call.initial_metadata(), await call.trailing_metadata())
        call = stub.FullDuplexCall(iter([_ping(314_159, 271_828)]), metadata=metadata)
        _check(len([response async for response in call]), 1)
        _check_metadata(await call.initial_metadata(), await call.trailing_metadata())

    async def unimplemented_method(self, stub, channel):
        with _fails(grpc.StatusCode.UNIMPLEMENTED):
            await stub.UnimplementedCall(empty_pb2.Empty())

    async def unimplemented_service(self, stub, channel):
        with _fails(grpc.StatusCode.UNIMPLEMENTED):
            await test_pb2_grpc.UnimplementedServiceStub(channel).UnimplementedCall(empty_pb2.Empty())


CLIENTS = {"aio": Aio, "blocking": Blocking}
CASES = (
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
)
