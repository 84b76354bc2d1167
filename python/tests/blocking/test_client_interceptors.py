"""Interceptors of clients."""

import collections

import grpc
import pytest
from blocking_client import PATIENCE, call, method, until


#: grpcio's thread for subscriptions raises an exception if the channel is closed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


class Recorder(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Notes each call in a list, before and after it."""

    def __init__(self, name, notes):
        self._name = name
        self._notes = notes

    def _intercept(self, continuation, details, request):
        self._notes.append((self._name, details.method))
        result = continuation(details, request)
        self._notes.append((self._name, "after"))
        return result

    intercept_unary_unary = _intercept
    intercept_unary_stream = _intercept
    intercept_stream_unary = _intercept
    intercept_stream_stream = _intercept


class Function(Recorder):
    """Is a function."""

    def __init__(self, intercept):
        self._function = intercept

    def _intercept(self, continuation, details, request):
        return self._function(continuation, details, request)

    intercept_unary_unary = _intercept
    intercept_unary_stream = _intercept
    intercept_stream_unary = _intercept
    intercept_stream_stream = _intercept


_Details = collections.namedtuple(
    "_Details", ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression")
)


class Details(_Details, grpc.ClientCallDetails):
    """Details of a call that an interceptor has changed."""


def changed(details, **changes):
    return Details(*(changes.get(name, getattr(details, name)) for name in Details._fields))


#: All ways to make a call, each with the value that it returns.
CALLS = [
    (lambda channel: call(channel, "Echo", b"x"), b"x"),
    (lambda channel: method(channel, "unary_unary", "Echo").with_call(b"x")[0], b"x"),
    (lambda channel: method(channel, "unary_unary", "Echo").future(b"x").result(PATIENCE), b"x"),
    (lambda channel: list(method(channel, "unary_stream", "Count")(b"2")), [b"0", b"1"]),
    (lambda channel: method(channel, "stream_unary", "Sum")(iter([b"xy"])), b"1 2"),
    (lambda channel: method(channel, "stream_unary", "Sum").with_call(iter([b"xy"]))[0], b"1 2"),
    (lambda channel: method(channel, "stream_unary", "Sum").future(iter([b"xy"])).result(PATIENCE), b"1 2"),
    (lambda channel: list(method(channel, "stream_stream", "Chat")(iter([b"x"]))), [b"x"]),
]
each_call = pytest.mark.parametrize("make, expected", CALLS)


@each_call
def test_interceptors_run_in_their_order(channel, make, expected):
    notes = []
    intercepted = grpc.intercept_channel(channel, Recorder("a", notes), Recorder("b", notes))
    assert make(intercepted) == expected
    name = notes[0][1]
    assert name.startswith("/test.Client/")
    assert notes == [("a", name), ("b", name), ("b", "after"), ("a", "after")]


@each_call
def test_interceptors_change_the_details(channel, make, expected):
    seen = []

    def intercept(continuation, details, request):
        assert details.timeout is None and details.metadata is None and details.credentials is None
        assert details.wait_for_ready is None and details.compression is None
        changes = changed(details, timeout=PATIENCE, metadata=(("x-added", "yes"),), wait_for_ready=True)
        result = continuation(changes, request)
        seen.append(result)
        return result

    assert make(grpc.intercept_channel(channel, Function(intercept))) == expected
    assert seen[0].code() is grpc.StatusCode.OK


def test_changed_metadata_and_method_are_sent(channel):
    def add(continuation, details, request):
        metadata = [*(details.metadata or ()), ("x-added", "yes")]
        return continuation(changed(details, metadata=metadata), request)

    def redirect(continuation, details, request):
        return continuation(changed(details, method="/test.Client/Metadata"), request)

    intercepted = grpc.intercept_channel(channel, Function(redirect), Function(add))
    assert call(intercepted, "Unknown", b"x-added", metadata=(("x-own", "1"),)) == b"['yes']"
    assert call(intercepted, "Unknown", b"x-own", metadata=(("x-own", "1"),)) == b"['1']"
    assert method(intercepted, "unary_unary", "Unknown").future(b"x-added").result(PATIENCE) == b"['yes']"


def test_missing_attributes_of_details_are_those_of_the_call(channel):
    class Only(grpc.ClientCallDetails):
        metadata = (("x-added", "yes"),)

    intercepted = grpc.intercept_channel(channel, Function(lambda go, details, request: go(Only(), request)))
    assert call(intercepted, "Metadata", b"x-added", timeout=PATIENCE) == b"['yes']"


def test_request_and_response_can_be_changed(channel):
    def double(continuation, details, request):
        return continuation(details, request * 2)

    intercepted = grpc.intercept_channel(channel, Function(double))
    assert call(intercepted, "Echo", b"ab") == b"abab"
    assert list(method(intercepted, "unary_stream", "Count")(b"1"))[-1] == b"10"

    def more(continuation, details, requests):
        def all_requests():
            yield from requests
            yield b"more"

        return (response.upper() for response in continuation(details, all_requests()))

    intercepted = grpc.intercept_channel(channel, Function(more))
    assert list(method(intercepted, "stream_stream", "Chat")(iter([b"one"]))) == [b"ONE", b"MORE"]


class Answer(grpc.Call, grpc.Future):
    """A response without a call."""

    def __init__(self, value):
        self._value = value

    def result(self, timeout=None):
        return self._value

    def _none(self, *_, **__):
        return None

    code = details = initial_metadata = trailing_metadata = exception = traceback = time_remaining = _none
    is_active = running = cancel = cancelled = done = add_callback = add_done_callback = _none


def test_interceptor_may_respond_itself(channel):
    def answer(continuation, details, request):
        return Answer(b"cached")

    intercepted = grpc.intercept_channel(channel, Function(answer))
    for invoke in (method(intercepted, "unary_unary", "Echo"), method(intercepted, "stream_unary", "Sum")):
        assert invoke(iter([])) == b"cached"
        response, ended = invoke.with_call(iter([]))
        assert response == b"cached" and isinstance(ended, Answer)
        assert invoke.future(iter([])).result() == b"cached"

    intercepted = grpc.intercept_channel(channel, Function(lambda *_: iter([b"cached"])))
    assert list(method(intercepted, "unary_stream", "Count")(b"5")) == [b"cached"]


@pytest.mark.parametrize("style", ["call", "with_call", "future"])
def test_failed_call_is_returned_to_the_interceptor(channel, style):
    codes = []

    def note(continuation, details, request):
        result = continuation(details, request)
        codes.append(result.code())
        return result

    fail = method(grpc.intercept_channel(channel, Function(note)), "unary_unary", "Fail")
    invoke = {"call": fail, "with_call": fail.with_call, "future": lambda it: fail.future(it).result()}[style]
    with pytest.raises(grpc.RpcError) as raised:
        invoke(b"NOT_FOUND")
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND and raised.value.details() == "asked to fail"
    assert codes == [grpc.StatusCode.NOT_FOUND]


def test_interceptor_can_retry(channel):
    attempts = []

    def retry(continuation, details, request):
        while True:
            result = continuation(details, b"ABORTED" if len(attempts) < 2 else b"DATA_LOSS")
            attempts.append(result.code())
            if result.code() is not grpc.StatusCode.ABORTED:
                return result

    with pytest.raises(grpc.RpcError) as raised:
        call(grpc.intercept_channel(channel, Function(retry)), "Fail", b"")
    assert raised.value.code() is grpc.StatusCode.DATA_LOSS
    assert attempts == [grpc.StatusCode.ABORTED] * 2 + [grpc.StatusCode.DATA_LOSS]


class OwnError(Exception):
    pass


@each_call
def test_exception_of_an_interceptor_is_raised_to_the_caller(channel, make, expected):
    def fail(continuation, details, request):
        raise OwnError

    with pytest.raises(OwnError):
        make(grpc.intercept_channel(channel, Function(fail)))
    # It fails the call for the interceptors around it.
    codes = []

    def outer(continuation, details, request):
        result = continuation(details, request)
        codes.append(result.code())
        assert isinstance(result.exception(), OwnError) and result.details()
        assert result.done() and not result.is_active() and not result.cancel() and result.traceback() is not None
        return result

    with pytest.raises(OwnError):
        make(grpc.intercept_channel(channel, Function(outer), Function(fail)))
    assert codes == [grpc.StatusCode.INTERNAL]


def test_futures_are_intercepted_without_waiting(channel):
    returned = []

    def intercept(continuation, details, request):
        future = continuation(details, request)
        future.add_done_callback(lambda it: returned.append(it.result()))
        return future

    future = method(grpc.intercept_channel(channel, Function(intercept)), "unary_unary", "Sleep").future(b"0.3")
    assert not returned and not future.done()
    assert future.result(PATIENCE) == b"0.3"
    until(lambda: returned == [b"0.3"])


def test_only_the_kinds_of_the_interceptor_are_intercepted(channel):
    class UnaryOnly(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation, details, request):
            return continuation(details, b"changed")

        def intercept_unary_stream(self, continuation, details, request):
            raise OwnError

    intercepted = grpc.intercept_channel(channel, UnaryOnly())
    assert call(intercepted, "Echo", b"x") == b"changed"
    assert list(method(intercepted, "unary_stream", "Count")(b"1")) == [b"0"]
    assert method(intercepted, "stream_unary", "Sum")(iter([])) == b"0 0"


def test_something_else_is_no_interceptor(channel):
    with pytest.raises(TypeError):
        grpc.intercept_channel(channel, object())


def test_intercepted_channel_is_a_channel(channel):
    notes = []
    intercepted = grpc.intercept_channel(channel, Recorder("a", notes))
    assert isinstance(intercepted, grpc.Channel)
    states = []
    intercepted.subscribe(states.append, try_to_connect=True)
    until(lambda: states and states[-1] is grpc.ChannelConnectivity.READY)
    intercepted.unsubscribe(states.append)
    grpc.channel_ready_future(intercepted).result(PATIENCE)
    with intercepted:
        assert intercepted.unary_unary("/test.Client/Echo", _registered_method=True)(b"x") == b"x"
    with pytest.raises(ValueError):
        call(channel, "Echo", b"x")


def test_channel_without_interceptors_is_unchanged(channel):
    assert grpc.intercept_channel(channel) is channel
