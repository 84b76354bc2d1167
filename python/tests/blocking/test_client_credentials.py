"""Channels with TLS, and credentials of calls."""

import threading
import time

import grpc
import pytest
from blocking_client import PATIENCE, call, method

#: All ways to make a call with credentials; each returns the values of its metadata `x-token` at the server.
CALLS = {
    "call": lambda channel, **more: call(channel, "Metadata", b"x-token", **more),
    "with_call": lambda channel, **more: method(channel, "unary_unary", "Metadata").with_call(b"x-token", **more)[0],
    "future": lambda channel, **more: method(channel, "unary_unary", "Metadata").future(b"x-token", **more).result(),
}
each_call = pytest.mark.parametrize("make", CALLS.values(), ids=CALLS.keys())


class Plugin(grpc.AuthMetadataPlugin):
    """Adds a token, and keeps the contexts of its calls."""

    def __init__(self, token):
        self.contexts = []
        self._token = token

    def __call__(self, context, callback):
        self.contexts.append((context.service_url, context.method_name))
        callback((("x-token", self._token),), None)


def test_calls_are_made_over_tls(secure_target):
    with grpc.secure_channel(*secure_target) as channel:
        assert isinstance(channel, grpc.Channel)
        assert call(channel, "Echo", b"x") == b"x"
        assert list(method(channel, "stream_stream", "Chat")(iter([b"a", b"b"]))) == [b"a", b"b"]


def test_server_without_a_trusted_certificate_is_unavailable(secure_target):
    with grpc.secure_channel(secure_target[0], grpc.ssl_channel_credentials()) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            call(channel, "Echo", b"x")
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


@each_call
def test_credentials_of_a_call_add_metadata(secure_target, make):
    plugin = Plugin("of call")
    credentials = grpc.metadata_call_credentials(plugin)
    with grpc.secure_channel(*secure_target) as channel:
        assert make(channel, credentials=credentials) == b"['of call']"
        assert make(channel) == b"[]"
        both = make(channel, credentials=credentials, metadata=(("x-token", "own"),), timeout=PATIENCE)
        assert sorted(eval(both)) == ["of call", "own"]
    assert plugin.contexts == [(f"https://{secure_target[0]}/test.Client", "Metadata")] * 2


@each_call
def test_credentials_of_the_channel_and_the_call_are_joined(secure_target, make):
    target, credentials = secure_target
    composite = grpc.composite_channel_credentials(credentials, grpc.metadata_call_credentials(Plugin("of channel")))
    with grpc.secure_channel(target, composite) as channel:
        assert make(channel) == b"['of channel']"
        own = grpc.metadata_call_credentials(Plugin("of call"))
        assert sorted(eval(make(channel, credentials=own))) == ["of call", "of channel"]


def test_streams_have_credentials_too(secure_target):
    plugin = Plugin("t")
    credentials = grpc.metadata_call_credentials(plugin)
    with grpc.secure_channel(*secure_target) as channel:
        assert list(method(channel, "unary_stream", "Count")(b"2", credentials=credentials)) == [b"0", b"1"]
        assert method(channel, "stream_unary", "Sum")(iter([b"x"]), credentials=credentials) == b"1 1"
        assert list(method(channel, "stream_stream", "Chat")(iter([b"x"]), credentials=credentials)) == [b"x"]
    assert [name for _, name in plugin.contexts] == ["Count", "Sum", "Chat"]


def test_access_token_is_sent(secure_target):
    credentials = grpc.access_token_call_credentials("abc")
    with grpc.secure_channel(*secure_target) as channel:
        assert call(channel, "Metadata", b"authorization", credentials=credentials) == b"['Bearer abc']"


@each_call
def test_failing_plugin_fails_the_call(secure_target, make):
    def fail(context, callback):
        callback(None, ValueError("no token"))

    with grpc.secure_channel(*secure_target) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            make(channel, credentials=grpc.metadata_call_credentials(fail))
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "no token" in raised.value.details()


@each_call
def test_waiting_for_a_plugin_counts_as_time_of_the_call(secure_target, make):
    released = threading.Event()

    def wait(context, callback):
        threading.Thread(target=lambda: released.wait(PATIENCE) and callback((), None)).start()

    with grpc.secure_channel(*secure_target) as channel:
        started = time.monotonic()
        with pytest.raises(grpc.RpcError) as raised:
            make(channel, credentials=grpc.metadata_call_credentials(wait), timeout=0.3)
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert time.monotonic() - started < PATIENCE / 2
        released.set()
