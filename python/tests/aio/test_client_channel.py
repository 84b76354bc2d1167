"""Channels of asyncio clients."""

import asyncio
import concurrent.futures
import gc
import subprocess
import sys
import weakref

import grpc
import pytest
from aio_client_support import SERVICE, Service, in_loop, status_of
from grpc import aio


def test_a_channel_is_used_in_several_loops(address):
    channels = []

    async def first():
        channels.append(aio.insecure_channel(address))
        return await Service(channels[0]).unary("Echo")(b"1")

    async def in_new_channel():
        async with aio.insecure_channel(address) as channel:
            return await Service(channel).unary("Echo")(b"2")

    assert asyncio.run(first()) == b"1"
    assert asyncio.run(in_new_channel()) == b"2"
    assert asyncio.run(in_new_channel()) == b"2"


@pytest.mark.skipif("thalweg" not in aio.Channel.__module__, reason="grpcio binds a channel to a loop")
def test_a_channel_made_outside_of_a_loop(address):
    channel = aio.insecure_channel(address)
    echo = Service(channel).unary("Echo")

    async def call():
        return await echo(b"x")

    async def stream():
        return [response async for response in Service(channel).count(b"2")]

    for _ in range(3):
        assert asyncio.run(call()) == b"x"
        assert asyncio.run(stream()) == [b"0", b"1"]
    asyncio.run(channel.close())


@pytest.mark.skipif("thalweg" not in aio.Channel.__module__, reason="grpcio binds a channel to a loop")
def test_loops_of_several_threads_share_a_channel(address):
    channel = aio.insecure_channel(address)

    async def main(name):
        echo = Service(channel).unary("Echo")
        requests = [f"{name} {number}".encode() for number in range(200)]
        assert await asyncio.gather(*(echo(request) for request in requests)) == requests
        return [await echo(request) for request in requests[:50]] == requests[:50]

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert all(threads.map(lambda name: asyncio.run(main(name)), range(4)))
    asyncio.run(channel.close())


def test_sys_exit_after_a_call_ends_the_loop(address):
    async def main():
        channel = aio.insecure_channel(address)
        calls = [Service(channel).unary("Echo")(b"") for _ in range(20)]
        for call in calls:
            await call
        sys.exit(3)

    with pytest.raises(SystemExit) as raised:
        asyncio.run(main())
    assert raised.value.code == 3


@pytest.mark.parametrize("kind", ["unary_unary", "unary_stream", "stream_unary", "stream_stream"])
@in_loop
async def test_closed_channels_and_their_methods_are_collected(kind):
    references = []
    for _ in range(20):
        channel = aio.insecure_channel("127.0.0.1:1")
        method = getattr(channel, kind)("/test.Service/Method")
        references.append(weakref.ref(channel))
        await channel.close()
    del channel, method
    gc.collect()
    assert not [reference for reference in references if reference() is not None]


def test_exit_while_calls_are_in_flight(address):
    program = f"""
import asyncio, os, sys
if os.environ.get("THALWEG_TEST_GRPC") == "thalweg":
    import thalweg.grpc
    thalweg.grpc.install()
from grpc import aio
async def main():
    channel = aio.insecure_channel("{address}")
    await channel.channel_ready()
    for _ in range(20):
        channel.unary_unary("/test.Service/Silent")(b"30")
        asyncio.ensure_future(channel.unary_stream("/test.Service/Count")(b"1.").read())
    await asyncio.sleep(0.05)
    print("done", flush=True)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "done\n"


@in_loop
async def test_connectivity(address):
    channel = aio.insecure_channel(address)
    assert isinstance(channel, aio.Channel)
    assert channel.get_state() is grpc.ChannelConnectivity.IDLE
    await channel.channel_ready()
    assert channel.get_state() is grpc.ChannelConnectivity.READY
    await channel.close()
    assert channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN
    with pytest.raises(aio.UsageError):
        await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
    with pytest.raises(aio.UsageError):
        await channel.channel_ready()


@in_loop
async def test_state_changes(address):
    async with aio.insecure_channel(address) as channel:
        state, seen = channel.get_state(try_to_connect=True), []
        while state is not grpc.ChannelConnectivity.READY:
            await channel.wait_for_state_change(state)
            state = channel.get_state(try_to_connect=True)
            seen.append(state)
        assert seen[-1] is grpc.ChannelConnectivity.READY
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(channel.wait_for_state_change(state), 0.05)


@in_loop
async def test_unreachable_server_is_a_transient_failure():
    async with aio.insecure_channel("127.0.0.1:1") as channel:
        code, _ = await status_of(Service(channel).unary("Echo")(b""))
        assert code is grpc.StatusCode.UNAVAILABLE
        assert channel.get_state() is grpc.ChannelConnectivity.TRANSIENT_FAILURE
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(channel.channel_ready(), 0.1)


@in_loop
async def test_wait_for_ready_waits_for_the_deadline():
    async with aio.insecure_channel("127.0.0.1:1") as channel:
        code, _ = await status_of(Service(channel).unary("Echo")(b"", wait_for_ready=True, timeout=0.2))
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED
        code, _ = await status_of(Service(channel).count(b"", wait_for_ready=True, timeout=0.2).read())
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED


@in_loop
async def test_close_cancels_calls(address):
    channel = aio.insecure_channel(address)
    service = Service(channel)
    calls = [service.unary("Silent")(b"30"), service.count(b"1."), service.join(), service.chat()]
    await asyncio.gather(*(call.wait_for_connection() for call in calls[1:]))
    await channel.close()
    for call in calls:
        assert call.cancelled() and call.done()
        assert await call.code() is grpc.StatusCode.CANCELLED
    with pytest.raises(asyncio.CancelledError):
        await calls[0]
    await channel.close()


@in_loop
async def test_calls_on_a_closed_channel(address):
    channel = aio.insecure_channel(address)
    service = Service(channel)
    await channel.close()
    for start in (
        lambda: service.unary("Echo")(b""),
        lambda: service.count(b""),
        lambda: service.join(),
        lambda: service.chat(),
    ):
        with pytest.raises(aio.UsageError):
            start()


@in_loop
async def test_close_with_grace(address):
    channel = aio.insecure_channel(address)
    call = Service(channel).unary("Slow")(b"0.2")
    stream = Service(channel).count(b"1")
    await asyncio.sleep(0.05)
    start = asyncio.get_running_loop().time()
    reading = asyncio.ensure_future(stream.read())
    await channel.close(5)
    assert asyncio.get_running_loop().time() - start < 4
    assert call.done() and await call.code() is grpc.StatusCode.OK
    assert await reading == b"0"


@in_loop
async def test_close_after_the_grace_cancels(address):
    channel = aio.insecure_channel(address)
    call = Service(channel).unary("Silent")(b"30")
    await asyncio.sleep(0.05)
    await channel.close(0.1)
    assert call.cancelled()
    assert await call.code() is grpc.StatusCode.CANCELLED


@in_loop
async def test_leaving_the_context_closes(address):
    async with aio.insecure_channel(address) as channel:
        call = Service(channel).unary("Silent")(b"30")
        await asyncio.sleep(0.02)
    assert call.cancelled()
    assert channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN


@in_loop
async def test_methods_have_the_exported_types(address):
    async with aio.insecure_channel(address) as channel:
        for kind, interface in (
            ("unary_unary", aio.UnaryUnaryMultiCallable),
            ("unary_stream", aio.UnaryStreamMultiCallable),
            ("stream_unary", aio.StreamUnaryMultiCallable),
            ("stream_stream", aio.StreamStreamMultiCallable),
        ):
            method = getattr(channel, kind)(SERVICE + "X", None, None, _registered_method=True)
            assert isinstance(method, interface)


@in_loop
async def test_interfaces_can_be_subscripted_and_subclassed():
    assert aio.UnaryUnaryCall[int, str] and aio.StreamStreamMultiCallable[int, str]
    with pytest.raises(TypeError):
        aio.UnaryUnaryCall()
    with pytest.raises(TypeError):
        aio.Channel()


@in_loop
async def test_secure_channel_needs_credentials(address):
    with pytest.raises((TypeError, AttributeError)):
        aio.secure_channel(address, None)


@in_loop
async def test_init_and_shutdown():
    aio.init_grpc_aio()
    aio.shutdown_grpc_aio()
