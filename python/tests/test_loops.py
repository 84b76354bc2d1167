"""Event loops: new ones, closed ones, several at once, uvloop, tasks that are cancelled, and context variables."""

import asyncio
import contextvars
import sys
import threading

import calls_pb2
import calls_pb2_grpc
import grpc
import pytest
import servers
import uvloop

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def _run(coroutine, new_loop=asyncio.new_event_loop):
    """Runs a coroutine on a new loop, as `asyncio.run` does, and closes the loop."""
    loop = new_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _all_call_types(address):
    async with grpc.aio.insecure_channel(address) as channel:
        calls = calls_pb2_grpc.CallsStub(channel)
        assert (await calls.Unary(calls_pb2.Request(text="x"))).text == "x"
        assert len([it async for it in calls.ServerStream(calls_pb2.Request(responses=20))]) == 20
        assert (await calls.ClientStream(iter([calls_pb2.Request()] * 20))).requests == 20
        assert len([it async for it in calls.BidiStream(iter([calls_pb2.Request(responses=2)] * 10))]) == 20


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_all_call_types(loop, any_server):
    _run(_all_call_types(any_server), LOOPS[loop])


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_server_on_the_loop(loop):
    async def main():
        async with servers.aio() as address:
            await _all_call_types(address)

    _run(main(), LOOPS[loop])


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_loops_one_after_the_other(loop, any_server):
    for _ in range(5):
        _run(_all_call_types(any_server), LOOPS[loop])


def test_asyncio_run_again(any_server):
    for _ in range(3):
        asyncio.run(_all_call_types(any_server))


def test_loops_of_several_threads_at_once(aio_server_in_thread):
    failures = []

    def run():
        try:
            for _ in range(3):
                _run(_all_call_types(aio_server_in_thread))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


async def test_both_interfaces_in_one_process(aio_server_in_thread):
    def blocking():
        with grpc.insecure_channel(aio_server_in_thread) as channel:
            calls = calls_pb2_grpc.CallsStub(channel)
            return sum(calls.Unary(calls_pb2.Request(payload=b"x")).bytes_read for _ in range(100))

    threads = [asyncio.to_thread(blocking) for _ in range(4)]
    results = await asyncio.gather(_all_call_types(aio_server_in_thread), *threads)
    assert results[1:] == [100] * 4


async def test_cancelled_task_cancels_its_call(aio_calls):
    call = aio_calls.Unary(calls_pb2.Request(sleep_ms=1_500))

    async def wait():
        await call

    task = asyncio.create_task(wait())
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert call.cancelled()
    assert await call.code() is grpc.StatusCode.CANCELLED


async def test_wait_for_cancels_its_call(aio_calls):
    call = aio_calls.Unary(calls_pb2.Request(sleep_ms=1_500))

    async def wait():
        return await call

    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(wait(), 0.1)
    assert call.cancelled()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout is new in Python 3.11")
@pytest.mark.parametrize("method", ["Unary", "ServerStream"])
async def test_asyncio_timeout_cancels_its_call(aio_calls, method):
    call = getattr(aio_calls, method)(calls_pb2.Request(sleep_ms=1_500, responses=1))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await (call if method == "Unary" else call.read())
    assert call.cancelled()


async def test_a_thousand_cancelled_calls(aio_calls):
    calls = [aio_calls.Unary(calls_pb2.Request(sleep_ms=2_000)) for _ in range(1000)]
    await asyncio.sleep(0.2)
    assert all([call.cancel() for call in calls])
    assert {await call.code() for call in calls} == {grpc.StatusCode.CANCELLED}
    assert (await aio_calls.Unary(calls_pb2.Request(text="after"))).text == "after"


def test_a_thousand_cancelled_calls_of_threads(aio_server_in_thread):
    with grpc.insecure_channel(aio_server_in_thread) as channel:
        stub = calls_pb2_grpc.CallsStub(channel)
        calls = [stub.Unary.future(calls_pb2.Request(sleep_ms=2_000)) for _ in range(1000)]
        for call in calls:
            assert call.cancel()
        assert {call.code() for call in calls} == {grpc.StatusCode.CANCELLED}
        assert stub.Unary(calls_pb2.Request(text="after")).text == "after"


_variable = contextvars.ContextVar("variable", default="unset")


async def test_context_variables_of_a_caller_are_its_own(aio_calls):
    async def call(text):
        _variable.set(text)
        await aio_calls.Unary(calls_pb2.Request(sleep_ms=20))
        return _variable.get()

    texts = [str(number) for number in range(20)]
    assert await asyncio.gather(*map(call, texts)) == texts


async def test_many_calls_at_once(aio_calls):
    requests = [calls_pb2.Request(text=str(number)) for number in range(500)]
    responses = await asyncio.gather(*map(aio_calls.Unary, requests))
    assert [response.text for response in responses] == [request.text for request in requests]
