"""Channels: closing, connectivity, and many threads."""

import threading
import time
from concurrent import futures

import grpc
import pytest
from blocking_client import PATIENCE, Proxy, active, call, method, running_server, until

#: grpcio's thread for subscriptions raises an exception if the channel is closed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

Connectivity = grpc.ChannelConnectivity


def collect(channel, **keywords):
    """Subscribes, and returns the list that the states are added to, and the callback."""
    states = []

    def callback(state):
        states.append(state)

    channel.subscribe(callback, **keywords)
    return states, callback


class TestClose:
    def test_calls_in_flight_are_cancelled(self, port):
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        future = method(channel, "unary_unary", "Sleep").future(b"20")
        responses = method(channel, "unary_stream", "Forever")(b"20")
        errors = []

        def blocked():
            with pytest.raises(grpc.RpcError) as raised:
                call(channel, "Sleep", b"20")
            errors.append(raised.value)

        threads = [threading.Thread(target=blocked) for _ in range(5)]
        for thread in threads:
            thread.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as other:
            before = active(other)
            until(lambda: active(other) >= 7)
            channel.close()
            for thread in threads:
                thread.join(PATIENCE)
            until(lambda: active(other) <= max(before - 7, 0))
        errors += [future.exception(PATIENCE), responses.exception(PATIENCE)]
        assert len(errors) == 7
        for error in errors:
            assert error.code() is grpc.StatusCode.CANCELLED and "Channel closed!" in error.details()
        assert not future.cancelled()
        with pytest.raises(grpc.RpcError):
            next(responses)

    def test_closed_channel_makes_no_calls(self, port):
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        echo = method(channel, "unary_unary", "Echo")
        assert echo(b"x") == b"x"
        channel.close()
        channel.close()
        for invoke in (
            lambda: echo(b"x"),
            lambda: echo.with_call(b"x"),
            lambda: echo.future(b"x"),
            lambda: method(channel, "unary_stream", "Count")(b"1"),
            lambda: method(channel, "stream_unary", "Sum")(iter([])),
            lambda: method(channel, "stream_stream", "Chat")(iter([])),
        ):
            with pytest.raises(ValueError, match="Cannot invoke RPC"):
                invoke()

    def test_context_manager_closes_also_after_an_exception(self, port):
        with pytest.raises(KeyError), grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            assert isinstance(channel, grpc.Channel)
            raise KeyError
        with pytest.raises(ValueError):
            call(channel, "Echo", b"x")

    def test_threads_make_calls_while_the_channel_is_closed(self, port):
        for _ in range(5):
            channel = grpc.insecure_channel(f"127.0.0.1:{port}")
            outcomes = []

            def calls():
                while True:
                    try:
                        assert call(channel, "Echo", b"x") == b"x"
                    except ValueError:
                        return outcomes.append("closed")
                    except grpc.RpcError as error:
                        assert error.code() is grpc.StatusCode.CANCELLED, error

            threads = [threading.Thread(target=calls) for _ in range(10)]
            for thread in threads:
                thread.start()
            time.sleep(0.1)
            channel.close()
            for thread in threads:
                thread.join(PATIENCE)
            assert outcomes == ["closed"] * 10


def test_many_threads_share_a_channel(channel):
    failures = []

    def calls(number):
        try:
            for index in range(50):
                request = f"{number} {index}".encode()
                assert call(channel, "Echo", request, timeout=60) == request
            assert list(method(channel, "stream_stream", "Chat")(iter([request] * 3))) == [request] * 3
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * PATIENCE)
    assert failures == []


class TestConnectivity:
    def test_subscriber_gets_the_state_and_its_changes(self, port):
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            states, _ = collect(channel)
            until(lambda: states == [Connectivity.IDLE])
            call(channel, "Echo", b"x")
            until(lambda: states[-1] is Connectivity.READY)
            later, _ = collect(channel)
            until(lambda: later == [Connectivity.READY])

    def test_subscriber_can_connect_the_channel(self, port):
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            states, _ = collect(channel, try_to_connect=True)
            until(lambda: states and states[-1] is Connectivity.READY)

    def test_failure_and_recovery_are_reported(self, free_port):
        options = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 200))
        try:
            channel = grpc.insecure_channel(f"127.0.0.1:{free_port}", options)
        except NotImplementedError:
            channel = grpc.insecure_channel(f"127.0.0.1:{free_port}")
        with channel:
            states, _ = collect(channel, try_to_connect=True)
            until(lambda: Connectivity.TRANSIENT_FAILURE in states)
            with running_server(free_port):
                until(lambda: states[-1] is Connectivity.READY)
            until(lambda: states[-1] is not Connectivity.READY)

    def test_unsubscribed_callback_is_not_called(self, port):
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            states, callback = collect(channel)
            until(lambda: states)
            channel.unsubscribe(callback)
            channel.unsubscribe(callback)
            other, _ = collect(channel, try_to_connect=True)
            until(lambda: other and other[-1] is Connectivity.READY)
            assert states == [Connectivity.IDLE]

    def test_failing_subscriber_is_called_again(self, port):
        states = []

        def failing(state):
            states.append(state)
            raise KeyError

        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            channel.subscribe(failing, try_to_connect=True)
            until(lambda: states and states[-1] is Connectivity.READY)


class TestReadyFuture:
    def test_future_is_done_when_the_channel_is_ready(self, channel):
        future = grpc.channel_ready_future(channel)
        called = []
        future.add_done_callback(called.append)
        assert isinstance(future, grpc.Future)
        assert future.result(timeout=PATIENCE) is None
        assert future.done() and not future.running() and not future.cancelled() and not future.cancel()
        assert future.exception() is None and future.traceback() is None
        future.add_done_callback(called.append)
        until(lambda: called == [future, future])

    def test_future_waits_for_a_server(self, free_port):
        with grpc.insecure_channel(f"127.0.0.1:{free_port}") as channel:
            future = grpc.channel_ready_future(channel)
            for wait in (future.result, future.exception, future.traceback):
                with pytest.raises(grpc.FutureTimeoutError):
                    wait(timeout=0.1)
            assert future.running()
            with running_server(free_port):
                future.result(timeout=PATIENCE)

    def test_callbacks_of_a_call_and_of_a_future_may_wait_for_a_future(self, channel, port):
        results = [futures.Future() for _ in range(2)]

        def wait(result):
            with grpc.insecure_channel(f"127.0.0.1:{port}") as other:
                try:
                    result.set_result(grpc.channel_ready_future(other).result(timeout=PATIENCE))
                except BaseException as error:
                    result.set_exception(error)

        method(channel, "unary_unary", "Echo").future(b"x").add_done_callback(lambda _: wait(results[0]))
        with grpc.insecure_channel(f"127.0.0.1:{port}") as another:
            grpc.channel_ready_future(another).add_done_callback(lambda _: wait(results[1]))
            assert [result.result(2 * PATIENCE) for result in results] == [None, None]

    def test_failing_callback_does_not_keep_others_from_running(self, channel, free_port):
        def fail(_):
            raise KeyError

        called = []
        with grpc.insecure_channel(f"127.0.0.1:{free_port}") as other:
            future = grpc.channel_ready_future(other)
            for callback in (fail, called.append):
                future.add_done_callback(callback)
            with running_server(free_port):
                until(lambda: called == [future])

    def test_future_can_be_cancelled(self, free_port):
        with grpc.insecure_channel(f"127.0.0.1:{free_port}") as channel:
            future = grpc.channel_ready_future(channel)
            assert future.cancel() and future.cancelled() and future.done()
            with pytest.raises(grpc.FutureCancelledError):
                future.result()


def test_connection_that_breaks_is_made_again(port):
    proxy = Proxy(port)
    with grpc.insecure_channel(f"127.0.0.1:{proxy.port}") as channel:
        for _ in range(3):
            assert call(channel, "Echo", b"x", wait_for_ready=True, timeout=PATIENCE) == b"x"
            states, callback = collect(channel)
            proxy.cut()
            # Until then, a call may be sent on the connection that is gone.
            until(lambda: states and states[-1] is not Connectivity.READY)
            channel.unsubscribe(callback)
    proxy.close()
