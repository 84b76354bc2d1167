"""Calls at a blocking server, by a blocking client."""

import contextvars
import logging
import threading
import time
from concurrent import futures

import grpc
import pytest

UU = grpc.unary_unary_rpc_method_handler
US = grpc.unary_stream_rpc_method_handler
SU = grpc.stream_unary_rpc_method_handler
SS = grpc.stream_stream_rpc_method_handler


class Serving:
    """A server of one service `s`, and a channel to it."""

    def __init__(self, methods, threads=8, **arguments):
        self.pool = futures.ThreadPoolExecutor(threads)
        self.server = grpc.server(self.pool, **arguments)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", methods),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")

    def __enter__(self):
        self.server.start()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        return self

    def __exit__(self, *_):
        self.channel.close()
        self.server.stop(None)
        self.pool.shutdown()

    def unary(self, method, request=b"q", **arguments):
        """Returns response and call."""
        arguments.setdefault("timeout", 10)
        return self.channel.unary_unary(f"/s/{method}").with_call(request, **arguments)

    def error(self, method, **arguments):
        """Returns the error of a unary call."""
        with pytest.raises(grpc.RpcError) as raised:
            self.unary(method, **arguments)
        return raised.value


def echo(request, context):
    return request


def test_all_call_types():
    def many(request, context):
        yield request
        yield b"end"

    methods = {
        "uu": UU(echo),
        "us": US(many),
        "su": SU(lambda requests, context: b",".join(requests)),
        "ss": SS(lambda requests, context: (request + b"!" for request in requests)),
    }
    with Serving(methods) as it:
        channel = it.channel
        assert channel.unary_unary("/s/uu")(b"a", timeout=10) == b"a"
        assert list(channel.unary_stream("/s/us")(b"a", timeout=10)) == [b"a", b"end"]
        assert channel.stream_unary("/s/su")(iter([b"a", b"b"]), timeout=10) == b"a,b"
        assert list(channel.stream_stream("/s/ss")(iter([b"a", b"b"]), timeout=10)) == [b"a!", b"b!"]
        assert list(channel.stream_stream("/s/ss")(iter([]), timeout=10)) == []


def test_responses_may_be_any_iterable():
    with Serving({"m": US(lambda request, context: iter([b"1", b"2"]))}) as it:
        assert list(it.channel.unary_stream("/s/m")(b"", timeout=10)) == [b"1", b"2"]


def test_serializers_are_used():
    handler = UU(lambda n, _: n * 2, request_deserializer=int, response_serializer=lambda n: str(n).encode())
    with Serving({"m": handler}) as it:
        assert it.unary("m", b"21")[0] == b"42"


def fails(request, context):
    raise ValueError("broken")


def fails_with_code(request, context):
    context.set_code(grpc.StatusCode.NOT_FOUND)
    context.set_details("gone")
    raise ValueError("broken")


def sets_code(request, context):
    context.set_code(grpc.StatusCode.NOT_FOUND)
    context.set_details("gone")
    return b""


def aborts(request, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "gone")


def aborts_with_ok(request, context):
    context.abort(grpc.StatusCode.OK, "fine")


def cancels(request, context):
    context.cancel()
    return b""


def bad_codec(_):
    raise ValueError("broken")


NOT_FOUND = (grpc.StatusCode.NOT_FOUND, "gone")
NOT_SERIALIZED = (grpc.StatusCode.INTERNAL, "Failed to serialize response!")
NOT_DESERIALIZED = (grpc.StatusCode.INTERNAL, "Exception deserializing request!")


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (UU(fails), (grpc.StatusCode.UNKNOWN, "Exception calling application: broken")),
        (UU(fails_with_code), NOT_FOUND),
        (UU(sets_code), NOT_FOUND),
        (UU(aborts), NOT_FOUND),
        (UU(aborts_with_ok), (grpc.StatusCode.UNKNOWN, "")),
        (UU(cancels), (grpc.StatusCode.CANCELLED, "CANCELLED")),
        (UU(lambda request, context: None), NOT_SERIALIZED),
        (UU(echo, request_deserializer=bad_codec), NOT_DESERIALIZED),
        (UU(echo, request_deserializer=lambda _: None), NOT_DESERIALIZED),
        (UU(echo, response_serializer=bad_codec), NOT_SERIALIZED),
    ],
)
def test_status_of_failed_handlers(handler, expected):
    with Serving({"m": handler}) as it:
        error = it.error("m")
        assert (error.code(), error.details()) == expected


def test_traceback_is_logged(caplog):
    with caplog.at_level(logging.ERROR), Serving({"m": UU(fails)}) as it:
        it.error("m")
    infos = [record.exc_info for record in caplog.records if record.exc_info]
    assert [(info[0], str(info[1])) for info in infos] == [(ValueError, "broken")]
    assert infos[0][2] is not None


def test_abort_logs_nothing(caplog):
    with caplog.at_level(logging.WARNING), Serving({"m": UU(aborts)}) as it:
        it.error("m")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("fail", "expected"),
    [
        (fails, (grpc.StatusCode.UNKNOWN, "Exception iterating responses: broken")),
        (aborts, NOT_FOUND),
    ],
)
def test_failure_after_responses_ends_the_stream(fail, expected):
    def handler(request, context):
        yield b"1"
        fail(request, context)

    with Serving({"m": US(handler)}) as it:
        call = it.channel.unary_stream("/s/m")(b"", timeout=10)
        assert next(call) == b"1"
        with pytest.raises(grpc.RpcError) as raised:
            next(call)
        assert (raised.value.code(), raised.value.details()) == expected


# In grpcio the handler's thread sometimes waits for ever.
@pytest.mark.thalweg_only
def test_deserializer_that_fails_within_a_stream_ends_the_call():
    def handler(requests, context):
        for request in requests:
            yield request

    with Serving({"m": SS(handler, request_deserializer=bad_codec)}) as it:
        with pytest.raises(grpc.RpcError) as raised:
            list(it.channel.stream_stream("/s/m")(iter([b"a"]), timeout=10))
        assert (raised.value.code(), raised.value.details()) == NOT_DESERIALIZED


def test_unknown_method_is_unimplemented():
    with Serving({}) as it:
        error = it.error("other")
        assert (error.code(), error.details()) == (grpc.StatusCode.UNIMPLEMENTED, "Method not found!")


def test_metadata():
    def handler(request, context):
        context.send_initial_metadata((("i", dict(context.invocation_metadata())["k"]),))
        with pytest.raises(ValueError):
            context.send_initial_metadata((("i", "2"),))
        context.set_trailing_metadata((("t", "1"), ("t-bin", b"\1")))
        assert context.trailing_metadata() == (("t", "1"), ("t-bin", b"\1"))
        return b""

    with Serving({"m": UU(handler)}) as it:
        _, call = it.unary("m", metadata=(("k", "v"),))
        assert [tuple(pair) for pair in call.initial_metadata()] == [("i", "v")]
        assert [tuple(pair) for pair in call.trailing_metadata()] == [("t", "1"), ("t-bin", b"\1")]


def test_trailing_metadata_set_after_abort_is_sent():
    def handler(request, context):
        try:
            context.abort(grpc.StatusCode.NOT_FOUND, "gone")
        finally:
            context.set_trailing_metadata((("t", "1"),))

    with Serving({"m": UU(handler)}) as it:
        assert [tuple(pair) for pair in it.error("m").trailing_metadata()] == [("t", "1")]


def test_context_describes_the_call():
    seen = {}

    def handler(request, context):
        seen["peer"] = context.peer()
        seen["auth"] = context.auth_context()
        seen["identities"] = (context.peer_identities(), context.peer_identity_key())
        seen["remaining"] = context.time_remaining()
        seen["state"] = (context.code(), context.details(), context.is_active())
        return b""

    with Serving({"m": UU(handler)}) as it:
        it.unary("m", timeout=5)
    assert seen["peer"].startswith("ipv4:127.0.0.1:")
    assert seen["auth"]["transport_security_type"] == [b"insecure"]
    assert seen["identities"] == (None, None)
    assert 4 < seen["remaining"] < 5.2
    assert seen["state"] == (None, None, True)


def test_callbacks_run_at_the_end():
    ended = threading.Event()
    added = []
    late = []

    def handler(request, context):
        added.append(context.add_callback(ended.set))
        late.append(context)
        return b""

    with Serving({"m": UU(handler)}) as it:
        it.unary("m")
        assert ended.wait(10)
        assert added == [True]
        deadline = time.monotonic() + 10
        while late[0].is_active() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not late[0].is_active()
        assert late[0].add_callback(ended.set) is False


@pytest.mark.parametrize("how", ["cancel", "deadline"])
def test_client_ends_the_call_and_iteration_raises(how):
    seen = []
    ended = threading.Event()

    def handler(requests, context):
        try:
            for request in requests:
                yield request
        except grpc.RpcError:
            seen.append((grpc.RpcError, context.is_active()))
            raise
        finally:
            ended.set()

    with Serving({"m": SS(handler)}) as it:
        hold = threading.Event()

        def requests():
            yield b"1"
            hold.wait(20)

        call = it.channel.stream_stream("/s/m")(requests(), timeout=0.5 if how == "deadline" else 30)
        assert next(call) == b"1"
        if how == "cancel":
            call.cancel()
        assert ended.wait(10)
        hold.set()
    # grpcio's iterators sometimes end without an exception.
    assert seen == [(grpc.RpcError, False)] or ("thalweg" not in grpc.__file__ and seen == [])


def test_generator_is_closed_when_the_client_cancels():
    closed = threading.Event()

    def handler(request, context):
        try:
            while True:
                yield b"1"
                time.sleep(0.01)
        finally:
            closed.set()

    with Serving({"m": US(handler)}) as it:
        call = it.channel.unary_stream("/s/m")(b"")
        assert next(call) == b"1"
        call.cancel()
        assert closed.wait(10)


VARIABLE = contextvars.ContextVar("variable", default=0)


def test_each_call_has_its_own_context():
    def handler(request, context):
        before = VARIABLE.get()
        VARIABLE.set(before + 1)
        return str(before).encode()

    with Serving({"m": UU(handler)}, threads=1) as it:
        assert [it.unary("m")[0] for _ in range(3)] == [b"0"] * 3


def test_calls_run_at_the_same_time():
    barrier = threading.Barrier(8)

    def handler(request, context):
        barrier.wait(10)
        return b""

    with Serving({"m": UU(handler)}) as it:
        method = it.channel.unary_unary("/s/m")
        for _ in range(3):
            calls = [method.future(b"", timeout=20) for _ in range(8)]
            assert [call.result() for call in calls] == [b""] * 8


def test_more_calls_than_threads_wait():
    running = []
    most = []

    def handler(request, context):
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()
        return b""

    with Serving({"m": UU(handler)}, threads=3) as it:
        method = it.channel.unary_unary("/s/m")
        calls = [method.future(b"", timeout=20) for _ in range(30)]
        assert [call.result() for call in calls] == [b""] * 30
    assert max(most) == 3


def test_other_jobs_of_the_pool_get_their_turn():
    stop = threading.Event()

    with Serving({"m": UU(echo)}, threads=1) as it:
        method = it.channel.unary_unary("/s/m")

        def load():
            while not stop.is_set():
                method(b"", timeout=10)

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            assert [it.pool.submit(int, "7").result(timeout=10) for _ in range(5)] == [7] * 5
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def test_calls_beyond_the_limit_are_rejected():
    go = threading.Event()

    def handler(request, context):
        go.wait(20)
        return b""

    with Serving({"m": UU(handler)}, maximum_concurrent_rpcs=2) as it:
        method = it.channel.unary_unary("/s/m")
        calls = [method.future(b"", timeout=20) for _ in range(5)]
        deadline = time.monotonic() + 10
        while sum(call.done() for call in calls) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        rejected = [call for call in calls if call.done()]
        assert {(call.code(), call.details()) for call in rejected} == {
            (grpc.StatusCode.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!")
        }
        go.set()
        assert [call.result() for call in calls if call not in rejected] == [b"", b""]
        # grpcio counts a call until its thread has returned.
        time.sleep(0.2)
        assert it.unary("m")[0] == b""


def test_unread_requests_stop_the_client():
    sent = 0
    go = threading.Event()

    def handler(requests, context):
        go.wait(20)
        return str(sum(map(len, requests))).encode()

    def requests():
        nonlocal sent
        for _ in range(500):
            sent += 1
            yield bytes(64 << 10)

    with Serving({"m": SU(handler)}) as it:
        call = it.channel.stream_unary("/s/m").future(requests())
        time.sleep(1)
        assert 0 < sent < 300, "16 MiB or so are in buffers"
        go.set()
        assert call.result(30) == str(500 * (64 << 10)).encode()


def test_unread_responses_stop_the_handler():
    written = 0

    def handler(request, context):
        nonlocal written
        for _ in range(500):
            written += 1
            yield bytes(64 << 10)

    with Serving({"m": US(handler)}) as it:
        call = it.channel.unary_stream("/s/m")(b"")
        assert next(call)
        time.sleep(1)
        assert written < 300, "16 MiB or so are in buffers"
        assert sum(1 for _ in call) == 499


def test_large_messages_pass_unchanged():
    message = bytes(range(256)) * 8192
    with Serving({"m": UU(echo)}) as it:
        assert it.unary("m", message)[0] == message


class Interceptor(grpc.ServerInterceptor):
    def __init__(self, name, log):
        self._name, self._log = name, log

    def intercept_service(self, continuation, handler_call_details):
        self._log.append((self._name, handler_call_details.method))
        method = handler_call_details.method
        if method == "/s/fails":
            raise KeyError("no")
        if method == "/s/refused":
            return UU(lambda request, context: context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?"))
        VARIABLE.set(VARIABLE.get() + 1)
        handler = continuation(handler_call_details)
        if handler is None:
            return None

        def wrapped(request, context):
            return self._name + b"<" + handler.unary_unary(request, context) + b">"

        return UU(wrapped)


def test_interceptors_run_in_order():
    log = []
    handler = UU(lambda request, context: b"%d" % VARIABLE.get())
    with Serving({"m": handler}, interceptors=(Interceptor(b"a", log), Interceptor(b"b", log))) as it:
        assert it.unary("m")[0] == b"a<b<2>>", "interceptors and handler share a context"
        assert [name for name, _ in log] == [b"a", b"b"]
        assert it.error("refused").code() == grpc.StatusCode.UNAUTHENTICATED
        error = it.error("fails")
        assert (error.code(), error.details()) == (grpc.StatusCode.UNKNOWN, "Error in service handler!")
        assert it.error("other").code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("serializer", [None, bytes])
def test_none_ends_the_stream_of_responses(serializer):
    def handler(request, context):
        yield b"1"
        yield None
        yield b"2"

    def with_code(request, context):
        context.set_code(grpc.StatusCode.NOT_FOUND)
        context.set_details("gone")
        yield None

    methods = {name: US(it, response_serializer=serializer) for name, it in (("m", handler), ("code", with_code))}
    with Serving(methods) as it:
        call = it.channel.unary_stream("/s/m")(b"", timeout=10)
        assert list(call) == [b"1"]
        assert call.code() == grpc.StatusCode.OK
        with pytest.raises(grpc.RpcError) as raised:
            next(it.channel.unary_stream("/s/code")(b"", timeout=10))
        assert (raised.value.code(), raised.value.details()) == NOT_FOUND


def test_details_are_bytes():
    seen = []

    def handler(request, context):
        for details in ("gone é", b"gone"):
            context.set_details(details)
            seen.append(context.details())
        context.set_code(grpc.StatusCode.NOT_FOUND)
        return b""

    with Serving({"m": UU(handler)}) as it:
        assert (it.error("m").code(), it.error("m").details()) == NOT_FOUND
    assert seen[:2] == ["gone é".encode(), b"gone"]


def test_details_of_a_wrong_type_are_an_error_of_the_handler():
    def sets(request, context):
        context.set_code(grpc.StatusCode.NOT_FOUND)
        context.set_details(5)
        return b""

    def aborts(request, context):
        context.abort(grpc.StatusCode.NOT_FOUND, 5)

    with Serving({"sets": UU(sets), "aborts": UU(aborts)}) as it:
        for method in ("sets", "aborts"):
            error = it.error(method)
            assert error.code() == grpc.StatusCode.NOT_FOUND
            assert error.details().startswith("Exception calling application: ")
            assert "int" in error.details()


# grpcio never ends the call.
@pytest.mark.thalweg_only
def test_response_of_a_wrong_type_is_internal_and_trailing_metadata_is_sent():
    def handler(request, context):
        context.set_trailing_metadata((("t", "1"),))
        return "text"

    with Serving({"m": UU(handler)}) as it:
        error = it.error("m")
        assert (error.code(), error.details()) == NOT_SERIALIZED
        assert [tuple(pair) for pair in error.trailing_metadata()] == [("t", "1")]


# grpcio never ends the call if a value has a wrong type.
@pytest.mark.parametrize(
    "metadata", [(("UPPER", "v"),), *(pytest.param(it, marks=pytest.mark.thalweg_only) for it in ((("k", 5),), 5))]
)
def test_invalid_trailing_metadata_is_internal(metadata):
    def handler(request, context):
        context.set_trailing_metadata(metadata)
        return b""

    with Serving({"m": UU(handler)}) as it:
        error = it.error("m")
        assert error.code() == grpc.StatusCode.INTERNAL
        assert error.details().startswith("Invalid metadata")


def non_blocking(function):
    function.experimental_non_blocking = True
    return US(function)


def test_non_blocking_handler_waits_for_room():
    sent = []
    ended = threading.Event()

    def handler(request, context, send):
        def run():
            for _ in range(600):
                send(bytes(100_000))
                sent.append(1)
            send(None)
            ended.set()

        threading.Thread(target=run, daemon=True).start()

    with Serving({"m": non_blocking(handler)}) as it:
        responses = it.channel.unary_stream("/s/m")(b"", timeout=50)
        assert len(next(responses)) == 100_000
        before = -1
        while before < len(sent):
            before = len(sent)
            time.sleep(0.5)
        assert before < 400
        assert sum(1 for _ in responses) == 599
        assert ended.wait(10)


def test_non_blocking_handler_goes_on_quietly_once_its_call_has_ended(caplog):
    ended = threading.Event()

    def handler(request, context, send):
        def run():
            send(b"1")
            while context.is_active():
                time.sleep(0.01)
            for _ in range(1000):
                send(bytes(1000))
            ended.set()

        threading.Thread(target=run, daemon=True).start()

    with Serving({"m": non_blocking(handler), "echo": UU(echo)}, maximum_concurrent_rpcs=1) as it:
        with caplog.at_level(logging.WARNING):
            call = it.channel.unary_stream("/s/m")(b"", timeout=20)
            assert next(call) == b"1"
            call.cancel()
            assert ended.wait(10)
        assert it.unary("echo")[0] == b"q"
    assert caplog.records == []
