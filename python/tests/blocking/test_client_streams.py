"""Calls with a stream of requests, of responses, or both."""

import logging
import queue
import threading
import time

import grpc
import pytest
from blocking_client import PATIENCE, active, failing, method, until

OK = grpc.StatusCode.OK


class TestResponses:
    def test_responses_are_iterated(self, channel):
        responses = method(channel, "unary_stream", "Count")(b"1000")
        assert isinstance(responses, grpc.Call) and isinstance(responses, grpc.Future)
        assert iter(responses) is responses
        assert list(responses) == [str(number).encode() for number in range(1000)]
        for _ in range(2):
            with pytest.raises(StopIteration):
                next(responses)
        assert (responses.code(), responses.details()) == (OK, "")
        assert tuple(responses.initial_metadata()) == tuple(responses.trailing_metadata()) == ()
        assert responses.exception() is None and responses.traceback() is None and responses.result() is None
        assert responses.done() and not responses.is_active() and not responses.running()
        assert not responses.cancel() and not responses.cancelled()
        assert "status = StatusCode.OK" in str(responses)

    def test_no_responses_are_an_empty_iterator(self, channel):
        assert list(method(channel, "unary_stream", "Count")(b"0")) == []

    def test_metadata_and_state_are_available_during_the_call(self, channel):
        responses = method(channel, "unary_stream", "Forever")(b"0.05", timeout=PATIENCE)
        assert next(responses) == responses.next() == b"again"
        assert tuple(responses.initial_metadata()) == ()
        assert responses.is_active() and responses.running() and not responses.done()
        assert 0 < responses.time_remaining() <= PATIENCE
        assert "terminated" not in repr(responses)
        responses.cancel()

    def test_responses_before_a_failure_are_delivered(self, channel):
        responses = method(channel, "unary_stream", "Break_off")(b"3")
        received = []
        with pytest.raises(grpc.RpcError) as raised:
            for response in responses:
                received.append(response)
        assert received == [b"0", b"1", b"2"]
        assert raised.value is responses
        assert (raised.value.code(), raised.value.details()) == (grpc.StatusCode.DATA_LOSS, "broken off")
        assert responses.exception() is responses and responses.traceback() is not None
        with pytest.raises(grpc.RpcError):
            next(responses)

    def test_cancellation_ends_the_iteration_on_both_sides(self, channel):
        before = active(channel)
        responses = method(channel, "unary_stream", "Forever")(b"0.01")
        next(responses)
        called = []
        assert responses.add_callback(lambda: called.append(1))
        assert responses.cancel() and responses.cancelled() and responses.done()
        for _ in range(2):
            with pytest.raises(grpc.RpcError) as raised:
                next(responses)
            assert raised.value.code() is grpc.StatusCode.CANCELLED
            assert raised.value.details() == "Locally cancelled by application!"
        for wait in (responses.result, responses.exception, responses.traceback):
            with pytest.raises(grpc.FutureCancelledError):
                wait()
        until(lambda: called == [1] and active(channel) == before)

    def test_cancellation_wakes_a_waiting_thread(self, channel):
        responses = method(channel, "unary_stream", "Forever")(b"20")
        codes = []

        def iterate():
            with pytest.raises(grpc.RpcError) as raised:
                next(responses)
            codes.append(raised.value.code())

        thread = threading.Thread(target=iterate)
        thread.start()
        time.sleep(0.2)
        responses.cancel()
        thread.join(PATIENCE)
        assert codes == [grpc.StatusCode.CANCELLED]

    def test_deadline_ends_the_iteration(self, channel):
        responses = method(channel, "unary_stream", "Forever")(b"0.05", timeout=0.4)
        with pytest.raises(grpc.RpcError) as raised:
            for response in responses:
                assert response == b"again"
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    def test_request_that_cannot_be_serialized_is_internal(self, channel):
        with pytest.raises(grpc.RpcError) as raised:
            method(channel, "unary_stream", "Count", request_serializer=failing)(b"1")
        assert raised.value.code() is grpc.StatusCode.INTERNAL
        assert raised.value.details() == "Exception serializing request!"

    @pytest.mark.parametrize("name, request_", [("Count", b"3"), ("Forever", b"0.01")])
    def test_response_that_cannot_be_deserialized_is_internal(self, channel, caplog, name, request_):
        responses = method(channel, "unary_stream", name, response_deserializer=failing)(request_)
        time.sleep(0.2)
        for _ in range(2):
            with caplog.at_level(logging.ERROR), pytest.raises(grpc.RpcError) as raised:
                next(responses)
            assert raised.value.code() is grpc.StatusCode.INTERNAL
            assert raised.value.details() == "Exception deserializing response!"
        assert "a bad serializer" in caplog.text
        assert active(channel) >= 0

    def test_invalid_metadata_fails_the_call(self, channel):
        responses = method(channel, "unary_stream", "Count")(b"3", metadata=(("A", "b"),))
        with pytest.raises(grpc.RpcError) as raised:
            next(responses)
        assert raised.value.code() is grpc.StatusCode.INTERNAL
        assert raised.value.details().startswith("Invalid metadata")

    def test_responses_that_nobody_has_are_cancelled(self, channel):
        before = active(channel)
        responses = method(channel, "unary_stream", "Forever")(b"0.01")
        next(responses)
        del responses
        until(lambda: active(channel) == before)

    def test_slow_reader_loses_nothing(self, channel):
        responses = method(channel, "unary_stream", "Count")(b"30000")
        time.sleep(0.5)
        assert sum(1 for _ in responses) == 30000


def unread(channel, name="Count", request=b"3", **arguments):
    """A call that has ended at the server, while its responses are unread here."""
    responses = method(channel, "unary_stream", name)(request, **arguments)
    time.sleep(0.3)
    return responses


@pytest.mark.parametrize("name", ["Count", "Break_off"])
class TestUnreadResponses:
    """The end of a call arrives with its last response, whether it has failed or not."""

    def test_call_goes_on_until_the_last_response_is_read(self, channel, name):
        responses, called = unread(channel, name), []
        responses.add_done_callback(called.append)
        for number in range(3):
            assert responses.is_active() and responses.running() and not responses.done()
            assert next(responses) == str(number).encode()
            time.sleep(0.05)
            assert bool(called) == (number == 2)
        assert responses.done() and not responses.is_active() and not responses.cancel()

    def test_code_waits_for_the_reader(self, channel, name):
        responses, codes = unread(channel, name), []
        thread = threading.Thread(target=lambda: codes.append((responses.code(), responses.trailing_metadata())))
        thread.start()
        thread.join(0.3)
        assert not codes
        for number in range(3):
            assert next(responses) == str(number).encode()
        thread.join(PATIENCE)
        assert [code for code, _ in codes] == [OK if name == "Count" else grpc.StatusCode.DATA_LOSS]

    def test_cancellation_drops_them(self, channel, name):
        responses = unread(channel, name)
        assert next(responses) == b"0"
        assert responses.cancel() and responses.cancelled() and responses.done()
        with pytest.raises(grpc.RpcError) as raised:
            next(responses)
        assert raised.value.code() is grpc.StatusCode.CANCELLED

    def test_deadline_drops_them(self, channel, name):
        responses = unread(channel, name, timeout=0.6)
        assert next(responses) == b"0"
        assert responses.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        with pytest.raises(grpc.RpcError) as raised:
            next(responses)
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    def test_deadline_drops_those_that_wait_for_room(self, channel, name):
        responses = method(channel, "unary_stream", name)(b"30000", timeout=0.4)
        assert next(responses) == b"0"
        time.sleep(0.8)
        assert responses.done()
        with pytest.raises(grpc.RpcError) as raised:
            next(responses)
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    def test_closing_the_channel_drops_them(self, port, name):
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            responses = unread(channel, name)
        with pytest.raises(grpc.RpcError) as raised:
            next(responses)
        assert raised.value.code() is grpc.StatusCode.CANCELLED


class TestRequests:
    def test_requests_are_sent_until_the_iterator_ends(self, channel):
        sums = method(channel, "stream_unary", "Sum")
        assert sums(iter([])) == b"0 0"
        assert sums(bytes(1) for _ in range(5000)) == b"5000 5000"
        assert sums(iter([b"x" * 300_000] * 5)) == b"5 1500000"
        response, ended = sums.with_call(iter([b"ab"]))
        assert response == b"1 2" and ended.code() is OK and isinstance(ended, grpc.Call)
        future = sums.future(iter([b"ab"]))
        assert future.result(PATIENCE) == b"1 2" and future.code() is OK

    def test_messages_are_serialized_and_deserialized(self, channel):
        sums = method(channel, "stream_unary", "Sum", request_serializer=str.encode, response_deserializer=bytes.decode)
        assert sums(iter(["ä"])) == "1 2"
        assert sums.future(iter(["ä"])).result(PATIENCE) == "1 2"

    def test_server_may_respond_before_the_requests_end(self, channel):
        released = threading.Event()

        def requests():
            yield b"one"
            released.wait(PATIENCE)
            yield b"two"

        assert method(channel, "stream_unary", "First")(requests()) == b"one"
        released.set()

    def test_server_may_respond_while_requests_wait_for_room(self, channel):
        future = method(channel, "stream_unary", "First").future(iter(bytes(1 << 20) for _ in range(200)))
        assert len(future.result(PATIENCE)) == 1 << 20

    def test_failing_iterator_is_unknown(self, channel, caplog):
        def requests():
            yield b"one"
            failing()

        with caplog.at_level(logging.ERROR), pytest.raises(grpc.RpcError) as raised:
            method(channel, "stream_unary", "Sum")(requests())
        assert raised.value.code() is grpc.StatusCode.UNKNOWN
        assert raised.value.details() == "Exception iterating requests!"
        assert "a bad serializer" in caplog.text
        with pytest.raises(grpc.RpcError) as raised:
            list(method(channel, "stream_stream", "Chat")(requests()))
        assert raised.value.code() is grpc.StatusCode.UNKNOWN

    def test_requests_must_be_iterable(self, channel):
        with pytest.raises(grpc.RpcError) as raised:
            method(channel, "stream_unary", "Sum")(5)
        assert raised.value.code() is grpc.StatusCode.UNKNOWN

    @pytest.mark.parametrize("serializer", [failing, lambda request: None])
    def test_request_that_cannot_be_serialized_is_internal(self, channel, serializer):
        for kind, name in (("stream_unary", "Sum"), ("stream_stream", "Chat")):
            with pytest.raises(grpc.RpcError) as raised:
                list(method(channel, kind, name, request_serializer=serializer)(iter([b"x"])))
            assert raised.value.code() is grpc.StatusCode.INTERNAL
            assert raised.value.details() == "Exception serializing request!"

    def test_response_that_cannot_be_deserialized_is_internal(self, channel):
        for invoke in (
            lambda it: it(iter([])),
            lambda it: it.with_call(iter([])),
            lambda it: it.future(iter([])).result(),
        ):
            with pytest.raises(grpc.RpcError) as raised:
                invoke(method(channel, "stream_unary", "Sum", response_deserializer=failing))
            assert raised.value.code() is grpc.StatusCode.INTERNAL
            assert raised.value.details() == "Exception deserializing response!"

    def test_deadline_ends_the_call_although_requests_go_on(self, channel):
        released = threading.Event()

        def requests():
            yield b"one"
            released.wait(PATIENCE)

        with pytest.raises(grpc.RpcError) as raised:
            method(channel, "stream_unary", "Sum")(requests(), timeout=0.3)
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        released.set()

    def test_cancelled_call_takes_no_more_requests(self, channel):
        taken = []

        def requests():
            for number in range(10_000):
                taken.append(number)
                time.sleep(0.01)
                yield b"x"

        future = method(channel, "stream_unary", "Sum").future(requests())
        until(lambda: len(taken) > 3)
        assert future.cancel()
        time.sleep(0.2)
        after = len(taken)
        time.sleep(0.3)
        assert len(taken) <= after + 1


class TestChat:
    def test_requests_and_responses_alternate(self, channel):
        requests = queue.SimpleQueue()
        responses = method(channel, "stream_stream", "Chat")(iter(requests.get, None))
        for number in range(100):
            requests.put(str(number).encode())
            assert next(responses) == str(number).encode()
        requests.put(None)
        with pytest.raises(StopIteration):
            next(responses)
        assert responses.code() is OK

    def test_large_messages_pass_in_both_directions(self, channel):
        message = bytes(range(256)) * (1 << 12)
        assert list(method(channel, "stream_stream", "Chat")(iter([message] * 20))) == [message] * 20

    def test_requests_of_another_call_may_be_responses(self, channel):
        chat = method(channel, "stream_stream", "Chat")
        numbers = method(channel, "unary_stream", "Count")(b"500")
        assert list(chat(chat(numbers))) == [str(number).encode() for number in range(500)]

    def test_call_with_an_open_iterator_is_cancelled(self, channel):
        released = threading.Event()

        def requests():
            yield b"one"
            released.wait(PATIENCE)

        responses = method(channel, "stream_stream", "Chat")(requests())
        assert next(responses) == b"one"
        assert responses.cancel()
        with pytest.raises(grpc.RpcError):
            next(responses)
        released.set()
