"""Calls of asyncio clients with streams."""

import asyncio
import gc

import grpc
import pytest
from aio_client_support import Service, in_loop, status_of
from grpc import aio


async def requests_of(*requests):
    for request in requests:
        yield request


async def all_of(call):
    return [response async for response in call]


# Responses.


@in_loop
async def test_responses_are_iterated(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).count(b"3")
        assert isinstance(call, aio.UnaryStreamCall) and isinstance(call, aio.Call)
        assert await all_of(call) == [b"0", b"1", b"2"]
        assert await call.code() is grpc.StatusCode.OK
        assert await call.initial_metadata() == (("initial", "i"),)
        assert await call.trailing_metadata() == (("trailing", "t"),)
        assert await call.read() is aio.EOF
        assert call.done() and not call.cancelled() and not call.cancel()


@in_loop
async def test_responses_are_read(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).count(b"2")
        assert [await call.read() for _ in range(4)] == [b"0", b"1", aio.EOF, aio.EOF]
        assert call.done()
        assert not aio.EOF


@in_loop
async def test_many_responses(address):
    async with aio.insecure_channel(address) as channel:
        responses = await all_of(Service(channel).count(b"3000"))
        assert responses == [str(number).encode() for number in range(3000)]


@in_loop
async def test_done_only_after_all_responses_were_read(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).count(b"20")
        responses = []
        while not call.done():
            response = await call.read()
            if response is not aio.EOF:
                responses.append(response)
        assert len(responses) == 20


@pytest.mark.parametrize("request_", [b"3", b"3!"])
@in_loop
async def test_a_call_goes_on_until_the_last_response_is_read(address, request_):
    async with aio.insecure_channel(address) as channel:
        call, called = Service(channel).count(request_), []
        call.add_done_callback(called.append)
        code = asyncio.ensure_future(call.code())
        await asyncio.sleep(0.2)
        for number in range(3):
            assert not call.done() and not code.done() and not called
            assert await call.read() == str(number).encode()
            await asyncio.sleep(0.02)
        assert call.done() and called == [call] and not call.cancel()
        assert await code is (grpc.StatusCode.OK if request_ == b"3" else grpc.StatusCode.DATA_LOSS)


@pytest.mark.parametrize("request_", [b"3", b"3!"])
@in_loop
async def test_cancelling_drops_unread_responses(address, request_):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).count(request_)
        assert await call.read() == b"0"
        await asyncio.sleep(0.2)
        assert call.cancel() and call.done() and call.cancelled() and not call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call.read()
        assert await call.code() is grpc.StatusCode.CANCELLED


@pytest.mark.parametrize("request_", [b"3", b"3!", b"30000"])
@in_loop
async def test_the_deadline_drops_unread_responses(address, request_):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).count(request_, timeout=0.5)
        assert await call.read() == b"0"
        await asyncio.sleep(0.8)
        assert call.done() and not call.cancelled()
        code, _ = await status_of(call.read())
        assert code is await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@in_loop
async def test_closing_the_channel_drops_unread_responses(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).count(b"3")
        assert await call.read() == b"0"
        await asyncio.sleep(0.2)
    assert call.done() and await call.code() is grpc.StatusCode.CANCELLED


@in_loop
async def test_iterating_and_reading_are_not_mixed(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).count(b"1.")
        assert await call.__aiter__().__anext__() == b"0"
        with pytest.raises(aio.UsageError):
            await call.read()
        other = Service(channel).count(b"1.")
        assert await other.read() == b"0"
        with pytest.raises(aio.UsageError):
            other.__aiter__()


@in_loop
async def test_failure_after_responses(address):
    async with aio.insecure_channel(address) as channel:
        call, received = Service(channel).count(b"2!"), []
        with pytest.raises(aio.AioRpcError) as raised:
            async for response in call:
                received.append(response)
        assert received == [b"0", b"1"]
        assert raised.value.code() is grpc.StatusCode.DATA_LOSS
        assert raised.value.initial_metadata() == (("initial", "i"),)
        assert raised.value.trailing_metadata() == (("trailing", "t"),)
        assert await status_of(call.read()) == (grpc.StatusCode.DATA_LOSS, "counted wrongly")


@in_loop
async def test_initial_metadata_comes_before_the_end(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).count(b"1.")
        assert await call.initial_metadata() == (("initial", "i"),)
        await call.wait_for_connection()
        assert not call.done()
        call.cancel()


@in_loop
async def test_cancel_while_reading(address):
    async with aio.insecure_channel(address) as channel:
        service = Service(channel)
        call = service.count(b"1.", metadata=[("x-id", "reading")])
        assert await call.read() == b"0"
        assert call.cancel() and call.cancelled() and call.done()
        with pytest.raises(asyncio.CancelledError):
            await call.read()
        assert await call.code() is grpc.StatusCode.CANCELLED
        await service.wait_for_end("reading")


@in_loop
async def test_cancelling_the_reading_task_cancels_the_call(address):
    async with aio.insecure_channel(address) as channel:
        for wait in (all_of, lambda call: read_twice(call)):
            call = Service(channel).count(b"1.")
            task = asyncio.create_task(wait(call))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert call.cancelled()
            assert await call.code() is grpc.StatusCode.CANCELLED


async def read_twice(call):
    return await call.read(), await call.read()


@pytest.mark.skipif("thalweg" not in aio.Channel.__module__, reason="grpcio lets the call go on")
@in_loop
async def test_dropping_a_call_with_responses_cancels_it(address):
    async with aio.insecure_channel(address) as channel:
        service = Service(channel)

        async def counting(metadata):
            assert await service.count(b"1.", metadata=metadata).read() == b"0"

        async def chatting(metadata):
            call = service.chat(metadata=metadata)
            await call.write(b"0")
            assert await call.read() == b"0"

        for start_and_drop in (counting, chatting):
            name = start_and_drop.__name__
            await start_and_drop([("x-id", name)])
            gc.collect()
            await service.wait_for_end(name)


@in_loop
async def test_the_iterator_keeps_its_call(address):
    async with aio.insecure_channel(address) as channel:
        responses = Service(channel).count(b"3").__aiter__()
        gc.collect()
        assert await all_of(responses) == [b"0", b"1", b"2"]


@in_loop
async def test_deadline_of_a_stream(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).count(b"1.", timeout=0.2)
        assert await call.read() == b"0"
        code, _ = await status_of(call.read())
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED


@in_loop
async def test_callbacks_of_streams(address):
    async with aio.insecure_channel(address) as channel:
        service, called = Service(channel), []
        calls = [service.count(b"1"), service.join(requests_of(b"a")), service.chat(requests_of(b"a"))]
        for call in calls:
            call.add_done_callback(called.append)
        await all_of(calls[0])
        await calls[1]
        await all_of(calls[2])
        await asyncio.sleep(0.02)
        assert sorted(called, key=id) == sorted(calls, key=id)
        calls[0].add_done_callback(called.append)
        assert called[3:] == calls[:1]


@in_loop
async def test_a_stream_that_is_always_ready_leaves_the_loop_to_others(address):
    async with aio.insecure_channel(address) as channel:
        turns = 0

        async def count_turns():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(count_turns())
        call = Service(channel).chat()
        for number in range(2000):
            await call.write(b"x")
        await call.done_writing()
        before = turns
        await asyncio.sleep(0.2)
        assert before > 3
        before = turns
        assert len(await all_of(call)) == 2000
        assert turns - before > 3
        task.cancel()


# Requests.


@pytest.mark.parametrize("make", [lambda: [b"a", b"b"], lambda: iter([b"a", b"b"]), lambda: requests_of(b"a", b"b")])
@in_loop
async def test_request_iterables(address, make):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).join(make())
        assert isinstance(call, aio.StreamUnaryCall)
        assert await call == b"a,b"
        assert await call == b"a,b"
        assert await call.code() is grpc.StatusCode.OK
        assert await call.initial_metadata() == (("initial", "i"),)
        assert await call.trailing_metadata() == (("trailing", "t"),)
        chat = Service(channel).chat(make())
        assert isinstance(chat, aio.StreamStreamCall)
        assert await all_of(chat) == [b"a", b"b"]


@in_loop
async def test_requests_are_written(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).join()
        await call.write(b"1")
        await call.write(b"2")
        await call.done_writing()
        await call.done_writing()
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(b"3")
        assert await call == b"1,2"
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(b"3")
        await call.done_writing()


@in_loop
async def test_many_requests(address):
    async with aio.insecure_channel(address) as channel:
        requests = [str(number).encode() for number in range(3000)]
        assert await Service(channel).join(requests_of(*requests)) == b",".join(requests)


@in_loop
async def test_large_requests_wait_for_room(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).chat()
        for _ in range(4):
            await call.write(b"x" * 1_000_000)
            assert len(await call.read()) == 1_000_000
        await call.done_writing()
        assert await call.read() is aio.EOF


@in_loop
async def test_iterators_and_writing_are_not_mixed(address):
    async with aio.insecure_channel(address) as channel:
        for call in (Service(channel).join(iter([b"a"])), Service(channel).chat(iter([b"a"]))):
            with pytest.raises(aio.UsageError):
                await call.write(b"b")
            with pytest.raises(aio.UsageError):
                await call.done_writing()


@in_loop
async def test_ping_pong(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).chat()
        for number in range(50):
            await call.write(str(number).encode())
            assert await call.read() == str(number).encode()
        await call.done_writing()
        assert await call.read() is aio.EOF
        assert await call.code() is grpc.StatusCode.OK


def failing():
    yield b"a"
    raise ValueError("no more")


@pytest.mark.parametrize("requests", [failing, lambda: 5, lambda: iter(["text"])])
@in_loop
async def test_request_iterators_that_fail_cancel_the_call(address, requests):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).join(requests())
        with pytest.raises(asyncio.CancelledError):
            await call
        assert call.cancelled()
        assert await call.code() is grpc.StatusCode.CANCELLED
        assert await call.details() == "Locally cancelled by application!"
        chat = Service(channel).chat(requests())
        with pytest.raises(asyncio.CancelledError):
            await all_of(chat)


@in_loop
async def test_server_fails_while_requests_are_sent(address):
    async with aio.insecure_channel(address) as channel:
        failure = (grpc.StatusCode.INVALID_ARGUMENT, "a bad request")
        assert await status_of(Service(channel).join(iter([b"a", b"fail", b"b"]))) == failure
        call = Service(channel).join()
        await call.write(b"fail")
        assert await call.code() is failure[0]
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(b"b")
        await call.done_writing()
        assert await status_of(call) == failure
        chat = Service(channel).chat()
        await chat.write(b"fail")
        assert await status_of(chat.read()) == failure


@in_loop
async def test_a_request_that_cannot_be_sent_leaves_the_call(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).join()
        with pytest.raises(TypeError):
            await call.write("text")
        assert not call.done()
        await call.write(b"a")
        await call.done_writing()
        assert await call == b"a"


@in_loop
async def test_writing_to_a_cancelled_call(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).join()
        call.cancel()
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(b"")
        await call.done_writing()
        with pytest.raises(asyncio.CancelledError):
            await call


@in_loop
async def test_cancelling_a_task_that_awaits_the_response(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).join()
        await call.wait_for_connection()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(call, 0.05)
        assert call.cancelled()


@in_loop
async def test_the_end_of_a_call_ends_its_request_iterator(address):
    async with aio.insecure_channel(address) as channel:
        ended = asyncio.Event()

        async def requests():
            try:
                yield b"a"
                await asyncio.Event().wait()
            finally:
                ended.set()

        call = Service(channel).chat(requests())
        responses = call.__aiter__()
        assert await responses.__anext__() == b"a"
        call.cancel()
        await ended.wait()


@in_loop
async def test_unreachable_server(address):
    async with aio.insecure_channel("127.0.0.1:1") as channel:
        service, unavailable = Service(channel), grpc.StatusCode.UNAVAILABLE
        assert (await status_of(service.unary("Echo")(b"")))[0] is unavailable
        assert (await status_of(service.count(b"").read()))[0] is unavailable
        assert (await status_of(service.count(b"").wait_for_connection()))[0] is unavailable
        assert (await status_of(service.join(iter([b""]))))[0] is unavailable
        call = service.chat()
        assert (await status_of(call.write(b"")))[0] is unavailable
        assert (await status_of(call.read()))[0] is unavailable
