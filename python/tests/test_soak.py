"""Memory does not grow: 100,000 calls of each kind, or `THALWEG_TEST_SOAK_CALLS` of them (10,000,000 by hand)."""

import asyncio
import gc
import os
import threading

import calls_pb2
import calls_pb2_grpc
import grpc
import psutil
import pytest
import servers

CALLS = int(os.environ.get("THALWEG_TEST_SOAK_CALLS", 100_000))
#: Number of calls at once.
BATCH = 200
#: Bytes that the resident memory may grow by. A leak of 100 bytes per call would be 10 MB.
GROWTH_MAX = 6 << 20

pytestmark = [pytest.mark.long, pytest.mark.timeout(max(600, CALLS // 500))]


def _memory():
    gc.collect()
    return psutil.Process().memory_info().rss


async def _one_batch(calls, kind):
    request = calls_pb2.Request(text="x", payload=bytes(100), response_size=100)
    if kind == "unary":
        await asyncio.gather(*(calls.Unary(request) for _ in range(BATCH)))
    elif kind == "failing":
        failing = calls_pb2.Request(code=5, details="why")
        results = await asyncio.gather(*(calls.Unary(failing) for _ in range(BATCH)), return_exceptions=True)
        assert all(isinstance(result, grpc.aio.AioRpcError) for result in results)
    elif kind == "cancelled":
        slow = [calls.Unary(calls_pb2.Request(sleep_ms=50)) for _ in range(BATCH)]
        await asyncio.sleep(0)
        for call in slow:
            call.cancel()
        assert {await call.code() for call in slow} == {grpc.StatusCode.CANCELLED}
    else:
        call = calls.BidiStream()
        for _ in range(BATCH):
            await call.write(calls_pb2.Request(payload=bytes(100), responses=1))
            await call.read()
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF


#: grpcio 1.85 keeps about 20 KB of each call that is cancelled at once.
CANCELLED = pytest.param("cancelled", marks=pytest.mark.thalweg_only)


@pytest.mark.parametrize("kind", ["unary", "failing", CANCELLED, "messages of streams"])
async def test_asyncio(kind):
    async with servers.aio() as address, grpc.aio.insecure_channel(address) as channel:
        calls = calls_pb2_grpc.CallsStub(channel)
        # The first tenth fills pools and caches.
        for _ in range(CALLS // BATCH // 10):
            await _one_batch(calls, kind)
        before = _memory()
        for _ in range(CALLS // BATCH):
            await _one_batch(calls, kind)
        assert _memory() - before < GROWTH_MAX


def test_threads():
    with servers.blocking() as address, grpc.insecure_channel(address) as channel:
        calls = calls_pb2_grpc.CallsStub(channel)

        def run(number):
            for _ in range(number):
                calls.Unary(calls_pb2.Request(text="x", payload=bytes(100), response_size=100))

        def on_threads(number):
            threads = [threading.Thread(target=run, args=(number // 4,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        on_threads(CALLS // 20)
        before = _memory()
        on_threads(CALLS // 2)
        assert _memory() - before < GROWTH_MAX


async def test_channels():
    async with servers.aio() as address:
        for number in range(2_200):
            if number == 200:
                before = _memory()
            async with grpc.aio.insecure_channel(address) as channel:
                await calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request())
        assert _memory() - before < GROWTH_MAX
