"""Event loops: new ones, closed ones, several at once, uvloop, tasks that are cancelled, and context variables."""

import asyncio
import contextvars
import gc
import sys
import threading
import time
import weakref

import calls_pb2
import calls_pb2_grpc
import grpc
import psutil
import pytest
import servers
import servicers
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


def _becomes(condition):
    """Returns whether `condition` becomes true within 10 seconds, with the help of the garbage collector."""
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            return False
        # Objects that were dropped on an I/O thread are freed by the next use of the package.
        grpc.insecure_channel("localhost:1").close()
        gc.collect()
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_descriptors_of_closed_loops_are_closed(loop, blocking_server):
    """Each loop is closed with a call in flight."""

    async def main():
        channel = grpc.aio.insecure_channel(blocking_server)
        call = calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request(sleep_ms=100))
        await asyncio.sleep(0.01)
        return call.done()

    assert _run(main(), LOOPS[loop]) is False
    process = psutil.Process()
    before = process.num_fds()
    for _ in range(30):
        _run(main(), LOOPS[loop])
    assert _becomes(lambda: process.num_fds() < before + 15), f"{before}, {process.num_fds()}"


@pytest.mark.thalweg_only
@pytest.mark.parametrize("method", ["Unary", "ServerStream"])
@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_closed_loop_is_collected_once_its_calls_have_news(loop, method, blocking_server):
    """A call that has not started, and others in flight. grpcio keeps each loop."""
    references = []

    async def main():
        channel = grpc.aio.insecure_channel(blocking_server)
        method_of = getattr(calls_pb2_grpc.CallsStub(channel), method)
        mark = _Mark(asyncio.get_running_loop())
        calls = [method_of(calls_pb2.Request(sleep_ms=100, responses=1)) for _ in range(3)]
        await asyncio.sleep(0.05)
        calls.append(method_of(calls_pb2.Request()))
        for call in calls:
            # Kept, with the call, until the call ends.
            call.add_done_callback(mark.ended)
        references.extend(map(weakref.ref, [mark, *calls]))

    class _Mark:
        """Lives as long as the loop's exception handler, and so as the loop."""

        def __init__(self, loop):
            loop.set_exception_handler(self.handle)

        def handle(self, loop, context):
            pass

        def ended(self, call):
            pass

    _run(main(), LOOPS[loop])
    assert _becomes(lambda: not any(it() is not None for it in references)), references


@pytest.mark.thalweg_only
def test_calls_to_a_server_of_a_closed_loop_fail():
    """They do not wait, and are not kept, for a loop that will not run again. Those to grpcio's wait."""
    kept = []

    async def serve():
        server = grpc.aio.server()
        servicers.add_aio(server)
        kept.append(server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return port

    address = f"127.0.0.1:{asyncio.run(serve())}"
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as raised:
        calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request(), timeout=10)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE, raised.value


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
