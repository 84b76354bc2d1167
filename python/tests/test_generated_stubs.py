"""Code that protoc's plugin for grpcio generates runs unchanged, on both interfaces."""

import calls_pb2
import calls_pb2_grpc
import grpc
import helloworld_pb2
import helloworld_pb2_grpc
import pytest
import servers
import servicers


def test_unary_call(greeter):
    assert greeter.SayHello(helloworld_pb2.HelloRequest(name="Ada")).message == "Hello, Ada!"


def test_unary_call_with_call_returns_the_call_too(calls):
    response, call = calls.Unary.with_call(calls_pb2.Request(text="x", response_size=3))
    assert (response.text, response.payload) == ("x", bytes(3))
    assert call.code() is grpc.StatusCode.OK
    assert call.details() == ""


def test_unary_call_as_future(calls):
    future = calls.Unary.future(calls_pb2.Request(text="x"))
    assert future.result(timeout=10).text == "x"
    assert future.done() and not future.cancelled()
    assert future.exception() is None


def test_stream_of_responses(calls):
    responses = list(calls.ServerStream(calls_pb2.Request(text="x", responses=5)))
    assert [response.text for response in responses] == ["x"] * 5


def test_stream_of_requests(calls):
    requests = (calls_pb2.Request(text=str(number), payload=bytes(number)) for number in range(10))
    response = calls.ClientStream(requests)
    assert (response.requests, response.bytes_read, response.text) == (10, 45, "9")


def test_streams_in_both_directions(calls):
    requests = (calls_pb2.Request(text=str(number), responses=2) for number in range(3))
    texts = [response.text for response in calls.BidiStream(requests)]
    assert texts == ["0", "0", "1", "1", "2", "2"]


@pytest.mark.parametrize("method", ["Unary", "ServerStream", "ClientStream", "BidiStream"])
def test_metadata_of_both_directions(calls, method):
    metadata = ((servicers.ECHO_INITIAL, "a value"), (servicers.ECHO_TRAILING, b"\x00\xff"))
    call = _start(calls, method, calls_pb2.Request(responses=1), metadata=metadata)
    if method in ("ServerStream", "BidiStream"):
        assert len(list(call)) == 1
    assert metadata[0] in [tuple(pair) for pair in call.initial_metadata()]
    assert metadata[1] in [tuple(pair) for pair in call.trailing_metadata()]


@pytest.mark.parametrize("method", ["Unary", "ServerStream", "ClientStream", "BidiStream"])
@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_status_of_a_handler(calls, method, code):
    call = _start(calls, method, calls_pb2.Request(code=code.value[0], details="why"))
    assert call.code() is code
    assert call.details() == "why"


@pytest.mark.parametrize("method", ["Unary", "ServerStream", "ClientStream", "BidiStream"])
def test_exception_of_a_handler_is_unknown(calls, method):
    call = _start(calls, method, calls_pb2.Request(exception="it broke"))
    assert call.code() is grpc.StatusCode.UNKNOWN
    assert "it broke" in call.details()


@pytest.mark.parametrize("method", ["Unary", "ServerStream", "ClientStream", "BidiStream"])
def test_deadline(calls, method):
    call = _start(calls, method, calls_pb2.Request(sleep_ms=1000, responses=1), timeout=0.05)
    assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert call.details().lower().startswith("deadline exceeded")


def _start(calls, method, request, **arguments):
    """Starts a call with one request in the style of its type, and returns its `Call`."""
    if method == "Unary":
        return calls.Unary.future(request, **arguments)
    if method == "ClientStream":
        return calls.ClientStream.future(iter([request]), **arguments)
    if method == "ServerStream":
        return calls.ServerStream(request, **arguments)
    return calls.BidiStream(iter([request]), **arguments)


async def test_aio_unary_call(aio_greeter):
    assert (await aio_greeter.SayHello(helloworld_pb2.HelloRequest(name="Ada"))).message == "Hello, Ada!"


async def test_aio_stream_of_responses(aio_calls):
    call = aio_calls.ServerStream(calls_pb2.Request(text="x", responses=5))
    assert [response.text async for response in call] == ["x"] * 5
    assert await call.code() is grpc.StatusCode.OK


async def test_aio_stream_of_requests_from_an_async_generator(aio_calls):
    async def requests():
        for number in range(10):
            yield calls_pb2.Request(text=str(number), payload=bytes(number))

    response = await aio_calls.ClientStream(requests())
    assert (response.requests, response.bytes_read, response.text) == (10, 45, "9")


async def test_aio_streams_in_both_directions(aio_calls):
    call = aio_calls.BidiStream()
    for number in range(3):
        await call.write(calls_pb2.Request(text=str(number), responses=1))
        assert (await call.read()).text == str(number)
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF


@pytest.mark.parametrize("method", ["Unary", "ServerStream", "ClientStream", "BidiStream"])
async def test_aio_metadata_of_both_directions(aio_calls, method):
    metadata = ((servicers.ECHO_INITIAL, "a value"), (servicers.ECHO_TRAILING, b"\x00\xff"))
    call = _start_aio(aio_calls, method, calls_pb2.Request(responses=1), metadata=metadata)
    if method in ("ServerStream", "BidiStream"):
        assert len([response async for response in call]) == 1
    assert metadata[0] in [tuple(pair) for pair in await call.initial_metadata()]
    assert metadata[1] in [tuple(pair) for pair in await call.trailing_metadata()]


@pytest.mark.parametrize("method", ["Unary", "ServerStream", "ClientStream", "BidiStream"])
@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
async def test_aio_status_of_a_handler(aio_calls, method, code):
    call = _start_aio(aio_calls, method, calls_pb2.Request(code=code.value[0], details="why"))
    assert await call.code() is code
    assert await call.details() == "why"


@pytest.mark.parametrize("method", ["Unary", "ServerStream", "ClientStream", "BidiStream"])
async def test_aio_exception_of_a_handler_is_unknown(aio_calls, method):
    call = _start_aio(aio_calls, method, calls_pb2.Request(exception="it broke"))
    assert await call.code() is grpc.StatusCode.UNKNOWN
    assert "it broke" in await call.details()


@pytest.mark.parametrize("method", ["Unary", "ServerStream", "ClientStream", "BidiStream"])
async def test_aio_deadline(aio_calls, method):
    call = _start_aio(aio_calls, method, calls_pb2.Request(sleep_ms=1000, responses=1), timeout=0.05)
    assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert (await call.details()).lower().startswith("deadline exceeded")


def _start_aio(calls, method, request, **arguments):
    if method in ("Unary", "ServerStream"):
        return getattr(calls, method)(request, **arguments)
    return getattr(calls, method)(iter([request]), **arguments)


def test_unimplemented_method_of_a_generated_servicer():
    """The base class of a servicer ends calls with UNIMPLEMENTED."""
    def add(server):
        calls_pb2_grpc.add_CallsServicer_to_server(calls_pb2_grpc.CallsServicer(), server)

    with servers.blocking(add) as address, grpc.insecure_channel(address) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request())
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert raised.value.details() == "Method not implemented!"


def test_unknown_service_is_unimplemented():
    with servers.blocking(lambda server: None) as address, grpc.insecure_channel(address) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            helloworld_pb2_grpc.GreeterStub(channel).SayHello(helloworld_pb2.HelloRequest())
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_simple_stubs_of_the_generated_class(any_server):
    """The generated class `Greeter` calls without a channel."""
    request = helloworld_pb2.HelloRequest(name="Ada")
    reply = helloworld_pb2_grpc.Greeter.SayHello(request, any_server, insecure=True)
    assert reply.message == "Hello, Ada!"
    replies = helloworld_pb2_grpc.Greeter.SayHelloStreamReply(request, any_server, insecure=True)
    assert len(list(replies)) == 3


def test_protos_are_compiled_at_run_time(tmp_path, monkeypatch):
    """`grpc.protos_and_services` needs grpcio-tools."""
    (tmp_path / "at_run_time.proto").write_text(
        'syntax = "proto3";\npackage at_run_time;\nmessage Ping {}\nservice Pinger { rpc Go(Ping) returns (Ping); }\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    messages, services = grpc.protos_and_services("at_run_time.proto")
    assert messages.Ping() == messages.Ping()
    assert services.PingerStub and services.add_PingerServicer_to_server
