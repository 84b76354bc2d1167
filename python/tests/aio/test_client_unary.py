"""Unary calls of asyncio clients."""

import asyncio
import contextvars
import gc
import threading
import time
import weakref

import grpc
import pytest
from aio_client_support import SERVICE, Service, in_loop, status_of
from grpc import aio

INITIAL = (("initial", "i"), ("initial-bin", b"\0\xff"))
TRAILING = (("trailing", "t"), ("trailing-bin", b"\1\xfe"))


@in_loop
async def test_response_metadata_and_status(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Echo")(b"x", metadata=[("x-a", "1"), ("x-b-bin", b"\0")], timeout=5)
        assert isinstance(call, aio.UnaryUnaryCall) and isinstance(call, aio.Call)
        assert not call.done() and not call.cancelled()
        assert 0 < call.time_remaining() <= 5
        assert await call == b"x"
        assert await call == b"x"
        assert call.done() and not call.cancelled() and not call.cancel()
        metadata = await call.initial_metadata()
        assert isinstance(metadata, aio.Metadata)
        assert metadata == INITIAL + (("x-a", "1"), ("x-b-bin", b"\0"))
        assert await call.trailing_metadata() == TRAILING
        assert await call.code() is grpc.StatusCode.OK
        assert await call.details() == ""
        assert await call.debug_error_string() == ""
        assert await call.wait_for_connection() is None
        assert "StatusCode.OK" in repr(call)


@in_loop
async def test_generated_arguments_are_accepted(address):
    async with aio.insecure_channel(address) as channel:
        method = channel.unary_unary(
            SERVICE + "Echo",
            request_serializer=str.encode,
            response_deserializer=bytes.decode,
            _registered_method=True,
        )
        assert isinstance(method, aio.UnaryUnaryMultiCallable)
        assert await method("täxt") == "täxt"


@in_loop
async def test_failure_raises_aio_rpc_error(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Fail")(b"y")
        with pytest.raises(aio.AioRpcError) as raised:
            await call
        error = raised.value
        assert isinstance(error, grpc.RpcError)
        assert error.code() is grpc.StatusCode.NOT_FOUND
        assert error.details() == "no such thing: y"
        assert error.trailing_metadata() == (("reason", "asked"),)
        assert isinstance(error.initial_metadata(), aio.Metadata)
        assert error.debug_error_string() == "NOT_FOUND:no such thing: y"
        assert "StatusCode.NOT_FOUND" in str(error) and "no such thing: y" in repr(error)
        assert await call.code() is grpc.StatusCode.NOT_FOUND
        assert await call.details() == "no such thing: y"
        assert await call.trailing_metadata() == (("reason", "asked"),)
        with pytest.raises(aio.AioRpcError):
            await call.wait_for_connection()
        assert call.done() and not call.cancelled() and not call.cancel()


@in_loop
async def test_unknown_method_is_unimplemented(address):
    async with aio.insecure_channel(address) as channel:
        code, _ = await status_of(Service(channel).unary("Nope")(b""))
        assert code is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("method", ["Slow", "Silent"])
@in_loop
async def test_cancel_ends_the_call_at_once(address, method):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary(method)(b"30")
        await asyncio.sleep(0.02)
        assert call.cancel()
        assert call.cancelled() and call.done() and not call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(asyncio.CancelledError):
            await call.wait_for_connection()
        assert await call.code() is grpc.StatusCode.CANCELLED
        assert await call.details() == "Locally cancelled by application!"
        assert len(await call.trailing_metadata()) == 0


@in_loop
async def test_cancel_before_the_start(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Echo")(b"")
        assert call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert call.cancelled()


@in_loop
async def test_cancelling_the_awaiting_task_cancels_the_call(address):
    async with aio.insecure_channel(address) as channel:
        service = Service(channel)
        call = service.unary("Silent")(b"30", metadata=[("x-id", "task")])

        async def wait():
            return await call

        task = asyncio.create_task(wait())
        await service.wait_for_start("task")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert call.cancelled() and call.done()
        assert await call.code() is grpc.StatusCode.CANCELLED
        await service.wait_for_end("task")


@in_loop
async def test_wait_for_cancels_the_call(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Silent")(b"30")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(call, 0.05)
        assert call.cancelled()


@pytest.mark.skipif(not hasattr(asyncio, "timeout"), reason="asyncio.timeout is new in Python 3.11")
@in_loop
async def test_asyncio_timeout_and_task_group(address):
    async with aio.insecure_channel(address) as channel:
        service = Service(channel)
        call = service.unary("Silent")(b"30")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await call
        assert call.cancelled()

        async def wait(call):
            return await call

        other = service.unary("Silent")(b"30")
        with pytest.raises(BaseExceptionGroup) as raised:
            async with asyncio.TaskGroup() as group:
                group.create_task(wait(other))
                group.create_task(wait(service.unary("Fail")(b"")))
        assert other.cancelled()
        assert raised.group_contains(aio.AioRpcError)


@in_loop
async def test_cancelling_a_task_that_awaits_the_code_leaves_the_call(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Slow")(b"0.2")
        task = asyncio.create_task(call.code())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not call.cancelled() and not call.done()
        assert await call == b"0.2"


@in_loop
async def test_facts_are_coroutines(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Echo")(b"")
        names = ("initial_metadata", "trailing_metadata", "code", "details", "debug_error_string")
        results = await asyncio.gather(*(asyncio.create_task(getattr(call, name)()) for name in names))
        assert results == [INITIAL, TRAILING, grpc.StatusCode.OK, "", ""]


@in_loop
async def test_deadline(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Silent")(b"30", timeout=0.1)
        code, _ = await status_of(call)
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert call.time_remaining() == 0
        assert not call.cancelled()
        assert (await status_of(Service(channel).unary("Echo")(b"", timeout=-1)))[0] is code


@in_loop
async def test_deadline_reaches_the_server(address):
    async with aio.insecure_channel(address) as channel:
        remaining = Service(channel).unary("Remaining")
        assert await remaining(b"") == b""
        assert 90 < float(await remaining(b"", timeout=100)) <= 101
        assert remaining(b"").time_remaining() is None


ours_only = pytest.mark.skipif(
    "thalweg" not in aio.Channel.__module__, reason="grpcio knows it only with the response"
)


@ours_only
@in_loop
async def test_initial_metadata_is_known_before_the_response(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Slow")(b"0.4")
        metadata = await call.initial_metadata()
        assert metadata["initial"] == "early"
        assert not call.done()
        assert await call == b"0.4"
        assert await call.initial_metadata() == metadata


@ours_only
@in_loop
async def test_initial_metadata_of_a_task_started_at_once(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Slow")(b"0.4")
        metadata = asyncio.create_task(call.initial_metadata())
        response = asyncio.ensure_future(call)
        assert (await metadata)["initial"] == "early"
        assert not response.done()
        assert await response == b"0.4"


@in_loop
async def test_initial_metadata_of_calls_that_fail(address):
    async with aio.insecure_channel(address) as channel:
        service = Service(channel)
        failed = service.unary("Fail")(b"")
        assert len(await failed.initial_metadata()) == 0
        assert await failed.code() is grpc.StatusCode.NOT_FOUND
        late = service.unary("Silent")(b"30", timeout=0.1)
        assert len(await late.initial_metadata()) == 0
        assert await late.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@in_loop
async def test_done_callbacks(address):
    async with aio.insecure_channel(address) as channel:
        called = []
        call = Service(channel).unary("Echo")(b"")
        call.add_done_callback(called.append)
        call.add_done_callback(called.append)
        assert not called
        await call
        await asyncio.sleep(0.01)
        assert called == [call, call]
        call.add_done_callback(called.append)
        assert called == [call, call, call]
        cancelled = Service(channel).unary("Silent")(b"30")
        cancelled.add_done_callback(called.append)
        cancelled.cancel()
        await asyncio.sleep(0.01)
        assert called[3:] == [cancelled]


@in_loop
async def test_a_call_that_nobody_awaits_goes_on(address):
    async with aio.insecure_channel(address) as channel:
        done = asyncio.get_running_loop().create_future()
        call = Service(channel).unary("Slow")(b"0.1")
        call.add_done_callback(lambda call: done.set_result(call.cancelled()))
        del call
        gc.collect()
        assert await done is False


@pytest.mark.skipif("thalweg" not in aio.Channel.__module__, reason="grpcio's are generators")
@in_loop
async def test_awaitable_in_a_cycle_with_its_callback_is_collected(address):
    class Callback:
        def __call__(self, awaitable):
            pass

    async with aio.insecure_channel(address) as channel:
        callback = Callback()
        callback.awaitable = Service(channel).unary("Echo")(b"").__await__()
        callback.awaitable.add_done_callback(callback)
        reference = weakref.ref(callback)
        del callback
        gc.collect()
        assert reference() is None


@in_loop
async def test_many_calls_in_flight(address):
    async with aio.insecure_channel(address) as channel:
        echo = Service(channel).unary("Echo")
        requests = [str(number).encode() for number in range(500)]
        assert await asyncio.gather(*(echo(request) for request in requests)) == requests


@in_loop
async def test_call_awaited_by_several_tasks(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Slow")(b"0.1")

        async def wait():
            return await call

        assert await asyncio.gather(*(wait() for _ in range(3))) == [b"0.1"] * 3


@in_loop
async def test_context_variables_are_kept(address):
    variable = contextvars.ContextVar("variable", default=0)

    async def one(number):
        variable.set(number)
        async with aio.insecure_channel(address) as channel:
            await Service(channel).unary("Echo")(b"")
        return variable.get()

    assert await asyncio.gather(*(asyncio.create_task(one(number)) for number in range(1, 9))) == list(range(1, 9))


@in_loop
async def test_large_messages(address):
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    async with aio.insecure_channel(address, options=options) as channel:
        request = bytes(range(256)) * 32768
        assert await Service(channel).unary("Echo")(request) == request


@in_loop
async def test_response_larger_than_the_limit(address):
    async with aio.insecure_channel(address, options=[("grpc.max_receive_message_length", 10)]) as channel:
        code, _ = await status_of(Service(channel).unary("Echo")(b"0123456789ab"))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("compression", list(grpc.Compression))
@in_loop
async def test_compression(address, compression):
    request = b"a" * 10_000
    async with aio.insecure_channel(address) as channel:
        assert await Service(channel).unary("Echo")(request, compression=compression) == request
    async with aio.insecure_channel(address, compression=compression) as channel:
        assert await Service(channel).unary("Echo")(request) == request


async def call_with(channel, **arguments):
    return await Service(channel).unary("Echo")(**{"request": b"", **arguments})


@pytest.mark.parametrize(
    "arguments",
    [
        {"request": "text"},
        {"metadata": [("Upper", "case")]},
        {"metadata": [("key", "line\nbreak")]},
        {"metadata": [("key", 3)]},
        {"metadata": 3},
        {"metadata": {"key": "value"}},
        {"timeout": "long"},
        {"compression": 7},
        {"credentials": 3},
    ],
    ids=str,
)
@in_loop
async def test_invalid_arguments_raise(address, arguments):
    async with aio.insecure_channel(address) as channel:
        with pytest.raises(Exception) as raised:
            await call_with(channel, **arguments)
        assert not isinstance(raised.value, (aio.AioRpcError, AssertionError))
        assert await call_with(channel) == b""


@in_loop
async def test_arguments_are_keywords(address):
    async with aio.insecure_channel(address) as channel:
        with pytest.raises(TypeError):
            Service(channel).unary("Echo")(b"", 3)


@in_loop
async def test_call_credentials_need_a_secure_channel(address):
    credentials = grpc.access_token_call_credentials("token")
    async with aio.insecure_channel(address) as channel:
        with pytest.raises(aio.UsageError):
            Service(channel).unary("Echo")(b"", credentials=credentials)


@in_loop
async def test_call_credentials_add_metadata(address):
    def plugin(context, callback):
        assert context.method_name == "Echo" and context.service_url.endswith("/test.Service")
        callback((("x-token", "secret"),), None)

    channel_credentials = grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP)
    call_credentials = grpc.metadata_call_credentials(plugin)
    async with aio.secure_channel(address, channel_credentials) as channel:
        call = Service(channel).unary("Echo")(b"a", metadata=[("x-own", "1")], credentials=call_credentials)
        assert isinstance(call, aio.UnaryUnaryCall)
        assert await call == b"a"
        metadata = await call.initial_metadata()
        assert (metadata["x-own"], metadata["x-token"]) == ("1", "secret")
        assert "x-token" not in await Service(channel).unary("Echo")(b"").initial_metadata()


@in_loop
async def test_credentials_of_a_channel_add_metadata_to_all_calls(address):
    credentials = grpc.composite_channel_credentials(
        grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP),
        grpc.metadata_call_credentials(lambda context, callback: callback((("x-token", "secret"),), None)),
    )
    async with aio.secure_channel(address, credentials) as channel:
        call = Service(channel).unary("Echo")(b"")
        await call
        assert (await call.initial_metadata())["x-token"] == "secret"


@pytest.mark.parametrize("is_stream", [False, True])
@in_loop
async def test_waiting_for_credentials_counts_as_time_of_the_call(address, is_stream):
    released = threading.Event()

    def plugin(context, callback):
        threading.Thread(target=lambda: released.wait(10) and callback((), None)).start()

    credentials = grpc.composite_channel_credentials(
        grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP), grpc.metadata_call_credentials(plugin)
    )
    async with aio.secure_channel(address, credentials) as channel:
        service = Service(channel)
        call = service.count(b"1", timeout=0.3) if is_stream else service.unary("Echo")(b"", timeout=0.3)
        started = time.monotonic()
        code, _ = await status_of(call.read() if is_stream else call)
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert time.monotonic() - started < 5
        released.set()


@in_loop
async def test_the_time_left_after_waiting_for_credentials_reaches_the_server(address):
    def plugin(context, callback):
        threading.Timer(0.5, callback, ((), None)).start()

    credentials = grpc.composite_channel_credentials(
        grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP), grpc.metadata_call_credentials(plugin)
    )
    async with aio.secure_channel(address, credentials) as channel:
        assert 0 < float(await Service(channel).unary("Remaining")(b"", timeout=5)) < 4.6


@in_loop
async def test_credentials_that_fail_make_the_call_fail(address):
    def plugin(context, callback):
        callback(None, ValueError("no token"))

    channel_credentials = grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP)
    async with aio.secure_channel(address, channel_credentials) as channel:
        call = Service(channel).unary("Echo")(b"", credentials=grpc.metadata_call_credentials(plugin))
        code, details = await status_of(call)
        assert code is grpc.StatusCode.UNAVAILABLE
        assert "no token" in details
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
