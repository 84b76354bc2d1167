"""Interceptors of asyncio clients."""

import asyncio

import grpc
import pytest
from aio_client_support import SERVICE, Service, in_loop, status_of
from grpc import aio

ours_only = pytest.mark.skipif("thalweg" not in aio.Channel.__module__, reason="grpcio does not support it")


class Unary(aio.UnaryUnaryClientInterceptor):
    def __init__(self, run):
        self.run = run

    async def intercept_unary_unary(self, continuation, client_call_details, request):
        return await self.run(continuation, client_call_details, request)


class UnaryStream(aio.UnaryStreamClientInterceptor):
    def __init__(self, run):
        self.run = run

    async def intercept_unary_stream(self, continuation, client_call_details, request):
        return await self.run(continuation, client_call_details, request)


class StreamUnary(aio.StreamUnaryClientInterceptor):
    def __init__(self, run):
        self.run = run

    async def intercept_stream_unary(self, continuation, client_call_details, request_iterator):
        return await self.run(continuation, client_call_details, request_iterator)


class StreamStream(aio.StreamStreamClientInterceptor):
    def __init__(self, run):
        self.run = run

    async def intercept_stream_stream(self, continuation, client_call_details, request_iterator):
        return await self.run(continuation, client_call_details, request_iterator)


def channel_with(address, *functions):
    """Returns a channel whose calls of all kinds are intercepted by the functions."""
    kinds = (Unary, UnaryStream, StreamUnary, StreamStream)
    return aio.insecure_channel(address, interceptors=[kind(run) for run in functions for kind in kinds])


async def through(continuation, details, request):
    return await continuation(details, request)


async def all_of(call):
    return [response async for response in call]


@in_loop
async def test_calls_of_all_kinds_are_intercepted(address):
    seen = []

    async def note(continuation, details, request):
        seen.append(details)
        return await continuation(details, request)

    async with channel_with(address, note) as channel:
        service = Service(channel)
        echo = service.unary("Echo")(b"x", metadata=[("x-a", "1")], timeout=5, wait_for_ready=True)
        assert isinstance(echo, aio.InterceptedUnaryUnaryCall) and isinstance(echo, aio.UnaryUnaryCall)
        assert await echo == b"x"
        count = service.count(b"2")
        assert isinstance(count, aio.UnaryStreamCall)
        assert await all_of(count) == [b"0", b"1"]
        join = service.join(iter([b"a", b"b"]))
        assert isinstance(join, aio.StreamUnaryCall)
        assert await join == b"a,b"
        chat = service.chat(iter([b"a", b"b"]))
        assert isinstance(chat, aio.StreamStreamCall)
        assert await all_of(chat) == [b"a", b"b"]
        for call in (echo, count, join, chat):
            assert await call.code() is grpc.StatusCode.OK
            assert await call.details() == ""
            assert await call.debug_error_string() == ""
            assert (await call.initial_metadata())["initial"] == "i"
            assert (await call.trailing_metadata())["trailing"] == "t"
            assert await call.wait_for_connection() is None
            assert call.done() and not call.cancelled() and not call.cancel()
    methods = [details.method for details in seen]
    assert methods == [(SERVICE + name).encode() for name in ("Echo", "Count", "Join", "Chat")]
    assert isinstance(seen[0], aio.ClientCallDetails)
    assert seen[0].timeout == 5 and seen[0].wait_for_ready is True and seen[0].credentials is None
    assert isinstance(seen[0].metadata, aio.Metadata) and seen[0].metadata == (("x-a", "1"),)
    assert isinstance(seen[1].metadata, aio.Metadata) and len(seen[1].metadata) == 0


@in_loop
async def test_order_of_a_chain(address):
    order = []

    def named(name):
        async def run(continuation, details, request):
            order.append(name)
            call = await continuation(details, request)
            order.append(-name)
            return call

        return run

    async with channel_with(address, named(1), named(2), named(3)) as channel:
        await Service(channel).unary("Echo")(b"")
        assert order == [1, 2, 3, -3, -2, -1]
        order.clear()
        await all_of(Service(channel).chat(iter([b""])))
        assert order == [1, 2, 3, -3, -2, -1]


@in_loop
async def test_details_are_changed(address):
    async def change(continuation, details, request):
        metadata = details.metadata + (("x-added", "yes"),)
        return await continuation(details._replace(metadata=metadata, method=(SERVICE + "Echo").encode()), request)

    async with aio.insecure_channel(address, interceptors=[Unary(change)]) as channel:
        call = Service(channel).unary("Nope")(b"r")
        assert await call == b"r"
        assert (await call.initial_metadata())["x-added"] == "yes"


@in_loop
async def test_timeout_set_by_an_interceptor(address):
    async def limit(continuation, details, request):
        return await continuation(details._replace(timeout=0.1), request)

    async with channel_with(address, limit) as channel:
        code, _ = await status_of(Service(channel).unary("Silent")(b"30"))
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED


@in_loop
async def test_requests_and_responses_are_changed(address):
    async def double(continuation, details, request):
        return await (await continuation(details, request * 2)) + b"!"

    async def mark(continuation, details, request):
        call = await continuation(details, request)

        async def responses():
            async for response in call:
                yield response + b"!"

        return responses()

    interceptors = [Unary(double), UnaryStream(mark), StreamStream(mark)]
    async with aio.insecure_channel(address, interceptors=interceptors) as channel:
        call = Service(channel).unary("Echo")(b"ab")
        assert await call == b"abab!"
        assert await call.code() is grpc.StatusCode.OK
        assert await all_of(Service(channel).count(b"2")) == [b"0!", b"1!"]
        count = Service(channel).count(b"1")
        assert [await count.read() for _ in range(3)] == [b"0!", aio.EOF, aio.EOF]
        assert await count.code() is grpc.StatusCode.OK
        chat = Service(channel).chat()
        await chat.write(b"1")
        assert await chat.read() == b"1!"
        await chat.done_writing()
        assert await chat.read() is aio.EOF


@in_loop
async def test_a_response_without_a_call(address):
    async def cached(continuation, details, request):
        return b"cached"

    async with aio.insecure_channel(address, interceptors=[Unary(through), Unary(cached)]) as channel:
        call, called = Service(channel).unary("Nope")(b""), []
        call.add_done_callback(called.append)
        assert await call == b"cached"
        assert await call == b"cached"
        assert await call.code() is grpc.StatusCode.OK
        assert await call.details() == ""
        assert await call.initial_metadata() is None and await call.trailing_metadata() is None
        await asyncio.sleep(0.01)
        assert called == [call]


@ours_only
@in_loop
async def test_responses_without_a_call(address):
    async def generate(continuation, details, request):
        async def responses():
            yield b"1"

        return responses()

    async def cached(continuation, details, request):
        return b"cached"

    interceptors = [UnaryStream(generate), StreamStream(generate), StreamUnary(cached)]
    async with aio.insecure_channel(address, interceptors=interceptors) as channel:
        for call in (Service(channel).count(b"5"), Service(channel).chat()):
            assert await all_of(call) == [b"1"]
            assert await call.code() is grpc.StatusCode.OK
        assert await Service(channel).join(iter([b"a"])) == b"cached"


@in_loop
async def test_retries_by_an_interceptor(address):
    async def retry(continuation, details, request):
        for method in ("Fail", "Fail", "Echo"):
            call = await continuation(details._replace(method=(SERVICE + method).encode()), request)
            if await call.code() is grpc.StatusCode.OK:
                break
        return call

    async with aio.insecure_channel(address, interceptors=[Unary(retry)]) as channel:
        assert await Service(channel).unary("Fail")(b"x") == b"x"


@in_loop
async def test_status_of_the_server_passes(address):
    async with channel_with(address, through) as channel:
        failure = (grpc.StatusCode.INVALID_ARGUMENT, "a bad request")
        service = Service(channel)
        assert await status_of(service.unary("Fail")(b"y")) == (grpc.StatusCode.NOT_FOUND, "no such thing: y")
        assert await status_of(all_of(service.count(b"1!"))) == (grpc.StatusCode.DATA_LOSS, "counted wrongly")
        assert await status_of(service.join(iter([b"fail"]))) == failure
        chat = service.chat()
        await chat.write(b"fail")
        assert await status_of(chat.read()) == failure
        assert await chat.code() is failure[0]
        with pytest.raises(asyncio.InvalidStateError):
            await chat.write(b"more")
        await chat.done_writing()


@in_loop
async def test_errors_raised_by_interceptors_are_the_status(address):
    async def fail(continuation, details, request):
        initial, trailing = aio.Metadata(("a", "1")), aio.Metadata(("b", "2"))
        raise aio.AioRpcError(grpc.StatusCode.ABORTED, initial, trailing, details="own", debug_error_string="debug")

    async with channel_with(address, fail) as channel:
        call = Service(channel).unary("Echo")(b"")
        assert await status_of(call) == (grpc.StatusCode.ABORTED, "own")
        assert await call.code() is grpc.StatusCode.ABORTED
        assert await call.details() == "own"
        assert await call.debug_error_string() == "debug"
        assert await call.initial_metadata() == (("a", "1"),)
        assert await call.trailing_metadata() == (("b", "2"),)
        assert call.done() and not call.cancelled()


@in_loop
async def test_other_exceptions_reach_the_caller(address):
    async def fail(continuation, details, request):
        raise ValueError("from an interceptor")

    async with channel_with(address, fail) as channel:
        service = Service(channel)
        call, called = service.unary("Echo")(b""), []
        call.add_done_callback(called.append)
        join, chat = service.join(), service.chat()
        for awaitable in (
            call,
            call.code(),
            call.details(),
            call.initial_metadata(),
            call.trailing_metadata(),
            call.wait_for_connection(),
            service.count(b"").read(),
            all_of(service.count(b"")),
            join.write(b""),
            join,
            chat.write(b""),
            chat.read(),
        ):
            with pytest.raises(ValueError, match="from an interceptor"):
                await awaitable
        assert call.done() and not call.cancelled()
        assert called == [call]


@in_loop
async def test_requests_are_written_through_interceptors(address):
    async with channel_with(address, through) as channel:
        join = Service(channel).join()
        await join.write(b"1")
        await join.write(b"2")
        await join.done_writing()
        assert await join == b"1,2"
        with pytest.raises(asyncio.InvalidStateError):
            await join.write(b"3")
        await join.done_writing()
        chat = Service(channel).chat()
        for number in range(20):
            await chat.write(str(number).encode())
            assert await chat.read() == str(number).encode()
        await chat.done_writing()
        with pytest.raises(asyncio.InvalidStateError):
            await chat.write(b"3")
        assert await chat.read() is aio.EOF


@in_loop
async def test_styles_are_not_mixed(address):
    async with channel_with(address, through) as channel:
        service = Service(channel)
        for call in (service.join(iter([b"a"])), service.chat(iter([b"a"]))):
            with pytest.raises(aio.UsageError):
                await call.write(b"b")
            with pytest.raises(aio.UsageError):
                await call.done_writing()


@in_loop
async def test_interceptors_that_change_the_requests(address):
    async def upper(continuation, details, requests):
        async def changed():
            async for request in requests:
                yield request.upper()

        return await continuation(details, changed())

    interceptors = [StreamUnary(upper), StreamStream(upper)]
    async with aio.insecure_channel(address, interceptors=interceptors) as channel:
        call = Service(channel).join()
        await call.write(b"a")
        await call.write(b"b")
        await call.done_writing()
        assert await call == b"A,B"


@in_loop
async def test_cancel_while_an_interceptor_runs(address):
    cancelled = []

    async def wait(continuation, details, request):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(details)
            raise

    async with channel_with(address, wait) as channel:
        call, called = Service(channel).unary("Echo")(b""), []
        call.add_done_callback(called.append)
        await asyncio.sleep(0.01)
        assert call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert cancelled and call.cancelled() and call.done() and called == [call]
        assert await call.code() is grpc.StatusCode.CANCELLED
        assert await call.details() == "Locally cancelled by application!"
        assert await call.initial_metadata() is None
        assert not call.cancel()


@in_loop
async def test_cancel_after_the_interceptors(address):
    async with channel_with(address, through) as channel:
        service = Service(channel)
        for call in (service.unary("Silent")(b"30", metadata=[("x-id", "intercepted")]), service.count(b"1.")):
            await asyncio.sleep(0.02)
            assert call.cancel()
            assert call.cancelled() and call.done()
            assert await call.code() is grpc.StatusCode.CANCELLED


@pytest.mark.parametrize("awaits", [False, True])
@in_loop
async def test_cancelling_the_awaiting_task(address, awaits):
    async def run(continuation, details, request):
        call = await continuation(details, request)
        if awaits:
            await call
        return call

    async with channel_with(address, run) as channel:
        call = Service(channel).unary("Silent")(b"30")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(call, 0.05)
        assert call.cancelled() and call.done()
        assert await call.code() is grpc.StatusCode.CANCELLED


@in_loop
async def test_closing_the_channel_cancels_interceptors(address):
    async def wait(continuation, details, request):
        await asyncio.sleep(30)

    channel = channel_with(address, wait)
    call = Service(channel).unary("Echo")(b"")
    await asyncio.sleep(0.01)
    await channel.close()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert call.cancelled()


class Both(aio.UnaryUnaryClientInterceptor, aio.UnaryStreamClientInterceptor):
    def __init__(self):
        self.seen = []

    async def intercept_unary_unary(self, continuation, client_call_details, request):
        self.seen.append("unary")
        return await continuation(client_call_details, request)

    async def intercept_unary_stream(self, continuation, client_call_details, request):
        self.seen.append("stream")
        return await continuation(client_call_details, request)


@ours_only
@in_loop
async def test_an_interceptor_of_several_kinds(address):
    both = Both()
    async with aio.insecure_channel(address, interceptors=[both]) as channel:
        await Service(channel).unary("Echo")(b"")
        await all_of(Service(channel).count(b"1"))
        assert both.seen == ["unary", "stream"]


@pytest.mark.parametrize("interceptors", [[3], [Unary], "x"])
@in_loop
async def test_invalid_interceptors(address, interceptors):
    with pytest.raises(ValueError):
        aio.insecure_channel(address, interceptors=interceptors)
