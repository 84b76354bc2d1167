"""Calls at an asyncio server, by a blocking client."""

import asyncio
import contextvars
import logging
import threading
import time

import grpc
import pytest

METHODS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
UU, US, SU, SS = METHODS.values()


class Serving:
    """A server of one service `s`, and a blocking channel to it."""

    def __init__(self, methods, **arguments):
        self._methods = methods
        self._arguments = arguments

    async def __aenter__(self):
        self.server = grpc.aio.server(**self._arguments)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", self._methods),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        await self.server.start()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        return self

    async def __aexit__(self, *_):
        await asyncio.to_thread(self.channel.close)
        await self.server.stop(None)

    async def unary(self, method, request=b"q", **arguments):
        """Returns response and call."""
        arguments.setdefault("timeout", 10)
        return await asyncio.to_thread(self.channel.unary_unary(f"/s/{method}").with_call, request, **arguments)

    async def error(self, method, **arguments):
        """Returns the error of a unary call."""
        with pytest.raises(grpc.RpcError) as raised:
            await self.unary(method, **arguments)
        return raised.value

    async def stream(self, method, requests, **arguments):
        """Returns the responses to a stream of requests."""
        call = self.channel.stream_stream(f"/s/{method}")
        arguments.setdefault("timeout", 10)
        return await asyncio.to_thread(lambda: list(call(iter(requests), **arguments)))


async def echo(request, context):
    return request


async def test_unary_call_returns_the_response():
    async with Serving({"echo": UU(echo)}) as it:
        response, call = await it.unary("echo", b"hello")
        assert (response, call.code(), call.details()) == (b"hello", grpc.StatusCode.OK, "")


async def test_serializers_are_used():
    async def double(request, context):
        return request * 2

    handler = UU(double, request_deserializer=int, response_serializer=lambda n: str(n).encode())
    async with Serving({"double": handler}) as it:
        assert (await it.unary("double", b"21"))[0] == b"42"


async def both(requests, context):
    async for request in requests:
        yield request + b"!"


async def both_by_context(_, context):
    while (request := await context.read()) is not grpc.aio.EOF:
        await context.write(request + b"!")


@pytest.mark.parametrize("handler", [both, both_by_context])
async def test_streams_in_both_styles(handler):
    async with Serving({"m": SS(handler)}) as it:
        assert await it.stream("m", [b"1", b"2", b"3"]) == [b"1!", b"2!", b"3!"]
        assert await it.stream("m", []) == []


async def one_of_many(requests, context):
    return b",".join([request async for request in requests])


async def one_of_many_by_context(_, context):
    got = []
    while (request := await context.read()) is not grpc.aio.EOF:
        got.append(request)
    return b",".join(got)


@pytest.mark.parametrize("handler", [one_of_many, one_of_many_by_context])
async def test_stream_of_requests_in_both_styles(handler):
    async with Serving({"m": SU(handler)}) as it:
        call = it.channel.stream_unary("/s/m")
        assert await asyncio.to_thread(call, iter([b"a", b"b"])) == b"a,b"


async def many(request, context):
    yield request
    yield b"end"


async def many_by_context(request, context):
    await context.write(request)
    await context.write(b"end")


def many_sync(request, context):
    yield request
    yield b"end"


@pytest.mark.parametrize("handler", [many, many_by_context, many_sync])
async def test_stream_of_responses_in_both_styles(handler):
    async with Serving({"m": US(handler)}) as it:
        call = it.channel.unary_stream("/s/m")
        assert await asyncio.to_thread(lambda: list(call(b"x"))) == [b"x", b"end"]


async def test_sync_handlers_run_on_other_threads():
    threads = set()

    def one(request, context):
        threads.add(threading.get_ident())
        context.set_trailing_metadata((("k", "v"),))
        return request

    def many(requests, context):
        threads.add(threading.get_ident())
        yield from requests

    def joined(requests, context):
        threads.add(threading.get_ident())
        return b"".join(requests)

    async with Serving({"one": UU(one), "many": SS(many), "joined": SU(joined)}) as it:
        response, call = await it.unary("one", b"a")
        assert response == b"a"
        assert [tuple(pair) for pair in call.trailing_metadata()] == [("k", "v")]
        assert await it.stream("many", [b"1", b"2"]) == [b"1", b"2"]
        assert await asyncio.to_thread(it.channel.stream_unary("/s/joined"), iter([b"1", b"2"])) == b"12"
    assert threads
    assert threading.get_ident() not in threads


def fails_sync(request, context):
    raise ValueError("broken")


def aborts_sync(request, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "gone")


async def fails(request, context):
    raise ValueError("broken")


async def fails_with_code(request, context):
    context.set_code(grpc.StatusCode.NOT_FOUND)
    context.set_details("not used")
    raise ValueError("broken")


async def sets_code(request, context):
    context.set_code(grpc.StatusCode.NOT_FOUND)
    context.set_details("gone")
    return b""


async def sets_number(request, context):
    context.set_code(7)
    return b""


async def aborts(request, context):
    await context.abort(grpc.StatusCode.NOT_FOUND, "gone")


async def aborts_and_goes_on(request, context):
    try:
        await context.abort(grpc.StatusCode.NOT_FOUND, "gone")
    except Exception:
        return b"ignored"


def bad_codec(_):
    raise ValueError("broken")


UNEXPECTED = (grpc.StatusCode.UNKNOWN, "Unexpected <class 'ValueError'>: broken")
NOT_FOUND = (grpc.StatusCode.NOT_FOUND, "gone")


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (UU(fails), UNEXPECTED),
        (UU(fails_sync), UNEXPECTED),
        (UU(fails_with_code), (grpc.StatusCode.NOT_FOUND, UNEXPECTED[1])),
        (UU(sets_code), NOT_FOUND),
        (UU(sets_number), (grpc.StatusCode.PERMISSION_DENIED, "")),
        (UU(aborts), NOT_FOUND),
        (UU(aborts_sync), NOT_FOUND),
        (UU(aborts_and_goes_on), NOT_FOUND),
        (UU(echo, request_deserializer=bad_codec), UNEXPECTED),
        (UU(echo, response_serializer=bad_codec), UNEXPECTED),
    ],
)
async def test_status_of_failed_handlers(handler, expected):
    async with Serving({"m": handler}) as it:
        error = await it.error("m")
        assert (error.code(), error.details()) == expected


async def test_traceback_is_logged(caplog):
    with caplog.at_level(logging.ERROR):
        async with Serving({"m": UU(fails)}) as it:
            await it.error("m")
    infos = [record.exc_info for record in caplog.records if record.exc_info]
    assert [(info[0], str(info[1])) for info in infos] == [(ValueError, "broken")]
    assert infos[0][2] is not None


async def test_failure_after_responses_ends_the_stream():
    async def handler(request, context):
        yield b"1"
        raise ValueError("broken")

    async with Serving({"m": US(handler)}) as it:
        call = it.channel.unary_stream("/s/m")(b"")
        assert await asyncio.to_thread(next, call) == b"1"
        with pytest.raises(grpc.RpcError) as raised:
            await asyncio.to_thread(next, call)
        assert (raised.value.code(), raised.value.details()) == UNEXPECTED


async def test_unknown_method_is_unimplemented():
    async with Serving({"m": UU(echo)}) as it:
        error = await it.error("other")
        assert (error.code(), error.details()) == (grpc.StatusCode.UNIMPLEMENTED, "Method not found!")


async def test_abort_sends_trailing_metadata():
    async def handler(request, context):
        await context.abort(grpc.StatusCode.NOT_FOUND, "gone", (("k", "v"), ("b-bin", b"\0\xff")))

    async with Serving({"m": UU(handler)}) as it:
        error = await it.error("m")
        assert [tuple(pair) for pair in error.trailing_metadata()] == [("k", "v"), ("b-bin", b"\0\xff")]


async def test_second_abort_is_a_usage_error():
    errors = []

    async def handler(request, context):
        for _ in range(2):
            try:
                await context.abort(grpc.StatusCode.NOT_FOUND, "gone")
            except Exception as error:
                errors.append(type(error))

    async with Serving({"m": UU(handler)}) as it:
        await it.error("m")
    assert errors == [grpc.aio.AbortError, grpc.aio.UsageError]


async def test_initial_and_trailing_metadata():
    async def handler(request, context):
        await context.send_initial_metadata((("i", "1"),))
        with pytest.raises(grpc.aio.UsageError):
            await context.send_initial_metadata((("i", "2"),))
        context.set_trailing_metadata((("t", "1"), ("t-bin", b"\1")))
        return b""

    async with Serving({"m": UU(handler)}) as it:
        _, call = await it.unary("m")
        assert [tuple(pair) for pair in call.initial_metadata()] == [("i", "1")]
        assert [tuple(pair) for pair in call.trailing_metadata()] == [("t", "1"), ("t-bin", b"\1")]


async def test_initial_metadata_arrives_before_the_first_response():
    go = asyncio.Event()

    async def handler(request, context):
        await context.send_initial_metadata((("i", "1"),))
        await go.wait()
        yield b"1"

    async with Serving({"m": US(handler)}) as it:
        call = it.channel.unary_stream("/s/m")(b"", timeout=10)
        initial = await asyncio.to_thread(call.initial_metadata)
        assert [tuple(pair) for pair in initial] == [("i", "1")]
        go.set()
        assert await asyncio.to_thread(list, call) == [b"1"]


async def test_context_describes_the_call():
    seen = {}

    async def handler(request, context):
        seen["metadata"] = {key: value for key, value in context.invocation_metadata()}
        seen["peer"] = context.peer()
        seen["auth"] = context.auth_context()
        seen["identities"] = (context.peer_identities(), context.peer_identity_key())
        seen["remaining"] = context.time_remaining()
        seen["state"] = (context.code(), context.details(), context.cancelled(), context.done())
        return b""

    async with Serving({"m": UU(handler)}) as it:
        await it.unary("m", timeout=5, metadata=(("k", "v"), ("k-bin", b"\0")))
    assert seen["metadata"]["k"] == "v"
    assert seen["metadata"]["k-bin"] == b"\0"
    assert seen["peer"].startswith("ipv4:127.0.0.1:")
    assert seen["auth"]["transport_security_type"] == [b"insecure"]
    assert seen["identities"] == (None, None)
    assert 4 < seen["remaining"] < 5.2
    assert seen["state"] == (None, "", False, False)


@pytest.mark.parametrize("how", ["cancel", "deadline"])
async def test_client_ends_the_call_and_the_handler_is_cancelled(how):
    started, ended = asyncio.Event(), asyncio.Event()
    seen = []

    async def handler(request, context):
        context.add_done_callback(lambda of: seen.append(of is context))
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            ended.set()

    async with Serving({"m": UU(handler)}) as it:
        call = it.channel.unary_unary("/s/m").future(b"", timeout=0.3 if how == "deadline" else 30)
        await asyncio.wait_for(started.wait(), 10)
        if how == "cancel":
            call.cancel()
        await asyncio.wait_for(ended.wait(), 10)
        for _ in range(100):
            if len(seen) == 2:
                break
            await asyncio.sleep(0.05)
    assert set(seen) == {"cancelled", True}


async def test_cancelled_stream_cancels_reading_and_generators_are_closed():
    closed = asyncio.Event()

    async def handler(requests, context):
        try:
            async for request in requests:
                yield request
        finally:
            closed.set()

    async with Serving({"m": SS(handler)}) as it:
        hold = threading.Event()

        def requests():
            yield b"1"
            hold.wait(20)

        call = it.channel.stream_stream("/s/m")(requests())
        assert await asyncio.to_thread(next, call) == b"1"
        call.cancel()
        await asyncio.wait_for(closed.wait(), 10)
        hold.set()


VARIABLE = contextvars.ContextVar("variable", default=0)


async def test_each_call_has_its_own_context_and_task():
    tasks = []

    async def handler(request, context):
        tasks.append(asyncio.current_task())
        before = VARIABLE.get()
        VARIABLE.set(before + 1)
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        except TimeoutError:
            return str(before).encode()

    if not hasattr(asyncio, "timeout"):
        pytest.skip("asyncio.timeout came with Python 3.11")
    async with Serving({"m": UU(handler)}) as it:
        assert [(await it.unary("m"))[0] for _ in range(3)] == [b"0"] * 3
    assert None not in tasks
    assert len(set(map(id, tasks))) == 3


async def test_calls_beyond_the_limit_are_rejected():
    go = asyncio.Event()

    async def handler(request, context):
        await go.wait()
        return b""

    async with Serving({"m": UU(handler)}, maximum_concurrent_rpcs=2) as it:
        method = it.channel.unary_unary("/s/m")
        calls = [method.future(b"", timeout=10) for _ in range(5)]
        deadline = time.monotonic() + 10
        while sum(call.done() for call in calls) < 3 and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        rejected = [call for call in calls if call.done()]
        assert {(call.code(), call.details()) for call in rejected} == {
            (grpc.StatusCode.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!")
        }
        go.set()
        assert [await asyncio.to_thread(call.result) for call in calls if call not in rejected] == [b"", b""]
        assert (await it.unary("m"))[0] == b"", "the limit counts calls at a time"


async def test_large_messages_pass_unchanged():
    message = bytes(range(256)) * 8192

    async with Serving({"m": UU(echo), "s": SS(both)}) as it:
        assert (await it.unary("m", message))[0] == message
        assert await it.stream("s", [message, b"", message]) == [message + b"!", b"!", message + b"!"]


async def test_too_large_request_is_rejected():
    async with Serving({"m": UU(echo)}) as it:
        error = await it.error("m", request=bytes(5 << 20))
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_unread_requests_stop_the_client():
    sent = 0
    go = asyncio.Event()

    async def handler(requests, context):
        await go.wait()
        total = 0
        async for request in requests:
            total += len(request)
        return str(total).encode()

    def requests():
        nonlocal sent
        for _ in range(500):
            sent += 1
            yield bytes(64 << 10)

    async with Serving({"m": SU(handler)}) as it:
        call = it.channel.stream_unary("/s/m").future(requests())
        await asyncio.sleep(1)
        assert 0 < sent < 300, "16 MiB or so are in buffers"
        go.set()
        assert await asyncio.to_thread(call.result, 30) == str(500 * (64 << 10)).encode()


async def test_unread_responses_stop_the_handler():
    written = 0

    async def handler(request, context):
        nonlocal written
        for _ in range(500):
            written += 1
            yield bytes(64 << 10)

    async with Serving({"m": US(handler)}) as it:
        call = it.channel.unary_stream("/s/m")(b"")
        assert await asyncio.to_thread(next, call)
        await asyncio.sleep(1)
        assert written < 300, "16 MiB or so are in buffers"
        assert await asyncio.to_thread(lambda: sum(1 for _ in call)) == 499


async def test_busy_streams_let_other_calls_run():
    async def handler(request, context):
        while True:
            yield b""

    async with Serving({"m": US(handler), "echo": UU(echo)}) as it:
        call = it.channel.unary_stream("/s/m")(b"")
        stop = threading.Event()

        def read():
            for _ in call:
                if stop.is_set():
                    return

        reading = asyncio.get_running_loop().run_in_executor(None, read)
        assert (await it.unary("echo"))[0] == b"q"
        stop.set()
        await reading
        call.cancel()


async def test_metadata_that_is_invalid_is_an_error_of_the_handler():
    async def handler(request, context):
        context.set_trailing_metadata((("UPPER", "v"),))
        return b""

    async with Serving({"m": UU(handler), "echo": UU(echo)}) as it:
        error = await it.error("m", timeout=2)
        assert error.code() == grpc.StatusCode.INTERNAL
        assert (await it.unary("echo"))[0] == b"q"


async def test_call_that_is_cancelled_on_its_way_to_the_loop():
    log = []

    async def handler(requests, context):
        log.append("started")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        yield b""

    async with Serving({"m": SS(handler), "echo": UU(echo)}) as it:
        await it.unary("echo")
        call = it.channel.stream_stream("/s/m")(iter([b"1"]))
        # Keeps the loop busy.
        time.sleep(0.3)
        call.cancel()
        time.sleep(0.3)
        await it.unary("echo")
        await asyncio.wait_for(it.server.stop(None), 10)
    assert log in ([], ["started", "cancelled"])


RESPONSES = [("stré", "stré".encode()), (None, b"")]


@pytest.mark.parametrize(("response", "message"), RESPONSES)
async def test_responses_without_a_serializer_may_be_text_or_none(response, message):
    async def one(request, context):
        return response

    async def joined(requests, context):
        return response

    async def many(request, context):
        yield response
        yield b"end"

    async def many_by_context(request, context):
        await context.write(response)
        await context.write(b"end")

    def one_sync(request, context):
        return response

    def many_sync(request, context):
        yield response
        yield b"end"

    async def one_with_trailing_metadata(request, context):
        context.set_trailing_metadata((("k", "v"),))
        return response

    unary = {"one": UU(one), "one_sync": UU(one_sync), "trailing": UU(one_with_trailing_metadata)}
    streams = {"many": US(many), "by_context": US(many_by_context), "many_sync": US(many_sync)}
    async with Serving({**unary, **streams, "joined": SU(joined)}) as it:
        for method in unary:
            assert (await it.unary(method))[0] == message, method
        for method in streams:
            call = it.channel.unary_stream(f"/s/{method}")
            assert await asyncio.to_thread(lambda: list(call(b"", timeout=10))) == [message, b"end"], method
        assert await asyncio.to_thread(it.channel.stream_unary("/s/joined"), iter([b""])) == message


@pytest.mark.parametrize("has_trailing_metadata", [False, True])
async def test_response_of_a_wrong_type_is_unknown(has_trailing_metadata):
    async def handler(request, context):
        if has_trailing_metadata:
            context.set_trailing_metadata((("k", "v"),))
        return 5

    async with Serving({"m": UU(handler), "serialized": UU(handler, response_serializer=str)}) as it:
        for method in ("m", "serialized"):
            error = await it.error(method)
            assert error.code() == grpc.StatusCode.UNKNOWN
            assert error.details().startswith("Unexpected <class 'TypeError'>")
            assert "bytes" in error.details()


async def test_details_of_a_wrong_type_are_an_error_of_the_handler():
    async def sets(request, context):
        context.set_code(grpc.StatusCode.NOT_FOUND)
        context.set_details(5)

    async def aborts(request, context):
        await context.abort(grpc.StatusCode.NOT_FOUND, 5)

    async with Serving({"sets": UU(sets), "aborts": UU(aborts)}) as it:
        for method, code in (("sets", grpc.StatusCode.NOT_FOUND), ("aborts", grpc.StatusCode.UNKNOWN)):
            error = await it.error(method)
            assert error.code() == code
            assert error.details().startswith("Unexpected <class 'TypeError'>")
            assert "int" in error.details()
