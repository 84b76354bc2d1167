"""Calls with one request and one response."""

import logging
import threading
import time

import grpc
import pytest
from blocking_client import PATIENCE, Proxy, active, call, failing, method, until

OK = grpc.StatusCode.OK


def check_failed(error, code, details=None):
    """Checks the interface of a raised error."""
    assert isinstance(error, grpc.RpcError) and isinstance(error, grpc.Call) and isinstance(error, grpc.Future)
    assert error.code() is code
    if details is not None:
        assert error.details() == details
    assert error.done() and not error.running() and not error.cancelled() and not error.cancel()
    assert error.exception() is error and error.traceback() is not None
    with pytest.raises(grpc.RpcError) as raised:
        error.result()
    assert raised.value is error
    called = []
    error.add_done_callback(called.append)
    assert called == [error]
    for text in (str(error), repr(error)):
        assert f"status = {code}" in text and f'details = "{error.details()}"' in text
    assert code.name in (error.debug_error_string() or code.name)


def test_response_is_returned(channel):
    assert call(channel, "Echo", b"hello") == b"hello"
    assert call(channel, "Echo", b"") == b""


def test_messages_are_serialized_and_deserialized(channel):
    echo = method(channel, "unary_unary", "Echo", request_serializer=str.encode, response_deserializer=bytes.decode)
    assert echo("grüße") == "grüße"
    assert echo.with_call("a")[0] == "a"
    assert echo.future("b").result(PATIENCE) == "b"


def test_large_messages_pass(channel):
    request = bytes(range(256)) * (3 << 12)
    echo = method(channel, "unary_unary", "Echo")
    assert echo(request) == request
    assert echo.future(request).result(PATIENCE) == request


def test_multicallable_is_of_the_public_class(channel):
    assert isinstance(method(channel, "unary_unary", "Echo"), grpc.UnaryUnaryMultiCallable)


def test_arguments_may_be_given_by_name_or_position(channel):
    echo = method(channel, "unary_unary", "Echo")
    assert echo(request=b"x", timeout=PATIENCE, metadata=None, credentials=None, wait_for_ready=None) == b"x"
    assert echo(b"x", PATIENCE, (("x-a", "b"),), None, True, None) == b"x"
    with pytest.raises(TypeError):
        echo(b"x", unknown=1)


def test_with_call_returns_the_ended_call(channel):
    metadata = (("x-text", "a"), ("x-data-bin", b"\0\xff"))
    response, ended = method(channel, "unary_unary", "Echo").with_call(b"x", metadata=metadata)
    assert response == b"x" and isinstance(ended, grpc.Call)
    assert (ended.code(), ended.details()) == (OK, "")
    assert sorted(map(tuple, ended.initial_metadata())) == sorted(metadata)
    assert sorted(map(tuple, ended.trailing_metadata())) == sorted(metadata)
    assert not ended.is_active() and ended.time_remaining() is None and not ended.add_callback(failing)
    assert ended.result() == b"x" and ended.exception() is None and ended.traceback() is None
    assert ended.done() and not ended.cancel() and not ended.cancelled() and not ended.running()
    assert "status = StatusCode.OK" in str(ended)


def test_metadata_has_keys_and_values(channel):
    _, ended = method(channel, "unary_unary", "Echo").with_call(b"x", metadata=[("x-a", "1"), ("x-a", "2")])
    received = ended.initial_metadata()
    assert [(pair.key, pair.value) for pair in received] == [("x-a", "1"), ("x-a", "2")]
    assert call(channel, "Metadata", b"x-a", metadata=(("x-a", b"bytes"),)) == b"['bytes']"


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not OK])
def test_status_of_the_server_is_raised(channel, code):
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, "Fail", code.name.encode())
    check_failed(raised.value, code, "asked to fail")
    trailing = dict(raised.value.trailing_metadata())
    assert trailing == {"x-reason": "asked", "x-reason-bin": b"\0\xff"}
    assert tuple(raised.value.initial_metadata()) == ()


def test_unknown_method_is_unimplemented(channel):
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, "Unknown", b"")
    check_failed(raised.value, grpc.StatusCode.UNIMPLEMENTED, "Method not found!")


def test_unreachable_server_is_unavailable(free_port):
    with grpc.insecure_channel(f"127.0.0.1:{free_port}") as channel:
        with pytest.raises(grpc.RpcError) as raised:
            call(channel, "Echo", b"")
        check_failed(raised.value, grpc.StatusCode.UNAVAILABLE)
        assert f"127.0.0.1:{free_port}" in raised.value.details()


@pytest.mark.parametrize("timeout", [0, -1, -1e9])
def test_call_without_time_left_exceeds_its_deadline(channel, timeout):
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, "Sleep", b"5", timeout=timeout)
    check_failed(raised.value, grpc.StatusCode.DEADLINE_EXCEEDED)


def test_deadline_ends_the_call_on_both_sides(channel):
    before = active(channel)
    started = time.monotonic()
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, "Sleep", b"20", timeout=0.3)
    assert 0.25 < time.monotonic() - started < PATIENCE
    check_failed(raised.value, grpc.StatusCode.DEADLINE_EXCEEDED)
    until(lambda: active(channel) == before)


def test_long_timeouts_are_no_hindrance(channel):
    for timeout in (PATIENCE, 3600 * 24 * 365 * 10, 5_000_000_000):
        assert call(channel, "Echo", b"x", timeout=timeout) == b"x"


def test_timeout_must_be_a_number(channel):
    with pytest.raises(TypeError):
        call(channel, "Echo", b"x", timeout="1")


@pytest.mark.parametrize("style", ["call", "with_call", "future"])
def test_request_that_cannot_be_serialized_is_internal(channel, caplog, style):
    for serializer in (failing, lambda request: None):
        echo = method(channel, "unary_unary", "Echo", request_serializer=serializer)
        invoke = {"call": echo, "with_call": echo.with_call, "future": echo.future}[style]
        with caplog.at_level(logging.ERROR), pytest.raises(grpc.RpcError) as raised:
            invoke(b"x")
        check_failed(raised.value, grpc.StatusCode.INTERNAL, "Exception serializing request!")
    assert "a bad serializer" in caplog.text


@pytest.mark.parametrize("style", ["call", "with_call", "future"])
def test_response_that_cannot_be_deserialized_is_internal(channel, caplog, style):
    echo = method(channel, "unary_unary", "Echo", response_deserializer=failing)
    invoke = {"call": echo, "with_call": echo.with_call, "future": lambda it: echo.future(it).result(PATIENCE)}[style]
    with caplog.at_level(logging.ERROR), pytest.raises(grpc.RpcError) as raised:
        invoke(b"x")
    assert raised.value.code() is grpc.StatusCode.INTERNAL
    assert raised.value.details() == "Exception deserializing response!"
    assert "a bad serializer" in caplog.text


def test_request_must_be_bytes_without_a_serializer(channel):
    with pytest.raises(TypeError):
        call(channel, "Echo", "text")


@pytest.mark.parametrize("pair", [("A B", "x"), ("Upper", "x"), ("x-a", "new\nline"), ("x-ä", "x"), ("", "x")])
def test_invalid_metadata_is_internal(channel, pair):
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, "Echo", b"x", metadata=(pair,))
    assert raised.value.code() is grpc.StatusCode.INTERNAL
    assert raised.value.details().startswith("Invalid metadata")
    failed = method(channel, "unary_unary", "Echo").future(b"x", metadata=(pair,))
    assert failed.code() is grpc.StatusCode.INTERNAL


@pytest.mark.parametrize("metadata", [(("x-a", 5),), ((5, "x"),), 5])
def test_metadata_of_wrong_types_is_a_type_error(channel, metadata):
    with pytest.raises(TypeError):
        call(channel, "Echo", b"x", metadata=metadata)


def test_call_waits_for_a_server_if_asked_to(free_port):
    from blocking_client import running_server

    with grpc.insecure_channel(f"127.0.0.1:{free_port}") as channel:
        with pytest.raises(grpc.RpcError) as raised:
            call(channel, "Echo", b"x", wait_for_ready=True, timeout=0.3)
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        waiting = method(channel, "unary_unary", "Echo").future(b"x", wait_for_ready=True, timeout=2 * PATIENCE)
        with running_server(free_port):
            assert waiting.result(2 * PATIENCE) == b"x"


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_requests_are_compressed_if_asked_to(port, compression):
    proxy = Proxy(port)
    request = b"a" * 200_000
    with grpc.insecure_channel(f"127.0.0.1:{proxy.port}") as channel:
        assert call(channel, "Echo", request, compression=compression) == request
        assert proxy.sent < 20_000
        assert call(channel, "Echo", request, compression=grpc.Compression.NoCompression) == request
        assert proxy.sent > 200_000
        sums = method(channel, "stream_unary", "Sum")
        before = proxy.sent
        assert sums(iter([request] * 2), compression=compression) == b"2 400000"
        assert proxy.sent - before < 20_000
    proxy.close()


def test_call_credentials_need_a_secure_channel(channel):
    credentials = getattr(grpc, "access_token_call_credentials", lambda token: object())("token")
    for invoke in (
        lambda: call(channel, "Echo", b"x", credentials=credentials),
        lambda: method(channel, "unary_unary", "Echo").future(b"x", credentials=credentials).result(PATIENCE),
        lambda: list(method(channel, "unary_stream", "Count")(b"1", credentials=credentials)),
    ):
        with pytest.raises(grpc.RpcError) as raised:
            invoke()
        assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_error_can_be_raised_again_and_shows_where_it_was_raised(channel):
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, "Fail", b"NOT_FOUND")
    with pytest.raises(grpc.RpcError) as again:
        raise raised.value
    assert again.value is raised.value


def test_cut_connection_is_unavailable_and_the_next_call_reconnects(port):
    proxy = Proxy(port)
    with grpc.insecure_channel(f"127.0.0.1:{proxy.port}") as channel:
        assert call(channel, "Echo", b"x") == b"x"
        sleeping = method(channel, "unary_unary", "Sleep").future(b"20")
        before = active
        until(lambda: before(channel) >= 1)
        proxy.cut()
        assert sleeping.exception(PATIENCE).code() is grpc.StatusCode.UNAVAILABLE

        def is_connected():
            # A call may still be sent on the connection that is gone.
            try:
                return call(channel, "Echo", b"y", wait_for_ready=True, timeout=PATIENCE) == b"y"
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE
                return False

        until(is_connected)
    proxy.close()


class TestFuture:
    def test_result_is_that_of_the_call(self, channel):
        future = method(channel, "unary_unary", "Echo").future(b"x", metadata=(("x-a", "b"),))
        assert isinstance(future, grpc.Future) and isinstance(future, grpc.Call)
        assert future.result(PATIENCE) == b"x" and future.result() == b"x"
        assert future.exception() is None and future.traceback() is None
        assert (future.code(), future.details()) == (OK, "")
        assert [tuple(pair) for pair in future.initial_metadata()] == [("x-a", "b")]
        assert [tuple(pair) for pair in future.trailing_metadata()] == [("x-a", "b")]
        assert future.done() and not future.running() and not future.cancelled() and not future.is_active()
        assert not future.cancel() and not future.cancelled()

    def test_time_out_of_waiting_does_not_end_the_call(self, channel):
        future = method(channel, "unary_unary", "Sleep").future(b"0.5", timeout=PATIENCE)
        for wait in (future.result, future.exception, future.traceback):
            with pytest.raises(grpc.FutureTimeoutError):
                wait(timeout=0.02)
        assert future.running() and future.is_active() and not future.done()
        assert 0 < future.time_remaining() <= PATIENCE
        assert "terminated" not in str(future)
        assert future.result() == b"0.5"

    def test_failure_is_raised_by_the_result(self, channel):
        future = method(channel, "unary_unary", "Fail").future(b"ABORTED")
        with pytest.raises(grpc.RpcError) as raised:
            future.result(PATIENCE)
        assert raised.value.code() is grpc.StatusCode.ABORTED
        assert future.exception() is raised.value and future.traceback() is not None
        assert "status = StatusCode.ABORTED" in str(future)

    def test_cancellation_ends_the_call_on_both_sides(self, channel):
        before = active(channel)
        future = method(channel, "unary_unary", "Sleep").future(b"20")
        until(lambda: active(channel) == before + 1)
        called = []
        future.add_done_callback(called.append)
        assert future.cancel() and future.cancelled() and future.done()
        for wait in (future.result, future.exception, future.traceback):
            with pytest.raises(grpc.FutureCancelledError):
                wait()
        assert future.code() is grpc.StatusCode.CANCELLED
        assert future.details() == "Locally cancelled by application!"
        until(lambda: called == [future] and active(channel) == before)

    def test_callbacks_run_once_on_another_thread(self, channel):
        future = method(channel, "unary_unary", "Sleep").future(b"0.3")
        called = []
        future.add_done_callback(lambda it: called.append((it, threading.current_thread())))
        assert future.add_callback(lambda: called.append("callback"))
        future.add_done_callback(failing)
        future.result(PATIENCE)
        until(lambda: len(called) == 2)
        (ended, thread), text = sorted(called, key=lambda it: it == "callback")
        assert ended is future and thread is not threading.current_thread() and text == "callback"
        future.add_done_callback(lambda it: called.append(threading.current_thread()))
        assert called[2] is threading.current_thread()
        assert not future.add_callback(failing)
        # The thread is alive after a callback that failed.
        later = []
        method(channel, "unary_unary", "Sleep").future(b"0.1").add_done_callback(later.append)
        until(lambda: later)

    def test_many_calls_run_at_once(self, channel):
        started = time.monotonic()
        futures = [method(channel, "unary_unary", "Sleep").future(b"0.5") for _ in range(40)]
        assert [future.result(PATIENCE) for future in futures] == [b"0.5"] * 40
        assert time.monotonic() - started < 10

    def test_a_call_that_nobody_has_is_cancelled(self, channel):
        before = active(channel)
        future = method(channel, "unary_unary", "Sleep").future(b"20")
        until(lambda: active(channel) == before + 1)
        del future
        until(lambda: active(channel) == before)
